"""Packed sequences: a stream of tokens cut into rows of equal length; the last row of a split may be shorter."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from .base import Finished

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_ROWS = 1024  # rows processed at once


class Rows(NamedTuple):
    """Some consecutive rows.

    Attributes:
        input_ids: the ids of all rows, end to end.
        document_ids: for each token the number of its document in the split, int64.
        offsets: where each row begins in both, and where the last ends.
        sources: for each row, the files that its text comes from, in order.
    """

    input_ids: Array
    document_ids: Array
    offsets: Array
    sources: list[list[str]]


def packed_rows(finished: Finished) -> Iterator[Rows]:
    """Yields the rows of a shard."""
    import numpy

    ids, length = finished.ids(), finished.sequence_length
    document = -1  # the last document that began before the block, counted in the shard
    source = 0
    for begin in range(0, len(ids), _ROWS * length):
        end = min(begin + _ROWS * length, len(ids))
        starts, numbers = _starts_between(finished, document + 1, end)
        inside = numpy.arange(begin, end)
        document_ids = document + numpy.searchsorted(starts, inside, side="right")
        offsets = numpy.append(numpy.arange(0, end - begin, length), end - begin)
        by_document = numpy.append([source], numbers)
        sources = [
            _names(finished, by_document[document_ids[a] - document : document_ids[b - 1] - document + 1])
            for a, b in zip(offsets, offsets[1:])
        ]
        yield Rows(ids[begin:end], document_ids + finished.first_document, offsets, sources)
        document += len(starts)
        source = int(by_document[-1])


def _starts_between(finished: Finished, first: int, end: int) -> tuple[Array, Array]:
    """Returns where the documents from number `first` that begin before token `end` begin, and their sources."""
    import numpy

    found = []
    while first < finished.facts.documents:
        block = finished.files.read_starts(first, min(first + _ROWS, finished.facts.documents)).astype(numpy.int64)
        before = block[block[:, 0] < end]
        found.append(before)
        if len(before) < len(block):
            break
        first += len(block)
    starts = numpy.concatenate([numpy.empty((0, 2), dtype=numpy.int64), *found])
    return starts[:, 0], starts[:, 1]


def _names(finished: Finished, numbers: Array) -> list[str]:
    return list(dict.fromkeys(finished.facts.sources[int(number)][0] for number in numbers))
