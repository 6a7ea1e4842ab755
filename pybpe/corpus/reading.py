"""Turns parts of files into documents, and documents into JSON lines.

The fields of a JSON record that are not changed stay as they are spelled: large integers, decimals of any length,
escapes. A record is one line that is known to be a JSON object. Nothing recurses, however deeply its values are nested.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..arguments import utf8
from ..reading.bad_records import Seen
from ..reading.documents import RECORDS, Kinds
from ..reading.input_file import InputFile
from ..reading.pieces import Cutting
from ..reading.planned_pieces import PlannedPiece, planned_pieces
from ..reading.planning import Plan, Task, anchored, described
from ..reading.records import record_lines
from ..reading.splits import SplitOptions
from ..reading.staging import Staged
from ..reading.text_encoding import doubt_of

_BATCH_CHARACTERS = 1 << 17  # arrays of this many characters fit in a CPU cache
_LEAST_TASK = 1 << 20
_LEAST_TASKS = 64  # a task takes seconds, and progress is reported per task
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_BETWEEN = re.compile(r"[\s,:]*")
_SCALAR = re.compile(_STRING + r"|[^\s,\]}]+")
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
_BRACKET = re.compile(_STRING + r"|[\[\]{}]")

__all__ = ["Document", "Task", "anchored", "batches", "plan_tasks"]


class Document(NamedTuple):
    """A document.

    Attributes:
        text: its text.
        data: the text in UTF-8.
        record: the fields of its JSON record; only the text if there are no others.
        line: the line of its record; empty if there are no other fields.
    """

    text: str
    data: bytes
    record: dict[str, Any]
    line: bytes


class DocumentPlan(Plan):
    """Tasks of whole documents."""

    def __init__(self, files: Sequence[InputFile], kinds: Kinds) -> None:
        super().__init__(files, kinds, SplitOptions((1,), "document"), Cutting(lambda data, start: len(data), 0, True))
        self.hashed = True  # each document by itself, as if it might go to any split
        size = sum(file.size or 0 for file in files)
        # A power of two: if a file changes a little, the tasks of the others stay the same.
        self.task_bytes = min(self.task_bytes, max(_LEAST_TASK, 1 << (size // _LEAST_TASKS).bit_length() >> 1))


def plan_tasks(kinds: Kinds, staged: Staged) -> tuple[list[Task], list[bytes]]:
    """Returns the tasks of a corpus, and what distinguishes each from others."""
    tasks = list(DocumentPlan(staged.files, kinds).tasks())
    identities = dict(zip((file.path for file in staged.files), staged.identities))
    return tasks, [described(task, identities) for task in tasks]


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
            if size >= _BATCH_CHARACTERS:
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
                encoded = utf8(record[key])
                record[key] = text = encoded.decode()  # without lone surrogates
                yield Document(text, encoded, record, line if len(record) > 1 else b"")
        return
    data = piece.data
    for document in kinds.divide(piece.kind, data, piece.seen) if isinstance(data, memoryview) else data:
        if document:
            text = document.decode("utf-8", "replace")
            yield Document(text, text.encode(), {key: text}, b"")


class Raw(NamedTuple):
    """A JSON value as it is spelled in the input."""

    json: str


def raw_fields(line: bytes) -> dict[str, Raw]:
    """Returns the fields of a record. If a name is repeated, the last one counts, as in Python's json module."""
    text = line.decode("utf-8-sig")
    at = text.index("{") + 1
    fields: dict[str, Raw] = {}
    while text[at := _end(_BETWEEN, text, at)] != "}":
        end = _end(_SCALAR, text, at)
        key = json.loads(text[at:end])
        at = _end(_BETWEEN, text, end)
        end = _value_end(text, at)
        fields[key] = Raw(text[at:end])
        at = end
    return fields


def spelled(record: dict[str, Any], line: bytes, key: str, changes: dict[str, Any], without: str | None) -> bytes:
    """Returns a record as a JSON line, without the newline. The text has the escapes of Python's json module, whatever
    the input has; other fields stay as they are spelled there.

    Args:
        record: the record.
        line: its line of the input; empty if there is only the text.
        key: the field with the text.
        changes: new values of some fields.
        without: a field to leave out.
    """
    fields, plain = record, _plain(record)
    if line and plain != line.strip():
        fields = dict(raw_fields(line))
        if any(escape in fields[key].json for escape in ("\\u", "\\/")):  # otherwise, copying is faster
            fields[key] = record[key]
    elif not changes and without not in record:
        return plain
    return json_line({name: value for name, value in {**fields, **changes}.items() if name != without})


def _plain(record: dict[str, Any]) -> bytes:
    """Returns a record as Python's json module spells it; nothing if that is not possible."""
    try:
        return _ENCODE(record).encode()
    except (UnicodeEncodeError, RecursionError):  # a lone surrogate, or too many brackets
        return b""


def _value_end(text: str, at: int) -> int:
    if text[at] not in "[{":
        return _end(_SCALAR, text, at)
    depth = 0
    for found in _BRACKET.finditer(text, at):
        depth += (found[0] in "[{") - (found[0] in "]}")  # a string contains neither
        if depth == 0:
            return found.end()
    return len(text)


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()


def json_line(fields: dict[str, Any]) -> bytes:
    """Returns a record as a JSON line, without the newline."""
    members = (
        f"{_dumped(key)}: {value.json if isinstance(value, Raw) else _dumped(value)}" for key, value in fields.items()
    )
    return ("{" + ", ".join(members) + "}").encode()


def _dumped(value: object) -> str:
    text = _ENCODE(value)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can represent
        return json.dumps(value)
    return text
