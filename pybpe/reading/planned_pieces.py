"""Reads the ranges of a plan in pieces. A thread encodes one piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .documents import Kinds
from .file_types import row_kind
from .pieces import Cut, stream_pieces
from .planning import PlannedRange, Task
from .rows import open_rows


class PlannedPiece(NamedTuple):
    """A piece of a planned range.

    Attributes:
        path, start, end: its source, as in PlannedRange.
        split: the split, as in PlannedRange.
        data: text or JSON lines; or the texts of records.
        divided: whether the piece holds complete documents that are not separated yet; otherwise it is a part of a
            text.
        ends_document: whether a document ends where the piece ends.
    """

    path: str
    start: int
    end: int
    split: int | None
    data: memoryview | list[bytes]
    divided: bool
    ends_document: bool


def planned_pieces(task: Task, kinds: Kinds, text_cut: Cut) -> Iterator[PlannedPiece]:
    """Yields the pieces of a task, in order. They depend only on the task."""
    for planned in task:
        if row_kind(planned.path) is not None:
            yield from _row_pieces(planned, kinds.text_key)
        else:
            yield from _byte_pieces(planned, kinds, text_cut)


def _row_pieces(planned: PlannedRange, text_key: str) -> Iterator[PlannedPiece]:
    assert planned.end is not None
    for row, texts in open_rows(planned.file, text_key).texts(planned.start, planned.end):
        yield PlannedPiece(planned.path, row, row + len(texts), planned.split, texts, True, True)


def _byte_pieces(planned: PlannedRange, kinds: Kinds, text_cut: Cut) -> Iterator[PlannedPiece]:
    divided = planned.split is None or kinds.is_divided(planned.path)
    cut = kinds.document_cut(planned.path) if divided else text_cut
    offset = planned.start
    size = None if planned.end is None else planned.end - offset
    with planned.file.open(offset, planned.end) as stream:
        for data in stream_pieces(stream, cut, size=size):
            end = offset + len(data)
            yield PlannedPiece(planned.path, offset, end, planned.split, data, divided, divided)
            offset = end
    if planned.ends_document and not divided:
        yield PlannedPiece(planned.path, offset, offset, planned.split, memoryview(b""), False, True)
