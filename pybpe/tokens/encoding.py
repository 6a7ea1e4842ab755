"""Encodes tasks into segments, ids with the split that they belong to."""

from __future__ import annotations

import string
import zlib
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate, chain, groupby, pairwise
from typing import NamedTuple

from .. import _binding
from ..arguments import Text
from ..model import END_OF_TEXT, PLAIN
from ..reading.charset import Doubts
from ..reading.documents import RECORDS, Kinds, Seen, overlaps
from ..reading.files import SmallFiles
from ..reading.input_file import InputFile
from ..reading.pieces import PIECE_BYTES
from ..reading.planning import Piece, Task, add_documents, divide, lent_divider, pieces_of, shares_of
from ..reading.rows import Texts
from ..support.parallel import map_ordered
from ..tokenizer import Tokenizer
from ..tokenizer.encoding import AllowedSpecial
from .results import TYPECODES, Encoded, Segment

_LEAST_SIZE = 1 << 10  # the minimum size to count for a piece, since it takes more memory than its text
_SMALL = 1 << 12  # bytes of a piece
_ALONE = -1  # instead of the split of a piece that is not small
_NEUTRAL = string.punctuation.replace("_", "")  # neither white space nor part of a word


class TaskEncoder(NamedTuple):
    """Encodes tasks and pieces. An executor sends this object to its workers."""

    tok: Tokenizer
    kinds: Kinds  # how documents are separated
    splits: Sequence[float]  # the shares, for documents that are split by hash
    dtype: str  # the dtype of the ids, "uint16" or "uint32"
    joins: bool = True  # whether documents get marks between them; otherwise their ids are concatenated

    def task_pieces(self, task: Task) -> Iterator[Piece]:
        """Yields the pieces of a task, in order."""
        return pieces_of(task, self.kinds, self.tok._encoder.cut)

    def sums(self, task: Task) -> list[int]:
        """Returns the checksums of what a task reads, as its results have them."""
        return [_sum(piece) for piece in self.task_pieces(task)] if is_part(task) else []

    def segments(self, piece: Piece) -> list[Segment]:
        """Returns the segments of a piece.

        Raises:
            FormatError: a line is not a record.
        """
        if not piece.divided:
            assert piece.split is not None and isinstance(piece.data, memoryview)
            ids = self._ids(piece.data, "all")
            return [self._segment(piece, piece.split, ids, len(piece.data))]
        mark, records = self.tok.model.eot, piece.kind in RECORDS
        if mark is not None and self.joins and not (self.tok.model.matching and self._mark_matters):
            others: Iterable[str] = [mark] if records else self.tok.special_tokens
            if not any(overlaps(special, mark) for special in others):  # otherwise some marks would not be found
                with lent_divider(self.kinds, mark.encode(), shares_of(piece, self.splits)) as divider:
                    if add_documents(divider, piece):
                        found = self._joined_segments(divider, piece, {mark} if records else "all")
                        if found is not None:
                            return found
        return self._listed_segments(piece)

    def _listed_segments(self, piece: Piece) -> list[Segment]:
        """Returns the segments of a divided piece whose documents are encoded one by one: one segment per split with
        marks between them, or one per document."""
        found, mark = list[Segment](), self.tok.eot_token
        for split, documents in divide(piece, self.kinds, self.splits):
            ids, ends = self._encode(documents, piece.kind)
            parts = zip((ids[start:end] for start, end in pairwise([0, *ends])), map(len, documents))
            if self.joins and mark is not None:
                joined, size = array(TYPECODES[self.dtype]), 0
                for number, (part, length) in enumerate(parts):
                    if number > 0:
                        joined.append(mark)
                        size += self._mark_bytes
                    joined += part
                    size += length
                found.append(self._segment(piece, split, joined, size))
            elif self.tok.model.changes_text or (mark is not None and _binding.count_id(ids, mark)):
                found += [self._segment(piece, split, part, length) for part, length in parts]
            else:
                found += [Segment(split, part, 0, length, True) for part, length in parts]
        return found

    def _joined_segments(
        self, divider: _binding.Divider, piece: Piece, allowed: AllowedSpecial
    ) -> list[Segment] | None:
        """Returns the segments of a piece whose documents a divider has, encoded with one call per split; None if one
        of its records contains the mark's text, which is not a mark there."""
        found = []
        for place in range(divider.splits):
            text, documents = divider.joined(place)
            if not documents:
                continue
            ids = self._ids(text, allowed)
            segment = self._segment(piece, place if piece.split is None else piece.split, ids, len(text))
            if allowed != "all" and segment.marks != documents - 1:
                return None
            found.append(segment)
        return found

    def _ids(self, text: Text, allowed: AllowedSpecial) -> array[int]:
        """Returns the ids of a text in which some special tokens are recognized."""
        encoder = self.tok._encoder
        return encoder.compact(text, encoder.allowed((), allowed), TYPECODES[self.dtype])

    def _encode(self, documents: Sequence[bytes], kind: str) -> tuple[array[int], Sequence[int]]:
        """Returns the ids of documents, and the index at which those of each one end."""
        encoder = self.tok._encoder
        specials = encoder.allowed((), () if kind in RECORDS else "all")
        return encoder.compact_batch(documents, specials, TYPECODES[self.dtype])

    def _segment(self, piece: Piece, split: int, ids: array[int], size: int) -> Segment:
        """Returns the size of the text. `size` is the bytes that were encoded, marks included."""
        marks = _binding.count_id(ids, self.tok.eot_token) if self.tok.eot_token is not None else 0
        text_bytes = size - marks * self._mark_bytes
        if self.tok.model.changes_text:
            text_bytes = text_length(self.tok, ids)
        return Segment(split, ids, marks, text_bytes, piece.ends_document)

    @property
    def _mark_matters(self) -> bool:
        """Whether a mark next to a text may change which special tokens are found in it, or the text may change whether
        the mark is found. Only special tokens with flags look at the text next to them."""
        mark = self.tok.model.eot or ""
        rules = self.tok.model.matching.get(mark, PLAIN)
        is_neutral = mark[:1] in _NEUTRAL and mark[-1:] in _NEUTRAL
        return not is_neutral or rules.strips or rules.single_word

    @property
    def _mark_bytes(self) -> int:
        return len((self.tok.model.eot or END_OF_TEXT).encode())


def segments_of(encoder: TaskEncoder, pieces: Iterable[Piece]) -> list[Segment]:
    """Returns the segments of pieces, in order. Small texts, as of compressed files, become one piece, because a call
    to C for each would take longer than the encoding."""
    mark = None if (eot := encoder.tok.model.eot) is None else eot.encode()
    found = list[Segment]()
    for split, some in groupby(pieces, partial(_split_if_small, mark)):
        if split != _ALONE:
            small = list(some)
            ends = array("Q", accumulate((len(piece.text) for piece in small), initial=0))
            texts = Texts([(memoryview(b"".join(piece.text for piece in small)), memoryview(ends))])
            some = iter([small[0]._replace(data=texts, divided=True)])
        found += chain.from_iterable(map(encoder.segments, some))
    return found


def _split_if_small(mark: bytes | None, piece: Piece) -> int | None:
    """Returns the split of a piece that is one small document without marks, or _ALONE."""
    if piece.kind in ("special", "file") and piece.ends_document and isinstance(piece.data, memoryview):
        if 0 < len(piece.data) <= _SMALL and (mark is None or mark not in bytes(piece.data)):
            return piece.split
    return _ALONE


# ----------------------------------------------------------------------------------------------------
# Tasks


def run_local(encoder: TaskEncoder, workers: int | None, tasks: Iterable[Task], doubts: Doubts) -> Iterator[Encoded]:
    """Encodes tasks with threads, which share a task piece by piece."""

    def items() -> Iterator[tuple[list[Piece], bool, bool]]:
        for task in tasks:
            is_summed = is_part(task)
            for some in _groups(encoder.task_pieces(task)):
                yield some, is_summed, False
            yield [], False, True

    return map_ordered(partial(_encode, encoder, doubts), items(), workers)


def _encode(encoder: TaskEncoder, doubts: Doubts, item: tuple[Sequence[Piece], bool, bool]) -> Encoded:
    some, is_summed, ends_task = item
    sums = [_sum(piece) for piece in some] if is_summed else []
    segments = segments_of(encoder, some)  # which also notes the records
    size, doubt, seen = 0, None, list[Seen]()
    for piece in some:
        size, doubt = size + piece.size, doubt or piece.doubt(doubts.look)
        if piece.seen.end:
            seen.append(piece.seen)
    return Encoded(segments, size, ends_task, doubt, seen, sums)


def is_part(task: Task) -> bool:
    """Returns whether a task reads a part of a plain file: if that grows, the part may stay the same."""
    return any(part.end is not None and is_plain(part.file) for part in task)


def is_plain(file: InputFile | SmallFiles) -> bool:
    """Returns whether a file has texts or JSON lines as they are, on this machine."""
    return isinstance(file, InputFile) and not (file.remote or file.has_rows or file.is_sequential)


def _sum(piece: Piece) -> int:
    """Returns the size and the CRC-32 of a piece; 0 for rows and small files, which tasks name with their versions."""
    return len(piece.data) << 32 | zlib.crc32(piece.data) if isinstance(piece.data, memoryview) else 0


def _groups(pieces: Iterable[Piece]) -> Iterator[list[Piece]]:
    """Groups small pieces together: one group is one thread's unit of work."""
    group: list[Piece] = []
    size = 0
    for piece in pieces:
        group.append(piece)
        size += max(piece.size, _LEAST_SIZE)
        if size >= PIECE_BYTES // 2:
            yield group
            group, size = [], 0
    if group:
        yield group


def task_results(encoder: TaskEncoder, task: Task) -> Iterator[Encoded]:
    """Yields the results of a task's pieces, in groups."""
    is_summed = is_part(task)
    for some in _groups(encoder.task_pieces(task)):
        yield _encode(encoder, Doubts(), (some, is_summed, False))


# ----------------------------------------------------------------------------------------------------
# Sizes of texts


def text_length(tok: Tokenizer, ids: array[int] | memoryview) -> int:
    """Returns the bytes of text that ids of type H or I represent; <|endoftext|> counts as 0."""
    length = tok._decoder.length(ids)
    if tok.eot_token is not None:
        length -= _binding.count_id(ids, tok.eot_token) * len(tok.decode_single_token_bytes(tok.eot_token))
    return length
