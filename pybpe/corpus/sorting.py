"""Sorts rows of integers that may not fit in memory.

Rows are held in memory until they reach a limit; then they are sorted and written to a file. In the end these files are
read as one (sorted_runs.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from .._numpy import Array, numpy
from .sorted_runs import Run, Runs, lexsorted, write_run

DEFAULT_MEMORY = 1 << 30
LEAST_MEMORY = 10**6
_COPIES = 4  # the rows, their order, and sorted columns, are in memory at once
_MOST_RUNS = 64  # more are merged into one, so that blocks do not become too small
_BLOCK_ROWS = 1 << 16  # of what is held in memory


class SortedRows(Protocol):
    """Rows in order: a Sorter, or Runs."""

    def blocks(self, low: int = 0, high: int | None = None) -> Iterator[Array]:
        """Yields the rows whose first number is at least `low` and below `high`, in order, in blocks that are not
        empty."""

    def close(self) -> None:
        """Removes the files."""


def rows_in(memory: int, columns: int) -> int:
    """Returns how many rows can be sorted in this many bytes."""
    return max(256, memory // (8 * columns * _COPIES))


def distinct(blocks: Iterable[Array]) -> Iterator[Array]:
    """Yields sorted rows without those that equal the row before them."""
    last: Array | None = None
    for rows in blocks:
        new = numpy.ones(len(rows), dtype=bool)
        new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        new[0] = last is None or bool((rows[0] != last).any())
        last = rows[-1]
        if new.any():
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
        self._most = rows_in(memory, columns)
        self._held: list[Array] = []
        self._held_rows = self._made = 0
        self._runs: list[Run] = []
        self._sorted: Array | None = None  # all rows, if they fit

    def add(self, rows: Array) -> None:
        """Adds rows: uint64, shape (rows, columns)."""
        for start in range(0, len(rows), self._most):
            part = rows[start : start + self._most]
            if self._held_rows + len(part) > self._most:
                self._spill()
            self._held.append(part.copy() if len(part) < len(rows) else part)
            self._held_rows += len(part)

    def blocks(self, low: int = 0, high: int | None = None) -> Iterator[Array]:
        """Yields the rows whose first number is at least `low` and below `high`, in order, in blocks that are not
        empty."""
        if self._runs:
            if self._held:
                self._spill()
            yield from self._merged().blocks(low, high)
            return
        if self._sorted is None:
            self._sorted, self._held = lexsorted(self._joined()), []
        rows = _between(self._sorted, low, high)
        for start in range(0, len(rows), _BLOCK_ROWS):
            yield rows[start : start + _BLOCK_ROWS]

    def close(self) -> None:
        """Removes its files."""
        self._merged().close()
        self._runs, self._held, self._sorted = [], [], None

    def _joined(self) -> Array:
        return numpy.concatenate([numpy.empty((0, self._columns), dtype=numpy.uint64), *self._held])

    def _merged(self) -> Runs:
        return Runs(self._runs, self._columns, self._most)

    def _spill(self) -> None:
        """Moves the rows in memory to a new run."""
        rows = lexsorted(self._joined())
        self._held, self._held_rows = [], 0
        if len(self._runs) >= _MOST_RUNS:
            before = self._merged()
            self._runs = [write_run(self._next_path(), before.blocks())]
            before.close()
        self._runs.append(write_run(self._next_path(), [rows]))

    def _next_path(self) -> str:
        self._made += 1
        return f"{self._path}-{self._made - 1}"


def _between(rows: Array, low: int, high: int | None) -> Array:
    """Returns the rows of a sorted array whose first number is at least `low` and below `high`."""
    first = int(numpy.searchsorted(rows[:, 0], numpy.uint64(low)))
    end = len(rows) if high is None else int(numpy.searchsorted(rows[:, 0], numpy.uint64(high)))
    return rows[first:end]


class Cursor:
    """Reads sorted rows by ranges of their first column, which ascend.

    Args:
        blocks: the rows.
        columns: numbers per row.
    """

    def __init__(self, blocks: Iterable[Array], columns: int) -> None:
        self._blocks = iter(blocks)
        self._rest = numpy.empty((0, columns), dtype=numpy.uint64)

    def take(self, end: int) -> Array:
        """Returns the next rows whose first column is below `end`."""
        parts = []
        while True:
            count = int(numpy.searchsorted(self._rest[:, 0], numpy.uint64(end)))
            parts.append(self._rest[:count])
            self._rest = self._rest[count:]
            if len(self._rest) or (block := next(self._blocks, None)) is None:
                return numpy.concatenate(parts)
            self._rest = block
