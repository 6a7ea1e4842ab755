"""The tokens of a shard that is not finished, on disk, so that a run that dies loses little.

Two files that only grow, and are cut back to a known length when a run goes on:

    NAME.tokens    room for a header, then the ids
    NAME.starts    (token, source) as two uint64 for each document that begins in the shard

Formats whose body is the ids alone (formats.py) make the finished file of the first by filling in the header.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import file_error

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_START_BYTES = 16


class DiskFullError(OSError):
    """A write that the disk had no room for; its caller knows how much is missing."""


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
        ids = numpy.fromfile(self.tokens_path, self.dtype, offset=offset)
        starts = read_starts(self.starts_path, documents, self.documents)
        return ids, starts - numpy.array([tokens, 0], dtype="<u8")

    def sync(self) -> None:
        """Both files are on disk."""
        for stream in (self._tokens_file, self._starts_file):
            os.fsync(stream.fileno())

    @property
    def is_closed(self) -> bool:
        return self._tokens_file.closed

    def close(self) -> None:
        """Leaves the files."""
        self._tokens_file.close()
        self._starts_file.close()


def read_starts(path: str, first: int, last: int) -> Array:
    """(token, source) of documents first .. last of a .starts file, shape (last - first, 2)."""
    import numpy

    flat = numpy.fromfile(path, "<u8", count=2 * (last - first), offset=first * _START_BYTES)
    return flat.reshape(-1, 2)


def _open(path: str, size: int) -> BinaryIO:
    try:
        stream = open(path, "ab", buffering=0)
        os.ftruncate(stream.fileno(), size)
    except OSError as error:
        raise file_error(error.errno or 0, f"{path}: cannot be written: {error.strerror}") from None
    return stream


def _write(stream: BinaryIO, data: Array) -> None:
    view = memoryview(data).cast("B")  # type: ignore[arg-type,unused-ignore]
    while len(view):
        try:
            view = view[stream.write(view) :]
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DiskFullError(error.errno, error.strerror, stream.name) from None
            raise file_error(error.errno or 0, f"{stream.name}: cannot be written: {error.strerror}") from None
