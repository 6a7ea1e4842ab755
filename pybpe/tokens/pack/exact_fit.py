"""Packs again what best fit left in rows with space, to need fewer rows.

Best fit looks at one piece at a time, so near the end, when few lengths are left, it leaves small spaces that no piece
fits. Here, each row begins with the longest piece left, and takes two or three pieces that fill it exactly, if
there are such; otherwise the longest that fits, and then the same for the rest of the row. The lengths that are left
are the bits of an integer. With a second integer in reverse order, a shift and an "and" find all pairs with a given
sum, so a row takes O(T / 64) operations per piece in it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from ..._numpy import Array, numpy

_TRIES = 16  # first pieces of three that are tried


def refit(lengths: Array, rows: Array, size: int) -> Array:
    """Returns the row of each piece, in as many rows or fewer. No row is empty, and full rows stay together.

    Args:
        lengths: of the pieces, each from 1 to `size`.
        rows: the row of each, from 0; no row is empty.
        size: the size of a row.
    """
    used = numpy.bincount(rows, weights=lengths).astype(numpy.int64)
    is_full = used == size
    if int((size - used).sum()) < size:  # not even one row less is possible
        return rows
    loose = numpy.flatnonzero(~is_full[rows])
    found = _fill(lengths[loose].tolist(), size)
    if int(found.max()) + 1 >= int((~is_full).sum()):
        return rows
    numbers = numpy.cumsum(is_full) - 1
    again = numbers[rows]
    again[loose] = found + int(is_full.sum())
    return again


def _fill(lengths: list[int], size: int) -> Array:
    """Returns the row of each piece."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, length in enumerate(lengths):
        places[length].append(place)
    left = _Lengths(lengths, size)
    found = numpy.empty(len(lengths), dtype=numpy.int64)
    row = -1
    while parts := left.longest(size):
        row, space = row + 1, size
        while parts:
            for length in parts:
                found[places[length].pop()] = row
                space -= length
            parts = (left.exactly(space) or left.longest(space)) if space else []
    return found


class _Lengths:
    """The lengths of the pieces that are left."""

    def __init__(self, lengths: Iterable[int], size: int) -> None:
        self._size = size
        self._counts = [0] * (size + 1)
        self._bits = self._reversed = 0  # bit L, and bit size - L, say whether a piece of length L is left
        for length in lengths:
            self._add(length)

    def _add(self, length: int) -> None:
        if not self._counts[length]:
            self._flip(length)
        self._counts[length] += 1

    def _remove(self, length: int) -> None:
        self._counts[length] -= 1
        if not self._counts[length]:
            self._flip(length)

    def _flip(self, length: int) -> None:
        self._bits ^= 1 << length
        self._reversed ^= 1 << (self._size - length)

    def longest(self, most: int) -> list[int]:
        """Takes the longest piece of up to `most`. Returns its length; nothing if there is none."""
        length = (self._bits & ((2 << most) - 1)).bit_length() - 1
        return self._taken(length) if length > 0 else []

    def exactly(self, total: int) -> list[int]:
        """Takes two or three pieces with this total. Returns their lengths; nothing if there are none. A single one was
        in this row already: best fit puts it there."""
        if pair := self._pair(total):
            return self._taken(*pair)
        below = total
        for _ in range(_TRIES):
            below = (self._bits & ((1 << below) - 1)).bit_length() - 1
            if below <= 0:
                break
            self._remove(below)
            pair = self._pair(total - below)
            self._add(below)
            if pair:
                return self._taken(below, *pair)
        return []

    def _pair(self, total: int) -> tuple[int, ...]:
        """Returns two lengths with this total, as near to each other as there are; nothing if there are none."""
        half = (total + 1) // 2
        sums = (
            self._bits & (self._reversed >> (self._size - total))
        ) >> half  # bit i: half + i, and the rest of the total
        if total % 2 == 0 and sums & 1 and self._counts[half] < 2:
            sums &= ~1
        if not sums:
            return ()
        length = half + (sums & -sums).bit_length() - 1
        return (length, total - length) if length < total else ()

    def _taken(self, *lengths: int) -> list[int]:
        for length in lengths:
            self._remove(length)
        return list(lengths)
