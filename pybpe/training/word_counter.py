"""Counts the words of pieces: a table per thread, and sorted runs on disk if memory is limited. Says whether merging
can take this number of words."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain, islice
from typing import NamedTuple

from .. import _binding
from .._lazy import tempfile
from ..arguments import param, whole_number
from ..errors import LimitError, note
from ..model import matcher
from ..pattern import Pattern
from ..reading.documents import Kinds
from ..reading.pieces import Piece, add_documents, divide, lent_divider, shares_of
from ..support.parallel import end_if_unwanted, memory_left, release_memory, run_interruptibly, worker_count
from ..support.platform import machine_memory
from .counts import CountSettings, Runs, sorted_blocks, write_blocks

LEAST_MEMORY = 1 << 24
_FULL = 0.85  # a table with this share of its room counts as full: the words of a piece must fit too
_LARGE_TABLE = 1 << 17  # words, which take 6 MB
_MUCH = 1 << 24  # bytes of text, after which memory is released
_GROWTH_MAX = 4.0  # the largest factor by which an estimate may multiply the size of a table


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
        with self._lent_table(has_specials) as counter:
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

    @property
    def has_words(self) -> bool:
        """Whether any words were counted, also by an earlier process."""
        tables = [*self._free[True], *self._free[False], *([self._total] if self._total is not None else [])]
        return any(table.stats.words for table in tables) or (self._runs is not None and bool(self._runs.names))

    def add_words(self, words: _binding.Words) -> None:
        """Adds words that a worker counted."""
        with self._lent_table(False) as counter:
            counter.add_words(words)

    @contextmanager
    def _lent_table(self, has_specials: bool) -> Iterator[_binding.Counter]:
        """Yields a table that no other thread uses, to add words. Afterwards, writes it to disk if it is full."""
        try:
            counter = self._free[has_specials].pop()
        except IndexError:
            counter = _binding.Counter(self._pattern.pretok, self._specials if has_specials else None)
        yield counter
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
        is_much = max(text, self._counted) > _MUCH
        if is_much:
            release_memory()
        words = run_interruptibly(self._finish, merging or MergingMemory(None, 0), text)
        if is_much:
            release_memory()
        return words

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
        words = write_blocks(path, header, blocks)
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
        return self.limit is None or self.need(words, size) <= memory_left(self.limit)

    def check(self, words: int, size: int, text: int = 0) -> None:
        """Raises LimitError if the words do not fit. Logs what merging takes if it takes much. `text` is the size of
        the text that has them, 0 if unknown."""
        need = self.need(words, size)
        if self.limit is not None and need > (left := memory_left(self.limit)):
            share = (0.9 * left / need) ** 2  # a quarter of a text usually has half of its words or fewer
            sample = param(max_bytes=int(float(f"{0.95 * share * text:.1e}"))) if text else param("max_bytes")
            raise LimitError(
                f"merging {words} distinct words takes about {_shown(need)} next to {_shown(self.limit - left)} for"
                f" pybpe itself, more than {param('memory_limit')} allows ({_shown(self.limit)}; by default, half of"
                f" the machine's memory): train on a sample, with {sample}, or give a larger {param('memory_limit')}"
            )
        if need > _LARGE:
            less = f"a sample ({param('max_bytes')}) takes less"
            note(f"{words} distinct words: merging takes about {_shown(need)}; {less}")


def _shown(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"
