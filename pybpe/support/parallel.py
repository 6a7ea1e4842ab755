"""The options of a run, and C calls, which release the GIL, in threads. Work for other processes and machines is in
executors.py.

`map_ordered` is the main function. It hands items to threads and returns results in the order of the items. Only a few
items are in progress at once, so memory stays bounded however long the input is. Ctrl-C works at once: the main thread
waits in Python, and an item takes a few milliseconds of C.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Generic, TypeVar

from .._lazy import ctypes, futures
from ..arguments import by_caller, instance, option, param, whole_number
from ..errors import ArgumentError, WorkerError, note
from . import platform, progress


@dataclass(frozen=True)
class RunOptions:
    """How a run uses the machine. Results never depend on it. The fields have the names of the public keyword
    arguments, which its errors name."""

    # Number of threads or processes, or None for all CPUs.
    workers: int | None = option(None, "number of threads or processes (default: all CPUs)")
    executor: futures.Executor | None = None  # an executor that does the work instead, on other processes or machines
    # Number of bytes, or None for no limit. The minimum depends on the kind of work.
    memory_limit: int | None = option(None, "memory to use, in bytes, e.g. 2G", unit="bytes")
    # True shows progress bars, False does not, None shows them if standard error is a terminal.
    progress: bool | None = None
    # The number of seconds after which a worker of the executor that has not finished a task is given up. None waits
    # forever.
    task_timeout: float | None = option(
        None,
        "stop if a worker of --dask takes longer for a task, because it may hang (default: wait)",
        "SECONDS",
    )

    def __post_init__(self) -> None:
        for name in ("workers", "memory_limit"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, whole_number(name, value, 1))
        if self.task_timeout is not None:
            instance("task_timeout", self.task_timeout, (int, float), "a number of seconds")
            if not 0 < self.task_timeout < float("inf"):
                raise ArgumentError(
                    f"{param('task_timeout')} must be a number of seconds above 0, not {self.task_timeout}"
                )
            if self.executor is None:
                raise ArgumentError(
                    f"{param('task_timeout')} needs {by_caller('an executor', '--dask')}: threads of this process"
                    " cannot be given up"
                )


READER_BYTES = 170 * 10**6  # of memory that pyarrow and its threads take next to tables in memory
_OWN_BYTES = 80 * 10**6  # of memory that Python, the libraries and the buffers of one thread take
_ARROW_BYTES = 40 * 10**6  # of memory that the library of pyarrow takes when it is idle
_ROWS_BYTES = 200 * 10**6  # of memory that Python, the libraries and pyarrow take when they read rows


def memory_left(limit: int) -> int:
    """Returns how much of a memory limit is for data. If the process itself takes nearly all, it is a quarter."""
    return max(limit - _OWN_BYTES - _ARROW_BYTES * ("pyarrow" in sys.modules), limit // 4)


def release_memory() -> None:
    """Returns free memory to the system. The allocators of C and Arrow keep it, for example 100 MB after counting."""
    if "pyarrow" in sys.modules:
        sys.modules["pyarrow"].default_memory_pool().release_unused()
    with suppress(AttributeError, ImportError, OSError, TypeError):  # only glibc has it, and some Pythons lack ctypes
        ctypes.CDLL(None).malloc_trim(0)


def process_memory(limit: int | None, has_rows: bool = False) -> int:
    """Returns the bytes that a process may take for any input, and notes if a memory limit is less. `has_rows` says
    whether it reads parquet or Arrow."""
    taken = _ROWS_BYTES if has_rows else _OWN_BYTES
    if limit is not None and limit < taken:
        note(f"{param('memory_limit')} may be exceeded, because pybpe can take {taken // 10**6} MB for any such input")
    return taken


Item = TypeVar("Item")
Result = TypeVar("Result")

_LOOK_SECONDS = 0.5  # the longest time that Ctrl-C may go unnoticed

_thread = threading.local()  # .stop: in a thread of map_ordered, an event that is set when nobody wants its results


def worker_count(workers: int | None, name: str = "workers") -> int:
    """Returns `workers`, or if it is None the number of CPUs that this process may use. Errors call it `name`."""
    if workers is None:
        return platform.cpu_count()
    return whole_number(name, workers, 1)


def map_ordered(
    function: Callable[[Item], Result], items: Iterable[Item], workers: int | None = None
) -> Iterator[Result]:
    """Yields function(item) for all items, in order, computed by `workers` threads.

    A function that loops in Python for more than some milliseconds must call `end_if_unwanted` in the loop. An
    exception from `function` or `items` is re-raised here after the threads have stopped. A thread that does not stop
    within a second, because a regular expression backtracks, is left running: it ends after its match, or with the
    process."""
    count = worker_count(workers)
    if count == 1:
        yield from map(function, items)
        return
    threads = _Threads(count)
    pending: deque[_Outcome[Result]] = deque()
    try:
        for item in items:
            try:
                pending.append(threads.submit(function, item))
            except RuntimeError as error:  # out of memory or threads, or Python is exiting
                raise WorkerError(f"{error}: use fewer workers than {count}") from None
            if len(pending) > 2 * count:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        threads.stop()


class _Threads:
    """Up to `count` threads that take tasks in order. They are daemons: Python does not wait for them when it exits."""

    _PATIENCE = 1.0  # seconds to wait for tasks whose results are no longer wanted

    def __init__(self, count: int) -> None:
        self._count = count
        self._threads: list[threading.Thread] = []
        self._tasks: SimpleQueue[tuple[_Outcome[Any], Callable[..., Any], Any] | None] = SimpleQueue()
        self._unwanted = threading.Event()

    def submit(self, function: Callable[[Item], Result], item: Item) -> _Outcome[Result]:
        """Runs function(item) in one of the threads. Raises RuntimeError if the system has no more threads."""
        if len(self._threads) < self._count:
            thread = threading.Thread(target=self._work, name="pybpe", daemon=True)
            self._threads.append(thread)
            thread.start()
        outcome: _Outcome[Result] = _Outcome()
        self._tasks.put((outcome, function, item))
        return outcome

    def _work(self) -> None:
        _thread.stop = self._unwanted
        while (task := self._tasks.get()) is not None and not self._unwanted.is_set():
            task[0].run(*task[1:])
            del task  # the result is large, and only the caller should keep it

    def stop(self, exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        """Ends the threads, after their current tasks. One that was starting when Ctrl-C arrived ends by itself.

        Python calls this at its exit for a generator that is still there, when this module's names are gone and the
        threads no longer run. So it must not need a name of the module before it knows that."""
        if exiting():
            return
        self._unwanted.set()
        for _ in self._threads:
            self._tasks.put(None)
        deadline = time.monotonic() + self._PATIENCE
        for thread in self._threads:
            if thread.is_alive():
                thread.join(max(0.0, deadline - time.monotonic()))


class _Outcome(Generic[Result]):
    """The result or the error of a function in another thread. (The module concurrent.futures takes 8 ms to load.)"""

    _value: Result
    _error: BaseException | None = None

    def __init__(self) -> None:
        self.done = threading.Event()

    def run(self, function: Callable[..., Result], *args: object) -> None:
        """Calls the function in this thread."""
        try:
            self._value = function(*args)
        except BaseException as error:
            self._error = error
        self.done.set()

    def result(self) -> Result:
        """Waits for the function. It looks up now and then, because Python does not notice a Ctrl-C that arrives in the
        moment before a wait begins until the wait ends, and a regular expression that backtracks may never end it."""
        while not self.done.wait(_LOOK_SECONDS):
            progress.look()
        try:
            if self._error is not None:
                raise self._error
            return self._value
        finally:
            del self  # the error refers to this frame


def end_if_unwanted() -> None:
    """Raises CancelledError in a thread of `map_ordered` if its result is no longer wanted."""
    stop: threading.Event | None = getattr(_thread, "stop", None)
    if stop is not None and stop.is_set():
        raise futures.CancelledError


def run_interruptibly(function: Callable[..., Result], *args: object, patience: float = 0.0) -> Result:
    """Runs function(*args) in a new thread. Ctrl-C ends the wait for it, however long a call into C takes. The thread
    then ends by itself, or with the process. A function that writes a file calls `end_if_unwanted` now and then. After
    Ctrl-C it has `patience` seconds to remove its unfinished file."""
    outcome: _Outcome[Result] = _Outcome()
    unwanted = threading.Event()

    def work() -> None:
        _thread.stop = unwanted
        outcome.run(function, *args)

    # A daemon, because Python waits for all other threads when it exits.
    thread = threading.Thread(target=work, name="pybpe", daemon=True)
    try:
        try:
            thread.start()
        except RuntimeError:  # out of memory or threads, or Python is exiting. Then Ctrl-C must wait
            return function(*args)
        return outcome.result()
    except BaseException:
        unwanted.set()
        outcome.done.wait(patience)
        raise
