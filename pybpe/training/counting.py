"""Counts the words of a corpus: with threads, or with an executor's workers."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import fields, replace
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple

from .. import _binding
from .._lazy import futures
from ..arguments import by_caller, chosen, param, utf8
from ..errors import ArgumentError, FileMissingError, warn
from ..model import special_ids_of
from ..pattern import Digits, Pattern, PatternLike
from ..reading.charset import Doubts
from ..reading.cuts import data_pieces
from ..reading.documents import Kinds
from ..reading.files import Corpus, SmallFiles, corpus_files
from ..reading.input_file import InputFile
from ..reading.inputs import STDIN, Inputs, ReadOptions, is_path_list
from ..reading.objects import given_inputs, lines_of, records_first, texts_of
from ..reading.pieces import Piece, Sample, pieces_of, record_pieces, text_piece
from ..reading.planning import Plan, SplitOptions, Task, anchored, progress_total, task_fingerprint
from ..reading.records import RecordNotes, SkippedRecords, listed_records
from ..support.output_files import FOLDER, only_writer, remove_folder, remove_others
from ..support.parallel import (
    READER_BYTES,
    RunOptions,
    map_ordered,
    process_memory,
    run_interruptibly,
)
from ..support.progress import Progress
from ..support.task_results import TASKS, hashed, task_folder, task_path
from . import word_counter
from .counts import Counts, CountSettings, Reader, Runs, header_of
from .word_counter import MergingMemory, WordCounter, default_limit

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
    arguments = locals()
    specials = tuple(special_ids_of(special_tokens))  # counts have no ids, so the ids of a mapping do not matter
    settings = CountSettings(Pattern(pattern, digits), specials, normalizer, chosen(ReadOptions, arguments))
    counts = count_inputs(inputs, settings, chosen(Sample, arguments), chosen(RunOptions, arguments))
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
    with _word_counter(inputs, settings, sample, run, folder) as (counter, size):
        return Counts(counter.finish(merging, size), settings)


def count_to_file(
    inputs: Inputs, settings: CountSettings, sample: Sample, run: RunOptions, path: _binding.PathLike
) -> int:
    """Writes the counts that `count_inputs` returns to a .counts file, atomically. Returns the number of words, which
    need not fit into memory if there is a memory limit. Raises ArgumentError if there are none."""
    with _word_counter(inputs, settings, sample, run) as (counter, _):
        if not counter.has_words:
            raise ArgumentError(_NO_WORDS)
        return counter.write(path, header_of(settings))


def count_plan(plan: Plan, settings: CountSettings, run: RunOptions) -> Counts:
    """Returns the words of the first split of a plan. Says nothing of records that are not valid."""
    counting = _Counting(plan, settings, run, progress_total(plan.files, settings.read.text_key), SkippedRecords())
    with ExitStack() as stack:
        counter, _ = counting.of_all((item for _, items in counting.groups(Sample()) for item in items), stack)
        return Counts(counter.finish(), settings)


def corpus_plan(files: Corpus, settings: CountSettings) -> Plan:
    """Returns the plan of a corpus that is not split. Special tokens are the only marks in text."""
    kinds = Kinds(replace(settings.read, documents="auto"))
    plan = Plan(files, kinds, SplitOptions((1,)), settings.cutting)
    size = 1 << (files.size // _TASKS).bit_length() >> 1  # a power of two, so that the tasks of most files stay
    plan.task_bytes = min(max(size, LEAST_TASK), MOST_TASK)
    return plan


@contextmanager
def _word_counter(
    inputs: Inputs, settings: CountSettings, sample: Sample, run: RunOptions, folder: str | None = None
) -> Iterator[tuple[WordCounter, int]]:
    """Yields a counter that has counted the inputs, and their size in bytes."""
    if isinstance(inputs, (bytes, bytearray, memoryview)):
        raise ArgumentError("inputs is one bytes object: pass a path, or a list of texts, [text]")
    if isinstance(inputs, Mapping):
        raise ArgumentError(
            f"inputs is a dictionary: pass word counts as {param('counts')}, or texts as iter(texts.values())"
        )
    if not is_path_list(inputs):
        if not isinstance(inputs, (list, tuple)):
            inputs = given_inputs(inputs)
        elif any(isinstance(i, (str, os.PathLike)) for i in inputs):
            raise ArgumentError("inputs mixes paths (every str in a list) and other objects: pass texts as iter([...])")
    files = _files_to_count(inputs, settings.read) if is_path_list(inputs) else None
    if run.executor is not None:
        if files is None or not sample.is_all:
            raise ArgumentError(
                f"an executor counts whole files: pass paths, and leave out {param('max_documents')} and"
                f" {param('max_bytes')}"
            )
        if any(file.path == STDIN for file in files.singles):
            raise ArgumentError("an executor's workers cannot read standard input: pass a file that they can open")
    if folder is not None and files is not None:
        for file in (file for file in files.singles if file.size is None):
            what = "is a pipe or device" if file.remote is None else "is sent only as a whole"
            raise ArgumentError(f"checkpoint: {file.path} {what}, which cannot be recognized later: use a file")
    plan = corpus_plan(files or Corpus(), settings)
    process_memory(run.memory_limit, any(file.has_rows for file in plan.files.singles))
    total = sample.max_bytes if files is None or not sample.is_all else progress_total(files, settings.read.text_key)
    with ExitStack() as stack:
        with listed_records(settings.read) as records:
            counting = _Counting(plan, settings, run, total, records)
            if files is None:
                found = counting.of_all(_pieces_of_object(inputs, settings, sample), stack)
            elif folder is None:
                found = counting.of_all((item for _, items in counting.groups(sample) for item in items), stack)
            else:
                found = counting.with_checkpoint(counting.groups(sample), folder, stack)
        yield found


def _pieces_of_object(documents: Any, settings: CountSettings, sample: Sample) -> Iterator[Piece]:
    cut = settings.cutting.cut
    are_records, documents = records_first(documents)
    if are_records:
        if not sample.is_all:
            told = f"leave out {param('max_documents')} and {param('max_bytes')}, or pass texts"
            raise ArgumentError(f"records of an object cannot be sampled: {told}")
        return record_pieces(lines_of(documents, settings.read), settings.read)
    some = texts_of(documents) if sample.is_all else sample.texts(texts_of(documents), cut)
    return (text_piece(data) for text in some for data in data_pieces(utf8(text), cut))


def _files_to_count(inputs: Inputs, read: ReadOptions) -> Corpus:
    """Returns the files that paths name, or raises an error if one of them cannot be read."""
    try:
        return corpus_files(inputs, read)
    except FileMissingError as error:
        name = str(error).rpartition(": cannot be opened")[0]
        if re.search(r"\s", name) or not re.search(r"[./]", name):  # the user may have meant a text
            remedy = by_caller("pass iter([text])", "put it in a file, or pass it on standard input, as -")
            raise FileMissingError(f"{error} (if it is a text, not a path: {remedy})") from None
        raise


# ----------------------------------------------------------------------------------------------------
# Threads count pieces, an executor's workers count tasks
#
# With a checkpoint, a folder has a file of words per group of tasks, which is named as in task_results.py, and is
# complete or not there. So a run that was killed counts the groups that are missing, and one whose inputs have changed
# the groups that read these.

_TASKS_OF_GROUP = 16
_PIECES_OF_GROUP = 1 << 10  # of a sample, of 1 MiB each


class PieceTally(NamedTuple):
    """The facts about a piece, or about a worker's task, besides its words."""

    size: int  # the number of bytes
    doubt: str | None  # a warning about the encoding of a file, or None
    notes: Sequence[RecordNotes]  # the records


class _Counting:
    """Counts a corpus of `total` bytes, if known. `records` adds up its records."""

    def __init__(
        self, plan: Plan, settings: CountSettings, run: RunOptions, total: int | None, records: SkippedRecords
    ) -> None:
        self._plan, self._settings, self._run, self._total, self._records = plan, settings, run, total, records

    def groups(self, sample: Sample) -> Iterator[tuple[bytes, Iterable[Any]]]:
        """Yields the fingerprint of each group, and the pieces in it, or the tasks for workers. They depend only on the
        files and the settings."""
        plan, cut = self._plan, self._plan.cutting.cut
        if sample.is_all:
            tasks = plan.loose_tasks()
            while some := list(islice(tasks, _TASKS_OF_GROUP)):
                name, fixed = b"\n".join(task_fingerprint(task, _fingerprint) for task in some), map(plan.fixed, some)
                if self._run.executor is None:
                    yield name, (piece for task in fixed for piece in pieces_of(task, plan.kinds, cut))
                else:
                    yield name, map(anchored, fixed)
            return
        pieces, parts = sample.pieces(plan, cut), [*map(_fingerprint, plan.files.parts)]
        for number, first in enumerate(pieces):
            rest = islice(pieces, _PIECES_OF_GROUP - 1)
            yield repr((sample, number, parts)).encode("utf-8", "surrogateescape"), chain((first,), rest)
            deque(rest, 0)  # of a group that was not counted: the next one begins after it

    def of_all(self, items: Iterable[Any], stack: ExitStack) -> tuple[WordCounter, int]:
        """Returns a counter that has counted all pieces or tasks, and their size. The stack closes the counter."""
        counter = stack.enter_context(closing(self._counter(expected=self._total)))
        with Progress("counting", self._total, "B", self._run.progress) as bar:
            tallies = self._count(((counter, item) for item in items), bar, ordered=False)
            return counter, sum(tally.size for _, tally in tallies)

    def with_checkpoint(
        self, groups: Iterable[tuple[bytes, Iterable[Any]]], folder: str, stack: ExitStack
    ) -> tuple[WordCounter, int]:
        """Does what `of_all` does for groups. Files in a folder get the words of those that have none there yet."""
        folder = task_folder(folder, _settings_fingerprint(self._settings), keeps=True)
        remove_others(folder, "*.counts", ())  # the remains of a killed group
        sizes = dict[str, int]()  # of the text of a group, by the path of its file
        begun = deque[tuple[WordCounter, str]]()  # the groups that are being counted

        def missing() -> Iterator[tuple[WordCounter, Any]]:
            for name, items in groups:
                path = task_path(folder, name)
                if os.path.exists(path):
                    with Reader(path) as reader:
                        sizes[path] = reader.header["size"]
                    bar.add(sizes[path], earlier=True)
                    continue
                counter, sizes[path] = self._counter(Runs(folder)), 0
                begun.append((counter, path))
                yield from ((counter, item) for item in items)

        def end_first() -> None:
            counter, path = begun.popleft()
            counter.write(path, {"size": sizes[path]})

        with Progress("counting", self._total, "B", self._run.progress) as bar:
            for counter, tally in self._count(missing(), bar, ordered=True):
                while counter is not begun[0][0]:
                    end_first()
                sizes[begun[0][1]] += tally.size
            while begun:
                end_first()
            runs = Runs(folder, list(map(os.path.basename, sizes)))
            return stack.enter_context(closing(self._counter(runs))), sum(sizes.values())

    def _counter(self, runs: Runs | None = None, expected: int | None = None) -> WordCounter:
        workers = self._run.workers if self._run.executor is None else 1  # one thread adds the words of workers
        limit = self._run.memory_limit or default_limit()
        if limit is not None and any(file.has_rows for file in self._plan.files.singles):
            limit = max(word_counter.LEAST_MEMORY, limit - READER_BYTES)
        return WordCounter(self._settings, self._plan.kinds, self._plan.splits, workers, limit, runs, expected)

    def _count(
        self, work: Iterable[tuple[WordCounter, Any]], bar: Progress, ordered: bool
    ) -> Iterator[tuple[WordCounter, PieceTally]]:
        """Counts pieces or tasks, each with the counter that gets its words. Yields each counter when it has them, and
        the tally. The words of a worker's task need not wait for a longer task, unless `ordered`. Raises WorkerError:
        as in map_by_executor."""
        doubts = Doubts()
        done = self._by_thread(work, doubts) if self._run.executor is None else self._by_worker(work, ordered)
        for number, counter, tally in done:
            doubts.tell(tally.doubt)
            self._records.add_task(number, tally.notes)
            bar.add(tally.size)
            yield counter, tally

    def _by_thread(
        self, work: Iterable[tuple[WordCounter, Piece]], doubts: Doubts
    ) -> Iterator[tuple[int, WordCounter, PieceTally]]:
        def count(numbered: tuple[int, tuple[WordCounter, Piece]]) -> tuple[int, WordCounter, PieceTally]:
            number, (counter, piece) = numbered
            return number, counter, count_piece(counter, doubts, piece)

        return map_ordered(count, enumerate(work), self._run.workers)

    def _by_worker(
        self, work: Iterable[tuple[WordCounter, Task]], ordered: bool
    ) -> Iterator[tuple[int, WordCounter, PieceTally]]:
        from ..support.executors import map_by_executor

        counters = dict[int, WordCounter]()  # by the number of the task, since a worker has its own

        def tasks() -> Iterator[tuple[Task, int]]:
            for number, (counter, task) in enumerate(work):
                counters[number] = counter
                yield task, number

        call = partial(count_task, self._settings, self._plan.kinds, self._plan.splits)
        for (_, number), (tally, counts) in map_by_executor(call, tasks(), self._run, ordered):
            counter = counters.pop(number)
            run_interruptibly(counter.add_words, counts.words)
            yield number, counter, tally


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


def count_piece(counter: WordCounter, doubts: Doubts, piece: Piece) -> PieceTally:
    """Counts a piece with a counter."""
    doubt = piece.doubt(doubts.look) if piece.path else None
    counter.add(piece)
    return PieceTally(piece.size, doubt, [piece.notes] if piece.notes.end else [])


def count_task(
    settings: CountSettings, kinds: Kinds, shares: Sequence[float], numbered: tuple[Task, int]
) -> tuple[PieceTally, Counts]:
    """Counts a task in a worker."""
    counter, doubts = WordCounter(settings, kinds, shares, workers=1), Doubts()
    found = [count_piece(counter, doubts, piece) for piece in pieces_of(numbered[0], kinds, settings.cutting.cut)]
    doubt = next((each.doubt for each in found if each.doubt), None)
    tally = PieceTally(sum(each.size for each in found), doubt, [notes for each in found for notes in each.notes])
    return tally, Counts(counter.finish(), settings)
