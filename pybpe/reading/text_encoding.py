"""Handles text that is not UTF-8: pybpe reads it in another encoding, or warns about it.

pybpe expects UTF-8. It uses other bytes unchanged, one by one, so nothing is lost, but a tokenizer learns nothing
useful from them. So a run warns about the first such place.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from typing import BinaryIO

from .. import _binding
from ..arguments import instance, param, shown
from ..errors import ArgumentError, FormatError, warn
from .streams import DerivedStream

_BLOCK = 1 << 16
_INSIDE = bytes(range(0x80, 0xC0))  # bytes of a character after its first


def check_encoding(encoding: str | None) -> str | None:
    """Returns Python's name of an encoding. Raises ArgumentError if it is not a text encoding."""
    if encoding is None:
        return None
    instance("encoding", encoding, str, "a name such as 'gb18030', or None")
    try:
        empty: object = codecs.getincrementaldecoder(encoding)().decode(b"")
        if not isinstance(empty, str):  # a codec that does not produce text, such as base64
            raise LookupError
        return codecs.lookup(encoding).name
    except (LookupError, ValueError, TypeError):
        raise ArgumentError(
            f"unknown encoding {shown(encoding)}: use one of Python's, such as 'gb18030', 'utf-16' or 'cp1252'"
        ) from None


# ----------------------------------------------------------------------------------------------------
# Reading


def decoded(path: str, encoding: str | None, stream: BinaryIO) -> BinaryIO:
    """Returns a stream of text in some encoding as a stream of UTF-8."""
    return stream if encoding is None else _Decoded(path, encoding, stream)  # type: ignore[return-value]


class _Decoded(DerivedStream):
    """Decodes a stream block by block, so memory does not grow with the file."""

    def __init__(self, path: str, encoding: str, stream: BinaryIO) -> None:
        self._encoding = encoding
        super().__init__(path, stream)

    def _begin(self) -> None:
        super()._begin()
        self._decoder = codecs.getincrementaldecoder(self._encoding)("strict")
        self._read = 0  # bytes of the source
        self._rest = b""
        self._ended = False

    def _next(self, size: int) -> bytes:
        while not self._rest and not self._ended:
            self._rest = self._decoded()
        data, self._rest = self._rest[:size], self._rest[size:]
        return data

    def _decoded(self) -> bytes:
        data = self._source.read(_BLOCK)
        self._ended = not data
        try:
            text = self._decoder.decode(data, final=not data)
            if self._read == 0 and text.startswith("\ufffe"):
                raise UnicodeError("it begins with the byte order mark of the other byte order: use utf-16")
            self._read += len(data)
            return text.encode("utf-8")
        except UnicodeDecodeError as error:
            offset = self._read + len(data) - len(error.object) + error.start  # the decoder may hold earlier bytes
            problem = error.reason
        except UnicodeError as error:  # raised by the codec itself; or surrogates, which only odd codecs produce
            offset, problem = self._read, str(error)[:80]
        raise FormatError(f"{self.name}: not {self._encoding} at byte {offset}: {problem}", offset)


# ----------------------------------------------------------------------------------------------------
# Warning

_UTF8 = ("utf-8", "utf-8-sig")
_ENOUGH = 8  # this many bytes beyond ASCII in another encoding are hardly ever valid UTF-8


def seems_utf8(start: bytes, encoding: str) -> bool:
    """Returns whether a text to be read in some encoding seems to be UTF-8 instead. If it is, almost any encoding gives
    a different text, without an error."""
    if encoding in _UTF8:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(start)  # may end in the middle of a character
    except UnicodeDecodeError:
        return False
    if encoding.startswith(("utf-16", "utf-32")):
        return len(start) >= _ENOUGH and 0 not in start
    return len(start) - len(start.translate(None, _BEYOND_ASCII)) >= _ENOUGH


_BEYOND_ASCII = bytes(range(128, 256))


class Doubts:
    """The warning that a run gives once, about the first input that is not UTF-8."""

    def __init__(self) -> None:
        self._told = False

    def look(self, data: _binding.Data, path: str, offset: int) -> str | None:
        """Returns the warning for a piece of a file that begins at `offset`, or None. Several threads may call it at
        once."""
        return None if self._told else doubt_of(data, path, offset)

    def tell(self, doubt: str | None) -> None:
        """Issues a warning, unless this object has already issued one."""
        if doubt is not None and not self._told:
            self._told = True
            warn(doubt)


def are_utf8(data: memoryview, offsets: Sequence[int]) -> bool:
    """Returns whether texts are UTF-8: text i is data[offsets[i] : offsets[i + 1]], up to the end of the data."""
    firsts = bytes(map(data.__getitem__, filter(len(data).__gt__, offsets)))
    if len(firsts.translate(None, _INSIDE)) < len(firsts):  # one begins inside a character of the text before
        return False
    return _binding.utf8_valid(data) == len(data)


def doubt_of(data: _binding.Data, path: str, offset: int) -> str | None:
    """Returns the warning for a piece of a text file; None if it is UTF-8."""
    view = memoryview(data)
    at = _binding.utf8_valid(data)
    if at == len(view):
        return None
    name = "standard input" if path == "-" else path
    share = len(_WRONG.findall(bytes(view).decode("utf-8", "surrogateescape"))) / len(view)
    percent = f"{100 * share:.2g}" if share >= 0.0001 else "less than 0.01"
    return (
        f"{name}: not UTF-8 at byte {offset + at} ({percent}% of the {len(view)} bytes around it): damaged, or in"
        " another encoding. pybpe uses these bytes unchanged. To read such text, say its encoding:"
        f" {param(encoding='gb18030')} for most Chinese text, 'cp1252' for most Western European text, or another of"
        " Python's"
    )


_WRONG = re.compile("[\udc80-\udcff]")  # what "surrogateescape" turns bytes that are not UTF-8 into
