"""Finds connected components of a graph from its sorted edges, in bounded memory.

Each component becomes a star: edges from its least node to all others. This is the alternating algorithm of Kiveris,
Lattanzi, Mirrokni, Rastogi and Vassilvitskii, "Connected Components in MapReduce and Beyond" (2014). Each of its two
steps sorts edges by a node, and connects neighbors to the least one of them:

- the large step connects those neighbors of a node that are above it to the least of its neighbors and itself;
- the small step connects those that are below it, and the node itself, to the least of them.

Neither step changes which nodes are connected. When a round of both changes no edge, all components are stars.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .sorting import Sorter, distinct

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]


def connect(path: str, edges: Sorter, memory: int) -> Sorter:
    """Returns sorted rows (node, least node of its component), one for each node that is not the least one.

    Args:
        path: the beginning of the names of temporary files.
        edges: rows of two different nodes; closed when they have been read.
        memory: bytes, approximately.
    """
    number = 0
    before = None
    while True:
        large = Sorter(f"{path}-large-{number}", 2, memory)
        for rows in edges.blocks():
            large.add(rows)
            large.add(rows[:, ::-1])
        edges.close()
        small = Sorter(f"{path}-small-{number}", 2, memory)
        for rows in _large_step(large.blocks()):
            small.add(rows)
        large.close()
        edges = Sorter(f"{path}-edges-{number}", 2, memory)
        for rows in _small_step(small.blocks()):
            edges.add(rows)
        small.close()
        edges, after = _distinct_edges(f"{path}-stars-{number}", edges, memory)
        if after == before:
            return edges
        before = after
        number += 1


def _large_step(blocks: Iterable[Array]) -> Iterator[Array]:
    """Yields edges (node, lower node) from sorted edges in both directions."""
    import numpy

    for rows, least in _with_least(blocks):
        above = rows[:, 1] > rows[:, 0]
        yield numpy.stack([rows[above, 1], numpy.minimum(rows[above, 0], least[above])], axis=1)


def _small_step(blocks: Iterable[Array]) -> Iterator[Array]:
    """Yields edges (node, lower node) from sorted edges (node, lower node)."""
    import numpy

    for rows, least in _with_least(blocks):
        others = rows[:, 1] != least
        yield numpy.stack([rows[~others, 0], least[~others]], axis=1)  # the node itself
        yield numpy.stack([rows[others, 1], least[others]], axis=1)


def _with_least(blocks: Iterable[Array]) -> Iterator[tuple[Array, Array]]:
    """Yields sorted rows, and for each the least second number of the rows that have its first number."""
    import numpy

    carried = numpy.empty((0, 2), dtype=numpy.uint64)  # the first row of the last node, which may continue
    for block in blocks:
        rows = numpy.concatenate([carried, block])
        begins = numpy.flatnonzero(numpy.concatenate([[True], rows[1:, 0] != rows[:-1, 0]]))
        sizes = numpy.diff(numpy.append(begins, len(rows)))
        least = numpy.repeat(rows[begins, 1], sizes)
        yield rows[len(carried) :], least[len(carried) :]
        carried = rows[begins[-1] : begins[-1] + 1]


def _distinct_edges(path: str, edges: Sorter, memory: int) -> tuple[Sorter, tuple[int, int]]:
    """Returns the edges without repeats, and what they have in common only with the same edges: their number, and a sum
    of hashes."""
    import numpy

    result = Sorter(path, 2, memory)
    count = total = 0
    for rows in distinct(edges.blocks()):
        result.add(rows)
        count += len(rows)
        mixed = rows[:, 0] * numpy.uint64(0x9E3779B97F4A7C15) ^ rows[:, 1] * numpy.uint64(0xC4CEB9FE1A85EC53)
        mixed = (mixed ^ mixed >> numpy.uint64(29)) * numpy.uint64(0xFF51AFD7ED558CCD)
        total = (total + int((mixed ^ mixed >> numpy.uint64(32)).sum())) % 2**64
    edges.close()
    return result, (count, total)
