"""Clusters near duplicates: texts linked by pairs at or above a similarity.

Texts are numbered in the order of the corpus. In each band of their signatures, texts with equal rows form a group.
Each is compared with the one before it in the group and with the first of it. Pairs whose signatures are similar enough
are edges, and the texts that edges connect are a cluster. So the clusters depend only on the texts and their order.

Everything is sorted rows (sorting.py): keys of bands, pairs, edges. Memory is bounded, however many texts there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .connecting import connect
from .minhash import Banding
from .sorting import DEFAULT_MEMORY, Sorter, distinct

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_AT_ONCE = 1 << 14  # rows or pairs of signatures held in memory
_BAND_BITS = 7  # up to 128 bands


def find_clusters(signatures: Array, threshold: float) -> Array:
    """Returns the first member of each text's cluster: int64, shape (texts,). A text similar to no other is its own.

    Args:
        signatures: uint32, shape (texts, PERMUTATIONS), in the order of the corpus.
        threshold: the minimum estimated similarity of a pair.
    """
    import tempfile

    import numpy

    roots = numpy.arange(len(signatures))
    with tempfile.TemporaryDirectory(prefix="pybpe-") as folder:
        search = Search(f"{folder}/rows", Banding.of(threshold), threshold, DEFAULT_MEMORY)
        search.add(numpy.arange(len(signatures)), signatures)
        clusters = search.find(lambda numbers: signatures[numbers])
        for rows in clusters.blocks():
            roots[rows[:, 0].astype(numpy.int64)] = rows[:, 1]
    return roots


class Search:
    """Near duplicates among texts, whose signatures are added in order.

    Args:
        path: the beginning of the names of temporary files.
        banding: the bands of a signature.
        threshold: the minimum estimated similarity of a pair.
        memory: bytes, approximately.
    """

    def __init__(self, path: str, banding: Banding, threshold: float, memory: int) -> None:
        self._path, self._banding, self._threshold = path, banding, threshold
        self._memory = memory // 2  # rows of one step are read while those of the next one are added
        self._keys = Sorter(f"{path}-bands", 2, self._memory)

    def add(self, numbers: Array, signatures: Array) -> None:
        """Adds texts with these numbers."""
        import numpy

        for start in range(0, len(numbers), _AT_ONCE):
            part = signatures[start : start + _AT_ONCE]
            rows = numpy.empty((self._banding.bands, len(part), 2), dtype=numpy.uint64)
            for band in range(self._banding.bands):
                first = band * self._banding.rows
                rows[band, :, 0] = _band_keys(part[:, first : first + self._banding.rows], band)
            rows[:, :, 1] = numbers[start : start + _AT_ONCE]
            self._keys.add(rows.reshape(-1, 2))

    def find(self, signatures_of: Callable[[Array], Array]) -> Sorter:
        """Returns sorted rows (text, first text of its cluster), without the first texts themselves.

        Args:
            signatures_of: returns the signatures of the texts with these numbers.
        """
        pairs = Sorter(f"{self._path}-pairs", 2, self._memory)
        for rows in _pairs(self._keys.blocks()):
            pairs.add(rows)
        self._keys.close()
        edges = Sorter(f"{self._path}-edges", 2, self._memory)
        for rows in distinct(pairs.blocks()):
            edges.add(self._similar(rows, signatures_of))
        pairs.close()
        return connect(f"{self._path}-trees", edges, self._memory)

    def _similar(self, pairs: Array, signatures_of: Callable[[Array], Array]) -> Array:
        """Returns the pairs whose signatures are similar enough."""
        import numpy

        keep = numpy.zeros(len(pairs), dtype=bool)
        for start in range(0, len(pairs), _AT_ONCE):
            part = pairs[start : start + _AT_ONCE].astype(numpy.int64)
            numbers, places = numpy.unique(part, return_inverse=True)
            first, second = places.reshape(-1, 2).T
            rows = signatures_of(numbers)
            share = numpy.mean(rows[first] == rows[second], axis=1)
            keep[start : start + len(part)] = share >= self._threshold
        return pairs[keep]


def _band_keys(columns: Array, band: int) -> Array:
    """Hashes some columns of signatures to a uint64 that begins with the number of the band."""
    import numpy

    total = numpy.zeros(len(columns), dtype=numpy.uint64)
    for column in range(columns.shape[1]):
        total = _scramble(total + numpy.uint64(1) + columns[:, column])
    shift = numpy.uint64(64 - _BAND_BITS)
    keys: Array = total >> numpy.uint64(_BAND_BITS) | numpy.uint64(band) << shift
    return keys


def _scramble(values: Array) -> Array:
    """Applies a bijection on uint64 that spreads every bit over all others: the finalizer of MurmurHash3 (Austin
    Appleby)."""
    import numpy

    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        values = values ^ (values >> numpy.uint64(33))
        values = values * numpy.uint64(factor)
    result: Array = values ^ (values >> numpy.uint64(33))
    return result


def _pairs(blocks: Iterable[Array]) -> Iterator[Array]:
    """Yields the pairs to compare from sorted rows (key, text): each text with the one before it that has the same key,
    and with the first one that has it."""
    import numpy

    carried = numpy.empty((0, 2), dtype=numpy.uint64)  # the first and the last text of the group that is not complete
    for block in blocks:
        rows = numpy.concatenate([carried, block])
        same = rows[1:, 0] == rows[:-1, 0]
        begins = numpy.flatnonzero(numpy.concatenate([[True], ~same]))
        at = numpy.flatnonzero(same) + 1
        firsts = begins[numpy.searchsorted(begins, at, side="right") - 1]
        texts = rows[:, 1]
        pairs = [numpy.stack([texts[others], texts[at]], axis=1) for others in (firsts, at - 1)]
        found = numpy.concatenate(pairs)
        yield found[found[:, 0] < found[:, 1]]  # without the carried pair of a text with itself
        last = int(begins[-1])
        carried = rows[[last, -1]] if last < len(rows) - 1 else rows[-1:]
