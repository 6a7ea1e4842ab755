"""The client's part of a run whose workers write: what to do, in which order, and what is done already."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from ...errors import ArgumentError, FormatError, LimitError, file_errors
from ...reading.splits import SPLIT_NAMES
from ...reading.text_encoding import Doubts
from ...support.output_files import give_name, remove_file
from ...support.parallel import map_ordered
from ...support.progress import Progress
from ...support.remote import Workers, map_by_executor
from ...support.run_options import RunOptions
from ..equal_shards import sizes_of
from ..layout import Layout
from ..manifest import ShardRecord
from ..parts import PartsLog
from ..publication import Publication, Records, say_that_work_is_kept
from ..workers import Encoding, most_pending
from .area import Area, Context, make_area
from .bundles import Bundle, BundleLog, bundle_orders, encode_bundle, tasks_per_bundle
from .index import Index, places
from .shards import RECORD, ShardOrder, read_record, write_shard

SYNC_SECONDS = 10.0
_PUBLISHING = 16  # threads: each operation waits for the disk, or for a file system on other machines
_LOG = "bundles.log"


class _Shard(NamedTuple):
    """A shard to write: the order for it, and the number of the first bundle that it needs."""

    order: ShardOrder
    bundle: int


def write_by_workers(
    work: Encoding, layout: Layout, log: PartsLog, publication: Publication, options: RunOptions, total: int | None
) -> Records:
    """Does the work of a run up to the last shard, on the workers of an executor that share the output folder.

    Args:
        work: the tasks.
        layout: the token files.
        log: that of the output folder, for such a run.
        publication: removes older files before the first shard gets its name.
        options: how to use the machine; there is an executor.
        total: the bytes of text, if known.

    Returns:
        The shards' records by split.

    Raises:
        WorkerError: a worker does not share the folder; or as in map_by_executor. Otherwise as Run.write_shards.
    """
    assert log.area is not None
    area = make_area(log.area, Context(work.encoder, layout))
    run = _WorkersRun(work, area, layout, options)
    try:
        bundles = run.encode(total)
        shards = run.plan(bundles)
        run.write(shards, bundles)
    except (ArgumentError, LimitError):
        log.remove()  # the results so far are useless
        raise
    except FormatError as error:
        if run.has_work:
            say_that_work_is_kept(error)
        else:
            log.remove()
        raise
    orders = [shard.order for shard in shards]
    files = [os.path.basename(layout.path(order.split, order.shard)) for order in orders]
    log.complete([], files)
    publication.begin(files)
    return run.publish(orders)


class _WorkersRun:
    """A run in an area. The arguments are as in `write_by_workers`."""

    def __init__(self, work: Encoding, area: Area, layout: Layout, options: RunOptions) -> None:
        self._work, self._area, self._layout = work, area, layout
        self._workers, self._progress = Workers.of(options), options.progress
        self._pending = most_pending(options.workers)
        self.has_work = False  # whether some bundles are done

    def encode(self, total: int | None) -> list[Bundle]:
        """Makes the bundles that are not in the log. Returns all of them."""
        log, doubts, saved = BundleLog(self._area.path(_LOG)), Doubts(), time.monotonic()
        orders = bundle_orders(self._work, self._area, log, tasks_per_bundle(self._work, self._pending // 2))
        try:
            with Progress(self._work.description, total, self._work.unit, self._progress) as bar:
                made = map_by_executor(partial(encode_bundle, self._area), orders, self._workers, self._pending)
                for bundle in made:
                    self._area.check_visible(bundle.name, bundle.file_bytes)
                    doubts.tell(bundle.doubt)
                    log.add(bundle)
                    bar.add(bundle.amount)
                    if time.monotonic() - saved >= SYNC_SECONDS:
                        log.sync()
                        saved = time.monotonic()
            log.sync()
        finally:
            self.has_work = bool(log.bundles)
            with suppress(OSError):  # the first error counts, and after `sync` there is none
                log.close()
        return log.bundles

    def plan(self, bundles: list[Bundle]) -> list[_Shard]:
        """Returns the orders of all shards. Writes the indexes that they refer to."""
        shards: list[_Shard] = []
        for number, split in enumerate(SPLIT_NAMES[: len(self._work.encoder.splits)]):
            index = Index(list(places(bundles, number)))
            name = self._area.keep("index", index.to_bytes())
            first = 0
            for shard, size in enumerate(sizes_of(self._layout, split, index.tokens)):
                order = ShardOrder(number, split, shard, first, size, name)
                shards.append(_Shard(order, index.bundle_of(first)))
                first += size
        return shards

    def write(self, shards: list[_Shard], bundles: list[Bundle]) -> None:
        """Writes the shards that have no record, and removes each bundle when no shard needs it any longer."""
        there = set(self._area.names())
        todo = [shard for shard in shards if shard.order.name + RECORD not in there]
        todo.sort(key=lambda shard: shard.bundle)
        needed = [shard.bundle for shard in todo[1:]] + [len(bundles)]  # the first one, after each shard
        removed = 0
        orders = (shard.order for shard in todo)
        made = map_by_executor(partial(write_shard, self._area), orders, self._workers, self._pending)
        with Progress("writing shards", len(todo), "shard", self._progress) as bar:
            for shard, size, first in zip(todo, made, needed):
                self._area.check_visible(shard.order.name, size)
                for bundle in bundles[removed:first]:
                    remove_file(self._area.path(bundle.name))
                removed = max(removed, first)
                bar.add(1)

    def publish(self, orders: list[ShardOrder]) -> Records:
        """Gives the shards their names. Returns their records."""
        records: Records = {split: [] for split in SPLIT_NAMES[: len(self._work.encoder.splits)]}
        for order, record in zip(orders, map_ordered(self._publish, orders, _PUBLISHING)):
            records[order.split].append(record)
        return records

    def _publish(self, order: ShardOrder) -> ShardRecord:
        hidden, path = self._area.path(order.name), self._layout.path(order.split, order.shard)
        if os.path.exists(hidden):  # otherwise a killed run has done it
            give_name(hidden, path)
        record = read_record(self._area, order)
        with file_errors(path, "cannot be examined"):
            size = os.path.getsize(path)
        if size != record.bytes:
            raise FormatError(f"{path}: has been changed since this run wrote it")
        return record
