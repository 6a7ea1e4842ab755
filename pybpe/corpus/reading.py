"""Turns parts of files into documents with their records: a line of JSON.

The fields of a record that are not changed stay as they are spelled: large integers, decimals of any length, escapes.
The text has the escapes of Python's json module, whatever the input has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import reduce
from itertools import compress
from typing import Any, NamedTuple

from .. import _binding
from ..arguments import utf8
from ..errors import FormatError
from ..reading.cuts import Cutting
from ..reading.documents import CLUSTER, RECORDS, Kinds
from ..reading.files import Staged
from ..reading.pieces import Piece, add_documents, lent_divider, pieces_of
from ..reading.planning import Plan, SplitOptions, Task, task_fingerprint
from ..reading.records import RecordNotes, field_path, json_value, record_line, valid_records
from ..reading.rows import Texts

_ONE_SPLIT = (1.0,)
_LEAST_TASK = 1 << 20
_LEAST_TASKS = 64  # a task takes seconds, and progress is reported per task
_DECODE = json.JSONDecoder(parse_int=str, parse_float=str).raw_decode  # numbers may have any length
_REPLACEMENT = "\ufffd".encode()
_BETWEEN = re.compile(r"[ \t\r\n,:]*")


def plan_tasks(kinds: Kinds, staged: Staged) -> tuple[list[Task], list[bytes]]:
    """Returns the tasks of a corpus, which have whole documents, and their fingerprints."""
    plan = Plan(staged.files, kinds, SplitOptions((1,)), Cutting(lambda data, start: len(data), 0, True))
    plan.hashed = True  # every document by itself, as if it might go to any split
    # A power of two: if a file changes a little, the tasks of the others stay the same.
    plan.task_bytes = min(plan.task_bytes, max(_LEAST_TASK, 1 << (staged.files.size // _LEAST_TASKS).bit_length() >> 1))
    tasks = list(plan.tasks())
    return tasks, [task_fingerprint(task, staged.fingerprint) for task in tasks]


class DocumentBatch(NamedTuple):
    """Some documents."""

    texts: _binding.Strings  # of the selected documents, not empty, in valid UTF-8
    lines: _binding.Strings  # their records, with newlines
    size: int  # the number of bytes that were read
    notes: RecordNotes  # the records that were read
    doubt: str | None  # a warning about the first file of the task that is not UTF-8
    others: _binding.Strings  # of the records that are not selected
    nulls: int  # how many numbers of rows became null (see record_line)
    fields: Collection[str]  # which of the fields that the condition names were found


def batches(task: Task, kinds: Kinds, no_cluster: bool) -> Iterator[DocumentBatch]:
    """Yields a task's documents; with `no_cluster`, without the field CLUSTER of their records."""
    doubted = False
    for piece in pieces_of(task, kinds, lambda data, start: len(data)):
        doubt = None if doubted else piece.doubt()
        texts, lines, kept, nulls = _documents(piece, kinds, no_cluster)
        doubt = doubt if doubted else doubt or _damaged(piece, texts)
        doubted = doubted or doubt is not None
        fields: Collection[str] = () if kinds.where is None else kinds.where.names
        if kinds.where is not None and kept is None:
            kept, fields = kinds.where.of_records(map(json.loads, lines.list()))
        others: list[bytes] = []
        if kept is not None and not all(kept):
            others = [text for text, is_kept in zip(texts.list(), kept) if not is_kept]
            texts, lines = (_binding.Strings(list(compress(some.list(), kept))) for some in (texts, lines))
        yield DocumentBatch(texts, lines, piece.size, piece.notes, doubt, _binding.Strings(others), nulls, fields)


def _damaged(piece: Piece, texts: _binding.Strings) -> str | None:
    """Returns the warning about a text in a column that is not UTF-8. `texts` are the texts of the piece in UTF-8."""
    if isinstance(piece.data, Texts) and piece.kind in RECORDS and _REPLACEMENT in bytes(texts.data):
        for text in piece.data:
            if (at := _binding.utf8_valid(text)) < len(text):
                told = f"{piece.path}: has a text that is not UTF-8 at its byte {at}"
                return f"{told}: such bytes become the character U+FFFD"
    return None


def _documents(
    piece: Piece, kinds: Kinds, no_cluster: bool
) -> tuple[_binding.Strings, _binding.Strings, list[bool] | None, int]:
    """Returns the texts of a piece, their records, which rows are selected, if that is known already, and how many of
    their numbers became null."""
    key, data, notes, without = kinds.read.text_key, piece.data, piece.notes, CLUSTER if no_cluster else None
    if piece.kind == "jsonl":
        assert isinstance(data, memoryview)  # no other data has records
        if (found := _binding.read_records(data, key, no_cluster)) is not None:
            notes.end, notes.records, notes.lines = notes.start + len(data), found.records, found.line_ends
            return found.texts, found.lines, None, 0
        pairs = [(utf8(record[key]), line) for record, line in valid_records(data, key, notes) if record[key]]
        lines = [json_line(line, {key: text.decode()}, without) for text, line in pairs]
        return _binding.Strings([text for text, _ in pairs]), _binding.Strings(lines), None, 0
    if not isinstance(data, memoryview) and data.fields:
        rows = [(text.decode("utf-8", "replace"), fields) for _, text, fields in data.records()]
        kept = [bool(fields) for _, fields in rows] if kinds.where is not None else None
        for text, fields in rows:
            if fields:
                *outer, last = field_path(fields, key) or (key,)
                reduce(lambda value, name: value[name], outer, fields)[last] = text
        spelled, nulls = list[bytes](), 0
        for _, fields in rows:
            line, count = record_line(piece.path, fields, without)
            spelled.append(line)
            nulls += count
        return _binding.Strings([text.encode() for text, _ in rows]), _binding.Strings(spelled), kept, nulls
    with lent_divider(kinds, b"", _ONE_SPLIT) as divider:
        is_whole = add_documents(divider, piece)
        assert is_whole  # only JSON lines need Python
        texts = divider.texts(0)
    name = json_value(key).encode()
    if (made := _binding.write_records(texts, name)) is None:
        texts = _binding.Strings([text.decode("utf-8", "replace").encode() for text in texts.list()])
        made = _binding.write_records(texts, name)
        assert made is not None  # all are UTF-8 now
    return texts, made, None, 0


def text_of(line: _binding.Data, key: str) -> str:
    """Returns the text of a record."""
    record: Any = json.loads(bytes(line))
    found: str = reduce(lambda value, name: value[name], field_path(record, key) or (key,), record)
    return found


def json_line(line: bytes, changes: Mapping[str, object], without: str | None = None) -> bytes:
    """Returns a record as a line, with new fields, or new values of some, and without one of them. Raises FormatError
    if there are too many brackets in brackets."""
    fields = _fields(line)
    for name, value in changes.items():
        first, _, rest = name.partition(".")
        if rest and name not in fields and fields.get(first, "").startswith("{"):  # as in field_path
            fields[first] = json_line(fields[first].encode(), {rest: value}).decode().rstrip("\n")
        else:
            fields[name] = json_value(value)
    return (
        "{" + ", ".join(f"{json_value(name)}: {fields[name]}" for name in fields if name != without) + "}\n"
    ).encode()


def _fields(line: bytes) -> dict[str, str]:
    """Returns the fields of a record as they are spelled. If a name is repeated, the last one counts, as in Python's
    json module."""
    text = line.decode("utf-8-sig")
    at = text.index("{") + 1
    fields: dict[str, str] = {}
    try:
        while text[at := _end_of_space(text, at)] != "}":
            name, at = _DECODE(text, at)
            at = _end_of_space(text, at)
            _, end = _DECODE(text, at)
            fields[name] = text[at:end]
            at = end
    except RecursionError:
        raise FormatError(f"a record has too many brackets in brackets: {line[:40]!r}...") from None
    return fields


def _end_of_space(text: str, at: int) -> int:
    found = _BETWEEN.match(text, at)
    assert found is not None  # it may be empty
    return found.end()
