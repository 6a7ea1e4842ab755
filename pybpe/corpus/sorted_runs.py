"""Sorted rows of integers in files, *runs*, which are read as if they were one.

A block of each run is read at a time. Up to the least last row of these blocks, all rows are in memory, and numpy sorts
them.

    runs     1 4 6 | 9 ...      2 3 8 | 8 ...      5 7 7 | 9 ...
    bound    6 is the least of 6, 8 and 7: yields 1 2 3 4 5 6, then reads on
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, Literal, NamedTuple

from .._numpy import Array, numpy
from ..errors import FormatError, file_errors
from ..reading.streams import open_input, read_items
from ..support.output_files import remove_file

_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")
_SAMPLES = 16  # rows of each run that tell how rows are distributed


def lexsorted(rows: Array) -> Array:
    """Returns rows in ascending order, by the first column, then by the second one, and so on."""
    return rows[numpy.lexsort(rows.T[::-1])]


class Run(NamedTuple):
    """Some of the rows of a file, whose rows are sorted.

    Attributes:
        path: the file.
        start: the first of these rows.
        rows: how many there are.
    """

    path: str
    start: int
    rows: int


def write_run(path: str, blocks: Iterable[Array]) -> Run:
    """Writes sorted rows to a new file."""
    count = 0
    with file_errors(path, "cannot be written"), open(path, "wb", buffering=0) as stream:
        for rows in blocks:
            _write_all(stream, rows.tobytes())
            count += len(rows)
    return Run(path, 0, count)


def _write_all(stream: Any, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[stream.write(left) :]


class Runs:
    """Runs that are read as one. It can be sent to other processes.

    Args:
        runs: the runs.
        columns: numbers per row.
        most: the rows that are in memory at once, approximately.
    """

    def __init__(self, runs: Sequence[Run], columns: int, most: int) -> None:
        self.runs, self._columns, self.most = list(runs), columns, most

    def blocks(self, low: int = 0, high: int | None = None) -> Iterator[Array]:
        """Yields the rows whose first number is at least `low` and below `high`, in order, in blocks that are not
        empty."""
        runs = self.runs
        if low or high is not None:
            runs = [run for run in (self._between(run, low, high) for run in runs) if run.rows]
        each = max(16, self.most // (len(runs) + 1))
        if sum(run.rows for run in runs) <= self.most:
            each = self.most
        places = [0] * len(runs)  # how much of each run has been read
        blocks = [numpy.empty((0, self._columns), dtype=numpy.uint64)] * len(runs)
        while True:
            for i, run in enumerate(runs):
                if not len(blocks[i]) and places[i] < run.rows:
                    blocks[i] = self._read(run, places[i], min(each, run.rows - places[i]))
                    places[i] += len(blocks[i])
            waiting = [i for i, run in enumerate(runs) if places[i] < run.rows]  # have rows that were not read
            bound = min((tuple(blocks[i][-1].tolist()) for i in waiting), default=None)
            ready = [len(block) if bound is None else _up_to(block, bound) for block in blocks]
            if rows := [block[:count] for block, count in zip(blocks, ready) if count]:
                yield lexsorted(numpy.concatenate(rows))
            blocks = [block[count:] for block, count in zip(blocks, ready)]
            if bound is None:
                return

    def ranges(self, rows: int) -> list[tuple[int, int | None]]:
        """Divides all rows by their first number into ranges from a low to a high one, each with about this many
        rows."""
        sample = []
        for run in self.runs:
            with open_input(run.path) as stream:
                for i in range(_SAMPLES):
                    sample.append((self._first_number(stream, run, run.rows * i // _SAMPLES), run.rows / _SAMPLES))
        bounds, size = [0], 0.0
        for value, weight in sorted(sample):
            if size >= rows and value > bounds[-1]:
                bounds.append(value)
                size = 0.0
            size += weight
        return list(zip(bounds, [*bounds[1:], None]))

    def close(self) -> None:
        """Removes the files."""
        for run in self.runs:
            remove_file(run.path)

    def _between(self, run: Run, low: int, high: int | None) -> Run:
        """Returns the part of a run whose first numbers are at least `low` and below `high`."""
        with open_input(run.path) as stream:

            def first_number(row: int) -> int:
                return self._first_number(stream, run, row)

            first = bisect_left(range(run.rows), low, key=first_number)
            end = run.rows if high is None else bisect_left(range(run.rows), high, lo=first, key=first_number)
        return Run(run.path, run.start + first, end - first)

    def _first_number(self, stream: BinaryIO, run: Run, row: int) -> int:
        stream.seek(8 * (run.start + row) * self._columns)
        return int(self._items(stream, run, 1)[0])

    def _read(self, run: Run, start: int, count: int) -> Array:
        with open_input(run.path) as stream:
            stream.seek(8 * (run.start + start) * self._columns)
            return self._items(stream, run, count * self._columns).reshape(-1, self._columns)

    def _items(self, stream: BinaryIO, run: Run, count: int) -> Array:
        items = read_items(stream, "u8", count)
        if len(items) < count:
            raise FormatError(f"{run.path}: became shorter; run the command again", stream.tell())
        return items


def _up_to(rows: Array, bound: tuple[int, ...]) -> int:
    """Returns how many of the sorted rows are not above the bound."""
    first, last = 0, len(rows)
    for column, value in enumerate(bound):
        part = rows[first:last, column]
        below, not_above = (int(numpy.searchsorted(part, numpy.uint64(value), side)) for side in _SIDES)
        first, last = first + below, first + not_above
    return last
