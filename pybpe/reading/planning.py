"""Divides a corpus: Plan -> Task -> Piece -> documents. A plan divides it into tasks, by file and byte range, a task is
read in pieces, and C divides a piece into documents. All are the same on one machine and on many.

The plan depends only on the files and the settings. A task's result has one place in the token files, whichever
worker runs it and in whatever order. So the files are the same for any number of workers and any executor, and an
interrupted run resumes at a task.
"""

from __future__ import annotations

import io
import os
import stat
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache, partial
from itertools import chain, groupby, repeat
from operator import attrgetter
from typing import Any, BinaryIO, NamedTuple

from .. import _binding
from .._lazy import cached_property
from ..arguments import utf8
from ..errors import Error
from ..support import platform
from ..support.parallel import map_ordered
from ..support.progress import About
from .charset import are_utf8, doubt_of
from .documents import CLUSTER, RECORDS, Kinds, RecordNotes, id_of, mark_matcher, records, spelled_id
from .files import Corpus, SmallFiles
from .input_file import InputFile
from .inputs import STDIN, ReadOptions
from .objects import OBJECT
from .pieces import PIECE_BYTES, Cut, Cutting, find_cut, stream_pieces, without_mark
from .rows import RowGroups, Texts, open_rows
from .splits import SplitOptions, count_documents, end_of_first, hash_split, hash_split_of_range, last_hashes, marks
from .streams import ENDINGS, Limited, decompressed, packing_of_content

TASK_BYTES = 1 << 24
_LEAST_AMOUNT = 1 << 12  # bytes. Smaller files count as this size, so that a task of tiny files does not take long
_TRAIN, _VAL = 0, 1  # of SPLIT_NAMES
_MOST_PACKED = 16  # the ratio of compression that text rarely exceeds


class Range(NamedTuple):
    """A range of a file between two positions where it can be cut."""

    file: InputFile | SmallFiles  # small files are read whole
    # In bytes (of the decompressed data, if compressed) or rows. An `end` of None means the end of the file.
    start: int
    end: int | None
    split: int | None  # index of the split, or None if a hash of each document decides the split
    ends_document: bool  # whether a document ends where the range ends. True at the end of a file and of a split


Task = Sequence[Range]
Fingerprint = Callable[[InputFile | SmallFiles], object]


def whole(file: InputFile | SmallFiles) -> Task:
    """Returns a task that reads a file to its end, or small files, for callers that need no plan."""
    return [Range(file, 0, None, 0, False)]


def anchored(task: Task) -> Task:
    """Returns the same task for a worker whose current folder may differ."""
    return [planned._replace(file=planned.file.anchored()) for planned in task]


def task_fingerprint(task: Task, fingerprint: Fingerprint) -> bytes:
    """Returns the fingerprint of a task: the files and ranges that it reads. `fingerprint` returns the fingerprint
    of a file."""
    parts = [repr((fingerprint(each.file), *each[1:])) for each in task]
    return "\n".join(parts).encode("utf-8", "surrogateescape")


class Plan:
    """The tasks of a corpus.

    Args:
        files: the corpus.
        kinds: how documents in the files are separated.
        split: how documents are divided among splits. A corpus of a single document is divided as with "token".
        cutting: the positions where text can be cut between words.

    Attributes:
        files, kinds, cutting: as given.
        splits: the shares of the splits.
        hashed: whether a hash of a document decides its split.
        task_bytes: the approximate size of a task.
    """

    def __init__(self, files: Corpus, kinds: Kinds, split: SplitOptions, cutting: Cutting) -> None:
        self.files, self.kinds, self.splits, self.cutting = files, kinds, split.splits, cutting
        self.task_bytes = TASK_BYTES
        self.hashed = split.split_by == "hash" and len(split.splits) > 1
        if self.hashed and count_documents(files, kinds, 2) < 2:
            self.hashed = any(map(kinds.is_divided, files))
        self._val_documents = split.val_documents
        self._found: tuple[object, int, int] = None, 0, 0  # a file, a place in it, and the first cut after the place

    def tasks(self, threads: int = 1) -> Iterator[Task]:
        """Yields all tasks, in order.

        Args:
            threads: how many are planned at once. More than one helps if the files are on other machines, because every
                cut waits for a read.
        """
        return map_ordered(self.fixed, self.loose_tasks(threads), threads)

    def loose_tasks(self, threads: int = 1) -> Iterator[Task]:
        """Yields what `tasks` does, except that ranges of a text may begin and end anywhere: `fixed` finds the cuts
        there. So a task can be read without planning those before it."""
        ranges = map_ordered(lambda pair: list(self.ranges(*pair)), self._parts(), threads)
        task, amount = list[Range](), 0
        for planned, size in chain.from_iterable(ranges):  # small ones share a task
            task.append(planned)
            amount += max(size, _LEAST_AMOUNT)
            if amount >= self.task_bytes:
                yield task
                task, amount = [], 0
        if task:
            yield task

    def _parts(self) -> Iterator[tuple[InputFile | SmallFiles, int | None]]:
        """Yields the files that are not empty, small ones together unless they must be divided. With every file comes
        the byte or row where val ends, if there are val_documents: 0 if all is train, None if all is val. A file of
        rows that has no bytes is damaged, and whoever reads it says so."""
        last, end = (0, None) if self._val_documents is None else self._end_of_val
        together = self._is_one_share and self.kinds.read.documents in _WHOLE
        for number, part in enumerate(self.files.parts if together else self.files):
            if part.size != 0 or (isinstance(part, InputFile) and part.has_rows):
                yield part, None if number < last else end if number == last else 0

    @cached_property
    def _end_of_val(self) -> tuple[int, int | None]:
        return end_of_first(self.files, self.kinds, self._val_documents or 0)

    @property
    def _is_one_share(self) -> bool:
        """Whether a file has one share: documents go to splits by their hashes, or there is one split."""
        return self.hashed or len(self.splits) == 1

    def ranges(
        self, part: InputFile | SmallFiles, end_of_val: int | None = None, size: int | None = None
    ) -> Iterator[tuple[Range, int]]:
        """Yields the ranges of a part of the corpus, with their approximate sizes in bytes.

        Args:
            part, end_of_val: as `_parts` yields them.
            size: the size of most ranges, or None for that of a task.
        """
        if isinstance(part, SmallFiles):
            planned = Range(part, 0, None, None if self.hashed else 0, True)
            yield planned, max(part.size, len(part.paths) * _LEAST_AMOUNT)
            return
        for split, start, end in self._shares(part, end_of_val):
            if part.form == "parquet":
                groups = RowGroups(part, self.kinds.read.text_key)
                for first, last, amount in groups.between(start, sys.maxsize if end is None else end):
                    yield Range(part, first, last, split, True), amount
            elif part.known_size is None or part.has_rows:  # it is read from its start
                yield Range(part, start, end, split, True), part.size or 0
            elif split is None and not self.kinds.is_divided(part):
                yield from self._hashed_ranges(part, part.known_size)
            else:
                yield from self._even_ranges(part, start, end, split, size or self.task_bytes)

    # ------------------------------------------------------------------------------------------------
    # The shares of the splits in a file

    def _shares(self, file: InputFile, end_of_val: int | None) -> list[tuple[int | None, int, int | None]]:
        """Returns (split, start, end) for every split's share of a file. In a text that can be read from any place,
        they may begin and end anywhere."""
        if self._is_one_share:
            return [(self._packed_split(file) if self.hashed else 0, 0, None)]
        if self._val_documents is not None:
            val, train = (_VAL, 0, end_of_val), (_TRAIN, end_of_val or 0, None)
            return [val] if end_of_val is None else [val, train] if end_of_val else [train]
        length, total = _length(file, self.kinds), sum(self.splits)
        ends = [int(length * (sum(self.splits[:number]) / total)) for number in range(1, len(self.splits))]
        if file.known_size is None and not file.has_rows:
            with file.open() as stream:
                ends = [find_cut(stream, end, self._cut(file), self._context) for end in ends]
        shares = zip(range(len(self.splits)), [0, *ends], [*ends, length])
        return [(split, start, None if end == length else end) for split, start, end in shares if start < end]

    def _packed_split(self, file: InputFile) -> int | None:
        """Returns the split of a large compressed text that is one document, or None for other files, whose
        documents are divided when they are read."""
        size, kind = file.size or 0, self.kinds.kind(file)
        if file.known_size is not None or size <= self.task_bytes // _MOST_PACKED or kind not in ("special", "file"):
            return None
        with file.open() as stream:
            if kind == "special":
                begin, end = next(marks(stream, self.kinds))
                if end > begin:
                    return None
            return hash_split_of_range(stream, 0, sys.maxsize, self.splits)

    # ------------------------------------------------------------------------------------------------
    # The ranges of a share

    def _even_ranges(
        self, file: InputFile, start: int, end: int | None, split: int | None, size: int
    ) -> Iterator[tuple[Range, int]]:
        """Yields ranges of one size, which `fixed` moves to cuts, if the file can be cut."""
        stop, divided = file.known_size if end is None else end, self.kinds.is_divided(file)
        assert stop is not None
        if not divided and self.cutting.none:
            size = stop
        for at in range(start, max(stop, 1), max(1, size)):
            is_last = at + size >= stop
            yield Range(file, at, end if is_last else at + size, split, is_last or divided), min(size, stop - at)

    def _hashed_ranges(self, file: InputFile, size: int) -> Iterator[tuple[Range, int]]:
        """Yields the ranges of a text whose documents go to splits by their hashes: several documents a range, or a
        part of a document that is too long to hold in memory. This function hashes such a long document itself.

            start                          start + task_bytes         stop
            | documents <mark> ... <mark> | a long one          <mark> |
                                        begin                  end
        """
        marked, start = self.kinds.kind(file) == "special", 0
        while start < size:
            end, stop = size, size
            if marked and size - start > self.task_bytes:
                with file.open() as stream:
                    end, stop = _first_mark(stream, self.kinds, start + self.task_bytes)
            if end - start <= 2 * self.task_bytes:
                yield Range(file, start, None if stop == size else stop, None, True), stop - start
            else:
                with file.open() as stream:
                    stream.seek(start)
                    found = marks(Limited(stream, self.task_bytes), self.kinds, start) if marked else ()
                    begin = max((after for mark, after in found if after > mark), default=start)
                    split = hash_split_of_range(stream, begin, end, self.splits)
                if begin > start:
                    yield Range(file, start, begin, None, True), begin - start
                yield from self._even_ranges(file, begin, stop, split, self.task_bytes)
            start = stop

    # ------------------------------------------------------------------------------------------------
    # The cuts

    def fixed(self, task: Task, look: int = 0) -> Task:
        """Returns a task whose ranges begin and end at the first cuts after the ends of a loose task's ranges.
        In a text, a mark that ends within `look` bytes after a place is taken before a cut between two words."""
        fixed = []
        for each in task:
            file, (start, end) = each.file, each[1:3]
            if isinstance(file, InputFile) and file.known_size is not None and not file.has_rows:
                start, end = self._cut_at(file, start, look), end and self._cut_at(file, end, look)
                each = each._replace(start=start, end=end and max(start, end))
            fixed.append(each)
        return fixed

    def _cut_at(self, file: InputFile, at: int, look: int) -> int:
        """Returns the first cut of a text at or after a place: see `fixed`."""
        found, first, cut = self._found
        if at == 0:
            return 0
        if found is file and (first == at or (first < at <= cut and not look)):
            return cut
        with file.open() as stream:
            begin, cut = 0, 0
            if look and self.kinds.kind(file) == "special":
                begin, cut = _first_mark(stream, self.kinds, at, look)
            if cut == begin:
                cut = find_cut(stream, at, self._cut(file, look), self._context)
        self._found = file, at, cut
        return cut

    def _cut(self, file: InputFile, look: int = 0) -> Cut:
        """Returns the Cut that finds where a file can be cut: between documents, and in a text also between words."""
        between_documents, between_words = self.kinds.document_cut(file), self.cutting.cut
        if self.kinds.is_divided(file):
            return between_documents
        if not (look or self.hashed or self._val_documents is not None):  # a share ends between words
            return between_words
        return lambda data, start: min(between_documents(data, start), between_words(data, start))

    @property
    def _context(self) -> int:
        """The number of bytes before a place that decide whether a cut is possible there."""
        return max(self.cutting.context, self.kinds.context)


_ESTIMATED = 1 << 24  # bytes of files. Less is read too soon to need an estimate
_HEAD_BYTES = 16  # which show how a file is packed
_SAMPLED_FILES, _SAMPLED_BYTES = 8, 1 << 18  # compressed files, and bytes of each as they are stored


def progress_total(files: Corpus, text_key: str) -> int | None:
    """Returns the number of bytes of text, to show how far a run is. It is an estimate where the sizes of files do not
    show it: from the footers of some parquet files, or the first bytes of some compressed ones. None if those are at
    URLs, or if there is little text."""
    if [*files.paths] == [STDIN]:
        return _left_of_stdin()
    unsized = [file for file in files.singles if file.is_sequential or file.has_rows]
    if not unsized:
        return files.size
    if files.size < _ESTIMATED or any(file.remote is not None for file in unsized):
        return None
    stored, some = sum(file.size or 0 for file in unsized), unsized[:: -(-len(unsized) // _SAMPLED_FILES)]
    texts, sizes = map(sum, zip(*(_text_and_stored(file, text_key) for file in some)))
    return About(files.size - stored + stored * texts // max(1, sizes))


def _left_of_stdin() -> int | None:
    """Returns the size of the rest of the file that standard input is; None for a pipe, or a compressed file."""
    with suppress(OSError, ValueError):
        status, at = os.fstat(0), os.lseek(0, 0, os.SEEK_CUR)
        if stat.S_ISREG(status.st_mode):
            head = platform.read_at(0, _HEAD_BYTES, at)
            os.lseek(0, at, os.SEEK_SET)
            return About(status.st_size - at) if packing_of_content(head) is None else None
    return None


def _text_and_stored(file: InputFile, text_key: str) -> tuple[int, int]:
    """Returns the sizes of the text of a file, or of a part of it, and of that as it is stored."""
    size = file.size or 0
    if file.form == "parquet":
        return RowGroups(file, text_key).text_bytes, size
    if file.packing not in ENDINGS.values():
        return size, size
    with file.open_stored(0, size) as stream:
        head, text = stream.read(_SAMPLED_BYTES), 0
    with suppress(Error):  # the end is missing
        for block in iter(partial(decompressed(file.path, file.packing, io.BytesIO(head)).read, 1 << 16), b""):
            text += len(block)
    return text, len(head)


def _first_mark(stream: BinaryIO, kinds: Kinds, at: int, look: int = sys.maxsize) -> tuple[int, int]:
    """Returns where the first mark that ends at or after a place begins and ends, or the end of the file, or of the
    `look` bytes after the place, twice."""
    offset = max(0, at - len(kinds.mark_bytes))
    stream.seek(offset)
    return next(marks(Limited(stream, at + look - offset), kinds, offset))


def _length(file: InputFile, kinds: Kinds) -> int:
    """Returns the number of rows of a file, or of bytes of its text. Reads a compressed file."""
    if file.has_rows:
        return open_rows(file, kinds.read.text_key).rows
    if file.known_size is not None:
        return file.known_size
    with file.open() as stream:
        return sum(map(len, iter(partial(stream.read, PIECE_BYTES), b"")))


# ----------------------------------------------------------------------------------------------------
# Pieces: a thread encodes or counts one at a time


_WHOLE = ("auto", "special", "file")  # of ReadOptions.documents: a file without marks is one document


class Piece(NamedTuple):
    """A piece of a range."""

    path: str  # this, `start` and `split` are as in Range
    start: int
    split: int | None
    # Text or JSON lines, or the texts of rows, or of small files without marks, which are UTF-8.
    data: memoryview | Texts
    # Whether it holds complete documents that are not separated yet, otherwise it is a part of a text.
    divided: bool
    ends_document: bool  # whether a document ends where the piece ends
    notes: RecordNotes  # notes the records of the piece: rows are noted already, JSON lines when the piece is divided
    kind: str  # the kind of the file (see Kinds)
    is_utf8: bool  # whether the caller says so

    @property
    def size(self) -> int:
        """The number of bytes of the data."""
        return len(self.data) if isinstance(self.data, memoryview) else self.data.size

    @property
    def is_text(self) -> bool:
        """Whether the data is text, not records."""
        return self.kind not in RECORDS

    def doubt(self, look: Callable[[memoryview, str, int, bool], str | None] = doubt_of) -> str | None:
        """Returns the warning about a text that is not UTF-8, from `look`, or None. Raises FormatError if it is in
        another encoding, and the caller does not say that it is UTF-8."""
        if self.kind in RECORDS or not isinstance(self.data, memoryview):
            return None
        return look(self.data, self.path, self.start, self.is_utf8)

    @property
    def text(self) -> memoryview:
        """The data of a piece of one text."""
        assert isinstance(self.data, memoryview)
        return self.data

    def texts(self, text_key: str) -> list[bytes]:
        """Returns the texts: those of records, which it notes, or of small files, or one. `text_key` is the key of the
        text in JSON lines."""
        if not isinstance(self.data, memoryview):
            return list(self.data)
        if self.is_text:
            return [utf8(self.data)]
        return [utf8(record[text_key]) for record, _ in records(self.data, text_key, self.notes)]


def text_piece(data: memoryview) -> Piece:
    """Returns a piece of a text that is in memory."""
    return Piece("", 0, 0, data, False, False, RecordNotes("", 0, False), "file", False)


def record_pieces(blocks: Iterable[bytes], read: ReadOptions) -> Iterator[Piece]:
    """Yields pieces of JSON lines that are in memory."""
    start = 0
    for block in blocks:
        notes = RecordNotes(OBJECT, start, read.skips)
        yield Piece(OBJECT, start, 0, memoryview(block), True, True, notes, "jsonl", True)
        start += len(block)


def pieces_of(task: Task, kinds: Kinds, text_cut: Cut) -> Iterator[Piece]:
    """Yields the pieces of a task, in order. They depend only on the task."""
    for file, ranges in groupby(task, attrgetter("file")):
        if isinstance(file, SmallFiles):
            yield from _small_pieces(file, next(ranges), kinds)
        elif file.has_rows:
            yield from _row_pieces(file, ranges, kinds)
        else:
            yield from chain.from_iterable(map(_byte_pieces, repeat(file), ranges, repeat(kinds), repeat(text_cut)))


def _small_pieces(files: SmallFiles, planned: Range, kinds: Kinds) -> Iterator[Piece]:
    """Yields the pieces of small files: most often one, with all of them."""
    first, (data, offsets) = next(iter(files)), files.read()
    if (kinds.kind(first) == "special" and kinds.find_mark(data, 0)) or not are_utf8(data, offsets):
        for file, start, end in zip(files, offsets, offsets[1:]):
            yield _piece(planned, file, kinds, 0, data[start:end], ends=True)
    else:
        texts = Texts([(data, memoryview(offsets))], paths=files.paths)
        yield _piece(planned, first, kinds, 0, data)._replace(data=texts, divided=True, ends_document=True)


def _row_pieces(file: InputFile, ranges: Iterable[Range], kinds: Kinds) -> Iterator[Piece]:
    select = None if kinds.where is None else kinds.where.of_batch
    rows, kind = open_rows(file, kinds.read.text_key, kinds.columns, select), kinds.kind(file)
    if kinds.ids:
        rows.check_ids(kinds.ids)
    joined = list[Range]()
    for each in ranges:  # row groups may be small
        if joined and (joined[-1].end, joined[-1].split) == (each.start, each.split):
            each = joined.pop()._replace(end=each.end)
        joined.append(each)
    for _, start, end, split, _ in joined:
        for texts, notes in rows.texts(start, end, RecordNotes(file.path, start, kinds.read.skips)):
            yield Piece(file.path, notes.start, split, texts, True, True, notes, kind, True)


def _byte_pieces(file: InputFile, planned: Range, kinds: Kinds, text_cut: Cut) -> Iterator[Piece]:
    offset, end = planned.start, file.known_size if planned.end is None else planned.end
    size = None if end is None else end - offset
    stream, file = file.open_in_form(offset, end)
    with stream:
        divided = planned.split is None or kinds.is_divided(file)
        for data in stream_pieces(stream, kinds.document_cut(file) if divided else text_cut, size=size):
            yield _piece(planned, file, kinds, offset, data)
            offset += len(data)
    if planned.ends_document and not divided:
        yield _piece(planned, file, kinds, offset, memoryview(b""), ends=True)


def _piece(planned: Range, file: InputFile, kinds: Kinds, start: int, data: memoryview, ends: bool = False) -> Piece:
    """Returns a piece. `ends` says whether a document ends with it although the piece is not divided."""
    kind, divided = kinds.kind(file), planned.split is None or kinds.is_divided(file)
    text = data if kind == "jsonl" else without_mark(data, start)
    notes = RecordNotes(file.path, start, kinds.read.skips)
    is_utf8 = kinds.read.encoding is not None
    return Piece(file.path, start, planned.split, text, divided, divided or ends, notes, kind, is_utf8)


# ----------------------------------------------------------------------------------------------------
# Documents: C divides a piece, without a Python object for each document
#
# The bytes of a document decide its split, or the name of its cluster of near duplicates, if its record has a string
# at CLUSTER (see pybpe.corpus). Python reads the few JSON lines that C leaves to a complete parser, and raises the
# errors for lines that are not records.


@contextmanager
def lent_divider(kinds: Kinds, separator: bytes, splits: Sequence[float]) -> Iterator[_binding.Divider]:
    """Yields an empty divider that no other thread uses. After the block its documents are no longer valid.

    Args:
        kinds: how documents are separated.
        separator: the bytes written after every document.
        splits: the shares of the splits. With one, documents are not hashed.
    """
    mark, key = kinds.mark, kinds.read.text_key
    free = _free_dividers(separator, mark, key, splits, kinds.ids)
    try:
        divider = free.pop()
    except IndexError:
        marks = mark_matcher(mark) if mark is not None else None
        divider = _binding.Divider(separator, marks, key, last_hashes(splits), kinds.ids)
    divider.clear()
    try:
        yield divider
    finally:
        free.append(divider)


@lru_cache(maxsize=8)
def _free_dividers(*how: object) -> list[_binding.Divider]:
    """Returns the dividers that no thread uses. `pop` and `append` are atomic."""
    return []


def add_documents(divider: _binding.Divider, piece: Piece) -> bool:
    """Adds the documents of a divided piece to a divider. Returns False if Python must read the piece instead."""
    if not isinstance(piece.data, memoryview):
        if divider.splits > 1 and piece.data.fields and CLUSTER in piece.data.fields[0]:
            return False
        for data, offsets in piece.data.parts:
            divider.add(data, offsets)
        return True
    kind = piece.kind
    if kind == "file":
        divider.add(piece.data, array("Q", (0, len(piece.data))))
    elif not divider.divide(kind, piece.data):
        return False
    if kind == "jsonl":
        piece.notes.end = piece.notes.start + len(piece.data)
    piece.notes.records, piece.notes.lines = divider.records()
    return True


Origins = tuple[Sequence[int], Sequence["str | None"]]
"""Where documents came from: which records of their piece they are, from 0, and the ids of these if the kinds have a
key of ids. Both are empty if nobody asks."""


def origins_of(divider: _binding.Divider, piece: Piece, split: int, kinds: Kinds) -> Origins:
    """Returns the origins of the documents of a split."""
    if kinds.ids is None:
        return (), ()
    numbers = divider.origins(split)
    rows, data = numbers[::3], piece.data
    if not kinds.ids:
        return rows, ()
    if isinstance(data, memoryview):
        values = (bytes(data[begin:end]) for begin, end in zip(numbers[1::3], numbers[2::3]))
        return rows, [spelled_id(value) for value in values]
    return rows, [id_of(data.fields[row], kinds.ids) if data.fields else None for row in rows]


def divide(piece: Piece, kinds: Kinds, splits: Sequence[float]) -> Iterator[tuple[int, list[bytes], Origins]]:
    """Yields the documents of a divided piece by split, each split's in piece order, with their origins. This is slow.
    It also reads what `add_documents` does not. Raises FormatError if a line is not a record."""
    key, shares = kinds.read.text_key, shares_of(piece, splits)
    with lent_divider(kinds, b"", shares) as divider:
        if add_documents(divider, piece):
            found = [divider.texts(place).list() for place in range(len(shares))]
            origins: list[Any] = [origins_of(divider, piece, place, kinds) for place in range(len(shares))]
        else:
            found, wanted = [[] for _ in shares], kinds.ids is not None
            origins = [(list[int](), list[str | None]()) for _ in shares]
            triples: Iterable[tuple[int, bytes, Mapping[str, object]]]
            if isinstance(piece.data, memoryview):
                some = records(piece.data, key, piece.notes)
                triples = ((piece.notes.records - 1, utf8(record[key]), record) for record, _ in some)
            else:
                triples = piece.data.records()
            for row, document, record in triples:
                if document:
                    cluster = record.get(CLUSTER)
                    place = hash_split(utf8(cluster) if isinstance(cluster, str) else document, shares)
                    found[place].append(document)
                    origins[place][0].extend([row] * wanted)
                    origins[place][1].extend([id_of(record, kinds.ids)] if kinds.ids else ())
    for place, documents in enumerate(found):
        if documents:
            yield place if piece.split is None else piece.split, documents, origins[place]


def shares_of(piece: Piece, splits: Sequence[float]) -> Sequence[float]:
    """Returns the shares that a divider divides a piece into: one if the split of the piece is known."""
    return tuple(splits) if piece.split is None else (1.0,)
