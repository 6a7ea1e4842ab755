"""Files whose documents are rows: parquet, and Arrow (.arrow, .feather and .ipc), as streams (which Hugging Face's
`datasets` writes) or as files (which Feather is). They have a column of text. pyarrow reads them. Other columns are
read only for a caller who names them, or wants all.

Parquet is read in row groups, which a plan divides into tasks. Arrow is read from its start, as a compressed text is:
where its record batches are is known only by then.
"""

from __future__ import annotations

import errno
import sys
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, reduce
from itertools import accumulate, pairwise
from typing import Any, TypeVar

from .._lazy import numpy
from ..arguments import can_pass, param
from ..errors import Error, FormatError, MissingExtraError, OutOfMemoryError, file_error
from .cuts import PIECE_BYTES
from .input_file import InputFile
from .records import RecordNotes, field_path

Result = TypeVar("Result")


_Part = tuple[memoryview, memoryview]  # bytes, and 64-bit numbers: text i is data[offsets[i] : offsets[i + 1]]

Select = Callable[[Any], Sequence[bool]]


class Texts:
    """The texts of some rows, in the memory of Arrow, or of small files: `parts` in order, none empty.

    Attributes:
        parts: the texts.
        fields: the values of other columns for every text, in the order of the columns, where the text is None. Empty
            for a row that is not selected, and empty as a whole if no other columns were read.
        paths: the file of each text, if these are small files.
    """

    def __init__(
        self, parts: Sequence[_Part], fields: Sequence[dict[str, Any]] = (), paths: Sequence[str] = ()
    ) -> None:
        self.parts, self.fields, self.paths = parts, fields, paths

    def __iter__(self) -> Iterator[bytes]:
        """Yields the texts that are not empty."""
        for data, offsets in self.parts:
            yield from (bytes(data[start:end]) for start, end in pairwise(offsets) if end > start)

    def records(self) -> Iterator[tuple[int, bytes, dict[str, Any]]]:
        """Yields the numbers of the texts that are not empty, the texts, and their fields."""
        texts = (data[start:end] for data, offsets in self.parts for start, end in pairwise(offsets))
        for number, (text, fields) in enumerate(zip(texts, self.fields)):
            if len(text):
                yield number, bytes(text), fields

    @property
    def size(self) -> int:
        """The number of bytes."""
        return sum(offsets[-1] - offsets[0] for _, offsets in self.parts)


class RowFile:
    """A file of rows.

    Args:
        file: the file.
        text_key: the column of text.
        also: the names of other columns to read, if the file has them, None for all.
        select: returns which rows of a record batch are selected, or None if all are.

    Raises:
        FormatError: the file is damaged, or has no text column with that name.
    """

    kind = "parquet"  # for errors

    def __init__(
        self, file: InputFile, text_key: str, also: Collection[str] | None = (), select: Select | None = None
    ) -> None:
        if file.size is None:
            raise file_error(errno.ESPIPE, f"{file.location}: {self.kind} cannot be read from a stream: copy it first")
        file.check_now()
        self._input, self._path, self._key, self._also = file, file.location, text_key, also
        self._select = select
        self._names: list[str] = []  # of the columns to read, if there are more than the text
        self._place: tuple[str, ...] = (text_key,)  # the names that lead to the text, from the column's on
        self._types: dict[str, Any] = {}  # of the columns, by name

    @property
    def rows(self) -> int:
        """The number of rows."""
        raise NotImplementedError

    def _batches(self, start: int, end: int) -> Iterator[tuple[int, Any]]:
        """Yields record batches of the rows start .. end, with the numbers of their first rows. There may be more rows
        before them and after them, and more columns."""
        raise NotImplementedError

    def texts(self, start: int, end: int | None, notes: RecordNotes) -> Iterator[tuple[Texts, RecordNotes]]:
        """Yields the texts of some rows (all after the first, if `end` is None), in batches of about PIECE_BYTES, with
        notes on every batch. `notes` is for the first batch."""
        parts, fields, size, nulls, last = list[_Part](), list[dict[str, Any]](), 0, deque[int](), start
        rest = sys.maxsize if end is None else end
        for row, (data, offsets), more in self._rows(start, rest, nulls if notes.skips else None):
            at, rows = 0, len(offsets) - 1
            while (stop := bisect_left(offsets, offsets[at] + PIECE_BYTES - size, at + 1)) <= rows:
                texts = Texts([*parts, (data, offsets[at : stop + 1])], [*fields, *more[at:stop]])
                yield texts, self._noted(notes, row + stop, nulls)
                parts, fields, size, at, notes = [], [], 0, stop, RecordNotes(notes.path, row + stop, notes.skips)
            parts.append((data, offsets[at:]))
            fields += more[at:]
            size += offsets[rows] - offsets[at]
            last = row + rows
        if last > notes.start:
            yield Texts(parts, fields), self._noted(notes, last, nulls)
        self._input.check_now()

    def _noted(self, notes: RecordNotes, end: int, nulls: deque[int]) -> RecordNotes:
        """Notes the rows of a batch that ends at a row, and takes the null ones from `nulls`."""
        notes.end, notes.records = end, end - notes.start
        while nulls and nulls[0] < end:
            notes.bad_row(nulls.popleft(), f"the column {self._key!r} is null")
        return notes

    def _rows(
        self, start: int, end: int, nulls: deque[int] | None
    ) -> Iterator[tuple[int, _Part, list[dict[str, Any]]]]:
        """Yields the text of the rows start .. end in parts: the first row, the strings, and their fields. Rows that
        are null are empty texts, and their numbers are appended to `nulls`. If that is None, they are an error."""
        for row, batch in self._batches(start, end):
            first = max(start, row)
            some = batch.slice(first - row, max(0, end - first)) if first > row or row + len(batch) > end else batch
            if self._place[1:]:
                some = self._checked(some.append_column, self._key, self._texts_in(some))
            for at, each in self._decoded(some) if len(some) else ():
                column = each.column(each.schema.get_field_index(self._key))
                yield first + at, self._part(column, first + at, nulls), self._selected(each)

    def _texts_in(self, batch: Any) -> Any:
        """Returns the column of text of a batch as it was read. Where an object that has a text is null, so is the
        text."""
        column = batch.column(batch.schema.get_field_index(self._place[0]))
        for name in self._place[1:]:
            column = self._checked(column.flatten)[column.type.get_field_index(name)]
        return column

    def _decoded(self, batch: Any) -> Iterator[tuple[int, Any]]:
        """Yields a batch, or the parts of one whose texts are numbers in a dictionary, with their places. Decoded,
        a part has about PIECE_BYTES, however often the longest text is repeated."""
        from pyarrow import DictionaryArray

        place = batch.schema.get_field_index(self._key)
        column, name = batch.column(place), batch.schema.names[place]
        if not isinstance(column, DictionaryArray):
            yield 0, batch
            return
        _, ends = self._checked(part_of, column.dictionary)
        longest = int(numpy.diff(numpy.frombuffer(ends, "q")).max(initial=1))
        for at in range(0, len(batch), step := max(1, PIECE_BYTES // longest)):
            part = batch.slice(at, step)
            yield at, self._checked(part.set_column, place, name, self._checked(part.column(place).dictionary_decode))

    def _selected(self, batch: Any) -> list[dict[str, Any]]:
        """Like `_fields`, for the rows that are selected, and {} for others."""
        if self._select is None:
            return self._fields(batch)
        import pyarrow

        kept = self._select(batch)
        found = iter(self._fields(self._checked(batch.filter, pyarrow.array(kept))))
        return [next(found) if is_kept else {} for is_kept in kept]

    def _fields(self, batch: Any) -> list[dict[str, Any]]:
        """Returns the values of the other columns, row by row."""
        if not self._names:
            return []
        columns = []
        for name in self._names:
            column = batch.column(batch.schema.get_field_index(name))
            if name == self._key:
                values = [None] * len(batch)
            else:  # a time in nanoseconds, or a decimal number, has no type in Python or JSON
                spelled = str(column.type).startswith(("timestamp", "time", "date", "decimal"))
                try:
                    values = self._checked(column.cast, "string").to_pylist() if spelled else column.to_pylist()
                except FormatError:
                    raise
                except ValueError:  # such as a time in nanoseconds in a list
                    told = f"the column {name!r} holds {column.type}, which cannot be read: convert it, or leave it out"
                    raise FormatError(f"{self._path}: {told}") from None
            columns.append(values)
        return [dict(zip(self._names, values)) for values in zip(*columns)]

    def _part(self, column: Any, row: int, nulls: deque[int] | None) -> _Part:
        """Returns the strings of an Arrow array that begins at a row. `nulls` is as in `_rows`."""
        if column.null_count:
            is_null = column.is_null()
            if nulls is None:
                null = is_null.index(True).as_py()
                raise FormatError(f"{self._path}: row {row + null}: the column {self._key!r} is null")
            nulls += (row + number for number, null in enumerate(is_null.to_pylist()) if null)
        return self._checked(part_of, column)

    def _check_schema(self, schema: Any) -> None:
        """Raises FormatError unless an Arrow schema has one column of text with this key."""
        path, key, names = self._path, self._key, schema.names
        self._types = types = _types_in(schema)
        if (place := field_path(types, key)) is None:
            some = ", ".join(names)
            remedy = f"set {param('text_key')} to one of {some}" if can_pass("text_key") else f"its columns are {some}"
            raise FormatError(f"{path}: no column {key!r}: {remedy}")
        self._place, column = place, place[0]
        wanted = names if self._also is None else [name for name in names if name == column or name in self._also]
        if twice := next((name for name in (column, *wanted) if names.count(name) > 1), None):
            raise FormatError(f"{path}: {names.count(twice)} columns are named {twice!r}: rename all but one")
        self._names = list(wanted) if wanted != [column] or ((place[1:] or self._select) and self._also is None) else []
        found = reduce(lambda value, name: value[name], place, types)
        kind = "fields" if isinstance(found, dict) else str(found)
        if kind.startswith("dictionary<"):  # as of a categorical column
            kind = kind.removeprefix("dictionary<values=").partition(",")[0]
        if kind.removeprefix("large_").removesuffix("_view") not in ("string", "binary"):
            raise FormatError(f"{path}: the column {key!r} holds {kind}, expected string")

    def check_ids(self, key: str) -> None:
        """Raises FormatError unless there is a column with this key of ids."""
        if field_path(self._types, key) is None:
            some = ", ".join(self._types)
            raise FormatError(f"{self._path}: no column {key!r}: set {param('id_key')} to one of {some}")

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
    """Returns the strings of an Arrow array. A null is an empty string."""
    kind = str(column.type)
    if column.null_count or kind.endswith("_view"):
        import pyarrow

        # The bytes of a null may be anything. A cast imports a module that takes 0.1 s.
        column, kind = column.cast(pyarrow.large_binary()).fill_null(b""), "large_binary"
    _, offsets, data = column.buffers()
    dtype = numpy.dtype("q" if kind.startswith("large_") else "i")
    ends = numpy.frombuffer(offsets, dtype, len(column) + 1, column.offset * dtype.itemsize)
    return memoryview(data or b""), ends.astype("q", copy=False).data


def _types_in(fields: Iterable[Any]) -> dict[str, Any]:
    """Returns the types of columns by name, and instead of a struct the types of its fields."""
    return {
        field.name: _types_in(field.type) if str(field.type).startswith("struct<") else field.type for field in fields
    }


def _stored_before(fields: Iterable[Any], place: Sequence[str]) -> int:
    """Returns the number of columns that parquet stores before the one that names lead to."""
    count = 0
    for field in fields:
        if field.name == place[0]:
            return count + (_stored_before(field.type, place[1:]) if place[1:] else 0)
        count += _stored_columns(field.type)
    return count


def _stored_columns(kind: Any) -> int:
    """Returns how many columns parquet needs for a column of an Arrow type."""
    fields = [kind.field(place).type for place in range(getattr(kind, "num_fields", 0))]
    return sum(map(_stored_columns, fields)) if fields else 1


def import_pyarrow(path: str, kind: str) -> Any:
    """Returns pyarrow, or raises a MissingExtraError that says what to install."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError(f"{path}: {kind} files need a package: pip install 'pybpe[parquet]'") from None
    return pyarrow


# ----------------------------------------------------------------------------------------------------
# Parquet


_BUFFER_BYTES = 1 << 20  # of a column
_MOST_ROWS = 1 << 16  # of a batch. A batch has about PIECE_BYTES
_FEW = 256  # batches take less time than reading a dictionary
_MOST_BYTES = 32 * PIECE_BYTES  # of a batch whose text is stored once for many rows


def pyarrow_parquet(path: str) -> Any:
    """Returns pyarrow.parquet, or raises a MissingExtraError that says what to install."""
    import_pyarrow(path, "parquet")
    from pyarrow import parquet

    return parquet


def parquet_batches(path: str, rows: int = 1 << 16, columns: Sequence[str] | None = None) -> Iterator[Any]:
    """Yields the rows of a parquet file that pybpe wrote, in record batches. Raises FileError if it cannot be read, and
    FormatError if it is damaged."""
    parquet = pyarrow_parquet(path)
    import pyarrow

    try:
        yield from parquet.ParquetFile(path).iter_batches(rows, columns=columns)
    except (pyarrow.ArrowException, EOFError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise file_error(error.errno, f"{path}: cannot be read: {error.strerror}") from None
        raise FormatError(f"{path}: not parquet, or damaged: {' '.join(str(error).split())}") from None


class RowGroups(RowFile):
    """A parquet file, read by row groups."""

    kind = "a parquet file"

    def __init__(
        self, file: InputFile, text_key: str, also: Collection[str] | None = (), select: Select | None = None
    ) -> None:
        self._parquet = pyarrow_parquet(file.location)
        super().__init__(file, text_key, also, select)
        self._file = self._open()
        schema, metadata = self._file.schema_arrow, self._file.metadata
        self._check_schema(schema)
        # A column with fields is stored as one column per field. Its path may be spelled like the name of another one.
        self._column = _stored_before(schema, self._place)
        rows = (metadata.row_group(group).num_rows for group in range(metadata.num_row_groups))
        self._starts: list[int] = list(accumulate(rows, initial=0))

    @property
    def rows(self) -> int:
        return self._starts[-1]

    @property
    def text_bytes(self) -> int:
        """About the number of bytes of text."""
        return sum(map(self._bytes, range(len(self._starts) - 1)))

    def between(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yields (first row, end row, bytes) of every group, limited to rows start .. end."""
        for group, (first, last) in enumerate(pairwise(self._starts)):
            a, b = max(first, start), min(last, end)
            if a < b:
                yield a, b, self._bytes(group) * (b - a) // (last - first)

    def _bytes(self, group: int) -> int:
        return int(self._chunk(group).total_uncompressed_size)

    def _chunk(self, group: int) -> Any:
        """Returns the facts of the file about the text of a group."""
        return self._file.metadata.row_group(group).column(self._column)

    def _open(self, **options: Any) -> Any:
        file = self._input
        source: Any = file.location
        if file.remote is None:  # a group is not read as a whole: it may be large
            options = {"buffer_size": _BUFFER_BYTES, "pre_buffer": False} | options
        else:
            source = file.open_stored()
        return self._checked(partial(self._parquet.ParquetFile, source, **options))

    def _batches(self, start: int, end: int) -> Iterator[tuple[int, Any]]:
        for group, (row, last) in enumerate(pairwise(self._starts)):
            if last <= start or row >= end:
                continue
            batches = self._group(self._file, self._batch_rows(group), group, self._names)
            while (batch := self._checked(next, batches, None)) is not None:
                yield row, batch
                row += len(batch)

    def _group(self, file: Any, rows: int, group: int, names: Sequence[str] = ()) -> Any:
        return file.iter_batches(rows, row_groups=[group], columns=list(names) or [self._key], use_threads=False)

    def _batch_rows(self, group: int) -> int:
        """Returns the number of rows to read at once: about PIECE_BYTES as they are stored, and at most _MOST_BYTES if
        all of them are the longest text of the group's dictionary (a text in it may be stored once for many rows)."""
        rows, size = self._starts[group + 1] - self._starts[group], max(1, self._bytes(group))
        if self._names:  # other columns may be larger than the text
            size = max(size, self._file.metadata.row_group(group).total_byte_size)
        longest = size  # no text is longer than all
        if rows * longest > _FEW * _MOST_BYTES:
            longest = max(1, self._longest_in_dictionary(group))
        return int(max(1, min(_MOST_ROWS, rows * PIECE_BYTES // size, _MOST_BYTES // longest)))

    def _longest_in_dictionary(self, group: int) -> int:
        """Returns the number of bytes of the longest text in the dictionary of a group, or 0 if it has none. Reads only
        the beginning of the group."""
        if not any("DICTIONARY" in encoding for encoding in self._chunk(group).encodings):
            return 0
        from pyarrow import DictionaryArray

        file = self._open(metadata=self._file.metadata, read_dictionary=[self._key], buffer_size=1 << 16)
        first = self._checked(next, self._group(file, 1, group), None)
        column = None if first is None else self._texts_in(first)
        if not isinstance(column, DictionaryArray):
            return 0
        _, offsets = part_of(column.dictionary)
        return int(numpy.diff(numpy.frombuffer(offsets, "q")).max(initial=0))


# ----------------------------------------------------------------------------------------------------
# Arrow


_FILE_MARK = b"ARROW1\0\0"  # before the stream of messages in a file
_CONTINUES = b"\xff\xff\xff\xff"  # begins every message
_END = _CONTINUES + bytes(4)  # of a stream


class ArrowStream(RowFile):
    """An Arrow file, read by record batches."""

    kind = "an Arrow file"

    def __init__(
        self, file: InputFile, text_key: str, also: Collection[str] | None = (), select: Select | None = None
    ) -> None:
        import_pyarrow(file.location, "Arrow")
        super().__init__(file, text_key, also, select)
        with self._open() as reader:
            self._check_schema(reader.schema)
            self._fields_read = list(map(reader.schema.get_field_index, self._names or [self._place[0]]))
        self._check_end()

    def _check_end(self) -> None:
        """Raises FormatError if the file was cut: pyarrow reads what is there, as a stream may end anywhere."""
        size = self._input.size or 0
        with self._input.open_stored(0, size) as stream:
            is_file = stream.read(len(_FILE_MARK)) == _FILE_MARK
        end = _FILE_MARK.rstrip(b"\0") if is_file else _END
        with self._input.open_stored(max(0, size - len(end)), size) as stream:
            if stream.read(len(end)) != end:
                told = "its end is missing: it was cut, or its writer was not closed"
                raise FormatError(f"{self._path}: damaged: {told}", size)

    @contextmanager
    def _open(self, **options: Any) -> Iterator[Any]:
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
        return sum(len(batch) for _, batch in self._batches(0, sys.maxsize))

    def _batches(self, start: int, end: int) -> Iterator[tuple[int, Any]]:
        row = 0
        with self._open(included_fields=self._fields_read) as reader:
            while row < end and (batch := self._checked(next, reader, None)) is not None:
                self._checked(partial(batch.validate, full=True))  # wrong offsets would read memory outside it
                yield row, batch
                row += len(batch)


def open_rows(
    file: InputFile, text_key: str, also: Collection[str] | None = (), select: Select | None = None
) -> RowFile:
    """Opens a file of rows: see RowFile. Raises MissingExtraError if pyarrow is not installed."""
    return (RowGroups if file.form == "parquet" else ArrowStream)(file, text_key, also, select)
