"""Streams records of parquet files by row group. Reads only the text column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .input_file import InputFile
from .pieces import PIECE_BYTES
from .row_file import RowFile, import_pyarrow

_MOST_ROWS = 1 << 16  # of a batch; a batch has about PIECE_BYTES


def pyarrow_parquet(path: str) -> Any:
    """Returns pyarrow.parquet, or raises a MissingExtraError that says what to install."""
    import_pyarrow(path, "parquet")
    from pyarrow import parquet

    return parquet


class RowGroups(RowFile):
    """A parquet file, read by row groups."""

    kind = "a parquet file"

    def __init__(self, file: InputFile, text_key: str) -> None:
        parquet = pyarrow_parquet(file.location)
        super().__init__(file, text_key)
        source = file.location if file.remote is None else file.open_stored()
        self._file = self._checked(parquet.ParquetFile, source)
        self._check_schema(self._file.schema_arrow)
        metadata = self._file.metadata
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        self._set_groups([(group.num_rows, self._bytes(group)) for group in groups])

    def _bytes(self, group: Any) -> int:
        columns = [group.column(i) for i in range(group.num_columns)]
        return sum(column.total_uncompressed_size for column in columns if column.path_in_schema == self._key)

    def _columns(self, group: int) -> Iterator[Any]:
        rows = self._starts[group + 1] - self._starts[group]
        batch_rows = min(_MOST_ROWS, max(1, rows * PIECE_BYTES // max(1, self._sizes[group])))
        batches = self._file.iter_batches(batch_rows, row_groups=[group], columns=[self._key])
        while (batch := self._checked(next, batches, None)) is not None:
            yield batch.column(0)
