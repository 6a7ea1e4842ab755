"""Stores the tokens of a split on disk until the split is complete, so that a killed run loses little.

Two files only grow, and are truncated to a known length when a run resumes:

    SPLIT.tokens    room for a header, then the ids
    SPLIT.starts    a uint64 for each document: its first token

At the end, the first one is cut into shards (assembly.py).
"""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_left
from dataclasses import dataclass
from typing import BinaryIO

from .. import _binding
from ..errors import FormatError, file_errors
from ..reading.streams import open_input

START_BYTES = 8
_BUFFER = 1 << 16  # bytes; segments of small files are shorter
TYPECODES = {"uint16": "H", "uint32": "I"}  # of the array module, by dtype


def id_bytes(dtype: str) -> int:
    """Returns the bytes per id: 2 or 4."""
    return 2 if dtype == "uint16" else 4


@dataclass(frozen=True)
class SpoolFiles:
    """The files of a spool.

    Attributes:
        base: path without ending.
        header_bytes: room for a header.
        dtype: "uint16" or "uint32".
    """

    base: str
    header_bytes: int
    dtype: str

    @property
    def tokens_path(self) -> str:
        return self.base + ".tokens"

    @property
    def starts_path(self) -> str:
        return self.base + ".starts"

    @property
    def typecode(self) -> str:
        """The type of ids in an array."""
        return TYPECODES[self.dtype]

    @property
    def id_bytes(self) -> int:
        return id_bytes(self.dtype)

    def hold(self, tokens: int, documents: int) -> bool:
        """Returns whether the files on disk have at least so many tokens and documents."""
        return (not tokens or has_bytes(self.tokens_path, self.header_bytes + tokens * self.id_bytes)) and (
            not documents or has_bytes(self.starts_path, documents * START_BYTES)
        )

    def read(self, first: int, count: int) -> array[int]:
        """Returns the ids from number `first`."""
        return read_items(self.tokens_path, self.typecode, self.header_bytes + first * self.id_bytes, count)

    def read_starts(self, first: int, last: int) -> array[int]:
        """Returns the first token of each of the documents first .. last."""
        return read_items(self.starts_path, "Q", first * START_BYTES, last - first)

    def documents_before(self, token: int, documents: int) -> int:
        """Returns how many of the first `documents` documents begin before a token."""
        return bisect_left(range(documents), token, key=lambda number: self.read_starts(number, number + 1)[0])


class Spool:
    """The open files of a split.

    Args:
        files: its files.
        tokens, documents: how much of existing files counts; anything after that is dropped.
    """

    def __init__(self, files: SpoolFiles, tokens: int = 0, documents: int = 0) -> None:
        self.files = files
        self.tokens, self.documents = tokens, documents
        self._tokens_file = _open(files.tokens_path, files.header_bytes + tokens * files.id_bytes)
        self._starts_file = _open(files.starts_path, documents * START_BYTES)

    def append(self, ids: array[int] | memoryview, starts: array[int] | memoryview) -> None:
        """Adds ids, and where documents begin in them."""
        _write(self._tokens_file, ids)
        if len(starts):
            _write(self._starts_file, _shifted(starts, self.tokens))
        self.tokens += len(ids)
        self.documents += len(starts)

    def sync(self) -> None:
        """Syncs both files to disk."""
        for stream in (self._tokens_file, self._starts_file):
            with file_errors(stream.name, "cannot be written"):
                stream.flush()
                os.fsync(stream.fileno())

    def close(self) -> None:
        """Closes the files."""
        for stream in (self._tokens_file, self._starts_file):
            with file_errors(stream.name, "cannot be written"):
                stream.close()


def _shifted(starts: array[int] | memoryview, first: int) -> array[int] | memoryview:
    """Returns first + start for each document."""
    if len(starts) == 1:  # as of each small file: a call to C would take longer
        return array("Q", (first + starts[0],))
    return _binding.shift_starts(starts, first)


def read_items(path: str, typecode: str, offset: int, count: int) -> array[int]:
    """Returns integers that are stored in a file, little-endian, from a byte offset on.

    Raises:
        FormatError: the file is too short.
    """
    items = array(typecode)
    with open_input(path) as stream:
        stream.seek(offset)
        data = stream.read(count * items.itemsize)
    if len(data) < count * items.itemsize:
        raise FormatError(f"{path}: shorter than this run made it: another program has changed it")
    items.frombytes(data)
    if sys.byteorder == "big":  # pragma: no cover (other machines)
        items.byteswap()
    return items


def has_bytes(path: str, size: int) -> bool:
    """Returns whether a file has as many bytes as a saved state counts. Another program may have removed some."""
    try:
        return os.path.getsize(path) >= size
    except OSError:
        return False


def _open(path: str, size: int) -> BinaryIO:
    with file_errors(path, "cannot be written"):
        stream = open(path, "ab", buffering=_BUFFER)
        try:
            os.ftruncate(stream.fileno(), size)
        except OSError:
            stream.close()
            raise
    return stream


def stored_bytes(items: array[int] | memoryview) -> memoryview:
    """Returns integers as `read_items` reads them."""
    if sys.byteorder == "big":  # pragma: no cover (other machines)
        items = array(memoryview(items).format, items)
        items.byteswap()
    return memoryview(items).cast("B")


def _write(stream: BinaryIO, items: array[int] | memoryview) -> None:
    with file_errors(stream.name, "cannot be written"):
        stream.write(stored_bytes(items))  # a buffered stream writes everything
