"""The tables of characters with which the C library measures and compares documents.

A word is a run of letters, marks and digits. Chinese, Japanese, Thai and their like are written without spaces, so
there each character is a unit, and two units count as one word: Chinese words have one to three characters, about two
on average. So a limit on words, or an n-gram of n words, means nearly the same in every language.
"""

from __future__ import annotations

import unicodedata
from array import array
from collections.abc import Sequence
from functools import lru_cache

from .. import _binding
from ..arguments import instance
from ..errors import ArgumentError

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
_FINAL_SIGMA, _SIGMA = 0x03C2, 0x03C3


@lru_cache(maxsize=1)
def characters() -> _binding.Characters:
    """Returns the tables. They follow Python's own Unicode version."""
    return _binding.Characters(bytes(_classes()), _lower().tobytes())


def _classes() -> bytearray:
    letter, symbol = _CLASS["LETTER"], _CLASS["SYMBOL"]
    kinds = {"L": letter, "M": letter, "N": _CLASS["DIGIT"], "P": _CLASS["PUNCTUATION"], "Z": _CLASS["SPACE"]}
    table = bytearray([symbol]) * _binding.CODE_POINTS
    table[:_ASSIGNED] = bytes(kinds.get(unicodedata.category(chr(c))[0], symbol) for c in range(_ASSIGNED))
    unspaced = bytes.maketrans(bytes([letter]), bytes([_CLASS["UNSPACED"]]))
    for first, last in _UNSPACED:
        table[first : last + 1] = table[first : last + 1].translate(unspaced)
    for space in b"\t\n\v\f\r\x85":
        table[space] = _CLASS["SPACE"]
    table[0xE0100:0xE01F0] = bytes([letter]) * 0xF0  # variation selectors are marks
    return table


def _lower() -> array[int]:
    """Returns the lowercase of each code point. The only capital whose lowercase is two characters (U+0130) keeps its
    case. Both forms of a small sigma are the same letter."""
    lower = (chr(c).lower() for c in range(_CASED))
    table = array("I", (ord(text) if len(text) == 1 else c for c, text in enumerate(lower)))
    table[_FINAL_SIGMA] = _SIGMA
    return table


def check_texts(texts: Sequence[str]) -> list[str]:
    """Returns the texts as a list. Raises ArgumentError for a single text, or for bytes, which have no characters."""
    if isinstance(texts, str):
        raise ArgumentError("expected a list of texts, not one str")
    texts = list(texts)
    for text in texts:
        instance("a text", text, str, "a str")
    return texts
