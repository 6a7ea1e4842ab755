"""Tasks on the workers of an executor.

If the workers see the hidden folder of the run, they write the results there, so nothing that they make passes through
the process that runs. It can take only about as much as a few workers make. Otherwise they send their results, and it
writes them.

A worker that was given up, and continues, changes nothing, because it writes the same as another one.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any

from .. import _binding
from ..errors import WorkerError
from ..support.executors import SharedFolder, map_by_executor, most_pending
from ..support.parallel import RunOptions
from ..support.task_results import Order, size_of, write_results
from . import planning
from .files import Corpus
from .streams import read_file

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
        size: the amount of text in all tasks.
        run: the executor.
    """

    def __init__(self, hidden: str, results: Results, size: int, run: RunOptions) -> None:
        self._run, self._work = run, pickle.dumps(results)
        self._folder = SharedFolder.begin(hidden)
        self.is_shared = is_shared(self._folder, run)
        self._most = tasks_per_message(size, most_pending(run.workers) // 2)

    def done(self, orders: Iterable[Order]) -> Iterator[None]:
        """Does tasks. Yields after every task, in order. Raises WorkerError: as in map_by_executor."""
        if not self.is_shared:
            anchored = (order._replace(task=planning.anchored(order.task)) for order in orders)
            for order, data in map_by_executor(partial(_sent, self._work), anchored, self._run):
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
            message.append(order._replace(task=planning.anchored(order.task)))
            files += len(Corpus(each.file for each in order.task))
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


def tasks_per_message(size: int, workers: int) -> int:
    """Returns how many tasks a worker gets at once."""
    return min(_MOST_TASKS, max(1, size // (planning.TASK_BYTES * workers * _PER_WORKER)))


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
    data = read_file(path)
    if hashlib.sha256(data).hexdigest() != digest:
        raise WorkerError(f"{path}: has been changed, or cannot be read completely here: run again")
    return data


def _made(folder: SharedFolder, function: Callable[[Any], str], file: Any) -> str:
    folder.check()
    return function(file)
