"""Clusters near duplicates: texts linked by pairs at or above a similarity.

Bands are processed one after another. Texts that agree in a band are adjacent when their keys are sorted. Each is
compared with the one before it and with the first of its group. Pairs whose signatures are similar enough link their
clusters. So the clusters depend only on the texts and their order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .minhash import Banding
from .units import scramble

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_AT_ONCE = 1 << 14  # rows or pairs of signatures held in memory


def find_clusters(signatures: Array, threshold: float) -> Array:
    """Returns the first member of each text's cluster: int64, shape (texts,). A text similar to no other is its own.

    Memory: about 40 bytes per text, besides the signatures, which may be a memory map.

    Args:
        signatures: uint32, shape (texts, PERMUTATIONS), in the order of the corpus.
        threshold: the minimum estimated similarity of a pair.
    """
    import numpy

    clusters = _Clusters(len(signatures))
    banding = Banding.of(threshold)
    for band in range(banding.bands):
        keys = _band_keys(signatures, band * banding.rows, banding.rows)
        order = numpy.argsort(keys, kind="stable")
        ordered = keys[order]
        same = numpy.flatnonzero(ordered[1:] == ordered[:-1]) + 1  # positions in `order` that continue a group
        begins = numpy.flatnonzero(numpy.concatenate([[True], ordered[1:] != ordered[:-1]]))
        firsts = begins[numpy.searchsorted(begins, same, side="right") - 1]
        for others in (firsts, same - 1):
            clusters.link(signatures, order[others], order[same], threshold)
    return clusters.roots()


def _band_keys(signatures: Array, first: int, rows: int) -> Array:
    """Hashes some columns of each row to a uint64."""
    import numpy

    keys = numpy.empty(len(signatures), dtype=numpy.uint64)
    for start in range(0, len(signatures), _AT_ONCE):
        part = signatures[start : start + _AT_ONCE, first : first + rows].astype(numpy.uint64)
        total = numpy.zeros(len(part), dtype=numpy.uint64)
        for column in range(rows):
            total = scramble(total + numpy.uint64(1) + part[:, column])
        keys[start : start + _AT_ONCE] = total
    return keys


class _Clusters:
    """Disjoint sets of texts, each identified by its first member."""

    def __init__(self, size: int) -> None:
        import numpy

        self._parents = numpy.arange(size)

    def link(self, signatures: Array, first: Array, second: Array, threshold: float) -> None:
        """Links the pairs that are similar enough and not linked yet."""
        import numpy

        roots = self.roots()
        apart = roots[first] != roots[second]
        first, second = first[apart], second[apart]
        for start in range(0, len(first), _AT_ONCE):
            a, b = first[start : start + _AT_ONCE], second[start : start + _AT_ONCE]
            similar = numpy.mean(signatures[a] == signatures[b], axis=1) >= threshold
            for x, y in zip(a[similar].tolist(), b[similar].tolist()):
                self._union(x, y)

    def _union(self, a: int, b: int) -> None:
        a, b = self._root(a), self._root(b)
        self._parents[max(a, b)] = min(a, b)

    def _root(self, i: int) -> int:
        parents = self._parents
        while parents[i] != i:
            parents[i] = parents[parents[i]]  # halves the path for the next time
            i = int(parents[i])
        return i

    def roots(self) -> Array:
        """Returns the first member of each text's cluster."""
        import numpy

        # Parents come earlier, so this terminates: each round doubles the distance it follows.
        while not numpy.array_equal(above := self._parents[self._parents], self._parents):
            self._parents = above
        return self._parents
