"""Runs work on the workers of an executor: processes on this machine, or a cluster.

A worker must run the same pybpe, because another version, or other Unicode tables, could give other tokens; otherwise
its task raises WorkerError. Errors from a worker name the worker. While this process waits for a result, it checks
every second whether the cluster still exists, because Dask's executor never ends a task whose scheduler has died; and
whether the task takes longer than the user allows, because no executor notices a worker that hangs. It then ends the
run. Another worker does the task when the run resumes, so a result is never used twice.
"""

from __future__ import annotations

import os
import pickle
import secrets
import socket
import sys
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import regex

from .. import _binding, arguments
from .._version import __version__
from ..arguments import param
from ..errors import ArgumentError, Error, WorkerError, file_errors, warn
from .parallel import RunOptions

Item = TypeVar("Item")
Result = TypeVar("Result")

_LOOK_SECONDS = 1.0  # between checks that the cluster still exists
_PATIENCE_SECONDS = 5.0  # the time that the cluster may have no workers before a warning


def map_by_executor(
    function: Callable[[Item], Result],
    items: Iterable[Item],
    workers: Workers,
    pending_items: int,
    advice: str = "Run the same again: it resumes",
) -> Iterator[Result]:
    """Yields function(item) for each item, in order, computed by an executor's workers. At most `pending_items` are
    submitted at once. Raises WorkerError if a worker died and the executor cannot continue, runs another pybpe, or took
    too long. `advice` ends the message for a worker that has died."""
    pending: deque[Future[Arrived]] = deque()
    try:
        for item in items:
            pending.append(workers.submit(function, item))
            if len(pending) >= pending_items:
                yield workers.outcome(pending.popleft())
        while pending:
            yield workers.outcome(pending.popleft())
    except BrokenExecutor as error:
        raise WorkerError(f"a worker process died: {error}. {advice}") from None
    finally:
        for future in pending:
            future.cancel()


class Workers:
    """An executor, and the known state of its cluster. A task may take `task_timeout` seconds; None for any number."""

    def __init__(self, executor: Executor, task_timeout: float | None = None) -> None:
        if not hasattr(executor, "submit"):
            raise ArgumentError(
                f"{param('executor')} must be a concurrent.futures.Executor, not {type(executor).__name__}"
            )
        self._executor = executor
        # Dask's executor has no public name for its client.
        self._dask = getattr(executor, "_client", None) if _is_of_dask(executor) else None
        self._idle_since: float | None = None  # when the cluster was first seen without workers
        self._has_warned = False
        self._timeout = task_timeout
        self._look_seconds = min(_LOOK_SECONDS, task_timeout or _LOOK_SECONDS)
        self._last_done = time.monotonic()  # when a result last arrived
        self._tasks: WeakKeyDictionary[Future[Arrived], object] = WeakKeyDictionary()

    @classmethod
    def of(cls, run: RunOptions) -> Workers:
        """Returns the workers of a run with an executor."""
        assert run.executor is not None
        return cls(run.executor, run.task_timeout)

    def submit(self, function: Callable[..., object], *args: object) -> Future[Arrived]:
        """Runs function(*args) on one of the workers. `outcome` returns the result. Raises WorkerError if the executor
        no longer takes tasks."""
        call: tuple[Any, ...] = (_arrive, build(), (os.getpid(), arguments.flags), function, *args)
        if self._dask is not None:
            call = (pickle.loads, pickle.dumps(_Call(call)))
        if not self._tasks:
            self._last_done = time.monotonic()
        try:
            future: Future[Arrived] = self._executor.submit(*call)
            self._tasks[future] = args[-1] if args else None
            return future
        except BrokenExecutor:
            raise
        except RuntimeError as error:
            raise WorkerError(f"the executor refused a task: {error}") from None

    def first_done(self, pending: Collection[Future[Arrived]]) -> set[Future[Arrived]]:
        """Waits until at least one task is done. Returns the tasks that are done."""
        while not (done := wait(pending, self._look_seconds, FIRST_COMPLETED).done):
            self._look()
            self._check_time(next(iter(pending)))
        self._last_done = time.monotonic()
        return done

    def outcome(self, future: Future[Arrived]) -> Any:
        """Returns the result of a task. Raises the exception of the task, or WorkerError if the executor gave it up."""
        try:
            return self._wait(future).result
        except Arrived as arrived:
            return arrived.result
        except CancelledError as error:
            self._look()
            raise WorkerError(f"the executor gave up a task: {error}") from None
        except (AttributeError, ImportError) as error:  # a pickled name does not exist there
            if isinstance(error, Error):
                raise
            raise WorkerError(
                f"a worker cannot run the tasks of pybpe {__version__}: {error}; install this version on all workers"
            ) from None
        except Exception as error:
            # Dask's own errors (KilledWorker and so on) are plain Exceptions of its module.
            if _is_of_dask(error):
                raise WorkerError(f"the cluster could not do a task: {' '.join(str(error).split())}") from None
            raise

    def _wait(self, future: Future[Arrived]) -> Arrived:
        while True:
            try:
                result = future.result(self._look_seconds)
                self._last_done = time.monotonic()
                return result
            except FutureTimeoutError:
                if future.done() and isinstance(future.exception(), FutureTimeoutError):
                    raise  # the task raised it
                self._look()
                self._check_time(future)

    def _check_time(self, future: Future[Arrived]) -> None:
        """Raises WorkerError if no result has arrived for longer than a task may take. Executors begin tasks in the
        order in which they get them, so `future`, the first of those that are left, has taken that long."""
        if self._idle_since is not None:  # no worker is there to take the task
            self._last_done = time.monotonic()
        if self._timeout is not None and time.monotonic() - self._last_done > self._timeout:
            raise WorkerError(
                f"{_described_task(self._tasks.get(future))} took longer than {param('task_timeout')},"
                f" {self._timeout:g} seconds{self._busy()}. If its worker hangs, end it; then run the same again: it"
                " resumes"
            )

    def _busy(self) -> str:
        """Returns which workers of a Dask cluster have tasks."""
        if self._dask is None:
            return ""
        busy = [address for address, tasks in self._dask.processing().items() if tasks]
        return f" (workers with tasks: {', '.join(sorted(busy))})" if busy else ""

    def _look(self) -> None:
        """Raises WorkerError if the cluster is gone. Warns if it has had no workers for some seconds."""
        if self._dask is None:
            return
        address = getattr(getattr(self._dask, "scheduler", None), "address", "")
        if self._dask.status != "running":
            raise WorkerError(
                f"the connection to the Dask scheduler {address} is lost. Start one and run the same again: it resumes"
            )
        if self._dask.scheduler_info().get("workers"):
            self._idle_since = None
            return
        self._idle_since = self._idle_since or time.monotonic()
        if not self._has_warned and time.monotonic() - self._idle_since >= _PATIENCE_SECONDS:
            self._has_warned = True
            warn(f"the Dask scheduler {address} has no workers. Waiting for one (Ctrl-C to stop)")


def _described_task(task: Any) -> str:
    """Returns which part of the input a task reads: the first of its ranges."""
    parts = task if isinstance(task, list) else [task]
    file = getattr(parts[0], "file", None)
    return "a task" if file is None else f"the task that begins at {parts[0].start} of {file.path}"


def _is_of_dask(thing: object) -> bool:
    return type(thing).__module__.partition(".")[0] in ("distributed", "dask")


class _Call:
    """A call that happens when this object is unpickled. A Dask worker that cannot unpickle a task, because it has
    another pybpe or none, loses its connection, and Dask gives the task to the next worker, forever. So pybpe sends a
    task as bytes, which every worker can unpickle; if the call inside them fails, that is an ordinary error."""

    def __init__(self, call: tuple[Any, ...]) -> None:
        self._call = call

    def __reduce__(self) -> tuple[Any, ...]:
        return self._call[0], self._call[1:]


class Build(NamedTuple):
    """The versions on which results depend, and the machine that runs them."""

    version: str  # the version of pybpe
    # The versions of the C library's Unicode tables, of the package regex, and of Python's tables.
    unicode: tuple[str, str, str]
    host: str  # the name of the machine. It does not affect results.


@cache
def build() -> Build:
    """Returns the Build of this process."""
    versions = (_binding.unicode_version(), regex.__version__, unicodedata.unidata_version)
    return Build(__version__, versions, socket.gethostname())


class Arrived(Exception):
    """The result of a task, on its way from an executor's worker.

    If a Dask worker dies just after its task's result has arrived, Dask's executor mistakes the result for an error to
    raise, and unpacks it (distributed/cfexecutor.py). This object then raises itself, so that the result is not lost.
    """

    def __init__(self, result: Any) -> None:
        super().__init__(result)
        self.result = result

    def __iter__(self) -> Iterator[Any]:
        raise self


def _arrive(
    wanted: Build, caller: tuple[int, Mapping[str, str] | None], function: Callable[..., object], *args: object
) -> Arrived:
    """Runs a task on a worker. Its errors are for the user of the process that sent it: `caller` has the number of that
    process, and its `arguments.flags`."""
    if caller[0] != os.getpid():
        arguments.flags = caller[1]
    mine = build()
    if mine[:2] != wanted[:2]:
        raise WorkerError(
            f"the worker {_name_of_worker()} has {_described(mine)}, and this run needs {_described(wanted)}:"
            " install the same versions on all workers"
        )
    try:
        return Arrived(function(*args))
    except Error as error:
        if mine.host != wanted.host or "distributed" in sys.modules:
            error.args = (f"{error} (on the worker {_name_of_worker()})", *error.args[1:])
        raise


def _described(some: Build) -> str:
    tables, regex_version, python = some.unicode
    return f"pybpe {some.version} with Unicode {tables}, regex {regex_version} and Python's Unicode {python}"


def _name_of_worker() -> str:
    """Returns the worker's address in a Dask cluster, otherwise its machine and process."""
    if "distributed" in sys.modules:
        try:
            return str(sys.modules["distributed"].get_worker().address)
        except ValueError:  # this is not a Dask worker
            pass
    return f"{socket.gethostname()}, process {os.getpid()}"


# ----------------------------------------------------------------------------------------------------
# A folder that all workers see

RUN_MARK = "run"  # a file with the random number of the run


class SharedFolder(NamedTuple):
    """The folder of a run, as workers find it."""

    path: str  # its path, which must be the same on all machines
    number: str  # a random number. A worker that does not find it in the folder sees another folder.

    @classmethod
    def begin(cls, path: str) -> SharedFolder:
        """Marks an existing folder as the folder of a new run."""
        shared = cls(os.path.abspath(path), secrets.token_hex(16))
        _binding.write_file(os.path.join(shared.path, RUN_MARK), shared.number.encode())
        return shared

    def is_seen(self) -> bool:
        """Returns whether this machine sees the folder, and no other one of its name."""
        mark, found = os.path.join(self.path, RUN_MARK), ""
        with file_errors(mark, "cannot be read"), suppress(FileNotFoundError, NotADirectoryError):
            with open(mark, "rb") as stream:
                found = stream.read().decode("latin-1")
        return found == self.number

    def new_file(self, name: str, ending: str = "") -> str:
        """Returns the path of a new file. If a cluster repeats a task, the names differ. Raises WorkerError if this
        machine sees another folder of this name, or none."""
        if not self.is_seen():
            raise WorkerError(
                f"{self.path}: all workers must see this folder of the run: put the output on a shared disk"
            )
        return os.path.join(self.path, f"{name}-{secrets.token_hex(4)}{ending}")
