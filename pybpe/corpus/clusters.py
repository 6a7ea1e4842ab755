"""Clusters near duplicates: texts linked by pairs at or above a similarity.

Texts are numbered in the order of the corpus. In each band of their signatures, texts with equal rows form a group.
Each is compared with the one before it in the group and with the first of it. Pairs whose signatures are similar enough
are edges, and the texts that edges connect are a cluster. So the clusters depend only on the texts and their order.

Everything is sorted rows: keys of bands, pairs, edges. Memory is bounded, however many texts there are. The steps from
one to the next run anywhere (stages.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from .._numpy import Array, numpy
from .connecting import connect
from .minhash import Banding
from .sorting import DEFAULT_MEMORY, SortedRows, distinct
from .stages import LocalStages, Stages

_AT_ONCE = 1 << 14  # rows or pairs of signatures held in memory
_BAND_BITS = 7  # up to 128 bands


def find_clusters(signatures: Array, threshold: float) -> Array:
    """Returns the first member of each text's cluster: int64, shape (texts,). A text similar to no other is its own.

    Args:
        signatures: uint32, shape (texts, PERMUTATIONS), in the order of the corpus.
        threshold: the minimum estimated similarity of a pair.
    """
    import tempfile

    roots = numpy.arange(len(signatures))
    banding = Banding.of(threshold)
    with tempfile.TemporaryDirectory(prefix="pybpe-") as folder:
        stages = LocalStages(f"{folder}/rows", DEFAULT_MEMORY)

        def keys(first: int, last: int) -> Iterator[Array]:
            return band_rows(banding, roots, signatures)

        bands = stages.first("bands", keys, [len(signatures) * banding.bands], 2)
        for rows in connected(stages, bands, threshold, lambda numbers: signatures[numbers]).blocks():
            roots[rows[:, 0].astype(numpy.int64)] = rows[:, 1]
    return roots


def band_rows(banding: Banding, numbers: Array, signatures: Array) -> Iterator[Array]:
    """Yields rows (key, text), one for each band of each signature, of texts with these numbers."""
    for start in range(0, len(numbers), _AT_ONCE):
        part = signatures[start : start + _AT_ONCE]
        rows = numpy.empty((banding.bands, len(part), 2), dtype=numpy.uint64)
        for band in range(banding.bands):
            first = band * banding.rows
            rows[band, :, 0] = _band_keys(part[:, first : first + banding.rows], band)
        rows[:, :, 1] = numbers[start : start + _AT_ONCE]
        yield rows.reshape(-1, 2)


def connected(
    stages: Stages, bands: SortedRows, threshold: float, signatures_of: Callable[[Array], Array]
) -> SortedRows:
    """Returns sorted rows (text, first text of its cluster), without the first texts themselves.

    Args:
        stages: does the steps.
        bands: the rows of `band_rows`, sorted; closed when they have been read.
        threshold: the minimum estimated similarity of a pair.
        signatures_of: returns the signatures of the texts with these numbers.
    """
    pairs = stages.then("pairs", _pairs, bands, 2)
    edges = stages.then("edges", partial(_similar, threshold, signatures_of), pairs, 2)
    return connect(stages, edges)


def _similar(threshold: float, signatures_of: Callable[[Array], Array], blocks: Iterable[Array]) -> Iterator[Array]:
    """Yields the pairs whose signatures are similar enough, once each."""
    for pairs in distinct(blocks):
        for start in range(0, len(pairs), _AT_ONCE):
            part = pairs[start : start + _AT_ONCE]
            numbers, places = numpy.unique(part.astype(numpy.int64), return_inverse=True)
            first, second = places.reshape(-1, 2).T
            rows = signatures_of(numbers)
            yield part[numpy.mean(rows[first] == rows[second], axis=1) >= threshold]


def _band_keys(columns: Array, band: int) -> Array:
    """Hashes some columns of signatures to a uint64 that begins with the number of the band."""
    total = numpy.zeros(len(columns), dtype=numpy.uint64)
    for column in range(columns.shape[1]):
        total = _scramble(total + numpy.uint64(1) + columns[:, column])
    shift = numpy.uint64(64 - _BAND_BITS)
    keys: Array = total >> numpy.uint64(_BAND_BITS) | numpy.uint64(band) << shift
    return keys


def _scramble(values: Array) -> Array:
    """Applies a bijection on uint64 that spreads every bit over all others: the finalizer of MurmurHash3 (Austin
    Appleby)."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        values = values ^ (values >> numpy.uint64(33))
        values = values * numpy.uint64(factor)
    result: Array = values ^ (values >> numpy.uint64(33))
    return result


def _pairs(blocks: Iterable[Array]) -> Iterator[Array]:
    """Yields the pairs to compare from sorted rows (key, text): each text with the one before it that has the same key,
    and with the first one that has it."""
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
