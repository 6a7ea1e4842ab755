"""Counts the words of a corpus: with threads, or with an executor's workers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

from .. import _binding
from .._lazy import futures
from ..arguments import by_caller, instance, param, utf8
from ..errors import ArgumentError, FileMissingError, warn
from ..model import special_ids_of
from ..pattern import Digits, Pattern, PatternLike
from ..reading.bad_records import OrderedRecords, Seen, SkippedRecords, listed_records
from ..reading.documents import Kinds
from ..reading.files import corpus_files
from ..reading.options import ReadOptions, listed
from ..reading.paths import STDIN, Inputs, is_path_list
from ..reading.pieces import data_pieces
from ..reading.planning import Piece, Plan, anchored, pieces_of, text_piece
from ..reading.sample import Sample, flat_texts
from ..reading.small_files import Corpus
from ..reading.splits import SplitOptions
from ..reading.text_encoding import Doubts
from ..support.parallel import RunOptions, map_ordered, run_interruptibly
from ..support.progress import Progress
from .counts import Counts, header_of
from .saved_counting import Place, SavedCounting, turns
from .word_counter import CountSettings, MergingMemory, WordCounter, default_limit

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
        inputs, pattern, special_tokens, digits, normalizer, text_key, encoding, documents, on_error, skipped,
        max_documents, max_bytes, seed, memory_limit, progress: as in `pybpe.train`.
        workers: number of threads if there is no executor; None for all CPUs.
        executor: any concurrent.futures.Executor: a process pool, Dask's `Client.get_executor()`, or mpi4py's. Its
            workers must be able to open the files at the same paths. Each task counts 64 to 256 MiB of text (a
            compressed file is at most one task); this process adds the counts, within `memory_limit`.
        task_timeout: as in `pybpe.binarize`.

    Returns:
        The Counts. The result is the same for any number of workers and any executor.

    Raises:
        WorkerError: a process of the executor died, and the executor cannot continue.
        ArgumentError, FileError, FormatError: as in `pybpe.train`.
    """
    specials = tuple(special_ids_of(special_tokens))  # counts have no ids, so the ids of a mapping do not matter
    read = ReadOptions(text_key, encoding, documents, on_error, listed(skipped))
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
    saved: SavedCounting | None = None,
    merging: MergingMemory | None = None,
) -> Counts:
    """Does the work of `count_words`. Continues where an earlier run has saved its counts, if `inputs` are paths.
    Raises LimitError if the words are too many for merging."""
    with _counted(inputs, settings, sample, run, saved) as (counter, size):
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
    counting = _Counting(plan, settings, run, plan.files.known_size)
    with closing(counting.counter) as counter:
        counting.count(counting.items(), SkippedRecords())
        return Counts(counter.finish(), settings)


def corpus_plan(files: Corpus, settings: CountSettings) -> Plan:
    """Returns the plan of a corpus that is not split, in which special tokens are the only marks in text."""
    kinds = Kinds(replace(settings.read, documents="auto"))
    plan = Plan(files, kinds, SplitOptions((1,)), settings.cutting)
    plan.task_bytes = min(max(files.size // _TASKS, LEAST_TASK), MOST_TASK)
    return plan


@contextmanager
def _counted(
    inputs: Inputs, settings: CountSettings, sample: Sample, run: RunOptions, saved: SavedCounting | None = None
) -> Iterator[tuple[WordCounter, int]]:
    """Yields a counter that has counted the inputs, and their size in bytes."""
    if isinstance(inputs, (bytes, bytearray, memoryview)):
        raise ArgumentError("inputs is one bytes object: pass a path, or a list of texts, [text]")
    files = files_to_count(inputs, settings.read) if is_path_list(inputs) else None
    if files is None:
        _check_texts(inputs)
    if run.executor is not None:
        if files is None or not sample.is_all:
            raise ArgumentError(
                f"an executor counts whole files: pass paths, and leave out {param('max_documents')} and"
                f" {param('max_bytes')}"
            )
        if any(file.path == STDIN for file in files.singles):
            raise ArgumentError("an executor's workers cannot read standard input: pass a file that they can open")
    plan = corpus_plan(files or Corpus(), settings)
    cut = plan.cutting.cut
    total = sample.max_bytes if files is None or not sample.is_all else files.known_size
    counting = _Counting(plan, settings, run, total, saved)
    if files is None:
        each: Any = flat_texts(inputs)  # type: ignore[arg-type]
        texts = each if sample.is_all else sample.texts(each, cut)
        items = _placed(text_piece(data) for text in texts for data in data_pieces(utf8(text), cut))
    elif not sample.is_all:
        items = _placed(sample.pieces(plan, cut), first=counting.place.pieces)
    else:
        items = counting.items()
    with closing(counting.counter) as counter:
        with listed_records(settings.read) as records:
            counting.count(items, records)
        yield counter, counting.place.size


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
    """Raises ArgumentError for an object that is not an iterable of texts, or is probably passed by mistake."""
    instance("inputs", inputs, Iterable, "paths or an iterable of texts")
    if isinstance(inputs, Mapping):
        raise ArgumentError(
            f"inputs is a dictionary: pass word counts as {param('counts')}, or texts as iter(texts.values())"
        )
    if isinstance(inputs, (set, frozenset)):
        raise ArgumentError("inputs is a set: pass paths in a list, or texts as iter(...)")
    if isinstance(inputs, (list, tuple)) and any(isinstance(i, (str, os.PathLike)) for i in inputs):
        raise ArgumentError("inputs mixes paths (every str in a list) and other objects: pass texts as iter([...])")


# ----------------------------------------------------------------------------------------------------
# Threads count pieces, an executor's workers count tasks


class _Item(NamedTuple):
    """What is counted at once, and the place after it. Workers begin a task at its piece number `first`."""

    what: Any  # Piece | Task
    end: Place
    first: int = 0
    number: int = 0


def _placed(pieces: Iterable[Piece], task: int = 0, first: int = 0) -> Iterator[_Item]:
    """Yields the pieces of a task from number `first` on."""
    for number, piece in enumerate(islice(pieces, first, None), first):
        yield _Item(piece, Place(task, number + 1))


class Counted(NamedTuple):
    """What was counted."""

    size: int  # the number of bytes
    doubt: str | None  # a warning about the encoding of a file, or None
    seen: Sequence[Seen]  # the records
    counts: Counts | None = None  # the words, if a worker counted them


class _Counting:
    """Counts a corpus of `total` bytes, if known, and saves the counts from time to time. `counter` has the words, of
    the corpus up to `place`. `saved` is what an earlier run saved, or nothing yet; None saves nothing."""

    def __init__(
        self,
        plan: Plan,
        settings: CountSettings,
        run: RunOptions,
        total: int | None,
        saved: SavedCounting | None = None,
    ) -> None:
        self._plan, self._settings, self._run, self._saved, self._total = plan, settings, run, saved, total
        workers = run.workers if run.executor is None else 1  # one thread adds the words of an executor's workers
        runs = None if saved is None else saved.runs
        limit = run.memory_limit or default_limit()
        self.counter = WordCounter(settings, plan.kinds, plan.splits, workers, limit, runs, total)
        self.place = Place() if saved is None else saved.place
        self._doubts = Doubts()

    def items(self) -> Iterator[_Item]:
        """Yields the rest of the plan: pieces for threads, or tasks for workers."""
        cut, (done, first, _) = self._plan.cutting.cut, self.place
        for number, task in enumerate(islice(self._plan.tasks(), done, None), done):
            if self._run.executor is None:
                yield from _placed(pieces_of(task, self._plan.kinds, cut), number, first)
            else:
                yield _Item(anchored(task), Place(number + 1), first)
            first = 0

    def count(self, items: Iterator[_Item], records: SkippedRecords) -> None:
        """Counts items. `records` adds up their records."""
        ordered = OrderedRecords(records)
        count = self._by_threads if self._run.executor is None else self._by_workers
        numbered = (item._replace(number=number) for number, item in enumerate(items))
        with Progress("counting", self._total, "B", self._run.progress) as bar:
            bar.add(self.place.size)
            for turn in [numbered] if self._saved is None else turns(numbered):
                self._save()
                for item, found in count(turn):
                    self._doubts.tell(found.doubt)
                    ordered.add(item.number, found.seen)
                    if found.counts is not None:
                        run_interruptibly(self.counter.add_words, found.counts.words)
                    self.place = max(item.end, self.place)._replace(size=self.place.size + found.size)
                    bar.add(found.size)
        if self._saved is not None and self._saved.runs.names:
            self._save()  # the runs are merged next, and must be written anyway

    def _save(self) -> None:
        if self._saved is not None and self.place > self._saved.place:
            run_interruptibly(self.counter.spill)
            self._saved.save(self.place)

    def _by_threads(self, items: Iterator[_Item]) -> Iterator[tuple[_Item, Counted]]:
        return map_ordered(
            lambda item: (item, count_piece(self.counter, self._doubts, item.what)), items, self._run.workers
        )

    def _by_workers(self, items: Iterator[_Item]) -> Iterator[tuple[_Item, Counted]]:
        """Yields what workers count, in any order: the words of a task do not wait for a longer task. Raises
        WorkerError: as in map_by_executor."""
        from ..support.remote import map_by_executor

        call = partial(count_task, self._settings, self._plan.kinds, self._plan.splits)
        return map_by_executor(call, items, self._run, ordered=False)


def count_piece(counter: WordCounter, doubts: Doubts, piece: Piece) -> Counted:
    """Counts a piece with a counter."""
    doubt = piece.doubt(doubts.look) if piece.path else None
    counter.add(piece)
    return Counted(piece.size, doubt, [piece.seen] if piece.seen.end else [])


def count_task(settings: CountSettings, kinds: Kinds, shares: Sequence[float], item: _Item) -> Counted:
    """Counts a task in a worker."""
    counter, doubts = WordCounter(settings, kinds, shares, workers=1), Doubts()
    size, doubt, seen = 0, None, list[Seen]()
    for piece in islice(pieces_of(item.what, kinds, settings.cutting.cut), item.first, None):
        found = count_piece(counter, doubts, piece)
        size, doubt = size + found.size, doubt or found.doubt
        seen += found.seen
    return Counted(size, doubt, seen, Counts(counter.finish(), settings))
