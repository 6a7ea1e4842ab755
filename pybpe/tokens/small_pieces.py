"""Encodes small files many at a time: one call to C for each would take longer than the encoding."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import pairwise

from .. import _binding
from ..reading.planned_pieces import PlannedPiece
from ..reading.splits import hash_split
from ..tokenizer import Tokenizer
from .encoding import Segment, TaskEncoder
from .spool import TYPECODES

_SMALL = 1 << 12  # bytes of a piece
_MANY = 1 << 20  # bytes of the pieces that are encoded at once


def segments_of(encoder: TaskEncoder, pieces: Iterable[PlannedPiece]) -> list[Segment]:
    """Returns the segments of pieces, in order: those that `encoder.segments` returns for each."""
    found: list[Segment] = []
    group: list[PlannedPiece] = []
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


def _small_document(encoder: TaskEncoder, piece: PlannedPiece) -> bytes | None:
    """Returns the text of a small piece that is one document without marks, or None."""
    if not piece.ends_document or not isinstance(piece.data, memoryview) or not 0 < len(piece.data) <= _SMALL:
        return None
    if piece.kind not in ("special", "file"):
        return None
    text, mark = bytes(piece.data), encoder.tok.model.eot
    return text if mark is None or mark.encode() not in text else None


def _segments(encoder: TaskEncoder, pieces: Sequence[PlannedPiece], documents: Sequence[bytes]) -> list[Segment]:
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
