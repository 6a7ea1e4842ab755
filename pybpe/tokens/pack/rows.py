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

from collections.abc import Iterable

from ..._numpy import Array, numpy
from ...arguments import counted

COLUMNS = ("input_ids", "document_ids", "position_ids", "loss_mask")


class Rows:
    """Some rows of a group.

    Args:
        ids: the tokens of the group.
        pieces: its pieces, in the order of rows. A row with only a mark is a piece without text.
        size: tokens per row.
        mark: the id that begins each piece.
        pad: the id of the padding token.

    Attributes:
        documents: the number of documents that begin.
        padding: the number of padding tokens.
        input_ids: the tokens.
    """

    def __init__(self, ids: Array, pieces: Array, size: int, mark: int, pad: int) -> None:
        rows, lengths = pieces["row"], pieces["text"] + 1
        before = lengths.cumsum() - lengths
        first = numpy.searchsorted(rows, rows)  # the number of the first piece of the same row
        self._numbers = (numpy.arange(len(rows)) - first).astype(numpy.int32)  # of the pieces, in their rows
        self._marks = rows * size + before - before[first]  # where the marks are
        used = numpy.bincount(rows, lengths).astype(numpy.int64)
        self._shape = len(used), size
        # Padding counts as more tokens of the last piece of its row.
        self._lengths = numpy.diff(self._marks, append=len(used) * size)
        self._paddings = size - used
        self._ends = pieces["ends"]
        self.documents, self.padding = int(pieces["begins"].sum()), int(self._paddings.sum())
        self.input_ids = self._tokens(ids, pieces["start"] - 1, mark, pad)

    def _tokens(self, ids: Array, starts: Array, mark: int, pad: int) -> Array:
        places = numpy.repeat(starts - self._marks, self._lengths)
        places += numpy.arange(len(places))
        tokens = ids.take(places, mode="clip")
        tokens[self._marks] = mark
        return self._fill(tokens, pad)

    def _fill(self, column: Array, padding: Array | int) -> Array:
        """Returns a column with its shape, and with these values where padding is."""
        ends = numpy.arange(1, len(self._paddings) + 1) * self._shape[1] - self._paddings.cumsum()
        column[numpy.repeat(ends, self._paddings) + numpy.arange(self.padding)] = padding
        return column.reshape(self._shape)

    @property
    def document_ids(self) -> Array:
        """The number of each token's document or part."""
        return self._fill(numpy.repeat(self._numbers, self._lengths), -1)

    @property
    def position_ids(self) -> Array:
        """The position of each token in its document or part."""
        places = numpy.arange(self._shape[0] * self._shape[1], dtype=numpy.int32)
        places -= numpy.repeat(self._marks.astype(numpy.int32), self._lengths)
        before = self._paddings.cumsum() - self._paddings
        return self._fill(places, numpy.arange(self.padding) - numpy.repeat(before, self._paddings))

    @property
    def loss_mask(self) -> Array:
        """Which tokens are predicted."""
        mask = numpy.ones(self._shape[0] * self._shape[1], dtype=numpy.uint8)
        mask[self._marks] = numpy.append(False, self._ends[:-1]) & (self._numbers > 0)
        return self._fill(mask, 0)


def row_fault(blocks: Iterable[Array], size: int, mark: int, more: int = 1) -> str | None:
    """Returns what is wrong with a shard of packed rows, or None.

    Args:
        blocks: the tokens of the shard, in order.
        size: tokens per row.
        mark: the id that begins each row.
        more: the tokens after the last row: 1 in llm.c's shards, 0 in others.
    """
    seen = 0
    for ids in blocks:
        first = -seen % size  # the first token of the block that begins a row
        wrong = (ids[first::size] != mark).nonzero()[0]
        if len(wrong):
            place = seen + first + int(wrong[0]) * size
            return f"token {place} begins a row of {size} tokens, but is not the end of text, id {mark}"
        seen += len(ids)
    if seen % size != more:
        and_more = " and one more token" if more else ""
        return f"has {counted(seen, 'token')}, which is not a whole number of rows of {size}{and_more}"
    return None
