"""Records that are not valid: whether a run stops at the first one, or skips and lists them.

A record is a line of a JSON lines file, or a row of a parquet or Arrow file. It is not valid if the line is not JSON,
or not UTF-8, or not an object with a string at the key of the text; or if the row is null. Everything else that is
wrong with an input stops a run in any case: a damaged compressed stream, a damaged parquet file, an error while
reading.

A worker notes what it sees in each piece of a file (Seen). The process that started the run adds this up in the order
of the corpus (SkippedRecords), so that lists are the same for any number of workers.

Limit: a run stops if more than half of its records are not valid. It looks after each task, once it has read
LEAST_RECORDS records, and at its end. Usually the key of the text is then wrong.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from .. import _binding
from ..arguments import json_text, param
from ..errors import ArgumentError, FileError, FormatError, file_errors, warn
from ..support.output_files import remove_file
from ..support.task_results import headers_of
from .file_types import RECORD_OF_RUN
from .options import ReadOptions

LEAST_RECORDS = 1000
_HEAD_BYTES = 1 << 16  # of a list: its first line


class BadRecord(NamedTuple):
    """A record that is not valid."""

    reason: str  # what is wrong
    offset: int | None = None  # the byte at which its line begins, in the decompressed text; None for a row
    line: int | None = None  # the number of its line in the piece, from 0; None for a row
    row: int | None = None  # the number of its row in the file, from 0; None for a line


class Seen:
    """The records of a piece.

    Attributes:
        path: the file.
        start: the byte or row at which the piece begins.
        skips: whether bad records are skipped; otherwise the first one raises an error.
        end: the byte or row at which the piece ends.
        lines: the number of line ends in it.
        records: the number of records, bad ones included.
        bad: the bad records.
    """

    def __init__(self, path: str, start: int, skips: bool) -> None:
        self.path, self.start, self.skips = path, start, skips
        self.end = self.lines = self.records = 0
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
        """Returns this as values that JSON can hold; Seen.of(...) restores it."""
        return self.path, self.start, self.skips, self.end, self.lines, self.records, [list(bad) for bad in self.bad]

    @classmethod
    def of(cls, plain: Any) -> Seen:
        """Returns what `plain` was made from."""
        path, start, skips, end, lines, records, bad = plain
        seen = cls(path, start, skips)
        seen.end, seen.lines, seen.records, seen.bad = end, lines, records, [BadRecord(*one) for one in bad]
        return seen


def headers_if_done(path: str, skips: bool, is_read: bool = False) -> list[dict[str, Any]] | None:
    """Returns the headers of a task's results; None if the task must be done, because there are none, or because a
    record was skipped, and this run does not skip any. `is_read` is as in `headers_of`."""
    headers = headers_of(path, is_read)
    if headers is None or skips:
        return headers
    return None if any(Seen.of(seen).bad for header in headers for seen in header["seen"]) else headers


class SkippedRecords:
    """Adds up the records of a run, and lists the bad ones.

    Args:
        write: takes the lines of the list: JSON objects with the file; the line (from 1) and the byte at which it
            begins, or the row (from 0); and the reason.
        names: the names of files that have other names on disk.
    """

    def __init__(
        self,
        write: Callable[[bytes], object] = lambda data: None,
        names: Mapping[str, str] | None = None,
    ) -> None:
        self._write, self._names = write, names or {}
        self._records = self._skipped = 0
        # The last piece: its file, where it ends, and the number of line ends before that place, None if unknown.
        self._path, self._end = "", 0
        self._lines: int | None = 0
        self._first = b""

    def add(self, seen: Seen) -> None:
        """Adds the next piece of the corpus."""
        follows = seen.path == self._path and seen.start == self._end
        before = 0 if seen.start == 0 else self._lines if follows else None
        lines = b"".join(self._line(seen, bad, before) for bad in seen.bad)
        if lines:
            self._write(lines)
            self._first = self._first or lines.partition(b"\n")[0]
        self._records += seen.records
        self._skipped += len(seen.bad)
        self._path, self._end = seen.path, seen.end
        self._lines = None if before is None else before + seen.lines

    def _line(self, seen: Seen, bad: BadRecord, before: int | None) -> bytes:
        place: dict[str, object] = {"file": self._names.get(seen.path, seen.path)}
        if bad.row is not None:
            place["row"] = bad.row
        else:
            line = None if before is None or bad.line is None else before + bad.line + 1
            place |= {"line": line, "offset": bad.offset}
        return json_text({**place, "reason": bad.reason}).encode() + b"\n"

    def check(self, at_end: bool = False) -> None:
        """Raises ArgumentError if more than half of many records are bad; at the end of a run, of any number."""
        if 2 * self._skipped > self._records and (at_end or self._records >= LEAST_RECORDS):
            raise ArgumentError(
                f"{self._skipped} of the first {self._records} records are not valid{self._example()}."
                f" {param(on_error='skip')} skips them only if they are at most half of all: check the key of the text,"
                f" {param('text_key')}"
            )

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


class OrderedRecords:
    """Adds what the tasks of a run have seen, which end in any order.

    Args:
        records: adds it up.
    """

    def __init__(self, records: SkippedRecords) -> None:
        self._records = records
        self._next = 0
        self._waiting: dict[int, Sequence[Seen]] = {}

    def add(self, task: int, seen: Sequence[Seen]) -> None:
        """Adds what a task has seen. Raises ArgumentError if more than half of many records are bad."""
        self._waiting[task] = seen
        while self._next in self._waiting:
            for piece in self._waiting.pop(self._next):
                self._records.add(piece)
            self._next += 1
        self._records.check()


@contextmanager
def listed_records(read: ReadOptions) -> Iterator[SkippedRecords]:
    """Yields what adds up the records of a run. The list appears at the end of the block, unless the block raises.

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
