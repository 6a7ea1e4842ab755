"""Runs the tasks of a corpus: in this process, in processes of its own, or on an executor's workers. (The steps run in
Python, where threads would wait for one another.)"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib import import_module
from multiprocessing.context import BaseContext

from ..arguments import param
from ..errors import ArgumentError
from ..reading.charset import Doubts
from ..reading.documents import SkippedRecords, headers_if_done, results_when_done
from ..reading.files import Corpus, Staged
from ..reading.planning import progress_total
from ..reading.remote import reads_urls
from ..reading.workers import Workers
from ..support import platform
from ..support.executors import versions
from ..support.parallel import RunOptions, process_memory, worker_count
from ..support.progress import Progress
from ..support.task_results import Order, Result, hashed, write_results
from .steps import Steps
from .work import Work

_RESULTS = 8  # the version of what tasks return: results of another version are not used


def fingerprint_of(steps: Steps) -> str:
    """Returns a hash of everything that the results of tasks depend on, except the inputs: the versions of the Unicode
    tables too, as the steps use the tables of Python and of `regex`, and of what evaluates `where`."""
    scorers = [
        (s.name, s.function.__module__, getattr(s.function, "__qualname__", ""), s.max_score) for s in steps.scorers
    ]
    # A task where nothing was skipped is the same with on_error="skip"; keep_near is applied to the results.
    rest = replace(steps, scorers=(), keep_near=False, read=replace(steps.read, on_error="stop", skipped=None))
    evaluators = [import_module(name).__version__ for name in ("duckdb", "pyarrow") if steps.where is not None]
    return hashed(_RESULTS, versions(), rest, scorers, *evaluators)


def run_tasks(steps: Steps, orders: Sequence[Order], staged: Staged, hidden: str, run: RunOptions) -> list[Result]:
    """Runs all unfinished tasks. `hidden` is the hidden folder. Returns the results of all tasks, in order. Raises
    ArgumentError if more than half of the records are not valid."""
    skips = steps.read.skips
    left = [order for order in orders if headers_if_done(order.path, skips, is_read=True) is None]
    doubts, skipped, found = Doubts(), SkippedRecords(names=staged.names), list[Result]()
    with ExitStack() as stack:
        bar = stack.enter_context(
            Progress("cleaning", progress_total(staged.files, steps.read.text_key), "B", run.progress)
        )
        done = _done(Work(steps), left, hidden, staged.files, run, stack)
        for _, result, header in results_when_done(orders, left, done, doubts, skipped):
            found.append(result)
            bar.add(header["read"])
    return found


def _done(
    work: Work, orders: Sequence[Order], hidden: str, files: Corpus, run: RunOptions, stack: ExitStack
) -> Iterator[None]:
    """Writes the results of tasks to their files, in order, and yields after every task. Processes that it starts end
    with `stack`."""
    count = min(worker_count(run.workers), len(orders))
    each = process_memory(run.memory_limit, any(file.has_rows for file in files.singles))
    if run.memory_limit is not None and run.executor is None:
        count = min(count, max(1, run.memory_limit // each))
    if not orders or (run.executor is None and count <= 1):
        yield from (None for order in orders if write_results(order.path, work.results(order)))
        return
    try:
        pickle.dumps(work)
    except Exception as error:  # pickle can raise anything
        raise ArgumentError(
            "a scorer cannot be sent to other processes: define it at the top level of a module, or use"
            f" {param(workers=1)} ({error})"
        ) from None
    if run.executor is None:
        run = RunOptions(count, stack.enter_context(process_pool(count)))
    yield from Workers(hidden, work.results, files.size, run).done(orders)


# ----------------------------------------------------------------------------------------------------
# Worker processes on this machine


@contextmanager
def process_pool(workers: int) -> Iterator[Executor]:
    """An executor with `workers` processes, which end with the block, or with this process, however it ends.

    An exception ends them in the middle of their tasks. Tasks take seconds, and Ctrl-C must not wait for them.
    """
    # In a forked child of a process with threads, the first import of a large library can hang on a lock that another
    # thread held, so the workers find it imported.
    import numpy  # noqa: F401

    context: BaseContext = multiprocessing.get_context()
    if context.get_start_method() == "fork" and reads_urls():
        context = multiprocessing.get_context("spawn")
    # A forked worker that begins after this process was killed already has another parent.
    parent = os.getpid() if context.get_start_method() == "fork" else None
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(parent,))
    try:
        with _interrupted_afterwards():
            pool.submit(int)  # starts the processes
        yield pool
    finally:
        # Waiting for a hung or stopped worker could take forever. The workers' results have all arrived.
        # (Python 3.14 has kill_workers.)
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Delays a Ctrl-C that arrives within the block until its end. Python drops one that arrives during a fork."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    signals: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: signals.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if signals:
        signal.raise_signal(signal.SIGINT)


def _begin(parent: int | None) -> None:
    """Leaves Ctrl-C to the parent, and ends this worker if the parent is killed, since it would wait forever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in platform.ENDING_SIGNALS:
        signal.signal(number, signal.SIG_DFL)  # the parent's own handler is not meant for workers
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int | None) -> None:
    """Ends this worker when its parent has ended. `parent` is the parent's number if this worker was forked: then other
    workers keep the pipe open that `join` waits for. Otherwise, this may be the child of a fork server."""
    if parent is None:
        starter = multiprocessing.parent_process()
        assert starter is not None  # this is a worker
        starter.join()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
