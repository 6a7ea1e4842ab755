"""Documents: the records of JSON lines, the measures of texts, and their signatures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from .._numpy import numpy
from .core import Data, Strings, call, ffi, lib, new_uncleared, raise_error, strings_list

MINHASH_SIZE: int = lib.PYBPE_MINHASH_SIZE
CHARACTERS: tuple[str, ...] = ("SPACE", "LETTER", "DIGIT", "PUNCTUATION", "SYMBOL", "UNSPACED")
CODE_POINTS = 0x110000

_NAMES = (
    *("chars", "visible", "digits", "symbols", "unspaced", "marks", "words", "word_chars", "alphabetic"),
    *("distinct", "top_count", "lines", "line_chars", "repeated_lines", "repeated_line_chars"),
    *("paragraphs", "paragraph_chars", "repeated_paragraphs", "repeated_paragraph_chars"),
    *("bullet_lines", "ellipsis_lines", "short_lines", "terminal_lines"),
)
MEASURES: dict[str, int] = {name: getattr(lib, f"PYBPE_MEASURE_{name.upper()}") for name in _NAMES}


class Characters:
    """A `pybpe_characters` with the memory it points to. Immutable.

    Args:
        classes: the class of each code point.
        lower: uint32, the lowercase of each code point up to its length.
    """

    def __init__(self, classes: bytes, lower: bytes) -> None:
        if len(classes) != CODE_POINTS:
            raise ValueError(f"expected the classes of {CODE_POINTS} code points, not {len(classes)}")
        self._classes, self._lower = classes, lower
        self.c = ffi.new("pybpe_characters *")
        self.c.classes = ffi.from_buffer("uint8_t[]", classes)
        self.c.lower = ffi.from_buffer("uint32_t[]", lower)
        self.c.lower_count = len(lower) // 4


class Records(NamedTuple):
    """Some JSON lines.

    Attributes:
        texts, lines: the texts that are not empty, and their records, written in one form.
        records, line_ends: the number of records, and of line ends.
    """

    texts: list[bytes]
    lines: list[bytes]
    records: int
    line_ends: int


def read_records(data: Data, key: str) -> Records | None:
    """Reads JSON lines (see pybpe_records_read in csrc/pybpe.h). Returns None if a complete parser must read them."""
    view, name, err = ffi.from_buffer(data), key.encode(), ffi.new("pybpe_error *")
    size, offsets = len(view), f"uint64_t[{len(view) // 8 + 2}]"
    memory = [new_uncleared(kind) for kind in (f"uint8_t[{size}]", f"uint8_t[{2 * size}]", offsets, offsets)]
    out = ffi.new("pybpe_records *", memory)
    code = lib.pybpe_records_read(out, view, size, ffi.from_buffer(name), len(name), err)
    if code == lib.PYBPE_ERR_FORMAT:
        return None
    if code:
        raise_error(err)
    texts, lines = (strings_list(ffi.new("pybpe_strings *", [memory[i], memory[i + 2], out.count])) for i in (0, 1))
    return Records(texts, lines, out.records, out.line_ends)


def measure_texts(
    texts: Sequence[bytes],
    characters: Characters,
    ngrams: Sequence[int],
    words: bool,
    repeated_words: bool,
    lines: bool,
) -> numpy.ndarray[Any, Any]:
    """Returns counts: uint64, shape (texts, MEASURES, then two columns for each of `ngrams`, which ascend). Without
    `words`, `repeated_words` and `ngrams`, those of characters and words are 0, except "chars"."""
    out = numpy.empty((len(texts), lib.PYBPE_MEASURES + 2 * len(ngrams)), dtype=numpy.uint64)
    strings, lengths = Strings(texts), ffi.new("uint32_t[]", list(ngrams))
    what = ffi.new("pybpe_measuring *", [lengths, len(ngrams), repeated_words, lines, not words])
    target = ffi.from_buffer("uint64_t[]", out, require_writable=True)
    call(lib.pybpe_texts_measure, target, strings.c, characters.c, what, ffi.NULL)
    return out


def minhash_texts(texts: Sequence[bytes], characters: Characters) -> numpy.ndarray[Any, Any]:
    """Returns signatures: uint32, shape (texts, MINHASH_SIZE)."""
    out = numpy.empty((len(texts), MINHASH_SIZE), dtype=numpy.uint32)
    strings = Strings(texts)
    target = ffi.from_buffer("uint32_t[]", out, require_writable=True)
    call(lib.pybpe_texts_minhash, target, strings.c, characters.c, ffi.NULL)
    return out


def shingle_hashes(text: Data, characters: Characters) -> numpy.ndarray[Any, Any]:
    """Returns the hashes of a text's shingles, in order: uint64."""
    view, count = ffi.from_buffer(text), ffi.new("size_t *")
    call(lib.pybpe_text_shingles, ffi.NULL, count, view, len(view), characters.c, ffi.NULL)
    out = numpy.empty(count[0], dtype=numpy.uint64)
    target = ffi.from_buffer("uint64_t[]", out, require_writable=True)
    call(lib.pybpe_text_shingles, target, count, view, len(view), characters.c, ffi.NULL)
    return out
