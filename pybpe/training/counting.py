"""Counts the words of a corpus: with threads, or with an executor's workers."""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import fields, replace
from functools import partial
from itertools import chain, count, islice
from typing import Any, NamedTuple

from .. import _binding
from .._lazy import futures, tempfile
from ..arguments import by_caller, param, utf8, whole_number
from ..errors import ArgumentError, FileMissingError, LimitError, note, warn
from ..model import matcher, special_ids_of
from ..pattern import Digits, Pattern, PatternLike
from ..reading.charset import Doubts
from ..reading.documents import Kinds, RecordNotes, SkippedRecords, listed_records
from ..reading.files import Corpus, SmallFiles, corpus_files
from ..reading.input_file import InputFile
from ..reading.inputs import STDIN, Inputs, ReadOptions, is_path_list, listed
from ..reading.objects import given_inputs, lines_of, records_first, texts_of
from ..reading.pieces import data_pieces
from ..reading.planning import (
    Piece,
    Plan,
    add_documents,
    anchored,
    divide,
    lent_divider,
    pieces_of,
    progress_total,
    record_pieces,
    shares_of,
    task_fingerprint,
    text_piece,
)
from ..reading.sample import Sample
from ..reading.splits import SplitOptions
from ..support.output_files import FOLDER, only_writer, remove_folder, remove_others
from ..support.parallel import (
    READER_BYTES,
    RunOptions,
    end_if_unwanted,
    map_ordered,
    process_memory,
    run_interruptibly,
    worker_count,
)
from ..support.platform import machine_memory
from ..support.progress import Progress
from ..support.task_results import TASKS, hashed, task_folder, task_path
from .counts import Counts, CountSettings, Reader, Runs, header_of, sorted_blocks, write_blocks

LEAST_TASK, MOST_TASK = 1 << 26, 1 << 28  # the number of bytes of text that an executor's worker counts at once
_NO_WORDS = "there is no text in the inputs, so there are no words to count"
_TASKS = 256  # if tasks of these sizes allow: longer ones leave workers idle, shorter ones make more words to add


def count_words(
    inputs: Inputs,
    *,
    pattern: PatternLike = "gpt2",
    special_tokens: Sequence[str] = (),
    digits: Digits = None,
    normalizer: str | None = None,
    text_key: str = "text",
    encoding: str | None = None,
    keep_crlf: bool = False,
    documents: str = "auto",
    on_error: str = "stop",
    skipped: _binding.PathLike | None = None,
    max_documents: int | None = None,
    max_bytes: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    executor: futures.Executor | None = None,
    memory_limit: int | None = None,
    task_timeout: float | None = None,
    progress: bool | None = None,
) -> Counts:
    """Counts the words of a corpus, to train on them later. This is the first half of `pybpe.train`.

    Args:
        inputs, pattern, special_tokens, digits, normalizer, text_key, encoding, keep_crlf, documents, on_error,
        skipped, max_documents, max_bytes, seed, memory_limit, progress: as in `pybpe.train`.
        workers: number of threads if there is no executor. None uses all CPUs.
        executor: any concurrent.futures.Executor: a process pool, Dask's `Client.get_executor()`, or mpi4py's. Its
            workers must be able to open the files at the same paths. A task counts 64 to 256 MiB of text (a compressed
            file is at most one task). This process adds the counts, within `memory_limit`.
        task_timeout: as in `pybpe.binarize`.

    Returns:
        The Counts. The result is the same for any number of workers and any executor.

    Raises:
        WorkerError: a process of the executor died, and the executor cannot continue.
        ArgumentError, FileError, FormatError: as in `pybpe.train`.
    """
    specials = tuple(special_ids_of(special_tokens))  # counts have no ids, so the ids of a mapping do not matter
    read = ReadOptions(text_key, encoding, keep_crlf, documents, on_error, listed(skipped))
    settings = CountSettings(Pattern(pattern, digits), specials, normalizer, read)
    run = RunOptions(workers, executor, memory_limit, progress, task_timeout)
    counts = count_inputs(inputs, settings, Sample(max_documents, max_bytes, seed), run)
    if not len(counts):
        warn(_NO_WORDS)
    return counts


def count_inputs(
    inputs: Inputs,
    settings: CountSettings,
    sample: Sample,
    run: RunOptions,
    folder: str | None = None,
    merging: MergingMemory | None = None,
) -> Counts:
    """Does the work of `count_words`. With a folder, which `checkpoint_folder` yields, `inputs` are paths, and what an
    earlier run counted there is not counted again. Raises LimitError if the words are too many for merging."""
    with _counted(inputs, settings, sample, run, folder) as (counter, size):
        return Counts(counter.finish(merging, size), settings)


def count_to_file(
    inputs: Inputs, settings: CountSettings, sample: Sample, run: RunOptions, path: _binding.PathLike
) -> int:
    """Writes the counts that `count_inputs` returns to a .counts file, atomically. Returns the number of words, which
    need not fit into memory if there is a memory limit. Raises ArgumentError if there are none."""
    with _counted(inputs, settings, sample, run) as (counter, _):
        if not counter.has_words:
            raise ArgumentError(_NO_WORDS)
        return counter.write(path, header_of(settings))


def count_plan(plan: Plan, settings: CountSettings, run: RunOptions) -> Counts:
    """Returns the words of the first split of a plan. Says nothing of records that are not valid."""
    counting = _Counting(plan, settings, run, progress_total(plan.files, settings.read.text_key), SkippedRecords())
    with ExitStack() as stack:
        counter, _ = counting.counted(counting.groups(Sample()), stack)
        return Counts(counter.finish(), settings)


def corpus_plan(files: Corpus, settings: CountSettings) -> Plan:
    """Returns the plan of a corpus that is not split. Special tokens are the only marks in text."""
    kinds = Kinds(replace(settings.read, documents="auto"))
    plan = Plan(files, kinds, SplitOptions((1,)), settings.cutting)
    size = 1 << (files.size // _TASKS).bit_length() >> 1  # a power of two, so that the tasks of most files stay
    plan.task_bytes = min(max(size, LEAST_TASK), MOST_TASK)
    return plan


@contextmanager
def _counted(
    inputs: Inputs, settings: CountSettings, sample: Sample, run: RunOptions, folder: str | None = None
) -> Iterator[tuple[WordCounter, int]]:
    """Yields a counter that has counted the inputs, and their size in bytes."""
    if isinstance(inputs, (bytes, bytearray, memoryview)):
        raise ArgumentError("inputs is one bytes object: pass a path, or a list of texts, [text]")
    if not is_path_list(inputs):
        _check_texts(inputs)
        if not isinstance(inputs, (list, tuple)):
            inputs = given_inputs(inputs)
    files = files_to_count(inputs, settings.read) if is_path_list(inputs) else None
    if run.executor is not None:
        if files is None or not sample.is_all:
            raise ArgumentError(
                f"an executor counts whole files: pass paths, and leave out {param('max_documents')} and"
                f" {param('max_bytes')}"
            )
        if any(file.path == STDIN for file in files.singles):
            raise ArgumentError("an executor's workers cannot read standard input: pass a file that they can open")
    plan = corpus_plan(files or Corpus(), settings)
    process_memory(run.memory_limit, any(file.has_rows for file in plan.files.singles))
    total = sample.max_bytes if files is None or not sample.is_all else progress_total(files, settings.read.text_key)
    with ExitStack() as stack:
        with listed_records(settings.read) as records:
            counting = _Counting(plan, settings, run, total, records)
            groups = counting.groups(sample) if files is not None else [_of_object(inputs, settings, sample)]
            found = counting.counted(groups, stack, folder)
        yield found


def _of_object(documents: Any, settings: CountSettings, sample: Sample) -> _Group:
    cut = settings.cutting.cut
    are_records, documents = records_first(documents)
    if are_records:
        if not sample.is_all:
            told = f"leave out {param('max_documents')} and {param('max_bytes')}, or pass texts"
            raise ArgumentError(f"records of an object cannot be sampled: {told}")
        return _Group(record_pieces(lines_of(documents, settings.read), settings.read))
    some = texts_of(documents) if sample.is_all else sample.texts(texts_of(documents), cut)
    return _Group(text_piece(data) for text in some for data in data_pieces(utf8(text), cut))


def files_to_count(inputs: Inputs, read: ReadOptions) -> Corpus:
    """Returns the files that paths name, or raises an error if one of them cannot be read."""
    try:
        return corpus_files(inputs, read)
    except FileMissingError as error:
        name = str(error).rpartition(": cannot be opened")[0]
        if re.search(r"\s", name) or not re.search(r"[./]", name):  # the user may have meant a text
            remedy = by_caller("pass iter([text])", "put it in a file, or pass it on standard input, as -")
            raise FileMissingError(f"{error} (if it is a text, not a path: {remedy})") from None
        raise


def _check_texts(inputs: object) -> None:
    """Raises ArgumentError for an object that is not an iterable of documents, or is probably passed by mistake."""
    if isinstance(inputs, Mapping):
        raise ArgumentError(
            f"inputs is a dictionary: pass word counts as {param('counts')}, or texts as iter(texts.values())"
        )
    if isinstance(inputs, (list, tuple)) and any(isinstance(i, (str, os.PathLike)) for i in inputs):
        raise ArgumentError("inputs mixes paths (every str in a list) and other objects: pass texts as iter([...])")


# ----------------------------------------------------------------------------------------------------
# Threads count pieces, an executor's workers count tasks
#
# With a checkpoint, a folder has a file of words for each group of tasks, which is named as in task_results.py, and is
# complete or not there. So a run that was killed counts the groups that are missing, and one whose inputs have changed
# the groups that read these.

_TASKS_OF_GROUP = 16
_PIECES_OF_GROUP = 1 << 10  # of a sample, of 1 MiB each


class _Group(NamedTuple):
    """Work that is counted together: pieces that follow one another, or for workers tasks."""

    items: Iterable[Any]
    name: bytes = b""  # its fingerprint
    path: str = ""  # the file for its words, if a run may resume
    counter: WordCounter | None = None


class _Item(NamedTuple):
    what: Any  # Piece | Task
    number: int
    counter: Any  # a WordCounter, or None for a worker, which has its own


class Counted(NamedTuple):
    """The result of counting."""

    size: int  # the number of bytes
    doubt: str | None  # a warning about the encoding of a file, or None
    notes: Sequence[RecordNotes]  # the records
    counts: Counts | None = None  # the words, if a worker counted them


class _Counting:
    """Counts a corpus of `total` bytes, if known. `records` adds up its records."""

    def __init__(
        self, plan: Plan, settings: CountSettings, run: RunOptions, total: int | None, records: SkippedRecords
    ) -> None:
        self._plan, self._settings, self._run, self._total = plan, settings, run, total
        self._records, self._doubts = records, Doubts()

    def groups(self, sample: Sample) -> Iterator[_Group]:
        """Yields the groups of the plan, or of a sample of it. They depend only on the files and the settings."""
        plan, cut = self._plan, self._plan.cutting.cut
        if sample.is_all:
            tasks = plan.loose_tasks()
            while some := list(islice(tasks, _TASKS_OF_GROUP)):
                name, fixed = b"\n".join(task_fingerprint(task, _fingerprint) for task in some), map(plan.fixed, some)
                if self._run.executor is not None:
                    yield _Group(map(anchored, fixed), name)
                else:
                    yield _Group(chain.from_iterable(pieces_of(task, plan.kinds, cut) for task in fixed), name)
            return
        pieces, parts = sample.pieces(plan, cut), [*map(_fingerprint, plan.files.parts)]
        for number, first in enumerate(pieces):
            rest = islice(pieces, _PIECES_OF_GROUP - 1)
            yield _Group(chain((first,), rest), repr((sample, number, parts)).encode("utf-8", "surrogateescape"))
            deque(rest, 0)  # of a group that was not counted: the next one begins after it

    def counted(self, groups: Iterable[_Group], stack: ExitStack, folder: str | None = None) -> tuple[WordCounter, int]:
        """Returns a counter that has counted all groups, and their size. The stack closes the counter. With a folder,
        files in it get the words of the groups that have none there yet."""
        with Progress("counting", self._total, "B", self._run.progress) as bar:
            if folder is not None:
                folder = task_folder(folder, _settings_fingerprint(self._settings), keeps=True)
                remove_others(folder, "*.counts", ())  # the remains of a killed group
                sizes = dict(self._checkpointed(groups, folder, bar))
                return stack.enter_context(closing(self._counter(Runs(folder, list(sizes))))), sum(sizes.values())
            counter = stack.enter_context(closing(self._counter()))
            everything = _Group(chain.from_iterable(group.items for group in groups), counter=counter)
            return counter, sum(size for _, size in self._count([everything], bar, ordered=False))

    def _counter(self, runs: Runs | None = None) -> WordCounter:
        workers = self._run.workers if self._run.executor is None else 1  # one thread adds the words of workers
        limit, expected = self._run.memory_limit or default_limit(), self._total if runs is None else None
        if limit is not None and any(file.has_rows for file in self._plan.files.singles):
            limit = max(LEAST_MEMORY, limit - READER_BYTES)
        return WordCounter(self._settings, self._plan.kinds, self._plan.splits, workers, limit, runs, expected)

    def _checkpointed(self, groups: Iterable[_Group], folder: str, bar: Progress) -> Iterator[tuple[str, int]]:
        """Yields the names of the groups' files, and the sizes of the groups."""
        ready = list[tuple[str, int]]()

        def missing() -> Iterator[_Group]:
            for group in groups:
                path = task_path(folder, group.name)
                if not os.path.exists(path):
                    yield group._replace(path=path, counter=self._counter(Runs(folder)))
                    continue
                with Reader(path) as reader:
                    ready.append((os.path.basename(path), reader.header["size"]))
                bar.add(ready[-1][1], earlier=True)

        for group, size in self._count(missing(), bar, ordered=True):
            assert group.counter is not None
            group.counter.write(group.path, {"size": size})
            yield os.path.basename(group.path), size
        yield from ready

    def _count(self, groups: Iterable[_Group], bar: Progress, ordered: bool) -> Iterator[tuple[_Group, int]]:
        """Counts groups with their counters. Yields a group when it is complete, and its size. If there are several
        groups, they must be `ordered`."""
        begun = deque[_Group]()  # the group of each item that is being counted

        def items() -> Iterator[_Item]:
            for group in groups:
                for what in group.items:
                    begun.append(group)
                    yield _Item(what, next(numbers), group.counter if self._run.executor is None else None)

        numbers, last, size = count(), None, 0
        for item, found in self._results(items(), ordered):
            group = begun.popleft()
            if last is not None and group is not last:
                yield last, size
                size = 0
            last = group
            self._doubts.tell(found.doubt)
            self._records.add_task(item.number, found.notes)
            if found.counts is not None:
                assert group.counter is not None
                run_interruptibly(group.counter.add_words, found.counts.words)
            size += found.size
            bar.add(found.size)
        if last is not None:
            yield last, size

    def _results(self, items: Iterator[_Item], ordered: bool) -> Iterator[tuple[_Item, Counted]]:
        """Counts items. The words of a worker's task need not wait for a longer task, unless `ordered`. Raises
        WorkerError: as in map_by_executor."""
        if self._run.executor is None:
            return map_ordered(
                lambda item: (item, count_piece(item.counter, self._doubts, item.what)), items, self._run.workers
            )
        from ..support.executors import map_by_executor

        call = partial(count_task, self._settings, self._plan.kinds, self._plan.splits)
        return map_by_executor(call, items, self._run, ordered)


@contextmanager
def checkpoint_folder(checkpoint: _binding.PathLike) -> Iterator[str]:
    """Yields the hidden folder of a checkpoint, which keeps the words of groups, and holds its lock. Removes the
    checkpoint at the end of the block, unless the block raises."""
    path = _binding.path_text(checkpoint)
    with only_writer(path, temporary=True):
        folder = os.path.join(path, FOLDER)
        yield folder
        remove_folder(os.path.join(folder, TASKS))


def _fingerprint(part: InputFile | SmallFiles) -> object:
    """Returns the fingerprint of files, whichever the current folder is."""
    return part.anchored().fingerprint


def _settings_fingerprint(settings: CountSettings) -> str:
    """Returns a hash, in hex, of everything except the files that counts depend on."""
    read = replace(settings.read, on_error="stop", skipped=None)
    rest = [getattr(settings, each.name) for each in fields(settings) if each.name not in ("pattern", "read")]
    return hashed(header_of(settings), read, rest)


def count_piece(counter: WordCounter, doubts: Doubts, piece: Piece) -> Counted:
    """Counts a piece with a counter."""
    doubt = piece.doubt(doubts.look) if piece.path else None
    counter.add(piece)
    return Counted(piece.size, doubt, [piece.notes] if piece.notes.end else [])


def count_task(settings: CountSettings, kinds: Kinds, shares: Sequence[float], item: _Item) -> Counted:
    """Counts a task in a worker."""
    counter, doubts = WordCounter(settings, kinds, shares, workers=1), Doubts()
    size, doubt, notes = 0, None, list[RecordNotes]()
    for piece in pieces_of(item.what, kinds, settings.cutting.cut):
        found = count_piece(counter, doubts, piece)
        size, doubt = size + found.size, doubt or found.doubt
        notes += found.notes
    return Counted(size, doubt, notes, Counts(counter.finish(), settings))


# ----------------------------------------------------------------------------------------------------
# The words of pieces: a table per thread, and sorted runs on disk if memory is limited


LEAST_MEMORY = 1 << 24
_FULL = 0.85  # a table with this share of its room counts as full: the words of a piece must fit too
_LARGE_TABLE = 1 << 17  # words, which take 6 MB
_GROWTH_MAX = 4.0  # the most by which an estimate may multiply the size of a table


class WordCounter:
    """Counts the words of pieces, of divided ones only the documents of the first split. Several threads may do so at
    the same time, with their own tables.

    When the common table is full, and a thread's table has used its share of `memory_limit`, the thread sorts it and
    writes it to a temporary folder as a run. `finish` merges the runs. `runs` of an earlier process are added to the
    result. New ones go to the same folder. `expected` is the number of bytes of all pieces, if known."""

    def __init__(
        self,
        settings: CountSettings,
        kinds: Kinds,
        shares: Sequence[float] = (1.0,),
        workers: int | None = None,
        memory_limit: int | None = None,
        runs: Runs | None = None,
        expected: int | None = None,
    ) -> None:
        if memory_limit is not None:
            memory_limit = whole_number("memory_limit", memory_limit, LEAST_MEMORY)
        self._settings, self._kinds, self._shares = settings, kinds, shares
        self._pattern = settings.pattern
        self._specials = matcher(settings.specials, settings.matching)
        # A quarter is for the common table, and another for the threads' tables. Sorting takes as much as a table.
        self._limit = None if memory_limit is None else memory_limit // 4
        self._table_limit = None if self._limit is None else self._limit // worker_count(workers)
        self._closing = ExitStack()
        self._runs = runs
        self._total: _binding.Counter | None = None  # threads' tables are moved here when they become large
        self._total_lock = threading.Lock()
        self._total_room = 0  # the number of words that the total has room for
        self._expected, self._counted = expected, 0
        # Tables that no thread is using, with and without specials. pop and append are atomic, so no lock is needed.
        self._free: dict[bool, list[_binding.Counter]] = {True: [], False: []}
        if self._table_limit is not None and self._runs is None:
            self._runs = Runs(self._closing.enter_context(tempfile.TemporaryDirectory(prefix="pybpe-")))

    def add(self, piece: Piece) -> None:
        """Counts the words of a piece."""
        if piece.split not in (None, 0):
            return
        has_specials = piece.is_text and not self._settings.changes_text  # otherwise _texts yields texts without any
        counter = self._take(has_specials)
        if self._pattern.pretok is None or not self._add_at_once(piece, counter):
            for text in self._texts(piece):
                if self._pattern.pretok is not None:
                    counter.add(text)
                else:
                    for words in word_lists(self._pattern, bytes(text)):
                        counter.add_word_list(words)
        with self._total_lock:
            self._counted += piece.size
        if self._pattern.pretok is not None and counter.stats.words > _LARGE_TABLE:
            self._gather(counter)
        self._put_back(counter, has_specials)

    @property
    def has_words(self) -> bool:
        """Whether any words were counted, also by an earlier process."""
        tables = [*self._free[True], *self._free[False], *([self._total] if self._total is not None else [])]
        return any(table.stats.words for table in tables) or (self._runs is not None and bool(self._runs.names))

    def add_words(self, words: _binding.Words) -> None:
        """Adds words that a worker counted."""
        counter = self._take(False)
        counter.add_words(words)
        self._put_back(counter, False)

    def _take(self, has_specials: bool) -> _binding.Counter:
        try:
            return self._free[has_specials].pop()
        except IndexError:
            return _binding.Counter(self._pattern.pretok, self._specials if has_specials else None)

    def _put_back(self, counter: _binding.Counter, has_specials: bool) -> None:
        if self._is_full(counter):
            self._spill(counter)
        else:
            self._free[has_specials].append(counter)

    def _add_at_once(self, piece: Piece, counter: _binding.Counter) -> bool:
        """Counts a piece with calls to C. Returns False if its documents must be counted one by one."""
        if self._settings.changes_text:
            return False
        if not piece.divided:
            counter.add(piece.data)
            return True
        with lent_divider(self._kinds, b"", shares_of(piece, self._shares)) as divider:
            if not add_documents(divider, piece):
                return False
            counter.add_documents(divider.documents(0))
            return True

    def _texts(self, piece: Piece) -> Iterable[_binding.Data]:
        """Yields the documents of a piece that are counted, one by one. If they are normalized, or Python splits them
        into words, special tokens are found first, as in encoding."""
        texts: Iterable[_binding.Data] = [piece.data]
        if piece.divided:
            groups = divide(piece, self._kinds, self._shares)
            texts = chain.from_iterable(documents for split, documents, _ in groups if split == 0)
        if self._pattern.pretok is not None and not self._settings.changes_text:
            return texts
        specials = self._specials if piece.is_text else None
        segments = chain.from_iterable(ordinary_segments(memoryview(text), specials) for text in texts)
        return map(self._settings.prepared, segments) if self._settings.changes_text else segments

    def _is_full(self, counter: _binding.Counter) -> bool:
        """Returns whether a table must be written to disk, because it or its next size exceeds the limit."""
        if self._table_limit is None:
            return False
        stats = counter.stats
        next_size = stats.memory if stats.words < _FULL * stats.room else 2 * stats.memory
        return bool(next_size > self._table_limit)

    def _gather(self, counter: _binding.Counter) -> None:
        """Moves the counts of a thread's table to the common table, if it has room. So the thread's table stays small
        enough for the CPU's cache, and little is left to do at the end."""
        with self._total_lock:
            if self._total is None:
                self._total = _binding.Counter(self._pattern.pretok, None)
            stats = self._total.stats
            words, growth = stats.words + counter.stats.words, _GROWTH_MAX
            if self._limit is not None:
                growth = self._limit / (stats.memory * (2 if words > stats.room else 1) + counter.stats.memory)
                if growth < 1:
                    return
            if words > self._total_room:  # at most the room that the rest of the text needs at this rate
                rest = self._expected / max(1, self._counted) if self._expected is not None else 1.0
                self._total_room = int(words * min(max(rest, 1.0), growth, _GROWTH_MAX))
                self._total.reserve(self._total_room)
            self._total.absorb(counter)

    def _spill(self, counter: _binding.Counter) -> None:
        """Writes the words of a table as a run."""
        assert self._runs is not None
        words = counter.export()
        counter.clear()
        self._runs.add(words)

    def finish(self, merging: MergingMemory | None = None, text: int = 0) -> _binding.Words:
        """Returns all words with their counts. Afterwards the counter is empty. Raises LimitError if they are too many
        for merging. `text` is the number of bytes that were counted."""
        return run_interruptibly(self._finish, merging or MergingMemory(None, 0), text)

    def _finish(self, merging: MergingMemory, text: int) -> _binding.Words:
        if self._runs is None or not self._runs.names:
            words = self._merge_tables()
            merging.check(*words.size, text)
            return words
        return _binding.Words.from_blocks(self._fitting(merging, text))

    def _fitting(self, merging: MergingMemory, text: int) -> Iterator[_binding.WordBlock]:
        """Yields the words of all runs while they fit; adds up the others, and then raises LimitError."""
        words = size = 0
        for block in self._sorted():
            words, size = words + len(block.counts), size + len(block.blob)
            if merging.fits(words, size):
                yield block
        merging.check(words, size, text)

    def write(self, path: _binding.PathLike, header: Mapping[str, object]) -> int:
        """Writes all words to a .counts file, atomically, and returns their number. With a memory limit, they need not
        fit into memory. Afterwards the counter is empty, and its runs are removed."""
        return run_interruptibly(self._write, path, header, patience=1.0)

    def _write(self, path: _binding.PathLike, header: Mapping[str, object]) -> int:
        if self._runs is None or not self._runs.names:
            blocks = sorted_blocks(self._merge_tables())
        else:
            blocks = self._sorted()
        words = write_blocks(path, header, _while_wanted(blocks))
        if self._runs is not None:
            self._runs.remove()
        return words

    def _sorted(self) -> Iterator[_binding.WordBlock]:
        """Writes all tables as runs, and yields the words of all runs."""
        assert self._runs is not None
        for tables in self._free.values():
            while tables:
                self._spill(tables.pop())
        if self._total is not None:
            self._spill(self._total)
            self._total, self._total_room = None, 0
        yield from self._runs.merged()

    def close(self) -> None:
        """Removes temporary files."""
        self._closing.close()

    def _merge_tables(self) -> _binding.Words:
        tables = self._free[True] + self._free[False] + ([self._total] if self._total is not None else [])
        if not tables:
            return _binding.Words.from_dict({})
        self._free, self._total, self._total_room = {True: [], False: []}, None, 0
        total = tables.pop()
        while tables:
            total.absorb(tables.pop())
        return total.export()


def _while_wanted(blocks: Iterable[_binding.WordBlock]) -> Iterator[_binding.WordBlock]:
    """Yields the blocks until Ctrl-C has ended the wait for the thread that takes them."""
    for block in blocks:
        end_if_unwanted()
        yield block


def ordinary_segments(data: memoryview, specials: _binding.Specials | None) -> Iterator[memoryview]:
    """Yields the parts of a text between its special tokens."""
    begin = 0
    for start, end, _ in specials.find_all(data) if specials is not None else ():
        if start > begin:
            yield data[begin:start]
        begin = end
    if begin < len(data):
        yield data[begin:]


def word_lists(pattern: Pattern, data: bytes) -> Iterator[list[bytes]]:
    """Yields the words of a text without specials, some thousands at a time, so that Ctrl-C does not wait for all."""
    ends = pattern.word_ends(data)
    words = (data[begin:end] for begin, end in zip(chain((0,), ends), ends))
    while batch := list(islice(words, 1 << 14)):
        end_if_unwanted()
        yield batch


# ----------------------------------------------------------------------------------------------------
# The memory of a training run

_LARGE = 1 << 28  # bytes: less is not worth a note
_WIDE = (1 << 16) - 1  # the trainer's ids have 2 bytes below this number of tokens, otherwise 4


def default_limit() -> int | None:
    """Returns the memory limit of a run that has none: half of the machine's memory."""
    memory = machine_memory()
    return None if memory is None else memory // 2


class MergingMemory(NamedTuple):
    """The memory that merging may take."""

    limit: int | None  # number of bytes, or None for no limit
    size: int  # the trainer's vocab_size

    def need(self, words: int, size: int) -> int:
        """Returns about how many bytes merging takes for distinct words that have `size` bytes. First there are the
        words, with their counts, offsets and order, and the trainer's slots, one per byte and word. Then the
        slots, and lists of the places of pairs, which have up to half as many entries."""
        slots, width = size + words, 2 if self.size < _WIDE else 4
        return width * slots + max(size + 20 * words, 4 * slots // 2)

    def fits(self, words: int, size: int) -> bool:
        return self.limit is None or self.need(words, size) <= self.limit

    def check(self, words: int, size: int, text: int = 0) -> None:
        """Raises LimitError if the words do not fit. Logs what merging takes if it takes much. `text` is the size of
        the text that has them, 0 if unknown."""
        need = self.need(words, size)
        if self.limit is not None and need > self.limit:
            share = (0.9 * self.limit / need) ** 2  # a quarter of a text usually has half of its words or fewer
            sample = param(max_bytes=int(float(f"{0.95 * share * text:.1e}"))) if text else param("max_bytes")
            raise LimitError(
                f"merging {words} distinct words takes about {_shown(need)}, more than {param('memory_limit')} allows"
                f" ({_shown(self.limit)}; by default, half of the machine's memory): train on a sample, with {sample},"
                f" or give a larger {param('memory_limit')}"
            )
        if need > _LARGE:
            less = f"a sample ({param('max_bytes')}) takes less"
            note(f"{words} distinct words: merging takes about {_shown(need)}; {less}")


def _shown(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"
