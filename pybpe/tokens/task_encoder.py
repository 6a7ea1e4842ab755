"""The tokens of a task: pieces of text become segments, which are ids of one split, and these the results of
task_results.py.

A result has the ids by split, with <|endoftext|> between documents, and where documents begin among them. Input
may have this mark before documents, after them, or at both ends of a file. Whatever the input has, a non-empty
document gets exactly one, before it ("prepend") or after it ("append"), or none at all ("none").

A task does not know whether its first document began in a task before it. It writes its tokens as if none did. Whoever
reads the results in order knows, and changes at most one token, the first of a split in a task:

    the task begins with    and a document goes on          otherwise
    text                    no mark before it ("prepend")   as written; a document begins
    a mark                  a mark before it ("append")     as written
"""

from __future__ import annotations

import string
import sys
import zlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, chain, groupby, pairwise
from typing import Any, NamedTuple

from .. import _binding
from .._lazy import numpy
from ..arguments import Text
from ..errors import FormatError
from ..model import END_OF_TEXT, PLAIN
from ..reading.charset import Doubts
from ..reading.cuts import PIECE_BYTES
from ..reading.documents import RECORDS, Kinds, overlaps
from ..reading.files import SmallFiles
from ..reading.input_file import InputFile
from ..reading.pieces import Origins, Piece, add_documents, divide, lent_divider, origins_of, pieces_of, shares_of
from ..reading.planning import SPLIT_NAMES, Task
from ..reading.records import RecordNotes
from ..reading.rows import Texts
from ..support.parallel import map_ordered
from ..support.task_results import Order, Result, Section, packed
from ..tokenizer import Tokenizer
from ..tokenizer.encoding import AllowedSpecial

EOT_MODES = ("prepend", "append", "none")
KEEP = "keep"  # encode_files only: the ids of the text as it is, marks included
TYPECODES = {"uint16": "H", "uint32": "I"}  # of the array module, by dtype
ID_BYTES = {"uint16": 2, "uint32": 4}  # bytes per id, by dtype
_LEAST_SIZE = 1 << 10  # the minimum size to count for a piece, since it takes more memory than its text
_SMALL = 1 << 12  # bytes of a piece
_ALONE = -1  # instead of the split of a piece that is not small
_NEUTRAL = string.punctuation.replace("_", "")  # neither white space nor part of a word
_RESULT_TOKENS = 1 << 20
_TEXT, _MARK = "text", "mark"  # how the tokens of a split begin in a task, or "" if that is known from before


class Marks(NamedTuple):
    """Where the marks of a stream go."""

    mode: str  # one of EOT_MODES, or KEEP
    eot: int | None  # the id of the mark. None only if the text has none, and the mode is "none" or KEEP
    dtype: str  # of the ids


class Segment(NamedTuple):
    """The ids of a piece that go to one split."""

    split: int  # index into SPLIT_NAMES
    ids: array[int]  # an array of type H or I, with the mark, <|endoftext|>, between documents
    marks: int  # the number of marks in `ids`
    text_bytes: int  # the size of the encoded text, without marks
    ends_document: bool  # whether a document ends with it
    # If wanted, of all documents in it, also of a first one that began before it. They count what Encoded.reads has.
    origins: Origins = ((), ())


Read = tuple[str, int, bool, bool]
"""Records that were read: the file, how many there are, and whether the first one began before them and the last one
ends after them, as in parts of a text that is cut between words."""


class Encoded(NamedTuple):
    """Some work of a run."""

    segments: Sequence[Segment]  # in order
    size: int  # the amount of input read for them, such as bytes of text
    ends_task: bool = False  # whether a task ends with them
    doubt: str | None = None  # a warning about a file that is not UTF-8 (see charset.py)
    notes: Sequence[RecordNotes] = ()  # the records of the pieces, in order
    sums: Sequence[int] = ()  # checksums of the text that was read, if the task reads a part of a file
    reads: Sequence[Read] = ()  # if the origins of documents are wanted


class TaskEncoder(NamedTuple):
    """Encodes tasks and pieces. An executor sends this object to its workers."""

    tok: Tokenizer
    kinds: Kinds  # how documents are separated
    splits: Sequence[float]  # the shares, for documents that are split by hash
    marks: Marks  # with KEEP, the ids of documents are concatenated

    def results(self, order: Order) -> Iterator[_binding.Data]:
        """Yields the results of a task, in parts, on a worker."""
        found = map(partial(self._encoded, Doubts()), self._groups(order.task))
        return task_data(found, len(self.splits), self.marks, order.stamp)

    def encode(self, workers: int | None, tasks: Iterable[Task], doubts: Doubts) -> Iterator[Encoded]:
        """Encodes tasks with threads, which share a task piece by piece."""
        groups = (group for task in tasks for group in chain(self._groups(task), [None]))
        return map_ordered(partial(self._encoded, doubts), groups, workers)

    def sums(self, task: Task) -> list[int]:
        """Returns the checksums of the inputs of a task, as its results have them."""
        return [_sum(piece) for some, _ in self._groups(task) for piece in some] if is_part(task) else []

    def _groups(self, task: Task) -> Iterator[tuple[list[Piece], bool]]:
        """Yields the pieces of a task, in order, small ones together: a group is a thread's unit of work. Also says
        whether checksums of them are needed."""
        group, size, is_summed = list[Piece](), 0, is_part(task)
        for piece in pieces_of(task, self.kinds, self.tok._encoder.cut):
            group.append(piece)
            size += max(piece.size, _LEAST_SIZE)
            if size >= PIECE_BYTES // 2:
                yield group, is_summed
                group, size = [], 0
        if group:
            yield group, is_summed

    def _encoded(self, doubts: Doubts, group: tuple[list[Piece], bool] | None) -> Encoded:
        """Encodes a group. None ends a task."""
        if group is None:
            return Encoded([], 0, ends_task=True)
        pieces, is_summed = group
        sums = list(map(_sum, pieces)) if is_summed else []
        segments, reads = self._segments_of(pieces)  # which also notes the records
        size, doubt, notes = 0, None, list[RecordNotes]()
        for piece in pieces:
            size, doubt = size + piece.size, doubt or piece.doubt(doubts.look)
            if piece.notes.end:
                notes.append(piece.notes)
        return Encoded(segments, size, False, doubt, notes, sums, reads)

    def _segments_of(self, pieces: Iterable[Piece]) -> tuple[list[Segment], list[Read]]:
        """Returns the segments of pieces, in order, and the records in them if origins are wanted. Small texts, as of
        compressed files, become one piece, because a call to C per text would take longer than the encoding."""
        mark = None if (eot := self.tok.model.eot) is None else eot.encode()
        found, reads, records = list[Segment](), list[Read](), 0
        for split, some in groupby(pieces, partial(_split_if_small, mark)):
            if split != _ALONE:
                small = list(some)
                ends = array("Q", accumulate((len(piece.text) for piece in small), initial=0))
                texts = Texts(
                    [(memoryview(b"".join(piece.text for piece in small)), memoryview(ends))],
                    paths=[piece.path for piece in small],
                )
                some = iter([small[0]._replace(data=texts, divided=True)])
            for piece in some:
                segments = self.segments(piece)
                if self.kinds.has_origins:
                    if records:
                        segments = [
                            segment._replace(
                                origins=([records + row for row in segment.origins[0]], segment.origins[1])
                            )
                            for segment in segments
                        ]
                    reads += (more := _reads_of(piece, segments, self.tok.eot_token))
                    records += sum(read[1] for read in more)
                found += segments
        return found, reads

    def segments(self, piece: Piece) -> list[Segment]:
        """Returns the segments of a piece.

        Raises:
            FormatError: a line is not a record.
        """
        if not piece.divided:
            assert piece.split is not None and isinstance(piece.data, memoryview)
            ids = self._ids(piece.data, "all")
            segment = self._segment(piece, piece.split, ids, len(piece.data))
            if self.kinds.has_origins:
                count = range(len(text_starts(ids, self.tok.eot_token)))
                segment = segment._replace(origins=([0] * len(count) if piece.kind == "file" else count, ()))
            return [segment]
        mark, records, found = self.tok.model.eot, piece.kind in RECORDS, None
        if mark is not None and self._can_join(mark, records):
            with lent_divider(self.kinds, mark.encode(), shares_of(piece, self.splits)) as divider:
                if add_documents(divider, piece):
                    found = self._joined_segments(divider, piece, {mark} if records else "all")
        return self._listed_segments(piece) if found is None else found

    def _can_join(self, mark: str, records: bool) -> bool:
        """Returns whether documents with marks between them can be encoded together: the same special tokens are found
        as in each document alone, and every mark. Only special tokens with flags look at the text next to them."""
        rules = self.tok.model.matching.get(mark, PLAIN)
        is_neutral = mark[:1] in _NEUTRAL and mark[-1:] in _NEUTRAL
        if self.tok.model.matching and (not is_neutral or rules.strips or rules.single_word):
            return False
        others: Iterable[str] = [mark] if records else self.tok.special_tokens
        return self.marks.mode != KEEP and not any(overlaps(special, mark) for special in others)

    def _listed_segments(self, piece: Piece) -> list[Segment]:
        """Returns the segments of a divided piece whose documents are encoded one by one: one segment per split with
        marks between them, or one per document."""
        found, mark, joins = list[Segment](), self.tok.eot_token, self.marks.mode != KEEP
        encoder, typecode = self.tok._encoder, TYPECODES[self.marks.dtype]
        specials = encoder.allowed((), () if piece.kind in RECORDS else "all")
        for split, documents, origins in divide(piece, self.kinds, self.splits):
            ids, ends = encoder.compact_batch(documents, specials, typecode)
            if not joins:  # nothing goes between them
                found.append(self._segment(piece, split, ids, sum(map(len, documents))))
                continue
            parts = list(zip((ids[start:end] for start, end in pairwise([0, *ends])), map(len, documents)))
            each: list[Origins] = [((), ())] * len(parts)
            if self.kinds.has_origins:
                for number, (row, (part, _)) in enumerate(zip(origins[0], parts)):
                    count = len(text_starts(part, mark))  # if the text has marks, it is several documents
                    each[number] = [row] * count, [origins[1][number]] * count if origins[1] else ()
            if mark is not None:
                joined, size = array(typecode), 0
                for number, (part, length) in enumerate(parts):
                    if number > 0:
                        joined.append(mark)
                        size += self._mark_bytes
                    joined += part
                    size += length
                rows, keys = (list(chain.from_iterable(some)) for some in zip(*each))
                found.append(self._segment(piece, split, joined, size)._replace(origins=(rows, keys)))
            elif self.tok.model.changes_text:
                some = [self._segment(piece, split, part, length) for part, length in parts]
                found += [segment._replace(origins=more) for segment, more in zip(some, each)]
            else:
                found += [Segment(split, part, 0, length, True, more) for (part, length), more in zip(parts, each)]
        return found

    def _joined_segments(
        self, divider: _binding.Divider, piece: Piece, allowed: AllowedSpecial
    ) -> list[Segment] | None:
        """Returns the segments of a piece whose documents a divider has, encoded with one call per split, or None if
        one of its records contains the mark's text, which is not a mark there, or one of its texts, if their origins
        are wanted."""
        found = []
        for place in range(divider.splits):
            text, documents = divider.joined(place)
            if not documents:
                continue
            ids = self._ids(text, allowed)
            segment = self._segment(piece, place if piece.split is None else piece.split, ids, len(text))
            if segment.marks != documents - 1 and (allowed != "all" or self.kinds.has_origins):
                return None
            found.append(segment._replace(origins=origins_of(divider, piece, place, self.kinds)))
        return found

    def _ids(self, text: Text, allowed: AllowedSpecial) -> array[int]:
        """Returns the ids of a text, with some special tokens recognized."""
        encoder = self.tok._encoder
        return encoder.compact(text, encoder.allowed((), allowed), TYPECODES[self.marks.dtype])

    def _segment(self, piece: Piece, split: int, ids: array[int], size: int) -> Segment:
        """Returns ids as a segment. `size` is the bytes that were encoded, marks included."""
        marks = _binding.count_id(ids, self.tok.eot_token) if self.tok.eot_token is not None else 0
        text_bytes = size - marks * self._mark_bytes
        if self.tok.model.changes_text:
            text_bytes = text_length(self.tok, ids)
        return Segment(split, ids, marks, text_bytes, piece.ends_document)

    @property
    def _mark_bytes(self) -> int:
        return len((self.tok.model.eot or END_OF_TEXT).encode())


def _reads_of(piece: Piece, segments: Sequence[Segment], mark: int | None) -> list[Read]:
    """Returns the records of a piece, whose segments are given."""
    if not isinstance(piece.data, memoryview) and piece.data.paths:
        return [(path, 1, False, False) for path in piece.data.paths]
    if piece.divided:
        return [(piece.path, piece.notes.records, False, False)]
    ((_, ids, *_),) = segments
    if not ids:
        return []
    if piece.kind == "file":
        return [(piece.path, 1, True, True)]
    return [(piece.path, len(segments[0].origins[0]), ids[0] != mark, ids[-1] != mark)]


def text_starts(ids: array[int], mark: int | None) -> Sequence[int]:
    """Returns where ids of texts begin: at the start, and after marks."""
    if mark is None or not _binding.count_id(ids, mark):
        return range(min(1, len(ids)))
    is_text = numpy.frombuffer(ids, ids.typecode) != mark
    is_text[1:] &= ~is_text[:-1]
    return numpy.flatnonzero(is_text).tolist()  # type: ignore[no-any-return]


def _split_if_small(mark: bytes | None, piece: Piece) -> int | None:
    """Returns the split of a piece that is one small document without marks, or _ALONE."""
    if piece.kind in ("special", "file") and piece.ends_document and isinstance(piece.data, memoryview):
        if 0 < len(piece.data) <= _SMALL and (mark is None or mark not in bytes(piece.data)):
            return piece.split
    return _ALONE


def is_part(task: Task) -> bool:
    """Returns whether a task reads a part of a plain file: if that grows, the part may stay the same."""
    return any(part.end is not None and is_plain(part.file) for part in task)


def is_plain(file: InputFile | SmallFiles) -> bool:
    """Returns whether a file has text or JSON lines as they are, on this machine."""
    return isinstance(file, InputFile) and not (file.remote or file.has_rows or file.is_sequential)


def _sum(piece: Piece) -> int:
    """Returns the size and the CRC-32 of a piece. 0 for rows and small files, which tasks name with their versions."""
    return len(piece.data) << 32 | zlib.crc32(piece.data) if isinstance(piece.data, memoryview) else 0


def text_length(tok: Tokenizer, ids: array[int] | memoryview) -> int:
    """Returns the bytes of text that ids of type H or I represent; <|endoftext|> counts as 0."""
    length = tok._decoder.length(ids)
    if tok.eot_token is not None:
        length -= _binding.count_id(ids, tok.eot_token) * len(tok.decode_single_token_bytes(tok.eot_token))
    return length


# ----------------------------------------------------------------------------------------------------
# Marks


class EotPlacer:
    """Places the marks of one split's stream.

    Args:
        mode, eot: as in Marks.
    """

    def __init__(self, mode: str, eot: int | None) -> None:
        self._mode = "none" if eot is None else mode
        self._eot = _binding.NO_ID if eot is None else eot
        self.is_open = False  # whether the last token belongs to a document that has not ended

    def place(self, ids: array[int], marks: int) -> tuple[array[int] | memoryview, array[int] | memoryview]:
        """Returns the next tokens of the stream, with the marks where they belong.

        Args:
            ids: an array of type H or I.
            marks: the number of marks among them.

        Returns:
            The tokens, and where in them documents begin (at the mark, if it comes first), of type Q.
        """
        if self._mode == KEEP:
            self.is_open |= len(ids) > 0
            return ids, array("Q")
        if not marks and (self.is_open or not ids):  # nothing to do, as for most pieces of long documents
            return ids, array("Q")
        if not marks:  # one document begins
            self.is_open = True
            return (array(ids.typecode, (self._eot,)) + ids if self._mode == "prepend" else ids), array("Q", (0,))
        placed, starts, self.is_open = _binding.place_marks(ids, self._eot, marks, self._mode, self.is_open)
        return placed, starts

    def end_document(self, typecode: str) -> array[int]:
        """Returns the mark, if any, that the end of a document needs, as an array of the given type."""
        was_open, self.is_open = self.is_open, False
        return array(typecode, [self._eot] if was_open and self._mode == "append" else [])


# ----------------------------------------------------------------------------------------------------
# Writing


class SplitCounts(NamedTuple):
    """The counts of a split in the header of a result."""

    tokens: int
    documents: int
    text_bytes: int
    begins: str  # how its tokens begin: _TEXT, _MARK or ""
    is_open: bool | None  # whether its last document may go on, or None if nothing of the split has been read


class _Split:
    """The tokens of a split in a task, and the tokens of its next result."""

    def __init__(self, marks: Marks) -> None:
        self._marks, self._placer = marks, EotPlacer(marks.mode, marks.eot)
        self._has_begun = False
        self._empty()

    def _empty(self) -> None:
        self._begins, self.tokens, self._text_bytes = "", 0, 0
        self._ids: list[array[int] | memoryview] = []
        self._starts, self._rows, self._keys = array("Q"), array("Q"), list[bytes | None]()

    def add(self, segment: Segment, records: int) -> None:
        """Adds a segment. `records` is the number of those before it in the result.

        Raises:
            FormatError: a document has no tokens, so that the origins of the others are uncertain.
        """
        if not self._has_begun and (segment.ids or segment.ends_document):
            self._has_begun = True
            self._begins = _TEXT if segment.ids and segment.ids[0] != self._marks.eot else _MARK
        goes_on = self._placer.is_open and len(segment.ids) > 0 and segment.ids[0] != self._marks.eot
        ids, starts = self._placer.place(segment.ids, segment.marks)
        if (rows := segment.origins[0]) and segment.ids:
            if len(rows) != len(starts) + goes_on:
                told = f"{len(rows)} records became {len(starts) + goes_on} documents"
                raise FormatError(f"{told}: the tokenizer has no tokens for some, so their origins are uncertain")
            if keys := segment.origins[1]:
                self._keys += [*[None] * (len(self._rows) - len(self._keys)), *keys[goes_on:]]  # text has no ids
            some = array("Q", rows[goes_on:])
            self._rows.frombytes(_binding.shift_starts(some, records).cast("B") if records else some.tobytes())
        if len(starts) == 1:  # as of every small file: a call to C would take longer
            self._starts.append(self.tokens + starts[0])
        elif starts:
            self._starts.frombytes(_binding.shift_starts(starts, self.tokens).cast("B"))
        self._ids.append(ids)
        self.tokens += len(ids)
        self._text_bytes += segment.text_bytes
        if segment.ends_document and (mark := self._placer.end_document(segment.ids.typecode)):
            self._ids.append(mark)
            self.tokens += 1

    def result(self, name: str) -> tuple[SplitCounts, dict[str, list[_binding.Data]]]:
        """Returns the counts and the sections of the next result, and begins another one. `name` is the split's."""
        is_open = self._placer.is_open if self._has_begun else None
        counts = SplitCounts(self.tokens, len(self._starts), self._text_bytes, self._begins, is_open)
        sections = {name: [_little(ids) for ids in self._ids], f"{name} starts": [_little(self._starts)]}
        if self._rows:
            sections[f"{name} rows"] = [_little(self._rows)]
        if self._keys:
            data, sizes = with_sizes([*self._keys, *[None] * (len(self._rows) - len(self._keys))])
            sections |= {f"{name} ids": [data], f"{name} id sizes": [_little(sizes)]}
        self._empty()
        return counts, sections


def task_data(found: Iterable[Encoded], splits: int, marks: Marks, stamp: str = "") -> Iterator[_binding.Data]:
    """Yields the results of a task, in the form of task_results.py, in parts. There is one result per
    _RESULT_TOKENS, because a compressed file is one task, however long its text is. `stamp` is as in Order."""
    streams = [_Split(marks) for _ in range(splits)]
    header = _header(stamp)
    for each in found:
        for segment in each.segments:
            streams[segment.split].add(segment, header["records"])
        header["records"] += sum(read[1] for read in each.reads)
        header["reads"] += each.reads
        header["size"] += each.size
        header["doubts"] += [each.doubt] if each.doubt is not None else []
        header["notes"] += [some.plain() for some in each.notes]
        header["sums"] += each.sums
        if sum(stream.tokens for stream in streams) >= _RESULT_TOKENS:
            yield from _result(streams, header)
            header = _header(stamp)
    yield from _result(streams, header)


def _header(stamp: str) -> dict[str, Any]:
    return {"stamp": stamp, "size": 0, "doubts": [], "notes": [], "sums": [], "reads": [], "records": 0}


def _result(streams: Sequence[_Split], header: dict[str, Any]) -> list[_binding.Data]:
    counts, sections = list[SplitCounts](), dict[str, list[_binding.Data]]()
    for name, stream in zip(SPLIT_NAMES, streams):
        some, more = stream.result(name)
        counts.append(some)
        sections |= more
    return packed({**header, "splits": counts}, sections)


def _little(items: array[int] | memoryview) -> _binding.Data:
    """Returns integers as files have them."""
    if sys.byteorder == "big":  # pragma: no cover (other machines)
        items = array(memoryview(items).format, items)
        items.byteswap()
    return memoryview(items).cast("B") if len(items) else b""


# ----------------------------------------------------------------------------------------------------
# Reading


def counts_in(header: Mapping[str, Any]) -> list[SplitCounts]:
    """Returns the counts of every split in the header of a result."""
    return [SplitCounts(*counts) for counts in header["splits"]]


class Stream:
    """How far a split has come, in the order of the results.

    Attributes:
        tokens, documents, text_bytes: the numbers so far.
        added: 1 if a mark comes before the tokens of the last result, -1 if its first token is left out, otherwise 0.
        goes_on: whether the first document of the last result began before it.
    """

    def __init__(self, marks: Marks) -> None:
        self._mode = "none" if marks.eot is None and marks.mode != KEEP else marks.mode
        self._is_open = False
        self.tokens = self.documents = self.text_bytes = self.added = 0
        self.goes_on = False

    def take(self, counts: SplitCounts) -> None:
        """Takes the next result, with the counts of this split in its header."""
        tokens, documents, text_bytes, begins, is_open = counts
        is_marked = self._is_open and begins == _MARK and self._mode == "append"
        self.goes_on = self._is_open and begins == _TEXT and self._mode != KEEP
        self.added = is_marked - (self.goes_on and self._mode == "prepend")
        self.tokens += tokens + self.added
        self.documents += documents - self.goes_on
        self.text_bytes += text_bytes
        if is_open is not None:
            self._is_open = is_open


def read_ids(section: Section, dtype: str) -> array[int]:
    """Returns the ids of a section."""
    return _items(section, TYPECODES[dtype])


def part_of(section: Section, ids: array[int], start: int, end: int) -> Section:
    """Returns a part of a section, whose ids are given, as a section: who reads it need not read the rest."""
    data = memoryview(_little(ids[start:end]))
    return Section(section.path, section.at + start * ids.itemsize, data.nbytes, zlib.crc32(data))


def read_starts(result: Result, split: int) -> array[int]:
    """Returns where documents begin among the tokens of a split in a result."""
    return _items(result.sections[f"{SPLIT_NAMES[split]} starts"], "Q")


def read_origins(result: Result, split: int) -> tuple[array[int], tuple[bytes, array[int]] | None]:
    """Returns the numbers of the records that the documents of a split in a result came from, counted in `reads` of its
    header, and their ids with their sizes, as `with_sizes` returns them, if there are any."""
    name = SPLIT_NAMES[split]
    rows, ids = result.sections.get(f"{name} rows"), result.sections.get(f"{name} ids")
    found = None if ids is None else (ids.read(), _items(result.sections[f"{name} id sizes"], "q"))
    return _items(rows, "Q") if rows else array("Q"), found


def with_sizes(texts: Sequence[bytes | None]) -> tuple[bytes, array[int]]:
    """Returns texts one after another, and their sizes, -1 for None."""
    return b"".join(filter(None, texts)), array("q", [-1 if text is None else len(text) for text in texts])


def _items(section: Section, typecode: str) -> array[int]:
    items = array(typecode, section.read())
    if sys.byteorder == "big":  # pragma: no cover (other machines)
        items.byteswap()
    return items
