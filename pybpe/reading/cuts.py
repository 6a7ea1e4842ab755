"""Cuts text into pieces that can be processed separately.

The code reads a text in blocks, and cuts every block at its last safe cut (`pybpe_text_cut`): a place where a new word
begins regardless of the surrounding text. It carries the text after the cut over to the next block. So the result does
not depend on the number of workers, and memory does not grow with the file.
"""

from __future__ import annotations

import codecs
import io
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import BinaryIO, NamedTuple

from .. import _binding
from ..arguments import Text, utf8
from ..errors import file_errors
from ..normalize import normalize_text
from ..pattern import Pattern
from .streams import DerivedStream

PIECE_BYTES = 1 << 21  # size of a piece: some milliseconds of C. A few pieces fit in a CPU's cache
_FIRST_BLOCK = 1 << 16  # the size of the first read of a text, because the text may be short
_CUT_WINDOW = 1 << 16  # the size of the end of a block, where the search for its last cut begins
_CUT_CONTEXT = 16  # bytes before a position that decide whether a named pattern has a cut there
_PART_CHARACTERS = 1 << 16  # of a str. The converted part stays in the processor's cache
_CUT_STEP = 1 << 24  # the number of bytes that one call to C searches for a cut

Cut = Callable[[_binding.Data, int], int]
"""cut(data, start) returns the first safe cut at or after `start`, or len(data)."""


def has_cuts(pattern: Pattern, normalizer: str | None) -> bool:
    """Returns whether text can have safe cuts. With a pattern that Python's regex package runs, no cut is known to be
    safe. Neither is one with a custom pattern and a normalizer, because such a pattern may distinguish between
    characters that composition makes equal."""
    pretok = pattern.pretok
    return pretok is not None and pretok.has_cuts and (normalizer is None or not pattern.is_custom)


def cutter(
    pattern: Pattern, specials: _binding.Specials | None, normalizer: str | None, prefix_space: bool = False
) -> Cut:
    """Returns the Cut for text that is normalized and then split by a pattern. If the pattern has no safe cuts,
    text is never cut. With `prefix_space`, a space is added before every text that does not begin with one."""
    pretok = pattern.pretok
    if pretok is None or not has_cuts(pattern, normalizer):
        return lambda data, start: len(data)
    cut: Cut = partial(_binding.text_cut, pretok, specials)
    if prefix_space:
        cut = partial(_cut_before_space, cut)
    return cut if normalizer is None else partial(_normalizable_cut, cut, normalizer)


class Cutting(NamedTuple):
    """Finds where text can be cut between two words."""

    cut: Cut  # returns the first such position
    context: int  # the number of bytes before a position that decide whether a cut is possible there
    none: bool  # whether there are no such positions, because the pattern has no safe cuts

    @classmethod
    def of(
        cls,
        pattern: Pattern,
        specials: Iterable[str],
        found: _binding.Specials | None,
        normalizer: str | None,
        prefix_space: bool,
    ) -> Cutting:
        """Returns the Cutting for a pattern, special tokens with their finder, and the other arguments of `cutter`."""
        longest = max((len(text.encode()) for text in specials), default=0)
        cut = cutter(pattern, found, normalizer, prefix_space)
        return cls(cut, _CUT_CONTEXT + longest, not has_cuts(pattern, normalizer))


def _cut_before_space(cut: Cut, data: _binding.Data, start: int) -> int:
    """Returns a cut before a space, so that the text after it does not get another one."""
    view = memoryview(data)
    while 0 < (at := cut(data, start)) < len(view) and view[at] != ord(" "):
        start = at + 1
    return at


def _normalizable_cut(cut: Cut, normalizer: str, data: _binding.Data, start: int) -> int:
    """Returns a cut that does not affect normalization, because normalization changes neither of the two characters
    next to it.

    No combining mark follows a cut, so nothing composes across it. A character may compose with others on the same side
    of the cut. That does not change its class, because in Unicode a composition has the class of its first character.
    """
    view = memoryview(data)
    while (at := cut(data, start)) < len(view):
        before, after = _characters(view[max(0, at - 4) : at]), _characters(view[at : at + 4])
        if all(normalize_text(text, normalizer) == text for text in (before[-1:], after[:1])):
            break
        start = at + 1
    return at


def _characters(data: memoryview) -> str:
    return bytes(data).decode("utf-8", "surrogateescape")


def _last_cut(cut: Cut, block: memoryview, searched: int) -> int:
    """Returns a late safe cut of a block whose first `searched` bytes have none, or 0 if there is none."""
    size = len(block)
    for start in (max(searched, size - _CUT_WINDOW), searched):
        found = cut(block, start)
        if 0 < found < size:
            return found
    return 0


def stream_pieces(
    stream: BinaryIO | io.RawIOBase, cut: Cut, piece_bytes: int = PIECE_BYTES, size: int | None = None
) -> Iterator[memoryview]:
    """Cuts a stream into pieces of about `piece_bytes` that can be processed separately.

    If a piece has no safe cut, its size is doubled until it has one or the text ends.

    Args:
        stream: the text.
        cut: finds the positions where the text can be cut.
        piece_bytes: the size of a piece.
        size: the size of the text, if known: a short text then takes no more memory than it needs.
    """
    carry = memoryview(b"")
    searched = 1  # offset 0 is a cut already
    room = min(piece_bytes, _FIRST_BLOCK if size is None else size + 1)  # the extra byte reveals the end of the text
    while True:
        block = _binding.new_block(max(room, 2 * len(carry)))
        block[: len(carry)] = carry
        filled = _read_full(stream, block, len(carry))
        if filled < len(block):
            if filled:
                yield block[:filled]
            return
        at = _last_cut(cut, block, searched) if filled >= piece_bytes else 0
        if at:
            yield block[:at]
            searched = 1
        elif filled >= piece_bytes:
            searched = max(1, filled - _CUT_WINDOW)
        carry = block[at:]
        room = piece_bytes


def _read_full(stream: BinaryIO | io.RawIOBase, block: memoryview, filled: int) -> int:
    """Reads until `block` is full or the stream ends. Returns the number of bytes in it."""
    while filled < len(block):
        with file_errors(getattr(stream, "name", "input"), "cannot be read"):
            got = stream.readinto(block[filled:])  # type: ignore[union-attr]
        if not got:
            break
        filled += got
    return filled


def without_mark(data: memoryview, offset: int) -> memoryview:
    """Returns a piece of a text that begins at `offset` without the byte order mark, which belongs to no document."""
    return data[3:] if offset == 0 and bytes(data[:3]) == codecs.BOM_UTF8 else data


def data_pieces(data: _binding.Data, cut: Cut, piece_bytes: int = PIECE_BYTES) -> Iterator[memoryview]:
    """Yields the pieces of a text in memory, without copying it."""
    view = memoryview(data).cast("B")
    begin = 0
    while begin < len(view):
        end = begin + _first_cut(cut, view[begin:], piece_bytes)
        yield view[begin:end]
        begin = end


def _first_cut(cut: Cut, view: memoryview, start: int) -> int:
    """Returns cut(view, start), searching in steps of some milliseconds, so that Ctrl-C does not wait."""
    while start < len(view):
        end = start + _CUT_STEP
        found = cut(view[:end], start)
        if found < min(end, len(view)):
            return found
        start = end - _CUT_WINDOW  # a text has no cut near its end, because a special token could begin there
    return len(view)


def text_pieces(text: Text, cut: Cut, piece_bytes: int = PIECE_BYTES) -> Iterator[_binding.Data]:
    """Yields the pieces of any text. A long str is never converted as a whole: an ASCII str is read in place, any other
    one is converted part by part."""
    data: _binding.Data | None = None
    if isinstance(text, str) and len(text) > _FIRST_BLOCK:
        if str.isascii(text):
            data = _binding.str_utf8(text)
        elif len(text) > piece_bytes:
            return stream_pieces(DerivedStream("text", io.BytesIO(), partial(_utf8_parts, text)), cut, piece_bytes)
    if data is None:
        data = utf8(text)
    return iter((data,)) if len(data) <= piece_bytes else data_pieces(data, cut, piece_bytes)


def _utf8_parts(text: str, _: object = None) -> Iterator[bytes]:
    """Yields a str as UTF-8, in parts."""
    begin = 0
    while begin < len(text):
        end = begin + _PART_CHARACTERS
        end += "\ud800" <= text[end - 1 : end] <= "\udbff"  # the halves of a surrogate pair stay together
        yield utf8(text[begin:end])
        begin = end


_NEWLINE = re.compile(rb"\n")
_FIRST_LOOK = 1 << 16  # the number of bytes that are read at first to find a cut


def line_cut(data: _binding.Data, start: int) -> int:
    """Returns the first start of a line at or after `start`. This is a Cut."""
    if start == 0:
        return 0
    found = _NEWLINE.search(data, start - 1)  # a memoryview has no `find`
    return found.end() if found is not None else len(data)


def find_cut(stream: BinaryIO, start: int, cut: Cut, context: int) -> int:
    """Returns the first safe cut of a file at or after `start`. Reads up to `context` bytes before `start` too, because
    they may decide whether a cut is safe."""
    if start == 0:
        return 0
    begin = max(0, start - context)
    stream.seek(begin)
    look = _FIRST_LOOK
    window = bytearray()
    while True:
        more = stream.read(look)
        window += more
        if not more:
            return begin + len(window)
        if start - begin < len(window):  # otherwise the context is not complete, and more must be read
            found = cut(window, start - begin)
            if found < len(window):
                return begin + found
        look = len(window)
