"""Finds the documents of a split, group by group, cuts documents that are too long for a row, and chooses their rows.

A span is a part of a document after a mark. Spans are an array of one dimension, whose items have the fields

    start           where the span starts in the ids of its group: at the id that its mark replaces
    length          its number of tokens, with the mark: at least 2
    begins, ends    whether it is the first and the last span of its document
    row             its row in the group: from 0, and no row is empty
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ... import _binding
from ..._lazy import Array, numpy
from ...errors import FormatError
from ...support.permutation import Permutation
from ..token_files import MarksFirst, TokenStream

FIELDS = [("start", "i8"), ("length", "i8"), ("begins", "?"), ("ends", "?"), ("row", "i8")]
_GROUP_TOKENS = 1 << 23
_GROUP_ROWS = 256  # a group is at least this many rows
_CHUNK_TOKENS = 1 << 20


def spans_of(start: Array, length: Array, begins: Array | bool, ends: Array | bool, row: Array | int = 0) -> Array:
    """Returns spans with these fields."""
    spans = numpy.empty(len(start), dtype=FIELDS)
    for (field, _), values in zip(FIELDS, (start, length, begins, ends, row)):
        spans[field] = values
    return spans


class Group(NamedTuple):
    """Documents that are packed together, so that memory does not grow with the split."""

    start: int  # where its ids start in the split
    ids: Array  # the tokens of its documents, marks included, and perhaps more tokens after them
    documents: Array  # one span per document. A document that is larger than a group is divided among groups


def groups(stream: TokenStream | MarksFirst, mark: int, size: int) -> Iterator[Group]:
    """Yields the documents of a split, in order. The groups depend only on the stream and the size.

    Args:
        stream: the tokens of the split.
        mark: the id that begins every document.
        size: tokens per row.

    Raises:
        FormatError: the stream does not begin with a mark.
    """
    tokens = max(_GROUP_TOKENS, _GROUP_ROWS * size)
    at = 0
    inside = False  # whether `at` is the last token of a span, whose document continues
    while at + inside < len(stream):
        end = min(at + inside + tokens, len(stream))
        ids = stream.slice(at, end)
        if at == 0 and ids[0] != mark:
            raise FormatError(f"the first token is {int(ids[0])}, not the mark {mark} that begins each document")
        starts = numpy.flatnonzero(ids == mark)
        if inside:
            starts = numpy.append(0, starts)
        found = spans_of(starts, numpy.diff(starts, append=len(ids)), True, True)
        found["begins"][0] = not inside
        step = len(ids)
        if end < len(stream):  # the last document may continue after these ids
            inside = len(found) == 1
            found, step = _without_end(found, size - 1)
        yield Group(at, ids, found[found["length"] > 1])
        at += step


def _without_end(found: Array, most: int) -> tuple[Array, int]:
    """Leaves the last document to the next group. Of an only one, it leaves the tokens that do not fill a row, and at
    least one token, as it may end there. Returns the spans, and where the next group starts."""
    if len(found) > 1:
        return found[:-1], int(found["start"][-1])
    found["length"] = (found["length"] - 2) // most * most + 1
    found["ends"] = False
    return found, int(found["length"][0]) - 1


# ----------------------------------------------------------------------------------------------------
# Rows


def row_count(spans: Array) -> int:
    """Returns the number of rows of a group."""
    return int(spans["row"].max(initial=-1)) + 1


def place(documents: Array, size: int, method: str) -> Array:
    """Returns spans of the documents of a group, with their rows, by one of METHODS."""
    spans = _cut(documents, size - 1)
    lengths = spans["length"]
    spans["row"] = refit(lengths, best_fit(lengths, size), size)
    if method == "best-fit" or not len(spans):
        return spans
    is_full = numpy.bincount(spans["row"], weights=lengths) == size
    kept = is_full[spans["row"]]
    full, rest = spans[kept], _concatenated(spans[~kept], size)
    full["row"] = (numpy.cumsum(is_full) - 1)[full["row"]]
    rest["row"] += row_count(full)
    return numpy.concatenate([full, rest])


def _cut(documents: Array, most: int) -> Array:
    """Cuts every document into spans of `most` tokens and a rest, which all get a mark."""
    counts = -(-(documents["length"] - 1) // most)
    spans = numpy.repeat(documents, counts)
    offsets = (numpy.arange(len(spans)) - numpy.repeat(numpy.cumsum(counts) - counts, counts)) * most
    left = spans["length"] - 1 - offsets
    spans["start"] += offsets
    spans["length"] = numpy.minimum(left, most) + 1
    spans["begins"] &= offsets == 0
    spans["ends"] &= left <= most
    return spans


def _concatenated(spans: Array, size: int) -> Array:
    """Fills one row after another. Where only one token is left, the row ends: a mark without text is not a span."""
    found: list[tuple[int, int, bool, bool, int]] = []
    row, room = 0, size
    for start, length, begins, ends, _ in spans.tolist():
        while length > 1:
            if room < 2:
                row, room = row + 1, size
            part = min(length, room)
            found.append((start, part, begins, ends and part == length, row))
            start, length, begins, room = start + part - 1, length - part + 1, False, room - part
    return numpy.array(found, dtype=FIELDS)


def shuffled(spans: Array, seed: int, group: int) -> Array:
    """Returns the rows in another order, and the spans of a row too: best fit places the longest first. The order
    depends only on the numbers given, not on the version of any package."""
    if not len(spans):
        return spans
    of_rows = Permutation(row_count(spans), seed, 2 * group).take(numpy.arange(row_count(spans)))
    of_pieces = Permutation(len(spans), seed, 2 * group + 1).take(numpy.arange(len(spans)))
    rows = of_rows[spans["row"]]
    order = numpy.lexsort((of_pieces, rows))
    found = spans[order]
    found["row"] = rows[order]
    return found


def chunks(spans: Array, size: int, before: int, per_shard: int) -> Iterator[tuple[int, Array]]:
    """Yields the rows of a group in parts of about a million tokens, which never cross shards.

    Args:
        spans: in the order of rows.
        size: tokens per row.
        before: the number of rows in all groups before.
        per_shard: the number of rows in a shard.

    Returns:
        The number of the shard, and its spans, whose rows count from 0 again.
    """
    first, count, most = 0, row_count(spans), max(1, _CHUNK_TOKENS // size)
    while first < count:
        shard, at = divmod(before + first, per_shard)
        last = min(count, first + most - first % most, first + per_shard - at)
        begin, end = numpy.searchsorted(spans["row"], (first, last)).tolist()
        some = spans[begin:end].copy()
        some["row"] -= first
        yield shard, some
        first = last


# ----------------------------------------------------------------------------------------------------
# Best-fit decreasing: from the longest to the shortest, a span goes to the row with the least space that fits it.
#
# Ding et al., "Fewer Truncations Improve Language Modeling" (2024), use it for documents. The bits of an integer say
# which spaces there are, so a shift finds the least one that fits. Spans of equal length are placed together: if a row
# with space s is the best for one span of length L, and L fits into s several times, then the same row is the best for
# the next, as its space shrinks.


def best_fit(lengths: Array, size: int) -> Array:
    """Returns the row of every span, from 0: int64, the shape of lengths. No row is empty.

    Args:
        lengths: of the spans, each from 1 to `size`.
        size: the size of a row.

    >>> import numpy
    >>> best_fit(numpy.array([3, 5, 2, 6, 2]), 8).tolist()
    [1, 1, 0, 0, 2]
    """
    order = numpy.argsort(-lengths, kind="stable")
    found = numpy.zeros(len(lengths), dtype=numpy.int64)
    rows = _Rows(size)
    values, counts = numpy.unique(lengths, return_counts=True)
    at = 0
    for length, count in zip(values[::-1].tolist(), counts[::-1].tolist()):
        end = at + count
        while at < end:
            chosen, each = rows.place(length, end - at)
            placed = len(chosen) * each
            found[order[at : at + placed]] = numpy.repeat(chosen, each)
            at += placed
    return found


def refit(lengths: Array, rows: Array, size: int) -> Array:
    """Packs again what best fit left in rows with space, to need fewer rows: best fit looks at one span at a time, so
    near the end, when few lengths are left, it leaves small spaces that no span fits. Returns the row of every span.
    No row is empty, and full rows stay together.

    Args:
        lengths: of the spans, each from 1 to `size`.
        rows: the rows of the spans, from 0. No row is empty.
        size: the size of a row.
    """
    used = numpy.bincount(rows, weights=lengths).astype(numpy.int64)
    is_full = used == size
    if int((size - used).sum()) < size:  # not even one row less is possible
        return rows
    loose = numpy.flatnonzero(~is_full[rows])
    found = _binding.fit_rows(lengths[loose], size)
    if int(found.max()) + 1 >= int((~is_full).sum()):
        return rows
    numbers = numpy.cumsum(is_full) - 1
    again = numbers[rows]
    again[loose] = found + int(is_full.sum())
    return again


class _Rows:
    """The rows, by the space that they have left."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._count = 0
        self._spaces = 0  # bit s: whether a row has space s
        self._by_space: dict[int, list[Array]] = {}

    def place(self, length: int, count: int) -> tuple[Array, int]:
        """Places some of `count` spans of equal length. Returns the rows, and the numbers of spans that they get."""
        fitting = self._spaces >> length
        space = length + (fitting & -fitting).bit_length() - 1 if fitting else 0
        each = min((space or self._size) // length, count)
        if space:
            rows = self._take(space, count // each)
        else:  # new rows
            space, rows = self._size, numpy.arange(self._count, self._count + count // each)
            self._count += len(rows)
        if left := space - each * length:
            self._by_space.setdefault(left, []).append(rows)
            self._spaces |= 1 << left
        return rows, each

    def _take(self, space: int, most: int) -> Array:
        """Removes up to `most` rows with this space."""
        stack = self._by_space[space]
        rows = stack.pop()
        if len(rows) > most:
            stack.append(rows[:-most])
        if not stack:
            self._spaces ^= 1 << space
        return rows[-most:]
