"""MinHash signatures and locality-sensitive hashing, which choose the pairs of texts worth comparing.

Texts are compared by their shingles, runs of SHINGLE_WORDS words. The Jaccard similarity of two sets of shingles is the
size of their intersection divided by that of their union. The share of equal positions in two signatures estimates it
(Broder 1997), with a standard error of sqrt(J (1 - J) / PERMUTATIONS), 0.035 at 0.8. Signatures are cut into bands of
several rows; pairs that agree in all rows of a band are compared. See Leskovec, Rajaraman, Ullman, "Mining of Massive
Datasets", chapter 3. The signatures are made by rensa (extra `dedup`).
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..arguments import utf8
from ..errors import ArgumentError, MissingExtraError
from .units import Units, check_texts, scramble

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

PERMUTATIONS = 128
SHINGLE_WORDS = 5
_SEED = 1
_RECALL = 0.99


def _rensa() -> Any:
    # rensa's threads would only compete with our workers, and do not survive a fork.
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    try:
        import rensa
    except ImportError:
        raise MissingExtraError("finding near duplicates needs a package: pip install 'pybpe[dedup]'") from None
    return rensa


def check_near_dedup(threshold: float) -> None:
    """Raises ArgumentError unless the threshold is above 0 and at most 1; MissingExtraError without rensa."""
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 < threshold <= 1:
        raise ArgumentError(f"near_dedup must be a similarity above 0 and at most 1, such as 0.8, not {threshold!r}")
    _rensa()


class Banding(NamedTuple):
    """How signatures are cut into bands.

    Attributes:
        bands: the number of bands.
        rows: the rows per band.
    """

    bands: int
    rows: int

    @classmethod
    def of(cls, threshold: float) -> Banding:
        """Returns the banding with the most rows, and so the fewest needless comparisons, that still compares a pair at
        the threshold in 99 of 100 cases.

        >>> Banding.of(0.8)
        Banding(bands=21, rows=6)
        """
        for rows in range(PERMUTATIONS, 1, -1):
            banding = cls(PERMUTATIONS // rows, rows)
            if banding.probability(threshold) >= _RECALL:
                return banding
        return cls(PERMUTATIONS, 1)

    def probability(self, similarity: float) -> float:
        """The probability that a pair of this Jaccard similarity is compared: 1 - (1 - s^rows)^bands."""
        return float(1 - (1 - similarity**self.rows) ** self.bands)

    def curve(self) -> list[tuple[float, float]]:
        """Returns (similarity, probability) in steps of 0.1."""
        return [(i / 10, self.probability(i / 10)) for i in range(11)]


def signatures(texts: Sequence[str]) -> Array:
    """Returns the signatures of texts: uint32, shape (texts, PERMUTATIONS).

    Raises:
        MissingExtraError: rensa is not installed.
    """
    import numpy

    texts = check_texts(texts)
    hashes, offsets = shingles(texts, Units(texts))
    matrix = _rensa().RMinHash.digest_matrix_from_flat_token_hashes(hashes, offsets, PERMUTATIONS, _SEED)
    # rensa returns only lists, which take numpy twice as long to read.
    rows = b"".join(array("I", row).tobytes() for row in matrix.to_rows())
    return numpy.frombuffer(rows, dtype=numpy.uint32).reshape(len(texts), PERMUTATIONS)


def shingles(texts: Sequence[str], units: Units) -> tuple[Array, Array]:
    """Returns the hashes of all shingles, uint64, and where each text's begin, uint64, with the end appended.

    A text with fewer words than a shingle is a single shingle.
    """
    import numpy

    sizes = SHINGLE_WORDS * units.units_per_word()
    long = numpy.diff(units.word_starts) >= sizes
    grams = {n: units.ngrams(n) for n in set(sizes[long].tolist())}
    parts: list[Array] = []
    for i, n in enumerate(sizes.tolist()):
        if long[i]:
            parts.append(grams[n][units.word_starts[i] : units.word_starts[i + 1] - n + 1])
        else:
            parts.append(_short(texts[i], units.hashes[units.word_starts[i] : units.word_starts[i + 1]]))
    offsets = numpy.concatenate([[0], numpy.cumsum([len(part) for part in parts])]).astype(numpy.uint64)
    return numpy.concatenate([numpy.empty(0, dtype=numpy.uint64), *parts]), offsets


def _short(text: str, words: Array) -> Array:
    """Returns the only shingle of a short text: its words, or its characters if it has no words."""
    import numpy

    data = words.tobytes() if len(words) else utf8(text)
    return scramble(numpy.frombuffer(hashlib.blake2b(data, digest_size=8).digest(), dtype=numpy.uint64))


def jaccard(first: str, second: str) -> float:
    """Returns the exact Jaccard similarity of two texts' sets of shingles.

    >>> round(jaccard("one two three four five six", "one two three four five seven"), 3)
    0.333
    """
    texts = check_texts([first, second])
    hashes, offsets = shingles(texts, Units(texts))
    middle = int(offsets[1])
    a, b = set(hashes[:middle].tolist()), set(hashes[middle:].tolist())
    return len(a & b) / len(a | b)
