"""Turns tasks into segments, in the order of the plan, by local threads or an executor's workers."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from functools import lru_cache, partial
from typing import NamedTuple

from ..arguments import whole_number
from ..reading.blocks import Block
from ..reading.documents import RECORDS
from ..reading.pieces import BLOCK_BYTES
from ..reading.planning import Task, anchored
from ..reading.text_encoding import Doubts
from ..support.parallel import map_ordered
from ..support.remote import map_by_executor
from .encoding import Segment, TaskEncoder

_LEAST_SIZE = 1 << 10  # the minimum that a block counts: it takes more memory than its text
PENDING = 64  # tasks submitted to an executor at once, unless `workers` is given


class Result(NamedTuple):
    """Some segments of a task.

    Attributes:
        segments: in order.
        size: the bytes of input read for them.
        ends_task: whether they are the task's last.
        doubt: what there is to say of a file that is not UTF-8 (see text_encoding.py).
    """

    segments: list[Segment]
    size: int
    ends_task: bool
    doubt: str | None = None


def run_local(encoder: TaskEncoder, tasks: Iterable[Task], workers: int | None, doubts: Doubts) -> Iterator[Result]:
    """Runs tasks with threads, which share a task block by block."""

    def items() -> Iterator[tuple[list[Block], bool]]:
        for task in tasks:
            for some in _batches(encoder.task_blocks(task)):
                yield some, False
            yield [], True

    def encode(item: tuple[list[Block], bool]) -> Result:
        some, ends_task = item
        segments = [segment for block in some for segment in encoder.segments(block)]
        return Result(segments, sum(map(_size, some)), ends_task, _doubt(encoder, some, doubts))

    return map_ordered(encode, items(), workers)


def _batches(blocks: Iterable[Block]) -> Iterator[list[Block]]:
    """Groups small blocks together: one group is one thread's unit of work."""
    batch: list[Block] = []
    size = 0
    for block in blocks:
        batch.append(block)
        size += max(_size(block), _LEAST_SIZE)
        if size >= BLOCK_BYTES // 2:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _doubt(encoder: TaskEncoder, some: Iterable[Block], doubts: Doubts) -> str | None:
    """A warning about the first block that is text, and not UTF-8."""
    for block in some:
        if not isinstance(block.data, list) and encoder.kinds.kind(block.path) not in RECORDS:
            if (doubt := doubts.look(block.data, block.path, block.start)) is not None:
                return doubt
    return None


def _size(block: Block) -> int:
    return sum(map(len, block.data)) if isinstance(block.data, list) else len(block.data)


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
    for block in encoder.task_blocks(task):
        segments += encoder.segments(block)
        size += _size(block)
        doubt = doubt or _doubt(encoder, [block], Doubts())
    return Result(segments, size, True, doubt)


@lru_cache(maxsize=2)
def _encoder(pickled: bytes) -> TaskEncoder:
    """Unpickles the encoder once per worker, not once per task."""
    return pickle.loads(pickled)  # type: ignore[no-any-return]
