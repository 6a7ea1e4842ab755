"""Heuristic filters: numeric measures of documents, and limits on them.

Sources of the rules and thresholds:

- Gopher: Rae et al. 2021, "Scaling Language Models" (arXiv:2112.11446), appendix A.1.1: quality and repetition.
- C4: Raffel et al. 2020, "Exploring the Limits of Transfer Learning" (arXiv:1910.10683), section 2.2.
- RefinedWeb: Penedo et al. 2023 (arXiv:2306.01116), whose document filters are Gopher's.
- FineWeb: Penedo et al. 2024 (arXiv:2406.17557), section 3.6, three filters on lines.
- ROOTS: Laurencon et al. 2022 (arXiv:2303.03915): shares of special characters, repeated words.

Shares are of characters, and of words.
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import lru_cache
from string import ascii_lowercase
from typing import Any

from .. import _binding
from .._binding import PathLike, path_text
from .._lazy import Array, numpy
from ..arguments import instance, option, param, utf8, whole_number
from ..errors import ArgumentError
from ..reading.streams import read_toml

VARIED = ("min_chars", "max_chars", "min_words", "max_words", "max_symbol_ratio", "max_digit_ratio")  # with a flag
_MOST_WORDS = 1000  # the longest n-gram
_NO_SHARES = ("chars", "words", "distinct_words", "mean_word_length", "hashes_per_word")  # all others are from 0 to 1
GOPHER_TOP_NGRAMS = {2: 0.20, 3: 0.18, 4: 0.16}
GOPHER_REPEATED_NGRAMS = {5: 0.15, 6: 0.14, 7: 0.13, 8: 0.12, 9: 0.11, 10: 0.10}


@dataclass(frozen=True)
class Filters:
    """Limits on documents. pybpe drops a document that violates a limit, with the name of the first such limit as the
    reason. None means no limit.

    Attributes:
        min_chars, max_chars: number of characters.
        min_words, max_words: number of words. Gopher: 50 to 100,000.
        min_mean_word_length, max_mean_word_length: characters per word, over words in scripts with spaces, if these are
            the majority. Gopher: 3 to 10.
        max_symbol_ratio: the share of non-space characters that are neither letters nor digits ("special" in ROOTS). A
            Chinese character carries as much as several letters, so it counts as LETTERS_PER_UNIT letters. Otherwise,
            Chinese would look as full of symbols as program code. Nearly all paragraphs of English and Chinese books
            are below 0.12. Half the paragraphs of program code are above 0.16.
        max_digit_ratio: the share of non-space characters that are digits.
        max_hashes_per_word: "#" characters and ellipses per word. Gopher: 0.1.
        min_alphabetic_words: share of words that contain a letter. Gopher: 0.8.
        min_distinct_words: number of distinct words, ignoring case.
        max_repeated_words: share of words equal to the text's most frequent word.
        max_repeated_lines: share of lines that repeat an earlier one. Gopher: 0.3.
        max_repeated_line_chars: share of characters in such lines. Gopher: 0.2. FineWeb: 0.1.
        max_repeated_paragraphs: share of paragraphs, separated by blank lines, that repeat an earlier one. Gopher: 0.3.
        max_repeated_paragraph_chars: share of characters in such paragraphs. Gopher: 0.2.
        max_top_ngrams: n -> share of characters in the most frequent n consecutive words. Gopher: GOPHER_TOP_NGRAMS.
        max_repeated_ngrams: n -> share of characters in n consecutive words that occurred before. A character counts
            once. Gopher: GOPHER_REPEATED_NGRAMS.
        max_bullet_lines: share of lines that begin with a bullet. Gopher: 0.9.
        max_ellipsis_lines: share of lines that end with an ellipsis. Gopher: 0.3.
        max_short_lines: share of lines under 30 columns. A Chinese character takes two. FineWeb: 0.67.
        min_terminal_lines: share of lines that end with punctuation. FineWeb: 0.12.

    Only the repeats count, not the first occurrence, like in FineWeb's code.

    Raises:
        ArgumentError: a limit is not a number or is negative, a limit of a share is above 1, a minimum exceeds its
            maximum, or an n is not from 1 to 1000.
    """

    min_chars: int | None = option(None, "characters")
    max_chars: int | None = option(None, "characters")
    min_words: int | None = option(None, "words; two Chinese characters count as one word")
    max_words: int | None = option(None, "words; two Chinese characters count as one word")
    min_mean_word_length: float | None = option(None, "letters per word, in scripts with spaces")
    max_mean_word_length: float | None = option(None, "letters per word, in scripts with spaces")
    max_symbol_ratio: float | None = option(None, "share of characters that are not letters, digits or spaces", "X")
    max_digit_ratio: float | None = option(None, "share of digits among characters", "X")
    max_hashes_per_word: float | None = option(None, "# and ... per word")
    min_alphabetic_words: float | None = option(None, "share of words with a letter")
    min_distinct_words: int | None = option(None, "distinct words")
    max_repeated_words: float | None = option(None, "share of words that are the most frequent one")
    max_repeated_lines: float | None = option(None, "share of lines that repeat an earlier one")
    max_repeated_line_chars: float | None = option(None, "share of characters in such lines")
    max_repeated_paragraphs: float | None = option(None, "share of paragraphs that repeat an earlier one")
    max_repeated_paragraph_chars: float | None = option(None, "share of characters in such paragraphs")
    max_top_ngrams: Mapping[int, float] | None = option(
        None, "share of characters in the most frequent sequence of N words"
    )
    max_repeated_ngrams: Mapping[int, float] | None = option(
        None, "share of characters in sequences of N words that occurred before"
    )
    max_bullet_lines: float | None = option(None, "share of lines that begin with a bullet")
    max_ellipsis_lines: float | None = option(None, "share of lines that end with an ellipsis")
    max_short_lines: float | None = option(None, "share of lines below 30 columns")
    min_terminal_lines: float | None = option(None, "share of lines that end with punctuation")

    def __post_init__(self) -> None:
        for name in ("max_top_ngrams", "max_repeated_ngrams"):
            limits = getattr(self, name)
            instance(name, limits, (Mapping, type(None)), "limits by n, such as {2: 0.2}")
            if limits is not None:
                limits = {whole_number(f"n of {name}", n, 1, _MOST_WORDS): share for n, share in limits.items()}
                object.__setattr__(self, name, limits)
        for name, value in self.limits():
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= 0:
                raise ArgumentError(f"{param(name)} must be a number of at least 0, not {value!r}")
            if value > 1 and name[len("max_") :] not in _NO_SHARES:
                raise ArgumentError(f"{param(name)} is a share: it must be from 0 to 1, not {value!r}")
        for what in ("chars", "words", "mean_word_length"):
            least, most = vars(self)["min_" + what], vars(self)["max_" + what]
            if least is not None and most is not None and least > most:
                raise ArgumentError(
                    f"{param(**{'min_' + what: least})} must not exceed {param(**{'max_' + what: most})}"
                )

    @classmethod
    def gopher(cls, **changes: Any) -> Filters:
        """Returns Gopher's rules, except the one on English stop words. RefinedWeb uses the same rules. `changes`
        override some."""
        rules: dict[str, Any] = {
            "min_words": 50,
            "max_words": 100_000,
            "min_mean_word_length": 3,
            "max_mean_word_length": 10,
            "max_hashes_per_word": 0.1,
            "min_alphabetic_words": 0.8,
            "max_repeated_lines": 0.3,
            "max_repeated_line_chars": 0.2,
            "max_repeated_paragraphs": 0.3,
            "max_repeated_paragraph_chars": 0.2,
            "max_top_ngrams": GOPHER_TOP_NGRAMS,
            "max_repeated_ngrams": GOPHER_REPEATED_NGRAMS,
            "max_bullet_lines": 0.9,
            "max_ellipsis_lines": 0.3,
        }
        return cls(**{**rules, **changes})

    @classmethod
    def fineweb(cls, **changes: Any) -> Filters:
        """Returns Gopher's rules plus FineWeb's rules on lines."""
        rules = {"max_repeated_line_chars": 0.1, "max_short_lines": 0.67, "min_terminal_lines": 0.12}
        return cls.gopher(**{**rules, **changes})

    @classmethod
    def from_file(cls, path: PathLike, **changes: Any) -> Filters:
        """Reads limits from a TOML file, such as `to_toml` returns. `changes` override some.

        Raises:
            ArgumentError: the file has something else than limits. FileError, FormatError: it cannot be read, or is not
            TOML.
        """
        found, name = read_toml(path), path_text(path)
        known = [field.name for field in fields(cls)]
        for key, value in found.items():
            if key not in known:
                meant = get_close_matches(key, known, cutoff=0)
                raise ArgumentError(f"{name}: {key} is not a limit; did you mean {meant[0]}?")
            if isinstance(value, Mapping):  # all names in TOML are strings
                found[key] = {int(n) if n.isdecimal() else n: share for n, share in value.items()}
        try:
            return cls(**{**found, **changes})
        except ArgumentError as error:
            raise ArgumentError(f"{name}: {error}") from None

    def to_toml(self) -> str:
        """Returns the limits as a TOML file, where limits that are not set are comments."""
        lines = []
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Mapping):
                value = f"{{ {', '.join(f'{n} = {share}' for n, share in value.items())} }}"
            limit = f"# {field.name} =" if value is None else f"{field.name} = {value}"
            lines.append(f"{limit}  # {field.metadata['help']}")
        return "\n".join(lines) + "\n"

    def limits(self) -> list[tuple[str, Any]]:
        """Returns (name, limit) for every limit that is set. Limits of n-grams have n in their names."""
        found = []
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, Mapping):
                found += [(f"{field.name}_{n}", limit) for n, limit in sorted(value.items())]
            elif value is not None:
                found.append((field.name, value))
        return found

    def reasons(self, texts: Sequence[str]) -> list[str | None]:
        """Returns the reasons why documents are dropped, in order: None for a document that is kept.

        >>> Filters(min_chars=5, max_digit_ratio=0.5).reasons(["hi", "a text", "1234567 a"])
        ['min_chars', None, 'max_digit_ratio']
        """
        encoded = check_texts(texts)
        reasons = self.judge(encoded)[0]
        return [reasons.get(place) for place in range(len(encoded))]

    def judge(self, texts: _binding.Strings) -> tuple[dict[int, str], dict[str, Array], Array]:
        """Returns the reasons by the places of the documents that are dropped, the measures they come from: name ->
        numbers, one per document, and the documents' numbers of characters."""
        reasons: dict[int, str] = {}
        limits = self.limits()
        measures = Measures(texts, [name[4:] for name, _ in limits])
        known = {name[4:]: measures.value(name[4:]) for name, _ in limits}  # without min_ or max_
        for name, limit in limits:
            values = known[name[4:]]
            # NaN means that the measure does not apply to the text: both comparisons are false.
            for i in (values < limit if name.startswith("min_") else values > limit).nonzero()[0].tolist():
                reasons.setdefault(i, name)
        return reasons, known, measures.value("chars")


# ----------------------------------------------------------------------------------------------------
# The measures: shares and counts, from the counts of the C library.
#
# A word is a run of letters, marks and digits. Chinese, Japanese, Thai and their like are written without spaces, so
# there a character is a unit, and two units count as one word: Chinese words have one to three characters, about two on
# average. So a limit on words, or an n-gram of n words, means nearly the same in every language.


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
    not apply to a text. `names` are the measures that the filters need. C counts only these."""

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
        words, unspaced = self._count("words"), self._count("unspaced")
        if name == "mean_word_length":
            spaced = words - unspaced
            return _share(self._count("word_chars") - unspaced, spaced * (2 * spaced > words))
        if name == "symbol_ratio":
            letters = self._count("visible") + (LETTERS_PER_UNIT - 1) * unspaced
            return _share(self._count("symbols"), letters)
        in_words: Array = words / numpy.where(2 * unspaced > words, UNITS_PER_WORD, 1)
        return in_words if name == "words" else _share(self._count("marks"), in_words)  # hashes_per_word


def _n_of(name: str) -> int:
    return int(name.rpartition("_")[2])


def _share(part: Array, whole: Array) -> Array:
    """Returns part / whole, or NaN where whole is 0."""
    shares: Array = numpy.divide(part, whole, out=numpy.full(len(part), numpy.nan), where=whole > 0)
    return shares
