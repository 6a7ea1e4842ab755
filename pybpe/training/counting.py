"""Counts the words of a corpus: with threads, or with an executor's workers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from .. import _binding
from ..arguments import instance
from ..errors import ArgumentError, FileMissingError, FormatError, WorkerError
from ..model import special_ids_of
from ..pattern import Digits, Pattern, PatternLike
from ..reading.bad_records import OrderedRecords, Seen, SkippedRecords, listed_records
from ..reading.files import corpus_files
from ..reading.input_file import InputFile, known_total
from ..reading.options import ReadOptions, listed
from ..reading.paths import STDIN, Inputs, is_path_list
from ..reading.ranges import Range, Source
from ..reading.sample import Sample
from ..reading.text_encoding import Doubts
from ..support.parallel import run_interruptibly
from ..support.progress import Progress
from ..support.remote import Arrived, Workers
from ..support.run_options import RunOptions
from . import shared_counts
from .counts import Counts, CountTable, header_of
from .saved_counting import Place, PlacedRange, SavedCounting, file_ranges, turns
from .word_counter import CountSettings, WordCounter

RANGE_BYTES = 1 << 26  # the number of bytes of text that one task of an executor counts
_PENDING = 64  # the number of tasks that wait or run at once; the result of each is a table in memory

Task = TypeVar("Task")


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
    executor: Executor | None = None,
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
            workers must be able to open the files at the same paths. Each task counts a range of a file (64 MiB; a
            compressed file is one range).
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
    return count_inputs(inputs, settings, Sample(max_documents, max_bytes, seed), run)


def count_inputs(
    inputs: Inputs, settings: CountSettings, sample: Sample, run: RunOptions, saved: SavedCounting | None = None
) -> Counts:
    """Does the work of `count_words`. Continues where an earlier run has saved its counts, if `inputs` are paths."""
    files = _checked(inputs, settings)
    if run.executor is not None:
        return _count_files_by_executor(files, settings, (sample, run), saved)
    with _counted(inputs, files, settings, (sample, run), saved) as counter:
        return Counts(counter.finish(), settings)


def count_to_file(
    inputs: Inputs, settings: CountSettings, sample: Sample, run: RunOptions, path: _binding.PathLike
) -> int:
    """Writes the counts that `count_inputs` returns to a .counts file, atomically. Returns the number of words, which
    need not fit into memory if there is a memory limit, or an executor. The memory limit is for each of its workers."""
    files = _checked(inputs, settings)
    if run.executor is not None:
        return _count_to_file_by_workers(files, settings, (sample, run), path)
    with _counted(inputs, files, settings, (sample, run)) as counter:
        return counter.write(path, header_of(settings))


@contextmanager
def _counted(
    inputs: Inputs,
    files: Sequence[InputFile] | None,
    settings: CountSettings,
    how: tuple[Sample, RunOptions],
    saved: SavedCounting | None = None,
) -> Iterator[WordCounter]:
    """Yields a counter that has counted the inputs."""
    sample, run = how
    with ExitStack() as stack:
        with listed_records(settings.read) as records:
            counter = WordCounter(settings, run.workers, run.memory_limit, saved, records)
            stack.callback(counter.close)
            if files is not None:
                counter.add_files(files, run.progress, sample)
            else:
                counter.add_texts(inputs, run.progress, sample)  # type: ignore[arg-type]
        yield counter


def _checked(inputs: Inputs, settings: CountSettings) -> list[InputFile] | None:
    """Returns the files to count, or None if the inputs are texts. Raises an error if they cannot be counted."""
    if isinstance(inputs, (bytes, bytearray, memoryview)):
        raise ArgumentError("inputs is one bytes object: pass a path, or a list of texts, [text]")
    files = files_to_count(inputs, settings.read) if is_path_list(inputs) else None
    if files is None:
        _check_texts(inputs)
    return files


def files_to_count(inputs: Inputs, read: ReadOptions) -> list[InputFile]:
    """Returns the files that paths name, or raises an error if one of them cannot be counted."""
    try:
        files = corpus_files(inputs, read)
    except FileMissingError as error:
        name = str(error).rpartition(": cannot be opened")[0]
        if re.search(r"\s", name) or not re.search(r"[./]", name):  # the user may have meant a text
            raise FileMissingError(f"{error} (if it is a text, not a path: in Python, pass iter([text]))") from None
        raise
    for file in files:
        if file.has_rows:
            raise FormatError(
                f"{file.path}: pybpe counts only text and JSON lines; `pybpe prepare` reads parquet and Arrow"
            )
    return files


def _check_texts(inputs: object) -> None:
    """Raises ArgumentError for an object that is not an iterable of texts, or is probably passed by mistake."""
    instance("inputs", inputs, Iterable, "paths or an iterable of texts")
    if isinstance(inputs, Mapping):
        raise ArgumentError("inputs is a dictionary: pass word counts as counts=, or texts as iter(texts.values())")
    if isinstance(inputs, (set, frozenset)):
        raise ArgumentError("inputs is a set: pass paths in a list, or texts as iter(...)")
    if isinstance(inputs, (list, tuple)) and any(isinstance(i, (str, os.PathLike)) for i in inputs):
        raise ArgumentError("inputs mixes paths (every str in a list) and other objects: pass texts as iter([...])")


# ----------------------------------------------------------------------------------------------------
# Executors


class Counted(NamedTuple):
    """The result of one task.

    Attributes:
        counts: the words and their counts.
        size: the number of bytes of text.
        doubt: a warning about the encoding of the task's file, or None.
        seen: the records of the task's pieces.
    """

    counts: Counts
    size: int
    doubt: str | None = None
    seen: Sequence[Seen] = ()


def _count_files_by_executor(
    files: Sequence[InputFile] | None,
    settings: CountSettings,
    how: tuple[Sample, RunOptions],
    saved: SavedCounting | None,
) -> Counts:
    sample, run = how
    assert run.executor is not None
    if run.memory_limit is not None:
        raise ArgumentError("an executor's counts arrive in this process: leave out memory_limit")
    files = _whole_files(files, sample)
    workers = Workers.of(run)
    start, table = Place() if saved is None else saved.place, CountTable(settings, saved)
    ranges = file_ranges(Source(settings.cutting), files, RANGE_BYTES, start)
    with Progress("counting", known_total(files), "B", run.progress) as bar, listed_records(settings.read) as records:
        bar.add(start.size)
        place: Place | None = None
        for turn in turns(ranges, saved):
            if place is not None:
                run_interruptibly(table.save, place)
            given: list[Place] = []
            tasks = _anchored(turn, given)
            count_by_executor(partial(count_range, settings), tasks, table, workers, bar, records=records)
            place = given[-1]
        if saved is not None and saved.runs.names and place is not None:
            run_interruptibly(table.save, place)
    return run_interruptibly(table.counts)


def _whole_files(files: Sequence[InputFile] | None, sample: Sample) -> Sequence[InputFile]:
    """Returns the files, or raises ArgumentError if an executor's workers cannot count them."""
    if files is None or not sample.is_all:
        raise ArgumentError("an executor counts whole files: pass paths, and leave out max_documents and max_bytes")
    if any(file.path == STDIN for file in files):
        raise ArgumentError("an executor's workers cannot read standard input: pass a file that they can open")
    return files


def _count_to_file_by_workers(
    files: Sequence[InputFile] | None,
    settings: CountSettings,
    how: tuple[Sample, RunOptions],
    path: _binding.PathLike,
) -> int:
    sample, run = how
    assert run.executor is not None
    files, workers = _whole_files(files, sample), Workers.of(run)
    ranges = Source(settings.cutting).ranges(files, shared_counts.range_bytes(files))
    tasks = (part._replace(file=part.file.anchored()) for part in ranges)
    with shared_counts.shared_folder(path) as folder:
        bar = Progress("counting", known_total(files), "B", run.progress)
        with bar, listed_records(settings.read) as records:
            how_counted = (workers, run.memory_limit)
            runs = shared_counts.count_by_workers(settings, tasks, folder, how_counted, (bar, records))
        merged, words = shared_counts.merge_by_workers(runs, header_of(settings), folder, workers)
        shared_counts.publish(merged, path)
        return words


def _anchored(ranges: Iterable[PlacedRange], given: list[Place]) -> Iterator[Range]:
    """Yields ranges for workers with other current folders. Sets `given` to the place after the last of them."""
    for part, end in ranges:
        given[:] = [end]
        yield part._replace(file=part.file.anchored())


def count_range(settings: CountSettings, part: Range) -> Counted:
    """Runs one task in a worker."""
    counter = WordCounter(settings, 1)
    doubt, seen = counter.add_range(part)
    return Counted(Counts(counter.finish(), settings), counter.bytes_seen, doubt, seen)


def count_by_executor(
    count: Callable[[Task], Counted],
    tasks: Iterable[Task],
    table: CountTable,
    workers: Workers,
    bar: Progress,
    pending_tasks: int = _PENDING,
    records: SkippedRecords | None = None,
) -> None:
    """Adds count(task) to a table for all tasks, which run on an executor's workers in any order.

    Args:
        table: gets the counts.
        workers: those of the executor.
        bar: a progress bar, which advances by the size of each task.
        pending_tasks: the number of tasks that wait or run at once.
        records: adds up the records of all tasks.

    Raises:
        WorkerError: a worker died, and the executor cannot continue; or a worker runs another pybpe.
    """
    doubts = Doubts()
    ordered = OrderedRecords(records or SkippedRecords())
    left = enumerate(tasks)
    pending: dict[Future[Arrived], int] = {}
    try:
        while True:
            for number, task in islice(left, pending_tasks - len(pending)):
                pending[workers.submit(count, task)] = number
            if not pending:
                return
            for future in workers.first_done(pending):
                number = pending.pop(future)
                counts, size, doubt, seen = workers.outcome(future)
                doubts.tell(doubt)
                ordered.add(number, seen)
                run_interruptibly(table.add, counts)
                bar.add(size)
    except BrokenExecutor as error:
        raise WorkerError(f"a worker process died while counting: {error}") from None
    finally:
        for future in pending:
            future.cancel()
