"""The tokens of a shard that is not finished, on disk, so that a run that dies loses little.

Two files that only grow, and are cut back to a known length when a run goes on:

    NAME.tokens    room for a header, then the ids
    NAME.starts    (token, source) as two uint64 for each document that begins in the shard

Formats whose body is the ids alone (formats.py) make the finished file of the first by filling in the header.
"""

from __future__ import annotations

import os
import sys
from array import array
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import FormatError, file_errors
from ..pretokenize import open_input

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_START_BYTES = 16
_TYPECODES = {"uint16": "H", "uint32": "I"}


class Spool:
    """One open shard.

    Args:
        base: path without ending.
        header_bytes: room for a header.
        dtype: "uint16" or "uint32".
        tokens, documents: how much of the files counts, if they are there; what is behind is dropped.
    """

    def __init__(self, base: str, header_bytes: int, dtype: str, tokens: int = 0, documents: int = 0) -> None:
        self.base = base
        self.typecode = _TYPECODES[dtype]
        self.header_bytes = header_bytes
        self.tokens, self.documents = tokens, documents
        self._id_bytes = array(self.typecode).itemsize
        self._tokens_file = _open(self.tokens_path, header_bytes + tokens * self._id_bytes)
        self._starts_file = _open(self.starts_path, documents * _START_BYTES)

    @property
    def tokens_path(self) -> str:
        return self.base + ".tokens"

    @property
    def starts_path(self) -> str:
        return self.base + ".starts"

    def append(self, ids: array[int] | memoryview, starts: array[int], source: int) -> None:
        """Adds ids, and where in them documents begin, all from one source."""
        self.append_documents(ids, starts, array("Q", [source]) * len(starts))

    def append_documents(self, ids: array[int] | memoryview, starts: array[int], sources: array[int]) -> None:
        """The same with a source for each document."""
        _write(self._tokens_file, ids)
        if starts:
            pairs = array("Q", [0]) * (2 * len(starts))
            pairs[0::2] = array("Q", [self.tokens + start for start in starts])
            pairs[1::2] = sources
            _write(self._starts_file, pairs)
        self.tokens += len(ids)
        self.documents += len(starts)

    def tail(self, tokens: int, documents: int) -> tuple[array[int], array[int], array[int]]:
        """What lies behind the first `tokens` and `documents`: the ids; of the documents the tokens, counted from
        there, and the sources."""
        offset = self.header_bytes + tokens * self._id_bytes
        ids = _read(self.tokens_path, self.typecode, offset, self.tokens - tokens)
        pairs = _read(self.starts_path, "Q", documents * _START_BYTES, 2 * (self.documents - documents))
        return ids, array("Q", [start - tokens for start in pairs[0::2]]), pairs[1::2]

    def fill_header(self, header: bytes) -> None:
        """Writes the header, before the shard is synced for the last time. Whoever goes on with the spool fills it
        in again."""
        with file_errors(self.tokens_path, "cannot be written"), open(self.tokens_path, "r+b") as stream:
            stream.write(header)

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

    return numpy.array(_read(path, "Q", first * _START_BYTES, 2 * (last - first))).reshape(-1, 2)


def _read(path: str, typecode: str, offset: int, count: int) -> array[int]:
    items = array(typecode)
    with open_input(path) as stream:
        stream.seek(offset)
        data = stream.read(count * items.itemsize)
    if len(data) < count * items.itemsize:
        raise FormatError(f"{path}: is shorter than this run made it: something else has changed it")
    items.frombytes(data)
    if sys.byteorder == "big":
        items.byteswap()
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


def _write(stream: BinaryIO, items: array[int] | memoryview) -> None:
    if sys.byteorder == "big":
        items = array(memoryview(items).format, items)
        items.byteswap()
    view = memoryview(items).cast("B")
    with file_errors(stream.name, "cannot be written"):
        while len(view):
            view = view[stream.write(view) :]
