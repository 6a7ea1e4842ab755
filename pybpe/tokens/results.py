"""The tokens of a task, as the results of task_results.py.

A result has the ids of each split, with <|endoftext|> between documents, and where documents begin among them. Input
texts may have this mark before documents, after them, or at both ends of a file. Whatever the input has, each non-empty
document gets exactly one, before it ("prepend") or after it ("append"), or none at all ("none").

A task does not know whether its first document began in a task before it. It writes its tokens as if none did. Whoever
reads the results in order knows, and changes at most one token, the first of a split in a task:

    the task begins with    and a document goes on          otherwise
    text                    no mark before it ("prepend")   as written; a document begins
    a mark                  a mark before it ("append")     as written
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .. import _binding
from ..reading.documents import Seen
from ..reading.splits import SPLIT_NAMES
from ..support.task_results import Result, Section, packed

EOT_MODES = ("prepend", "append", "none")
KEEP = "keep"  # encode_files only: the ids of the text as it is, marks included
TYPECODES = {"uint16": "H", "uint32": "I"}  # of the array module, by dtype
ID_BYTES = {"uint16": 2, "uint32": 4}  # bytes per id, by dtype
_RESULT_TOKENS = 1 << 20
_TEXT, _MARK = "text", "mark"  # what the tokens of a split begin with in a task; "" if that is known from before


class Segment(NamedTuple):
    """The ids of a piece that go to one split."""

    split: int  # index into SPLIT_NAMES
    ids: array[int]  # an array of type H or I, with the mark, <|endoftext|>, between documents
    marks: int  # the number of marks in `ids`
    text_bytes: int  # the size of the encoded text, without marks
    ends_document: bool  # whether a document ends with it


class Encoded(NamedTuple):
    """Some work of a run."""

    segments: Sequence[Segment]  # in order
    size: int  # the amount of input read for them, such as bytes of text
    ends_task: bool = False  # whether a task ends with them
    doubt: str | None = None  # what to say about a file that is not UTF-8 (see charset.py)
    seen: Sequence[Seen] = ()  # the records of the pieces, in order
    sums: Sequence[int] = ()  # checksums of the text that was read, if the task reads a part of a file


class Order(NamedTuple):
    """A task to do."""

    task: Any
    path: str  # the file for its results
    stamp: str = ""  # identifies the versions of the files that it reads


class Marks(NamedTuple):
    """Where the marks of a stream go."""

    mode: str  # one of EOT_MODES, or KEEP
    eot: int | None  # the id of the mark; None only if the texts have none, and the mode is "none" or KEEP
    dtype: str  # of the ids


class EotPlacer:
    """Places the marks of one split's stream.

    Args:
        mode, eot: as in Marks.
        is_open: whether the stream is inside a document, for resuming where another placer stopped.
    """

    def __init__(self, mode: str, eot: int | None, is_open: bool = False) -> None:
        self._mode = "none" if eot is None else mode
        self._eot = _binding.NO_ID if eot is None else eot
        self.is_open = is_open  # whether the last token belongs to a document that has not ended

    def place(self, ids: array[int], marks: int) -> tuple[array[int] | memoryview, array[int] | memoryview]:
        """Returns the next tokens of the stream, with the marks where they belong.

        Args:
            ids: an array of type H or I.
            marks: the number of marks among them.

        Returns:
            The tokens, and where in them documents begin (at the mark, if it comes first), of type Q.
        """
        if self._mode == KEEP:
            self.is_open |= len(ids) > 0
            return ids, array("Q")
        if not marks and (self.is_open or not ids):  # nothing to do, as for most pieces of long documents
            return ids, array("Q")
        if not marks:  # one document begins
            self.is_open = True
            return (array(ids.typecode, (self._eot,)) + ids if self._mode == "prepend" else ids), array("Q", (0,))
        placed, starts, self.is_open = _binding.place_marks(ids, self._eot, marks, self._mode, self.is_open)
        return placed, starts

    def end_document(self, typecode: str) -> array[int]:
        """Returns the mark, if any, that the end of a document needs, as an array of the given type."""
        was_open, self.is_open = self.is_open, False
        return array(typecode, [self._eot] if was_open and self._mode == "append" else [])


# ----------------------------------------------------------------------------------------------------
# Writing


class _Split:
    """The tokens of a split in a task, and those of its next result."""

    def __init__(self, marks: Marks) -> None:
        self._marks, self._placer = marks, EotPlacer(marks.mode, marks.eot)
        self._has_begun = False
        self._empty()

    def _empty(self) -> None:
        self._begins, self.tokens, self._text_bytes = "", 0, 0
        self._ids: list[array[int] | memoryview] = []
        self._starts = array("Q")

    def add(self, segment: Segment) -> None:
        """Adds a segment."""
        if not self._has_begun and (segment.ids or segment.ends_document):
            self._has_begun = True
            self._begins = _TEXT if segment.ids and segment.ids[0] != self._marks.eot else _MARK
        ids, starts = self._placer.place(segment.ids, segment.marks)
        if len(starts) == 1:  # as of each small file: a call to C would take longer
            self._starts.append(self.tokens + starts[0])
        elif starts:
            self._starts.frombytes(_binding.shift_starts(starts, self.tokens).cast("B"))
        self._ids.append(ids)
        self.tokens += len(ids)
        self._text_bytes += segment.text_bytes
        if segment.ends_document and (mark := self._placer.end_document(segment.ids.typecode)):
            self._ids.append(mark)
            self.tokens += 1

    def result(self) -> tuple[list[Any], list[_binding.Data], list[_binding.Data]]:
        """Returns the counts, ids and starts of the next result, and begins another one."""
        is_open = self._placer.is_open if self._has_begun else None
        counts = [self.tokens, len(self._starts), self._text_bytes, self._begins, is_open]
        found = counts, [_little(ids) for ids in self._ids], [_little(self._starts)]
        self._empty()
        return found


def task_data(found: Iterable[Encoded], splits: int, marks: Marks, stamp: str = "") -> Iterator[_binding.Data]:
    """Yields the results of a task, in the form of task_results.py, in parts. There is a result for each
    _RESULT_TOKENS, because a compressed file is one task, however long its text is. `stamp` is as in Order."""
    streams = [_Split(marks) for _ in range(splits)]
    header = _header(stamp)
    for each in found:
        for segment in each.segments:
            streams[segment.split].add(segment)
        header["size"] += each.size
        header["doubts"] += [each.doubt] if each.doubt is not None else []
        header["seen"] += [some.plain() for some in each.seen]
        header["sums"] += each.sums
        if sum(stream.tokens for stream in streams) >= _RESULT_TOKENS:
            yield from _result(streams, header)
            header = _header(stamp)
    yield from _result(streams, header)


def _header(stamp: str) -> dict[str, Any]:
    return {"stamp": stamp, "size": 0, "doubts": [], "seen": [], "sums": []}


def _result(streams: Sequence[_Split], header: dict[str, Any]) -> list[_binding.Data]:
    counts, sections = list[Any](), dict[str, list[_binding.Data]]()
    for name, stream in zip(SPLIT_NAMES, streams):
        some, sections[name], sections[f"{name} starts"] = stream.result()
        counts.append(some)
    return packed({**header, "splits": counts}, sections)


def _little(items: array[int] | memoryview) -> _binding.Data:
    """Returns integers as files have them."""
    if sys.byteorder == "big":  # pragma: no cover (other machines)
        items = array(memoryview(items).format, items)
        items.byteswap()
    return memoryview(items).cast("B") if len(items) else b""


# ----------------------------------------------------------------------------------------------------
# Reading


class Stream:
    """How far a split has come, in the order of the tasks.

    Attributes:
        tokens, documents, text_bytes: the numbers so far.
    """

    def __init__(self, split: int, marks: Marks) -> None:
        self._split, self._mode = split, "none" if marks.eot is None and marks.mode != KEEP else marks.mode
        self._is_open = False
        self.tokens = self.documents = self.text_bytes = 0

    def take(self, counts: Sequence[Any]) -> Part:
        """Takes the next result, of which these are the counts in its header."""
        tokens, documents, text_bytes, begins, is_open = counts[self._split]
        goes_on = self._is_open and begins == _TEXT and self._mode != KEEP
        part = Part(
            self._is_open and begins == _MARK and self._mode == "append",
            goes_on and self._mode == "prepend",
            goes_on,
            tokens,
            documents,
            text_bytes,
        )
        self.tokens += part.has_mark + tokens - part.skipped
        self.documents += documents - goes_on
        self.text_bytes += text_bytes
        if is_open is not None:
            self._is_open = is_open
        return part


class Part(NamedTuple):
    """What a split gets of a result."""

    has_mark: bool  # whether a mark comes before its tokens
    skipped: bool  # whether its first token is left out
    goes_on: bool  # whether its first document began before it
    tokens: int  # this, `documents` and `text_bytes`: the numbers in the result
    documents: int
    text_bytes: int


def read_ids(section: Section, dtype: str) -> array[int]:
    """Returns the ids of a section."""
    return _items(section, TYPECODES[dtype])


def read_starts(result: Result, split: int, part: Part) -> array[int]:
    """Returns where documents begin among the tokens of a result, the first one if it does not go on."""
    return _items(result.sections[f"{SPLIT_NAMES[split]} starts"], "Q")[part.goes_on :]


def _items(section: Section, typecode: str) -> array[int]:
    items = array(typecode, section.read())
    if sys.byteorder == "big":  # pragma: no cover (other machines)
        items.byteswap()
    return items
