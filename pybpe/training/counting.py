"""Counts the words of a corpus: with threads, or with an executor's workers."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from functools import partial
from itertools import islice
from typing import NamedTuple, TypeVar

from ..arguments import instance
from ..errors import ArgumentError, FileMissingError, FormatError, WorkerError
from ..model import special_ids_of
from ..pattern import Digits, Pattern
from ..reading.file_types import row_kind
from ..reading.files import corpus_files
from ..reading.input_file import InputFile, known_total
from ..reading.options import ReadOptions
from ..reading.paths import STDIN, Inputs, is_path_list
from ..reading.ranges import Range, Source
from ..reading.sample import Sample
from ..reading.text_encoding import Doubts
from ..support.parallel import run_interruptibly
from ..support.progress import Progress
from ..support.remote import Arrived, Workers
from ..support.run_options import RunOptions
from .counts import Counts, CountTable
from .word_counter import CountSettings, WordCounter

RANGE_BYTES = 1 << 26  # the number of bytes of text that one task of an executor counts
_PENDING = 64  # the number of tasks that wait or run at once; the result of each is a table in memory

Task = TypeVar("Task")


def count_words(
    inputs: Inputs,
    *,
    pattern: str = "gpt2",
    special_tokens: Sequence[str] = (),
    digits: Digits = None,
    normalizer: str | None = None,
    text_key: str = "text",
    encoding: str | None = None,
    max_documents: int | None = None,
    max_bytes: int | None = None,
    seed: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    memory_limit: int | None = None,
    progress: bool | None = None,
) -> Counts:
    """Counts the words of a corpus, to train on them later. This is the first half of `pybpe.train`.

    Args:
        inputs, pattern, special_tokens, digits, normalizer, text_key, encoding, max_documents, max_bytes,
        seed, memory_limit, progress: as in `pybpe.train`.
        workers: number of threads if there is no executor; None for all CPUs.
        executor: any concurrent.futures.Executor: a process pool, Dask's `Client.get_executor()`, or mpi4py's. Its
            workers must be able to open the files at the same paths. Each task counts a range of a file (64 MiB; a
            compressed file is one range).

    Returns:
        The Counts. The result is the same for any number of workers and any executor.

    Raises:
        WorkerError: a process of the executor died, and the executor cannot continue.
        ArgumentError, FileError, FormatError: as in `pybpe.train`.
    """
    specials = tuple(special_ids_of(special_tokens))  # counts have no ids, so the ids of a mapping do not matter
    settings = CountSettings(Pattern(pattern, digits), specials, normalizer, ReadOptions(text_key, encoding))
    run = RunOptions(workers, executor, memory_limit, progress)
    return count_inputs(inputs, settings, Sample(max_documents, max_bytes, seed), run)


def count_inputs(inputs: Inputs, settings: CountSettings, sample: Sample, run: RunOptions) -> Counts:
    """Does the work of `count_words`."""
    if isinstance(inputs, (bytes, bytearray, memoryview)):
        raise ArgumentError("inputs is one bytes object: pass a path, or a list of texts, [text]")
    files = files_to_count(inputs, settings.read) if is_path_list(inputs) else None
    if files is None:
        _check_texts(inputs)
    if run.executor is not None:
        return _count_files_by_executor(files, settings, sample, run)
    counter = WordCounter(settings, run.workers, run.memory_limit)
    try:
        if files is not None:
            counter.add_files(files, run.progress, sample)
        else:
            counter.add_texts(inputs, run.progress, sample)  # type: ignore[arg-type]
        return Counts(counter.finish(), settings)
    finally:
        counter.close()


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
        if row_kind(file.path) is not None:
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
    """

    counts: Counts
    size: int
    doubt: str | None = None


def _count_files_by_executor(
    files: Sequence[InputFile] | None, settings: CountSettings, sample: Sample, run: RunOptions
) -> Counts:
    assert run.executor is not None
    if files is None or not sample.is_all or run.memory_limit is not None:
        raise ArgumentError(
            "an executor counts whole files: pass paths, and leave out max_documents, max_bytes and memory_limit"
        )
    if any(file.path == STDIN for file in files):
        raise ArgumentError("an executor's workers cannot read standard input: pass a file that they can open")
    ranges = Source(settings.cutting).ranges(files, RANGE_BYTES)
    tasks = (part._replace(file=part.file.anchored()) for part in ranges)
    with Progress("counting", known_total(files), "B", run.progress) as bar:
        return count_by_executor(partial(count_range, settings), tasks, settings, run.executor, bar)


def count_range(settings: CountSettings, part: Range) -> Counted:
    """Runs one task in a worker."""
    counter = WordCounter(settings, 1)
    doubt = counter.add_range(part)
    return Counted(Counts(counter.finish(), settings), counter.bytes_seen, doubt)


def count_by_executor(
    count: Callable[[Task], Counted],
    tasks: Iterable[Task],
    settings: CountSettings,
    executor: Executor,
    bar: Progress,
    pending_tasks: int = _PENDING,
) -> Counts:
    """Returns the sum of count(task) for all tasks, which run on an executor's workers in any order.

    Args:
        settings: how the words are counted.
        bar: a progress bar, which advances by the size of each task.
        pending_tasks: the number of tasks that wait or run at once.

    Raises:
        WorkerError: a worker died, and the executor cannot continue; or a worker runs another pybpe.
    """
    table, doubts, workers = CountTable(settings), Doubts(), Workers(executor)
    left = iter(tasks)
    pending: set[Future[Arrived]] = set()
    try:
        while True:
            for task in islice(left, pending_tasks - len(pending)):
                pending.add(workers.submit(count, task))
            if not pending:
                return table.counts()
            for future in workers.first_done(pending):
                pending.discard(future)
                counts, size, doubt = workers.outcome(future)
                doubts.tell(doubt)
                run_interruptibly(table.add, counts)
                bar.add(size)
    except BrokenExecutor as error:
        raise WorkerError(f"a worker process died while counting: {error}") from None
    finally:
        for future in pending:
            future.cancel()
