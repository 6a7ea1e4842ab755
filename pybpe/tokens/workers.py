"""Turns tasks into segments, in the order of the plan, by local threads or an executor's workers."""

from __future__ import annotations

import pickle
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import NamedTuple

from ..reading.bad_records import Seen
from ..reading.pieces import PIECE_BYTES
from ..reading.planning import Piece, Plan, Task, anchored, hashed_tasks
from ..reading.text_encoding import Doubts, are_utf8
from ..support.parallel import map_ordered
from ..support.remote import Workers, map_by_executor
from ..support.run_options import RunOptions
from .encoding import TaskEncoder, segments_of
from .spool import Segment

_LEAST_SIZE = 1 << 10  # the minimum size to count for a piece, since it takes more memory than its text
PENDING = 64  # tasks submitted to an executor at once, unless `workers` is given


class Encoded(NamedTuple):
    """Some segments of a task.

    Attributes:
        segments: in order.
        size: the amount of input read for them, such as bytes of text.
        ends_task: whether they are the task's last.
        doubt: what to say about a file that is not UTF-8 (see text_encoding.py).
        seen: the records of the pieces, in order.
        plan: the hash of all tasks up to the one that ends, if the run can resume after its inputs have changed (see
            `hashed_tasks`).
    """

    segments: list[Segment]
    size: int
    ends_task: bool
    doubt: str | None = None
    seen: Sequence[Seen] = ()
    plan: str = ""


class Encoding(NamedTuple):
    """The work of binarize: the tasks of a plan, what encodes them, and what distinguishes each file from another one
    with the same name, by path."""

    plan: Plan
    encoder: TaskEncoder
    identities: Mapping[str, object]

    def encoded(self, first: int, options: RunOptions, doubts: Doubts) -> Iterator[Encoded]:
        """Yields the tokens of all tasks from number `first`."""
        hashes: deque[str] = deque()

        def tasks() -> Iterator[Task]:
            for task, digest in islice(self.hashed(), first, None):
                hashes.append(digest)
                yield task

        if options.executor is not None:
            found = run_by_executor(self.encoder, tasks(), options)
        else:
            found = run_local(self.encoder, tasks(), options.workers, doubts)
        for result in found:
            yield result._replace(plan=hashes.popleft()) if result.ends_task else result

    def hashes(self) -> Iterator[str]:
        """Yields the hash of the first task, of the first two tasks, and so on."""
        return (digest for _, digest in self.hashed())

    def hashed(self, threads: int = 1) -> Iterator[tuple[Task, str]]:
        """Yields each task with the hash of all tasks up to it. `threads` is as in Plan.tasks."""
        return hashed_tasks(self.plan.tasks(threads), self.identities)


def run_local(encoder: TaskEncoder, tasks: Iterable[Task], workers: int | None, doubts: Doubts) -> Iterator[Encoded]:
    """Runs tasks with threads, which share a task piece by piece."""

    def items() -> Iterator[tuple[list[Piece], bool]]:
        for task in tasks:
            for some in _groups(encoder.task_pieces(task)):
                yield some, False
            yield [], True

    return map_ordered(lambda item: _encode(encoder, *item, doubts), items(), workers)


def _encode(encoder: TaskEncoder, some: Sequence[Piece], ends_task: bool, doubts: Doubts) -> Encoded:
    segments = segments_of(encoder, some)  # which also notes the records
    seen = [piece.seen for piece in some if piece.seen.end]
    return Encoded(segments, sum(piece.size for piece in some), ends_task, _doubt(some, doubts), seen)


def _groups(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Groups small pieces together: one group is one thread's unit of work."""
    group: list[Piece] = []
    size = 0
    for piece in pieces:
        group.append(piece)
        size += max(piece.size, _LEAST_SIZE)
        if size >= PIECE_BYTES // 2:
            yield group
            group, size = [], 0
    if group:
        yield group


def _doubt(some: Iterable[Piece], doubts: Doubts) -> str | None:
    """Returns a warning about the first piece that is text, and not UTF-8."""
    texts = [(piece.text, piece.path, piece.start) for piece in some if piece.is_text]
    if len(texts) > 1 and are_utf8([data for data, _, _ in texts]):
        return None
    return next((doubt for text in texts if (doubt := doubts.look(*text)) is not None), None)


def run_by_executor(encoder: TaskEncoder, tasks: Iterable[Task], run: RunOptions) -> Iterator[Encoded]:
    """Runs each task on an executor's worker. Raises WorkerError if a worker died and the executor cannot continue."""
    call = partial(run_task, pickle.dumps(encoder))
    return map_by_executor(call, map(anchored, tasks), Workers.of(run), most_pending(run.workers))


def most_pending(workers: int | None) -> int:
    """Returns how many tasks are submitted to an executor at once, for the argument `workers`."""
    return PENDING if workers is None else 2 * workers


def run_task(pickled: bytes, task: Task) -> Encoded:
    """Runs a task in a worker."""
    segments: list[Segment] = []
    seen: list[Seen] = []
    size, doubt = 0, None
    for result in task_results(_encoder(pickled), task):
        segments += result.segments
        seen += result.seen
        size += result.size
        doubt = doubt or result.doubt
    return Encoded(segments, size, True, doubt, seen)


def task_results(encoder: TaskEncoder, task: Task) -> Iterator[Encoded]:
    """Yields the results of a task's pieces, in groups."""
    for some in _groups(encoder.task_pieces(task)):
        yield _encode(encoder, some, False, Doubts())


@lru_cache(maxsize=2)
def _encoder(pickled: bytes) -> TaskEncoder:
    """Unpickles the encoder once per worker, not once per task."""
    return pickle.loads(pickled)  # type: ignore[no-any-return]
