"""Streams records of parquet files by row group. Reads only the text column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import FormatError, MissingExtraError, file_error
from .input_file import InputFile
from .pieces import PIECE_BYTES

_BATCH_ROWS = 256


def pyarrow_parquet(path: str) -> Any:
    """Returns pyarrow.parquet, or raises a MissingExtraError that says what to install."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise MissingExtraError(f"{path}: parquet files need a package: pip install 'pybpe[parquet]'") from None
    return parquet


class RowGroups:
    """A parquet file, read by row groups.

    Raises:
        FormatError: the file is damaged, or has no text column with that name.
    """

    def __init__(self, file: InputFile, text_key: str) -> None:
        path = file.location
        file.check_now()
        self._input, self._path, self._key = file, path, text_key
        parquet = pyarrow_parquet(path)
        source = path if file.remote is None else file.open_stored()
        self._file = _checked(path, parquet.ParquetFile, source)
        metadata = self._file.metadata
        names = self._file.schema_arrow.names
        if text_key not in names:
            raise FormatError(f"{path}: no column {text_key!r}; set text_key to one of {', '.join(names)}")
        if names.count(text_key) > 1:
            raise FormatError(f"{path}: {names.count(text_key)} columns are named {text_key!r}: rename all but one")
        kind = str(self._file.schema_arrow.field(text_key).type)
        if kind.removeprefix("large_").removesuffix("_view") not in ("string", "binary"):
            raise FormatError(f"{path}: the column {text_key!r} holds {kind}, expected string")
        self._starts = [0]
        self._sizes = []
        for i in range(metadata.num_row_groups):
            group = metadata.row_group(i)
            columns = [group.column(c) for c in range(group.num_columns)]
            size = sum(c.total_uncompressed_size for c in columns if c.path_in_schema == text_key)
            self._starts.append(self._starts[-1] + group.num_rows)
            self._sizes.append(size)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._starts[-1]

    def between(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yields (first row, end row, bytes) of each row group, limited to rows start .. end."""
        for first, last, size in zip(self._starts, self._starts[1:], self._sizes):
            a, b = max(first, start), min(last, end)
            if a < b:
                yield a, b, size * (b - a) // (last - first)

    def texts(self, start: int, end: int) -> Iterator[tuple[int, list[bytes]]]:
        """Yields the non-empty texts of some rows, in batches of about PIECE_BYTES, each with its first row."""
        first, batch, size = start, list[bytes](), 0
        for row, text in self._rows(start, end):
            if text:
                batch.append(text)
            size += len(text)
            if size >= PIECE_BYTES:
                yield first, batch
                first, batch, size = row + 1, [], 0
        if batch:
            yield first, batch

    def _rows(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        import pyarrow

        for i, (first, last) in enumerate(zip(self._starts, self._starts[1:])):
            if last <= start or first >= end:
                continue
            row = first
            batches = self._file.iter_batches(_BATCH_ROWS, row_groups=[i], columns=[self._key])
            while (batch := _checked(self._path, next, batches, None)) is not None:
                texts = batch.column(0).cast(pyarrow.large_binary()).to_pylist()
                for number, text in enumerate(texts, row):
                    if start <= number < end:
                        if text is None:
                            raise FormatError(f"{self._path}: row {number}: the column {self._key!r} is null")
                        yield number, text
                row += len(texts)
        self._input.check_now()


def _checked(path: str, function: Any, *args: Any) -> Any:
    import pyarrow

    try:
        return function(*args)
    except pyarrow.ArrowException as error:
        raise FormatError(f"{path}: not a parquet file, or damaged: {' '.join(str(error).split())}") from None
    except OSError as error:
        if error.errno is None:  # Arrow found an error in the content
            raise FormatError(f"{path}: damaged: {' '.join(str(error).split())}") from None
        raise file_error(error.errno, f"{path}: {error.strerror}") from None
