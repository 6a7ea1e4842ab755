"""The kinds of input files, which differ in how their documents are separated.

    special   plain text with the tokenizer's end of text, such as <|endoftext|>, between documents
    file      plain text, one document per file
    blank     plain text, blank lines between documents; line ends around a document do not belong to it
    line      plain text, one document per line
    jsonl     one JSON record per line, whose text is a document; the name of the file or its first lines show it
    parquet   one record per row
    arrow     one record per row

pybpe recognizes special tokens in plain text. The text of a record is ordinary text throughout, so that they cannot
forge a control token.

The token that ends a document in plain text also separates documents in token files: the tokenizer's end of text, its
`eot_token`, or the special token that `eot` names instead. No other token does this, however documents are divided
among splits.

To add a kind: its name above, in `Kinds.kind`, and in DOCUMENTS (inputs.py) or RECORDS. `divide` (pieces.py) yields
its documents, and `document_cut` decides where a file can be cut. If it is not a stream of bytes, write a subclass of
RowFile (rows.py) and a case in `open_rows`. file_types.py knows its first bytes, and `Command.files` (cli/command.py)
the help. Test it in test_dataset_inputs.py, test_input_types.py and test_input_encodings.py: the ids are the same for
every number of workers, and the text of records never becomes a control token. A compression is only an entry in every
table of streams.py.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from .. import _binding
from ..arguments import by_caller, param, shown
from ..control_tokens import END_OF_TEXT
from ..errors import ArgumentError, warn
from ..model import USUAL_ENDS, Matching
from .cuts import Cut, line_cut
from .input_file import InputFile
from .inputs import ReadOptions


def name_it() -> str:
    """Returns the remedy for a tokenizer without an end of text."""
    return by_caller(
        f"train with the special token {END_OF_TEXT}, or say in training which special token ends a document"
        f" (end_of_text), or add it to this tokenizer: tok.extend(['{END_OF_TEXT}'])",
        f"`pybpe train --base TOK --special-token '{END_OF_TEXT}' -o NEW` adds it; or train with it, or with another"
        " special token that --end-of-text names",
    )


RECORDS = ("jsonl", "parquet", "arrow")
CLUSTER = "pybpe_cluster"  # the field that pybpe.corpus adds: near duplicates have the same one (see record.h, too)

_BLANK = re.compile(rb"\n\r?\n")
_LOOKED_AT, _LOOK_BYTES = 100, 1 << 20  # files, and bytes per file, that are searched for another tokenizer's mark
_BLANK_CONTEXT = 3  # bytes before a position that decide whether a blank line ends there


class Kinds:
    """Decides the kinds of files.

    Attributes:
        read: how files are read. Its `documents` is the kind of input (see InputFile.form). "auto" means "special", or
            "file" if the tokenizer has no end of text.
        mark: the tokenizer's end of text, or None if it has none.
        columns: the columns of rows that are read besides the text, None for all.
        where: which records are selected (see corpus/steps.py), None for all.
        has_origins: whether the origins of documents are wanted (see pieces.py).
        id_key: the key of the ids of records, if these belong to the origins.
    """

    def __init__(
        self,
        read: ReadOptions,
        mark: str | None = None,
        columns: Collection[str] | None = (CLUSTER,),
        where: Any = None,
        has_origins: bool = False,
        id_key: str | None = None,
    ) -> None:
        self.read, self.mark, self.columns, self.where = read, mark, columns, where
        self.has_origins, self.id_key = has_origins, id_key
        if id_key is not None and columns is not None:
            self.columns = (*columns, id_key, id_key.partition(".")[0])
        if read.documents == "special" and mark is None:
            raise ArgumentError(
                f"{param(documents='special')}: the tokenizer has no end of text to separate documents: {name_it()}"
            )

    def kind(self, file: InputFile) -> str:
        """Returns the kind of a file."""
        if file.form in RECORDS:
            return file.form
        if self.read.documents == "auto":
            return "special" if self.mark is not None else "file"
        return self.read.documents

    def is_divided(self, file: InputFile) -> bool:
        """Returns whether to process a file document by document even if its split is known. Otherwise the file is a
        text that may be cut anywhere, whose marks show where documents end."""
        return self.kind(file) not in ("special", "file")

    @property
    def mark_bytes(self) -> bytes:
        """The bytes of the mark. Valid only if there is a mark."""
        assert self.mark is not None
        return self.mark.encode()

    @property
    def context(self) -> int:
        """The number of bytes before a position that decide whether a document begins there."""
        return max(_BLANK_CONTEXT, len(self.mark_bytes) if self.mark is not None else 0)

    def find_mark(self, data: _binding.Data, start: int) -> tuple[int, int] | None:
        """Returns where the first mark at or after `start` begins and ends, or None."""
        assert self.mark is not None
        found = mark_matcher(self.mark).find(data, start)
        return found[:2] if found is not None else None

    def document_cut(self, file: InputFile) -> Cut:
        """Returns where a file can be cut between documents; a file that is a single document cannot be cut."""
        kind = self.kind(file)
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


def check_mark(
    kinds: Kinds, specials: Iterable[str], matching: Mapping[str, Matching], files: Iterable[InputFile]
) -> None:
    """Refuses, for text files, a mark that overlaps a special token, because the start of the search would decide which
    of the two it finds, and a mark whose flags say that it does not always match alone. Warns about a text that has a
    usual mark instead of this one.

    Raises:
        ArgumentError: documents could not be separated.
    """
    some = islice((file for file in files if kinds.kind(file) == "special"), _LOOKED_AT)
    mark, texts = kinds.mark, list(some)
    if mark is None or not texts:
        return
    rules = matching.get(mark)
    if rules is not None and (rules.strips or rules.single_word):
        raise ArgumentError(
            f"the end of text {shown(mark)} has the flag {rules.names[0]}, so the text next to it affects its matches:"
            f" pass another value of {param('documents')}, or use JSON lines"
        )
    for other in specials:
        if overlaps(other, mark):
            raise ArgumentError(
                f"the special token {shown(other)} overlaps the end of text {shown(mark)}, so documents in text"
                f" cannot be separated: pass another value of {param('documents')}, or use JSON lines"
            )
    for file in texts if mark != END_OF_TEXT else ():
        with file.open() as stream:
            head = stream.read(_LOOK_BYTES)
        others = [end for end in USUAL_ENDS if end.encode() in head]
        if others and mark.encode() not in head:
            warn(f"{file.path}: has {others[0]}, but only {shown(mark)} separates documents")
            return


def overlaps(special: str, mark: str) -> bool:
    """Returns whether a special token may take a part of a mark that is next to a text, as "<<" does in "a<" +
    "<|endoftext|>", or one that is longer. So can the mark, if it overlaps itself."""
    ends = range(1, min(len(special), len(mark)) + (special != mark))
    return (special != mark and mark in special) or any(special[-size:] == mark[:size] for size in ends)


@lru_cache(maxsize=8)
def mark_matcher(mark: str) -> _binding.Specials:
    """Returns a matcher for marks, which is many times faster than bytes.find."""
    return _binding.Specials({mark: 0})


def _blank_cut(data: _binding.Data, start: int) -> int:
    found = _BLANK.search(data, max(0, start - 3))
    while found is not None and found.end() < start:
        found = _BLANK.search(data, found.start() + 1)
    return found.end() if found is not None else len(data)
