"""Turns parts of files into documents, and documents into JSON lines.

The fields of a JSON record that are not changed stay as they are spelled: large integers, decimals of any length,
escapes. A record is one line that is known to be a JSON object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ..arguments import utf8
from ..errors import FormatError
from ..reading.bad_records import Seen
from ..reading.documents import RECORDS, Kinds, record_lines
from ..reading.input_file import InputFile
from ..reading.pieces import Cutting
from ..reading.planning import Piece, Plan, Task, anchored, described, pieces_of
from ..reading.splits import SplitOptions
from ..reading.staging import Staged
from ..reading.text_encoding import doubt_of

_BATCH_CHARACTERS = 1 << 17  # arrays of this many characters fit in a CPU cache
_LEAST_TASK = 1 << 20
_LEAST_TASKS = 64  # a task takes seconds, and progress is reported per task
_ENCODE = json.JSONEncoder(ensure_ascii=False).encode
_DECODE = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode  # numbers may have any length

__all__ = ["Document", "Task", "anchored", "batches", "json_line", "plan_tasks"]


class Document(NamedTuple):
    """A document.

    Attributes:
        text: its text.
        data: the text in UTF-8.
        line: the line of its JSON record; empty if there are no other fields.
        given: the text that the input has.
    """

    text: str
    data: bytes
    line: bytes
    given: str

    def with_text(self, text: str) -> Document:
        """Returns the document with another text."""
        return self if text == self.text else self._replace(text=text, data=utf8(text))


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
    for piece in pieces_of(task, kinds, lambda data, start: len(data)):
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


def _documents(piece: Piece, kinds: Kinds) -> Iterator[Document]:
    key = kinds.text_key
    if isinstance(piece.data, memoryview) and piece.kind == "jsonl":
        for record, line in record_lines(piece.data, key, piece.seen):
            if record[key]:
                encoded = utf8(record[key])
                text = encoded.decode()  # without lone surrogates
                yield Document(text, encoded, line if len(record) > 1 else b"", text)
        return
    data = piece.data
    for document in kinds.divide(piece.kind, data, piece.seen) if isinstance(data, memoryview) else data:
        if document:
            text = document.decode("utf-8", "replace")
            yield Document(text, text.encode(), b"", text)


class Raw(NamedTuple):
    """A JSON value as it is spelled in the input."""

    json: str


def raw_fields(line: bytes) -> dict[str, Any]:
    """Returns the fields of a record, as Raw. If a name is repeated, the last one counts, as in Python's json module.

    Raises:
        FormatError: there are too many brackets in brackets.
    """
    text = line.decode("utf-8-sig")
    at = text.index("{") + 1
    fields: dict[str, Any] = {}
    try:
        while text[at := _end_of_space(text, at)] != "}":
            key, at = _DECODE(text, at)
            at = _end_of_space(text, at)
            _, end = _DECODE(text, at)
            fields[key] = Raw(text[at:end])
            at = end
    except RecursionError:
        raise FormatError(f"a record has too many brackets in brackets: {line[:40]!r}...") from None
    return fields


def _end_of_space(text: str, at: int) -> int:
    while text[at] in " \t\r\n,:":
        at += 1
    return at


def json_line(document: Document, key: str, extra: dict[str, Any], without: str | None) -> bytes:
    """Returns a document as a JSON line, without the newline. The text has the escapes of Python's json module,
    whatever the input has; other fields stay as they are spelled there.

    Args:
        document: the document, whose text may have changed.
        key: the field with the text.
        extra: new fields, or new values of some fields.
        without: a field to leave out.
    """
    fields = raw_fields(document.line) if document.line else {}
    raw = fields.get(key)
    # Copying is faster, if the input has no escapes that the output does not have.
    if raw is None or document.text is not document.given or "\\u" in raw.json or "\\/" in raw.json:
        fields[key] = document.text
    fields |= extra
    return (
        "{" + ", ".join(f"{_dumped(name)}: {_dumped(fields[name])}" for name in fields if name != without) + "}"
    ).encode()


def _dumped(value: object) -> str:
    if isinstance(value, Raw):
        return value.json
    text = _ENCODE(value)
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can represent
        return json.dumps(value)
    return text
