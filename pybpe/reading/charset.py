"""Handles text that is not UTF-8, and line ends of Windows.

A user may name the encoding of all files. If not, pybpe decides file by file, before it cuts any of them:

    a mark at the start, or UTF-16    -> that encoding
    parts of the file are UTF-8       -> UTF-8. Reading raises an error if the rest is not
    most of it is UTF-8               -> UTF-8 with damaged bytes, which are used unchanged, with a warning
    anything else                     -> the best guess of the package chardet if it is clearly the best one;
                                         otherwise an error that shows the text in the best two, or, if only a
                                         few bytes are not UTF-8, a warning

With encoding="utf-8", all bytes are used unchanged. So nothing is lost, but a tokenizer learns nothing useful from
bytes that are not UTF-8, and a run warns about the first such place.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import BinaryIO

from .. import _binding
from ..arguments import instance, param, shown
from ..errors import ArgumentError, FormatError, warn
from .streams import DerivedStream

_BLOCK = 1 << 16
_OF_NAMES = ("idna", "punycode", "undefined")  # encodings of host names, and one that raises an error for every text
_INSIDE = bytes(range(0x80, 0xC0))  # bytes of a character after its first


def check_encoding(encoding: str | None) -> str | None:
    """Returns Python's name of an encoding, or None if it is decided file by file. Raises ArgumentError if it is not a
    text encoding."""
    if encoding is None or encoding == "auto":
        return None
    instance("encoding", encoding, str, "a name such as 'gb18030', or None")
    try:
        name = codecs.lookup(encoding).name
        codecs.getincrementaldecoder(name)
        with suppress(UnicodeError):
            b"a".decode(name)  # raises LookupError for an encoding that is not of text, such as base64
        if name in _OF_NAMES:
            raise LookupError
        return name
    except (LookupError, ValueError, TypeError):
        raise ArgumentError(
            f"unknown encoding {shown(encoding)}: use one of Python's, such as 'gb18030', 'utf-16' or 'cp1252'"
        ) from None


# ----------------------------------------------------------------------------------------------------
# Reading


def decoded(path: str, encoding: str | None, stream: BinaryIO) -> BinaryIO:
    """Returns a stream of text in some encoding as a stream of UTF-8."""
    if encoding in (None, "utf-8"):
        return stream
    return DerivedStream(path, stream, partial(_decoded, path, str(encoding)))  # type: ignore[return-value]


def _decoded(name: str, encoding: str, stream: BinaryIO) -> Iterator[bytes]:
    """Yields a text as UTF-8, block by block, so memory does not grow with the file."""
    decoder, read = codecs.getincrementaldecoder(encoding)("strict"), 0
    while True:
        data = stream.read(_BLOCK)
        try:
            text = decoder.decode(data, final=not data)
            if read == 0 and text.startswith("\ufffe"):
                raise UnicodeError("it begins with the byte order mark of the other byte order: use utf-16")
            block = text.encode("utf-8")
        except UnicodeDecodeError as error:
            offset = read + len(data) - len(error.object) + error.start  # the decoder may hold earlier bytes
            problem = error.reason
            break
        except MemoryError:
            raise
        except Exception as error:  # raised by the codec itself, or surrogates, which only odd codecs produce
            offset, problem = read, str(error)[:80]
            if problem.endswith("does not start with BOM"):
                problem = f"it has no byte order mark: pass {encoding}-le or {encoding}-be"
            break
        if block:
            yield block
        if not data:
            return
        read += len(data)
    raise FormatError(
        f"{name}: not {encoding} at byte {offset}: {problem}. If the file is not damaged there, pass"
        f" {param(encoding='NAME')}, its encoding",
        offset,
    )


# ----------------------------------------------------------------------------------------------------
# Deciding

_COMMON = "\n ,.，。、"  # in most languages, these are more than 2% of the characters
_LEAST_COMMON = 0.02
_ODD = ("Cn", "Co", "Cs")  # categories of characters that hardly any text has
_CONTROLS = bytes((*range(9), 11, *range(14, 27)))  # of ASCII, which text in any encoding hardly has
_LEAST_VALID = 0.5  # the share of characters beyond ASCII that are valid UTF-8: below 0.3 in other encodings
_DETECTED_BYTES = 200_000  # more do not help chardet
_LEAST_CONFIDENCE = 0.1  # of chardet's best guess
# One of these fits almost any text in another that is damaged, which chardet leaves out: then it has less than 0.2.
_LEAST_OF_EAST_ASIAN = dict.fromkeys(("gb18030", "big5hkscs", "euc_jp", "cp932", "cp949"), 0.25)
_LEAST_MARGIN = 1.2  # its confidence, relative to that of the next guess that gives another text
_WIDER = {"shift_jis_2004": "cp932", "euc_jis_2004": "euc_jp", "koi8-u": "koi8-r"}  # these fit rare characters only
_SHOWN = 24  # characters


def utf16_without_mark(head: bytes) -> str | None:
    """Returns the encoding of a text in UTF-16 without a byte order mark, judging by its first bytes, or None for all
    other files. The common characters show the order of the bytes."""
    shares = {}
    for encoding in ("utf-16-le", "utf-16-be"):
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(head)  # may end in the middle of a character
        except UnicodeDecodeError:
            text = ""
        odd = sum(unicodedata.category(char) in _ODD for char in text[:4096])
        odd += sum(map(text[:4096].count, _CONTROLS.decode()))
        is_text = odd * 100 <= len(text[:4096])
        shares[encoding] = sum(map(text.count, _COMMON)) / len(text) if text and is_text else 0
    best = max(shares, key=shares.__getitem__)
    return best if shares[best] >= max(_LEAST_COMMON, 4 * min(shares.values())) else None


def may_be_utf8(part: bytes | memoryview) -> bool:
    """Returns whether a part of a text is UTF-8. It may begin and end in the middle of a character."""
    size = len(part)
    if _binding.utf8_valid(part) >= size - 3:
        return True
    begin = next((at for at in range(min(4, size)) if part[at] not in _INSIDE), 0)
    return begin > 0 and begin + _binding.utf8_valid(memoryview(part)[begin:]) >= size - 3


def encoding_of(path: str, parts: Sequence[bytes], is_whole: bool) -> str | None:
    """Returns the encoding of a text that has no mark, or None if it is UTF-8, maybe with some damaged bytes, or if
    so few bytes are not that they can neither show the encoding nor matter.

    Args:
        path: the name of the text in errors.
        parts: the text, or its start and other parts of it, which all begin and end between two lines.
        is_whole: whether the last one ends where the text does.

    Raises:
        FormatError: no encoding is clearly the best guess.
    """
    if all(map(may_be_utf8, parts)):
        return None
    valid, wrong = _counts(parts)
    if _is_damaged_utf8(valid, wrong):
        return None
    room = _DETECTED_BYTES // len(parts)
    lines = b"\n".join(_lines_beyond_ascii(part, room) for part in parts)
    found: list[tuple[str, float, list[str]]] = []
    for name, confidence in _guesses(lines):
        texts = _decoded_strictly(parts, name, is_whole)
        if texts is not None and not any(texts == other for _, _, other in found):
            found.append((name, confidence, texts))
        if len(found) == 2:
            break
    if found and found[0][1] >= _LEAST_OF_EAST_ASIAN.get(found[0][0], _LEAST_CONFIDENCE):
        if len(found) == 1 or found[0][1] >= _LEAST_MARGIN * found[1][1]:
            return found[0][0]
    if is_whole and wrong < _ENOUGH:
        return None
    at = _binding.utf8_valid(parts[0])
    where = f" at byte {at}" if at < len(parts[0]) else ""
    shown = " or ".join(f"{name} (which gives {_sample(texts)!r})" for name, _, texts in found) or "no encoding fits"
    raise FormatError(
        f"{path}: not UTF-8{where}: {shown}. Pass {param(encoding='NAME')}, its encoding; utf-8 uses all bytes"
        " unchanged",
        at,
    )


def encoding_of_names(names: Sequence[bytes]) -> str | None:
    """Returns the encoding of names of files: UTF-8, or one of East Asia, or None if it is not clear. A short text gets
    little confidence, so only the distance to the next guess counts."""
    if not names or _decoded_strictly(names, "utf-8", True) is not None:
        return "utf-8"
    guesses = _guesses(b"\n".join(names))
    found = [guess for guess in guesses if _decoded_strictly(names, guess[0], True) is not None]
    is_clear = bool(found) and (len(found) == 1 or found[0][1] >= 2 * found[1][1])
    return found[0][0] if is_clear and found[0][0] in _LEAST_OF_EAST_ASIAN else None


def _lines_beyond_ascii(part: bytes, room: int) -> bytes:
    """Returns the first lines that are not ASCII, about `room` bytes, as chardet reads them best: it takes lines that
    end within a character, or have controls, for binary data."""
    lines = b"\n".join(line for line in part.split(b"\n") if not line.isascii())
    end = lines.find(b"\n", room)
    return (lines[:end] if end > 0 else lines).translate(None, _CONTROLS)


def _guesses(data: bytes) -> Iterable[tuple[str, float]]:
    """Returns the encodings that chardet finds possible, with its confidence, the best first."""
    from chardet import EncodingEra, detect_all  # its models take 3 MB

    guesses = detect_all(
        data,
        ignore_threshold=True,
        encoding_era=EncodingEra.MODERN_WEB,
        prefer_superset=True,
        compat_names=False,
    )
    known: dict[str, float] = {}
    for guess in guesses:
        name = guess["encoding"]
        if name is not None:
            known.setdefault(_WIDER.get(name, name), guess["confidence"])
    return known.items()


def _decoded_strictly(parts: Iterable[bytes], encoding: str, is_whole: bool) -> list[str] | None:
    try:
        decoder = codecs.getincrementaldecoder(encoding)
        if not is_whole:
            return [decoder().decode(part) for part in parts]
        return [part.decode(encoding) for part in parts]
    except (LookupError, UnicodeError):
        return None


def _sample(texts: Iterable[str]) -> str:
    """Returns the start of a line of a text that is not ASCII, from the first character that is not."""
    for line in (line for text in texts for line in text.splitlines()):
        if at := next((at for at, char in enumerate(line, 1) if char > "\x7f"), 0):
            return line[max(0, at - 1 - _SHOWN // 3) :][:_SHOWN].strip()
    return ""


def _counts(parts: Iterable[bytes]) -> tuple[int, int]:
    """Returns the number of characters beyond ASCII that are valid UTF-8, and that of bytes that are not UTF-8."""
    valid = wrong = 0
    for part in parts:
        text = part.decode("utf-8", "surrogateescape")
        found = len(_WRONG.findall(text))
        valid += sum(map(len, _BEYOND.findall(text))) - found
        wrong += found
    return valid, wrong


def _is_damaged_utf8(valid: int, wrong: int) -> bool:
    return valid >= _LEAST_VALID * (valid + wrong)


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

    def look(self, data: _binding.Data, path: str, offset: int, is_given: bool) -> str | None:
        """Like `doubt_of`, but returns None if the warning was given. Several threads may call it at once."""
        return None if self._told and is_given else doubt_of(data, path, offset, is_given)

    def tell(self, doubt: str | None) -> None:
        """Issues a warning, unless this object has already issued one."""
        if doubt is not None and not self._told:
            self._told = True
            warn(doubt)


def are_utf8(data: memoryview, offsets: Sequence[int]) -> bool:
    """Returns which strings are UTF-8: string i is data[offsets[i] : offsets[i + 1]], up to the end of the data."""
    firsts = bytes(map(data.__getitem__, filter(len(data).__gt__, offsets)))
    if len(firsts.translate(None, _INSIDE)) < len(firsts):  # one begins inside a character of the text before
        return False
    return _binding.utf8_valid(data) == len(data)


def doubt_of(data: _binding.Data, path: str, offset: int, is_given: bool) -> str | None:
    """Returns the warning for a piece of a text that is read as UTF-8, or None if it is UTF-8.

    Args:
        offset: where the piece begins.
        is_given: whether the caller says that the text is UTF-8.

    Raises:
        FormatError: the caller does not, and the piece is in another encoding.
    """
    view = memoryview(data)
    at = _binding.utf8_valid(data)
    if at == len(view):
        return None
    name = "standard input" if path == "-" else path
    valid, wrong = _counts([bytes(view)])
    if not is_given and wrong >= _ENOUGH and not _is_damaged_utf8(valid, wrong):
        raise FormatError(
            f"{name}: not UTF-8 at byte {offset + at}, although its start is: pass {param(encoding='NAME')}, the"
            " encoding of the whole file, such as gb18030 or cp1252; utf-8 uses all bytes unchanged",
            offset + at,
        )
    share = wrong / len(view)
    percent = f"{100 * share:.2g}" if share >= 0.0001 else "less than 0.01"
    return (
        f"{name}: not UTF-8 at byte {offset + at} ({percent}% of the {len(view)} bytes around it): damaged, or in"
        " another encoding. pybpe uses these bytes unchanged"
    )


_WRONG = re.compile("[\udc80-\udcff]")  # the results of "surrogateescape" for bytes that are not UTF-8
_BEYOND = re.compile("[^\0-\x7f]+")


# ----------------------------------------------------------------------------------------------------
# Line ends: if every line of a text file ends with \r\n, as Windows writes them, it is read as \n (every \n follows a
# \r, and every \r precedes a \n). So a tokenizer learns the same tokens from it as from other files, and no text is
# lost: putting \r before every \n gives the file back. Files with mixed line ends are read unchanged.
#
# A run decides this for a file before it cuts any. It reads the whole file for that, but only if the first line ends
# with \r\n. For a stream that can be read only once, the first bytes decide, and an error says if the rest differs.

_LINES_BLOCK = 1 << 18
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
    return DerivedStream(path, stream, partial(_without_returns, path)) if is_crlf else stream  # type: ignore[return-value]


def is_crlf_throughout(stream: BinaryIO) -> bool:
    r"""Returns whether a text whose first line ends with \r\n has it throughout. Reads up to the first place that
    differs."""
    held = b""
    while data := stream.read(_LINES_BLOCK):
        block = held + data
        held = b"\r" if block.endswith(b"\r") else b""
        if _differs(block, held):
            return False
    return not held


def _differs(block: bytes, held: bytes) -> bool:
    r"""Returns whether a block has another \n or \r. The next block decides about `held`, a \r at its end."""
    count = block.count(b"\r\n")
    return not (count == block.count(b"\n") == block.count(b"\r") - len(held))


def _without_returns(name: str, stream: BinaryIO) -> Iterator[bytes]:
    r"""Yields a text without its \r. All of them precede a \n."""
    read, held = 0, b""  # bytes before the block, and a \r that ends it
    while True:
        data = stream.read(_LINES_BLOCK)
        block = held + data
        start, held = read - len(held), b"\r" if data and block.endswith(b"\r") else b""
        if _differs(block, held):
            other = _OTHER.search(block)
            assert other is not None
            at = start + other.start()
            raise FormatError(
                rf"{name}: lines end with \r\n up to byte {at}, but not there: pass {param(keep_crlf=True)} to read it"
                " unchanged, or save it as a file, because pybpe can look at all lines of a file first",
                at,
            )
        if text := block.replace(b"\r", b""):
            yield text
        if not data:
            return
        read += len(data)
