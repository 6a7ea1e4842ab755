"""Runs the tasks of a corpus, in this process, in worker processes, or with an executor's workers."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

from .. import _binding
from .._version import __version__
from ..errors import ArgumentError
from ..reading.bad_records import Seen, SkippedRecords
from ..reading.files import Staged
from ..reading.input_file import InputFile, known_total
from ..reading.planning import Task, anchored
from ..reading.text_encoding import Doubts
from ..support.parallel import worker_count
from ..support.progress import Progress
from ..support.remote import Workers, build, map_by_executor
from ..support.run_options import RunOptions
from .processes import process_pool
from .results import Result, results_in
from .steps import Steps
from .work import Work

_RESULTS = 6  # the version of what tasks return: results of another version are not used
_PENDING = 64  # tasks submitted to an executor at once, unless `workers` is given


def identity_of(steps: Steps) -> str:
    """Returns a hash of everything that the results of tasks depend on, except the inputs: the versions of the Unicode
    tables too, as the steps use the tables of Python and of `regex`."""
    parts = repr((__version__, _RESULTS, build().unicode, *steps.identity()))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()


def run_tasks(
    steps: Steps, tasks: Sequence[Task], staged: Staged, paths: Sequence[str], run: RunOptions
) -> list[Result]:
    """Runs all unfinished tasks, whose results go to these paths. Returns the results of all tasks, in order.

    Raises:
        ArgumentError: more than half of the records are not valid.
    """
    left = [order for order in zip(paths, tasks) if not _is_done(order[0], steps.read.skips)]
    unfinished = {path for path, _ in left}
    doubts, records = Doubts(), SkippedRecords(names=staged.names)
    found: list[Result] = []
    with ExitStack() as stack:
        bar = stack.enter_context(Progress("cleaning", _total(staged.files), "B", run.progress))
        done = _done(Work(steps), left, run, stack)
        for path in paths:
            if path in unfinished:
                next(done)
            for result in results_in(path):
                found.append(result)
                header = result.header()
                bar.add(header["read"])
                for doubt in header["doubts"] if path in unfinished else ():
                    doubts.tell(doubt)
                for seen in header["seen"]:
                    records.add(Seen.of(seen))
            records.check()
    records.check(at_end=True)
    return found


def _is_done(path: str, skips: bool) -> bool:
    """Returns whether a task has a result. A run that stops at bad records does a task again in which one was
    skipped."""
    if not os.path.exists(path):
        return False
    return skips or not any(Seen.of(seen).bad for result in results_in(path) for seen in result.header()["seen"])


def _done(work: Work, orders: Sequence[tuple[str, Task]], run: RunOptions, stack: ExitStack) -> Iterator[None]:
    """Writes the results of each task to its file, in order, and yields after each. Processes that it starts end with
    `stack`."""
    count = min(worker_count(run.workers), len(orders))
    if run.executor is None and count <= 1:
        yield from map(work.write, orders)
        return
    _check_that_it_can_be_sent(work)
    if run.executor is None:
        workers = Workers(stack.enter_context(process_pool(count)))
        yield from map_by_executor(work.write, orders, workers, 2 * count)
        return
    pending = _PENDING if run.workers is None else 2 * run.workers
    tasks = (anchored(task) for _, task in orders)
    results = map_by_executor(work.collected, tasks, Workers.of(run), pending)
    for (path, _), result in zip(orders, results):
        _binding.write_file(path, result)
        yield


def _total(files: Sequence[InputFile]) -> int | None:
    return known_total(files)


def _check_that_it_can_be_sent(work: Work) -> None:
    try:
        pickle.dumps(work)
    except Exception as error:  # pickle can raise anything
        raise ArgumentError(
            f"a scorer cannot be sent to other processes: define it at the top level of a module, or use workers=1"
            f" ({error})"
        ) from None
