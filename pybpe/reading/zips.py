"""Reads zip archives, and books in EPUB, which are zip archives with one text.

Each file in an archive is a file of the corpus, as if the archive were a folder. Python's zipfile reads the list of the
files, once. Each file is then read without it, where the list says that it is:

    local header    30 bytes, with the sizes of the two fields after it
    name, extra
    content         stored, or compressed with deflate; the list has its size and its CRC-32

The text of a book is that of its chapters, in reading order:

    META-INF/container.xml    names the package file
    package file              the manifest: files with ids; the spine: ids in reading order
    XHTML files               the chapters

A paragraph or other block becomes a line. An empty line separates chapters. Styles, scripts, the table of contents, and
the readings of East Asian characters (ruby) are left out.
"""

from __future__ import annotations

import os
import posixpath
import re
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from functools import partial
from html.parser import HTMLParser
from typing import IO, BinaryIO, NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree

from ..errors import Error, FormatError, file_errors
from .charset import encoding_of_names
from .corpus_folder import Found, corpus_of, places_of
from .streams import ZIP_MARKS, DerivedStream

_HEADER_BYTES, _END_BYTES = 30, 22
_IN_UTF8 = 1 << 11  # a flag: the name is UTF-8
_MANY = 0xFFFF  # stands for larger numbers
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ARCHIVE_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    LookupError,
    ValueError,
    OSError,
    RuntimeError,
)


class Archived(NamedTuple):
    """Where an archive has a file."""

    offset: int  # of its local header
    packed: int  # bytes of its content as it is stored
    size: int  # and of the content itself
    method: int  # how it is compressed
    crc: int


def files_of_archive(name: str, stream: BinaryIO) -> tuple[Found, dict[str, Archived]]:
    """Like `corpus_of`, for the files of an archive, whose paths begin with its name, and where they are.

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
    except _ARCHIVE_ERRORS as error:
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
    """Returns the content of a file in an archive as a stream. `name` is its name in errors."""
    return DerivedStream(name, archive, partial(_unpacked, name, place))


def _unpacked(name: str, place: Archived, archive: BinaryIO) -> Iterator[bytes]:
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


# ----------------------------------------------------------------------------------------------------
# Books

_BLOCK = 1 << 17
_MOST_BYTES = 1 << 26  # of a chapter, so that a small file cannot take much memory
_CONTAINER, _ENCRYPTED = "META-INF/container.xml", "META-INF/encryption.xml"
_HIDDEN = frozenset(("head", "script", "style", "nav", "rt", "rp", "template"))
_INLINE = frozenset(
    (
        "a",
        "abbr",
        "b",
        "bdi",
        "bdo",
        "big",
        "cite",
        "code",
        "data",
        "del",
        "dfn",
        "em",
        "font",
        "i",
        "img",
        "ins",
        "kbd",
    )
    + ("mark", "q", "rb", "rt", "rp", "rtc", "ruby", "s", "samp", "small", "span", "strong", "sub", "sup", "time", "tt")
    + ("u", "var", "wbr")
)
_SPACE = re.compile("[ \t\r\n\f]+")
_DECLARED = re.compile(rb'<\?xml[^>]*\bencoding=["\']([\w.-]+)["\']')
_ERRORS = (zipfile.BadZipFile, zlib.error, KeyError, ElementTree.ParseError, EOFError, LookupError, ValueError, OSError)


def book_text(name: str, source: BinaryIO) -> DerivedStream:
    """Returns the text of a book as a stream of UTF-8."""
    book = source if source.seekable() else _copied(name, source)
    return DerivedStream(name, book, partial(_chapters, name))  # type: ignore[arg-type]


def _copied(name: str, source: BinaryIO) -> IO[bytes]:
    """Returns a copy of a book that can only be read from its start, because a reader needs its end first."""
    with source, file_errors(name, "cannot be copied to a temporary file"):
        copy = tempfile.TemporaryFile()
        while block := source.read(_BLOCK):
            copy.write(block)
    copy.seek(0)
    return copy


def _chapters(name: str, source: IO[bytes]) -> Iterator[bytes]:
    """Yields the chapters of a book, as text that is not empty. Raises FormatError if the file is damaged."""
    try:
        book = zipfile.ZipFile(source)
        files = set(book.namelist())
        encrypted = _encrypted(book) if _ENCRYPTED in files else set()
        between = b""
        for file in _spine(book):
            if file in encrypted or book.getinfo(file).flag_bits & 1:
                raise FormatError(f"{name}: this book is encrypted: only a copy without protection can be read")
            text = _text(_content(book, file))
            if text:
                yield between + text.encode("utf-8", "surrogateescape")
                between = b"\n"
    except Error:
        raise
    except (*_ERRORS, NotImplementedError, RuntimeError) as error:
        problem = " ".join(str(error).split())
        raise FormatError(f"{name}: not a valid EPUB, or damaged: {problem:.100}") from None


def _content(book: zipfile.ZipFile, file: str) -> bytes:
    with book.open(file) as stream:
        data = stream.read(_MOST_BYTES + 1)
    if len(data) > _MOST_BYTES:
        raise ValueError(f"{file} has more than 64 MiB")
    return data


def _elements(book: zipfile.ZipFile, file: str, name: str) -> Iterator[dict[str, str]]:
    """Yields the attributes of all elements with a name, in any namespace."""
    for element in ElementTree.fromstring(_content(book, file)).iter():
        if isinstance(element.tag, str) and element.tag.rpartition("}")[2] == name:
            yield dict(element.attrib)


def _encrypted(book: zipfile.ZipFile) -> set[str]:
    return {unquote(each.get("URI", "")) for each in _elements(book, _ENCRYPTED, "CipherReference")}


def _spine(book: zipfile.ZipFile) -> list[str]:
    """Returns the names of the chapters, in reading order."""
    package = next(_elements(book, _CONTAINER, "rootfile"), {})["full-path"]
    items = {item["id"]: item for item in _elements(book, package, "item")}
    chapters = []
    for reference in _elements(book, package, "itemref"):
        item = items[reference["idref"]]
        is_text = item.get("media-type", "application/xhtml+xml") in ("application/xhtml+xml", "text/html")
        if is_text and "nav" not in item.get("properties", "").split():
            file = unquote(item["href"].partition("#")[0])
            chapters.append(posixpath.normpath(posixpath.join(posixpath.dirname(package), file)))
    return chapters


def _text(data: bytes) -> str:
    """Returns the text of a chapter: one line per block."""
    declared = _DECLARED.search(data[:200])
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else declared[1].decode() if declared else "utf-8"
    parser = _Chapter()
    parser.feed(data.decode(encoding, "surrogateescape").removeprefix("\ufeff"))
    parser.close()
    parser.end_line()
    return "".join(parser.lines)


class _Chapter(HTMLParser):
    """Collects the lines of a chapter."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self._line: list[str] = []
        self._hidden = 0  # how many elements that are left out are open
        self._kept = 0  # and how many that keep line breaks

    def end_line(self) -> None:
        """Ends a line, unless it is empty."""
        text = "".join(self._line)
        line = _SPACE.sub(" ", text).strip(" ") if not self._kept else text.strip("\n")
        if line.strip():
            self.lines.append(line + "\n")
        self._line = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """See HTMLParser."""
        if tag not in _INLINE:
            self.end_line()
        self._hidden += tag in _HIDDEN
        self._kept += tag == "pre"

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        """An element without content, such as <script/>, which HTML would not end here."""
        if tag not in _INLINE:
            self.end_line()

    def handle_endtag(self, tag: str) -> None:
        """See HTMLParser."""
        if tag not in _INLINE:
            self.end_line()
        self._hidden = max(0, self._hidden - (tag in _HIDDEN))
        self._kept = max(0, self._kept - (tag == "pre"))

    def handle_data(self, data: str) -> None:
        """See HTMLParser."""
        if not self._hidden:
            self._line.append(data)
