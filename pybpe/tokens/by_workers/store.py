"""The client's part of a run whose workers write: what to do, in which order, and what is done already."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial

from ...errors import FormatError, file_errors
from ...reading.splits import SPLIT_NAMES
from ...reading.text_encoding import Doubts
from ...support.output_files import give_name, remove_file
from ...support.parallel import map_ordered
from ...support.progress import Progress
from ...support.remote import Workers, map_by_executor
from ...support.run_options import RunOptions
from ..encoding import TaskEncoder
from ..equal_shards import sizes_of
from ..layout import Layout
from ..manifest import Facts, Records, ShardRecord
from ..parts import Part, Reached, Step
from ..workers import Encoding, most_pending
from .area import Area, Context, make_area
from .bundles import Bundle, Encoded, bundle_orders, encode_bundle, tasks_per_bundle
from .index import Index, places
from .shards import RECORD, ShardOrder, read_record, write_shard

_PUBLISHING = 16  # threads: each operation waits for the disk, or for a file system on other machines


class SharedStore:
    """A Store (see parts.py): the workers of an executor, who share the output folder, write bundles and shards into an
    area of the hidden folder.

    Args:
        layout: the token files.
        encoder: encodes the tasks.
        identity: a hash of everything that the result depends on, except the inputs. The area's name has it.
    """

    def __init__(self, layout: Layout, encoder: TaskEncoder, identity: str) -> None:
        self._layout, self._encoder = layout, encoder
        self._folder = os.path.join(layout.unfinished, f"workers-{identity[:16]}")
        self.names = SPLIT_NAMES[: len(encoder.splits)]
        self._bundles: list[Bundle] = []
        self._made: list[tuple[ShardOrder, ShardRecord]] = []

    def note(self, part: Part) -> None:
        """See Store."""
        self._bundles.append(Bundle.of(part.kept, part.plan))

    def has(self, part: Part) -> bool:
        """See Store."""
        bundle = Bundle.of(part.kept, part.plan)
        path = os.path.join(self._folder, bundle.name)
        return os.path.exists(path) and os.path.getsize(path) == bundle.file_bytes

    def can_assemble(self, shards: Sequence[Sequence[Facts]]) -> bool:
        """See Store."""
        return os.path.isdir(self._folder)

    def _area(self) -> Area:
        return make_area(self._folder, Context(self._encoder, self._layout))

    # ------------------------------------------------------------------------------------------------
    # Bundles

    def steps(self, work: Encoding, last: Part, options: RunOptions, doubts: Doubts) -> Iterator[Step]:
        """See Store. Raises WorkerError: a worker does not share the folder; or as in map_by_executor."""
        area, pending = self._area(), most_pending(options.workers)
        area.remove_others(("bundle-", "shard-"), {bundle.name for bundle in self._bundles})
        orders = bundle_orders(work, area, last.tasks, tasks_per_bundle(work, pending // 2))
        splits = last.splits
        for made in map_by_executor(partial(encode_bundle, area), orders, Workers.of(options), pending):
            bundle = made.bundle
            area.check_visible(bundle.name, bundle.file_bytes)
            splits = [_after(reached, made, number) for number, reached in enumerate(splits)]
            yield Step(made.amount, made.doubt, made.seen, bundle.tasks, bundle.plan, splits, bundle.kept)

    @property
    def written_bytes(self) -> int:
        """See Store."""
        return sum(bundle.file_bytes for bundle in self._bundles)

    def spare_bytes(self, shards: Sequence[Sequence[Facts]]) -> int:
        """See Store."""
        return max((facts.tokens for some in shards for facts in some), default=0) * self._layout.output.id_bytes

    def sync(self) -> None:
        """See Store. A worker has written its bundle to disk before the client sees it."""

    # ------------------------------------------------------------------------------------------------
    # Shards

    def shards(self, last: Part) -> list[list[Facts]]:
        """See Store. Only the tokens are known before the workers write them."""
        pairs = zip(self.names, last.splits)
        return [[Facts(size) for size in sizes_of(self._layout, split, reached.tokens)] for split, reached in pairs]

    def make(self, shards: Sequence[Sequence[Facts]], options: RunOptions) -> Records:
        """See Store."""
        area = self._area()
        orders = [order for split, found in enumerate(shards) for order in self._orders(area, split, found)]
        self._write(area, orders, options)
        records: Records = {split: [] for split in self.names}
        for order, record in map_ordered(lambda item: (item[0], read_record(area, item[0])), orders, _PUBLISHING):
            self._made.append((order, record))
            records[order.split].append(record)
        return records

    def _orders(self, area: Area, split: int, shards: Sequence[Facts]) -> Iterator[tuple[ShardOrder, int]]:
        """Yields the order for each shard of a split, with the number of the first bundle that it needs."""
        index = Index(list(places(self._bundles, split)))
        name, first = area.keep("index", index.to_bytes()), 0
        for shard, facts in enumerate(shards):
            yield ShardOrder(split, self.names[split], shard, first, facts.tokens, name), index.bundle_of(first)
            first += facts.tokens

    def _write(self, area: Area, orders: Sequence[tuple[ShardOrder, int]], options: RunOptions) -> None:
        """Writes the shards that have no record, and removes each bundle when no shard needs it any longer."""
        there = set(area.names())
        todo = [(order, bundle) for order, bundle in orders if order.name + RECORD not in there]
        todo.sort(key=lambda item: item[1])
        needed = [bundle for _, bundle in todo[1:]] + [len(self._bundles)]  # the first one, after each shard
        removed, pending = 0, most_pending(options.workers)
        made = map_by_executor(partial(write_shard, area), (order for order, _ in todo), Workers.of(options), pending)
        with Progress("writing shards", len(todo), "shard", options.progress) as bar:
            for (order, _), size, first in zip(todo, made, needed):
                area.check_visible(order.name, size)
                for bundle in self._bundles[removed:first]:
                    remove_file(area.path(bundle.name))
                removed = max(removed, first)
                bar.add(1)

    def publish(self, shards: Sequence[Sequence[Facts]]) -> None:
        """See Store."""
        for _ in map_ordered(self._publish, self._made, _PUBLISHING):
            pass

    def _publish(self, made: tuple[ShardOrder, ShardRecord]) -> None:
        order, record = made
        hidden = os.path.join(self._folder, order.name)
        path = self._layout.path(order.split, order.shard)
        if os.path.exists(hidden):  # otherwise a killed run has done it
            give_name(hidden, path)
        with file_errors(path, "cannot be examined"):
            size = os.path.getsize(path)
        if size != record.bytes:
            raise FormatError(f"{path}: has been changed since this run wrote it")

    def close(self) -> None:
        """See Store. Only workers have files open."""


def _after(reached: Reached, made: Encoded, split: int) -> Reached:
    """Returns how far a split has come after a bundle. Decides whether the bundle begins inside a document."""
    is_open, start = int(reached.in_document), made.bundle.starts[split]
    return Reached(
        reached.tokens + made.bundle.tokens[split] - start.dropped[is_open],
        reached.documents + made.documents[split] - (start.documents if is_open else 0),
        reached.text_bytes + made.text_bytes[split],
        bool(start.is_open[is_open]),
    )
