"""Turns files into pieces of text that can be processed separately.

A text is read in blocks, and each block is cut at its last safe cut (`pybpe_text_cut`): a place where a new word is
certain to begin, whatever surrounds it. The text after the cut is carried over to the next block. So the result does
not depend on the number of workers, and memory does not grow with the file.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Union

from . import _binding
from .arguments import instance, shown
from .errors import ArgumentError, file_errors
from .normalize import is_normalized
from .pattern import Pattern

if TYPE_CHECKING:
    import numpy
    from _typeshed import ReadableBuffer

Text = Union[str, "ReadableBuffer"]  # the latter is bytes, or any other object with readable bytes
Inputs = str | os.PathLike[str] | Iterable[str | bytes | os.PathLike[str]]

STDIN = "-"  # the path of standard input

BLOCK_BYTES = 1 << 21  # size of a piece: some milliseconds of C; a few pieces fit in a CPU's cache
_FIRST_BLOCK = 1 << 16  # how much of a text is read first, because it may be short
_READ_BYTES = 1 << 24  # the most that is read at once, whatever length a damaged file claims
_CUT_WINDOW = 1 << 16  # the end of a block, where its last cut is searched for first
_CUT_STEP = 1 << 24  # how far one call of C searches for a cut


def utf8(text: Text) -> bytes:
    """Returns the bytes of a text. Lone surrogates, which UTF-8 cannot hold, become U+FFFD, as in tiktoken.

    Bytes are not copied. Neither are other objects with the buffer protocol (bytearray, memoryview, mmap, a uint8
    array): for these the result is a memoryview, which works wherever bytes do.
    """
    if isinstance(text, str):
        try:
            return str.encode(text, "utf-8")  # a subclass of str may override encode, and __len__ below
        except UnicodeEncodeError:
            return str.encode(text, "utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
    if type(text) is bytes:
        return text
    try:
        view = memoryview(text)
    except (TypeError, ValueError):  # no buffer, or a numpy array of times
        raise ArgumentError(f"expected text as str or bytes, not {type(text).__name__}") from None
    if view.format not in ("B", "b", "c") or view.ndim != 1 or not view.c_contiguous:
        raise ArgumentError(
            f"expected text as str or bytes; this {type(text).__name__} has items of format {view.format!r}, shape"
            f" {view.shape} and strides {view.strides}, not contiguous bytes"
        )
    return view.cast("B")  # type: ignore[return-value]


# ----------------------------------------------------------------------------------------------------
# Inputs


class InputStream(io.FileIO):
    """A file open for reading. Its errors name the file. It returns fewer bytes than requested only at its end,
    whatever the file system does."""

    def readinto(self, block: Any) -> int:
        view = memoryview(block)
        view = view.cast("B") if view.nbytes else view[:0]  # an empty view cannot be cast
        filled = 0
        with file_errors(self.name, "cannot be read"):
            while filled < len(view):
                got = super().readinto(view[filled:])
                if not got:
                    break
                filled += got
        return filled

    def read(self, size: int | None = -1) -> bytes:
        with file_errors(self.name, "cannot be read"):
            if size is None or size < 0:
                return super().readall()
            parts = []
            while size > 0 and (part := super().read(min(size, _READ_BYTES))):
                parts.append(part)
                size -= len(part)
        return b"".join(parts)

    def readall(self) -> bytes:
        return self.read()


def open_input(path: _binding.PathLike) -> BinaryIO:
    """Opens a file for reading. Raises FileError, with one line, if that fails or a read fails."""
    _binding.path_bytes(path)  # refuses anything that is not a path
    with file_errors(path, "cannot be opened"):
        return InputStream(path)


class _StandardInput(InputStream):
    """Standard input. After its end it is not read again: on a terminal each such read would wait for a Ctrl-D."""

    def __init__(self) -> None:
        super().__init__(0, closefd=False)
        self.name = "standard input"
        self._ended = False

    def readinto(self, block: Any) -> int:
        got = 0 if self._ended else super().readinto(block)
        self._ended = self._ended or got < memoryview(block).nbytes
        return got

    def read(self, size: int | None = -1) -> bytes:
        data = b"" if self._ended else super().read(size)
        self._ended = self._ended or size is None or size < 0 or len(data) < size
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        self._ended = False
        return super().seek(offset, whence)


def open_stdin() -> InputStream:
    """Opens standard input, as `open_input` opens a file."""
    return _StandardInput()


def read_items(stream: BinaryIO, dtype: str | numpy.dtype[Any], count: int) -> numpy.ndarray[Any, Any]:
    """Reads the next `count` items of a file that `open_input` opened. Returns an array of shape (count,); shorter at
    the end of the file."""
    import numpy

    items = numpy.empty(count, dtype)
    got: int = stream.readinto(items)  # type: ignore[attr-defined]
    return items[: got // items.itemsize]


def is_path_list(inputs: object) -> bool:
    """Returns whether `inputs` names files (one path, or a list or tuple of paths) rather than holding texts."""
    if isinstance(inputs, (str, os.PathLike)):
        return True
    return isinstance(inputs, (list, tuple)) and all(isinstance(i, (str, os.PathLike)) for i in inputs)


def path_list(inputs: Inputs) -> list[str]:
    """Returns the paths that `inputs` names. Raises ArgumentError if there are none, and for a set, which has no
    order."""
    if isinstance(inputs, (str, os.PathLike)):
        inputs = [inputs]
    instance("inputs", inputs, Iterable, "a path or a list of paths")
    if isinstance(inputs, (set, frozenset)):
        raise ArgumentError("inputs is a set: pass paths in a list")
    paths = [_file_name(path) for path in inputs]
    if not paths:
        raise ArgumentError("inputs is empty: name at least one file")
    return paths


def _file_name(path: _binding.PathLike) -> str:
    """Returns a path as a str. Raises ArgumentError if no file can have this name: it is a text passed as a path."""
    if isinstance(path, (list, tuple)):
        raise ArgumentError("inputs contains a list: pass paths in one flat list, and texts to train on as iter([...])")
    name = path if isinstance(path, str) else _binding.path_text(path)
    if _is_no_name(name):
        raise ArgumentError(
            f"expected a path, but {shown(name)} is a text: `train` and `count_words` take texts as iter([text]);"
            " all other functions read files"
        )
    return _binding.path_text(path)


def _is_no_name(name: str) -> bool:
    """Returns whether a name cannot be meant as a file's: no file has it, and it is too long or has line breaks."""
    longest = max(len(part.encode("utf-8", "surrogatepass")) for part in name.split("/"))
    return (longest > 255 or len(name) > 4096 or bool(set(name) & set("\n\r"))) and not os.path.lexists(name)


# ----------------------------------------------------------------------------------------------------
# Pieces

Cut = Callable[[_binding.Data, int], int]
"""cut(data, start) returns the first safe cut at or after `start`, or len(data)."""


def has_cuts(pattern: Pattern, normalizer: str | None) -> bool:
    """Whether texts can have cuts. One that Python's regex package runs promises none. One of the user's may tell apart
    what composing makes alike, so with a normalizer it has none."""
    pretok = pattern.pretok
    return pretok is not None and pretok.has_cuts and (normalizer is None or not pattern.is_custom)


def cutter(pattern: Pattern, specials: _binding.Specials | None, normalizer: str | None) -> Cut:
    """Returns the Cut for texts that are normalized and then split by a pattern. Texts of a pattern without cuts
    are never cut."""
    pretok = pattern.pretok
    if pretok is None or not has_cuts(pattern, normalizer):
        return lambda data, start: len(data)
    cut: Cut = partial(_binding.text_cut, pretok, specials)
    return cut if normalizer is None else partial(_normalizable_cut, cut, normalizer)


def _normalizable_cut(cut: Cut, normalizer: str, data: _binding.Data, start: int) -> int:
    """Returns a cut that does not affect normalization, because normalization changes neither adjacent character.

    No combining mark follows a cut, so nothing composes across it. What composes with one of the two characters, on its
    own side, does not change the character's class: in Unicode a composition has the class of its first character.
    """
    view = memoryview(data)
    while (at := cut(data, start)) < len(view):
        before, after = _characters(view[max(0, at - 4) : at]), _characters(view[at : at + 4])
        if is_normalized(before[-1:], normalizer) and is_normalized(after[:1], normalizer):
            break
        start = at + 1
    return at


def _characters(data: memoryview) -> str:
    return bytes(data).decode("utf-8", "surrogateescape")


def _last_cut(cut: Cut, block: bytearray, seen: int) -> int:
    """Returns a late safe cut of a block whose first `seen` bytes have none; 0 if there is none."""
    size = len(block)
    for start in (max(seen, size - _CUT_WINDOW), seen):
        found = cut(block, start)
        if 0 < found < size:
            return found
    return 0


def stream_pieces(
    stream: BinaryIO | io.RawIOBase, cut: Cut, block_bytes: int = BLOCK_BYTES, size: int | None = None
) -> Iterator[memoryview]:
    """Cuts a stream into pieces of about `block_bytes` that can be processed separately.

    If a piece has no safe cut, its size is doubled until it has one or the text ends.

    Args:
        stream: the text.
        cut: finds where it can be cut.
        block_bytes: the size of a piece.
        size: the size of the text, if known: a short text then takes no more memory than it needs.
    """
    carry = memoryview(b"")
    seen = 1  # offset 0 is a cut already
    room = min(block_bytes, _FIRST_BLOCK if size is None else size + 1)  # the extra byte reveals the end of the text
    while True:
        block = bytearray(max(room, 2 * len(carry)))
        block[: len(carry)] = carry
        filled = _read_full(stream, memoryview(block), len(carry))
        if filled < len(block):
            if filled:
                yield memoryview(block)[:filled]
            return
        at = _last_cut(cut, block, seen) if filled >= block_bytes else 0
        if at:
            yield memoryview(block)[:at]
            seen = 1
        elif filled >= block_bytes:
            seen = max(1, filled - _CUT_WINDOW)
        carry = memoryview(block)[at:]
        room = block_bytes


def _read_full(stream: BinaryIO | io.RawIOBase, block: memoryview, filled: int) -> int:
    """Reads until `block` is full or the stream ends. Returns how many bytes of it are filled."""
    while filled < len(block):
        with file_errors(getattr(stream, "name", "input"), "cannot be read"):
            got = stream.readinto(block[filled:])  # type: ignore[union-attr]
        if not got:
            break
        filled += got
    return filled


def data_pieces(data: _binding.Data, cut: Cut, block_bytes: int = BLOCK_BYTES) -> Iterator[memoryview]:
    """Yields the pieces of a text in memory, without copying it."""
    view = memoryview(data).cast("B")
    begin = 0
    while begin < len(view):
        end = begin + _first_cut(cut, view[begin:], block_bytes)
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


def text_pieces(text: Text, cut: Cut, block_bytes: int = BLOCK_BYTES) -> Iterator[_binding.Data]:
    """Yields the pieces of any text. A long str is converted part by part, never as a whole."""
    if isinstance(text, str) and len(text) > block_bytes:
        return stream_pieces(_StrReader(text), cut, block_bytes)
    data = utf8(text)
    return iter((data,)) if len(data) <= block_bytes else data_pieces(data, cut, block_bytes)


class _StrReader(io.RawIOBase):
    """A str as a stream of UTF-8."""

    _PART = 1 << 18  # characters

    def __init__(self, text: str) -> None:
        self._parts = self._encode(text)
        self._rest = memoryview(b"")

    def _encode(self, text: str) -> Iterator[bytes]:
        begin = 0
        while begin < len(text):
            end = begin + self._PART
            end += "\ud800" <= text[end - 1 : end] <= "\udbff"  # the halves of a surrogate pair stay together
            yield utf8(text[begin:end])
            begin = end

    def readinto(self, block: memoryview) -> int:  # type: ignore[override]
        """Fills the start of a block. Returns how many bytes it wrote, 0 at the end."""
        if not self._rest:
            self._rest = memoryview(next(self._parts, b""))
        size = min(len(block), len(self._rest))
        block[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size
