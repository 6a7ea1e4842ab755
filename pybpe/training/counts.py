"""Word counts as objects and files, made on this machine or on many."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future
from dataclasses import replace
from typing import Any

from .. import _binding
from ..arguments import Text, instance, shown, utf8, whole_number
from ..errors import ArgumentError, FileMissingError, FormatError, WorkerError
from ..formats import counts_file
from ..model import check_specials, special_ids_of
from ..pattern import Pattern
from ..reading.files import corpus_files
from ..reading.input_file import InputFile, known_total
from ..reading.paths import STDIN, Inputs, is_path_list
from ..reading.ranges import Range
from ..reading.sample import Sample
from ..reading.text_encoding import Doubts
from ..support.parallel import run_interruptibly
from ..support.progress import Progress
from ..support.remote import Arrived, Workers
from .word_counter import CountSettings, WordCounter

RANGE_BYTES = 1 << 26  # how much text one task of an executor counts
_PENDING = 64  # tasks that are waiting or running at once; their results are tables


class Counts:
    """Words with their counts, and the settings they were made with. Immutable.

    `a + b` adds two of them. `save` and `load` write and read files (pybpe/formats/counts_file.py).
    """

    def __init__(self, words: _binding.Words, settings: CountSettings) -> None:
        self.words = words
        self.settings = settings

    @classmethod
    def from_dict(
        cls, counts: Mapping[Text, int], *, pattern: str = "gpt2", special_tokens: Sequence[str] = ()
    ) -> Counts:
        """Makes Counts from words that were counted elsewhere, with this pattern, and without these special tokens."""
        instance("counts", counts, Mapping, "a Counts, or a dictionary word -> count")
        words: dict[bytes, int] = {}
        for word, count in counts.items():
            data = bytes(utf8(word))
            words[data] = words.get(data, 0) + whole_number(f"the count of {shown(word)}", count, 0, (1 << 64) - 1)
        settings = CountSettings(Pattern(pattern), tuple(special_ids_of(special_tokens)))
        return cls(_binding.Words.from_dict(words), settings)

    def __len__(self) -> int:
        return len(self.words)

    def to_dict(self) -> dict[bytes, int]:
        """Returns a dictionary word -> count."""
        return self.words.to_dict()

    def __add__(self, other: object) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts.merge([self, other])

    @classmethod
    def merge(cls, counts: Iterable[Counts]) -> Counts:
        """Returns the sum of any number of Counts.

        Raises:
            ArgumentError: there are none, or they were made with different patterns, special tokens or normalizers.
        """
        counts = iter(counts)
        first = next(counts, None)
        if first is None:
            raise ArgumentError("there are no counts to merge")
        instance("counts", first, Counts, "made by count_words")
        table = _Table(first.settings)
        table.add(first)
        for more in counts:
            table.add(more)
        return table.counts()

    def save(self, path: _binding.PathLike) -> None:
        """Writes a .counts file, atomically. Equal counts give equal bytes."""
        counts_file.write(path, _header(self.settings), counts_file.sorted_entries(self.words))

    @classmethod
    def load(cls, path: _binding.PathLike) -> Counts:
        """Reads a .counts file.

        Raises:
            FileError: it cannot be read. FormatError: it is not a .counts file, or is damaged.
        """
        with counts_file.Reader(path) as reader:
            settings = settings_of_header(reader.header, path)
            table = _Table(settings)
            for blob, lengths, counts in reader.blocks():
                table.add_words(_binding.Words.from_parts(blob, lengths, counts))
            reader.check_end()
        return table.counts()

    def fingerprint(self) -> str:
        """Returns a SHA-256, in hex, of the words, the counts and the settings."""
        digest = hashlib.sha256()
        for part in counts_file.parts(_header(self.settings), counts_file.sorted_entries(self.words)):
            digest.update(part)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return _comparable(self.settings) == _comparable(other.settings) and self.to_dict() == other.to_dict()

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickled, (*self.words.to_parts(), self.settings)

    def __repr__(self) -> str:
        return f"Counts({len(self)} words, pattern={self.settings.pattern.name or 'custom'!r})"


def _unpickled(blob: bytes, lengths: Any, counts: Any, settings: CountSettings) -> Counts:
    return Counts(_binding.Words.from_parts(blob, lengths, counts), settings)


def _comparable(settings: CountSettings) -> CountSettings:
    """Returns settings that can be compared: the key of a text in its record has no influence on its words."""
    return replace(settings, specials=tuple(sorted(settings.specials)), text_key="", encoding=None)


def _header(settings: CountSettings) -> dict[str, object]:
    return {
        "pattern": settings.pattern.regex,
        "special_tokens": sorted(settings.specials),
        "normalizer": settings.normalizer,
    }


def settings_of_header(header: Mapping[str, Any], path: _binding.PathLike) -> CountSettings:
    """Returns the settings that a .counts file was made with."""
    try:
        pattern = Pattern(header["pattern"])
        return CountSettings(pattern, tuple(check_specials(header["special_tokens"])), header["normalizer"])
    except (ArgumentError, KeyError, TypeError) as error:
        raise FormatError(f"{_binding.path_bytes(path).decode()}: the header is invalid: {error}", 16) from None


class _Table:
    """A sum to which counts are added."""

    def __init__(self, settings: CountSettings) -> None:
        self._settings = settings
        self._counter = _binding.Counter(None, None)

    def add(self, counts: Counts) -> None:
        instance("counts", counts, Counts, "made by count_words")
        if _comparable(counts.settings) != _comparable(self._settings):
            raise ArgumentError("counts with different patterns, special tokens or normalizers cannot be added")
        self.add_words(counts.words)

    def add_words(self, words: _binding.Words) -> None:
        self._counter.add_words(words)

    def counts(self) -> Counts:
        return Counts(self._counter.export(), self._settings)


# ----------------------------------------------------------------------------------------------------
# Counting


def count_words(
    inputs: Inputs,
    *,
    pattern: str = "gpt2",
    special_tokens: Sequence[str] = (),
    digits: int | None = None,
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
        executor: any concurrent.futures.Executor: a process pool, Dask's `Client.get_executor()`, or
            mpi4py's. Its workers must see the files under the same names. Each task counts a range of a file
            (64 MiB; a compressed file is one range).

    Returns:
        The Counts. They are the same for any number of workers and any executor.

    Raises:
        WorkerError: a process of the executor died, and the executor cannot continue.
        ArgumentError, FileError, FormatError: as in `pybpe.train`.
    """
    specials = tuple(special_ids_of(special_tokens))  # counts have no ids, so those of a mapping are ignored
    settings = CountSettings(Pattern(pattern, digits), specials, normalizer, text_key, encoding)
    sample = Sample(max_documents, max_bytes, seed).checked()
    return count_inputs(inputs, settings, sample, workers, executor, memory_limit, progress)


def count_inputs(
    inputs: Inputs,
    settings: CountSettings,
    sample: Sample,
    workers: int | None,
    executor: Executor | None,
    memory_limit: int | None,
    progress: bool | None,
) -> Counts:
    """Does the work of `count_words`, with checked settings."""
    if isinstance(inputs, (bytes, bytearray, memoryview)):
        raise ArgumentError("inputs is one bytes object: pass a path, or a list of texts, [text]")
    files = _files_to_count(inputs, settings.encoding) if is_path_list(inputs) else None
    for file in files or ():
        if file.path.endswith(".parquet"):
            raise FormatError(f"{file.path}: only text and JSON lines can be counted; `pybpe prepare` reads parquet")
    if files is None:
        instance("inputs", inputs, Iterable, "paths or an iterable of texts")
        if isinstance(inputs, Mapping):
            raise ArgumentError("inputs is a dictionary: pass word counts as counts=, or texts as iter(texts.values())")
        if isinstance(inputs, (set, frozenset)):
            raise ArgumentError("inputs is a set: pass paths in a list, or texts as iter(...)")
        if isinstance(inputs, (list, tuple)) and any(isinstance(i, (str, os.PathLike)) for i in inputs):
            raise ArgumentError("inputs mixes paths (every str in a list) and other objects: pass texts as iter([...])")
    if executor is not None:
        if files is None or not sample.is_all or memory_limit is not None:
            raise ArgumentError(
                "an executor counts whole files: it takes no texts, max_documents, max_bytes or memory_limit"
            )
        if any(file.path == STDIN for file in files):
            raise ArgumentError("an executor's workers open the files themselves, so they cannot read standard input")
        return _count_by_executor(files, settings, executor, progress)
    counter = WordCounter(settings, workers, memory_limit)
    try:
        if files is not None:
            counter.add_files(files, progress, sample)
        else:
            counter.add_texts(inputs, progress, sample)  # type: ignore[arg-type]
        return Counts(counter.finish(), settings)
    finally:
        counter.close()


def _files_to_count(inputs: Inputs, encoding: str | None) -> list[InputFile]:
    try:
        return corpus_files(inputs, encoding)
    except FileMissingError as error:
        name = str(error).rpartition(": cannot be opened")[0]
        if re.search(r"\s", name) or not re.search(r"[./]", name):  # the user may have meant a text
            raise FileMissingError(f"{error} (if it is a text, not a path: in Python, pass iter([text]))") from None
        raise


def _count_by_executor(
    files: Sequence[InputFile], settings: CountSettings, executor: Executor, progress: bool | None
) -> Counts:
    table, doubts = _Table(settings), Doubts()
    workers = Workers(executor)
    with Progress("counting", known_total(files), "B", progress) as bar:
        tasks = iter(list(WordCounter(settings, 1).source.ranges(files, RANGE_BYTES)))
        pending: dict[Future[Arrived], Range] = {}
        try:
            while True:
                while len(pending) < _PENDING and (task := next(tasks, None)) is not None:
                    anchored = task._replace(file=task.file.anchored())
                    pending[workers.submit(count_range, anchored, settings)] = task
                if not pending:
                    return table.counts()
                for future in workers.first_done(pending):
                    task = pending.pop(future)
                    counts, doubt = workers.outcome(future)
                    doubts.tell(doubt)
                    run_interruptibly(table.add, counts)
                    bar.add((task.end - task.start) if task.end is not None else task.file.size or 0)
        except BrokenExecutor as error:
            raise WorkerError(f"a worker process died while counting: {error}") from None
        finally:
            for future in pending:
                future.cancel()


def count_range(part: Range, settings: CountSettings) -> tuple[Counts, str | None]:
    """Runs one task of an executor. Returns the counts, and a warning about the file's encoding, or None."""
    counter = WordCounter(settings, 1)
    doubt = counter.add_range(part)
    return Counts(counter.finish(), settings), doubt
