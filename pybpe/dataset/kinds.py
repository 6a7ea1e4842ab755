"""The kinds of input files: how the documents in them are told apart.

    special   plain text in which the tokenizer's end of text, such as <|endoftext|>, stands between documents
    file      plain text, one document a file
    blank     plain text, blank lines between documents; the line ends around a document do not belong to it
    line      plain text, one document a line
    jsonl     one JSON record a line, whose text is a document
    parquet   one record a row

In plain text special tokens are recognised. The texts of records are ordinary text in every part, so that
none can forge a control token.

What ends a document in plain text is also what the token files have between documents: the tokenizer's end of text,
its `eot_token`. Nothing else does, however documents are split.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from .. import _binding
from ..arguments import instance, is_unicode, one_of, shown
from ..control_tokens import END_OF_TEXT
from ..errors import ArgumentError
from ..input_file import InputFile
from ..inputs import has_records, line_cut, records
from ..pretokenize import Cut, utf8
from ..warning import warn

NAME_IT = (
    f"train with the special token {END_OF_TEXT} (--special-token), or say when training which other special token ends"
    " a document (--end-of-text), or add it to this tokenizer with extend (pybpe extend TOK --special-token"
    f" '{END_OF_TEXT}' -o NEW)"
)
DOCUMENTS = ("auto", "special", "file", "blank", "line", "jsonl")
RECORDS = ("jsonl", "parquet")

_BLANK = re.compile(rb"\n\r?\n")
_BLANKS = re.compile(rb"\r?\n(?:\r?\n)+")
_LOOKED_AT, _LOOK_BYTES = 100, 1 << 20  # so many files, and so much of each, are looked at for a mark that is none here
_BLANK_CONTEXT = 3  # bytes before a place that decide whether a blank line ends there


@dataclass(frozen=True)
class Kinds:
    """Which kind each file is.

    Attributes:
        documents: one of DOCUMENTS: what the user said of files whose name does not tell. "auto" is "special",
            or "file" if the tokenizer has no such token.
        text_key: the name of the text in a record.
        mark: the tokenizer's end of text; None if it has none.
    """

    documents: str
    text_key: str
    mark: str | None

    def __post_init__(self) -> None:
        one_of("documents", self.documents, DOCUMENTS)
        instance("text_key", self.text_key, str, "a str")
        if not is_unicode(self.text_key):
            raise ArgumentError("text_key holds a lone surrogate: not valid Unicode")
        if self.documents == "special" and self.mark is None:
            raise ArgumentError(f"documents='special': the tokenizer has no end of text to separate them: {NAME_IT}")

    def kind(self, path: str) -> str:
        """The kind of a file."""
        if path.endswith(".parquet"):
            return "parquet"
        if has_records(path):
            return "jsonl"
        if self.documents == "auto":
            return "special" if self.mark is not None else "file"
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
            found = iter(bytes(data).split(self.mark_bytes))
        else:
            found = iter([bytes(data)])
        yield from ((document, document) for document in found if document)

    @property
    def mark_bytes(self) -> bytes:
        """The mark as it stands in a text; there is one."""
        assert self.mark is not None
        return self.mark.encode()

    @property
    def context(self) -> int:
        """Bytes before a place that decide whether a document begins there."""
        return max(_BLANK_CONTEXT, len(self.mark_bytes) if self.mark is not None else 0)

    def find_mark(self, data: _binding.Data, start: int) -> tuple[int, int] | None:
        """Where the first mark at or behind `start` begins and ends."""
        assert self.mark is not None
        found = _matcher(self.mark).find(data, start)
        return found[:2] if found is not None else None

    def document_cut(self, path: str) -> Cut:
        """Where a file can be cut between documents. One that is a single document, nowhere."""
        kind = self.kind(path)
        if kind == "special":
            return self._mark_cut
        if kind == "blank":
            return _blank_cut
        if kind in ("line", "jsonl"):
            return line_cut
        return lambda data, start: len(data)

    def _mark_cut(self, data: _binding.Data, start: int) -> int:
        found = self.find_mark(data, max(0, start - len(self.mark_bytes)))
        return found[1] if found is not None else len(data)


def check_mark(kinds: Kinds, specials: Iterable[str], files: Iterable[InputFile]) -> None:
    """Refuses, for text files, a mark that overlaps a special token: which of the two a text holds would depend on
    where one begins to look. Warns of a text that has another mark than this tokenizer's.

    Raises:
        ArgumentError: documents could not be told apart.
    """
    texts = [file for file in files if kinds.kind(file.path) == "special"]
    if kinds.mark is None or not texts:
        return
    mark = kinds.mark
    for other in specials:
        ends = range(1, min(len(other), len(mark)) + (other != mark))
        if (other != mark and mark in other) or any(other[-size:] == mark[:size] for size in ends):
            raise ArgumentError(
                f"the special token {shown(other)} overlaps the end of text {shown(mark)}, so that documents in text"
                f" cannot be told apart: say with documents (--documents) how they are, or give JSON lines"
            )
    if mark != END_OF_TEXT:
        _warn_of_usual_mark(texts[:_LOOKED_AT], mark)


def _warn_of_usual_mark(files: Iterable[InputFile], mark: str) -> None:
    for file in files:
        with file.open() as stream:
            if END_OF_TEXT.encode() in stream.read(_LOOK_BYTES):
                warn(
                    f"{file.path}: has {END_OF_TEXT}, which is plain text to this tokenizer: its documents end with"
                    f" {shown(mark)}"
                )
                return


@lru_cache(maxsize=8)
def _matcher(mark: str) -> _binding.Specials:
    """Finds marks many times faster than bytes.find."""
    return _binding.Specials({mark: 0})


def _blank_cut(data: _binding.Data, start: int) -> int:
    found = _BLANK.search(data, max(0, start - 3))
    while found is not None and found.end() < start:
        found = _BLANK.search(data, found.start() + 1)
    return found.end() if found is not None else len(data)
