"""Makes sorted rows from sorted rows, in this process or on the workers of an executor.

A *step* is a function that takes sorted blocks of rows and yields other rows, in any order. What it yields for rows
with the same first number must not depend on the other rows. So rows can be divided by their first numbers among
workers, which read the runs of the step before from a shared folder, and each write one:

    runs                     3 5 8 9 | 1 2 5 8 | 4 6 6 7
    ranges                   1 2 3 4           5 5 6 6 7         8 8 9
                                 |                 |               |
    the step, and sorting        v                 v               v
    new runs                 ...               ...             ...

Only the names and sizes of runs pass through the process that the user started. The rows that come out do not depend on
how they were divided.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple, Protocol, cast

from .._numpy import Array
from ..support.output_files import remove_file
from ..support.remote import Workers, map_by_executor
from ..support.shared_folder import SharedFolder
from .sorted_runs import Run, Runs, write_run
from .sorting import SortedRows, Sorter, rows_in

Step = Callable[[Iterable["Array"]], Iterable["Array"]]
Source = Callable[[int, int], Iterable["Array"]]

_LEAST_ROWS = 1 << 20  # of a task; reading and sorting them takes some tenths of a second
_MOST_TASKS = 1024  # unless the tasks need more memory than they may have: each run is read by each task
_PENDING = 1024  # tasks submitted at once; their results are small


class Stages(Protocol):
    """How steps are done."""

    def first(self, name: str, source: Source, sizes: Sequence[int], columns: int) -> SortedRows:
        """Returns sorted rows from something that consists of parts.

        Args:
            name: begins the names of files.
            source: source(first, last) yields the rows of the parts from `first` up to, but not including, `last`.
            sizes: the number of rows of each part, approximately.
            columns: numbers per row.
        """

    def then(self, name: str, step: Step, rows: SortedRows, columns: int) -> SortedRows:
        """Returns what a step yields, sorted. Closes the rows that it takes."""

    def has(self, test: Callable[[Iterable[Array]], bool], rows: SortedRows) -> bool:
        """Returns whether a test is true for any rows with the same first number."""


class LocalStages:
    """Does steps in this process.

    Args:
        path: the beginning of the names of files.
        memory: bytes, approximately.
    """

    def __init__(self, path: str, memory: int) -> None:
        self._path = path
        self._memory = memory // 2  # rows of one step are read while those of the next one are added
        self._numbers = count()

    def first(self, name: str, source: Source, sizes: Sequence[int], columns: int) -> SortedRows:
        """See Stages."""
        return self._sorted(name, source(0, len(sizes)), columns)

    def then(self, name: str, step: Step, rows: SortedRows, columns: int) -> SortedRows:
        """See Stages."""
        found = self._sorted(name, step(rows.blocks()), columns)
        rows.close()
        return found

    def has(self, test: Callable[[Iterable[Array]], bool], rows: SortedRows) -> bool:
        """See Stages."""
        return test(rows.blocks())

    def _sorted(self, name: str, blocks: Iterable[Array], columns: int) -> Sorter:
        sorter = Sorter(f"{self._path}-{name}-{next(self._numbers)}", columns, self._memory)
        for rows in blocks:
            sorter.add(rows)
        return sorter


class SharedStages:
    """Does steps on the workers of an executor, which share a folder.

    Args:
        folder: the folder.
        workers: the workers.
        memory: bytes for each worker, approximately.
    """

    def __init__(self, folder: SharedFolder, workers: Workers, memory: int) -> None:
        self._folder, self._workers, self._memory = folder, workers, memory // 2

    def first(self, name: str, source: Source, sizes: Sequence[int], columns: int) -> SortedRows:
        """See Stages."""
        most = rows_in(self._memory, columns)
        task = partial(_first_task, _Sorting(self._folder, name, columns, self._memory), source)
        return self._runs(task, _groups(sizes, self._rows_per_task(sum(sizes), most)), columns)

    def then(self, name: str, step: Step, rows: SortedRows, columns: int) -> SortedRows:
        """See Stages."""
        runs = cast(Runs, rows)
        task = partial(_step_task, _Sorting(self._folder, name, columns, self._memory), step, runs)
        found = self._runs(task, self._ranges(runs), columns)
        runs.close()
        return found

    def has(self, test: Callable[[Iterable[Array]], bool], rows: SortedRows) -> bool:
        """See Stages."""
        runs = cast(Runs, rows)
        return any(list(self._map(partial(_test_task, test, runs), self._ranges(runs))))

    def _ranges(self, runs: Runs) -> list[tuple[int, int | None]]:
        rows = sum(run.rows for run in runs.runs)
        return runs.ranges(self._rows_per_task(rows, runs.most))

    @staticmethod
    def _rows_per_task(rows: int, most: int) -> int:
        return min(most, max(_LEAST_ROWS, rows // _MOST_TASKS))

    def _runs(self, task: Callable[[Any], Run], items: Iterable[Any], columns: int) -> Runs:
        found = [run for run in self._map(task, items) if run.rows]
        return Runs(found, columns, rows_in(self._memory, columns))

    def _map(self, task: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map_by_executor(task, items, self._workers, _PENDING)


class _Sorting(NamedTuple):
    """How a worker sorts the rows of a task.

    Attributes:
        folder: where it writes them.
        name: begins the names of files.
        columns: numbers per row.
        memory: bytes, approximately.
    """

    folder: SharedFolder
    name: str
    columns: int
    memory: int

    def run(self, blocks: Iterable[Array]) -> Run:
        """Writes rows, sorted."""
        path = self.folder.new_file(self.name)
        sorter = Sorter(f"{path}-part", self.columns, self.memory)
        for rows in blocks:
            sorter.add(rows)
        run = write_run(path, sorter.blocks())
        sorter.close()
        if not run.rows:  # nobody reads it
            remove_file(path)
        return run


def _first_task(sorting: _Sorting, source: Source, parts: tuple[int, int]) -> Run:
    return sorting.run(source(*parts))


def _step_task(sorting: _Sorting, step: Step, rows: Runs, bounds: tuple[int, int | None]) -> Run:
    return sorting.run(step(rows.blocks(*bounds)))


def _test_task(test: Callable[[Iterable[Array]], bool], rows: Runs, bounds: tuple[int, int | None]) -> bool:
    return test(rows.blocks(*bounds))


def _groups(sizes: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    """Divides parts into groups of some of them, one after another. Each has at most this many rows, or one part."""
    first, rows = 0, 0
    for part, size in enumerate(sizes):
        if rows and rows + size > most:
            yield first, part
            first, rows = part, 0
        rows += size
    if rows:
        yield first, len(sizes)
