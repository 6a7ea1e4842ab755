"""Divides a corpus into tasks, by file and byte range, and reads these in pieces: Plan -> Task -> Piece. Tasks and
pieces are the same on one machine and on many.

The plan depends only on the files and the settings. Each task's result has one place in the token files, whichever
worker runs it and in whatever order. So the files are the same for any number of workers and any executor, and an
interrupted run resumes at a task.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, islice, repeat, starmap
from operator import attrgetter
from typing import BinaryIO, NamedTuple

from .._lazy import cached_property, hashlib
from ..arguments import utf8
from ..support.parallel import map_ordered
from .bad_records import Seen
from .documents import RECORDS, Kinds, records
from .input_file import InputFile
from .pieces import PIECE_BYTES, Cut, Cutting, find_cut, stream_pieces, without_mark
from .rows import RowGroups, Texts, open_rows
from .small_files import Corpus, SmallFiles
from .splits import SplitOptions, end_of_first, has_many_documents, hash_split_of_range, marks
from .streams import Limited
from .text_encoding import are_utf8, doubt_of

TASK_BYTES = 1 << 24
_LEAST_AMOUNT = 1 << 12  # bytes; smaller files count as this size, so that a task of tiny files does not take long
_TRAIN, _VAL = 0, 1  # of SPLIT_NAMES
_MOST_PACKED = 16  # the ratio of compression that text rarely exceeds


class Range(NamedTuple):
    """A range of a file between two positions where it can be cut."""

    file: InputFile | SmallFiles  # small files are read whole
    # In bytes (of the decompressed data, if compressed) or rows; an `end` of None means the end of the file.
    start: int
    end: int | None
    split: int | None  # index of the split; None if a hash of each document decides the split
    ends_document: bool  # whether a document ends where the range ends; True at the end of a file and of a split


Task = Sequence[Range]
Identity = Callable[[InputFile | SmallFiles], object]


def whole(file: InputFile | SmallFiles) -> Task:
    """Returns a task that reads a file to its end, or small files, for callers that need no plan."""
    return [Range(file, 0, None, 0, False)]


def anchored(task: Task) -> Task:
    """Returns the same task for a worker whose current folder may differ."""
    return [planned._replace(file=planned.file.anchored()) for planned in task]


def hashed_tasks(tasks: Iterable[Task], identity: Identity) -> Iterator[tuple[Task, str]]:
    """Yields each task with a hash, in hex, of all tasks up to it. If two plans have the same hash there, they read the
    same ranges of the same files until then.

    Args:
        tasks: all tasks of a plan.
        identity: returns what distinguishes files from others with the same names.
    """
    digest = hashlib.blake2b(digest_size=16)
    for task in tasks:
        digest.update(described(task, identity))
        yield task, digest.hexdigest()


def described(task: Task, identity: Identity) -> bytes:
    """Returns what distinguishes a task from others: the files and ranges that it reads. `identity` is as in
    `hashed_tasks`."""
    parts = [repr((identity(each.file), *each[1:])) for each in task]
    return "\n".join(parts).encode("utf-8", "surrogateescape")


class Plan:
    """The tasks of a corpus.

    Args:
        files: the corpus.
        kinds: how documents in the files are separated.
        split: how documents are divided among splits. A corpus of a single document is divided as with "token".
        cutting: the positions at which texts can be cut between words.

    Attributes:
        files, kinds, cutting: as given.
        splits: the shares of the splits.
        hashed: whether a hash of each document decides its split.
        task_bytes: the approximate size of a task.
    """

    def __init__(self, files: Corpus, kinds: Kinds, split: SplitOptions, cutting: Cutting) -> None:
        self.files, self.kinds, self.splits = files, kinds, split.splits
        self.cutting = cutting
        self.task_bytes = TASK_BYTES
        self._context = max(cutting.context, kinds.context)
        self._val_documents = split.val_documents
        self.hashed = split.split_by == "hash" and len(split.splits) > 1 and has_many_documents(files, kinds)
        self._is_one_range = self.hashed or len(split.splits) == 1

    def tasks(self, threads: int = 1) -> Iterator[Task]:
        """Yields all tasks, in order. Small files share one.

        Args:
            threads: how many files are planned at once. More than one helps if they are on other machines, since each
                cut waits for a read.
        """
        ends = iter(self._ends_of_val())
        pairs = ((part, list(islice(ends, len(Corpus([part]))))) for part in self.files.parts)
        lists = map_ordered(lambda pair: list(self._ranges_of_part(*pair)), pairs, threads)
        ranges = starmap(self._ranges_of_part, pairs) if threads == 1 else lists
        return _together(chain.from_iterable(ranges), self.task_bytes)

    def _ranges_of_part(
        self, part: InputFile | SmallFiles, ends_of_val: Sequence[int | None]
    ) -> Iterable[tuple[Range, int]]:
        """Returns the ranges of a file, or one of small files unless they must be read one by one; each with its
        approximate size in bytes."""
        if isinstance(part, InputFile):
            return self._ranges(part, ends_of_val[0])
        if self._is_one_range and self.kinds.read.documents in _WHOLE:
            return _joint(part, None if self.hashed else 0)
        return chain.from_iterable(map(self._ranges, part, ends_of_val))

    def loose_tasks(self) -> list[Task]:
        """Returns tasks as `tasks` does, if there is one split, without looking for cuts: `fixed` does that for a task
        when it is read. So a task can be read without planning those before it."""
        ranges = list[tuple[Range, int]]()
        for part in self.files.parts:
            if isinstance(part, SmallFiles) and self.kinds.read.documents in _WHOLE:
                ranges += _joint(part, 0)
                continue
            for file in Corpus([part]):
                some = self._parts(file, self.task_bytes)
                ranges += ((planned._replace(ends_document=True), size) for planned, size in some)
        return list(_together(ranges, self.task_bytes))

    def fixed(self, task: Task) -> Task:
        """Returns one of the tasks that `loose_tasks` returned, with ranges that begin and end between documents. A
        document that is longer than a task is cut between words."""
        return [self.at_cuts(part, self.task_bytes) for part in task]

    def shuffled(self, size: int, seed: int) -> list[Range]:
        """Returns ranges of about `size` bytes, in an order that the seed decides, if there is one split. They do not
        end at cuts yet: `at_cuts` reads a file to find these, which a sample needs only for the ranges that it takes.
        """
        import random

        parts = [part for file in self.files for part, _ in self._parts(file, size)]
        random.Random(seed).shuffle(parts)
        return parts

    def _parts(self, file: InputFile, size: int) -> Iterator[tuple[Range, int]]:
        """Yields ranges of about `size` bytes, each with its approximate size. They do not end at cuts yet."""
        whole, length = Range(file, 0, None, 0, False), file.known_size
        if file.form == "parquet":
            rows = RowGroups(file, self.kinds.read.text_key)
            yield from ((whole._replace(start=start, end=end), most) for start, end, most in rows.between(0, rows.rows))
        elif length is None or length <= size or self._inner_cut(file) is None:
            yield whole, file.size or 0
        else:
            for start in range(0, length, size):
                end = min(start + size, length)
                yield whole._replace(start=start, end=end), end - start

    def at_cuts(self, part: Range, look: int = 0) -> Range:
        """Returns one of the ranges that `shuffled` returned, from the first cut at or after its start to the first at
        or after its end. A mark within `look` bytes after a place is taken before a cut between two words."""
        file = part.file
        if part.end is None or isinstance(file, SmallFiles) or file.has_rows:
            return part
        with file.open() as stream:
            start, end = (self._near_border(file, stream, at, look) for at in (part.start, part.end))
        return part._replace(start=start, end=max(start, end))

    def _near_border(self, file: InputFile, stream: BinaryIO, at: int, look: int) -> int:
        if look and at and self.kinds.kind(file) == "special":
            offset = max(0, at - self.kinds.context)
            stream.seek(offset)
            begin, end = next(marks(Limited(stream, at + look - offset), self.kinds, offset))
            if end > begin:
                return end
        return self._border(file, stream, at)

    @cached_property
    def _end_of_val(self) -> tuple[int, int | None]:
        return end_of_first(self.files, self.kinds, self._val_documents or 0)

    def _ends_of_val(self) -> Iterable[int | None]:
        """Returns, for each file, the byte or row where val ends and train begins, if there are val_documents: 0 if all
        is train, None if all is val."""
        if self._val_documents is None:
            return repeat(None, len(self.files))
        last, end = self._end_of_val
        return chain(repeat(None, last), [end], repeat(0, len(self.files) - last - 1))

    def _ranges(self, file: InputFile, end_of_val: int | None) -> Iterable[tuple[Range, int]]:
        """Returns the ranges of a file, each with its approximate size in bytes."""
        size = file.size
        if size is None or size > self.task_bytes or not self._is_one_range or file.form == "parquet":
            return self._several_ranges(file, end_of_val)
        if file.is_sequential:
            return self._sequential_ranges(file, end_of_val)
        return [(Range(file, 0, size, None if self.hashed else 0, True), size)] if size else []

    def _several_ranges(self, file: InputFile, end_of_val: int | None) -> Iterator[tuple[Range, int]]:
        if file.form == "parquet":
            groups = RowGroups(file, self.kinds.read.text_key)
            for split, start, end in self._shares(groups.rows, end_of_val, lambda row: row):
                for first, last, row_bytes in groups.between(start, end):
                    yield Range(file, first, last, split, True), row_bytes
            return
        size = file.size
        if size is None or file.is_sequential:
            yield from self._sequential_ranges(file, end_of_val)
            return
        with file.open() as stream:
            if self.hashed and not self.kinds.is_divided(file):
                yield from self._hashed_ranges(file, stream, size)
                return
            for split, start, end in self._shares(size, end_of_val, lambda at: self._border(file, stream, at)):
                yield from self._cut_ranges(file, stream, start, end, split)

    def _sequential_ranges(self, file: InputFile, end_of_val: int | None) -> Iterator[tuple[Range, int]]:
        """Yields the ranges of a file that is read from its start: one, or one per split."""
        size = file.size or 0
        if self.hashed or len(self.splits) == 1:
            yield Range(file, 0, None, self._packed_split(file, size) if self.hashed else 0, True), size
        elif self._val_documents is not None:
            if end_of_val != 0:
                yield Range(file, 0, end_of_val, _VAL, True), size
            if end_of_val is not None:
                yield Range(file, end_of_val, None, _TRAIN, True), size
        elif file.form == "arrow":
            rows = open_rows(file, self.kinds.read.text_key).rows
            for split, start, end in self._shares(rows, end_of_val, lambda row: row):
                yield Range(file, start, end, split, True), size * (end - start) // rows
        else:
            with file.open() as stream:
                length = _length(stream)
                borders = self._shares(length, end_of_val, lambda at: self._border(file, stream, at))
                for split, start, end in borders:
                    yield Range(file, start, end, split, True), size * (end - start) // max(1, length)

    def _packed_split(self, file: InputFile, size: int) -> int | None:
        """Returns the split of a large compressed file that is one document, or None for other files."""
        kind = self.kinds.kind(file)
        if size <= self.task_bytes // _MOST_PACKED or kind not in ("special", "file"):
            return None
        with file.open() as stream:
            if kind == "special":
                end, following = next(marks(stream, self.kinds))
                if following > end:
                    return None
            return hash_split_of_range(stream, 0, sys.maxsize, self.splits)

    def _cut_ranges(
        self, file: InputFile, stream: BinaryIO, start: int, end: int, split: int | None
    ) -> Iterator[tuple[Range, int]]:
        """Yields the ranges between two positions of a file, each about the size of a task."""
        cut = self._inner_cut(file)
        while start < end:
            stop = end
            if cut is not None and end - start > self.task_bytes:
                stop = min(end, find_cut(stream, start + self.task_bytes, cut, self._context))
            file.check_progress(start, stop)
            yield Range(file, start, stop, split, stop == end or self.kinds.is_divided(file)), stop - start
            start = stop

    def _inner_cut(self, file: InputFile) -> Cut | None:
        """Returns the Cut that finds where a split of a file can be cut into tasks."""
        if self.kinds.is_divided(file):
            return self.kinds.document_cut(file)
        return None if self.cutting.none else self.cutting.cut

    def _hashed_ranges(self, file: InputFile, stream: BinaryIO, size: int) -> Iterator[tuple[Range, int]]:
        """Yields the ranges of a text whose documents are assigned to splits by hash: several documents each, or a
        piece of a document that is too long to hold in memory. This function hashes such a long document itself.

            start                          start + task_bytes         stop
            | documents <mark> ... <mark> | a long one          <mark> |
                                        begin                  end
        """
        marked = self.kinds.kind(file) == "special"
        start = 0
        while start < size:
            end, stop = _first_mark(stream, self.kinds, min(start + self.task_bytes, size)) if marked else (size, size)
            file.check_progress(start, stop)
            if end - start <= 2 * self.task_bytes:
                yield Range(file, start, stop, None, True), stop - start
            else:
                begin = start  # or where the last mark of these bytes ends; the end of the bytes comes as an empty mark
                stream.seek(start)
                for mark, after in marks(Limited(stream, self.task_bytes), self.kinds, start) if marked else ():
                    begin = after if after > mark else begin
                if begin > start:
                    yield Range(file, start, begin, None, True), begin - start
                split = hash_split_of_range(stream, begin, end, self.splits)
                yield from self._cut_ranges(file, stream, begin, end, split)
            start = stop

    def _border(self, file: InputFile, stream: BinaryIO, at: int) -> int:
        """Returns where a split of a file begins: at the first possible position at or after a byte."""
        cut = self.kinds.document_cut(file) if self.kinds.is_divided(file) else self.cutting.cut
        return find_cut(stream, at, cut, self._context)

    def _shares(
        self, size: int, end_of_val: int | None, border: Callable[[int], int]
    ) -> Iterator[tuple[int | None, int, int]]:
        """Yields (split, start, end) of each split's share of the `size` bytes or rows of a file."""
        if self.hashed:
            yield None, 0, size
            return
        if self._val_documents is not None:
            at = size if end_of_val is None else end_of_val
            yield from (share for share in ((_VAL, 0, at), (_TRAIN, at, size)) if share[1] < share[2])
            return
        start, total = 0, sum(self.splits)
        for split in range(len(self.splits)):
            place = size if split == len(self.splits) - 1 else int(size * (sum(self.splits[: split + 1]) / total))
            end = size if place == size else max(start, border(place))
            if end > start:
                yield split, start, end
            start = end


def _joint(part: SmallFiles, split: int | None) -> list[tuple[Range, int]]:
    """Returns one range of all these files, unless they are empty, with its size."""
    amount = max(part.size, len(part.paths) * _LEAST_AMOUNT)
    return [(Range(part, 0, part.size, split, True), amount)] if part.size else []


def _together(ranges: Iterable[tuple[Range, int]], size: int) -> Iterator[Task]:
    """Yields tasks of about `size` bytes: ranges, which come with their sizes. Small ones share a task."""
    task: list[Range] = []
    amount = 0
    for planned, more in ranges:
        task.append(planned)
        amount += max(more, _LEAST_AMOUNT)
        if amount >= size:
            yield task
            task, amount = [], 0
    if task:
        yield task


def _first_mark(stream: BinaryIO, kinds: Kinds, at: int) -> tuple[int, int]:
    """Returns where the first mark that ends at or after a position begins and ends, or the end of the file, twice."""
    offset = max(0, at - kinds.context)
    stream.seek(offset)
    return next(marks(stream, kinds, offset))


def _length(stream: BinaryIO) -> int:
    """Returns the size of a compressed file's content."""
    length = 0
    while block := stream.read(PIECE_BYTES):
        length += len(block)
    return length


# ----------------------------------------------------------------------------------------------------
# Pieces: a thread encodes or counts one at a time


_WHOLE = ("auto", "special", "file")  # of ReadOptions.documents: a file without marks is one document


class Piece(NamedTuple):
    """A piece of a range."""

    path: str  # this, `start` and `split` are as in Range
    start: int
    split: int | None
    # Text or JSON lines; or the texts of rows, or of small files without marks, which are UTF-8.
    data: memoryview | Texts
    # Whether it holds complete documents that are not separated yet; otherwise it is a part of a text.
    divided: bool
    ends_document: bool  # whether a document ends where the piece ends
    seen: Seen  # notes the records of the piece: rows are noted already, JSON lines when the piece is divided
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
        """Returns the warning about a text that is not UTF-8, from `look`; or None. Raises FormatError if it is in
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
        return [utf8(record[text_key]) for record, _ in records(self.data, text_key, self.seen)]


def text_piece(data: memoryview) -> Piece:
    """Returns a piece of a text that is in memory."""
    return Piece("", 0, 0, data, False, False, Seen("", 0, False), "file", False)


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
        texts = Texts([(data, memoryview(offsets))])
        yield _piece(planned, first, kinds, 0, data)._replace(data=texts, divided=True, ends_document=True)


def _row_pieces(file: InputFile, ranges: Iterable[Range], kinds: Kinds) -> Iterator[Piece]:
    rows, kind = open_rows(file, kinds.read.text_key, kinds.columns), kinds.kind(file)
    joined = list[Range]()
    for each in ranges:  # row groups may be small
        if joined and (joined[-1].end, joined[-1].split) == (each.start, each.split):
            each = joined.pop()._replace(end=each.end)
        joined.append(each)
    for _, start, end, split, _ in joined:
        for texts, seen in rows.texts(start, end, Seen(file.path, start, kinds.read.skips)):
            yield Piece(file.path, seen.start, split, texts, True, True, seen, kind, True)


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
    seen = Seen(file.path, start, kinds.read.skips)
    is_utf8 = kinds.read.encoding is not None
    return Piece(file.path, start, planned.split, text, divided, divided or ends, seen, kind, is_utf8)
