"""Makes token files, shards, of the results of tasks, which are read in order.

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
import secrets
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from .._lazy import Array, numpy
from ..arguments import can_pass, param
from ..errors import LimitError, ShardTooSmallError, file_errors
from ..reading.splits import SPLIT_NAMES
from ..support.output_files import give_name, write_all
from ..support.parallel import end_if_unwanted, map_ordered, worker_count
from ..support.progress import Progress
from ..support.task_results import Result, Section, results_in
from .encoding import text_length
from .manifest import Records, ShardRecord
from .options import Layout
from .results import ID_BYTES, Part, Stream, read_ids, read_starts

_MOST_AT_ONCE = 4  # shards


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


def check_least(path: str, tokens: int, least: int, reader: str = "llm.c", total: int | None = None) -> None:
    """Raises ShardTooSmallError if the last or only shard of a split has fewer than `least` tokens. `total` is the
    number of tokens in all splits, if others can be chosen."""
    if tokens < least:
        is_enough = total is not None and total >= least
        ways = {
            "splits": f"use other splits ({param(splits=(1,))} writes only train)" if is_enough else "",
            "split_by": f"use {param(split_by='token')}" if is_enough else "",
            "min_shard_tokens": f"allow it with {param(min_shard_tokens=0)}",
        }
        some = ", or ".join(filter(None, (way for name, way in ways.items() if can_pass(name))))
        some = some if is_enough and some else f"add more text{', or ' if some else ''}{some}"
        raise ShardTooSmallError(
            f"{path}: would have {tokens} tokens, but {reader} needs at least {least} in every shard: {some}",
            path,
            tokens,
        )


def sizes_of(layout: Layout, split: str, tokens: int, total: int) -> list[int]:
    """Returns how many tokens each shard of a split of so many tokens gets. All splits have `total` tokens.

    Shards of equal size have at most `shard_tokens` tokens. Others have `shard_tokens`, and the last one the rest, but
    at least `min_shard_tokens`; it may be that much longer instead.

    Raises:
        ShardTooSmallError: the split is too small for one shard. LimitError: a shard would be larger than its readers
            can read.
    """
    form, most, least = layout.output.form, layout.output.shard_tokens, layout.output.least_tokens
    if form.equal_shards:
        check_least(layout.path(split, 0), tokens, least, form.reader, total)
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
    check_least(layout.path(split, full), last, least, form.reader, total)
    return [full_size] * full + [last]


# ----------------------------------------------------------------------------------------------------
# Cutting the tokens of a split


class Stretch(NamedTuple):
    """Consecutive ids of a result."""

    section: Section  # all ids of a split in the result
    start: int  # this and `end`: some of its bytes
    end: int


class ShardOrder(NamedTuple):
    """What a shard is made of."""

    path: str  # its file
    size: int  # of the file, in bytes
    header: bytes  # its first bytes
    stretches: Sequence[Stretch | bytes]  # the rest
    is_hashed: bool  # whether the hash is wanted


class _Shards:
    """Cuts the tokens of a split into shards of these sizes, for files in a folder."""

    def __init__(self, layout: Layout, split: int, sizes: Sequence[int], folder: str) -> None:
        self._layout, self._split, self._sizes, self._folder = layout, split, sizes, folder
        self._stream = Stream(split, layout.marks)
        self._number = 0
        self._begin()

    def _begin(self) -> None:
        self._stretches: list[Stretch | bytes] = []
        self._tokens = self._documents = self._text_bytes = 0

    def add(self, result: Result, counts: Sequence[object]) -> Iterator[tuple[ShardRecord, ShardOrder]]:
        """Adds the tokens of the next result. Yields the shards that are full."""
        part, width = self._stream.take(counts), ID_BYTES[self._layout.output.dtype]
        section = result.sections[SPLIT_NAMES[self._split]]
        if part.has_mark:
            mark = (self._layout.tok.eot_token or 0).to_bytes(width, "little")
            yield from self._add(mark, 1, 0, 0)
        start, documents, text_bytes = int(part.skipped), int(part.goes_on), 0
        while start < part.tokens:
            end = min(part.tokens, start + self._room)
            to = (part.documents, part.text_bytes) if end == part.tokens else self._before(end, result, part, section)
            stretch = Stretch(section, start * width, end * width)
            yield from self._add(stretch, end - start, to[0] - documents, to[1] - text_bytes)
            start, (documents, text_bytes) = end, to

    @property
    def _room(self) -> int:
        return self._sizes[self._number] - self._tokens

    def _before(self, token: int, result: Result, part: Part, section: Section) -> tuple[int, int]:
        """Returns how many documents of a result begin before a token, and the bytes of text."""
        ids, starts = read_ids(section, self._layout.output.dtype), read_starts(result, self._split, part)
        size = text_length(self._layout.tok, ids[part.skipped : token])
        return part.goes_on + bisect_left(starts, token), size

    def _add(
        self, stretch: Stretch | bytes, tokens: int, documents: int, text_bytes: int
    ) -> Iterator[tuple[ShardRecord, ShardOrder]]:
        self._stretches.append(stretch)
        self._tokens += tokens
        self._documents += documents
        self._text_bytes += text_bytes
        if not self._room:
            yield self._order()

    def end(self) -> Iterator[tuple[ShardRecord, ShardOrder]]:
        """Yields the shard of a split without tokens."""
        if self._number < len(self._sizes):
            yield self._order()

    def _order(self) -> tuple[ShardRecord, ShardOrder]:
        layout, output = self._layout, self._layout.output
        assert output.form.header is not None
        header = output.form.header(self._tokens, output.dtype, layout.tok.vocab_size)
        file = os.path.basename(layout.path(SPLIT_NAMES[self._split], self._number))
        size = len(header) + self._tokens * ID_BYTES[output.dtype]
        record = ShardRecord(file, self._tokens, size, "", self._documents, self._text_bytes)
        order = ShardOrder(os.path.join(self._folder, file), size, header, self._stretches, output.HASHED)
        self._number += 1
        self._begin()
        return record, order


def make_shard(order: ShardOrder) -> str:
    """Makes a shard. Returns its SHA-256, or ""."""
    temporary = f"{order.path}-{secrets.token_hex(4)}.tmp"
    digest = hashlib.sha256(order.header)
    with file_errors(temporary, "cannot be written"), open(temporary, "wb", buffering=0) as output:
        write_all(output, order.header)
        for stretch in order.stretches:
            end_if_unwanted()
            data = memoryview(stretch) if isinstance(stretch, bytes) else _ids_of(stretch)
            if order.is_hashed:
                digest.update(data)
            write_all(output, data)
    give_name(temporary, order.path)
    return digest.hexdigest() if order.is_hashed else ""


def _ids_of(stretch: Stretch) -> memoryview:
    return memoryview(stretch.section.read())[stretch.start : stretch.end]


# ----------------------------------------------------------------------------------------------------
# All splits


def make_shards(
    layout: Layout,
    streams: Sequence[Stream],
    paths: Iterable[str],
    folder: str,
    make: Callable[[Iterator[ShardOrder]], Iterator[str]],
    progress: bool | None = None,
) -> Records:
    """Makes the shards of all splits in a folder. Returns their records.

    Args:
        streams: the splits, at the end of all results.
        paths: the files of the results, in order.
        make: yields what `make_shard` returns for each order.

    Raises:
        ShardTooSmallError, LimitError: as sizes_of.
    """
    names = SPLIT_NAMES[: len(streams)]
    total = sum(stream.tokens for stream in streams)
    sizes = [sizes_of(layout, name, stream.tokens, total) for name, stream in zip(names, streams)]
    splits = [_Shards(layout, number, some, folder) for number, some in enumerate(sizes)]
    records: Records = {name: [] for name in names}
    waiting: list[tuple[str, ShardRecord]] = []

    def orders() -> Iterator[ShardOrder]:
        for number, (record, order) in _orders(splits, paths):
            waiting.append((names[number], record))
            yield order

    with Progress("writing shards", sum(map(len, sizes)), "shard", progress) as bar:
        for digest in make(orders()):
            name, record = waiting.pop(0)
            records[name].append(record._replace(sha256=digest))
            bar.add(1)
    return records


def _orders(splits: Sequence[_Shards], paths: Iterable[str]) -> Iterator[tuple[int, tuple[ShardRecord, ShardOrder]]]:
    for result, header in chain.from_iterable(map(results_in, paths)):
        for number, split in enumerate(splits):
            yield from ((number, made) for made in split.add(result, header["splits"]))
    for number, split in enumerate(splits):
        yield from ((number, made) for made in split.end())


def make_here(orders: Iterator[ShardOrder]) -> Iterator[str]:
    """Makes shards in threads of this process."""
    return map_ordered(make_shard, orders, min(worker_count(None), _MOST_AT_ONCE))


def starts_of(layout: Layout, split: int, paths: Iterable[str]) -> Iterator[Array]:
    """Yields where the documents of a split begin, int64, in blocks."""
    stream = Stream(split, layout.marks)
    for result, header in chain.from_iterable(map(results_in, paths)):
        before = stream.tokens
        part = stream.take(header["splits"])
        starts = numpy.array(read_starts(result, split, part), dtype=numpy.int64)
        yield starts + (before + part.has_mark - part.skipped)
