"""Reads zip archives: each file in one is a file of the corpus, as if the archive were a folder.

Python's zipfile reads the list of the files, once. Each file is then read without it, where the list says that it is:

    local header    30 bytes, with the sizes of the two fields after it
    name, extra
    content         stored, or compressed with deflate; the list has its size and its CRC-32
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from typing import BinaryIO, NamedTuple

from ..errors import Error, FormatError
from .corpus_folder import Found, corpus_of, places_of
from .streams import ZIP_MARKS, DerivedStream

_HEADER_BYTES, _END_BYTES = 30, 22
_MANY = 0xFFFF  # stands for larger numbers
_BLOCK = 1 << 17
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ERRORS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, LookupError, ValueError, OSError, RuntimeError)


class Archived(NamedTuple):
    """Where an archive has a file."""

    offset: int  # of its local header
    packed: int  # bytes of its content as it is stored
    size: int  # and of the content itself
    method: int  # how it is compressed
    crc: int


def files_of_archive(name: str, stream: BinaryIO) -> tuple[Found, dict[str, Archived]]:
    """Returns what `corpus_of` does for the files of an archive, whose paths begin with its name; and where they are.

    Raises:
        FormatError: the archive is damaged, or has a file that cannot be read.
    """
    try:
        with zipfile.ZipFile(stream) as archive:
            infos = archive.infolist()
            if _count(stream) not in (len(infos), _MANY):
                raise ValueError("the number of files in its list is not the number that it states")
            for info in infos:
                if info.flag_bits & 1:
                    raise FormatError(
                        f"{name}/{info.filename}: encrypted: only an archive without a password can be read"
                    )
                if info.compress_type not in _METHODS:
                    told = f"compressed with method {info.compress_type} of zip, not with deflate"
                    raise FormatError(f"{name}/{info.filename}: {told}: unpack the archive, and pass the folder")
                archive.open(info).close()  # compares its name with the one in its header
            listed = {info.filename: info for info in infos if not info.is_dir()}
            names = sorted(path for path in listed if "__MACOSX" not in path.split("/"))
            found = corpus_of(places_of(name, names, lambda path: archive.read(path[len(name) + 1 :])))
    except Error:
        raise
    except _ERRORS as error:
        problem = " ".join(str(error).split())
        raise FormatError(f"{name}: not a valid zip archive, or damaged: {problem:.100}") from None
    places = dict[str, Archived]()
    for path in found.kept:
        info = listed[path[len(name) + 1 :]]
        places[path] = Archived(info.header_offset, info.compress_size, info.file_size, info.compress_type, info.CRC)
    return found, places


def _count(stream: BinaryIO) -> int:
    """Returns the number of files that the end of an archive states."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _END_BYTES - _MANY))  # a comment may follow
    end = stream.read(_END_BYTES + _MANY)
    at = end.rfind(ZIP_MARKS[1])
    return int.from_bytes(end[at + 10 : at + 12], "little")


class ArchivedFile(DerivedStream):
    """The content of a file in an archive.

    Args:
        name: what errors call it.
        source: the archive.
        place: where it is.
    """

    def __init__(self, name: str, source: BinaryIO, place: Archived) -> None:
        self._place = place
        super().__init__(name, source)

    def _begin(self) -> None:
        super()._begin()
        place = self._place
        self._source.seek(max(0, place.offset))
        header = self._source.read(_HEADER_BYTES)
        fields = sum(int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
        if place.offset < 0 or not header.startswith(ZIP_MARKS[0]) or len(self._source.read(fields)) < fields:
            raise self._damaged("its header is not where the archive says")
        self._left, self._crc = place.packed, 0
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS) if place.method == zipfile.ZIP_DEFLATED else None
        self._waiting = b""

    def _next(self, size: int) -> bytes:
        data = self._stored(size) if self._inflater is None else self._inflated(size)
        self._crc = zlib.crc32(data, self._crc)
        at_end = self._given + len(data)
        if at_end > self._place.size or (not data and (at_end, self._crc) != (self._place.size, self._place.crc)):
            raise self._damaged("its content is not what the archive says")
        return data

    def _stored(self, size: int) -> bytes:
        data = self._source.read(min(size, self._left))
        self._left -= len(data)
        return data

    def _inflated(self, size: int) -> bytes:
        assert self._inflater is not None
        while not self._inflater.eof:
            block = self._waiting or self._stored(_BLOCK)
            try:
                data = self._inflater.decompress(block, size)
            except zlib.error as error:
                raise self._damaged(str(error)) from None
            self._waiting = self._inflater.unconsumed_tail
            if data or not block:
                return data
        return b""

    def _damaged(self, problem: str) -> FormatError:
        return FormatError(f"{self.name}: damaged: {problem}")
