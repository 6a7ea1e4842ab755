"""Turns tasks into segments, in the order of the plan, by local threads or an executor's workers."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from functools import lru_cache, partial
from itertools import islice
from typing import NamedTuple, Protocol

from ..arguments import whole_number
from ..reading.documents import RECORDS
from ..reading.pieces import PIECE_BYTES
from ..reading.planned_pieces import PlannedPiece
from ..reading.planning import Plan, Task, anchored
from ..reading.text_encoding import Doubts
from ..support.parallel import map_ordered
from ..support.remote import map_by_executor
from ..support.run_options import RunOptions
from .encoding import Segment, TaskEncoder

_LEAST_SIZE = 1 << 10  # the minimum size to count for a piece, since it takes more memory than its text
PENDING = 64  # tasks submitted to an executor at once, unless `workers` is given


class Result(NamedTuple):
    """Some segments of a task.

    Attributes:
        segments: in order.
        size: the amount of input read for them, such as bytes of text.
        ends_task: whether they are the task's last.
        doubt: what to say about a file that is not UTF-8 (see text_encoding.py).
    """

    segments: list[Segment]
    size: int
    ends_task: bool
    doubt: str | None = None


class Work(Protocol):
    """What a run writes: segments, task by task."""

    @property
    def description(self) -> str:
        """What is in progress, for the progress bar."""

    @property
    def unit(self) -> str:
        """The unit of `Result.size`."""

    def results(self, first: int, options: RunOptions, doubts: Doubts) -> Iterator[Result]:
        """Yields the results of all tasks from number `first`. They depend on nothing but the work itself."""


class Encoding(NamedTuple):
    """The work of binarize: the tasks of a plan, and what encodes them."""

    plan: Plan
    encoder: TaskEncoder

    @property
    def description(self) -> str:
        """See Work."""
        return "encoding"

    @property
    def unit(self) -> str:
        """See Work."""
        return "B"

    def results(self, first: int, options: RunOptions, doubts: Doubts) -> Iterator[Result]:
        """See Work."""
        tasks = islice(self.plan.tasks(), first, None)
        if options.executor is not None:
            return run_by_executor(self.encoder, tasks, options.executor, options.workers)
        return run_local(self.encoder, tasks, options.workers, doubts)


def run_local(encoder: TaskEncoder, tasks: Iterable[Task], workers: int | None, doubts: Doubts) -> Iterator[Result]:
    """Runs tasks with threads, which share a task piece by piece."""

    def items() -> Iterator[tuple[list[PlannedPiece], bool]]:
        for task in tasks:
            for some in _groups(encoder.task_pieces(task)):
                yield some, False
            yield [], True

    def encode(item: tuple[list[PlannedPiece], bool]) -> Result:
        some, ends_task = item
        segments = [segment for piece in some for segment in encoder.segments(piece)]
        return Result(segments, sum(map(_size, some)), ends_task, _doubt(encoder, some, doubts))

    return map_ordered(encode, items(), workers)


def _groups(pieces: Iterable[PlannedPiece]) -> Iterator[list[PlannedPiece]]:
    """Groups small pieces together: one group is one thread's unit of work."""
    group: list[PlannedPiece] = []
    size = 0
    for piece in pieces:
        group.append(piece)
        size += max(_size(piece), _LEAST_SIZE)
        if size >= PIECE_BYTES // 2:
            yield group
            group, size = [], 0
    if group:
        yield group


def _doubt(encoder: TaskEncoder, some: Iterable[PlannedPiece], doubts: Doubts) -> str | None:
    """A warning about the first piece that is text, and not UTF-8."""
    for piece in some:
        if not isinstance(piece.data, list) and encoder.kinds.kind(piece.path) not in RECORDS:
            if (doubt := doubts.look(piece.data, piece.path, piece.start)) is not None:
                return doubt
    return None


def _size(piece: PlannedPiece) -> int:
    return sum(map(len, piece.data)) if isinstance(piece.data, list) else len(piece.data)


def run_by_executor(
    encoder: TaskEncoder, tasks: Iterable[Task], executor: Executor, workers: int | None
) -> Iterator[Result]:
    """Runs each task on an executor's worker. Raises WorkerError if a worker died and the executor cannot continue."""
    limit = PENDING if workers is None else 2 * whole_number("workers", workers, 1)
    return map_by_executor(partial(run_task, pickle.dumps(encoder)), map(anchored, tasks), executor, limit)


def run_task(pickled: bytes, task: Task) -> Result:
    """Runs a task in a worker."""
    encoder = _encoder(pickled)
    segments: list[Segment] = []
    size, doubt = 0, None
    for piece in encoder.task_pieces(task):
        segments += encoder.segments(piece)
        size += _size(piece)
        doubt = doubt or _doubt(encoder, [piece], Doubts())
    return Result(segments, size, True, doubt)


@lru_cache(maxsize=2)
def _encoder(pickled: bytes) -> TaskEncoder:
    """Unpickles the encoder once per worker, not once per task."""
    return pickle.loads(pickled)  # type: ignore[no-any-return]
