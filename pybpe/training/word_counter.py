"""Counts words in pieces of text, with one table per thread, and with sorted runs on disk if memory is limited."""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, islice

from .. import _binding
from ..arguments import Text, utf8, whole_number
from ..formats import counts_file
from ..matching import Matching, matcher
from ..normalize import check_normalizer, normalize, with_space
from ..pattern import Pattern
from ..reading.input_file import InputFile, known_total
from ..reading.options import ReadOptions
from ..reading.pieces import Cutting, data_pieces
from ..reading.ranges import Piece, Range, Source
from ..reading.records import record_texts
from ..reading.sample import Sample, flat_texts
from ..reading.text_encoding import Doubts
from ..support.parallel import end_if_unwanted, map_ordered, run_interruptibly, worker_count
from ..support.progress import Progress

LEAST_MEMORY = 1 << 24
_OPEN_RUNS = 64  # the number of runs that are merged at once
_LARGE_TABLE = 1 << 17  # words, which take 6 MB
_GROWTH_MAX = 4.0  # the most by which an estimate may multiply the size of a table


@dataclass(frozen=True)
class CountSettings:
    """The settings that determine the word counts of a text.

    Attributes:
        pattern: splits texts into words.
        specials: strings that separate words and are not counted. In JSON records they are plain text.
        normalizer: None, "NFC" or "NFKC": applied before texts are split into words.
        read: how files are read.
        tables: Pattern.tables where the words were counted; empty means here. With other tables, a pattern may split a
            text with recently assigned characters differently.
        matching: text -> flags, for the special tokens that have any.
        prefix_space: as in Model.
    """

    pattern: Pattern
    specials: tuple[str, ...] = ()
    normalizer: str | None = None
    read: ReadOptions = ReadOptions()
    tables: str = ""
    matching: Mapping[str, Matching] = field(default_factory=dict)
    prefix_space: bool = False

    def __post_init__(self) -> None:
        check_normalizer(self.normalizer)

    @property
    def cutting(self) -> Cutting:
        """Finds where texts can be cut between two words."""
        return Cutting.of(self.pattern, self.specials, self.normalizer, self.matching, self.prefix_space)

    @property
    def changes_text(self) -> bool:
        """Whether texts change before they are split into words."""
        return self.normalizer is not None or self.prefix_space

    def prepared(self, text: _binding.Data) -> _binding.Data:
        """Returns a text without special tokens as the pattern sees it."""
        data = normalize(text, self.normalizer)
        return with_space(data) if self.prefix_space else data


class WordCounter:
    """Counts the words of texts with several threads, each with its own table.

    Args:
        settings: the settings that determine the counts.
        workers: number of threads; None for all CPUs.
        memory_limit: number of bytes that all tables together may take. When a thread's table exceeds its share, the
            thread sorts it and writes it to a temporary folder as a run; `finish` merges the runs. None: no limit.

    Attributes:
        bytes_seen: the number of bytes of text counted so far.
    """

    def __init__(self, settings: CountSettings, workers: int | None = None, memory_limit: int | None = None) -> None:
        if memory_limit is not None:
            whole_number("memory_limit, in bytes,", memory_limit, LEAST_MEMORY)
        self._settings = settings
        self._pattern = settings.pattern
        self._specials = matcher(settings.specials, settings.matching)
        self._cut = settings.cutting.cut
        self._workers = worker_count(workers)
        # Sorting a table takes about three times its memory, in Python objects.
        self._table_limit = None if memory_limit is None else memory_limit // 4 // self._workers
        self._runs: tempfile.TemporaryDirectory[str] | None = None
        self._run_names: list[str] = []
        self._total: _binding.Counter | None = None  # threads' tables are moved here when they become large
        self._total_lock = threading.Lock()
        self._total_room = 0  # the number of words for which the total has room
        self.doubts = Doubts()
        self._bytes: int | None = None  # of the whole input, if known
        self.bytes_seen = 0
        # Tables that no thread is using, with and without specials. pop and append are atomic, so no lock is needed.
        self._free: dict[bool, list[_binding.Counter]] = {True: [], False: []}
        if self._table_limit is not None:
            self._runs = tempfile.TemporaryDirectory(prefix="pybpe-")

    def add_files(
        self, files: Sequence[InputFile], progress: bool | None = False, sample: Sample | None = None
    ) -> None:
        """Counts files. Each file is a separate text."""
        source = Source(self._settings.cutting)
        if sample is None or sample.is_all:
            pieces = (piece for file in files for piece in source.pieces(Range(file)))
            self._add_pieces(pieces, known_total(files), progress)
        else:
            self._add_pieces(source.sample(files, sample), sample.max_bytes, progress)

    def add_range(self, part: Range) -> str | None:
        """Counts a part of a file, in this thread. Returns a warning about its encoding, or None."""
        first: str | None = None
        for size, doubt in map(self._looked_at, Source(self._settings.cutting).pieces(part)):
            self.bytes_seen += size
            first = first or doubt
        return first

    def add_texts(
        self,
        texts: Iterable[Text],
        progress: bool | None = False,
        sample: Sample | None = None,
        total: int | None = None,
    ) -> None:
        """Counts texts, or lists of texts. Each text is separate. `total` is roughly the number of their bytes, or
        None."""
        texts = flat_texts(texts)
        if sample is not None and not sample.is_all:
            texts = sample.texts(texts, self._cut)
        pieces = (Piece(p) for text in texts for p in data_pieces(utf8(text), self._cut))
        self._add_pieces(pieces, total, progress)

    def add_records(
        self, batches: Iterable[Sequence[bytes]], progress: bool | None = False, total: int | None = None
    ) -> None:
        """Counts batches of texts from records. Each text is separate, and special tokens in it are plain text. `total`
        is as in `add_texts`."""
        self._add_pieces((Piece(memoryview(b""), texts=batch) for batch in batches), total, progress)

    def _add_pieces(self, pieces: Iterator[Piece], total: int | None, progress: bool | None) -> None:
        self._bytes = None if total is None else self.bytes_seen + total
        with Progress("counting", total, "B", progress) as bar:
            for size, doubt in map_ordered(self._looked_at, pieces, self._workers):
                self.doubts.tell(doubt)
                self.bytes_seen += size
                bar.add(size)

    def _looked_at(self, piece: Piece) -> tuple[int, str | None]:
        """Counts a piece. Returns its size, and a warning if it comes from a file and is not UTF-8."""
        doubt = self.doubts.look(piece.data, piece.path, piece.offset) if piece.path and not piece.records else None
        return self._add(piece), doubt

    def _add(self, piece: Piece) -> int:
        has_records = piece.records or bool(piece.texts)
        ordinary = has_records or self._settings.changes_text  # _texts yields texts without specials
        free = self._free[not ordinary]
        specials = None if ordinary else self._specials
        try:
            counter = free.pop()
        except IndexError:
            counter = _binding.Counter(self._pattern.pretok, specials)
        for text in self._texts(piece):
            if self._pattern.pretok is None:
                for segment in ordinary_segments(memoryview(text), specials):
                    for words in word_lists(self._pattern, bytes(segment)):
                        counter.add_word_list(words)
            else:
                counter.add(text)
        if self._table_limit is not None and counter.stats.memory > self._table_limit:
            self._spill(counter)
        else:
            if counter.stats.words > _LARGE_TABLE and self._table_limit is None and self._pattern.pretok is not None:
                self._gather(counter)
            free.append(counter)
        return len(piece.data) + sum(map(len, piece.texts))

    def _gather(self, counter: _binding.Counter) -> None:
        """Moves the counts of a thread's table to the common table. So the thread's table stays small enough for the
        CPU's cache, and little is left to do at the end."""
        with self._total_lock:
            if self._total is None:
                self._total = _binding.Counter(self._pattern.pretok, None)
            words = self._total.stats.words + counter.stats.words
            if words > self._total_room:  # at most the room that the rest of the text needs at this rate
                rest = self._bytes / max(1, self.bytes_seen) if self._bytes is not None else 1.0
                self._total_room = int(words * min(max(rest, 1.0), _GROWTH_MAX))
                self._total.reserve(self._total_room)
            self._total.absorb(counter)

    def _texts(self, piece: Piece) -> Iterable[_binding.Data]:
        """Returns the texts of a piece, normalized. As in encoding, it finds special tokens first."""
        if not self._settings.changes_text and not piece.records:
            return piece.texts or (piece.data,)
        texts: Iterable[_binding.Data] = piece.texts or ordinary_segments(piece.data, self._specials)
        if piece.records:
            texts = record_texts(piece.data, self._settings.read.text_key, piece.path, piece.offset)
        return map(self._settings.prepared, texts)

    def _spill(self, counter: _binding.Counter) -> None:
        self._write_run(counts_file.sorted_entries(counter.export()))

    def _write_run(self, entries: Iterator[counts_file.Entry]) -> None:
        assert self._runs is not None
        handle, name = tempfile.mkstemp(".counts", dir=self._runs.name)
        os.close(handle)
        counts_file.write(name, {}, entries)
        self._run_names.append(name)

    def finish(self) -> _binding.Words:
        """Returns all words with their counts. Afterwards the counter is empty, and its temporary files are removed."""
        try:
            return run_interruptibly(self._merge_runs if self._run_names else self._merge_tables)
        finally:
            self.close()

    def close(self) -> None:
        """Removes temporary files."""
        if self._runs is not None:
            self._runs.cleanup()

    def _merge_tables(self) -> _binding.Words:
        tables = self._free[True] + self._free[False] + ([self._total] if self._total is not None else [])
        if not tables:
            return _binding.Words.from_dict({})
        self._free, self._total = {True: [], False: []}, None
        total = tables.pop()
        while tables:
            total.absorb(tables.pop())
        return total.export()

    def _merge_runs(self) -> _binding.Words:
        for tables in self._free.values():
            while tables:
                self._spill(tables.pop())
        while len(self._run_names) > _OPEN_RUNS:
            some, self._run_names = self._run_names[:_OPEN_RUNS], self._run_names[_OPEN_RUNS:]
            with ExitStack() as stack:
                self._write_run(counts_file.merged(_run_entries(some, stack)))
            for name in some:
                os.unlink(name)
        with ExitStack() as stack:
            return counts_file.words_of(counts_file.merged(_run_entries(self._run_names, stack)))


def _run_entries(names: Iterable[str], stack: ExitStack) -> list[Iterator[counts_file.Entry]]:
    return [stack.enter_context(counts_file.Reader(name)).entries() for name in names]


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
