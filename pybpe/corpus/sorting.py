"""Sorts rows of integers that may not fit in memory.

Rows are held in memory until they reach a limit; then they are sorted and written to a file, a *run*. In the end all
runs are merged: a block of each is read at a time. Up to the least last row of these blocks, all rows are in memory,
and numpy sorts them.

    runs     1 4 6 | 9 ...      2 3 8 | 8 ...      5 7 7 | 9 ...
    bound    6 is the least of 6, 8 and 7: yields 1 2 3 4 5 6, then reads on
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from ..errors import FormatError, file_error

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

DEFAULT_MEMORY = 1 << 30
LEAST_MEMORY = 10**6
_COPIES = 4  # the rows, their order, and sorted columns, are in memory at once
_MOST_RUNS = 64  # more are merged into one, so that blocks do not become too small
_BLOCK_ROWS = 1 << 16  # of what is held in memory
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


def lexsorted(rows: Array) -> Array:
    """Returns rows in ascending order, by the first column, then by the second one, and so on."""
    import numpy

    return rows[numpy.lexsort(rows.T[::-1])]


def distinct(blocks: Iterable[Array]) -> Iterator[Array]:
    """Yields sorted rows without those that equal the row before them."""
    import numpy

    last: Array | None = None
    for rows in blocks:
        new = numpy.ones(len(rows), dtype=bool)
        new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        new[0] = last is None or bool((rows[0] != last).any())
        last = rows[-1]
        yield rows[new]


class Sorter:
    """Rows of uint64. They can be read, sorted, as often as needed; then no row can be added.

    Args:
        path: the beginning of the names of its files. `close` removes them.
        columns: numbers per row.
        memory: bytes, approximately.
    """

    def __init__(self, path: str, columns: int, memory: int) -> None:
        self._path, self._columns = path, columns
        self._most = max(256, memory // (8 * columns * _COPIES))
        self._held: list[Array] = []
        self._held_rows = self._made = 0
        self._runs: list[tuple[str, int]] = []  # files, and their rows
        self._sorted: Array | None = None  # all rows, if they fit

    def add(self, rows: Array) -> None:
        """Adds rows: uint64, shape (rows, columns)."""
        for start in range(0, len(rows), self._most):
            part = rows[start : start + self._most]
            if self._held_rows + len(part) > self._most:
                self._spill()
            self._held.append(part.copy() if len(part) < len(rows) else part)
            self._held_rows += len(part)

    def blocks(self) -> Iterator[Array]:
        """Yields all rows in order, in blocks."""
        if not self._runs:
            if self._sorted is None:
                self._sorted, self._held = lexsorted(self._joined()), []
            for start in range(0, len(self._sorted), _BLOCK_ROWS):
                yield self._sorted[start : start + _BLOCK_ROWS]
            return
        if self._held:
            self._spill()
        yield from self._merged()

    def close(self) -> None:
        """Removes its files."""
        for path, _ in self._runs:
            os.unlink(path)
        self._runs, self._held, self._sorted = [], [], None

    def _joined(self) -> Array:
        import numpy

        return numpy.concatenate([numpy.empty((0, self._columns), dtype=numpy.uint64), *self._held])

    def _spill(self) -> None:
        """Moves the rows in memory to a new run."""
        rows = lexsorted(self._joined())
        self._held, self._held_rows = [], 0
        if len(self._runs) >= _MOST_RUNS:
            merged = self._written(self._merged())
            for path, _ in self._runs:
                os.unlink(path)
            self._runs = [merged]
        self._runs.append(self._written([rows]))

    def _written(self, blocks: Iterable[Array]) -> tuple[str, int]:
        path = f"{self._path}-{self._made}"
        self._made += 1
        count = 0
        try:
            with open(path, "wb") as stream:
                for rows in blocks:
                    stream.write(rows.tobytes())
                    count += len(rows)
        except OSError as error:
            raise file_error(error.errno or 0, f"{path}: cannot be written: {error.strerror}") from None
        return path, count

    def _read(self, run: tuple[str, int], start: int, count: int) -> Array:
        import numpy

        path, size = run
        count = min(count, size - start)
        try:
            rows = numpy.fromfile(path, numpy.uint64, count * self._columns, offset=8 * start * self._columns)
        except OSError as error:
            raise file_error(error.errno or 0, f"{path}: cannot be read: {error.strerror}") from None
        if len(rows) < count * self._columns:
            raise FormatError(f"{path}: became shorter; run the command again", 8 * start * self._columns)
        return rows.reshape(-1, self._columns)

    def _merged(self) -> Iterator[Array]:
        import numpy

        each = max(16, self._most // (len(self._runs) + 1))
        places = [0] * len(self._runs)  # how much of each run has been read
        blocks = [numpy.empty((0, self._columns), dtype=numpy.uint64)] * len(self._runs)
        while True:
            for i, run in enumerate(self._runs):
                if not len(blocks[i]) and places[i] < run[1]:
                    blocks[i] = self._read(run, places[i], each)
                    places[i] += len(blocks[i])
            waiting = [i for i, run in enumerate(self._runs) if places[i] < run[1]]  # have rows that were not read
            bound = min((tuple(blocks[i][-1].tolist()) for i in waiting), default=None)
            ready = [len(block) if bound is None else _up_to(block, bound) for block in blocks]
            if rows := [block[:count] for block, count in zip(blocks, ready) if count]:
                yield lexsorted(numpy.concatenate(rows))
            blocks = [block[count:] for block, count in zip(blocks, ready)]
            if bound is None:
                return


def _up_to(rows: Array, bound: tuple[int, ...]) -> int:
    """Returns how many of the sorted rows are not above the bound."""
    import numpy

    first, last = 0, len(rows)
    for column, value in enumerate(bound):
        part = rows[first:last, column]
        below, not_above = (int(numpy.searchsorted(part, numpy.uint64(value), side)) for side in _SIDES)
        first, last = first + below, first + not_above
    return last


class Cursor:
    """Reads sorted rows by ranges of their first column, which ascend."""

    def __init__(self, sorter: Sorter, columns: int) -> None:
        import numpy

        self._blocks = sorter.blocks()
        self._rest = numpy.empty((0, columns), dtype=numpy.uint64)

    def take(self, end: int) -> Array:
        """Returns the next rows whose first column is below `end`."""
        import numpy

        parts = []
        while True:
            count = int(numpy.searchsorted(self._rest[:, 0], numpy.uint64(end)))
            parts.append(self._rest[:count])
            self._rest = self._rest[count:]
            if len(self._rest) or (block := next(self._blocks, None)) is None:
                return numpy.concatenate(parts)
            self._rest = block
