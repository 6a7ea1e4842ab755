"""Reads books in EPUB: the text of their chapters, in reading order.

    META-INF/container.xml    names the package file
    package file              the manifest: files with ids; the spine: ids in reading order
    XHTML files               the chapters

A paragraph or other block becomes a line. An empty line separates chapters. Styles, scripts, the table of contents, and
the readings of East Asian characters (ruby) are left out.
"""

from __future__ import annotations

import posixpath
import re
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from functools import partial
from html.parser import HTMLParser
from typing import IO, BinaryIO
from urllib.parse import unquote
from xml.etree import ElementTree

from ..errors import Error, FormatError, file_errors
from .streams import DerivedStream

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
