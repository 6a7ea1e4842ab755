"""Turns parts of files into documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..arguments import utf8
from ..reading.bad_records import Seen
from ..reading.documents import RECORDS, Kinds
from ..reading.input_file import InputFile
from ..reading.pieces import Cutting
from ..reading.planned_pieces import PlannedPiece, planned_pieces
from ..reading.planning import Plan, Task
from ..reading.records import record_lines
from ..reading.splits import SplitOptions
from ..reading.text_encoding import doubt_of
from .raw_json import raw_fields

BATCH_CHARACTERS = 1 << 17  # arrays of this many characters fit in a CPU cache


_LEAST_TASK = 1 << 20
_LEAST_TASKS = 64  # a task takes seconds, and progress is reported per task


class Document(NamedTuple):
    """A document.

    Attributes:
        text: its text.
        fields: the fields of its JSON record, as spelled there (see raw_json.py); only the text if there are no others.
    """

    text: str
    fields: dict[str, Any]


class DocumentPlan(Plan):
    """Tasks of whole documents."""

    def __init__(self, files: Sequence[InputFile], kinds: Kinds) -> None:
        super().__init__(files, kinds, SplitOptions((1,), "document"), Cutting(lambda data, start: len(data), 0, True))
        self.hashed = True  # each document by itself, as if it might go to any split
        size = sum(file.size or 0 for file in files)
        # A power of two: if a file changes a little, the tasks of the others stay the same.
        self.task_bytes = min(self.task_bytes, max(_LEAST_TASK, 1 << (size // _LEAST_TASKS).bit_length() >> 1))


def batches(task: Task, kinds: Kinds, doubts: list[str], records: list[Seen]) -> Iterator[tuple[list[Document], int]]:
    """Yields batches of a task's non-empty documents, each with the number of bytes read for it. A warning about the
    first file that is not UTF-8 is put into `doubts`, and the records of pieces into `records`."""
    for piece in planned_pieces(task, kinds, lambda data, start: len(data)):
        if not doubts and isinstance(piece.data, memoryview) and piece.kind not in RECORDS:
            doubts += filter(None, [doubt_of(piece.data, piece.path, piece.start)])
        batch: list[Document] = []
        size = 0
        for document in _documents(piece, kinds):
            batch.append(document)
            size += len(document.text)
            if size >= BATCH_CHARACTERS:
                yield batch, 0
                batch, size = [], 0
        if piece.seen.end:
            records.append(piece.seen)
        data = piece.data
        yield batch, len(data) if isinstance(data, memoryview) else data.size


def _documents(piece: PlannedPiece, kinds: Kinds) -> Iterator[Document]:
    key = kinds.text_key
    if isinstance(piece.data, memoryview) and piece.kind == "jsonl":
        for record, line in record_lines(piece.data, key, piece.seen):
            if record[key]:
                text = utf8(record[key]).decode()
                yield Document(text, raw_fields(line) if len(record) > 1 else {key: text})
        return
    data = piece.data
    for document in kinds.divide(piece.kind, data, piece.seen) if isinstance(data, memoryview) else data:
        if document:
            text = document.decode("utf-8", "replace")
            yield Document(text, {key: text})
