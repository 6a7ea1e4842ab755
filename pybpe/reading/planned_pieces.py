"""Reads the ranges of a plan in pieces. A thread encodes one piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .bad_records import Seen
from .documents import Kinds
from .pieces import Cut, stream_pieces, without_mark
from .planning import PlannedRange, Task
from .row_file import Texts
from .rows import open_rows

_SMALL = 1 << 16  # bytes; reading a smaller file costs little more than opening it


class PlannedPiece(NamedTuple):
    """A piece of a planned range.

    Attributes:
        path, start, end: its source, as in PlannedRange.
        split: the split, as in PlannedRange.
        data: text or JSON lines; or the texts of rows.
        divided: whether the piece holds complete documents that are not separated yet; otherwise it is a part of a
            text.
        ends_document: whether a document ends where the piece ends.
        seen: notes the records of the piece: those of rows are noted already, those of JSON lines when the piece is
            divided.
        kind: the kind of the file (see Kinds).
    """

    path: str
    start: int
    end: int
    split: int | None
    data: memoryview | Texts
    divided: bool
    ends_document: bool
    seen: Seen
    kind: str


def planned_pieces(task: Task, kinds: Kinds, text_cut: Cut) -> Iterator[PlannedPiece]:
    """Yields the pieces of a task, in order. They depend only on the task."""
    for planned in task:
        if planned.file.has_rows:
            yield from _row_pieces(planned, kinds)
        else:
            yield from _byte_pieces(planned, kinds, text_cut)


def _row_pieces(planned: PlannedRange, kinds: Kinds) -> Iterator[PlannedPiece]:
    assert planned.end is not None
    rows, kind = open_rows(planned.file, kinds.text_key), kinds.kind(planned.file)
    for texts, seen in rows.texts(planned.start, planned.end, Seen(planned.path, planned.start, kinds.skips)):
        yield PlannedPiece(
            planned.path, seen.start, seen.start + len(texts), planned.split, texts, True, True, seen, kind
        )


def _byte_pieces(planned: PlannedRange, kinds: Kinds, text_cut: Cut) -> Iterator[PlannedPiece]:
    kind = kinds.kind(planned.file)
    divided = planned.split is None or kinds.is_divided(planned.file)
    cut = kinds.document_cut(planned.file) if divided else text_cut
    offset = planned.start
    size = None if planned.end is None else planned.end - offset
    small = planned.file.read_if_small(_SMALL) if offset == 0 and size == planned.file.size else None
    if small is not None:
        ends = divided or planned.ends_document
        seen = Seen(planned.path, 0, kinds.skips)
        data = memoryview(small)
        text = data if kind == "jsonl" else without_mark(data, 0)
        yield PlannedPiece(planned.path, 0, len(small), planned.split, text, divided, ends, seen, kind)
        return
    with planned.file.open(offset, planned.end) as stream:
        for data in stream_pieces(stream, cut, size=size):
            end = offset + len(data)
            data = data if kind == "jsonl" else without_mark(data, offset)
            seen = Seen(planned.path, offset, kinds.skips)
            yield PlannedPiece(planned.path, offset, end, planned.split, data, divided, divided, seen, kind)
            offset = end
    if planned.ends_document and not divided:
        seen = Seen(planned.path, offset, kinds.skips)
        yield PlannedPiece(planned.path, offset, offset, planned.split, memoryview(b""), False, True, seen, kind)
