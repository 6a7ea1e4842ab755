"""How a corpus is divided: into splits, such as train and val, and into tasks.

    corpus    files, in order
    share     the part of a file that belongs to one split; with "hash" a file is one share, for all splits
    range     the bytes or rows of a share that are read in order, or many small files
    task      some ranges, small ones together, which one worker processes
    piece     the part of a range that is read at once, and the documents in it: see pieces.py

A Plan has the tasks. It depends only on the files and the settings, so it is the same on one machine and on many. The
result of a task has one place in the token files, whichever worker runs it and in whatever order. So the files are the
same for any number of workers and any executor, and an interrupted run resumes at a task.
"""

from __future__ import annotations

import io
import math
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice, pairwise
from typing import BinaryIO, NamedTuple

from .. import _binding
from ..arguments import by_caller, number_of, one_of, option, param, refuse_unused, shown, whole_number
from ..errors import ArgumentError, Error, FormatError, note
from ..support import platform
from ..support.parallel import map_ordered
from ..support.progress import About
from .cuts import PIECE_BYTES, Cut, Cutting, find_cut, stream_pieces, without_mark
from .documents import Kinds
from .files import Corpus, SmallFiles
from .input_file import InputFile
from .inputs import STDIN, first_of
from .records import RecordNotes, valid_records
from .rows import RowGroups, open_rows
from .streams import ENDINGS, Limited, decompressed, packing_of_content

SPLIT_NAMES = ("train", "val", "test")
DEFAULT_SPLITS = (8, 1, 1)
SPLIT_BY = ("auto", "hash", "token")
FEW = 200  # documents. With fewer, the shares of a hash may be far from those that the caller wants
_LOOK_BYTES = 1 << 22  # of a text, to count its documents
_FAR = 2.0  # a share is far from another that is this many times larger or smaller
_LARGE_PART, _MOST_LOOKED = 20, 1 << 30  # a document of a 20th of all text is large, in a file of so many bytes at most


@dataclass(frozen=True)
class SplitOptions:
    """How documents are divided among splits. The fields have the names of the public keyword arguments, which its
    errors name.

    Attributes:
        splits: the shares of train, val and test. With fewer than three, the last splits are left out.
        split_by: one of SPLIT_BY, or "first", if there are val_documents. "auto" becomes one of the others when the
            files are known (see `decided`).
        val_documents: if not None, the first documents, this many, are val, and the others train. There are no shares.

    Raises:
        ArgumentError: a value is invalid.
    """

    splits: Sequence[float] = option(DEFAULT_SPLITS, "shares of train, val and test", "A,B,C")
    split_by: str = option(
        "auto",
        "how to split: hash, by the content of documents; token, files in order, between words; auto (default),"
        " token for fewer than 200 documents, otherwise hash",
        "BY",
    )
    val_documents: int | None = option(
        None, "the first N documents of the corpus are val, and all others train, instead of --splits and --split-by"
    )

    def __post_init__(self) -> None:
        try:
            shares = tuple(map(float, self.splits))
            right = 1 <= len(shares) <= 3 and min(shares) >= 0 and shares[0] > 0 and math.isfinite(sum(shares))
        except (TypeError, ValueError, OverflowError):
            right = False
        if not right:
            told = f"must be 1 to 3 shares such as {by_caller('(8, 1, 1)', '8,1,1')}, the first above 0"
            raise ArgumentError(f"{param('splits')} {told}, not {shown(self.splits)}")
        object.__setattr__(self, "splits", shares)
        one_of("split_by", self.split_by, SPLIT_BY)
        if self.val_documents is not None:
            for name, value, default in (("splits", self.splits, DEFAULT_SPLITS), ("split_by", self.split_by, "auto")):
                if value != default:
                    refuse_unused(
                        name, value, f"{param('val_documents')} says which documents are val, and the others are train"
                    )
            object.__setattr__(self, "val_documents", whole_number("val_documents", self.val_documents, 1))
            object.__setattr__(self, "splits", (1.0, 1.0))
            object.__setattr__(self, "split_by", "first")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the splits."""
        return SPLIT_NAMES[: len(self.splits)]

    def decided(self, files: Corpus, kinds: Kinds, recorded: object) -> SplitOptions:
        """Returns the options for some files, with "hash" or "token" instead of "auto". `recorded` is how the
        token files were split that these replace: documents keep their splits as long as it stays."""
        name = first_of(list(files.paths))
        if self.split_by == "hash" and len(self.splits) > 1 and _is_one_text(files, kinds):
            note(f"{name}: 1 document, so pybpe cuts it in order, between words, as with {param(split_by='token')}")
        if self.split_by != "auto":
            return self
        if len(self.splits) == 1:
            return replace(self, split_by="hash")
        if recorded in SPLIT_BY[1:]:
            return replace(self, split_by=recorded)
        with_text = (file for file in files if not file.is_empty)
        are_many = next(islice(with_text, FEW - 1, None), None) is not None
        count = FEW if are_many else count_documents(files, kinds, FEW, _LOOK_BYTES)
        why = f"{number_of(count, 'document')}, too few to give each split whole ones" if count else ""
        if count == FEW:
            large = _too_large(files, kinds, self.splits)
            if large is None:
                return replace(self, split_by="hash")
            name, why = large, "one document is so large that the splits would not have their shares"
        if why:
            keeps = f" ({param(split_by='hash')} would keep documents whole)" if count > 1 else ""
            note(f"{name}: {why}, so pybpe cuts each file in order, between words{keeps}")
        return replace(self, split_by="token")


def _is_one_text(files: Corpus, kinds: Kinds) -> bool:
    """Returns whether a corpus is one document or none, in a file that cannot have more."""
    return count_documents(files, kinds, 2) < 2 and not any(map(kinds.is_divided, files))


def are_far(sizes: Sequence[int], splits: Sequence[float]) -> bool:
    """Returns whether the sizes of splits are far from their shares."""
    wanted = [share / sum(splits) for share in splits]
    shares = [size / max(1, sum(sizes)) for size in sizes]
    return any(not want / _FAR <= share <= want * _FAR for share, want in zip(shares, wanted))


def _too_large(files: Corpus, kinds: Kinds, splits: Sequence[float]) -> str | None:
    """Returns the path of a text with a document that leaves the splits far from their shares, wherever the others go,
    or None. (Records stay whole however they are split, and the text of compressed files has an unknown size.)"""
    total, sizes, path = files.size, [0] * len(splits), ""
    for file in Corpus(part for part in files.parts if (part.size or 0) * _LARGE_PART >= total):
        size = file.size or 0
        if size * _LARGE_PART < total or size > _MOST_LOOKED or file.packing is not None or kinds.is_divided(file):
            continue
        with file.open() as stream:
            begin, whole = 0, [(sys.maxsize, sys.maxsize)]
            for end, following in marks(stream, kinds) if kinds.kind(file) == "special" else whole:
                amount = min(end - begin, size)
                if amount * _LARGE_PART >= total:
                    at, path = stream.tell(), path or file.path
                    sizes[hash_split_of_range(stream, begin, end, splits)] += amount
                    stream.seek(at)
                begin = following
    rest = max(0, total - sum(sizes)) / sum(splits)
    found = [size + int(rest * share) for size, share in zip(sizes, splits)]
    return path if path and are_far(found, splits) else None


# ----------------------------------------------------------------------------------------------------
# The plan


_WHOLE = ("auto", "special", "file")  # of ReadOptions.documents: a file without marks is one document
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
    split: int | None  # index of the split, or None if a hash of a document decides its split
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
        split: how documents are divided among splits. One text that is one document is divided as with "token".
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
        self.hashed = self.hashed and not _is_one_text(files, kinds)
        self._by_count = split.val_documents is not None
        # The number of the file where val ends, and the byte or row (None: its end).
        self._end_of_val: tuple[int, int | None] = (0, None)
        if split.val_documents is not None:
            self._end_of_val = end_of_first(files, kinds, split.val_documents)
        self._context = max(cutting.context, kinds.context)  # bytes before a place that decide whether a cut is there
        self._found: tuple[object, int, int] = None, 0, 0  # a file, a place in it, and the first cut after the place

    def tasks(self, threads: int = 1) -> Iterator[Task]:
        """Yields all tasks, in order.

        Args:
            threads: how many are planned at once. More than one helps if the files are on other machines, because every
                cut waits for a read.
        """
        return map_ordered(self.fixed, self.loose_tasks(threads), threads)

    def loose_tasks(self, threads: int = 1) -> Iterator[Task]:
        """Like `tasks`, except that ranges of a text may begin and end anywhere: `fixed` finds the cuts
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
        """Yields the files that are not empty, small ones together unless they must be divided, or are more than a
        task. With every file comes the byte or row where val ends, if there are val_documents: 0 if all is train, None
        if all is val. A file of rows that has no bytes is damaged, and whoever reads it says so."""
        last, end = self._end_of_val
        most = self.task_bytes if self._is_one_share and self.kinds.read.documents in _WHOLE else -1
        parts = (part if isinstance(part, SmallFiles) and part.size > most else [part] for part in self.files.parts)
        for number, part in enumerate(chain.from_iterable(parts)):
            if part.size != 0 or (isinstance(part, InputFile) and part.has_rows):
                yield part, None if number < last else end if number == last else 0

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
        for share in self._shares(part, end_of_val):
            if part.form == "parquet":
                groups = RowGroups(part, self.kinds.read.text_key)
                if self.kinds.id_key is not None:
                    groups.check_ids(self.kinds.id_key)
                for first, last, amount in groups.between(share.start, sys.maxsize if share.end is None else share.end):
                    yield share._replace(start=first, end=last), amount
            elif part.known_size is None or part.has_rows:  # it is read from its start
                yield share, part.size or 0
            elif share.split is None and not self.kinds.is_divided(part):
                yield from self._hashed_ranges(part, part.known_size)
            else:
                yield from self._even_ranges(share, part.known_size, size or self.task_bytes)

    # ------------------------------------------------------------------------------------------------
    # The shares of the splits in a file

    def _shares(self, file: InputFile, end_of_val: int | None) -> list[Range]:
        """Returns each split's share of a file. In a text that can be read from any place, they may begin and end
        anywhere."""
        share = Range(file, 0, None, 0, True)
        if self._is_one_share:
            return [share._replace(split=self._packed_split(file))] if self.hashed else [share]
        if self._by_count:
            val, train = share._replace(split=_VAL, end=end_of_val), share._replace(split=_TRAIN, start=end_of_val or 0)
            return [val] if end_of_val is None else [val, train] if end_of_val else [train]
        length, total = _length(file, self.kinds), sum(self.splits)
        ends = [int(length * (sum(self.splits[:number]) / total)) for number in range(1, len(self.splits))]
        if file.known_size is None and not file.has_rows:
            with file.open() as stream:
                ends = [find_cut(stream, end, self._cut(file), self._context) for end in ends]
        places = enumerate(pairwise((0, *ends, length)))
        return [
            share._replace(start=start, end=None if end == length else end, split=split)
            for split, (start, end) in places
            if start < end
        ]

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

    def _even_ranges(self, share: Range, known_size: int, size: int) -> Iterator[tuple[Range, int]]:
        """Yields ranges of one size, which `fixed` moves to cuts, if the file can be cut."""
        file, start, end, split, _ = share
        assert isinstance(file, InputFile)
        stop, divided = known_size if end is None else end, self.kinds.is_divided(file)
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
                yield from self._even_ranges(Range(file, begin, stop, split, True), size, self.task_bytes)
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
        if not (look or self.hashed or self._by_count):  # a share ends between words
            return between_words
        return lambda data, start: min(between_documents(data, start), between_words(data, start))


def _length(file: InputFile, kinds: Kinds) -> int:
    """Returns the number of rows of a file, or of bytes of its text. Reads a compressed file."""
    if file.has_rows:
        return open_rows(file, kinds.read.text_key).rows
    if file.known_size is not None:
        return file.known_size
    with file.open() as stream:
        return sum(map(len, iter(partial(stream.read, PIECE_BYTES), b"")))


# ----------------------------------------------------------------------------------------------------
# Where documents end, and marks


_FIRST_BYTES = 1 << 16  # the size of the first read. Most documents are shorter


def count_documents(files: Iterable[InputFile], kinds: Kinds, most: int, look: int = sys.maxsize) -> int:
    """Returns the number of documents that are not empty, at most `most`. Of a text that is not divided, only the first
    `look` bytes are looked at, and of a file with a fault, the part before it: whoever reads the file raises the error.
    Holds no document in memory."""
    count = 0
    for file in files:
        with suppress(FormatError):
            for _ in islice(_document_ends(file, kinds, look), most - count):
                count += 1
        if count == most:
            break
    return count


def end_of_first(files: Iterable[InputFile], kinds: Kinds, count: int) -> tuple[int, int | None]:
    """Returns where the first documents, this many, end: the number of a file, and a position in it (None: its end).
    Reads up to the end of the next document. Raises ArgumentError if there is none."""
    ends = ((number, end) for number, file in enumerate(files) for end in _document_ends(file, kinds))
    found = next(islice(ends, count - 1, None), None)
    if found is None or next(ends, None) is None:
        raise ArgumentError(
            f"{param('val_documents')}: the corpus has no more than {number_of(count, 'document')}, so none is left to"
            " train on"
        )
    return found


def _document_ends(file: InputFile, kinds: Kinds, look: int = sys.maxsize) -> Iterator[int | None]:
    """Yields where the non-empty documents of a file end, as a byte or a row. None means the end of the file, or of
    the first `look` bytes of a text that is not divided."""
    if file.has_rows:
        for texts, notes in open_rows(file, kinds.read.text_key).texts(
            0, None, RecordNotes(file.path, 0, kinds.read.skips)
        ):
            offsets = (pair for _, some in texts.parts for pair in pairwise(some))
            yield from (row for row, (start, end) in enumerate(offsets, notes.start + 1) if end > start)
        return
    stream, formed = file.open_in_form()
    with stream:
        if kinds.is_divided(formed):
            at = 0
            for data in stream_pieces(stream, kinds.document_cut(formed)):
                yield from _ends_in(data, at, formed, kinds)
                at += len(data)
            return
        begin = 0 if without_mark(memoryview(stream.read(3)), 0) else 3
        stream.seek(begin)
        if kinds.kind(formed) == "special":
            for end, following in marks(Limited(stream, look), kinds, begin):
                if end > begin:
                    yield following if following > end else None
                begin = following
        elif stream.read(1):
            yield None


def _ends_in(data: memoryview, at: int, file: InputFile, kinds: Kinds) -> Iterator[int]:
    """Yields where the non-empty documents of a piece of divided text end. The piece begins at position `at`."""
    kind, cut, begin, key = kinds.kind(file), kinds.document_cut(file), 0, kinds.read.text_key
    divider = _binding.Divider(b"", None, key, last_hashes((1.0,)))
    while begin < len(data):
        end = cut(data, begin + 1)
        part = data[begin:end] if kind == "jsonl" else without_mark(data[begin:end], at + begin)
        divider.clear()
        if divider.divide(kind, part):
            found = divider.documents(0).count > 0
        else:
            notes = RecordNotes(file.path, at + begin, kinds.read.skips)
            found = any(record[key] for record, _ in valid_records(part, key, notes))
        if found:
            yield at + end
        begin = end


def marks(stream: BinaryIO | Limited, kinds: Kinds, offset: int = 0) -> Iterator[tuple[int, int]]:
    """Yields (start, end) of every mark, and finally the end of the stream as an empty mark. `offset` is the position
    of the stream. Holds one block in memory."""
    keep = len(kinds.mark_bytes) - 1  # this many bytes of a block may begin a mark that ends in the next
    block = bytearray(keep + min(_FIRST_BYTES, PIECE_BYTES))
    held = 0
    while got := stream.readinto(memoryview(block)[held:]):  # type: ignore[union-attr]
        end, begin = held + got, 0
        while (found := kinds.find_mark(memoryview(block)[:end], begin)) is not None:
            yield offset + found[0], offset + found[1]
            begin = found[1]
        held = min(keep, end - begin)
        block[:held] = block[end - held : end]
        offset += end - held
        if len(block) < PIECE_BYTES:
            block.extend(bytes(len(block)))
    yield offset + held, offset + held


def _first_mark(stream: BinaryIO, kinds: Kinds, at: int, look: int = sys.maxsize) -> tuple[int, int]:
    """Returns where the first mark that ends at or after a place begins and ends, or the end of the file, or of the
    `look` bytes after the place, twice."""
    offset = max(0, at - len(kinds.mark_bytes))
    stream.seek(offset)
    return next(marks(Limited(stream, at + look - offset), kinds, offset))


# ----------------------------------------------------------------------------------------------------
# The split of a document, from a hash of it


_HASHES = 2**64
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, made odd


def hash_split(document: bytes, splits: Sequence[float]) -> int:
    """Returns the split of a document. It depends only on the content: it is the same in any corpus, in any order.

    The hash is a CRC-32, which costs almost nothing, times the golden ratio: similar documents have similar checksums,
    and the product spreads them.
    """
    return _split_of_hash(zlib.crc32(document) * _GOLDEN % _HASHES, splits)


def hash_split_of_range(stream: BinaryIO, start: int, end: int, splits: Sequence[float]) -> int:
    """Returns the split of a document in a file, which may be larger than memory."""
    stream.seek(start)
    part = Limited(stream, end - start)
    block = memoryview(bytearray(PIECE_BYTES))
    checksum = 0
    while got := part.readinto(block):
        checksum = zlib.crc32(block[:got], checksum)
    return _split_of_hash(checksum * _GOLDEN % _HASHES, splits)


def _split_of_hash(number: int, splits: Sequence[float]) -> int:
    place = _place(number, splits)
    return place if place < len(splits) else 0


def _place(number: int, splits: Sequence[float]) -> int:
    """Returns the split of a hash, or len(splits) if rounding leaves it after the last one."""
    place = number / _HASHES * sum(splits)
    for split, share in enumerate(splits):
        place -= share
        if place < 0:
            return split
    return len(splits)


def last_hashes(splits: Sequence[float]) -> list[int]:
    """Returns the last hash of every split, for code that does not repeat the rounding above: a document belongs to the
    first split whose last hash is not below its own, or if there is none, to split 0. Hash 0 has place 0, and places
    never decrease."""
    found = []
    for split in range(len(splits)):
        low, high = 0, _HASHES
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if _place(middle, splits) <= split else (low, middle)
        found.append(low)
    return found


# ----------------------------------------------------------------------------------------------------
# The size of a corpus, for its progress


_ESTIMATED = 1 << 24  # bytes of files. Less is read too soon to need an estimate
_HEAD_BYTES = 16  # which show how a file is packed
_SAMPLED_FILES, _SAMPLED_BYTES = 8, 1 << 18  # compressed files, and bytes per file as they are stored


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
    """Returns the size of the rest of standard input if it is a file, or None for a pipe or a compressed file."""
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
