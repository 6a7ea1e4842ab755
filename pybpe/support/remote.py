"""Runs work on the workers of an executor: processes on this machine, or a cluster.

A worker must run the same pybpe, because another version, or other Unicode tables, could give other tokens; otherwise
its task raises WorkerError. Errors from a worker name the worker. While this process waits for a result, it checks
every second whether the cluster still exists, because Dask's executor never ends a task whose scheduler has died.
"""

from __future__ import annotations

import os
import pickle
import socket
import sys
import time
import unicodedata
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from concurrent.futures import TimeoutError as FutureTimeoutError
from functools import cache
from typing import Any, NamedTuple, TypeVar

from .. import _binding
from .._version import __version__
from ..errors import ArgumentError, Error, WorkerError, warn

Item = TypeVar("Item")
Result = TypeVar("Result")

_LOOK_SECONDS = 1.0  # between checks that the cluster still exists
_PATIENCE_SECONDS = 5.0  # the time that the cluster may have no workers before a warning


def map_by_executor(
    function: Callable[[Item], Result], items: Iterable[Item], executor: Executor, pending_items: int
) -> Iterator[Result]:
    """Yields function(item) for each item, in order, computed by an executor's workers. At most `pending_items` are
    submitted at once.

    Raises:
        WorkerError: a worker died, and the executor cannot continue; or a worker runs another pybpe. Exceptions from
            `function` are raised here.
    """
    workers = Workers(executor)
    pending: deque[Future[Arrived]] = deque()
    try:
        for item in items:
            pending.append(workers.submit(function, item))
            if len(pending) >= pending_items:
                yield workers.outcome(pending.popleft())
        while pending:
            yield workers.outcome(pending.popleft())
    except BrokenExecutor as error:
        raise WorkerError(f"a worker process died: {error}. Run the same again: it resumes") from None
    finally:
        for future in pending:
            future.cancel()


class Workers:
    """An executor, and the known state of its cluster."""

    def __init__(self, executor: Executor) -> None:
        if not hasattr(executor, "submit"):
            raise ArgumentError(f"executor must be a concurrent.futures.Executor, not {type(executor).__name__}")
        self._executor = executor
        # Dask's executor has no public name for its client.
        self._dask = getattr(executor, "_client", None) if _is_of_dask(executor) else None
        self._idle_since: float | None = None  # when the cluster was first seen without workers
        self._has_warned = False

    def submit(self, function: Callable[..., object], *args: object) -> Future[Arrived]:
        """Runs function(*args) on one of the workers. `outcome` returns the result.

        Raises:
            WorkerError: the executor no longer takes tasks.
        """
        call: tuple[Any, ...] = (_arrive, build(), function, *args)
        if self._dask is not None:
            call = (pickle.loads, pickle.dumps(_Call(call)))
        try:
            return self._executor.submit(*call)
        except BrokenExecutor:
            raise
        except RuntimeError as error:
            raise WorkerError(f"the executor refused a task: {error}") from None

    def first_done(self, pending: Collection[Future[Arrived]]) -> set[Future[Arrived]]:
        """Waits until at least one task is done. Returns those that are done."""
        while not (done := wait(pending, _LOOK_SECONDS, FIRST_COMPLETED).done):
            self._look()
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
                return future.result(_LOOK_SECONDS)
            except FutureTimeoutError:
                if future.done() and isinstance(future.exception(), FutureTimeoutError):
                    raise  # the task raised it
                self._look()

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
    """The versions on which results depend, and the machine that runs them.

    Attributes:
        version: the version of pybpe.
        unicode: the versions of the C library's Unicode tables, of the package regex, and of Python's tables.
        host: the name of the machine. It does not affect results.
    """

    version: str
    unicode: tuple[str, str, str]
    host: str


@cache
def build() -> Build:
    """Returns the Build of this process."""
    import regex

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


def _arrive(wanted: Build, function: Callable[..., object], *args: object) -> Arrived:
    """Runs a task on a worker."""
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
