"""Decides which pieces are in which row, in what order, and makes the rows of a group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..._numpy import Array, numpy
from ...support.permutation import Permutation
from .best_fit import best_fit
from .exact_fit import refit
from .pieces import Pieces

METHODS = ("best-fit", "fill", "concat")
_CHUNK_TOKENS = 1 << 20


@dataclass(frozen=True)
class Placed:
    """Pieces, and the row of each: an array of the same length. Rows are numbered from 0, and none is empty."""

    pieces: Pieces
    rows: Array

    @property
    def count(self) -> int:
        """The number of rows."""
        return int(self.rows.max()) + 1 if len(self.rows) else 0


def place(documents: Pieces, size: int, method: str) -> Placed:
    """Chooses the row of each piece, by one of METHODS.

    best-fit: only documents longer than a row are cut.
    fill: the same, but the pieces of rows that would be short are concatenated.
    concat: documents follow each other in order, cut wherever a row is full.
    """
    if method == "concat":
        return _concatenated(documents, size)
    pieces = documents.cut(size - 1)
    lengths = pieces.texts + 1
    rows = refit(lengths, best_fit(lengths, size), size)
    if method == "best-fit" or not len(rows):
        return Placed(pieces, rows)
    used = numpy.bincount(rows, weights=lengths)
    is_full = used == size
    kept = is_full[rows]
    full = Placed(pieces.take(kept), (numpy.cumsum(is_full) - 1)[rows[kept]])
    return _joined(full, _concatenated(pieces.take(~kept), size))


def _joined(first: Placed, second: Placed) -> Placed:
    one, other = vars(first.pieces), vars(second.pieces)
    pieces = Pieces(**{name: numpy.concatenate([one[name], other[name]]) for name in one})
    return Placed(pieces, numpy.concatenate([first.rows, second.rows + first.count]))


def _concatenated(pieces: Pieces, size: int) -> Placed:
    """Fills one row after another. Where only one token is left, the row ends: a mark without text is not a piece."""
    found: list[tuple[int, int, bool, bool, int]] = []
    row, room = 0, size
    for start, text, begins, ends in zip(*(column.tolist() for column in vars(pieces).values())):
        while text:
            if room < 2:
                row, room = row + 1, size
            part = min(text, room - 1)
            found.append((start, part, begins, ends and part == text, row))
            start, text, begins, room = start + part, text - part, False, room - part - 1
    columns = numpy.array(found, dtype=numpy.int64).reshape(-1, 5).T
    return Placed(Pieces(columns[0], columns[1], columns[2].astype(bool), columns[3].astype(bool)), columns[4])


def shuffled(placed: Placed, seed: int, group: int) -> Placed:
    """Returns the rows in another order, and the pieces in each row too: best fit places the longest first. The order
    depends only on the numbers given, not on the version of any package."""
    if not placed.count:
        return placed
    of_rows = Permutation(placed.count, seed, 2 * group).take(numpy.arange(placed.count))
    of_pieces = Permutation(len(placed.rows), seed, 2 * group + 1).take(numpy.arange(len(placed.rows)))
    rows = of_rows[placed.rows]
    order = numpy.lexsort((of_pieces, rows))
    return Placed(placed.pieces.take(order), rows[order])


def chunks(placed: Placed, size: int) -> Iterator[Placed]:
    """Yields the rows in parts of about a million tokens. `placed` must be in the order of rows."""
    at_once = max(1, _CHUNK_TOKENS // size)
    for first in range(0, placed.count, at_once):
        begin, end = numpy.searchsorted(placed.rows, (first, first + at_once)).tolist()
        yield Placed(placed.pieces.take(slice(begin, end)), placed.rows[begin:end] - first)
