r"""Reads \r\n as \n in text files that have it throughout, as Windows writes them: each \n follows a \r, and each \r
precedes a \n. So a tokenizer learns the same tokens from them as from other files, and no text is lost: putting \r
before each \n gives the file back. Files with other line ends as well are read unchanged.

A run decides for each file before it cuts any, and reads the whole file for that, but only if its first line ends with
\r\n. Only a stream that can be read once is decided by its first bytes; an error says if the rest of it differs.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from ..arguments import param
from ..errors import FormatError
from .streams import DerivedStream

_BLOCK = 1 << 18
_OTHER = re.compile(rb"(?<!\r)\n|\r(?!\n)")


def may_be_crlf(start: bytes) -> bool:
    r"""Returns whether the first line of a text ends with \r\n, judging by its first bytes."""
    at = start.find(b"\n")
    return at > 0 and start[at - 1] == ord("\r")


def is_crlf(text: bytes | memoryview) -> bool:
    r"""Returns whether the lines of a whole text end with \r\n, and there is no other \r."""
    text = bytes(text)
    return b"\r\n" in text and not _differs(text, b"")


def without_returns(path: str, is_crlf: bool | None, stream: BinaryIO) -> BinaryIO:
    r"""Returns a stream of text in UTF-8 with \n for \r\n, if it has that throughout."""
    return _Converted(path, stream) if is_crlf else stream  # type: ignore[return-value]


def is_crlf_throughout(stream: BinaryIO) -> bool:
    r"""Returns whether a text whose first line ends with \r\n has it throughout. Reads up to the first place that
    differs."""
    held = b""
    while data := stream.read(_BLOCK):
        block = held + data
        held = b"\r" if block.endswith(b"\r") else b""
        if _differs(block, held):
            return False
    return not held


def _differs(block: bytes, held: bytes) -> bool:
    r"""Returns whether a block has another \n or \r. The next block decides about `held`, a \r at its end."""
    count = block.count(b"\r\n")
    return not (count == block.count(b"\n") == block.count(b"\r") - len(held))


class _Converted(DerivedStream):
    r"""A text without its \r, each of which precedes a \n."""

    def _begin(self) -> None:
        super()._begin()
        self._read = 0  # bytes of the source
        self._held = b""

    def _next(self, size: int) -> bytes:
        while data := self._source.read(size):
            block = self._held + data
            held = b"\r" if block.endswith(b"\r") else b""
            if _differs(block, held):
                raise self._other_end(block)
            self._read, self._held = self._read + len(data), held
            if text := block.replace(b"\r", b""):
                return text
        if self._held:
            raise self._other_end(self._held)
        return b""

    def _other_end(self, block: bytes) -> FormatError:
        other = _OTHER.search(block)
        assert other is not None
        at = self._read - len(self._held) + other.start()
        return FormatError(
            rf"{self.name}: lines end with \r\n up to byte {at}, but not there: pass {param(keep_crlf=True)} to read it"
            " unchanged, or save it as a file, in which pybpe looks at all lines first",
            at,
        )
