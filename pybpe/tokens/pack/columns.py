"""The tokens of rows, and what trainers other than llm.c need to know of each token.

    input_ids       | 1 2 3 | 7 8 .     (| is <|endoftext|>, . is padding, 7 8 is a part of a longer document)
    document_ids    0 0 0 0 1 1 1 -1
    position_ids    0 1 2 3 0 1 2 0
    loss_mask       0 1 1 1 1 1 1 0

All arrays have shape (rows, tokens per row).

input_ids: in the dtype of the shards.
document_ids: int32. The number of the document, or part of one, in its row, from 0; -1 for padding. Attention within
    documents lets a token see those with the same number.
position_ids: int32. The position in the document or part, from 0 for its mark. Padding counts from 0 too, as one more
    document, so that lengths can be found from the zeros, as FlashAttention's users do.
loss_mask: uint8, for labels that are the inputs themselves, which a model shifts (`labels = where(loss_mask, input_ids,
    -100)`): 1 where the tokens before it in the row, up to the last mark, predict the token. It is 0 for padding, for
    the first token of a row, and for a mark after a part whose document continues elsewhere. It is 1 for a mark after
    the end of a document, which so teaches the model where documents end.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..._numpy import Array, numpy
from .layout import Placed


@dataclass(frozen=True)
class Columns:
    """The columns of some rows, and the number of documents that begin in each row."""

    input_ids: Array
    document_ids: Array
    position_ids: Array
    loss_mask: Array
    begins: Array

    def part(self, rows: slice) -> Columns:
        """Returns some of the rows."""
        return Columns(**{name: column[rows] for name, column in vars(self).items()})


def columns_of(ids: Array, placed: Placed, size: int, mark: int, pad: int) -> Columns:
    """Returns the columns of rows.

    Args:
        ids: the tokens of the group.
        placed: its pieces, in the order of rows.
        size: tokens per row.
        mark: the id that begins each piece.
        pad: the id of the padding token.
    """
    pieces, rows, shape = placed.pieces, placed.rows, (placed.count, size)
    lengths = pieces.texts + 1
    before = numpy.cumsum(lengths) - lengths  # tokens in all pieces before this one
    first = numpy.searchsorted(rows, rows)  # the first piece of the same row
    within = numpy.arange(int(lengths.sum())) - numpy.repeat(before, lengths)
    places = numpy.repeat(rows * size + before - before[first], lengths) + within

    input_ids = numpy.full(shape, pad, dtype=ids.dtype)
    taken = ids[numpy.repeat(pieces.starts - 1, lengths) + within]
    taken[before] = mark
    input_ids.reshape(-1)[places] = taken

    document_ids = numpy.full(shape, -1, dtype=numpy.int32)
    document_ids.reshape(-1)[places] = numpy.repeat(numpy.arange(len(rows)) - first, lengths)

    used = numpy.bincount(rows, lengths, placed.count).astype(numpy.int32)
    position_ids = numpy.arange(size, dtype=numpy.int32) - used[:, None]
    position_ids.reshape(-1)[places] = within

    loss_mask = numpy.zeros(shape, dtype=numpy.uint8)
    loss_mask.reshape(-1)[places] = within > 0
    ended = numpy.append(False, pieces.ends[:-1] & (rows[1:] == rows[:-1])) if len(rows) else pieces.ends
    loss_mask.reshape(-1)[places[before[ended]]] = 1
    return Columns(input_ids, document_ids, position_ids, loss_mask, _counts(rows, pieces.begins, placed.count))


def _counts(rows: Array, begins: Array, count: int) -> Array:
    return numpy.bincount(rows, begins, count).astype(numpy.int64)


def spare_rows(count: int, size: int, mark: int, pad: int, dtype: str) -> Columns:
    """Returns rows that have only a mark and padding."""
    input_ids = numpy.full((count, size), pad, dtype=dtype)
    input_ids[:, :1] = mark
    document_ids = numpy.full((count, size), -1, dtype=numpy.int32)
    document_ids[:, :1] = 0
    position_ids = numpy.broadcast_to(numpy.maximum(numpy.arange(size, dtype=numpy.int32) - 1, 0), (count, size))
    zeros = numpy.zeros((count, size), dtype=numpy.uint8)
    return Columns(input_ids, document_ids, position_ids, zeros, numpy.zeros(count, dtype=numpy.int64))
