"""Records: JSON lines, and what a run does about records that are not valid."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import reduce
from itertools import islice
from typing import Any, NamedTuple

from .. import _binding
from ..arguments import can_pass, is_unicode, json_text, number_of, param, shown
from ..errors import ArgumentError, FileError, FormatError, file_errors, note, warn
from ..support.output_files import remove_file
from ..support.task_results import Order, Result, headers_of, results_in
from .charset import Doubts
from .file_types import RECORD_OF_RUN
from .inputs import ReadOptions, first_of

# ----------------------------------------------------------------------------------------------------
# JSON lines: one record per line, whose text is a document

_ENCODE = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def json_value(value: object) -> str:
    """Returns a value as JSON. Raises TypeError or ValueError if JSON cannot hold it."""
    text = _ENCODE(value)
    return text if is_unicode(text) else json.dumps(value)  # only an escape can represent a lone surrogate


def record_line(place: str, fields: Mapping[str, Any], without: str | None = None) -> tuple[bytes, int]:
    """Returns a record as a line, without one of its fields, and how many of its numbers became null, because JSON has
    no NaN and no infinity. Raises FormatError, which names the place, if JSON cannot hold a value."""
    members, nulls = list[str](), 0
    for name, value in fields.items():
        try:
            spelled, count = ("null", 1) if value != value else _json_or_null(value)
            spelled = f"{json_value('' + name)}: {spelled}"
        except (TypeError, ValueError):
            told = f"the column {name!r} has {shown(value)}, which JSON lines cannot hold: convert it, or leave it out"
            raise FormatError(f"{place}: {told}") from None
        if name != without:
            members.append(spelled)
            nulls += count
    return ("{" + ", ".join(members) + "}\n").encode(), nulls


def _json_or_null(value: object) -> tuple[str, int]:
    """Returns a value as JSON, with null for NaN and infinite numbers in it, and how many there are. Raises what
    json_value raises for others."""
    found = list[str]()
    try:
        return json_value(value), 0
    except ValueError:
        return json_value(json.loads(json.dumps(value), parse_constant=found.append)), len(found)


def tell_nulls(place: str, count: int) -> None:
    """Warns that numbers of records became null, if any did."""
    if count:
        told = f"{number_of(count, 'number')} that {'is' if count == 1 else 'are'} NaN or infinite became null"
        warn(f"{place}: {told}, because JSON has no such numbers")


_OF_ARRAY = "if the file is a JSON array, convert it to JSON lines (jq -c '.[]' x.json > x.jsonl)"


def valid_records(lines: memoryview, text_key: str, notes: RecordNotes) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yields the records of JSON lines that begin at byte `notes.start` of a file, with their lines, and with a
    string at `text_key`, which is put there if it is in an object of the record. Skips blank lines. `notes` gets the
    number of records, and which of them are not valid."""
    offset, notes.records, notes.bad = notes.start, 0, []  # C may have tried it before
    parts = bytes(lines).split(b"\n")
    for number, line in enumerate(parts):
        if line and not line.isspace():
            notes.records += 1
            record, *problem = _record(line, text_key)
            if record is not None:
                yield record, line
            else:
                notes.bad_line(offset, number, *problem)
        offset += len(line) + 1
    notes.end, notes.lines = notes.start + len(lines), len(parts) - 1


def json_problem(error: Exception) -> str:
    """Returns the problem with a JSON text that Python cannot read. A plain ValueError is about a long integer."""
    is_long = isinstance(error, ValueError) and not isinstance(error, (json.JSONDecodeError, UnicodeError))
    return "it has an integer of too many digits" if is_long else str(error)


def field_path(fields: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    """Returns the names that lead to a field: one if there is a field with this name, and otherwise one for every part
    of a key such as "doc.text". None if there is no such field. Objects in `fields` are mappings.

    >>> field_path({"doc": {"text": ""}}, "doc.text"), field_path({"doc.text": "", "doc": {"text": ""}}, "doc.text")
    (('doc', 'text'), ('doc.text',))
    """
    if key in fields:
        return (key,)
    first, _, rest = key.partition(".")
    inner = fields.get(first)
    path = field_path(inner, rest) if rest and isinstance(inner, Mapping) else None
    return None if path is None else (first, *path)


def id_of(record: Mapping[str, Any], key: str) -> bytes | None:
    """Returns the id of a record as a text in UTF-8: a string as it is, anything else as JSON. None if it has none."""
    if key in record:
        return _id_text(record[key])
    path = field_path(record, key)
    return None if path is None else _id_text(reduce(lambda value, name: value[name], path, record))


def spelled_ids(values: list[bytes]) -> list[bytes | None]:
    """Like `id_of`, for values as their records spell them, b"" for none."""
    if b"\\" not in b"".join(values) and all(value[:1] == b'"' for value in values):  # json.loads takes longer
        return [value[1:-1] for value in values]
    return list(map(_spelled_id, values))


def _spelled_id(value: bytes) -> bytes | None:
    try:
        return _id_text(json.loads(value)) if value else None
    except ValueError:  # an integer of too many digits
        return value


def _id_text(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    elif not isinstance(value, str):
        value = json.dumps(value, default=str)
    found: str = value if is_unicode(value) else json.dumps(value)
    return found.encode()


def _record(line: bytes, text_key: str) -> tuple[dict[str, Any] | None, str, str]:
    """Returns the record of a line; or None, the fault of the line, and the remedy."""
    try:
        record = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        return (
            None,
            f"not UTF-8 at its byte {error.start}",
            f"if the file has another encoding, pass {param('encoding')}",
        )
    except (ValueError, RecursionError) as error:
        return None, f"not JSON ({json_problem(error)})", _OF_ARRAY if line.lstrip()[:1] == b"[" else ""
    if isinstance(record, dict) and text_key not in record and (path := field_path(record, text_key)) is not None:
        record[text_key] = reduce(lambda value, name: value[name], path, record)
    if isinstance(record, dict) and isinstance(record.get(text_key), str):
        return record, "", ""
    problem, remedy = f"expected an object with a string {text_key!r}", _OF_ARRAY if isinstance(record, list) else ""
    if isinstance(record, dict) and text_key not in record:
        keys = ", ".join(repr(key[:40]) for key in islice(record, 8))
        problem += f", but its keys are {keys or 'none'}"
        remedy = f"pass the key of the text in {param('text_key')}" if can_pass("text_key") else ""
    return None, problem, remedy


# ----------------------------------------------------------------------------------------------------
# Records that are not valid: a run stops at the first one, or skips and lists them
#
# A record is a line of a JSON lines file, or a row of a parquet or Arrow file. It is not valid if the line is not JSON,
# or not UTF-8, or not an object with a string at the key of the text, or if the row is null. Everything else that is
# wrong with an input stops a run in any case: a damaged compressed stream, a damaged parquet file, an error while
# reading.
#
# A worker makes notes about the pieces of a file (RecordNotes). The process that started the run adds them up in the
# order of the corpus (SkippedRecords), so that lists are the same for any number of workers.
#
# Limit: a run stops if more than half of its records are not valid. It looks after every task, once it has read
# LEAST_RECORDS records, and at its end. Usually the key of the text is then wrong.

LEAST_RECORDS = 1000
_HEAD_BYTES = 1 << 16  # of a list: its first line


class BadRecord(NamedTuple):
    """A record that is not valid."""

    reason: str  # the problem
    offset: int | None = None  # the byte where its line begins, in the decompressed text, or None for a row
    line: int | None = None  # the number of its line in the piece, from 0, or None for a row
    row: int | None = None  # the number of its row in the file, from 0, or None for a line


class RecordNotes:
    """Notes about the records of a piece.

    Attributes:
        path: the file.
        start: the byte or row where the piece begins.
        skips: whether bad records are skipped, otherwise the first one raises an error.
        end: the byte or row where the piece ends.
        lines: the number of line ends in it.
        records: the number of records, bad ones included.
        has_ids: whether a record of JSON lines has an id, or None if ids are not wanted.
        bad: the bad records.
    """

    def __init__(self, path: str, start: int, skips: bool) -> None:
        self.path, self.start, self.skips = path, start, skips
        self.end = self.lines = self.records = 0
        self.has_ids: bool | None = None
        self.bad = list[BadRecord]()

    def bad_line(self, offset: int, line: int, reason: str, remedy: str = "") -> None:
        """Notes a line that is not a record. Raises FormatError, with a remedy, unless bad records are skipped."""
        if not self.skips:
            more = f": {remedy}" if remedy else ""
            raise FormatError(f"{self.path}: the line at byte {offset}: {reason}{more}", offset)
        self.bad.append(BadRecord(reason, offset, line))

    def bad_row(self, row: int, reason: str) -> None:
        """Notes a row without text. Raises FormatError unless bad records are skipped."""
        if not self.skips:
            raise FormatError(f"{self.path}: row {row}: {reason}")
        self.bad.append(BadRecord(reason, row=row))

    def plain(self) -> tuple[Any, ...]:
        """Returns this as values that JSON can hold; RecordNotes.of(...) restores it."""
        counts = self.end, self.lines, self.records, self.has_ids
        return self.path, self.start, self.skips, *counts, [list(bad) for bad in self.bad]

    @classmethod
    def of(cls, plain: Any) -> RecordNotes:
        """Returns what `plain` was made from."""
        path, start, skips, *counts, bad = plain
        notes = cls(path, start, skips)
        notes.end, notes.lines, notes.records, notes.has_ids = counts
        notes.bad = [BadRecord(*one) for one in bad]
        return notes


def headers_if_done(path: str, skips: bool, is_read: bool = False) -> list[dict[str, Any]] | None:
    """Returns the headers of a task's results, or None if the task must be done, because there are none, or because a
    record was skipped, and this run does not skip any. `is_read` is as in `headers_of`."""
    headers = headers_of(path, is_read)
    if headers is None or skips:
        return headers
    return None if any(RecordNotes.of(notes).bad for header in headers for notes in header["notes"]) else headers


def results_when_done(
    orders: Iterable[Order], left: Iterable[Order], done: Iterator[None], doubts: Doubts, skipped: SkippedRecords
) -> Iterator[tuple[str, Result, dict[str, Any]]]:
    """Yields the results of tasks, in order, as soon as they are there: the file, the result, and its header, whose
    notes it takes, about text that is not UTF-8 and about records. `done` does the tasks that are `left`, and yields
    after each. Raises ArgumentError if most records are not valid, or at the end if no JSON line has an id. Warns about
    files without ids."""
    paths = {order.path for order in left}
    for order in orders:
        if order.path in paths:
            next(done)
        for result, header in results_in(order.path):
            for doubt in header["doubts"]:
                doubts.tell(doubt)
            for notes in header["notes"]:
                skipped.add(RecordNotes.of(notes))
            yield order.path, result, header
        skipped.check()
    skipped.check(at_end=True)


class SkippedRecords:
    """Adds up the records of a run, and lists the bad ones.

    Args:
        write: takes the lines of the list: JSON objects with the file, the line (from 1) and the byte where it
            begins, or the row (from 0), and the reason.
        names: the names of files that have other names on disk.
        id_key: the key of the ids of records, if they are wanted. A record of JSON lines must have one.
    """

    def __init__(
        self,
        write: Callable[[bytes], object] = lambda data: None,
        names: Mapping[str, str] | None = None,
        id_key: str | None = None,
    ) -> None:
        self._write, self._names, self._id_key = write, names or {}, id_key
        self._records = self._skipped = 0
        self._has_ids: bool | None = None  # whether a record of the last file has an id, None if nobody asks
        self._has_any_id, self._without_ids = (
            False,
            0,
        )  # whether a JSON line of the run has an id; the lines before that
        self._lacking = list[str]()  # files without ids
        # The last piece: its file, where it ends, and the number of line ends before that place, None if unknown.
        self._path, self._end = "", 0
        self._lines: int | None = 0
        self._first = b""
        self._next, self._waiting = 0, dict[int, Sequence[RecordNotes]]()  # the next task, and tasks after it

    def add_task(self, number: int, some: Sequence[RecordNotes]) -> None:
        """Adds the notes of a task. Tasks may end in any order. Raises ArgumentError as `check` does."""
        self._waiting[number] = some
        while self._next in self._waiting:
            for piece in self._waiting.pop(self._next):
                self.add(piece)
            self._next += 1
        self.check()

    def add(self, notes: RecordNotes) -> None:
        """Adds the next piece of the corpus."""
        if notes.path != self._path:
            self._end_file()
        if notes.has_ids is not None and notes.records:
            self._has_ids = self._has_ids or notes.has_ids
            self._has_any_id |= notes.has_ids
            more = 0 if self._has_any_id else notes.records
            self._without_ids += more
            if self._without_ids - more < LEAST_RECORDS <= self._without_ids:
                name = self._names.get(notes.path, notes.path)
                told = f"none of the first {self._without_ids} JSON lines has the key {self._id_key!r}"
                note(f"{name}: {told}. If no line has it, the end of the run refuses {param('id_key')}")
        follows = notes.path == self._path and notes.start == self._end
        before = 0 if notes.start == 0 else self._lines if follows else None
        lines = b"".join(self._line(notes, bad, before) for bad in notes.bad)
        if lines:
            self._write(lines)
            self._first = self._first or lines.partition(b"\n")[0]
        self._records += notes.records
        self._skipped += len(notes.bad)
        self._path, self._end = notes.path, notes.end
        self._lines = None if before is None else before + notes.lines

    def _end_file(self) -> None:
        if self._has_ids is False:
            self._lacking.append(self._names.get(self._path, self._path))
        self._has_ids = None

    def _line(self, notes: RecordNotes, bad: BadRecord, before: int | None) -> bytes:
        place: dict[str, object] = {"file": self._names.get(notes.path, notes.path)}
        if bad.row is not None:
            place["row"] = bad.row
        else:
            line = None if before is None or bad.line is None else before + bad.line + 1
            place |= {"line": line, "offset": bad.offset}
        return json_text({**place, "reason": bad.reason}).encode() + b"\n"

    def check(self, at_end: bool = False) -> None:
        """Raises ArgumentError if more than half of many records are bad; at the end of a run, of any number. Then it
        also raises it if no JSON line has an id, or warns about files without ids: only the end shows which."""
        if 2 * self._skipped > self._records and (at_end or self._records >= LEAST_RECORDS):
            raise ArgumentError(
                f"{self._skipped} of the first {self._records} records are not valid{self._example()}."
                f" {param(on_error='skip')} skips them only if they are at most half of all: check the key of the text,"
                f" {param('text_key')}"
            )
        if at_end:
            self._end_file()
            lacking, self._lacking = self._lacking, []
            if lacking:
                told = f"{first_of(lacking)}: no JSON line has the key {self._id_key!r}"
                if not self._has_any_id:
                    raise ArgumentError(f"{told}: pass the key of an id in {param('id_key')}")
                warn(f"{told}, so the ids are null")

    def finish(self, listed: str | None) -> dict[str, Any]:
        """Ends the run: warns if records were skipped. `listed` is the file that lists them, if there is one. Returns
        what a manifest says: the number of records, and how many of them were skipped. Raises ArgumentError if more
        than half of all records are bad."""
        self.check(at_end=True)
        if self._skipped:
            where = f": {listed} lists them" if listed is not None else ""
            count = f"{self._skipped} of {self._records} records are not valid{self._example()}"
            warn(f"{count}. {'They were' if self._skipped > 1 else 'It was'} skipped{where}")
        return {"records": self._records, "skipped": self._skipped}

    def _example(self) -> str:
        if not self._first:
            return ""
        found = json.loads(self._first)
        what = "row" if "row" in found else "line" if found["line"] is not None else "offset"
        where = f"{'byte' if what == 'offset' else what} {found[what]}"
        return f", such as {found['file']}: {where}: {found['reason']}"


@contextmanager
def listed_records(read: ReadOptions) -> Iterator[SkippedRecords]:
    """Yields an object that adds up the records of a run. The list appears at the end of the block, unless the block
    raises.

    Args:
        read: whether bad records are skipped, and where the list goes, if anywhere.
    """
    if read.skipped is None:
        records = SkippedRecords()
        yield records
        records.finish(None)
        return
    with _binding.Output(read.skipped) as output:
        records = SkippedRecords(output.write)
        yield records
        records.finish(read.skipped)


def list_name(output: str) -> str:
    """Returns where the list of skipped records goes if the user does not say: next to the output."""
    return f"{output}.skipped.jsonl"


def is_other(path: str) -> bool:
    """Returns whether there is a file that is not such a list, nor empty as the list of a run that skipped nothing."""
    if not os.path.exists(path):
        return False
    with file_errors(path, "cannot be read"), open(path, "rb") as stream:
        head = stream.read(_HEAD_BYTES)
    return bool(head) and RECORD_OF_RUN.match(head) is None


def remove_list(path: str) -> None:
    """Removes the list that an earlier run left there, because it would seem to belong to this run. A file that is not
    such a list stays."""
    with suppress(FileError):
        if not is_other(path):
            remove_file(path)


def check_list(path: str) -> None:
    """Raises ArgumentError if a list whose name the caller did not choose would replace another file."""
    if is_other(path):
        raise ArgumentError(f"{path}: the list of skipped records would replace this file: give it another name")
