"""MinHash signatures and locality-sensitive hashing, which choose the pairs of texts worth comparing.

Texts are compared by their shingles, runs of five words. The Jaccard similarity of two sets of shingles is the
size of their intersection divided by that of their union. The share of equal positions in two signatures estimates it
(Broder 1997), with a standard error of sqrt(J (1 - J) / PERMUTATIONS), 0.035 at 0.8. Signatures are cut into bands of
several rows; pairs that agree in all rows of a band are compared. See Leskovec, Rajaraman, Ullman, "Mining of Massive
Datasets", chapter 3. The C library makes the signatures (csrc/shingles/shingles_minhash.c).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .. import _binding
from .._numpy import Array
from ..arguments import utf8
from ..errors import ArgumentError
from .characters import characters, check_texts

PERMUTATIONS = _binding.MINHASH_SIZE
_RECALL = 0.99


def check_near_dedup(threshold: float) -> None:
    """Raises ArgumentError unless the threshold is above 0 and at most 1."""
    if isinstance(threshold, bool) or not isinstance(threshold, (int, float)) or not 0 < threshold <= 1:
        raise ArgumentError(f"near_dedup must be a similarity above 0 and at most 1, such as 0.8, not {threshold!r}")


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
    """Returns the signatures of texts: uint32, shape (texts, PERMUTATIONS)."""
    return signatures_of_bytes(list(map(utf8, check_texts(texts))))


def signatures_of_bytes(texts: Sequence[bytes]) -> Array:
    """Returns the signatures of texts in UTF-8."""
    return _binding.minhash_texts(texts, characters())


def jaccard(first: str, second: str) -> float:
    """Returns the exact Jaccard similarity of two texts' sets of shingles.

    >>> round(jaccard("one two three four five six", "one two three four five seven"), 3)
    0.333
    """
    a, b = (set(_binding.shingle_hashes(utf8(text), characters()).tolist()) for text in check_texts([first, second]))
    return len(a & b) / len(a | b)
