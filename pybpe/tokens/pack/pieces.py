"""Finds the documents of a split, group by group, and cuts those that are too long for a row into pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..._numpy import Array, numpy
from ...errors import FormatError
from ..token_files import TokenStream

_GROUP_TOKENS = 1 << 23
_GROUP_ROWS = 256  # a group is at least this many rows


@dataclass(frozen=True)
class Pieces:
    """Parts of documents, without marks. All arrays have one item per piece.

    Attributes:
        starts: where a piece starts in the group's ids.
        texts: its number of tokens, at least 1.
        begins: whether it is the first piece of its document.
        ends: whether it is the last one.
    """

    starts: Array
    texts: Array
    begins: Array
    ends: Array

    def take(self, which: Array | slice) -> Pieces:
        """Returns some of the pieces, by index, mask or slice."""
        return Pieces(self.starts[which], self.texts[which], self.begins[which], self.ends[which])

    def cut(self, most: int) -> Pieces:
        """Cuts each piece into parts of `most` tokens and a rest."""
        counts = -(-self.texts // most)
        of = numpy.repeat(numpy.arange(len(counts)), counts)
        offsets = (numpy.arange(len(of)) - numpy.repeat(numpy.cumsum(counts) - counts, counts)) * most
        texts = numpy.minimum(self.texts[of] - offsets, most)
        begins, ends = self.begins[of] & (offsets == 0), self.ends[of] & (offsets + texts == self.texts[of])
        return Pieces(self.starts[of] + offsets, texts, begins, ends)


@dataclass(frozen=True)
class Group:
    """Documents that are packed together, so that memory does not grow with the split.

    Attributes:
        number: from 0.
        start: where its ids start in the split.
        ids: the tokens of its documents, marks included, and perhaps more tokens after them.
        documents: one piece per document. A document that is larger than a group is divided among groups.
    """

    number: int
    start: int
    ids: Array
    documents: Pieces


def groups(stream: TokenStream, mark: int, size: int) -> Iterator[Group]:
    """Yields the documents of a split, in order. The groups depend only on the stream and the size.

    Args:
        stream: the tokens of the split.
        mark: the id that begins each document.
        size: tokens per row.

    Raises:
        FormatError: the stream does not begin with a mark.
    """
    tokens = max(_GROUP_TOKENS, _GROUP_ROWS * size)
    at = number = 0
    inside = False  # whether `at` is inside a document
    while at < len(stream):
        ids = stream.slice(at, min(at + tokens, len(stream)))
        if at == 0 and ids[0] != mark:
            raise FormatError(f"the first token is {int(ids[0])}, not the mark {mark} that begins each document")
        found = _documents(ids, mark, inside)
        step = len(ids)
        if at + step < len(stream):  # the last document may continue after these ids
            inside = len(found.texts) == 1
            found, step = _without_end(found, size - 1)
        yield Group(number, at, ids, found.take(found.texts > 0))
        at, number = at + step, number + 1


def _documents(ids: Array, mark: int, inside: bool) -> Pieces:
    starts = numpy.flatnonzero(ids == mark) + 1
    ends = numpy.append(starts[1:] - 1, len(ids))
    begins = numpy.ones(len(starts), dtype=bool)
    if inside:
        first = starts[0] - 1 if len(starts) else len(ids)
        ends = numpy.append(first, ends[: len(starts)])
        starts, begins = numpy.append(0, starts), numpy.append(False, begins)
    return Pieces(starts, ends - starts, begins, numpy.ones(len(starts), dtype=bool))


def _without_end(found: Pieces, most: int) -> tuple[Pieces, int]:
    """Leaves the last document to the next group; of an only one, what does not fill a row, and at least one token, as
    it may end there. Returns the pieces, and where the next group starts."""
    if len(found.texts) > 1:
        return found.take(slice(-1)), int(found.starts[-1]) - 1
    texts = (found.texts - 1) // most * most
    return Pieces(found.starts, texts, found.begins, ~found.ends), int(found.starts[0] + texts[0])
