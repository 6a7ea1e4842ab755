"""Characters and words of many texts at once, as numpy arrays: what filters and near-duplicate search count.

A word is a run of letters, marks and digits. Chinese, Japanese, Thai and their like are written without spaces, so
there each character is a unit, and two units count as one word: Chinese words have one to three characters, about two
on average. So a limit on words, or an n-gram of n words, means nearly the same in every language.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from ..arguments import instance
from ..errors import ArgumentError

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

SPACE, LETTER, DIGIT, PUNCTUATION, SYMBOL, UNSPACED = range(6)

# Letters of scripts without spaces between words, from Unicode's Scripts.txt: Thai, Lao, Tibetan, Myanmar, Khmer,
# Kana and Bopomofo, Han and Yi. Korean has spaces.
_UNSPACED = (
    (0x0E00, 0x0EFF),
    (0x0F00, 0x0FFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3005, 0x3007),
    (0x3040, 0x312F),
    (0x31A0, 0x31BF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0xA4CF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),
    (0x1B000, 0x1B16F),
    (0x20000, 0x3FFFD),
)
UNITS_PER_WORD = 2  # characters of these scripts per word
LETTERS_PER_UNIT = 2.5  # two of them count as one English word, which has about five letters
_ASSIGNED = 0x32400  # no letters, digits or spaces above this, except private use and selectors


@lru_cache(maxsize=1)
def _class_table() -> Array:
    """Returns a table of code point -> class, uint8, shape (0x110000,)."""
    import numpy

    table = numpy.full(0x110000, SYMBOL, dtype=numpy.uint8)
    kinds = {"L": LETTER, "M": LETTER, "N": DIGIT, "P": PUNCTUATION, "Z": SPACE}
    table[:_ASSIGNED] = [kinds.get(unicodedata.category(chr(c))[0], SYMBOL) for c in range(_ASSIGNED)]
    for first, last in _UNSPACED:
        part = table[first : last + 1]
        part[part == LETTER] = UNSPACED
    for c in "\t\n\v\f\r\x85":
        table[ord(c)] = SPACE
    table[0xE0100:0xE01F0] = LETTER  # variation selectors are marks
    return table


def check_texts(texts: Sequence[str]) -> list[str]:
    """Returns the texts as a list. Raises ArgumentError for a single text, or for bytes, which have no characters."""
    if isinstance(texts, str):
        raise ArgumentError("expected a list of texts, not one str")
    texts = list(texts)
    for text in texts:
        instance("a text", text, str, "a str")
    return texts


class Units:
    """The words of some texts.

    Args:
        texts: the texts.
        fold: ignore case when comparing words.

    Attributes:
        classes: the class of each character, uint8; all texts in a row, with a SPACE after each.
        text_starts: where each text begins in `classes`, int64, with the total end appended; a text's length is the
            difference minus one.
        starts, ends: where each word begins and ends in `classes`, int64.
        word_starts: the words of text i are those from word_starts[i] up to word_starts[i + 1].
        unspaced: whether each word is a character of a script without spaces, bool.
        hashes: the hash of each word, uint64; equal words have equal hashes.
    """

    def __init__(self, texts: Sequence[str], fold: bool = True) -> None:
        import numpy

        lengths = numpy.fromiter((len(text) + 1 for text in texts), numpy.int64, len(texts))
        joined = "".join(text + "\n" for text in texts)
        codes = _codes(joined)
        self.classes = _class_table()[codes]
        self.text_starts = numpy.concatenate([[0], numpy.cumsum(lengths)])
        self._find_words()
        # A capital may fold to two characters, which would shift everything after it; then case is not ignored.
        folded = joined.lower() if fold else joined
        self.hashes = self._hash(codes if len(folded) != len(joined) else _codes(folded))

    def _find_words(self) -> None:
        import numpy

        unspaced = self.classes == UNSPACED
        spaced = (self.classes == LETTER) | (self.classes == DIGIT)
        before = numpy.concatenate([[False], spaced[:-1]])
        self.starts = numpy.flatnonzero(unspaced | (spaced & ~before))
        behind = numpy.concatenate([spaced[1:], [False]]) if len(spaced) else spaced
        self.ends = numpy.flatnonzero(unspaced | (spaced & ~behind)) + 1
        self.unspaced = unspaced[self.starts]
        self.word_starts = numpy.searchsorted(self.starts, self.text_starts)

    def _hash(self, codes: Array) -> Array:
        """Hashes each word as a polynomial of its characters, by prefix sums modulo 2^64, where the base has an
        inverse."""
        sums = _prefix_sums(codes)
        _, inverses = _powers(len(codes))
        return scramble((sums[self.ends] - sums[self.starts]) * inverses[self.starts])

    def __len__(self) -> int:
        return len(self.text_starts) - 1

    def per_text(self, values: Array) -> Array:
        """Sums a per-character value over each text."""
        import numpy

        sums = numpy.concatenate([[0], numpy.cumsum(values, dtype=numpy.int64)])
        result: Array = sums[self.text_starts[1:]] - sums[self.text_starts[:-1]]
        return result

    def per_text_words(self, values: Array) -> Array:
        """Sums a per-word value over each text."""
        import numpy

        sums = numpy.concatenate([[0], numpy.cumsum(values, dtype=numpy.int64)])
        result: Array = sums[self.word_starts[1:]] - sums[self.word_starts[:-1]]
        return result

    @cached_property
    def word_texts(self) -> Array:
        """Returns the number of each word's text, int64."""
        import numpy

        return numpy.repeat(numpy.arange(len(self)), numpy.diff(self.word_starts))

    def units_per_word(self) -> Array:
        """Returns how many units make a word in each text, int64: UNITS_PER_WORD if most units are characters of
        scripts without spaces, else 1."""
        import numpy

        mostly = 2 * self.per_text_words(self.unspaced) > numpy.diff(self.word_starts)
        return numpy.where(mostly, UNITS_PER_WORD, 1)

    def ngrams(self, n: int) -> Array:
        """Returns a hash of every n consecutive words, uint64, shape (words - n + 1,), even across text boundaries."""
        count = max(0, len(self.hashes) - n + 1)
        _, inverses = _powers(count)
        return scramble((self._word_sums[n : n + count] - self._word_sums[:count]) * inverses[:count])

    @cached_property
    def _word_sums(self) -> Array:
        """Returns prefix sums for the hashes of n-grams, like those of _hash for words."""
        return _prefix_sums(self.hashes)


def _prefix_sums(values: Array) -> Array:
    """Returns the sums of the first 0, 1, ... values, each times a power of the base; uint64."""
    import numpy

    sums = numpy.zeros(len(values) + 1, dtype=numpy.uint64)
    numpy.cumsum(values * _powers(len(values))[0][: len(values)], out=sums[1:])
    return sums


_BASE = 0x9E3779B97F4A7C15


@lru_cache(maxsize=2)
def _powers_up_to(size: int) -> tuple[Array, Array]:
    import numpy

    def powers(base: int) -> Array:
        row = numpy.full(size, base, dtype=numpy.uint64)
        row[0] = 1
        return numpy.cumprod(row, dtype=numpy.uint64)

    return powers(_BASE), powers(pow(_BASE, -1, 2**64))


def _powers(size: int) -> tuple[Array, Array]:
    """Returns powers of the base and of its inverse, at least `size` of each."""
    return _powers_up_to(max(1 << 16, 1 << size.bit_length()))


def _codes(text: str) -> Array:
    import numpy

    return numpy.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=numpy.uint32)


def scramble(values: Array) -> Array:
    """Applies a bijection on uint64 that spreads every bit over all others: the finalizer of MurmurHash3 (Austin
    Appleby)."""
    import numpy

    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        values = values ^ (values >> numpy.uint64(33))
        values = values * numpy.uint64(factor)
    result: Array = values ^ (values >> numpy.uint64(33))
    return result
