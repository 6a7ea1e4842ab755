"""Reads the ranges of a plan in pieces. A thread encodes one piece at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .bad_records import Seen
from .documents import RECORDS, Kinds
from .input_file import InputFile
from .pieces import Cut, stream_pieces, without_mark
from .planning import PlannedRange, Task
from .records import record_texts
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

    @property
    def size(self) -> int:
        """The number of bytes of the data."""
        return len(self.data) if isinstance(self.data, memoryview) else self.data.size

    @property
    def is_text(self) -> bool:
        """Whether the data is text, not records."""
        return self.kind not in RECORDS

    @property
    def text(self) -> memoryview:
        """The data of a piece of text."""
        assert isinstance(self.data, memoryview)
        return self.data

    def record_texts(self, text_key: str) -> list[bytes]:
        """Returns the texts of the records, and notes them. `text_key` is their key in JSON lines."""
        lines = isinstance(self.data, memoryview)
        return list(record_texts(self.data, text_key, self.seen) if lines else self.data)  # type: ignore[arg-type]


def text_piece(data: memoryview) -> PlannedPiece:
    """Returns a piece of a text that is in memory."""
    return PlannedPiece("", 0, 0, 0, data, False, False, Seen("", 0, False), "file")


def planned_pieces(task: Task, kinds: Kinds, text_cut: Cut) -> Iterator[PlannedPiece]:
    """Yields the pieces of a task, in order. They depend only on the task."""
    for planned in task:
        if planned.file.has_rows:
            yield from _row_pieces(planned, kinds)
        else:
            yield from _byte_pieces(planned, kinds, text_cut)


def _row_pieces(planned: PlannedRange, kinds: Kinds) -> Iterator[PlannedPiece]:
    rows, kind = open_rows(planned.file, kinds.text_key), kinds.kind(planned.file)
    end = rows.rows if planned.end is None else planned.end
    for texts, seen in rows.texts(planned.start, end, Seen(planned.path, planned.start, kinds.skips)):
        yield PlannedPiece(
            planned.path, seen.start, seen.start + len(texts), planned.split, texts, True, True, seen, kind
        )


def _byte_pieces(planned: PlannedRange, kinds: Kinds, text_cut: Cut) -> Iterator[PlannedPiece]:
    size = None if planned.end is None else planned.end - planned.start
    small = planned.file.read_if_small(_SMALL) if planned.start == 0 and size == planned.file.size else None
    if small is not None:
        yield _piece(planned, planned.file, kinds, 0, memoryview(small))._replace(
            ends_document=planned.split is None or planned.ends_document or kinds.is_divided(planned.file)
        )
        return
    offset = planned.start
    with planned.file.open_in_form(offset, planned.end) as (stream, file):
        divided = planned.split is None or kinds.is_divided(file)
        for data in stream_pieces(stream, kinds.document_cut(file) if divided else text_cut, size=size):
            yield _piece(planned, file, kinds, offset, data)
            offset += len(data)
    if planned.ends_document and not divided:
        yield _piece(planned, file, kinds, offset, memoryview(b""))._replace(ends_document=True)


def _piece(planned: PlannedRange, file: InputFile, kinds: Kinds, start: int, data: memoryview) -> PlannedPiece:
    kind, divided = kinds.kind(file), planned.split is None or kinds.is_divided(file)
    text = data if kind == "jsonl" else without_mark(data, start)
    seen = Seen(planned.path, start, kinds.skips)
    return PlannedPiece(planned.path, start, start + len(data), planned.split, text, divided, divided, seen, kind)
