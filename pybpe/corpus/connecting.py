"""Finds connected components of a graph from its sorted edges, in bounded memory.

Each component becomes a star: edges from its least node to all others. This is the alternating algorithm of Kiveris,
Lattanzi, Mirrokni, Rastogi and Vassilvitskii, "Connected Components in MapReduce and Beyond" (2014). Each of its two
steps sorts edges by a node, and connects neighbors to the least one of them:

- the large step connects those neighbors of a node that are above it to the least of its neighbors and itself;
- the small step connects those that are below it, and the node itself, to the least of them.

Neither step changes which nodes are connected. A round is both steps. When no node has a lower neighbor and another
neighbor, all components are stars. The steps run anywhere (stages.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .._numpy import Array, numpy
from .sorting import SortedRows, distinct
from .stages import Stages


def connect(stages: Stages, edges: SortedRows) -> SortedRows:
    """Returns sorted rows (node, least node of its component), one for each node that is not the least one.

    Args:
        stages: does the steps.
        edges: sorted rows of two different nodes; closed when they have been read.
    """
    while True:
        both = stages.then("both", _both_ways, edges, 2)
        if not stages.has(_are_no_stars, both):
            return stages.then("stars", _to_lower, both, 2)
        large = stages.then("large", _large_step, both, 2)
        edges = stages.then("small", _small_step, large, 2)


def _both_ways(blocks: Iterable[Array]) -> Iterator[Array]:
    """Yields edges in both directions."""
    for rows in distinct(blocks):
        yield rows
        yield rows[:, ::-1]


def _are_no_stars(blocks: Iterable[Array]) -> bool:
    """Returns whether, in sorted edges in both directions, a node has a lower neighbor and another neighbor."""
    return any(
        bool(((least < rows[:, 0]) & (rows[:, 1] != least)).any())  # numpy's own type of truth
        for rows, least in _with_least(blocks)
    )


def _to_lower(blocks: Iterable[Array]) -> Iterator[Array]:
    """Yields the edges from a node to a lower one, once each."""
    for rows in distinct(blocks):
        yield rows[rows[:, 1] < rows[:, 0]]


def _large_step(blocks: Iterable[Array]) -> Iterator[Array]:
    """Yields edges (node, lower node) from sorted edges in both directions."""
    for rows, least in _with_least(blocks):
        above = rows[:, 1] > rows[:, 0]
        yield numpy.stack([rows[above, 1], numpy.minimum(rows[above, 0], least[above])], axis=1)


def _small_step(blocks: Iterable[Array]) -> Iterator[Array]:
    """Yields edges (node, lower node) from sorted edges (node, lower node)."""
    for rows, least in _with_least(blocks):
        others = rows[:, 1] != least
        yield numpy.stack([rows[~others, 0], least[~others]], axis=1)  # the node itself
        yield numpy.stack([rows[others, 1], least[others]], axis=1)


def _with_least(blocks: Iterable[Array]) -> Iterator[tuple[Array, Array]]:
    """Yields sorted rows, and for each the least second number of the rows that have its first number."""
    carried = numpy.empty((0, 2), dtype=numpy.uint64)  # the first row of the last node, which may continue
    for block in blocks:
        rows = numpy.concatenate([carried, block])
        begins = numpy.flatnonzero(numpy.concatenate([[True], rows[1:, 0] != rows[:-1, 0]]))
        sizes = numpy.diff(numpy.append(begins, len(rows)))
        least = numpy.repeat(rows[begins, 1], sizes)
        yield rows[len(carried) :], least[len(carried) :]
        carried = rows[begins[-1] : begins[-1] + 1]
