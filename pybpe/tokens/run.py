"""One run that writes token files. A killed run resumes with the tasks that are left.

    tasks, in order   ->  tasks/SETTINGS/TASK: a file for each (task_results.py)     threads, or an executor's workers
    their results     ->  finished/NAME_train_000000.bin ..., manifest.json          threads, or an executor's workers
    all files there   ->  the output folder, the manifest last (output_folder.py)

The first two folders are in the hidden folder of the output. A run that was killed does the tasks that have no file.
If it was making token files, it makes them again, which takes a tenth of the time of the tasks. Until all of them are
there, the output folder is unchanged. So the disk needs room for the tokens twice.

Token files are called shards. Shards for llm.c have equal size, which it needs to resume: llm.c's load_state
(train_gpt2.cu) requires that the shard where a run stopped has as many samples as the first shard of the new run. A
sample is B * T tokens per process, and a shard of c tokens has (c - 1) / sample of them, rounded down. So a short last
shard makes llm.c abort when it resumes there.

If the tokens do not divide evenly, some shards have one token more. c and c + 1 tokens give the same number of samples
unless the sample size divides c. So c must then be odd: no even sample size divides it. Sample sizes are even in the
llm.c trainer that resumes, because softmax_forward_kernel5 asserts that T is a multiple of 4. With cuDNN's attention
instead, gelu_forward asserts that B * T * C is a multiple of 1024, so that only a model with such a C can have odd
samples, if B, T and the number of processes are all odd. No token is added or lost.
"""

from __future__ import annotations

import errno
import hashlib
import os
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import chain, islice, tee
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _binding
from .._lazy import Array, numpy
from ..arguments import can_pass, param
from ..errors import (
    ArgumentError,
    FormatError,
    LimitError,
    ShardTooSmallError,
    file_error,
    file_errors,
    note,
)
from ..reading import planning
from ..reading.charset import Doubts
from ..reading.files import Corpus
from ..reading.input_file import check_has_text
from ..reading.records import SkippedRecords, check_list, headers_if_done, results_when_done
from ..support.output_files import give_name, make_folder, remove_entry, remove_work, write_all
from ..support.parallel import RunOptions, end_if_unwanted, map_ordered, worker_count
from ..support.progress import Progress
from ..support.task_results import (
    DamagedResultError,
    Order,
    Section,
    headers_of,
    results_in,
    task_folder,
    task_path,
    write_results,
)
from .formats import ArrayOptions, Layout, write_offsets
from .manifest import TOKENIZER_NAMES, Manifest, ShardRecord, record_file
from .output_folder import FINISHED, publish, replaced_files
from .provenance import Provenance, documents_of, write_provenance
from .task_encoder import (
    ID_BYTES,
    Encoded,
    Stream,
    TaskEncoder,
    counts_in,
    part_of,
    read_ids,
    read_starts,
    task_data,
    text_length,
)

if TYPE_CHECKING:
    from ..support.executors import Workers

LIST_NAME = "skipped.jsonl"
_MOST_AT_ONCE = 4  # shards

NamedTask = tuple[Any, bytes, bytes]
"""A task, its name, and its stamp. Equal names: the same ranges of the same paths. Equal stamps: files of the same size
and time, too."""


class Job(NamedTuple):
    """The parts that make the tokens of a run."""

    fingerprint: str  # a hash of everything that they depend on, except the tasks
    splits: int  # the number of splits
    tasks: Iterable[NamedTask]
    encode: Callable[[Iterable[Any], Doubts], Iterator[Encoded]]  # yields the tokens of some tasks, in order
    encoder: TaskEncoder | None = None  # encodes the tasks, if they are text, also for an executor's workers
    files: Corpus | None = None  # the files of this text
    provenance: Callable[[str], Provenance] | None = None  # of the tokens of a split, as in documents_of
    doing: tuple[str, str] = ("encoding", "B")  # for the progress bar: the name of the work, and the unit of its size


def write_token_files(
    layout: Layout,
    job: Job,
    options: RunOptions,
    total: int | None,
    known: Manifest,
    with_tokenizer: bool = False,
) -> Manifest:
    """Does the work of a job, or the rest of it, up to the manifest, which it returns. With ArrayOptions, the files
    stay in the hidden folder, in FINISHED.

    Args:
        layout: where the files go, and their format.
        options: how to use the machine.
        total: the amount of input, in the unit of the job, if known.
        known: the entries of the manifest about the call, the tokenizer and the inputs.
        with_tokenizer: whether to write the tokenizer too.
    """
    run = _Run(layout, job, options)
    try:
        made = run.assemble(*run.do_tasks(total), known, with_tokenizer)
        if not isinstance(layout.output, ArrayOptions):
            publish(layout.folder, made)
    except DamagedResultError:
        raise  # the message says that the next run mends it
    except (ArgumentError, FormatError, LimitError) as error:
        if not run.has_text():  # then no other call could use the results
            remove_work(layout.folder)
            raise
        way = "the same command with another value resumes, if only shards depend on it"
        if not isinstance(error, LimitError):
            other = " instead" if isinstance(error, ArgumentError) else ""
            way = f"fix the file{other} and run the same command again to resume"
        error.args = (f"{error}. Finished work is kept: {way}", *error.args[1:])
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            text = f"{layout.folder}: the disk is full. Finished work is kept: free some space and run the"
            raise file_error(error.errno, f"{text} same command again to resume") from None
        raise
    return made


class _Run:
    """One run."""

    def __init__(self, layout: Layout, job: Job, options: RunOptions) -> None:
        self._layout, self._job, self._options = layout, job, options
        self._skips = job.encoder is not None and job.encoder.kinds.read.skips
        if self._skips and LIST_NAME not in replaced_files(layout.folder, layout.tok.model.fingerprint):
            check_list(os.path.join(layout.folder, LIST_NAME))
        tasks, hidden = list(job.tasks), os.path.abspath(layout.unfinished)
        folder = task_folder(hidden, job.fingerprint)  # which removes other work, so the plan may not fail after it
        self._orders = [
            Order(task, task_path(folder, name), hashlib.blake2b(stamp, digest_size=16).hexdigest())
            for task, name, stamp in tasks
        ]
        self._paths = [order.path for order in self._orders]
        for name in os.listdir(hidden):
            if name.startswith(FINISHED):
                remove_entry(os.path.join(hidden, name))
        # A worker that was given up, and continues, writes to the folder of its own run, which is gone.
        self._new = make_folder(os.path.join(hidden, f"{FINISHED}-{os.urandom(4).hex()}"))
        self._workers: Workers | None = None
        if options.executor is not None and job.encoder is not None:
            from ..support.executors import Workers

            count = job.files.size // planning.TASK_BYTES if job.files is not None else 0
            self._workers = Workers(hidden, job.encoder.results, count, options)

    # ------------------------------------------------------------------------------------------------
    # Tasks

    def do_tasks(self, total: int | None) -> tuple[list[Stream], SkippedRecords]:
        """Does the tasks that are left, and takes the results of all. Returns the splits at their end, and the records
        that were skipped, whose list is written."""
        job, layout = self._job, self._layout
        streams = [Stream(layout.marks) for _ in range(job.splits)]
        left, doubts = self._left(total), Doubts()
        ours = {order.path for order in left}
        with ExitStack() as stack:
            list_path = os.path.join(self._new, LIST_NAME)
            write = stack.enter_context(_binding.Output(list_path)).write if self._skips else lambda data: None
            skipped = SkippedRecords(write, layout.source_names, layout.output.id_key)
            bar = stack.enter_context(Progress(job.doing[0], total, job.doing[1], self._options.progress))
            if self._workers is None:  # the tasks move the bar
                done = self._done_here(left, doubts, bar)
            else:
                anchored = (order._replace(task=planning.anchored(order.task)) for order in left)
                done = self._workers.done(anchored)
            for path, _, header in results_when_done(self._orders, left, done, doubts, skipped):
                if self._workers is not None or path not in ours:
                    bar.add(header["size"], earlier=path not in ours)
                for stream, counts in zip(streams, counts_in(header)):
                    stream.take(counts)
            if job.files is not None and not isinstance(layout.output, ArrayOptions):
                if not any(stream.text_bytes for stream in streams):
                    check_has_text(job.files, "tokens to write")
        return streams, skipped

    def has_text(self) -> bool:
        """Returns whether a task has results, and they have text."""
        found = chain.from_iterable(headers_of(path) or () for path in self._paths)
        return any(counts.text_bytes for header in found for counts in counts_in(header))

    def _left(self, total: int | None) -> list[Order]:
        """Returns the tasks without results. If other tasks have some, says that the run resumes."""
        left, tokens, size = list[Order](), 0, 0
        for order in self._orders:
            headers = headers_if_done(order.path, self._skips)
            if headers is None or not self._is_current(order, headers):
                left.append(order)
                continue
            for counts in chain.from_iterable(map(counts_in, headers)):
                tokens, size = tokens + counts.tokens, size + counts.text_bytes
        if tokens:
            share = f", at about {min(99, 100 * size // total)}%" if total and self._job.doing[1] == "B" else ""
            note(f"{self._layout.folder}: resuming after {tokens} tokens{share}")
        return left

    def _is_current(self, order: Order, headers: Sequence[Mapping[str, Any]]) -> bool:
        """Returns whether results are those of what a task reads now. If a file was written since, the part of it that
        the task reads must be the same."""
        if headers[0]["stamp"] == order.stamp:
            return True
        sums = [number for header in headers for number in header["sums"]]
        return self._job.encoder is not None and sums != [] and sums == self._job.encoder.sums(order.task)

    def _done_here(self, orders: Sequence[Order], doubts: Doubts, bar: Progress) -> Iterator[None]:
        """Does tasks in threads of this process. Yields after every task."""
        found = self._job.encode((order.task for order in orders), doubts)

        def one_task() -> Iterator[Encoded]:
            for each in found:
                bar.add(each.size)
                yield each
                if each.ends_task:
                    return

        for order in orders:
            write_results(order.path, task_data(one_task(), self._job.splits, self._layout.marks, order.stamp))
            yield

    # ------------------------------------------------------------------------------------------------
    # Token files

    def assemble(
        self, streams: Sequence[Stream], skipped: SkippedRecords, known: Manifest, with_tokenizer: bool
    ) -> Manifest:
        """Makes the token files, what belongs to them, and the manifest. The first two are from `do_tasks`."""
        layout, form, folder = self._layout, self._layout.output.form, self._new
        make = partial(self._workers.make, make_shard) if self._workers and self._workers.is_shared else make_here
        shards = make_shards(layout, streams, self._paths, folder, make, self._options.progress)
        others = list[str]()
        for split, some in enumerate(shards.values()):
            if form.index is not None:  # then a split is one file
                blocks = partial(starts_of, layout, split, self._paths)
                others.append(form.index(blocks, layout.output.dtype, some[0], folder))
            if layout.output.document_offsets:
                others.append(form.offsets.format(name=layout.name, split=planning.SPLIT_NAMES[split]))
                documents, tokens = (sum(getattr(shard, of) for shard in some) for of in ("documents", "tokens"))
                path = os.path.join(folder, others[-1])
                write_offsets(path, starts_of(layout, split, self._paths), documents, tokens)
            if layout.output.provenance:
                names = list[str]()
                found = documents_of(layout, split, self._paths, names, self._job.provenance)
                others += write_provenance(folder, some, found, names, layout.output.id_key is not None)
        for name in TOKENIZER_NAMES if with_tokenizer else ():
            layout.tok.save(os.path.join(folder, name))
            others.append(name)
        if form.of_tokenizer is not None:
            name, content = form.of_tokenizer
            _binding.write_file(os.path.join(folder, name), content(layout.tok))
            others.append(name)
        counts = None
        if self._skips:
            counts = {**skipped.finish(os.path.join(layout.folder, LIST_NAME)), "file": LIST_NAME}
            others.append(LIST_NAME)
        made = replace(
            known,
            text_bytes={split: sum(shard.text_bytes for shard in some) for split, some in shards.items()},
            shards=shards,
            files=[record_file(os.path.join(folder, name)) for name in others],
            skipped=counts,
        )
        _binding.write_file(os.path.join(folder, form.manifest), made.to_json())
        with file_errors(folder, "cannot be renamed"):
            os.rename(folder, os.path.join(os.path.dirname(folder), FINISHED))
        return made


# ----------------------------------------------------------------------------------------------------
# Shards


def shard_sizes(tokens: int, most: int, least: int) -> list[int]:
    """Returns the numbers of tokens of a split's shards.

    Args:
        tokens: the tokens of the split.
        most: the maximum per shard, exceeded only if shards would otherwise be smaller than `least`.
        least: the minimum per shard. The split has at least this many.

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
    """Returns the sizes of the shards of a split with this number of tokens. All splits have `total` tokens.

    Shards of equal size have at most `shard_tokens` tokens. Otherwise, shards have `shard_tokens` tokens, and the last
    one has the rest, but at least `min_shard_tokens`. It may be that much longer instead.

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


class ShardOrder(NamedTuple):
    """A shard to make."""

    path: str  # its file
    size: int  # of the file, in bytes
    header: bytes  # its first bytes
    parts: Sequence[Section | bytes]  # the rest
    is_hashed: bool  # whether the hash is wanted


def make_shards(
    layout: Layout,
    streams: Sequence[Stream],
    paths: Sequence[str],
    folder: str,
    make: Callable[[Iterator[ShardOrder]], Iterator[str]],
    progress: bool | None = None,
) -> dict[str, list[ShardRecord]]:
    """Makes the shards of all splits in a folder. Returns their records.

    Args:
        streams: the splits, at the end of all results.
        paths: the files of the results, in order.
        make: yields the results of `make_shard` for the orders.

    Raises:
        ShardTooSmallError, LimitError: as sizes_of.
    """
    names, total = planning.SPLIT_NAMES[: len(streams)], sum(stream.tokens for stream in streams)
    sizes = [sizes_of(layout, name, stream.tokens, total) for name, stream in zip(names, streams)]
    shards = (shard_orders(layout, split, some, paths, folder) for split, some in enumerate(sizes))
    planned, waiting = tee(chain.from_iterable(shards))  # shards that are being made wait for their hashes
    records = list[ShardRecord]()
    with Progress("writing shards", sum(map(len, sizes)), "shard", progress) as bar:
        for digest, (record, _) in zip(make(order for _, order in planned), waiting):
            records.append(record._replace(sha256=digest))
            bar.add(1)
    made = iter(records)
    return {name: list(islice(made, len(some))) for name, some in zip(names, sizes)}


def shard_orders(
    layout: Layout, split: int, sizes: Sequence[int], paths: Iterable[str], folder: str
) -> Iterator[tuple[ShardRecord, ShardOrder]]:
    """Cuts the tokens of a split into shards of these sizes, for files in a folder. Yields a shard when it is full."""
    output, stream = layout.output, Stream(layout.marks)
    width, name, mark = ID_BYTES[output.dtype], planning.SPLIT_NAMES[split], layout.tok.eot_token or 0
    header_of = output.form.header
    assert header_of is not None
    parts, room, number = list[Section | bytes](), sizes[0], 0
    documents = text_bytes = 0  # of the shard

    def shard() -> tuple[ShardRecord, ShardOrder]:
        header = header_of(sizes[number], output.dtype, layout.tok.vocab_size)
        file, size = os.path.basename(layout.path(name, number)), len(header) + sizes[number] * width
        record = ShardRecord(file, sizes[number], size, "", documents, text_bytes)
        return record, ShardOrder(os.path.join(folder, file), size, header, parts, output.HASHED)

    for result, header in chain.from_iterable(map(results_in, paths)):
        counts = counts_in(header)[split]
        tokens, whole = counts.tokens, [counts.documents, counts.text_bytes]
        stream.take(counts)
        section, taken = result.sections[name], [int(stream.goes_on), 0]  # the documents and bytes that shards have
        start, ids, starts = -stream.added, array("H"), array("Q")  # -1 is the mark before the tokens
        while start < tokens:
            if not room:
                yield shard()
                number += 1
                parts, room, documents, text_bytes = [], sizes[number], 0, 0
            if start < 0:
                parts.append(mark.to_bytes(width, "little"))
                end, now = 0, taken
            else:
                end, now = min(tokens, start + room), whole
                if end < tokens:  # the result goes on in the next shard
                    if not ids:
                        ids, starts = read_ids(section, output.dtype), read_starts(result, split)
                    now = [bisect_left(starts, end), taken[1] + text_length(layout.tok, ids[start:end])]
                parts.append(part_of(section, ids, start, end) if ids else section._replace(skipped=start * width))
            documents, text_bytes = documents + now[0] - taken[0], text_bytes + now[1] - taken[1]
            room, start, taken = room - (end - start), end, now
    yield shard()  # also that of a split without tokens


def make_here(orders: Iterator[ShardOrder]) -> Iterator[str]:
    """Makes shards in threads of this process."""
    return map_ordered(make_shard, orders, min(worker_count(None), _MOST_AT_ONCE))


def make_shard(order: ShardOrder) -> str:
    """Makes a shard. Returns its SHA-256, or ""."""
    temporary = f"{order.path}-{os.urandom(4).hex()}.tmp"
    digest = hashlib.sha256(order.header)
    with file_errors(temporary, "cannot be written"), open(temporary, "wb", buffering=0) as output:
        write_all(output, order.header)
        parts = ((part,) if isinstance(part, bytes) else part.blocks() for part in order.parts)
        for data in chain.from_iterable(parts):
            end_if_unwanted()
            if order.is_hashed:
                digest.update(data)
            write_all(output, data)
    give_name(temporary, order.path)
    return digest.hexdigest() if order.is_hashed else ""


def starts_of(layout: Layout, split: int, paths: Iterable[str]) -> Iterator[Array]:
    """Yields where the documents of a split begin, int64, in blocks."""
    stream = Stream(layout.marks)
    for result, header in chain.from_iterable(map(results_in, paths)):
        before = stream.tokens
        stream.take(counts_in(header)[split])
        starts = numpy.array(read_starts(result, split)[stream.goes_on :], dtype=numpy.int64)
        yield starts + (before + stream.added)
