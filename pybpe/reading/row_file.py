"""What the files whose documents are rows have in common. Each has a column of texts, and is read in groups of rows."""

from __future__ import annotations

import errno
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from .._numpy import numpy
from ..errors import Error, FormatError, MissingExtraError, OutOfMemoryError, file_error
from .bad_records import Seen
from .input_file import InputFile
from .pieces import PIECE_BYTES

Result = TypeVar("Result")


_Part = tuple[memoryview, memoryview]  # bytes, and 64-bit numbers: text i is data[offsets[i] : offsets[i + 1]]


@dataclass(frozen=True)
class Texts:
    """The texts of some rows, in the memory of Arrow: `parts` in order, each with at least one text."""

    parts: Sequence[_Part]

    def __iter__(self) -> Iterator[bytes]:
        """Yields the texts that are not empty."""
        for data, offsets in self.parts:
            yield from (bytes(data[start:end]) for start, end in pairwise(offsets) if end > start)

    def __len__(self) -> int:
        """Returns the number of texts that are not empty."""
        return int(sum(numpy.count_nonzero(numpy.diff(numpy.frombuffer(ends, "q"))) for _, ends in self.parts))

    @property
    def size(self) -> int:
        """The number of bytes."""
        return sum(offsets[-1] - offsets[0] for _, offsets in self.parts)


class RowFile:
    """A file of rows. `groups` has the number of rows and bytes of each group.

    Raises:
        FormatError: the file is damaged, or has no text column with that name.
    """

    kind = "parquet"  # for errors

    def __init__(self, file: InputFile, text_key: str) -> None:
        if file.size is None:
            raise file_error(errno.ESPIPE, f"{file.location}: {self.kind} cannot be read from a stream: copy it first")
        file.check_now()
        self._input, self._path, self._key = file, file.location, text_key
        self._starts, self._sizes = [0], list[int]()

    def _set_groups(self, groups: Sequence[tuple[int, int]]) -> None:
        """Sets the groups: (number of rows, bytes) of each."""
        for rows, size in groups:
            self._starts.append(self._starts[-1] + rows)
            self._sizes.append(size)

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self._starts[-1]

    def between(self, start: int, end: int) -> Iterator[tuple[int, int, int]]:
        """Yields (first row, end row, bytes) of each group, limited to rows start .. end."""
        for first, last, size in zip(self._starts, self._starts[1:], self._sizes):
            a, b = max(first, start), min(last, end)
            if a < b:
                yield a, b, size * (b - a) // (last - first)

    def texts(self, start: int, end: int, seen: Seen) -> Iterator[tuple[Texts, Seen]]:
        """Yields the texts of some rows, in batches of about PIECE_BYTES, each with what was seen. `seen` is for the
        first batch."""
        parts, size, nulls, last = list[_Part](), 0, deque[int](), start
        for row, data, offsets in self._rows(start, end, nulls if seen.skips else None):
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
        """Notes the rows of a batch that ends at a row, and takes those that are null from `nulls`."""
        seen.end, seen.records = end, end - seen.start
        while nulls and nulls[0] < end:
            seen.bad_row(nulls.popleft(), f"the column {self._key!r} is null")
        return seen

    def _rows(self, start: int, end: int, nulls: deque[int] | None) -> Iterator[tuple[int, memoryview, memoryview]]:
        """Yields the texts of the rows start .. end in parts: the first row, and the data and offsets of a _Part. Rows
        that are null are empty texts, and their numbers are appended to `nulls`; if that is None, they are an error."""
        for group, (first, last) in enumerate(zip(self._starts, self._starts[1:])):
            if last <= start or first >= end:
                continue
            row = first
            for column in self._columns(group):
                some = column.slice(max(0, start - row), max(0, end - max(row, start)))
                if len(some):
                    first_row = row + max(0, start - row)
                    yield first_row, *self._part(some, first_row, nulls)
                row += len(column)

    def _part(self, column: Any, row: int, nulls: deque[int] | None) -> _Part:
        """Returns the texts of an Arrow array that begins at a row. `nulls` is as in `_rows`."""
        if column.null_count:
            is_null = column.is_null()
            if nulls is None:
                null = is_null.index(True).as_py()
                raise FormatError(f"{self._path}: row {row + null}: the column {self._key!r} is null")
            nulls += (row + number for number, null in enumerate(is_null.to_pylist()) if null)
        return self._checked(part_of, column)

    def _columns(self, group: int) -> Iterator[Any]:
        """Yields the text column of a group, in parts."""
        raise NotImplementedError

    def _check_schema(self, schema: Any) -> None:
        """Raises FormatError unless an Arrow schema has one column of texts with this key."""
        path, key, names = self._path, self._key, schema.names
        if key not in names:
            raise FormatError(f"{path}: no column {key!r}; set text_key to one of {', '.join(names)}")
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
    import pyarrow

    array = column.cast(pyarrow.large_binary())
    if array.null_count:
        array = array.fill_null(b"")  # otherwise the bytes of a null may be anything
    _, offsets, data = array.buffers()
    first, rows = array.offset, len(array)
    return memoryview(data or b""), memoryview(offsets).cast("b").cast("q")[first : first + rows + 1]


def import_pyarrow(path: str, kind: str) -> Any:
    """Returns pyarrow, or raises a MissingExtraError that says what to install."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError(f"{path}: {kind} files need a package: pip install 'pybpe[parquet]'") from None
    return pyarrow
