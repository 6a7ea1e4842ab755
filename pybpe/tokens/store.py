"""Where a run keeps its tokens until they are shards, and how it makes shards of them. A store on this machine keeps
one growing file per split; shared_store.py keeps files that the workers of an executor write.

Shards are cut from the last to the first, and what no other shard needs is removed. So the disk needs room for the
tokens once, and for a few shards. On this machine, the first shard of a split is what is left of its file, and a split
that fits in one shard is never copied:

    spool    [header room][ shard 0 | shard 1 | shard 2 ]
    copied                                    [ shard 2 ]    then cut from the spool; then shard 1, ...
    left     [header room][ shard 0 ]                        becomes the first file

When all splits are cut, the shards get their names. So as long as what a shard is made of is there, a file with the
shard's name is not this run's; and when that is gone, the shard is complete.

The shards of llm.c have equal size, which it needs to resume: llm.c's load_state (train_gpt2.cu) requires that the
shard where a run stopped has as many samples as the first shard of the new run. A sample is B * T tokens per process,
and a shard of c tokens has (c - 1) / sample of them, rounded down. So a short last shard makes llm.c abort when it
resumes there.

If the tokens do not divide evenly, some shards have one token more. c and c + 1 tokens give the same number of samples
unless the sample size divides c. So c must then be odd: no even sample size divides it. Sample sizes are even in the
llm.c trainer that resumes, because softmax_forward_kernel5 asserts that T is a multiple of 4. With cuDNN's attention
instead, gelu_forward asserts that B * T * C is a multiple of 1024, so that only a model with such a C can have odd
samples, if B, T and the number of processes are all odd. No token is added or lost.
"""

from __future__ import annotations

import hashlib
import os
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

from ..arguments import can_pass, param
from ..errors import FormatError, LimitError, ShardTooSmallError, file_errors
from ..reading.splits import SPLIT_NAMES
from ..reading.streams import file_sha256, open_input
from ..reading.text_encoding import Doubts
from ..support.output_files import give_name
from ..support.parallel import RunOptions, end_if_unwanted, map_ordered, worker_count
from ..support.progress import Progress
from .encoding import Encoded, Part, text_length
from .manifest import Records, ShardRecord
from .options import Layout
from .spool import ID_BYTES, Reached, SplitWriter, SpoolFiles, size_of

if TYPE_CHECKING:
    from ..support.remote import SharedFolder

_MOST_AT_ONCE = 4  # shards
_BLOCK = 1 << 20  # bytes
_COUNTED_TOKENS = 1 << 20  # at once
_MARK_TOKENS = 1 << 20


def shard_sizes(tokens: int, most: int, least: int) -> list[int]:
    """Returns how many tokens each shard of a split gets.

    Args:
        tokens: the tokens of the split.
        most: the maximum per shard, exceeded only if shards would otherwise be smaller than `least`.
        least: the minimum per shard; the split has at least this many.

    Returns:
        Equal sizes, or first some of an odd number plus 1, then some of that odd number.
    """
    fewest = max(1, -(-tokens // most))
    largest_count = max(1, tokens // max(1, least))
    for count in chain(range(fewest, largest_count + 1), range(min(fewest, largest_count), 0, -1)):
        size, larger = divmod(tokens, count)
        if larger == 0 or size % 2 == 1:
            return [size + 1] * larger + [size] * (count - larger)
    raise AssertionError  # one shard is always possible


def check_least(path: str, tokens: int, least: int, reader: str = "llm.c") -> None:
    """Raises ShardTooSmallError if the last or only shard of a split has fewer than `least` tokens."""
    if tokens < least:
        ways = {
            "splits": f"use other splits ({param(splits=(1,))} writes only train)",
            "split_by": f"use {param(split_by='token')}",
            "min_shard_tokens": f"allow it with {param(min_shard_tokens=0)}",
            "": "add more text",
        }
        some = ", or ".join(way for name, way in ways.items() if not name or can_pass(name))
        raise ShardTooSmallError(
            f"{path}: would have {tokens} tokens, but {reader} needs at least {least} in every shard: {some}",
            path,
            tokens,
        )


def sizes_of(layout: Layout, split: str, tokens: int) -> list[int]:
    """Returns how many tokens each shard of a split of so many tokens gets.

    Shards of equal size have at most `shard_tokens` tokens. Others have `shard_tokens`, and the last one the rest, but
    at least `min_shard_tokens`; it may be that much longer instead.

    Raises:
        ShardTooSmallError: the split is too small for one shard. LimitError: a shard would be larger than its readers
            can read.
    """
    form, most, least = layout.output.form, layout.output.shard_tokens, layout.output.least_tokens
    if form.equal_shards:
        check_least(layout.path(split, 0), tokens, least, form.reader)
        sizes = shard_sizes(tokens, most, least)
        size = form.header_bytes + sizes[0] * ID_BYTES[layout.output.dtype]
        if form.max_bytes and size > form.max_bytes:
            raise LimitError(
                f"{layout.path(split, 0)}: would have {size} bytes, but {form.reader} cannot read beyond"
                f" {form.max_bytes}: choose a smaller {param('shard_tokens')} or {param('min_shard_tokens')}"
            )
        return sizes
    full_size = max(most, least)
    full = max(0, (tokens - max(1, least)) // full_size) if form.has_shards else 0
    last = tokens - full * full_size
    check_least(layout.path(split, full), last, least, form.reader)
    return [full_size] * full + [last]


TextMarks = list[tuple[int, int]]
"""Some numbers of tokens of a split, ascending from 0, each with the bytes of text that so many tokens have."""


def add_mark(marks: TextMarks, reached: Reached) -> None:
    """Notes the bytes of text that a split has come to, if this is far enough from the last mark."""
    if reached.tokens >= marks[-1][0] + _MARK_TOKENS:
        marks.append((reached.tokens, reached.text_bytes))


# ----------------------------------------------------------------------------------------------------
# One shard


class ShardOrder(NamedTuple):
    """What a shard is made of."""

    path: str  # its file until it gets its name
    named: str  # its path when it has its name
    size: int  # its bytes
    header: bytes  # its first bytes
    stretches: Sequence[tuple[str, int, int]]  # the rest: ranges of bytes in files, as (path, start, end)
    is_hashed: bool  # whether the hash is wanted
    folder: SharedFolder | None = None  # the folder of the run, if a worker makes the shard

    @property
    def is_published(self) -> bool:
        """Whether the shard must have its name, since neither its file is there nor what it is made of."""
        return bool(self.stretches) and not (os.path.exists(self.path) or os.path.exists(self.stretches[0][0]))

    def can_be_made(self) -> bool:
        """Returns whether the shard, or what it is made of, is there."""
        if self.is_published:
            return size_of(self.named) == self.size
        return size_of(self.path) >= self.size or all(size_of(path) >= end for path, _, end in self.stretches)


def make_shard(order: ShardOrder) -> tuple[str, str]:
    """Makes a shard, unless a killed run did. Returns its path, and its SHA-256 or ""."""
    path = order.named if order.is_published else order.path
    if size_of(path) >= order.size:  # what follows in a spool belongs to other shards
        if path == order.path:  # a spool has only room for the header
            with file_errors(path, "cannot be written"), open(path, "r+b") as stream:
                stream.write(order.header)
        return path, file_sha256(path, order.size) if order.is_hashed else ""
    folder, name = order.folder, os.path.basename(path)
    return path, _copy(order, f"{path}.copy" if folder is None else folder.new_file(name, ".tmp"))


def _copy(order: ShardOrder, temporary: str) -> str:
    """Copies what a shard is made of. `temporary` is where the file is until it is complete."""
    digest, buffer = hashlib.sha256(order.header), memoryview(bytearray(_BLOCK))
    with file_errors(temporary, "cannot be written"), open(temporary, "wb") as output:
        output.write(order.header)
        for source, start, end in order.stretches:
            with open_input(source) as stream:
                stream.seek(start)
                while start < end:
                    end_if_unwanted()
                    got: int = stream.readinto(buffer[: end - start])
                    if got == 0:
                        raise FormatError(f"{source}: shorter than this run made it: another program has changed it")
                    output.write(buffer[:got])
                    if order.is_hashed:
                        digest.update(buffer[:got])
                    start += got
    give_name(temporary, order.path)
    return digest.hexdigest() if order.is_hashed else ""


# ----------------------------------------------------------------------------------------------------
# Stores


class Place(NamedTuple):
    """Where the tokens of consecutive parts are: a folder with a spool per split, and how far each split has come
    before them and after them."""

    folder: str
    before: Sequence[Reached]
    after: Sequence[Reached]


def spool_files(layout: Layout, folder: str, split: int) -> SpoolFiles:
    """Returns the spool of a split in a folder."""
    return SpoolFiles(os.path.join(folder, SPLIT_NAMES[split]), layout.output.form.header_bytes, layout.output.dtype)


class Store(ABC):
    """Where a run keeps its tokens until they are shards.

    Args:
        layout: where the files go.
        splits: the number of splits.
        threads: how many borders of shards are looked up at once, and shards get their names at once.
    """

    def __init__(self, layout: Layout, splits: int, threads: int) -> None:
        self._layout, self.names, self._threads = layout, SPLIT_NAMES[:splits], threads
        self._writers: list[SplitWriter] = []
        self._orders: list[list[ShardOrder]] = []
        self.forget()

    @property
    def _reached(self) -> Sequence[Reached]:
        return self._places[-1].after if self._places else [Reached()] * len(self.names)

    def forget(self) -> None:
        """Forgets the parts that were noted."""
        self._places: list[Place] = []

    @abstractmethod
    def note(self, part: Part) -> None:
        """Notes a part that is done. All parts are noted, in order, an earlier run's too."""

    @abstractmethod
    def has(self, part: Part) -> bool:
        """Returns whether the tokens up to a part are still there. Another program may have removed some."""

    @abstractmethod
    def steps(self, last: Part, options: RunOptions, doubts: Doubts) -> Iterator[Encoded]:
        """Does the work after the last part."""

    def sync(self) -> None:
        """Writes all tokens to disk that are not there yet."""
        for writer in self._writers:
            writer.sync()

    def close(self) -> None:
        """Closes all files."""
        for writer in self._writers:
            writer.close()

    # ------------------------------------------------------------------------------------------------
    # Shards

    def shards(self, last: Part) -> list[list[ShardRecord]]:
        """Returns the records of each split's shards, without hashes. Raises ShardTooSmallError, LimitError."""
        layout, found = self._layout, list[list[ShardRecord]]()
        for split, (name, reached) in enumerate(zip(self.names, last.splits)):
            sizes = sizes_of(layout, name, reached.tokens)
            inner = map_ordered(partial(self._before, split), list(accumulate(sizes))[:-1], self._threads)
            borders = pairwise([(0, 0), *inner, (reached.documents, reached.text_bytes)])
            found.append([])
            for index, (size, ((a, c), (b, d))) in enumerate(zip(sizes, borders)):
                file = os.path.basename(layout.path(name, index))
                file_bytes = layout.output.form.header_bytes + size * ID_BYTES[layout.output.dtype]
                found[-1].append(ShardRecord(file, size, file_bytes, "", b - a, d - c))
        return found

    def _before(self, split: int, token: int) -> tuple[int, int]:
        """Returns how many documents of a split begin before a token, and the bytes of text."""
        place = self._places[bisect_right(self._places, token, key=lambda place: place.after[split].tokens)]
        before, files = place.before[split], spool_files(self._layout, place.folder, split)
        wanted, marks = token - before.tokens, self._marks(place, split)
        at, size = marks[bisect_right(marks, wanted, key=itemgetter(0)) - 1]
        for first in range(at, wanted, _COUNTED_TOKENS):
            size += text_length(self._layout.tok, files.read(first, min(_COUNTED_TOKENS, wanted - first)))
        documents = files.documents_before(wanted, place.after[split].documents - before.documents)
        return before.documents + documents, before.text_bytes + size

    @abstractmethod
    def _marks(self, place: Place, split: int) -> TextMarks: ...

    def _orders_of(self, split: int, shards: Sequence[ShardRecord]) -> list[ShardOrder]:
        """Returns what each shard of a split is made of."""
        layout, orders, end = self._layout, list[ShardOrder](), 0
        assert layout.output.form.header is not None
        for index, record in enumerate(shards):
            start, end, stretches = end, end + record.tokens, list[tuple[str, int, int]]()
            first = bisect_right(self._places, start, key=lambda place: place.after[split].tokens)
            for place in self._places[first:]:
                files, offset = spool_files(self._layout, place.folder, split), place.before[split].tokens
                if offset >= end:
                    break
                low, high = max(start, offset) - offset, min(end, place.after[split].tokens) - offset
                if low < high:
                    stretches.append((files.tokens_path, files.end(low), files.end(high)))
            named = os.path.join(layout.folder, record.file)
            header = layout.output.form.header(record.tokens, layout.output.dtype, layout.tok.vocab_size)
            path = self.unnamed(split, index)
            orders.append(ShardOrder(path, named, record.bytes, header, stretches, layout.output.HASHED))
        return orders

    @abstractmethod
    def unnamed(self, split: int, index: int) -> str:
        """Returns the file of a shard until it gets its name."""

    def can_assemble(self, shards: Sequence[Sequence[ShardRecord]]) -> bool:
        """Returns whether an earlier run has left what `make` and `publish` need."""
        orders = (order for split, found in enumerate(shards) for order in self._orders_of(split, found))
        return all(map(ShardOrder.can_be_made, orders))

    def make(self, shards: Sequence[Sequence[ShardRecord]], options: RunOptions) -> Records:
        """Makes the shards. If killed, resumes when called again. Returns their records by split."""
        self._orders = [self._orders_of(split, found) for split, found in enumerate(shards)]
        orders = [order for found in self._orders for order in reversed(found)]
        digests = dict[str, str]()
        with Progress("writing shards", len(orders), "shard", options.progress) as bar:
            for order, (_, digest) in zip(orders, self._made(orders, options)):
                digests[os.path.basename(order.named)] = digest
                self._free(order)
                bar.add(1)
        records: Records = {}
        for name, found in zip(self.names, shards):
            records[name] = [record._replace(sha256=digests[record.file]) for record in found]
        return records

    @abstractmethod
    def _made(self, orders: Sequence[ShardOrder], options: RunOptions) -> Iterator[tuple[str, str]]:
        """Makes shards. Yields what `make_shard` returns for each."""

    @abstractmethod
    def _free(self, order: ShardOrder) -> None:
        """Removes what only a shard that is made, and those after it, needed."""

    def publish(self, shards: Sequence[Sequence[ShardRecord]]) -> None:
        """Gives the shards that `make` made their names. If killed, resumes when both are called again."""
        for _ in map_ordered(_publish, chain.from_iterable(self._orders), self._threads):
            pass


def _publish(order: ShardOrder) -> None:
    if os.path.exists(order.path):  # otherwise a killed run has done it
        give_name(order.path, order.named)


class AppendStore(Store):
    """Keeps the tokens on this machine, in one growing file per split.

    Args:
        layout, splits: as in Store.
        encoded: encoded(first, options, doubts) yields the tokens of all tasks from number `first`, which depend on
            nothing else.
    """

    def __init__(
        self, layout: Layout, splits: int, encoded: Callable[[int, RunOptions, Doubts], Iterator[Encoded]]
    ) -> None:
        self._spools = [spool_files(layout, layout.unfinished, split) for split in range(splits)]
        self._encoded = encoded
        super().__init__(layout, splits, threads=1)

    def forget(self) -> None:
        nothing = [Reached()] * len(self.names)
        self._places = [Place(self._layout.unfinished, nothing, nothing)]
        self._text_marks: list[TextMarks] = [[(0, 0)] for _ in self.names]

    def note(self, part: Part) -> None:
        self._places = [self._places[0]._replace(after=part.splits)]
        for marks, reached in zip(self._text_marks, part.splits):
            add_mark(marks, reached)

    def has(self, part: Part) -> bool:
        return all(map(SpoolFiles.holds, self._spools, part.splits))

    def steps(self, last: Part, options: RunOptions, doubts: Doubts) -> Iterator[Encoded]:
        mode, eot = self._layout.output.mode, self._layout.tok.eot_token
        for spool, reached in zip(self._spools, last.splits):
            self._writers.append(SplitWriter(spool, mode, eot, reached))
        for found in self._encoded(last.tasks, options, doubts):
            for segment in found.segments:
                self._writers[segment.split].add(segment)
            yield found._replace(splits=[writer.reached for writer in self._writers]) if found.tasks else found

    def _marks(self, place: Place, split: int) -> TextMarks:
        return self._text_marks[split]

    def unnamed(self, split: int, index: int) -> str:
        """The first shard is what is left of the spool."""
        return f"{self._spools[split].base}-{index:06d}" if index else self._spools[split].tokens_path

    def can_assemble(self, shards: Sequence[Sequence[ShardRecord]]) -> bool:
        has_starts = all(map(SpoolFiles.holds_starts, self._spools, self._reached))
        return super().can_assemble(shards) and (self._layout.output.form.index is None or has_starts)

    def _made(self, orders: Sequence[ShardOrder], options: RunOptions) -> Iterator[tuple[str, str]]:
        return map_ordered(make_shard, orders, min(worker_count(None), _MOST_AT_ONCE))

    def _free(self, order: ShardOrder) -> None:
        for spool, start, end in order.stretches:
            size = end if order.path == spool else start
            if size_of(spool) > size:
                with file_errors(spool, "cannot be shortened"):
                    os.truncate(spool, size)

    def publish(self, shards: Sequence[Sequence[ShardRecord]]) -> None:
        if self._layout.output.form.index is not None:  # then each split is one file
            for spool, (record,) in zip(self._spools, shards):
                if os.path.exists(spool.tokens_path):
                    self._layout.output.form.index(spool, record, os.path.join(self._layout.folder, record.file))
        super().publish(shards)
