"""Bundles: tasks of a plan that one worker encodes at once, into one file.

A bundle has as many tasks as the amount of text and the number of workers suggest. The result does not depend on that,
so a run may resume with bundles of a different size.
"""

from __future__ import annotations

import json
import os
import pickle
import zlib
from array import array
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice, takewhile
from typing import BinaryIO, NamedTuple

from ...errors import file_errors
from ...reading.input_file import InputFile
from ...reading.planning import PlannedRange, Task, anchored
from ...reading.streams import open_input
from ..workers import Encoding, Result, task_results
from .area import Area
from .bundle_file import BundleWriter
from .unknown_start import Start, UnknownStart

_PER_WORKER = 8  # bundles, so that no worker waits long for the last ones
_MOST_TASKS = 64
_PLANNING = 16  # threads
_HASH_DIGITS = 16  # of the hash in a name
_INLINE_BYTES = 600  # larger lists of ranges go through a file


class Bundle(NamedTuple):
    """What the client knows of an encoded bundle.

    Attributes:
        first, tasks: the number of its first task, and how many it has.
        plan: the hash of all tasks up to its last one: see `hashed_tasks`.
        amount: the amount of input read, as in Result.
        file_bytes: the size of its file.
        tokens: the number of tokens in the file, by split.
        starts: how the tokens depend on whether they begin inside a document, by split.
        doubt: as in Result.
    """

    first: int
    tasks: int
    plan: str
    amount: int
    file_bytes: int
    tokens: Sequence[int]
    starts: Sequence[Start]
    doubt: str | None = None

    @property
    def name(self) -> str:
        """The name of its file. It depends on all that the content depends on, except what the area's name has."""
        return bundle_name(self.first, self.tasks, self.plan)


def bundle_name(first: int, tasks: int, plan: str) -> str:
    """Returns the name of a bundle's file."""
    return f"bundle-{first}-{tasks}-{plan[:_HASH_DIGITS]}"


def tasks_per_bundle(work: Encoding, workers: int) -> int:
    """Returns how many tasks a bundle gets, for a number of workers."""
    size = sum(file.size or 0 for file in work.plan.files)
    return min(_MOST_TASKS, max(1, size // (work.plan.task_bytes * workers * _PER_WORKER)))


class BundleOrder(NamedTuple):
    """The message with which a worker makes a bundle.

    Attributes:
        first, tasks, plan: as in Bundle.
        ranges: the tasks' ranges, packed, or None if they are in the file `kept`.
        kept: its name.
    """

    first: int
    tasks: int
    plan: str
    ranges: bytes | None
    kept: str = ""


def bundle_orders(work: Encoding, area: Area, log: BundleLog, tasks_each: int) -> Iterator[BundleOrder]:
    """Yields the orders for all tasks that are not in bundles of the log. First drops those bundles from the log that
    are not right any longer, because an input has changed."""
    hashed = work.hashed(_PLANNING)
    if log.keep(_equal(log.bundles, hashed)):
        # If shards were written before the input changed, some bundles have been removed.
        there = set(area.names())
        log.keep(sum(1 for _ in takewhile(lambda bundle: bundle.name in there, log.bundles)))
        area.remove_others(("bundle-", "shard-"), {bundle.name for bundle in log.bundles})
        hashed = islice(work.hashed(_PLANNING), log.tasks, None)
    first = log.tasks
    while some := list(islice(hashed, tasks_each)):
        tasks, plan = [task for task, _ in some], some[-1][1]
        packed = _packed(tasks)
        if len(packed) <= _INLINE_BYTES or any(planned.file.remote for task in tasks for planned in task):
            yield BundleOrder(first, len(some), plan, packed)  # a URL may have a secret, which must not be in a file
        else:
            yield BundleOrder(first, len(some), plan, None, area.keep("ranges", packed))
        first += len(some)


def _equal(bundles: Sequence[Bundle], hashed: Iterator[tuple[Task, str]]) -> int:
    """Returns how many of the first bundles have the tasks that a plan has. Takes these tasks from it, and perhaps more
    if a bundle differs."""
    for number, bundle in enumerate(bundles):
        last = deque(islice(hashed, bundle.tasks), maxlen=1)
        if not last or last[0][1] != bundle.plan:
            return number
    return len(bundles)


def _packed(tasks: Sequence[Task]) -> bytes:
    """Returns tasks as few bytes: each file is there once, and a task is a list of plain tuples."""
    files: dict[InputFile, int] = {}
    rows = [[(files.setdefault(file, len(files)), *ranges) for file, *ranges in anchored(task)] for task in tasks]
    return zlib.compress(pickle.dumps((list(files), rows)))


def _unpacked(packed: bytes) -> list[Task]:
    files, rows = pickle.loads(zlib.decompress(packed))
    return [[PlannedRange(files[number], *ranges) for number, *ranges in task] for task in rows]


def encode_bundle(area: Area, order: BundleOrder) -> Bundle:
    """Makes a bundle, on a worker."""
    encoder, layout = area.load()
    packed = area.kept(order.kept) if order.ranges is None else order.ranges
    typecode = layout.spool("").typecode
    splits = range(len(encoder.splits))
    placers = [UnknownStart(layout.output.mode, encoder.tok.eot_token) for _ in splits]
    writer = BundleWriter(area.path(bundle_name(order.first, order.tasks, order.plan)), len(splits), typecode)
    amount, doubt = 0, None
    try:
        for task in _unpacked(packed):
            for result in task_results(encoder, task):
                amount, doubt = amount + result.size, doubt or result.doubt
                _add(writer, placers, result, typecode)
        size, tokens = writer.finish()
    except BaseException:
        writer.discard()
        raise
    return Bundle(
        order.first, order.tasks, order.plan, amount, size, tokens, [placer.start for placer in placers], doubt
    )


def _add(writer: BundleWriter, placers: Sequence[UnknownStart], result: Result, typecode: str) -> None:
    for segment in result.segments:
        placer = placers[segment.split]
        ids, starts = placer.place(segment.ids, segment.marks)
        writer.add(segment.split, ids, starts, segment.text_bytes)
        if segment.ends_document:
            writer.add(segment.split, placer.end_document(typecode), starts[:0], 0)


class BundleLog:
    """The bundles that are done, one line each, so that a killed run resumes after them.

    Args:
        path: the file. What follows its first damaged line is dropped.
    """

    def __init__(self, path: str) -> None:
        self.bundles: list[Bundle] = []
        self._ends = array("Q", [0])  # of the lines that were there
        self._path = path
        with file_errors(path, "cannot be opened"):
            self._stream: BinaryIO = open(path, "ab")
        self._read()

    @property
    def tasks(self) -> int:
        """The number of tasks in the bundles."""
        return self.bundles[-1].first + self.bundles[-1].tasks if self.bundles else 0

    def _read(self) -> None:
        with open_input(self._path) as stream:
            lines = stream.read().splitlines(keepends=True)
        for line in lines:
            bundle = _bundle_of(line)
            if bundle is None or bundle.first != self.tasks:
                break
            self.bundles.append(bundle)
            self._ends.append(self._ends[-1] + len(line))
        self._shorten(self._ends[-1])

    def _shorten(self, size: int) -> None:
        with file_errors(self._path, "cannot be shortened"):
            os.truncate(self._path, size)

    def keep(self, count: int) -> bool:
        """Drops all bundles but the first `count`. Returns whether there were more."""
        if count == len(self.bundles):
            return False
        self._shorten(self._ends[count])
        del self.bundles[count:]
        return True

    def add(self, bundle: Bundle) -> None:
        """Appends a bundle."""
        self.bundles.append(bundle)
        with file_errors(self._path, "cannot be written"):
            self._stream.write(json.dumps(bundle._replace(doubt=None)).encode() + b"\n")
            self._stream.flush()

    def sync(self) -> None:
        """Syncs the file to disk."""
        with file_errors(self._path, "cannot be written"):
            os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Closes the file."""
        self._stream.close()


def _bundle_of(line: bytes) -> Bundle | None:
    """Returns the bundle of a complete line, or None."""
    if not line.endswith(b"\n"):
        return None
    try:
        first, tasks, plan, amount, size, tokens, starts, _ = json.loads(line)
        found = [Start(tuple(dropped), documents, tuple(is_open)) for dropped, documents, is_open in starts]
    except (ValueError, TypeError):
        return None
    return Bundle(first, tasks, plan, amount, size, tokens, found)
