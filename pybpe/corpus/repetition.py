"""Counts repeated words and n-grams of many texts at once, by sorting hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .units import UNITS_PER_WORD, Units, scramble

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]


def distinct_words(units: Units) -> Array:
    """Returns the number of distinct words in each text, int64."""
    return units.per_text_words(_first(_keys(units, 1)))


def top_counts(units: Units) -> Array:
    """Returns how often each text's most frequent word occurs in it, int64; 0 without words."""
    return _largest(units, _counts(_keys(units, 1)), 1)


def word_chars(units: Units) -> Array:
    """Returns the number of characters in words of each text, int64."""
    return units.per_text_words(units.ends - units.starts)


def top_ngram_chars(units: Units, n: int) -> Array:
    """Returns the number of characters in all occurrences of each text's most frequent n-gram, int64. Of equally
    frequent n-grams the longest counts; 0 if none occurs twice."""
    return _of_each_script(units, n, _top_ngram_chars)


def repeated_ngram_chars(units: Units, n: int) -> Array:
    """Returns the number of characters of each text in n-grams that occurred earlier in it, int64."""
    return _of_each_script(units, n, _repeated_ngram_chars)


def _of_each_script(units: Units, n: int, function: Any) -> Array:
    """Calls function(units, n) with n in units: more than one per word in texts without spaces."""
    import numpy

    scale = units.units_per_word()
    result = function(units, n) if (scale == 1).any() else numpy.zeros(len(units), dtype=numpy.int64)
    if (scale > 1).any():
        result = numpy.where(scale > 1, function(units, n * UNITS_PER_WORD), result)
    return result


def _keys(units: Units, n: int) -> Array:
    """Returns a hash of each n-gram within a text, which differs by text. The last words of a text, which begin no
    n-gram, get unique hashes, so that they never repeat."""
    import numpy

    grams = units.ngrams(n)
    keys = numpy.arange(len(units.hashes), dtype=numpy.uint64)
    inside = _begins(units, n)[: len(grams)]
    texts = units.word_texts[: len(grams)].astype(numpy.uint64) + numpy.uint64(1)
    keys[: len(grams)] = numpy.where(inside, grams ^ texts << numpy.uint64(40), keys[: len(grams)])
    return scramble(keys)


def _begins(units: Units, n: int) -> Array:
    """Returns whether n - 1 more words of its text follow each word."""
    import numpy

    ends = numpy.repeat(units.word_starts[1:], numpy.diff(units.word_starts))
    return numpy.arange(len(ends)) + n <= ends


def _sorted(keys: Array) -> tuple[Array, Array]:
    """Returns the order that sorts keys, equal keys by position, and where in it a new value begins (bool)."""
    import numpy

    size = len(keys)
    bits = numpy.uint64(size.bit_length())
    if size < 1 << 20:  # sorting one array of numbers is many times faster: key in the high bits, position in the low
        packed = numpy.sort(keys >> bits << bits | numpy.arange(size, dtype=numpy.uint64))
        order = (packed & ((numpy.uint64(1) << bits) - numpy.uint64(1))).astype(numpy.int64)
        ordered = packed >> bits
    else:  # too few bits would remain for the keys
        order = numpy.argsort(keys, kind="stable")
        ordered = keys[order]
    new = numpy.ones(size, dtype=bool)
    new[1:] = ordered[1:] != ordered[:-1]
    return order, new


def _first(keys: Array) -> Array:
    """Returns whether each key is the first with its value, bool."""
    import numpy

    order, new = _sorted(keys)
    first = numpy.empty(len(keys), dtype=bool)
    first[order] = new
    return first


def _counts(keys: Array) -> Array:
    """Returns how often each key's value occurs, int64."""
    import numpy

    order, new = _sorted(keys)
    begins = numpy.flatnonzero(new)
    lengths = numpy.diff(numpy.append(begins, len(keys)))
    counts = numpy.empty(len(keys), dtype=numpy.int64)
    counts[order] = numpy.repeat(lengths, lengths)
    return counts


def _largest(units: Units, values: Array, n: int) -> Array:
    """Returns, per text, the largest value of the words that begin an n-gram; 0 if there are none."""
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
    # Each repeat covers n words: +1 where it begins, -1 after its end.
    steps = numpy.zeros(len(repeats) + n + 1, dtype=numpy.int64)
    steps[: len(repeats)] += repeats
    steps[n : n + len(repeats)] -= repeats
    covered = numpy.cumsum(steps)[: len(repeats)] > 0
    return units.per_text_words((units.ends - units.starts) * covered)
