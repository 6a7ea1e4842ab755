"""The measures of documents that filters limit: shares and counts, from the counts of the C library.

A word is a run of letters, marks and digits. Chinese, Japanese, Thai and their like are written without spaces, so
there a character is a unit, and two units count as one word: Chinese words have one to three characters, about two on
average. So a limit on words, or an n-gram of n words, means nearly the same in every language.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from string import ascii_lowercase

from .. import _binding
from .._lazy import Array, numpy
from ..arguments import instance, utf8
from ..errors import ArgumentError

TOP_NGRAMS, REPEATED_NGRAMS = "top_ngrams_", "repeated_ngrams_"
_OF_WORDS = ("distinct_words", "repeated_words")
_COUNTS = {"chars": "chars", "distinct_words": "distinct"}
_SHARES = {  # measure -> the counts of a part and of the whole
    "digit_ratio": ("digits", "visible"),
    "alphabetic_words": ("alphabetic", "words"),
    "repeated_words": ("top_count", "words"),
    "bullet_lines": ("bullet_lines", "lines"),
    "ellipsis_lines": ("ellipsis_lines", "lines"),
    "short_lines": ("short_lines", "lines"),
    "terminal_lines": ("terminal_lines", "lines"),
    "repeated_lines": ("repeated_lines", "lines"),
    "repeated_line_chars": ("repeated_line_chars", "line_chars"),
    "repeated_paragraphs": ("repeated_paragraphs", "paragraphs"),
    "repeated_paragraph_chars": ("repeated_paragraph_chars", "paragraph_chars"),
}
_CLASS = {name: number for number, name in enumerate(_binding.CHARACTERS)}

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
_CASED = 0x20000  # no capitals above this
_UTF_32 = f"utf-32-{sys.byteorder[0]}e"
_TWO = "\u0130"  # the capital whose lowercase is two characters


@lru_cache(maxsize=1)
def characters() -> _binding.Characters:
    """Returns the tables. They follow Python's own Unicode version."""
    return _binding.Characters(bytes(_classes()), _lower())


def _classes() -> bytearray:
    letter, symbol = _CLASS["LETTER"], _CLASS["SYMBOL"]
    kinds = {"L": letter, "M": letter, "N": _CLASS["DIGIT"], "P": _CLASS["PUNCTUATION"], "Z": _CLASS["SPACE"]}
    of_categories = {kind + c: kinds.get(kind, symbol) for kind in "LMNPZSC" for c in ascii_lowercase}
    table = bytearray([symbol]) * _binding.CODE_POINTS
    table[:_ASSIGNED] = bytes(map(of_categories.__getitem__, map(unicodedata.category, _code_points(_ASSIGNED))))
    unspaced = bytes.maketrans(bytes([letter]), bytes([_CLASS["UNSPACED"]]))
    for first, last in _UNSPACED:
        table[first : last + 1] = table[first : last + 1].translate(unspaced)
    for space in b"\t\n\v\f\r\x85":
        table[space] = _CLASS["SPACE"]
    table[0xE0100:0xE01F0] = bytes([letter]) * 0xF0  # variation selectors are marks
    return table


def _lower() -> bytes:
    """Returns the lowercase of every code point. The only capital whose lowercase is two characters keeps its case.
    Both forms of a small sigma are the same letter."""
    characters = _code_points(_CASED).replace(_TWO, " ").lower()
    characters = characters[: ord(_TWO)] + _TWO + characters[ord(_TWO) + 1 :]
    return characters.replace("ς", "σ").encode(_UTF_32, "surrogatepass")


def _code_points(count: int) -> str:
    return numpy.arange(count, dtype=numpy.uint32).tobytes().decode(_UTF_32, "surrogatepass")


def check_texts(texts: Iterable[str]) -> _binding.Strings:
    """Returns texts as UTF-8. Raises ArgumentError for a single text, or for bytes, which have no characters."""
    if isinstance(texts, str):
        raise ArgumentError("expected a list of texts, not one str")
    texts = list(texts)
    for text in texts:
        instance("a text", text, str, "a str")
    return _binding.Strings([bytes(utf8(text)) for text in texts])


class Measures:
    """The measures of some texts in UTF-8: name -> array of one number per text. NaN means that a measure does
    not apply to a text. `names` are the measures that will be asked for: they decide what C counts."""

    def __init__(self, texts: _binding.Strings, names: Iterable[str]) -> None:
        names = {*names}
        self._ngrams = sorted({_n_of(name) for name in names if name.startswith((TOP_NGRAMS, REPEATED_NGRAMS))})
        repeated_words = not names.isdisjoint(_OF_WORDS)
        lines = any(_SHARES.get(name, ("", ""))[1].startswith(("line", "paragraph")) for name in names)
        words = not names <= {"chars"}
        counts = _binding.measure_texts(texts, characters(), self._ngrams, words, repeated_words, lines)
        self._counts = counts.astype("int64")

    def _count(self, name: str) -> Array:
        result: Array = self._counts[:, _binding.MEASURES[name]]
        return result

    def value(self, name: str) -> Array:
        """Returns a measure by the name of its limit, without min_ or max_.

        >>> Measures(_binding.Strings([b"some 12"]), ["digit_ratio"]).value("digit_ratio").tolist()
        [0.3333333333333333]
        """
        if name.startswith((TOP_NGRAMS, REPEATED_NGRAMS)):
            column = len(_binding.MEASURES) + 2 * self._ngrams.index(_n_of(name)) + name.startswith(REPEATED_NGRAMS)
            return _share(self._counts[:, column], self._count("word_chars"))
        if name in _SHARES:
            part, whole = _SHARES[name]
            return _share(self._count(part), self._count(whole))
        if name in _COUNTS:
            return self._count(_COUNTS[name])
        value: Array = getattr(self, "_" + name)()
        return value

    def _words(self) -> Array:
        units, unspaced = self._count("words"), self._count("unspaced")
        return units / numpy.where(2 * unspaced > units, UNITS_PER_WORD, 1)

    def _mean_word_length(self) -> Array:
        words, unspaced = self._count("words"), self._count("unspaced")
        spaced = words - unspaced
        return _share(self._count("word_chars") - unspaced, spaced * (2 * spaced > words))

    def _symbol_ratio(self) -> Array:
        letters = self._count("visible") + (LETTERS_PER_UNIT - 1) * self._count("unspaced")
        return _share(self._count("symbols"), letters)

    def _hashes_per_word(self) -> Array:
        return _share(self._count("marks"), self._words())


def _n_of(name: str) -> int:
    return int(name.rpartition("_")[2])


def _share(part: Array, whole: Array) -> Array:
    """Returns part / whole, or NaN where whole is 0."""
    shares: Array = numpy.divide(part, whole, out=numpy.full(len(part), numpy.nan), where=whole > 0)
    return shares
