"""The kinds of input files: how the documents in them are told apart.

    special   plain text in which <|endoftext|> stands between documents
    file      plain text, one document a file
    blank     plain text, blank lines between documents; the line ends around a document do not belong to it
    line      plain text, one document a line
    jsonl     one JSON record a line, whose text is a document
    parquet   one record a row

In plain text special tokens are recognised. The texts of records are ordinary text in every part, so that
none can forge a control token.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from .. import _binding
from ..arguments import instance, is_unicode, one_of
from ..errors import ArgumentError
from ..inputs import has_records, line_cut, records
from ..model import END_OF_TEXT
from ..pretokenize import Cut, utf8

DOCUMENTS = ("auto", "special", "file", "blank", "line", "jsonl")
RECORDS = ("jsonl", "parquet")

_MARK = END_OF_TEXT.encode()
_MATCHER = _binding.Specials({END_OF_TEXT: 0})  # finds marks many times faster than bytes.find
_BLANK = re.compile(rb"\n\r?\n")
_BLANKS = re.compile(rb"\r?\n(?:\r?\n)+")


@dataclass(frozen=True)
class Kinds:
    """Which kind each file is.

    Attributes:
        documents: one of DOCUMENTS: what the user said of files whose name does not tell. "auto" is "special",
            or "file" if the tokenizer has no such token.
        text_key: the name of the text in a record.
        has_mark: whether the tokenizer has <|endoftext|>.
    """

    documents: str
    text_key: str
    has_mark: bool

    def __post_init__(self) -> None:
        one_of("documents", self.documents, DOCUMENTS)
        instance("text_key", self.text_key, str, "a str")
        if not is_unicode(self.text_key):
            raise ArgumentError("text_key holds a lone surrogate: not valid Unicode")
        if self.documents == "special" and not self.has_mark:
            raise ArgumentError(f"documents='special': the tokenizer has no {END_OF_TEXT} to separate them")

    def kind(self, path: str) -> str:
        """The kind of a file."""
        if path.endswith(".parquet"):
            return "parquet"
        if has_records(path):
            return "jsonl"
        if self.documents == "auto":
            return "special" if self.has_mark else "file"
        return self.documents

    def is_divided(self, path: str) -> bool:
        """Whether a file is handed on document by document even if its split is known: else it is a text,
        whose pieces may be cut anywhere, and in which marks show where documents end."""
        return self.kind(path) not in ("special", "file")

    def divide(self, data: memoryview, path: str, offset: int) -> Iterator[bytes]:
        """The documents, none of them empty, of a piece that begins and ends between two. `offset` is its
        place in the file."""
        return (document for document, _ in self.divide_with_clusters(data, path, offset))

    def divide_with_clusters(self, data: memoryview, path: str, offset: int) -> Iterator[tuple[bytes, bytes]]:
        """The same with what decides the split of each: the name of its cluster of near duplicates, if its record
        has one in the field "cluster" (see pybpe.corpus), else the document itself."""
        kind = self.kind(path)
        if kind == "jsonl":
            for record in records(data, self.text_key, path, offset):
                document = bytes(utf8(record[self.text_key]))
                cluster = record.get("cluster")
                if document:
                    yield document, utf8(cluster) if isinstance(cluster, str) else document
            return
        found: Iterator[bytes]
        if kind == "blank":
            found = (document.strip(b"\r\n") for document in _BLANKS.split(bytes(data)))
        elif kind == "line":
            found = (line.removesuffix(b"\r") for line in bytes(data).split(b"\n"))
        elif kind == "special":
            found = iter(bytes(data).split(_MARK))
        else:
            found = iter([bytes(data)])
        yield from ((document, document) for document in found if document)


CONTEXT = len(_MARK)  # bytes before a place that decide whether a document begins there


def document_cut(kind: str) -> Cut:
    """Where a file of some kind can be cut between documents. For "file", nowhere."""
    if kind == "special":
        return _mark_cut
    if kind == "blank":
        return _blank_cut
    if kind in ("line", "jsonl"):
        return line_cut
    return lambda data, start: len(data)


def _mark_cut(data: _binding.Data, start: int) -> int:
    found = find_mark(data, max(0, start - len(_MARK)))
    return found[1] if found is not None else len(data)


def find_mark(data: _binding.Data, start: int) -> tuple[int, int] | None:
    """Where the first <|endoftext|> at or behind `start` begins and ends."""
    found = _MATCHER.find(data, start)
    return found[:2] if found is not None else None


def _blank_cut(data: _binding.Data, start: int) -> int:
    found = _BLANK.search(data, max(0, start - 3))
    while found is not None and found.end() < start:
        found = _BLANK.search(data, found.start() + 1)
    return found.end() if found is not None else len(data)
