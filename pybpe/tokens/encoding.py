"""Encodes pieces into segments: ids with the split that they belong to."""

from __future__ import annotations

import string
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .. import _binding
from .._numpy import numpy
from ..arguments import Text
from ..model import END_OF_TEXT
from ..model.matching import PLAIN
from ..reading.division import add_documents, divide, dividers, shares_of
from ..reading.documents import RECORDS, Kinds
from ..reading.planning import Piece, Task, pieces_of
from ..reading.splits import hash_split
from ..tokenizer import Tokenizer
from ..tokenizer.encoding import AllowedSpecial
from .spool import TYPECODES, Segment

_SMALL = 1 << 12  # bytes of a piece
_MANY = 1 << 20  # bytes of the pieces that are encoded at once
_NEUTRAL = string.punctuation.replace("_", "")  # neither white space nor part of a word


@dataclass(frozen=True)
class TaskEncoder:
    """Encodes tasks and pieces. An executor sends this object to its workers.

    Attributes:
        tok: the tokenizer.
        kinds: how documents are separated.
        splits: the shares, for documents that are split by hash.
        dtype: the dtype of the ids, "uint16" or "uint32".
        joins: whether documents get marks between them; otherwise their ids are concatenated.
    """

    tok: Tokenizer
    kinds: Kinds
    splits: Sequence[float]
    dtype: str
    joins: bool = True

    def task_pieces(self, task: Task) -> Iterator[Piece]:
        """Yields the pieces of a task, in order."""
        return pieces_of(task, self.kinds, self.tok._encoder.cut)

    def segments(self, piece: Piece) -> list[Segment]:
        """Returns the segments of a piece.

        Raises:
            FormatError: a line is not a record.
        """
        if not piece.divided:
            assert piece.split is not None and isinstance(piece.data, memoryview)
            ids = self._ids(piece.data, "all")
            return [self._segment(piece, piece.split, ids, len(piece.data))]
        found = self._joined_segments(piece)
        if found is not None:
            return found
        found = []
        for split, documents in divide(piece, self.kinds, self.splits):
            joins = self.joins and self.tok.eot_token is not None
            groups = [documents] if joins else [[document] for document in documents]
            for group in groups:
                size = sum(map(len, group)) + (len(group) - 1) * self._mark_bytes
                found.append(self._segment(piece, split, self._encode(group, piece.kind), size))
        return found

    def _joined_segments(self, piece: Piece) -> list[Segment] | None:
        """Returns the segments of a divided piece, encoded with one call per split; None if its documents must be read
        or encoded one by one."""
        records = piece.kind in RECORDS
        mark = self.tok.model.eot
        if mark is None or not self.joins or self._mark_matters:
            return None
        if _may_be_missed(mark, [mark] if records else self.tok.special_tokens):
            return None
        free = dividers(mark.encode(), self.kinds.mark, self.kinds.text_key, shares_of(piece, self.splits))
        with free.take() as divider:
            if not add_documents(divider, piece):
                return None
            return self._segments_of(divider, piece, {mark} if records else "all")

    def _segments_of(self, divider: _binding.Divider, piece: Piece, allowed: AllowedSpecial) -> list[Segment] | None:
        """Returns the segments of a piece whose documents a divider has; None if one of its records contains the mark's
        text, which is not a mark there."""
        found = []
        for place in range(divider.splits):
            text, documents = divider.joined(place)
            if not documents:
                continue
            ids = self._ids(text, allowed)
            if allowed != "all" and _binding.count_id(ids, self.tok.eot_token or 0) != documents - 1:
                return None
            found.append(self._segment(piece, place if piece.split is None else piece.split, ids, len(text)))
        return found

    def _ids(self, text: Text, allowed: AllowedSpecial) -> array[int]:
        """Returns the ids of a text in which some special tokens are recognized."""
        encoder = self.tok._encoder
        return encoder.compact(text, encoder.allowed((), allowed), TYPECODES[self.dtype])

    def _encode(self, documents: Sequence[bytes], kind: str) -> array[int]:
        """Returns the ids of documents with marks between them."""
        allowed: AllowedSpecial = () if kind in RECORDS else "all"
        ids = array(TYPECODES[self.dtype])
        for number, document in enumerate(documents):
            if number > 0:
                ids.append(self.tok.eot_token or 0)
            ids.extend(self._ids(document, allowed))
        return ids

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
        mark, matching = self.tok.model.eot or "", self.tok.model.matching
        rules = matching.get(mark, PLAIN)
        is_neutral = mark[:1] in _NEUTRAL and mark[-1:] in _NEUTRAL and not rules.strips and not rules.single_word
        return bool(matching) and not is_neutral

    @property
    def _mark_bytes(self) -> int:
        return len((self.tok.model.eot or END_OF_TEXT).encode())


def _may_be_missed(mark: str, specials: Iterable[str | None]) -> bool:
    """Returns whether a mark placed between two texts may not be found there. A special token that begins before it can
    take part of it, as "<<" does in "a<" + "<|endoftext|>", or one that is longer. So can the mark, if it overlaps
    itself."""
    return any(_reaches_into(special, mark) for special in specials if special is not None)


def _reaches_into(special: str, mark: str) -> bool:
    overlap = any(special.endswith(mark[:size]) for size in range(1, min(len(mark), len(special))))
    return overlap or (special != mark and mark in special)


# ----------------------------------------------------------------------------------------------------
# Small files, many at a time: one call to C for each would take longer than the encoding


def segments_of(encoder: TaskEncoder, pieces: Iterable[Piece]) -> list[Segment]:
    """Returns the segments of pieces, in order: those that `encoder.segments` returns for each."""
    found: list[Segment] = []
    group: list[Piece] = []
    documents: list[bytes] = []
    size = 0
    for piece in pieces:
        document = _small_document(encoder, piece)
        if document is not None:
            group.append(piece)
            documents.append(document)
            size += len(document)
        if document is None or size >= _MANY:
            found += _segments(encoder, group, documents)
            group, documents, size = [], [], 0
        if document is None:
            found += encoder.segments(piece)
    return found + _segments(encoder, group, documents)


def _small_document(encoder: TaskEncoder, piece: Piece) -> bytes | None:
    """Returns the text of a small piece that is one document without marks, or None."""
    if not piece.ends_document or not isinstance(piece.data, memoryview) or not 0 < len(piece.data) <= _SMALL:
        return None
    if piece.kind not in ("special", "file"):
        return None
    text, mark = bytes(piece.data), encoder.tok.model.eot
    return text if mark is None or mark.encode() not in text else None


def _segments(encoder: TaskEncoder, pieces: Sequence[Piece], documents: Sequence[bytes]) -> list[Segment]:
    """Returns the segments of pieces that are one document each, without marks."""
    tok = encoder.tok
    specials = tok._encoder.allowed((), "all")
    encoded = tok._encoder.compact_batch(documents, specials, TYPECODES[encoder.dtype])
    if encoded is None or tok.model.changes_text or _has_marks(tok, encoded[0]):
        return [segment for piece in pieces for segment in encoder.segments(piece)]
    ids, ends = encoded
    found = []
    for piece, document, (start, end) in zip(pieces, documents, pairwise([0, *ends])):
        split = hash_split(document, encoder.splits) if piece.split is None else piece.split
        found.append(Segment(split, ids[start:end], 0, len(document), piece.ends_document))
    return found


def _has_marks(tok: Tokenizer, ids: array[int]) -> bool:
    """Returns whether another special token has the id of the mark, and occurs."""
    return tok.eot_token is not None and _binding.count_id(ids, tok.eot_token) > 0


# ----------------------------------------------------------------------------------------------------
# Sizes of texts


def token_lengths(tok: Tokenizer) -> numpy.ndarray[Any, Any]:
    """Returns the number of bytes of each id: int64, shape (n_vocab,). <|endoftext|> is not text and counts as 0."""
    lengths = numpy.fromiter(map(len, tok.model.tokens), dtype=numpy.int64, count=tok.vocab_size)
    if tok.eot_token is not None:
        lengths[tok.eot_token] = 0
    return lengths


def text_length(tok: Tokenizer, ids: array[int] | memoryview) -> int:
    """Returns the bytes of text that ids of type H or I represent; <|endoftext|> counts as 0."""
    length = tok._decoder.length(ids)
    if tok.eot_token is not None:
        length -= _binding.count_id(ids, tok.eot_token) * len(tok.decode_single_token_bytes(tok.eot_token))
    return length
