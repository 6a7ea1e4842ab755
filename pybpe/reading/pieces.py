"""Reads the tasks of a plan in pieces, which a thread encodes or counts one at a time, and divides pieces into
documents. A sample of a corpus is some of its pieces.
"""

from __future__ import annotations

import random
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby, repeat
from operator import attrgetter
from typing import Any, NamedTuple

from .. import _binding
from ..arguments import option, param, refuse_unused, utf8, whole_number
from .charset import are_utf8, doubt_of
from .cuts import Cut, stream_pieces, without_mark
from .documents import CLUSTER, RECORDS, Kinds, mark_matcher
from .files import SmallFiles
from .input_file import InputFile
from .inputs import ReadOptions
from .objects import OBJECT
from .planning import Plan, Range, Task, hash_split, last_hashes
from .records import RecordNotes, field_path, id_of, spelled_ids, valid_records
from .rows import Texts, open_rows


class Piece(NamedTuple):
    """A piece of a range."""

    path: str  # this, `start` and `split` are as in Range
    start: int
    split: int | None
    # Text or JSON lines, or the text of rows, or of small files without marks, which is UTF-8.
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
        """Returns the texts of records, which it notes, or of small files, or a single text. `text_key` is the key of
        the text in JSON lines."""
        if not isinstance(self.data, memoryview):
            return list(self.data)
        if self.is_text:
            return [utf8(self.data)]
        return [utf8(record[text_key]) for record, _ in valid_records(self.data, text_key, self.notes)]


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
    if kinds.id_key is not None:
        rows.check_ids(kinds.id_key)
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
# Documents: C divides a piece, without a Python object per document
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
    free = _free_dividers(separator, mark, key, splits, kinds.has_origins, kinds.id_key)
    try:
        divider = free.pop()
    except IndexError:
        marks = mark_matcher(mark) if mark is not None else None
        divider = _binding.Divider(separator, marks, key, last_hashes(splits), kinds.has_origins, kinds.id_key)
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


Origins = tuple[Sequence[int], Sequence["bytes | None"]]
"""Where documents came from: which records of their piece they are, from 0, and the ids of these, UTF-8, if the kinds
have a key of ids. Both are empty if nobody asks."""


def origins_of(divider: _binding.Divider, piece: Piece, split: int, kinds: Kinds) -> Origins:
    """Returns the origins of the documents of a split."""
    if not kinds.has_origins:
        return (), ()
    numbers = divider.origins(split)
    rows, data = numbers[::3], piece.data
    if kinds.id_key is None:
        return rows, ()
    if isinstance(data, memoryview):
        lines = bytes(data)  # whose parts take a third of the time to make
        values = [lines[begin:end] for begin, end in zip(numbers[1::3], numbers[2::3])]
        piece.notes.has_ids = bool(piece.notes.has_ids) or any(values)
        return rows, spelled_ids(values)
    return rows, [id_of(data.fields[row], kinds.id_key) if data.fields else None for row in rows]


def divide(piece: Piece, kinds: Kinds, splits: Sequence[float]) -> Iterator[tuple[int, list[bytes], Origins]]:
    """Yields the documents of a divided piece by split, each split's in piece order, with their origins. This is slow.
    It also reads what `add_documents` does not. Raises FormatError if a line is not a record."""
    key, shares = kinds.read.text_key, shares_of(piece, splits)
    with lent_divider(kinds, b"", shares) as divider:
        if add_documents(divider, piece):
            found = [divider.texts(place).list() for place in range(len(shares))]
            origins: list[Any] = [origins_of(divider, piece, place, kinds) for place in range(len(shares))]
        else:
            found = [[] for _ in shares]
            origins = [(list[int](), list[bytes | None]()) for _ in shares]
            triples: Iterable[tuple[int, bytes, Mapping[str, object]]]
            if isinstance(piece.data, memoryview):
                some = valid_records(piece.data, key, piece.notes)
                triples = ((piece.notes.records - 1, utf8(record[key]), record) for record, _ in some)
            else:
                triples = piece.data.records()
            for row, document, record in triples:
                if document:
                    cluster = record.get(CLUSTER)
                    place = hash_split(utf8(cluster) if isinstance(cluster, str) else document, shares)
                    found[place].append(document)
                    if kinds.has_origins:
                        origins[place][0].append(row)
                    if kinds.id_key is not None:
                        origins[place][1].append(id_of(record, kinds.id_key))
                        has_id = field_path(record, kinds.id_key) is not None
                        piece.notes.has_ids = bool(piece.notes.has_ids) or has_id
    for place, documents in enumerate(found):
        if documents:
            yield place if piece.split is None else piece.split, documents, origins[place]


def shares_of(piece: Piece, splits: Sequence[float]) -> Sequence[float]:
    """Returns the shares that a divider divides a piece into: one if the split of the piece is known."""
    return tuple(splits) if piece.split is None else (1.0,)


# ----------------------------------------------------------------------------------------------------
# Samples: the amount of a corpus that a run uses, and which part


_RANGE_BYTES = 1 << 20


@dataclass(frozen=True)
class Sample:
    """The amount of a corpus that a run uses, and the seed that decides which part.

    The documents of files are records, ranges of 1 MiB of plain text, and smaller or compressed plain files. A
    sample shuffles the ranges of 1 MiB (of records too) with the seed, and takes them until it has max_documents, or
    max_bytes of file content. It stops at the first safe cut or record after max_bytes. The texts of an iterable are
    documents too. A sample takes them in the order of the iterable.

    Raises:
        ArgumentError: max_documents or max_bytes is below 1, or a value is not an integer, or there is a seed, but no
            sample.
    """

    max_documents: int | None = option(None, "use a sample of N documents")
    max_bytes: int | None = option(None, "use a sample of N bytes, e.g. 500M", unit="bytes")
    seed: int = option(0, "random seed of the sample")

    def __post_init__(self) -> None:
        for name in ("max_documents", "max_bytes"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, whole_number(name, value, 1))
        object.__setattr__(self, "seed", whole_number("seed", self.seed, None))
        if self.seed and self.is_all:
            refuse_unused(
                "seed",
                self.seed,
                f"it chooses a sample, which {param('max_documents')} or {param('max_bytes')} asks for",
            )

    @property
    def is_all(self) -> bool:
        """Whether the sample is the whole corpus."""
        return self.max_documents is None and self.max_bytes is None

    def texts(self, texts: Iterable[Any], cut: Cut) -> Iterator[Any]:
        """Yields the texts of an iterable that belong to the sample."""
        left = _Rest(self)
        for text in texts:
            left.documents -= 1
            yield text if self.max_bytes is None else left.take_text(memoryview(utf8(text)), cut)
            if left.none:
                return

    def pieces(self, plan: Plan, cut: Cut) -> Iterator[Piece]:
        """Yields the pieces of a corpus that belong to the sample."""
        left = _Rest(self)
        parts = [part for file in plan.files for part, _ in plan.ranges(file, size=_RANGE_BYTES)]
        random.Random(self.seed).shuffle(parts)
        for part in parts:
            if left.none:
                return
            for number, piece in enumerate(
                pieces_of(plan.fixed([part._replace(ends_document=False)]), plan.kinds, cut)
            ):
                left.documents -= piece.is_text and number == 0
                yield piece._replace(data=left.take(piece, cut))
                if left.bytes <= 0 or (left.none and not piece.is_text):
                    break


class _Rest:
    """The number of documents and bytes that a sample may still take."""

    def __init__(self, sample: Sample) -> None:
        self.documents: float = float("inf") if sample.max_documents is None else sample.max_documents
        self.bytes: float = float("inf") if sample.max_bytes is None else sample.max_bytes

    @property
    def none(self) -> bool:
        return self.documents <= 0 or self.bytes <= 0

    def take(self, piece: Piece, cut: Cut) -> memoryview | Texts:
        if not isinstance(piece.data, memoryview):
            return self._take_rows(piece.data)
        return self.take_text(piece.data, cut) if piece.is_text else self._take_records(piece.data)

    def take_text(self, data: memoryview, cut: Cut) -> memoryview:
        if len(data) > self.bytes:
            data = data[: cut(data, int(self.bytes))]
        self.bytes -= len(data)
        return data

    def _take_records(self, data: memoryview) -> memoryview:
        taken = 0
        for line in bytes(data).split(b"\n"):
            if self.none:
                break
            taken += len(line) + 1
            if line and not line.isspace():
                self.documents -= 1
                self.bytes -= len(line) + 1
        return data[:taken]

    def _take_rows(self, texts: Texts) -> Texts:
        parts = []
        for data, offsets in texts.parts:
            rows = int(min(len(offsets) - 1, self.documents))
            rows = bisect_left(offsets, offsets[0] + self.bytes, 0, rows)
            parts.append((data, offsets[: rows + 1]))
            self.documents -= rows
            self.bytes -= offsets[rows] - offsets[0]
        return Texts(parts)
