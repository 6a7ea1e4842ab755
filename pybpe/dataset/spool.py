"""Stores the tokens of an unfinished shard on disk, so that a killed run loses little.

Two files only grow, and are truncated to a known length when a run resumes:

    NAME.tokens    room for a header, then the ids
    NAME.starts    (token, source) as two uint64 for each document that begins in the shard

Formats whose body is only the ids (writers/) turn the first into the finished file by filling in the header. A split
whose shards are cut at its end (equal_shards.py) has a third file:

    NAME.segments  five uint64 for each segment: see SegmentLog
"""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from .. import _binding
from ..errors import FormatError, file_errors
from ..reading.streams import open_input

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_START_BYTES = 16
_SEGMENT_FIELDS = 5
_SEGMENT_BYTES = 8 * _SEGMENT_FIELDS
_BUFFER = 1 << 16  # bytes; segments of small files are shorter
_SEGMENTS = 4096  # read at once
_TYPECODES = {"uint16": "H", "uint32": "I"}


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
    def segments_path(self) -> str:
        return self.base + ".segments"

    @property
    def typecode(self) -> str:
        """The type of ids in an array."""
        return _TYPECODES[self.dtype]

    @property
    def id_bytes(self) -> int:
        return 2 if self.dtype == "uint16" else 4

    @property
    def paths(self) -> tuple[str, str, str]:
        """All files."""
        return self.tokens_path, self.starts_path, self.segments_path

    def hold(self, tokens: int, documents: int) -> bool:
        """Returns whether the files on disk have at least so many tokens and documents."""
        return (not tokens or has_bytes(self.tokens_path, self.header_bytes + tokens * self.id_bytes)) and (
            not documents or has_bytes(self.starts_path, documents * _START_BYTES)
        )

    def hold_segments(self, segments: int) -> bool:
        """Returns whether the file on disk has at least so many segments."""
        return not segments or has_bytes(self.segments_path, segments * _SEGMENT_BYTES)

    def read_starts(self, first: int, last: int) -> Array:
        """Returns (token, source) of documents first .. last, shape (last - first, 2)."""
        import numpy

        pairs = read_items(self.starts_path, "Q", first * _START_BYTES, 2 * (last - first))
        return numpy.array(pairs).reshape(-1, 2)


class Spool:
    """One open shard.

    Args:
        files: its files.
        tokens, documents: how much of existing files counts; anything after that is dropped.
    """

    def __init__(self, files: SpoolFiles, tokens: int = 0, documents: int = 0) -> None:
        self.files = files
        self.tokens, self.documents = tokens, documents
        self._tokens_file = _open(files.tokens_path, files.header_bytes + tokens * files.id_bytes)
        self._starts_file = _open(files.starts_path, documents * _START_BYTES)

    def append(self, ids: array[int] | memoryview, starts: array[int] | memoryview, source: int) -> None:
        """Adds ids from one source, and where documents begin in them."""
        self.append_documents(ids, starts, array("Q", [source]) * len(starts))

    def append_documents(
        self, ids: array[int] | memoryview, starts: array[int] | memoryview, sources: array[int]
    ) -> None:
        """Adds ids, and where documents begin in them, with a source per document."""
        _write(self._tokens_file, ids)
        if len(starts):
            _write(self._starts_file, _pairs(self.tokens, starts, sources))
        self.tokens += len(ids)
        self.documents += len(starts)

    def read(self, first: int, count: int) -> array[int]:
        """Returns the ids from number `first`."""
        self.flush()
        files = self.files
        return read_items(files.tokens_path, files.typecode, files.header_bytes + first * files.id_bytes, count)

    def documents_before(self, token: int) -> int:
        """Returns how many documents begin before a token."""
        self.flush()

        def start(document: int) -> int:
            return read_items(self.files.starts_path, "Q", document * _START_BYTES, 1)[0]

        return bisect_left(range(self.documents), token, key=start)

    def tail(self, tokens: int, documents: int) -> tuple[array[int], array[int], array[int]]:
        """Returns everything after the first `tokens` and `documents`: the ids, and the documents' tokens (counted from
        there) and sources."""
        ids = self.read(tokens, self.tokens - tokens)
        pairs = read_items(self.files.starts_path, "Q", documents * _START_BYTES, 2 * (self.documents - documents))
        return ids, array("Q", [start - tokens for start in pairs[0::2]]), pairs[1::2]

    def fill_header(self, header: bytes) -> None:
        """Writes the header, before the shard's last sync. A run that resumes the spool writes it again."""
        with file_errors(self.files.tokens_path, "cannot be written"), open(self.files.tokens_path, "r+b") as stream:
            stream.write(header)

    def flush(self) -> None:
        """Gives the system everything that was added, so that other streams can read it."""
        for stream in (self._tokens_file, self._starts_file):
            with file_errors(stream.name, "cannot be written"):
                stream.flush()

    def sync(self) -> None:
        """Syncs both files to disk."""
        self.flush()
        for stream in (self._tokens_file, self._starts_file):
            with file_errors(stream.name, "cannot be written"):
                os.fsync(stream.fileno())

    @property
    def is_closed(self) -> bool:
        return self._tokens_file.closed

    def close(self) -> None:
        """Closes the files."""
        for stream in (self._tokens_file, self._starts_file):
            with file_errors(stream.name, "cannot be written"):
                stream.close()


class LoggedSegment(NamedTuple):
    """Some tokens of a split that come from one source.

    Attributes:
        tokens_end: tokens of the split up to the end of this segment.
        text_end: bytes of the text that those tokens represent.
        source: its index in the split's sources.
        start, end: the range of the source.
    """

    tokens_end: int
    text_end: int
    source: int
    start: int
    end: int


class SegmentLog:
    """The segments of a split, on disk.

    Args:
        files: the files of the spool.
        segments: how many segments of an existing file count; anything after them is dropped.
    """

    def __init__(self, files: SpoolFiles, segments: int = 0) -> None:
        self.segments = segments
        self._path = files.segments_path
        self._file = _open(self._path, segments * _SEGMENT_BYTES)

    def add(self, segment: LoggedSegment) -> None:
        """Appends one."""
        _write(self._file, array("Q", segment))
        self.segments += 1

    def read(self) -> Iterator[LoggedSegment]:
        """Yields all segments, in order."""
        with file_errors(self._path, "cannot be written"):
            self._file.flush()
        for first in range(0, self.segments, _SEGMENTS):
            count = min(_SEGMENTS, self.segments - first)
            fields = read_items(self._path, "Q", first * _SEGMENT_BYTES, count * _SEGMENT_FIELDS)
            for at in range(0, len(fields), _SEGMENT_FIELDS):
                yield LoggedSegment(*fields[at : at + _SEGMENT_FIELDS])

    def sync(self) -> None:
        """Syncs the file to disk."""
        with file_errors(self._path, "cannot be written"):
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Closes the file."""
        self._file.close()


def _pairs(first: int, starts: array[int] | memoryview, sources: array[int]) -> array[int] | memoryview:
    """Returns first + start and the source of each document, one after the other."""
    if len(starts) == 1:  # as of each small file: a call to C would take longer
        return array("Q", (first + starts[0], sources[0]))
    return _binding.pair_starts(starts, sources, first)


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
