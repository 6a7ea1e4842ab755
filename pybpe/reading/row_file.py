"""What the files whose documents are rows have in common. Each has a column of texts, and is read in groups of rows."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from ..errors import Error, FormatError, MissingExtraError, file_error
from .input_file import InputFile
from .pieces import PIECE_BYTES

Result = TypeVar("Result")


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
        self._input.check_now()

    def _rows(self, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """Yields the texts of the rows start .. end, each with its row."""
        for group, (first, last) in enumerate(zip(self._starts, self._starts[1:])):
            if last <= start or first >= end:
                continue
            row = first
            for column in self._columns(group):
                for number, text in enumerate(self._checked(texts_of, column), row):
                    if start <= number < end:
                        if text is None:
                            raise FormatError(f"{self._path}: row {number}: the column {self._key!r} is null")
                        yield number, text
                row += len(column)

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
        except (pyarrow.ArrowException, EOFError) as error:
            raise FormatError(f"{path}: not {self.kind}, or damaged: {' '.join(str(error).split())}") from None
        except OSError as error:
            if error.errno is None:  # Arrow found an error in the content
                raise FormatError(f"{path}: damaged: {' '.join(str(error).split())}") from None
            raise file_error(error.errno, f"{path}: {error.strerror}") from None


def texts_of(column: Any) -> list[bytes | None]:
    """Returns the values of an Arrow array of strings."""
    import pyarrow

    texts: list[bytes | None] = column.cast(pyarrow.large_binary()).to_pylist()
    return texts


def import_pyarrow(path: str, kind: str) -> Any:
    """Returns pyarrow, or raises a MissingExtraError that says what to install."""
    try:
        import pyarrow
    except ImportError:
        raise MissingExtraError(f"{path}: {kind} files need a package: pip install 'pybpe[parquet]'") from None
    return pyarrow
