"""Keeps the tokens of a run in one folder per part, which the worker that made the part writes itself.

    the process that runs            a worker                                  a folder that they share
    plans tasks, up to 64
      per part                  ->   encodes the tasks of a part          ->   part-..: files as in spool.py
      how many tokens there are <-
    knows what each shard is         copies ranges of the parts' files,   ->   shard-..
      made of                   ->   and hashes them on the way
    gives the shards their names, writes the manifest                     ->   NAME_train_000000.bin ...

So no token passes through the process that runs: it can take only about as much as a few workers make. The text is
encoded once. How many tokens come before a part is known only when all earlier parts are there, so shards need a copy
of the ids, which costs a tenth of encoding. One worker writes a shard from its first byte to its last, because network
file systems do not let several machines write to one file.

Whether a part begins inside a document follows from the plan: the range before it ends inside one. That is wrong only
if a mark is the last thing in that range. Then the part is made again.

A worker that was given up, and continues, changes nothing: each part has a name of its own, which the log knows, and
the name of a shard contains what it depends on.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from .. import _binding
from ..errors import WorkerError, file_errors
from ..reading.bad_records import Seen
from ..reading.planning import Task, anchored
from ..reading.small_files import Corpus
from ..reading.streams import file_sha256, read_file
from ..reading.text_encoding import Doubts
from ..support.output_files import make_folder, remove_entry, remove_file
from ..support.parallel import RunOptions
from ..support.platform import sync_folder
from ..support.remote import RUN_MARK, SharedFolder, map_by_executor, most_pending
from .encoding import Encoded, EncodingJob, Part, TaskEncoder, task_results
from .options import Layout
from .spool import START_BYTES, Reached, SplitWriter, size_of
from .store import Place, ShardOrder, Store, TextMarks, add_mark, make_shard, spool_files

_PER_WORKER = 8  # parts, so that no worker waits long for the last ones
_MOST_TASKS = 64
_MOST_FILES = 1 << 12  # of a part: a message must not grow with the number of small files
_THREADS = 16  # each of them waits for the disk, or for a file system on other machines
_PATIENCE_SECONDS = 10.0  # the time that a network file system may need to show a file to other machines
_PAUSE_SECONDS = 0.1
_CONTEXT = "context"  # the file with the pickled TaskEncoder and Layout, which a worker reads once
_MARKS = "marks"  # the file of a part with the TextMarks of each split


def is_shared(path: str, options: RunOptions) -> bool:
    """Returns whether the workers of a run see a folder under the same name. Asks as often as tasks are submitted at
    once, so that probably each worker answers."""
    folder, count = SharedFolder.begin(make_folder(path)), most_pending(options.workers)
    try:
        return all(seen for _, seen in map_by_executor(SharedFolder.is_seen, [folder] * count, options))
    finally:
        remove_file(os.path.join(path, RUN_MARK))


# ----------------------------------------------------------------------------------------------------
# On a worker


class Order(NamedTuple):
    """The message with which a worker makes a part."""

    tasks: Sequence[Task]  # the tasks
    folder: SharedFolder  # the folder of the run
    context: str  # the SHA-256 of the file _CONTEXT in it
    plan: str  # the hash of all tasks up to the last one: see `hashed_tasks`
    inside: Sequence[bool]  # for each split, whether the part begins inside a document


def make_part(order: Order) -> Encoded:
    """Makes a part, on a worker. What the store of the splits keeps is the name of the part's folder; `splits` is what
    each split gets. It returns records only if the run skips bad ones."""
    path = make_folder(order.folder.new_file("part"))
    encoder, layout = _context(order.folder, order.context)
    mode, eot = layout.output.mode, encoder.tok.eot_token
    writers = [
        SplitWriter(spool_files(layout, path, split), mode, eot, Reached(in_document=inside))
        for split, inside in enumerate(order.inside)
    ]
    marks: list[TextMarks] = [[(0, 0)] for _ in writers]
    size, doubt, seen = 0, None, list[Seen]()
    try:
        for result in (result for task in order.tasks for result in task_results(encoder, task)):
            size, doubt = size + result.size, doubt or result.doubt
            seen += [some for some in result.seen if some.skips]
            for segment in result.segments:
                writer = writers[segment.split]
                writer.add(segment)
                add_mark(marks[segment.split], writer.reached)
        for writer in writers:
            writer.sync()
    finally:
        for writer in writers:
            writer.close()
    _binding.write_file(os.path.join(path, _MARKS), json.dumps(marks).encode())
    sync_folder(order.folder.path)
    splits = [writer.reached for writer in writers]
    return Encoded((), size, len(order.tasks), doubt, seen, order.plan, splits, os.path.basename(path))


@lru_cache(maxsize=2)
def _context(folder: SharedFolder, digest: str) -> tuple[TaskEncoder, Layout]:
    """Returns what all parts have in common. A process reads it once."""
    path = os.path.join(folder.path, _CONTEXT)
    data = read_file(path)
    if hashlib.sha256(data).hexdigest() != digest:
        raise WorkerError(f"{path}: has been changed, or cannot be read completely here: run again")
    return pickle.loads(data)  # type: ignore[no-any-return]


# ----------------------------------------------------------------------------------------------------
# In the process that runs


class SharedStore(Store):
    """Does what an AppendStore does, for runs with an executor whose workers see the output folder.

    Args:
        layout: the token files.
        encoding: the tasks, and what encodes them.
        identity: a hash of everything that the result depends on, except the inputs. The folder's name has it.
    """

    def __init__(self, layout: Layout, encoding: EncodingJob, identity: str) -> None:
        super().__init__(layout, len(encoding.encoder.splits), _THREADS)
        self._encoding, self._context = encoding, pickle.dumps((encoding.encoder, layout))
        self._folder = os.path.abspath(os.path.join(layout.unfinished, f"workers-{identity[:16]}"))
        self._plan = ""

    def note(self, part: Part) -> None:
        self._places.append(Place(os.path.join(self._folder, part.kept), self._reached, part.splits))
        self._plan = part.plan

    def has(self, part: Part) -> bool:
        return os.path.isdir(os.path.join(self._folder, part.kept))

    def steps(self, last: Part, options: RunOptions, doubts: Doubts) -> Iterator[Encoded]:
        """Raises WorkerError: as in map_by_executor."""
        folder = SharedFolder.begin(make_folder(self._folder))
        context = os.path.join(self._folder, _CONTEXT)
        _binding.write_file(context, self._context)
        keep = {RUN_MARK, _CONTEXT, *(os.path.basename(place.folder) for place in self._places)}
        with file_errors(self._folder, "cannot be emptied"):
            for name in set(os.listdir(self._folder)) - keep:
                remove_entry(os.path.join(self._folder, name))
        model = Order((), folder, file_sha256(context), "", ())
        most = tasks_per_part(self._encoding, most_pending(options.workers) // 2)
        for order, made in map_by_executor(make_part, self._part_orders(last, model, most), options):
            inside = [reached.in_document for reached in self._reached]
            if order.inside != inside:
                remove_entry(os.path.join(self._folder, made.kept))
                _, made = next(map_by_executor(make_part, [order._replace(inside=inside)], options))
            yield made._replace(splits=self._added(made))

    def _part_orders(self, last: Part, model: Order, most: int) -> Iterator[Order]:
        """Yields the orders for all tasks after the last part, at most so many in each."""
        inside = [reached.in_document for reached in last.splits]
        tasks: list[Task] = []
        plan = ""
        for task, plan in islice(self._encoding.hashed(_THREADS), last.tasks, None):
            tasks.append(anchored(task))
            if len(tasks) >= most or sum(len(Corpus(each.file for each in some)) for some in tasks) >= _MOST_FILES:
                yield model._replace(tasks=tasks, plan=plan, inside=inside)
                end, tasks = task[-1], []
                inside = [not end.ends_document and end.split == split for split in range(len(self.names))]
        if tasks:
            yield model._replace(tasks=tasks, plan=plan, inside=inside)

    def _added(self, made: Encoded) -> list[Reached]:
        """Waits for the files of a part. Returns how far each split has come with it."""
        splits = list[Reached]()
        for split, (start, more) in enumerate(zip(self._reached, made.splits)):
            files = spool_files(self._layout, os.path.join(self._folder, made.kept), split)
            _await(files.tokens_path, files.end(more.tokens))
            _await(files.starts_path, more.documents * START_BYTES)
            sums = (start.tokens + more.tokens, start.documents + more.documents, start.text_bytes + more.text_bytes)
            splits.append(Reached(*sums, more.in_document))
        return splits

    def _marks(self, place: Place, split: int) -> TextMarks:
        marks: list[TextMarks] = json.loads(read_file(os.path.join(place.folder, _MARKS)))
        return marks[split]

    def unnamed(self, split: int, index: int) -> str:
        return os.path.join(self._folder, f"shard-{self.names[split]}-{index:06d}-{self._plan[:16]}")

    def _made(self, orders: Sequence[ShardOrder], options: RunOptions) -> Iterator[tuple[str, str]]:
        folder = SharedFolder.begin(make_folder(self._folder))
        sent = (order._replace(folder=folder, named=os.path.abspath(order.named)) for order in orders)
        for order, (path, digest) in map_by_executor(make_shard, sent, options):
            _await(path, order.size)
            yield path, digest

    def _free(self, order: ShardOrder) -> None:
        for path, start, _ in order.stretches:
            if start == self._layout.output.form.header_bytes:  # no earlier shard has tokens of this file
                remove_file(path)


def tasks_per_part(encoding: EncodingJob, workers: int) -> int:
    """Returns how many tasks a part gets, for a number of workers."""
    size = encoding.plan.files.size
    return min(_MOST_TASKS, max(1, size // (encoding.plan.task_bytes * workers * _PER_WORKER)))


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
