"""Streams records of parquet files by row group. Reads only the text column."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from .._numpy import numpy
from .input_file import InputFile
from .pieces import PIECE_BYTES
from .row_file import RowFile, import_pyarrow, part_of

_MOST_ROWS = 1 << 16  # of a batch; a batch has about PIECE_BYTES
_MOST_BYTES = 16 * PIECE_BYTES  # of a batch whose texts are stored once for many rows


def pyarrow_parquet(path: str) -> Any:
    """Returns pyarrow.parquet, or raises a MissingExtraError that says what to install."""
    import_pyarrow(path, "parquet")
    from pyarrow import parquet

    return parquet


class RowGroups(RowFile):
    """A parquet file, read by row groups."""

    kind = "a parquet file"

    def __init__(self, file: InputFile, text_key: str) -> None:
        self._parquet = pyarrow_parquet(file.location)
        super().__init__(file, text_key)
        self._file = self._open()
        self._check_schema(self._file.schema_arrow)
        metadata = self._file.metadata
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        self._set_groups([(group.num_rows, self._bytes(group)) for group in groups])

    def _bytes(self, group: Any) -> int:
        columns = [group.column(i) for i in range(group.num_columns)]
        return sum(column.total_uncompressed_size for column in columns if column.path_in_schema == self._key)

    def _open(self, **options: Any) -> Any:
        file = self._input
        source = file.location if file.remote is None else file.open_stored()
        return self._checked(partial(self._parquet.ParquetFile, source, **options))

    def _columns(self, group: int) -> Iterator[Any]:
        batches = self._file.iter_batches(self._batch_rows(group), row_groups=[group], columns=[self._key])
        while (batch := self._checked(next, batches, None)) is not None:
            yield batch.column(0)

    def _batch_rows(self, group: int) -> int:
        """Returns the number of rows to read at once: about PIECE_BYTES as they are stored, and at most _MOST_BYTES if
        all of them are the longest text of the group's dictionary (a text in it may be stored once for many rows)."""
        rows = self._starts[group + 1] - self._starts[group]
        some = min(_MOST_ROWS, max(1, rows * PIECE_BYTES // max(1, self._sizes[group])))
        if some * self._sizes[group] <= _MOST_BYTES:
            return some
        return min(some, max(1, _MOST_BYTES // max(1, self._longest_in_dictionary(group))))

    def _longest_in_dictionary(self, group: int) -> int:
        """Returns the number of bytes of the longest text in the dictionary of a group; 0 if it has none. Reads only
        the beginning of the group."""
        from pyarrow import DictionaryArray

        options = {"metadata": self._file.metadata, "read_dictionary": [self._key], "buffer_size": PIECE_BYTES}
        with self._open(**options) as file:
            first = self._checked(next, file.iter_batches(1, row_groups=[group], columns=[self._key]), None)
        if first is None or not isinstance(first.column(0), DictionaryArray):
            return 0
        _, offsets = part_of(first.column(0).dictionary)
        return int(numpy.diff(numpy.frombuffer(offsets, "q")).max(initial=0))
