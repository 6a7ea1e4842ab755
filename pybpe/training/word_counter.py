"""Counts words in pieces of text, with one table per thread, and with sorted runs on disk if memory is limited."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from .. import _binding
from ..arguments import Text, utf8, whole_number
from ..formats import counts_file
from ..matching import Matching, matcher
from ..normalize import check_normalizer, normalize, with_space
from ..pattern import Pattern
from ..reading.bad_records import Seen, SkippedRecords
from ..reading.division import dividers, note_records
from ..reading.input_file import InputFile, known_total
from ..reading.options import ReadOptions
from ..reading.pieces import Cutting, data_pieces
from ..reading.ranges import Piece, Range, Source
from ..reading.records import record_texts
from ..reading.sample import Sample, flat_texts
from ..reading.text_encoding import Doubts
from ..support.parallel import end_if_unwanted, map_ordered, run_interruptibly, worker_count
from ..support.progress import Progress
from .runs import Runs
from .saved_counting import Place, PlacedPiece, SavedCounting, file_pieces, sample_pieces, turns

LEAST_MEMORY = 1 << 24
_FULL = 0.85  # the share of its room at which a table counts as full: the words of a piece must fit too
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
        memory_limit: number of bytes that all tables together may take. When a thread's table has used its share, the
            thread sorts it and writes it to a temporary folder as a run; `finish` merges the runs. None: no limit.
        saved: what an earlier run saved, or nothing yet. `add_files` continues there, and saves from time to time.

        records: adds up the records; None if the caller does that.

    Attributes:
        bytes_seen: the number of bytes of text counted so far, also by the earlier run.
    """

    def __init__(
        self,
        settings: CountSettings,
        workers: int | None = None,
        memory_limit: int | None = None,
        saved: SavedCounting | None = None,
        records: SkippedRecords | None = None,
    ) -> None:
        if memory_limit is not None:
            whole_number("memory_limit, in bytes,", memory_limit, LEAST_MEMORY)
        self._settings = settings
        self._pattern = settings.pattern
        self._specials = matcher(settings.specials, settings.matching)
        self._cut = settings.cutting.cut
        self._workers = worker_count(workers)
        # Sorting a table takes about as much memory as the table.
        self._table_limit = None if memory_limit is None else memory_limit // 2 // self._workers
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._saved = saved
        self._runs: Runs | None = None if saved is None else saved.runs
        self._total: _binding.Counter | None = None  # threads' tables are moved here when they become large
        self._total_lock = threading.Lock()
        self._total_room = 0  # the number of words for which the total has room
        self.doubts = Doubts()
        self._records = records or SkippedRecords()
        self._bytes: int | None = None  # of the whole input, if known
        self.bytes_seen = 0 if saved is None else saved.place.size
        # Tables that no thread is using, with and without specials. pop and append are atomic, so no lock is needed.
        self._free: dict[bool, list[_binding.Counter]] = {True: [], False: []}
        if self._table_limit is not None and self._runs is None:
            self._folder = tempfile.TemporaryDirectory(prefix="pybpe-")
            self._runs = Runs(self._folder.name)

    def add_files(
        self, files: Sequence[InputFile], progress: bool | None = False, sample: Sample | None = None
    ) -> None:
        """Counts files. Each file is a separate text."""
        source, start = Source(self._settings.cutting), Place() if self._saved is None else self._saved.place
        if sample is None or sample.is_all:
            self._add_placed(file_pieces(source, files, start), known_total(files), progress, start.size)
        else:
            self._add_placed(sample_pieces(source, files, sample, start), sample.max_bytes, progress, start.size)

    def add_range(self, part: Range) -> tuple[str | None, list[Seen]]:
        """Counts a part of a file, in this thread. Returns a warning about its encoding, or None, and its records."""
        first, records = None, list[Seen]()
        for piece in Source(self._settings.cutting).pieces(part):
            size, doubt, seen, _ = self._looked_at(PlacedPiece(piece))
            self.bytes_seen += size
            first = first or doubt
            records += [] if seen is None else [seen]
        return first, records

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
        self._add_placed(map(PlacedPiece, pieces), total, progress)

    def _add_placed(
        self, pieces: Iterator[PlacedPiece], total: int | None, progress: bool | None, done: int = 0
    ) -> None:
        """Counts pieces, after `done` of the `total` bytes have been counted."""
        self._bytes = None if total is None else self.bytes_seen - done + total
        place: Place | None = None
        with Progress("counting", total, "B", progress) as bar:
            bar.add(done)
            for turn in turns(pieces, self._saved):
                if place is not None:
                    run_interruptibly(self._save, place)
                for size, doubt, seen, end in map_ordered(self._looked_at, turn, self._workers):
                    place = end
                    self.doubts.tell(doubt)
                    if seen is not None:
                        self._records.add(seen)
                        self._records.check()
                    self.bytes_seen += size
                    bar.add(size)
        if self._saved is not None and self._saved.runs.names and place is not None:
            run_interruptibly(self._save, place)  # the runs are merged next, and must be written anyway

    def _save(self, place: Place) -> None:
        """Writes all words as runs, and saves that these have all words before a place."""
        assert self._saved is not None
        self._spill_all()
        self._saved.save(place)

    def _looked_at(self, placed: PlacedPiece) -> tuple[int, str | None, Seen | None, Place]:
        """Counts a piece. Returns its size; a warning if it comes from a file and is not UTF-8; its records, if it
        consists of JSON lines; and its end."""
        piece = placed.piece
        doubt = self.doubts.look(piece.data, piece.path, piece.offset) if piece.path and not piece.records else None
        seen = Seen(piece.path, piece.offset, self._settings.read.skips) if piece.records else None
        return self._add(piece, seen), doubt, seen, placed.end

    def _add(self, piece: Piece, seen: Seen | None) -> int:
        has_records = piece.records or bool(piece.texts)
        ordinary = has_records or self._settings.changes_text  # _texts yields texts without specials
        free = self._free[not ordinary]
        specials = None if ordinary else self._specials
        try:
            counter = free.pop()
        except IndexError:
            counter = _binding.Counter(self._pattern.pretok, specials)
        if self._pattern.pretok is None or not self._add_at_once(piece, counter, seen):
            self._add_one_by_one(piece, counter, specials, seen)
        if self._is_full(counter):
            self._spill(counter)
        else:
            if counter.stats.words > _LARGE_TABLE and self._table_limit is None and self._pattern.pretok is not None:
                self._gather(counter)
            free.append(counter)
        return len(piece.data) + sum(map(len, piece.texts))

    def _is_full(self, counter: _binding.Counter) -> bool:
        """Returns whether a table must be written to disk, because it or its next size exceeds the limit."""
        if self._table_limit is None:
            return False
        stats = counter.stats
        next_size = stats.memory if stats.words < _FULL * stats.room else 2 * stats.memory
        return bool(next_size > self._table_limit)

    def _add_at_once(self, piece: Piece, counter: _binding.Counter, seen: Seen | None) -> bool:
        """Counts the texts of records with one call. Returns False if they must be counted one by one."""
        if self._settings.changes_text or not (piece.records or piece.texts):
            return False
        if piece.texts:
            counter.add_text_list(piece.texts)
            return True
        with dividers(b"", None, self._settings.read.text_key, (1.0,)).take() as divider:
            if not divider.divide("jsonl", piece.data):
                return False
            counter.add_documents(divider.documents(0))
            if seen is not None:
                note_records(seen, piece.data, divider)
            return True

    def _add_one_by_one(
        self, piece: Piece, counter: _binding.Counter, specials: _binding.Specials | None, seen: Seen | None
    ) -> None:
        for text in self._texts(piece, seen):
            if self._pattern.pretok is None:
                for segment in ordinary_segments(memoryview(text), specials):
                    for words in word_lists(self._pattern, bytes(segment)):
                        counter.add_word_list(words)
            else:
                counter.add(text)

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

    def _texts(self, piece: Piece, seen: Seen | None) -> Iterable[_binding.Data]:
        """Returns the texts of a piece, normalized. As in encoding, it finds special tokens first."""
        if not self._settings.changes_text and not piece.records:
            return piece.texts or (piece.data,)
        texts: Iterable[_binding.Data] = piece.texts or ordinary_segments(piece.data, self._specials)
        if seen is not None:
            texts = record_texts(piece.data, self._settings.read.text_key, seen)
        return map(self._settings.prepared, texts)

    def _spill(self, counter: _binding.Counter) -> None:
        """Writes the words of a table as a run."""
        assert self._runs is not None
        words = counter.export()
        counter.clear()
        self._runs.add(words)

    def finish(self) -> _binding.Words:
        """Returns all words with their counts. Afterwards the counter is empty, and its temporary files are removed."""
        try:
            return run_interruptibly(self._finish)
        finally:
            self.close()

    def _finish(self) -> _binding.Words:
        if self._runs is None or not self._runs.names:
            return self._merge_tables()
        return _binding.Words.from_blocks(self._sorted())

    def write(self, path: _binding.PathLike, header: Mapping[str, object]) -> int:
        """Writes all words to a .counts file, atomically, and returns their number. With a memory limit, they need not
        fit into memory. Afterwards the counter is as after `finish`."""
        try:
            return run_interruptibly(self._write, path, header, patience=1.0)
        finally:
            self.close()

    def _write(self, path: _binding.PathLike, header: Mapping[str, object]) -> int:
        if self._runs is None or not self._runs.names:
            blocks = counts_file.sorted_blocks(self._merge_tables())
        else:
            blocks = self._sorted()
        return counts_file.write(path, header, _while_wanted(blocks))

    def _sorted(self) -> Iterator[_binding.WordBlock]:
        """Writes all tables as runs, and yields the words of all runs."""
        assert self._runs is not None
        self._spill_all()
        yield from self._runs.merged()

    def _spill_all(self) -> None:
        """Writes all tables as runs: as one run, unless they could be too large together."""
        assert self._runs is not None
        if self._table_limit is None:
            words = self._merge_tables()
            if len(words):
                self._runs.add(words)
            return
        for tables in self._free.values():
            while tables:
                self._spill(tables.pop())

    def close(self) -> None:
        """Removes temporary files."""
        if self._folder is not None:
            self._folder.cleanup()

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
