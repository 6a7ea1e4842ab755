"""Reads parts of files as blocks: the unit that one thread encodes at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from .documents import Kinds
from .parquet import RowGroups
from .pieces import Cut, Limited, stream_pieces
from .planning import Part, Task


class Block(NamedTuple):
    """A piece of a part.

    Attributes:
        path, start, end: its source, as in Part.
        split: the split, as in Part.
        data: text or JSON lines; or the texts of records.
        divided: whether it holds whole documents that are still to be separated; otherwise it is a piece of a text.
        ends_document: whether a document ends with it.
    """

    path: str
    start: int
    end: int
    split: int | None
    data: memoryview | list[bytes]
    divided: bool
    ends_document: bool


def blocks(task: Task, kinds: Kinds, text_cut: Cut) -> Iterator[Block]:
    """Yields the blocks of a task, in order. They depend only on the task."""
    for part in task:
        if kinds.kind(part.path) == "parquet":
            yield from _row_blocks(part, kinds.text_key)
        else:
            yield from _byte_blocks(part, kinds, text_cut)


def _row_blocks(part: Part, text_key: str) -> Iterator[Block]:
    assert part.end is not None
    for row, texts in RowGroups(part.file, text_key).texts(part.start, part.end):
        yield Block(part.path, row, row + len(texts), part.split, texts, True, True)


def _byte_blocks(part: Part, kinds: Kinds, text_cut: Cut) -> Iterator[Block]:
    divided = part.split is None or kinds.is_divided(part.path)
    cut = kinds.document_cut(part.path) if divided else text_cut
    offset = part.start
    size = None if part.end is None else part.end - offset
    with part.file.open() as stream:
        if offset:
            stream.seek(offset)
        if size is not None:
            stream = Limited(stream, size)  # type: ignore[assignment]
        for data in stream_pieces(stream, cut, size=size):
            end = offset + len(data)
            yield Block(part.path, offset, end, part.split, data, divided, divided)
            offset = end
    if part.ends_document and not divided:
        yield Block(part.path, offset, offset, part.split, memoryview(b""), False, True)
