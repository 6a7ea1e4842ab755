"""Best-fit decreasing: from the longest to the shortest, a piece goes to the row with the least space that fits it.

Ding et al., "Fewer Truncations Improve Language Modeling" (2024), use it for documents. The bits of an integer say
which spaces there are, so a shift finds the least one that fits. Pieces of equal length are placed together: if a row
with space s is the best for one piece of length L, and L fits into s several times, then the same row is the best for
the next, as its space shrinks.
"""

from __future__ import annotations

from ... import _binding
from ..._lazy import Array, numpy


def best_fit(lengths: Array, size: int) -> Array:
    """Returns the row of every piece, from 0: int64, the shape of lengths. No row is empty.

    Args:
        lengths: of the pieces, each from 1 to `size`.
        size: the size of a row.

    >>> import numpy
    >>> best_fit(numpy.array([3, 5, 2, 6, 2]), 8).tolist()
    [1, 1, 0, 0, 2]
    """
    order = numpy.argsort(-lengths, kind="stable")
    found = numpy.zeros(len(lengths), dtype=numpy.int64)
    rows = _Rows(size)
    values, counts = numpy.unique(lengths, return_counts=True)
    at = 0
    for length, count in zip(values[::-1].tolist(), counts[::-1].tolist()):
        end = at + count
        while at < end:
            chosen, each = rows.place(length, end - at)
            placed = len(chosen) * each
            found[order[at : at + placed]] = numpy.repeat(chosen, each)
            at += placed
    return found


def refit(lengths: Array, rows: Array, size: int) -> Array:
    """Packs again what best fit left in rows with space, to need fewer rows: best fit looks at one piece at a time, so
    near the end, when few lengths are left, it leaves small spaces that no piece fits. Returns the row of every piece.
    No row is empty, and full rows stay together.

    Args:
        lengths: of the pieces, each from 1 to `size`.
        rows: the rows of the pieces, from 0. No row is empty.
        size: the size of a row.
    """
    used = numpy.bincount(rows, weights=lengths).astype(numpy.int64)
    is_full = used == size
    if int((size - used).sum()) < size:  # not even one row less is possible
        return rows
    loose = numpy.flatnonzero(~is_full[rows])
    found = _binding.fit_rows(lengths[loose], size)
    if int(found.max()) + 1 >= int((~is_full).sum()):
        return rows
    numbers = numpy.cumsum(is_full) - 1
    again = numbers[rows]
    again[loose] = found + int(is_full.sum())
    return again


class _Rows:
    """The rows, by the space that they have left."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._count = 0
        self._spaces = 0  # bit s: whether a row has space s
        self._by_space: dict[int, list[Array]] = {}

    def place(self, length: int, count: int) -> tuple[Array, int]:
        """Places some of `count` pieces of equal length. Returns the rows, and the numbers of pieces that they get."""
        fitting = self._spaces >> length
        space = length + (fitting & -fitting).bit_length() - 1 if fitting else 0
        each = min((space or self._size) // length, count)
        if space:
            rows = self._take(space, count // each)
        else:
            space, rows = self._size, self._new(count // each)
        self._put(space - each * length, rows)
        return rows, each

    def _new(self, count: int) -> Array:
        self._count += count
        return numpy.arange(self._count - count, self._count)

    def _take(self, space: int, most: int) -> Array:
        """Removes up to `most` rows with this space."""
        stack = self._by_space[space]
        rows = stack.pop()
        if len(rows) > most:
            stack.append(rows[:-most])
        if not stack:
            self._spaces ^= 1 << space
        return rows[-most:]

    def _put(self, space: int, rows: Array) -> None:
        if space:
            self._by_space.setdefault(space, []).append(rows)
            self._spaces |= 1 << space
