"""Reads zip archives: a file in one is a file of the corpus, as if the archive were a folder.

Python's zipfile reads the list of the files, once. Files are then read without it, where the list says that it is:

    local header    30 bytes, with the sizes of the two fields after it
    name, extra
    content         stored, or compressed with deflate; the list has its size and its CRC-32
"""

from __future__ import annotations

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from typing import BinaryIO, NamedTuple

from ..errors import Error, FormatError
from .charset import encoding_of_names
from .corpus_folder import Found, corpus_of, places_of
from .streams import ZIP_MARKS, DerivedStream

_HEADER_BYTES, _END_BYTES = 30, 22
_IN_UTF8 = 1 << 11  # a flag: the name is UTF-8
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
    """Returns what `corpus_of` does for the files of an archive, whose paths begin with its name, and where they are.

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
            listed = dict(zip(_names(infos), infos))
            names = sorted(path for path in listed if "__MACOSX" not in path.split("/") and not path.endswith("/"))
            found = corpus_of(places_of(name, names, lambda path: archive.read(listed[path[len(name) + 1 :]])))
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


def _names(infos: Sequence[zipfile.ZipInfo]) -> list[str]:
    """Returns the paths of the files of an archive. Where it does not say that they are UTF-8, zipfile takes them for
    cp437, but they may also be in the encoding of a Chinese Windows: then that shows."""
    stored = {info.filename: info.filename.encode("cp437") for info in infos if not info.flag_bits & _IN_UTF8}
    names = [info.filename for info in infos]
    encoding = encoding_of_names([data for data in stored.values() if not data.isascii()])
    if encoding is not None:
        found = [stored[name].decode(encoding) if name in stored else name for name in names]
        names = found if len(set(found)) == len(set(names)) else names
    return names


def _count(stream: BinaryIO) -> int:
    """Returns the number of files that the end of an archive states."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _END_BYTES - _MANY))  # a comment may follow
    end = stream.read(_END_BYTES + _MANY)
    at = end.rfind(ZIP_MARKS[1])
    return int.from_bytes(end[at + 10 : at + 12], "little")


def archived_file(name: str, archive: BinaryIO, place: Archived) -> DerivedStream:
    """Returns the content of a file in an archive as a stream. `name` is what errors call it."""
    return DerivedStream(name, archive, partial(_content, name, place))


def _content(name: str, place: Archived, archive: BinaryIO) -> Iterator[bytes]:
    archive.seek(max(0, place.offset))
    header = archive.read(_HEADER_BYTES)
    fields = sum(int.from_bytes(header[at : at + 2], "little") for at in (26, 28))
    if place.offset < 0 or not header.startswith(ZIP_MARKS[0]) or len(archive.read(fields)) < fields:
        raise FormatError(f"{name}: damaged: its header is not where the archive says")
    size = crc = 0
    for data in (
        _stored(archive, place.packed)
        if place.method == zipfile.ZIP_STORED
        else _inflated(name, _stored(archive, place.packed))
    ):
        size, crc = size + len(data), zlib.crc32(data, crc)
        if size > place.size:
            break
        yield data
    if (size, crc) != (place.size, place.crc):
        raise FormatError(f"{name}: damaged: its content is not what the archive says")


def _stored(archive: BinaryIO, size: int) -> Iterator[bytes]:
    while size and (data := archive.read(min(_BLOCK, size))):
        size -= len(data)
        yield data


def _inflated(name: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
    inflater, waiting = zlib.decompressobj(-zlib.MAX_WBITS), b""
    while not inflater.eof and (block := waiting or next(blocks, b"")):
        try:
            data = inflater.decompress(block, _BLOCK)
        except zlib.error as error:
            raise FormatError(f"{name}: damaged: {error}") from None
        waiting = inflater.unconsumed_tail
        if data:
            yield data
