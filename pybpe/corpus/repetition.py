"""Repeated words and n-grams of many texts at once, by sorting hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .units import UNITS_PER_WORD, Units, scramble

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]


def distinct_words(units: Units) -> Array:
    """How many different words each text has, int64."""
    return units.per_text_words(_first(_keys(units, 1)))


def top_counts(units: Units) -> Array:
    """How often each text's most frequent word stands in it, int64; 0 without words."""
    return _largest(units, _counts(_keys(units, 1)), 1)


def word_chars(units: Units) -> Array:
    """The characters in words of each text, int64."""
    return units.per_text_words(units.ends - units.starts)


def top_ngram_chars(units: Units, n: int) -> Array:
    """For each text, how many characters stand in its most frequent n words in a row, at all places, int64. Where
    n-grams are equally frequent, the longest; 0 if none stands twice."""
    return _of_each_script(units, n, _top_ngram_chars)


def repeated_ngram_chars(units: Units, n: int) -> Array:
    """For each text, how many characters stand in n words in a row that stood there before, int64."""
    return _of_each_script(units, n, _repeated_ngram_chars)


def _of_each_script(units: Units, n: int, function: Any) -> Array:
    """function(units, n), where n is in units: more of them a word in texts without spaces."""
    import numpy

    scale = units.units_per_word()
    result = function(units, n) if (scale == 1).any() else numpy.zeros(len(units), dtype=numpy.int64)
    if (scale > 1).any():
        result = numpy.where(scale > 1, function(units, n * UNITS_PER_WORD), result)
    return result


def _keys(units: Units, n: int) -> Array:
    """A hash of each n words in a row that lie in one text, which differs by text; words that begin none, which
    are the last of their text, have one of their own, so that it never repeats."""
    import numpy

    grams = units.ngrams(n)
    keys = numpy.arange(len(units.hashes), dtype=numpy.uint64)
    inside = _begins(units, n)[: len(grams)]
    texts = units.word_texts[: len(grams)].astype(numpy.uint64) + numpy.uint64(1)
    keys[: len(grams)] = numpy.where(inside, grams ^ texts << numpy.uint64(40), keys[: len(grams)])
    return scramble(keys)


def _begins(units: Units, n: int) -> Array:
    """Whether each word has n - 1 more of its text behind it."""
    import numpy

    ends = numpy.repeat(units.word_starts[1:], numpy.diff(units.word_starts))
    return numpy.arange(len(ends)) + n <= ends


def _sorted(keys: Array) -> tuple[Array, Array]:
    """The order that sorts keys, equal ones by their places, and where in it a new value begins (bool)."""
    import numpy

    size = len(keys)
    bits = numpy.uint64(size.bit_length())
    if size < 1 << 20:  # sorting one array of numbers is many times faster: key above, place below
        packed = numpy.sort(keys >> bits << bits | numpy.arange(size, dtype=numpy.uint64))
        order = (packed & ((numpy.uint64(1) << bits) - numpy.uint64(1))).astype(numpy.int64)
        ordered = packed >> bits
    else:  # too few bits would be left for the keys
        order = numpy.argsort(keys, kind="stable")
        ordered = keys[order]
    new = numpy.ones(size, dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return order, new


def _first(keys: Array) -> Array:
    """Whether each key is the first of its value, bool."""
    import numpy

    order, new = _sorted(keys)
    first = numpy.empty(len(keys), dtype=bool)
    first[order] = new
    return first


def _counts(keys: Array) -> Array:
    """How often each key's value occurs, int64."""
    import numpy

    order, new = _sorted(keys)
    begins = numpy.flatnonzero(new)
    lengths = numpy.diff(numpy.append(begins, len(keys)))
    counts = numpy.empty(len(keys), dtype=numpy.int64)
    counts[order] = numpy.repeat(lengths, lengths)
    return counts


def _largest(units: Units, values: Array, n: int) -> Array:
    """The largest value of the words of each text that begin n words in a row; 0 if there are none."""
    import numpy

    result = numpy.zeros(len(units), dtype=numpy.int64)
    numpy.maximum.at(result, units.word_texts, values * _begins(units, n))
    return result


def _top_ngram_chars(units: Units, n: int) -> Array:
    import numpy

    counts = _counts(_keys(units, n))
    lengths = units.ends - units.starts
    sums = numpy.concatenate([[0], numpy.cumsum(lengths)])
    last = numpy.minimum(numpy.arange(len(lengths)) + n, len(lengths))
    chars = (sums[last] - sums[:-1]) * counts
    most = _largest(units, counts, n)[units.word_texts]
    return _largest(units, chars * ((counts == most) & (counts > 1)), n)


def _repeated_ngram_chars(units: Units, n: int) -> Array:
    import numpy

    repeats = ~_first(_keys(units, n))
    # Each repeat covers n words: +1 where it begins, -1 behind it.
    steps = numpy.zeros(len(repeats) + n + 1, dtype=numpy.int64)
    steps[: len(repeats)] += repeats
    steps[n : n + len(repeats)] -= repeats
    covered = numpy.cumsum(steps)[: len(repeats)] > 0
    return units.per_text_words((units.ends - units.starts) * covered)
