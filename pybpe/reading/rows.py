"""Files whose documents are rows: parquet, and Arrow (.arrow, .feather and .ipc), as streams (which Hugging Face's
`datasets` writes) or as files (which Feather is). Each has a column of texts. pyarrow reads them.

Parquet is read in row groups, which a plan divides into tasks. Arrow is read from its start, as a compressed text is:
where its record batches are is known only by then.
"""

from __future__ import annotations

import errno
import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, TypeVar

from .._lazy import numpy
from ..arguments import can_pass, param
from ..errors import Error, FormatError, MissingExtraError, OutOfMemoryError, file_error
from .bad_records import Seen
from .input_file import InputFile
from .pieces import PIECE_BYTES

Result = TypeVar("Result")


_Part = tuple[memoryview, memoryview]  # bytes, and 64-bit numbers: text i is data[offsets[i] : offsets[i + 1]]


class Texts:
    """The texts of some rows, in the memory of Arrow, or of small files: `parts` in order, each with at least one."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[bytes]:
        """Yields the texts that are not empty."""
        for data, offsets in self.parts:
            yield from (bytes(data[start:end]) for start, end in pairwise(offsets) if end > start)

    @property
    def size(self) -> int:
        """The number of bytes."""
        return sum(offsets[-1] - offsets[0] for _, offsets in self.parts)


class RowFile:
    """A file of rows.

    Raises:
        FormatError: the file is damaged, or has no text column with that name.
    """

    kind = "parquet"  # for errors

    def __init__(self, file: InputFile, text_key: str) -> None:
        if file.size is None:
            raise file_error(errno.ESPIPE, f"{file.location}: {self.kind} cannot be read from a stream: copy it first")
        file.check_now()
        self._input, self._path, self._key = file, file.location, text_key

    @property
    def rows(self) -> int:
        """The number of rows."""
        raise NotImplementedError

    def _columns(self, start: int, end: int) -> Iterator[tuple[int, Any]]:
        """Yields the text column of the rows start .. end in parts, each with its first row. There may be more rows
        before them and after them."""
        raise NotImplementedError

    def texts(self, start: int, end: int | None, seen: Seen) -> Iterator[tuple[Texts, Seen]]:
        """Yields the texts of some rows (all after the first, if `end` is None), in batches of about PIECE_BYTES, each
        with what was seen. `seen` is for the first batch."""
        parts, size, nulls, last = list[_Part](), 0, deque[int](), start
        for row, data, offsets in self._rows(start, sys.maxsize if end is None else end, nulls if seen.skips else None):
            at, rows = 0, len(offsets) - 1
            while (stop := bisect_left(offsets, offsets[at] + PIECE_BYTES - size, at + 1)) <= rows:
                yield Texts([*parts, (data, offsets[at : stop + 1])]), self._noted(seen, row + stop, nulls)
                parts, size, at, seen = [], 0, stop, Seen(seen.path, row + stop, seen.skips)
            parts.append((data, offsets[at:]))
            size += offsets[rows] - offsets[at]
            last = row + rows
        if last > seen.start:
            yield Texts(parts), self._noted(seen, last, nulls)
        self._input.check_now()

    def _noted(self, seen: Seen, end: int, nulls: deque[int]) -> Seen:
        """Notes the rows of a batch that ends at a row, and takes the null ones from `nulls`."""
        seen.end, seen.records = end, end - seen.start
        while nulls and nulls[0] < end:
            seen.bad_row(nulls.popleft(), f"the column {self._key!r} is null")
        return seen

    def _rows(self, start: int, end: int, nulls: deque[int] | None) -> Iterator[tuple[int, memoryview, memoryview]]:
        """Yields the texts of the rows start .. end in parts: the first row, and the data and offsets of a _Part. Rows
        that are null are empty texts, and their numbers are appended to `nulls`; if that is None, they are an error."""
        for row, column in self._columns(start, end):
            first = max(start, row)
            some = column.slice(first - row, max(0, end - first)) if first > row or row + len(column) > end else column
            if len(some):
                yield first, *self._part(some, first, nulls)

    def _part(self, column: Any, row: int, nulls: deque[int] | None) -> _Part:
        """Returns the texts of an Arrow array that begins at a row. `nulls` is as in `_rows`."""
        if column.null_count:
            is_null = column.is_null()
            if nulls is None:
                null = is_null.index(True).as_py()
                raise FormatError(f"{self._path}: row {row + null}: the column {self._key!r} is null")
            nulls += (row + number for number, null in enumerate(is_null.to_pylist()) if null)
        return self._checked(part_of, column)

    def _check_schema(self, schema: Any) -> None:
        """Raises FormatError unless an Arrow schema has one column of texts with this key."""
        path, key, names = self._path, self._key, schema.names
        if key not in names:
            some = ", ".join(names)
            remedy = f"set {param('text_key')} to one of {some}" if can_pass("text_key") else f"its columns are {some}"
            raise FormatError(f"{path}: no column {key!r}: {remedy}")
        if names.count(key) > 1:
            raise FormatError(f"{path}: {names.count(key)} columns are named {key!r}: rename all but one")
        kind = str(schema.field(key).type)
        if kind.removeprefix("large_").removesuffix("_view") not in ("string", "binary"):
            raise FormatError(f"{path}: the column {key!r} holds {kind}, expected string")

    def _checked(self, function: Callable[..., Result], *args: Any) -> Result:
        """Returns function(*args). Turns the errors of pyarrow into ours."""
        import pyarrow

        path = self._path
        try:
            return function(*args)
        except Error:  # of our streams
            raise
        except MemoryError as error:  # one of pyarrow's own kinds is also an ArrowException
            raise OutOfMemoryError(f"{path}: there is not enough memory for its rows ({error})") from None
        except (pyarrow.ArrowException, EOFError) as error:
            raise FormatError(f"{path}: not {self.kind}, or damaged: {' '.join(str(error).split())}") from None
        except OSError as error:
            if error.errno is None:  # Arrow found an error in the content
                raise FormatError(f"{path}: damaged: {' '.join(str(error).split())}") from None
            raise file_error(error.errno, f"{path}: {error.strerror}") from None


def part_of(column: Any) -> _Part:
    """Returns the texts of an Arrow array of strings. A null is an empty text."""
    kind = str(column.type)
    if column.null_count or kind.endswith("_view"):
        import pyarrow

        # The bytes of a null may be anything. A cast imports a module that takes 0.1 s.
        column, kind = column.cast(pyarrow.large_binary()).fill_null(b""), "large_binary"
    _, offsets, data = column.buffers()
    dtype = numpy.dtype("q" if kind.startswith("large_") else "i")
    ends = numpy.frombuffer(offsets, dtype, len(column) + 1, column.offset * dtype.itemsize)
    return memoryview(data or b""), ends.astype("q", copy=False).data


def import_pyarrow(path: str, kind: str) -> Any:
    """Returns pyarrow, or raises a MissingExtraError that says what to install."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError(f"{path}: {kind} files need a package: pip install 'pybpe[parquet]'") from None
    return pyarrow


# ----------------------------------------------------------------------------------------------------
# Parquet


_MOST_ROWS = 1 << 16  # of a batch; a batch has about PIECE_BYTES
_FEW = 256  # batches take less time than reading a dictionary
_MOST_BYTES = 32 * PIECE_BYTES  # of a batch whose texts are stored once for many rows


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
        paths = (metadata.schema.column(number).path for number in range(metadata.num_columns))
        self._column = list(paths).index(text_key)
        rows = (metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        self._starts: list[int] = list(accumulate(rows, initial=0))

    @property
    def rows(self) -> int:
        return self._starts[-1]

    def between(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yields (first row, end row, bytes) of each group, limited to rows start .. end."""
        for group, (first, last) in enumerate(pairwise(self._starts)):
            a, b = max(first, start), min(last, end)
            if a < b:
                yield a, b, self._bytes(group) * (b - a) // (last - first)

    def _bytes(self, group: int) -> int:
        return int(self._chunk(group).total_uncompressed_size)

    def _chunk(self, group: int) -> Any:
        """Returns what the file says about the texts of a group."""
        return self._file.metadata.row_group(group).column(self._column)

    def _open(self, **options: Any) -> Any:
        file = self._input
        source = file.location if file.remote is None else file.open_stored()
        return self._checked(partial(self._parquet.ParquetFile, source, **options))

    def _columns(self, start: int, end: int) -> Iterator[tuple[int, Any]]:
        for group, (row, last) in enumerate(pairwise(self._starts)):
            if last <= start or row >= end:
                continue
            batches = self._batches(self._file, self._batch_rows(group), group)
            while (batch := self._checked(next, batches, None)) is not None:
                yield row, batch.column(0)
                row += len(batch)

    def _batches(self, file: Any, rows: int, group: int) -> Any:
        return file.iter_batches(rows, row_groups=[group], columns=[self._key], use_threads=False)

    def _batch_rows(self, group: int) -> int:
        """Returns the number of rows to read at once: about PIECE_BYTES as they are stored, and at most _MOST_BYTES if
        all of them are the longest text of the group's dictionary (a text in it may be stored once for many rows)."""
        rows, size = self._starts[group + 1] - self._starts[group], max(1, self._bytes(group))
        longest = size  # no text is longer than all
        if rows * longest > _FEW * _MOST_BYTES:
            longest = max(1, self._longest_in_dictionary(group))
        return int(max(1, min(_MOST_ROWS, rows * PIECE_BYTES // size, _MOST_BYTES // longest)))

    def _longest_in_dictionary(self, group: int) -> int:
        """Returns the number of bytes of the longest text in the dictionary of a group; 0 if it has none. Reads only
        the beginning of the group."""
        if not any("DICTIONARY" in encoding for encoding in self._chunk(group).encodings):
            return 0
        from pyarrow import DictionaryArray

        file = self._open(metadata=self._file.metadata, read_dictionary=[self._key], buffer_size=1 << 16)
        first = self._checked(next, self._batches(file, 1, group), None)
        if first is None or not isinstance(first.column(0), DictionaryArray):
            return 0
        _, offsets = part_of(first.column(0).dictionary)
        return int(numpy.diff(numpy.frombuffer(offsets, "q")).max(initial=0))


# ----------------------------------------------------------------------------------------------------
# Arrow


_FILE_MARK = b"ARROW1\0\0"  # before the stream of messages in a file
_CONTINUES = b"\xff\xff\xff\xff"  # with which each message begins


class ArrowStream(RowFile):
    """An Arrow file, read by record batches."""

    kind = "an Arrow file"

    def __init__(self, file: InputFile, text_key: str) -> None:
        import_pyarrow(file.location, "Arrow")
        super().__init__(file, text_key)
        with self._open() as reader:
            self._check_schema(reader.schema)
            self._column = reader.schema.get_field_index(text_key)

    @contextmanager
    def _open(self, **options: Any) -> Iterator[Any]:
        """Opens the file from its start."""
        from pyarrow import ipc

        with self._input.open_stored(0, self._input.size) as stream:
            start = len(_FILE_MARK) if stream.read(len(_FILE_MARK)) == _FILE_MARK else 0
            stream.seek(start)
            if stream.read(len(_CONTINUES)) != _CONTINUES:
                raise FormatError(f"{self._path}: not an Arrow file, or damaged: no message at byte {start}", start)
            stream.seek(start)
            yield self._checked(partial(ipc.open_stream, stream, options=ipc.IpcReadOptions(**options)))

    @property
    def rows(self) -> int:
        return sum(len(column) for _, column in self._columns(0, sys.maxsize))

    def _columns(self, start: int, end: int) -> Iterator[tuple[int, Any]]:
        row = 0
        with self._open(included_fields=[self._column]) as reader:
            while row < end and (batch := self._checked(next, reader, None)) is not None:
                column = batch.column(0)
                self._checked(partial(column.validate, full=True))  # wrong offsets would read memory outside it
                yield row, column
                row += len(column)


def open_rows(file: InputFile, text_key: str) -> RowFile:
    """Opens a file of rows, whose texts are in the column `text_key`.

    Raises:
        MissingExtraError: pyarrow is not installed. FormatError: the file is damaged, or has no such text column.
    """
    return RowGroups(file, text_key) if file.form == "parquet" else ArrowStream(file, text_key)
