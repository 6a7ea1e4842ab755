"""Bundles: tasks of a plan that one worker encodes at once, into one file.

A bundle has as many tasks as the amount of text and the number of workers suggest. The result does not depend on that,
so a run may resume with bundles of a different size.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from ...reading.bad_records import Seen
from ...reading.input_file import InputFile
from ...reading.planning import PlannedRange, Task, anchored
from ..workers import Encoding, Result, task_results
from .area import Area
from .bundle_file import BundleWriter
from .unknown_start import StartCases, UnknownStart

_PER_WORKER = 8  # bundles, so that no worker waits long for the last ones
_MOST_TASKS = 64
_PLANNING = 16  # threads
_HASH_DIGITS = 16  # of the hash in a name
_INLINE_BYTES = 600  # larger lists of ranges go through a file


class Bundle(NamedTuple):
    """What the client keeps of an encoded bundle.

    Attributes:
        first, tasks: the number of its first task, and how many it has.
        plan: the hash of all tasks up to its last one: see `hashed_tasks`.
        file_bytes: the size of its file.
        tokens: the number of tokens in the file, by split.
        starts: how the tokens depend on whether they begin inside a document, by split.
    """

    first: int
    tasks: int
    plan: str
    file_bytes: int
    tokens: Sequence[int]
    starts: Sequence[StartCases]

    @property
    def name(self) -> str:
        """The name of its file. It depends on all that the content depends on, except what the area's name has."""
        return bundle_name(self.first, self.tasks, self.plan)

    @property
    def kept(self) -> list[Any]:
        """All but the hash, as JSON values."""
        return [self.first, self.tasks, self.file_bytes, self.tokens, self.starts]

    @classmethod
    def of(cls, kept: Sequence[Any], plan: str) -> Bundle:
        """Returns the bundle of `kept` and a hash."""
        first, tasks, file_bytes, tokens, starts = kept
        found = [StartCases(tuple(dropped), documents, tuple(is_open)) for dropped, documents, is_open in starts]
        return cls(first, tasks, plan, file_bytes, tokens, found)


class Encoded(NamedTuple):
    """The message with which a worker answers.

    Attributes:
        bundle: what the client keeps.
        documents, text_bytes: how many begin in the bundle if it does not begin inside one, and the bytes of text, by
            split.
        amount, doubt, seen: as in Result; only records of runs that skip bad ones.
    """

    bundle: Bundle
    documents: Sequence[int]
    text_bytes: Sequence[int]
    amount: int
    doubt: str | None
    seen: Sequence[Seen]


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


def bundle_orders(work: Encoding, area: Area, first: int, tasks_each: int) -> Iterator[BundleOrder]:
    """Yields the orders for all tasks from number `first`."""
    hashed = islice(work.hashed(_PLANNING), first, None)
    while some := list(islice(hashed, tasks_each)):
        tasks, plan = [task for task, _ in some], some[-1][1]
        packed = _packed(tasks)
        if len(packed) <= _INLINE_BYTES or any(planned.file.remote for task in tasks for planned in task):
            yield BundleOrder(first, len(some), plan, packed)  # a URL may have a secret, which must not be in a file
        else:
            yield BundleOrder(first, len(some), plan, None, area.keep("ranges", packed))
        first += len(some)


def _packed(tasks: Sequence[Task]) -> bytes:
    """Returns tasks as few bytes: each file is there once, and a task is a list of plain tuples."""
    files: dict[InputFile, int] = {}
    rows = [[(files.setdefault(file, len(files)), *ranges) for file, *ranges in anchored(task)] for task in tasks]
    return zlib.compress(pickle.dumps((list(files), rows)))


def _unpacked(packed: bytes) -> list[Task]:
    files, rows = pickle.loads(zlib.decompress(packed))
    return [[PlannedRange(files[number], *ranges) for number, *ranges in task] for task in rows]


def encode_bundle(area: Area, order: BundleOrder) -> Encoded:
    """Makes a bundle, on a worker."""
    encoder, layout = area.load()
    packed = area.kept(order.kept) if order.ranges is None else order.ranges
    typecode = layout.spool("").typecode
    splits = range(len(encoder.splits))
    placers = [UnknownStart(layout.output.mode, encoder.tok.eot_token) for _ in splits]
    writer = BundleWriter(area.path(bundle_name(order.first, order.tasks, order.plan)), len(splits), typecode)
    amount, doubt, seen = 0, None, list[Seen]()
    try:
        for task in _unpacked(packed):
            for result in task_results(encoder, task):
                amount, doubt = amount + result.size, doubt or result.doubt
                seen += [some for some in result.seen if some.skips]
                _add(writer, placers, result, typecode)
        size, facts = writer.finish()
    except BaseException:
        writer.discard()
        raise
    tokens, documents, text_bytes = zip(*((one.tokens, one.documents, one.text_bytes) for one in facts))
    starts = [placer.start for placer in placers]
    bundle = Bundle(order.first, order.tasks, order.plan, size, tokens, starts)
    return Encoded(bundle, documents, text_bytes, amount, doubt, seen)


def _add(writer: BundleWriter, placers: Sequence[UnknownStart], result: Result, typecode: str) -> None:
    for segment in result.segments:
        placer = placers[segment.split]
        ids, starts = placer.place(segment.ids, segment.marks)
        writer.add(segment.split, ids, starts, segment.text_bytes)
        if segment.ends_document:
            writer.add(segment.split, placer.end_document(typecode), starts[:0], 0)
