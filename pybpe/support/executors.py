"""Runs work on the workers of an executor: processes on this machine, or a cluster.

Any concurrent.futures.Executor is right: a process pool, Dask's, MPI's. pybpe only submits tasks and waits. So it tells
neither what an executor does when a worker dies (a process pool breaks, Dask gives the task to another worker), nor
which workers there are. Whatever an executor raises ends the run with a WorkerError. Another worker does the task when
the run resumes, so a result is never used twice. No executor notices a worker that hangs: the user may limit the time
of a task, and otherwise a line says after a minute that nothing arrives.

A worker must run the same pybpe, because another version, or other Unicode tables, could give other tokens. Otherwise
its task raises WorkerError. Errors from another machine name it.
"""

from __future__ import annotations

import hashlib
import math
import os
import pickle
import secrets
import socket
import time
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager, suppress
from functools import cache, lru_cache, partial
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import regex

from .. import _binding, arguments
from .._version import __version__
from ..arguments import param
from ..errors import ArgumentError, Error, WorkerError, file_errors, note
from . import progress
from .parallel import RunOptions
from .task_results import Order, size_of, write_results

Item = TypeVar("Item")
Result = TypeVar("Result")

_PENDING = 64  # tasks submitted at once, unless `workers` is given
_LOOK_SECONDS = 1.0  # until Ctrl-C is noticed on Windows
_QUIET_SECONDS = 60.0  # the time without a result before a note


def most_pending(workers: int | None) -> int:
    """Returns how many tasks are submitted at once, for the argument `workers`."""
    return _PENDING if workers is None else 2 * workers


def map_by_executor(
    function: Callable[[Item], Result], items: Iterable[Item], run: RunOptions, ordered: bool = True
) -> Iterator[tuple[Item, Result]]:
    """Yields (item, function(item)) for all items, computed by the workers of the run's executor. In order, unless
    `ordered` is False. Raises WorkerError if the executor does not do a task, or it takes longer than task_timeout."""
    if not hasattr(run.executor, "submit"):
        raise ArgumentError(
            f"{param('executor')} must be a concurrent.futures.Executor, not {type(run.executor).__name__}"
        )
    executor: Executor = run.executor  # type: ignore[assignment]
    pending: dict[Future[Result], Item] = {}  # in the order of submission
    rest, most = iter(items), most_pending(run.workers)
    try:
        while True:
            for item in islice(rest, most - len(pending)):
                with _executor_errors():
                    pending[_submit(executor, function, item)] = item
            if not pending:
                return
            for future in _first_done(pending, ordered, run.task_timeout):
                with _executor_errors():
                    result = future.result()
                yield pending.pop(future), result
    except KeyboardInterrupt:
        # At a terminal, the workers of a process pool receive Ctrl-C, too. If they die of it, the pool's thread fails
        # at tasks that are cancelled, with a traceback.
        if isinstance(executor, ProcessPoolExecutor):
            pending.clear()
        raise
    finally:
        for future in pending:
            future.cancel()


def _first_done(
    pending: dict[Future[Result], Item], ordered: bool, timeout: float | None
) -> Collection[Future[Result]]:
    """Waits until the first task, or if not `ordered`, any task is done. Returns the tasks that are done.

    Executors begin tasks in order, so the first has a worker if any has.
    """
    first = next(iter(pending))
    limit, quiet, begin = timeout or math.inf, _QUIET_SECONDS, time.monotonic()
    while True:
        done = wait([first] if ordered else pending, min(limit, _LOOK_SECONDS), FIRST_COMPLETED).done
        if done:
            return done
        progress.look()
        waited = time.monotonic() - begin
        if waited > limit:
            raise WorkerError(
                f"{_described(pending[first])} took longer than {param('task_timeout')}, {limit:g} seconds. If its"
                " worker hangs, end it; then run the same again: it resumes"
            )
        if waited > quiet:
            note(f"{_described(pending[first])} has taken {quiet:g} seconds: waiting for a worker (Ctrl-C to stop)")
            quiet = math.inf


def _described(item: Any) -> str:
    """Returns which part of the input a task reads: its first range, which is the first thing in it."""
    while isinstance(item, (list, tuple)) and item and not hasattr(item, "file"):
        item = item[0]
    return f"the task that begins at {item.start} of {item.file.path}" if hasattr(item, "file") else "a task"


@contextmanager
def _executor_errors() -> Iterator[None]:
    """Turns an error of an executor into a WorkerError. Errors of pybpe come from a task."""
    try:
        yield
    except Error:
        raise
    except Exception as error:
        told = " ".join(f"{type(error).__name__}: {error}".split()).rstrip(":")
        raise WorkerError(
            f"a worker died, or could not do its task ({told}): all workers need pybpe {__version__}; run the same"
            " again: it resumes"
        ) from error


# ----------------------------------------------------------------------------------------------------
# On a worker


def _submit(executor: Executor, function: Callable[[Item], Result], item: Item) -> Future[Result]:
    call: tuple[Any, ...] = (_run, versions(), _process(), arguments.flags, function, item)
    if type(executor).__module__.startswith("distributed"):
        call = (pickle.loads, pickle.dumps(_Call(call)))
    return executor.submit(*call)


class _Call:
    """A call that happens when this object is unpickled. If a Dask worker cannot unpickle a task, because it has
    another pybpe or none, Dask gives the task to the next worker, forever, and its scheduler unpickles tasks too. So
    pybpe sends a task as bytes, which all can unpickle. If the call inside them fails, that is an ordinary error."""

    def __init__(self, call: tuple[Any, ...]) -> None:
        self._call = call

    def __reduce__(self) -> tuple[Any, ...]:
        return self._call[0], self._call[1:]


def _run(
    wanted: str,
    caller: tuple[str, int],
    flags: Mapping[str, str] | None,
    function: Callable[[Item], Result],
    item: Item,
) -> Result:
    """Runs a task on a worker. Its errors are for the user of the process `caller`, which sent it and whose
    `arguments.flags` are `flags`."""
    host, process = here = _process()
    if here != caller:
        arguments.flags = flags
    worker = f"the worker {host}, process {process}"
    if versions() != wanted:
        raise WorkerError(
            f"{worker} has {versions()}, and this run needs {wanted}: install the same versions on all workers"
        )
    try:
        return function(item)
    except Error as error:
        if host != caller[0]:
            error.args = (f"{error} (on {worker})", *error.args[1:])
        raise


def _process() -> tuple[str, int]:
    """Returns the machine and the number of this process."""
    return socket.gethostname(), os.getpid()


@cache
def versions() -> str:
    """Returns the versions that decide results: of pybpe, and of the Unicode tables of the C library, of the
    package regex, and of Python."""
    tables = f"Unicode {_binding.unicode_version()}, regex {regex.__version__}"
    return f"pybpe {__version__} with {tables} and Python's Unicode {unicodedata.unidata_version}"


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

    def check(self) -> None:
        """Raises WorkerError if this machine sees another folder of this name, or none."""
        if not self.is_seen():
            raise WorkerError(
                f"{self.path}: all workers must see this folder of the run: put the output on a shared disk"
            )


# ----------------------------------------------------------------------------------------------------
# Tasks (see planning.py) on workers
#
# If the workers see the hidden folder of the run, they write the results there, so nothing that they make passes
# through the process that runs. It can take only about as much as a few workers make. Otherwise they send their
# results, and it writes them. A worker that was given up, and continues, changes nothing, because it writes the same as
# another one.

_PER_WORKER = 8  # messages, so that no worker waits long for the last ones
_MOST_TASKS = 64  # of a message
_MOST_FILES = 1 << 12  # of a message, which must not grow with the number of small files
_PATIENCE_SECONDS = 10.0  # the time that a network file system may need to show a file to other machines
_PAUSE_SECONDS = 0.1
_WORK = "work"  # the file with the pickled function, which a worker reads once

Results = Callable[[Order], Iterable[_binding.Data]]
"""Returns the results of a task, in parts, in the form of task_results.py."""


class Workers:
    """The workers of a run with an executor.

    Args:
        hidden: the hidden folder of the output.
        results: makes the results of tasks. It is sent to the workers.
        tasks: about how many tasks there are.
        run: the executor.
    """

    def __init__(self, hidden: str, results: Results, tasks: int, run: RunOptions) -> None:
        self._run, self._work = run, pickle.dumps(results)
        self._folder = SharedFolder.begin(hidden)
        self.is_shared = is_shared(self._folder, run)
        self._most = tasks_per_message(tasks, most_pending(run.workers) // 2)

    def done(self, orders: Iterable[Order]) -> Iterator[None]:
        """Does tasks with anchored files. Yields after each, in order. Raises WorkerError: as in map_by_executor."""
        if not self.is_shared:
            for order, data in map_by_executor(partial(_sent, self._work), orders, self._run):
                write_results(order.path, [data])
                yield
            return
        _binding.write_file(os.path.join(self._folder.path, _WORK), self._work)
        write = partial(_written, self._folder, hashlib.sha256(self._work).hexdigest())
        for message, sizes in map_by_executor(write, self._messages(orders), self._run):
            for order, size in zip(message, sizes):
                _await(order.path, size)
                yield

    def _messages(self, orders: Iterable[Order]) -> Iterator[list[Order]]:
        message: list[Order] = []
        files = 0
        for order in orders:
            message.append(order)
            files += sum(len(each.file.paths) for each in order.task)
            if len(message) >= self._most or files >= _MOST_FILES:
                yield message
                message, files = [], 0
        if message:
            yield message

    def make(self, function: Callable[[Any], str], files: Iterable[Any]) -> Iterator[str]:
        """Makes files in the shared folder, which have a path and a size. Yields function(file) for all of them, in
        order."""
        for file, made in map_by_executor(partial(_made, self._folder, function), files, self._run):
            _await(file.path, file.size)
            yield made


def is_shared(folder: SharedFolder, run: RunOptions) -> bool:
    """Returns whether the workers of a run see a folder under the same name. Asks as often as tasks are submitted at
    once, so that probably every worker answers."""
    count = most_pending(run.workers)
    return all([is_seen for _, is_seen in map_by_executor(SharedFolder.is_seen, [folder] * count, run)])


def tasks_per_message(tasks: int, workers: int) -> int:
    """Returns how many of all tasks a worker gets at once."""
    return min(_MOST_TASKS, max(1, tasks // (workers * _PER_WORKER)))


def _await(path: str, size: int) -> None:
    """Waits until this machine sees a file of this size, which a worker wrote. Raises WorkerError if it does not."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while size_of(path) != size:
        if time.monotonic() > deadline:
            raise WorkerError(
                f"{path}: a worker wrote {size} bytes, but this machine does not see them: the output folder must be on"
                " a file system that all machines share"
            )
        time.sleep(_PAUSE_SECONDS)


# ----------------------------------------------------------------------------------------------------
# On a worker


def _sent(work: bytes, order: Order) -> bytes:
    return b"".join(_unpickled(work)(order))


@lru_cache(maxsize=2)
def _unpickled(work: bytes) -> Results:
    """Unpickles the function once per worker, not once per task."""
    return pickle.loads(work)  # type: ignore[no-any-return]


def _written(folder: SharedFolder, digest: str, message: Sequence[Order]) -> list[int]:
    folder.check()
    results = _unpickled(_shared_work(folder, digest))
    return [write_results(order.path, results(order)) for order in message]


@lru_cache(maxsize=2)
def _shared_work(folder: SharedFolder, digest: str) -> bytes:
    """Returns the pickled function. A process reads it once."""
    path = os.path.join(folder.path, _WORK)
    with file_errors(path, "cannot be opened"), open(path, "rb") as stream:
        data = stream.read()
    if hashlib.sha256(data).hexdigest() != digest:
        raise WorkerError(f"{path}: has been changed, or cannot be read completely here: run again")
    return data


def _made(folder: SharedFolder, function: Callable[[Any], str], file: Any) -> str:
    folder.check()
    return function(file)
