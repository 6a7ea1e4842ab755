"""The measures of texts that filters limit: shares and counts, from what the C library counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .. import _binding
from .._numpy import Array, numpy
from ..arguments import utf8
from .characters import LETTERS_PER_UNIT, UNITS_PER_WORD, characters

TOP_NGRAMS, REPEATED_NGRAMS = "top_ngrams_", "repeated_ngrams_"
_OF_WORDS = ("distinct_words", "repeated_words")
_OF_LINES = {
    "bullet_lines": ("bullet_lines", "lines"),
    "ellipsis_lines": ("ellipsis_lines", "lines"),
    "short_lines": ("short_lines", "lines"),
    "terminal_lines": ("terminal_lines", "lines"),
    "repeated_lines": ("repeated_lines", "lines"),
    "repeated_line_chars": ("repeated_line_chars", "line_chars"),
    "repeated_paragraphs": ("repeated_paragraphs", "paragraphs"),
    "repeated_paragraph_chars": ("repeated_paragraph_chars", "paragraph_chars"),
}


class Measures:
    """The measures of some texts: an array of one number per text for each name. NaN means that a measure does not
    apply to a text.

    Args:
        texts: the texts.
        names: the measures that will be asked for. They decide what C counts.
    """

    def __init__(self, texts: Sequence[str | bytes], names: Iterable[str]) -> None:
        names = set(names)
        self._ngrams = sorted({_n_of(name) for name in names if name.startswith((TOP_NGRAMS, REPEATED_NGRAMS))})
        encoded = [bytes(utf8(text)) for text in texts]
        words, lines = (not names.isdisjoint(group) for group in (_OF_WORDS, _OF_LINES))
        counts = _binding.measure_texts(encoded, characters(), self._ngrams, words, lines)
        self._counts = counts.astype("int64")

    def _count(self, name: str) -> Array:
        result: Array = self._counts[:, _binding.MEASURES[name]]
        return result

    def value(self, name: str) -> Array:
        """Returns a measure by the name of its limit, without min_ or max_.

        >>> Measures(["some 12"], ["digit_ratio"]).value("digit_ratio").tolist()
        [0.3333333333333333]
        """
        if name.startswith((TOP_NGRAMS, REPEATED_NGRAMS)):
            column = len(_binding.MEASURES) + 2 * self._ngrams.index(_n_of(name)) + name.startswith(REPEATED_NGRAMS)
            return _share(self._counts[:, column], self._count("word_chars"))
        if name in _OF_LINES:
            part, whole = _OF_LINES[name]
            return _share(self._count(part), self._count(whole))
        value: Array = getattr(self, "_" + name)()
        return value

    def _chars(self) -> Array:
        return self._count("chars")

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

    def _digit_ratio(self) -> Array:
        return _share(self._count("digits"), self._count("visible"))

    def _hashes_per_word(self) -> Array:
        return _share(self._count("marks"), self._words())

    def _alphabetic_words(self) -> Array:
        return _share(self._count("alphabetic"), self._count("words"))

    def _distinct_words(self) -> Array:
        return self._count("distinct")

    def _repeated_words(self) -> Array:
        return _share(self._count("top_count"), self._count("words"))


def _n_of(name: str) -> int:
    return int(name.rpartition("_")[2])


def _share(part: Array, whole: Array) -> Array:
    """Returns part / whole, or NaN where whole is 0."""
    shares: Array = numpy.divide(part, whole, out=numpy.full(len(part), numpy.nan), where=whole > 0)
    return shares
