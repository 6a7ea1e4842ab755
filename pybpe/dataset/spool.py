"""The tokens of a shard that is not finished, on disk, so that a run that dies loses little.

Two files that only grow, and are cut back to a known length when a run goes on:

    NAME.tokens    room for a header, then the ids
    NAME.starts    (token, source) as two uint64 for each document that begins in the shard

Formats whose body is the ids alone (formats.py) make the finished file of the first by filling in the header.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import FormatError, file_errors
from ..pretokenize import open_input, read_items

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_START_BYTES = 16


class Spool:
    """One open shard.

    Args:
        base: path without ending.
        header_bytes: room for a header.
        dtype: "uint16" or "uint32".
        tokens, documents: how much of the files counts, if they are there; what is behind is dropped.
    """

    def __init__(self, base: str, header_bytes: int, dtype: str, tokens: int = 0, documents: int = 0) -> None:
        import numpy

        self.base = base
        self.dtype = numpy.dtype(dtype).newbyteorder("<")
        self.header_bytes = header_bytes
        self.tokens, self.documents = tokens, documents
        self._tokens_file = _open(self.tokens_path, header_bytes + tokens * self.dtype.itemsize)
        self._starts_file = _open(self.starts_path, documents * _START_BYTES)

    @property
    def tokens_path(self) -> str:
        return self.base + ".tokens"

    @property
    def starts_path(self) -> str:
        return self.base + ".starts"

    def append(self, ids: Array, starts: Array, source: int) -> None:
        """Adds ids, and where in them documents begin, all from one source."""
        import numpy

        pairs = numpy.full((len(starts), 2), source, dtype="<u8")
        pairs[:, 0] = starts
        self.append_pairs(ids, pairs)

    def append_pairs(self, ids: Array, starts: Array) -> None:
        """The same with (token, source) for each document, shape (documents, 2), uint64."""
        import numpy

        _write(self._tokens_file, numpy.ascontiguousarray(ids, dtype=self.dtype))
        if len(starts):
            _write(self._starts_file, starts + numpy.array([self.tokens, 0], dtype="<u8"))
        self.tokens += len(ids)
        self.documents += len(starts)

    def tail(self, tokens: int, documents: int) -> tuple[Array, Array]:
        """What lies behind the first `tokens` and `documents`: the ids, and (token, source) of documents, with
        tokens counted from there."""
        import numpy

        offset = self.header_bytes + tokens * self.dtype.itemsize
        ids = _read(self.tokens_path, self.dtype, offset, self.tokens - tokens)
        starts = read_starts(self.starts_path, documents, self.documents)
        return ids, starts - numpy.array([tokens, 0], dtype="<u8")

    def sync(self) -> None:
        """Both files are on disk."""
        for stream in (self._tokens_file, self._starts_file):
            with file_errors(stream.name, "cannot be written"):
                os.fsync(stream.fileno())

    @property
    def is_closed(self) -> bool:
        return self._tokens_file.closed

    def close(self) -> None:
        """Leaves the files."""
        for stream in (self._tokens_file, self._starts_file):
            with file_errors(stream.name, "cannot be written"):
                stream.close()


def read_starts(path: str, first: int, last: int) -> Array:
    """(token, source) of documents first .. last of a .starts file, shape (last - first, 2)."""
    import numpy

    return _read(path, numpy.dtype("<u8"), first * _START_BYTES, 2 * (last - first)).reshape(-1, 2)


def _read(path: str, dtype: numpy.dtype[Any], offset: int, count: int) -> Array:
    with open_input(path) as stream:
        stream.seek(offset)
        items = read_items(stream, dtype, count)
    if len(items) < count:
        raise FormatError(f"{path}: is shorter than this run made it: something else has changed it")
    return items


def _open(path: str, size: int) -> BinaryIO:
    with file_errors(path, "cannot be written"):
        stream = open(path, "ab", buffering=0)
        try:
            os.ftruncate(stream.fileno(), size)
        except OSError:
            stream.close()
            raise
    return stream


def _write(stream: BinaryIO, data: Array) -> None:
    view = memoryview(data).cast("B")  # type: ignore[arg-type,unused-ignore]
    with file_errors(stream.name, "cannot be written"):
        while len(view):
            view = view[stream.write(view) :]
