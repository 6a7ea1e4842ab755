"""Threads over C calls, which release the GIL; and any executor, for work that keeps it.

`map_ordered` is the main thing: work items go to threads, results come back in the order of the items, and
only a few items are under way at once, so memory stays bounded however long the input is. Ctrl-C is
answered at once: the main thread waits in Python, and each item is a few milliseconds of C.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar

from .arguments import whole_number
from .errors import ArgumentError, WorkerError

Item = TypeVar("Item")
Result = TypeVar("Result")

_thread = threading.local()  # .stop: in a thread of map_ordered, the event that its results are not wanted any more


def worker_count(workers: int | None, name: str = "workers") -> int:
    """`workers`, or for None the number of CPUs that this process may use. `name` is what an error calls it."""
    if workers is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return whole_number(name, workers, 1)


def map_ordered(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int | None = None
) -> Iterator[Result]:
    """Yields function(item) for each item, in order, computed by `workers` threads.

    A function that loops in Python for longer than milliseconds calls `end_if_unwanted` in between. An exception of
    `function` or of `items` is raised here, after the threads have stopped.

    Raises:
        WorkerError: the system has no more threads.
    """
    count = worker_count(workers)
    if count == 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(count, thread_name_prefix="pybpe")
    pending: deque[Future[Result]] = deque()
    stop = threading.Event()

    def work(item: Item) -> Result:
        _thread.stop = stop
        return function(item)

    try:
        for item in items:
            try:
                pending.append(pool.submit(work, item))
            except RuntimeError as error:  # no memory or no number for a thread is left, or Python ends
                raise WorkerError(f"{error}: take fewer workers than {count}") from None
            if len(pending) > 2 * count:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        stop.set()
        pool.shutdown(wait=True, cancel_futures=True)


def end_if_unwanted() -> None:
    """Raises CancelledError in a thread of `map_ordered` if nobody waits for its result any more."""
    stop: threading.Event | None = getattr(_thread, "stop", None)
    if stop is not None and stop.is_set():
        raise CancelledError


def map_by_executor(
    function: Callable[[Item], Result], items: Iterable[Item], executor: Executor, pending_items: int
) -> Iterator[Result]:
    """Yields function(item) for each item, in order, computed by an executor's workers, which have `pending_items`
    at once.

    Raises:
        WorkerError: a worker died, and the executor cannot go on. What `function` raises is raised here.
    """
    pending: deque[Future[Arrived]] = deque()
    try:
        for item in items:
            pending.append(submit(executor, function, item))
            if len(pending) >= pending_items:
                yield outcome_of(pending.popleft())
        while pending:
            yield outcome_of(pending.popleft())
    except BrokenExecutor as error:
        raise WorkerError(f"a worker process died: {error}; run the same again, it goes on where it was") from None
    finally:
        for future in pending:
            future.cancel()


class Arrived(Exception):
    """What a task returned, on its way from an executor's worker.

    If a Dask worker dies just after its task's result has come, Dask's executor takes the result for an error that it
    has to raise, which it unpacks (distributed/cfexecutor.py). So this raises itself, and the result is not lost.
    """

    def __init__(self, result: Any) -> None:
        super().__init__(result)
        self.result = result

    def __iter__(self) -> Iterator[Any]:
        raise self


def submit(executor: Executor, function: Callable[..., Result], *args: object) -> Future[Arrived]:
    """function(*args), by one of an executor's workers. `outcome_of` has the result.

    Raises:
        ArgumentError: it is no executor. WorkerError: it takes no tasks any more.
    """
    if not hasattr(executor, "submit"):
        raise ArgumentError(f"executor must be a concurrent.futures.Executor, not {type(executor).__name__}")
    try:
        return executor.submit(_arrive, function, *args)
    except BrokenExecutor:
        raise
    except RuntimeError as error:
        raise WorkerError(f"the executor takes no task: {error}") from None


def _arrive(function: Callable[..., object], *args: object) -> Arrived:
    return Arrived(function(*args))


def outcome_of(future: Future[Arrived]) -> Any:
    """The result of what was submitted. Raises what the task raised, and WorkerError if the executor gave it up."""
    try:
        return future.result().result
    except Arrived as arrived:
        return arrived.result
    except CancelledError as error:
        raise WorkerError(f"the executor gave a task up: {error}") from None
    except Exception as error:
        # Dask's own complaints (KilledWorker and the like) are plain Exceptions of its module.
        if type(error).__module__.partition(".")[0] in ("distributed", "dask"):
            raise WorkerError(f"the cluster could not do a task: {' '.join(str(error).split())}") from None
        raise


def run_interruptibly(function: Callable[..., Result], *args: object) -> Result:
    """function(*args), by a thread of its own. Ctrl-C ends the wait for it at once, however long a call into
    C takes; the thread then ends by itself, or with the process."""
    outcome: Future[Result] = Future()

    def work() -> None:
        try:
            outcome.set_result(function(*args))
        except BaseException as error:
            outcome.set_exception(error)

    # A daemon: Python waits at its end for all other threads.
    thread = threading.Thread(target=work, name="pybpe", daemon=True)
    try:
        thread.start()
    except RuntimeError:  # no memory or no number for a thread is left, or Python ends: then Ctrl-C must wait
        return function(*args)
    return outcome.result()
