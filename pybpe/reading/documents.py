"""The kinds of input files, which differ in how their documents are separated.

    special   plain text with the tokenizer's end of text, such as <|endoftext|>, between documents
    file      plain text, one document per file
    blank     plain text, blank lines between documents; line ends around a document do not belong to it
    line      plain text, one document per line
    jsonl     one JSON record per line, whose text is a document; the name of the file or its first lines show it
    parquet   one record per row
    arrow     one record per row

pybpe recognizes special tokens in plain text. The texts of records are ordinary text throughout, so that they cannot
forge a control token.

The token that ends a document in plain text also separates documents in token files: the tokenizer's end of text, its
`eot_token`. No other token does this, however documents are divided among splits.

To add a kind: its name above, in `Kinds.kind`, and in DOCUMENTS (options.py) or RECORDS. `divide` yields its documents,
and `document_cut` decides where a file can be cut. If it is not a stream of bytes, write a subclass of RowFile
(rows.py) and a case in `open_rows`. file_types.py knows its first bytes, and `Command.files` (cli/command.py) the help.
Test it in test_dataset_inputs.py, test_input_types.py and test_input_encodings.py: the ids are the same for every
number of workers, and the text of records never becomes a control token. A compression is only an entry in every table
of unpacking.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import Any

from .. import _binding
from ..arguments import by_caller, can_pass, param, shown
from ..control_tokens import END_OF_TEXT
from ..errors import ArgumentError, warn
from ..model import Matching
from .bad_records import Seen
from .input_file import InputFile
from .options import ReadOptions
from .pieces import Cut, line_cut


def name_it() -> str:
    """Returns what to do about a tokenizer without an end of text."""
    return by_caller(
        f"train with the special token {END_OF_TEXT}, or say in training which special token ends a document"
        f" (end_of_text), or add it to this tokenizer: tok.extend(['{END_OF_TEXT}'])",
        f"`pybpe train --base TOK --special-token '{END_OF_TEXT}' -o NEW` adds it; or train with it, or with another"
        " special token that --end-of-text names",
    )


RECORDS = ("jsonl", "parquet", "arrow")
CLUSTER = "pybpe_cluster"  # the field that pybpe.corpus adds: near duplicates have the same one (see record.h, too)

_BLANK = re.compile(rb"\n\r?\n")
_LOOKED_AT, _LOOK_BYTES = 100, 1 << 20  # files, and bytes of each, that are searched for another tokenizer's mark
_BLANK_CONTEXT = 3  # bytes before a position that decide whether a blank line ends there


class Kinds:
    """Decides the kind of each file.

    Attributes:
        read: how files are read. Its `documents` is the kind of texts (see InputFile.form); "auto" means "special", or
            "file" if the tokenizer has no end of text.
        mark: the tokenizer's end of text; None if it has none.
        columns: the columns of rows that are read besides the text; None for all.
    """

    def __init__(
        self, read: ReadOptions, mark: str | None = None, columns: Collection[str] | None = (CLUSTER,)
    ) -> None:
        self.read, self.mark, self.columns = read, mark, columns
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
        text that may be cut anywhere, in which marks show where documents end."""
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
    of the two it finds, and a mark whose flags say that it does not always match alone. Warns about a text with the
    usual mark if this tokenizer has another one.

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
            f"the end of text {shown(mark)} has {rules.names[0]} on, so the text next to it decides what it matches:"
            " pass another value of {param('documents')}, or use JSON lines"
        )
    for other in specials:
        if overlaps(other, mark):
            raise ArgumentError(
                f"the special token {shown(other)} overlaps the end of text {shown(mark)}, so documents in text"
                f" cannot be separated: pass another value of {param('documents')}, or use JSON lines"
            )
    for file in texts if mark != END_OF_TEXT else ():
        with file.open() as stream:
            if END_OF_TEXT.encode() in stream.read(_LOOK_BYTES):
                told = f"has {END_OF_TEXT}, which is plain text to this tokenizer: its documents end with"
                warn(f"{file.path}: {told} {shown(mark)}")
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


# ----------------------------------------------------------------------------------------------------
# JSON lines: one record per line, whose text is a document


_OF_ARRAY = "if the file is a JSON array, convert it to JSON lines (jq -c '.[]' x.json > x.jsonl)"


def records(lines: memoryview, text_key: str, seen: Seen) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yields the records of JSON lines that begin at byte `seen.start` of a file, each with its line, and with a string
    at `text_key`. Skips blank lines. `seen` notes the number of records, and the records that are not valid."""
    offset, seen.records, seen.bad = seen.start, 0, []  # C may have tried it before
    parts = bytes(lines).split(b"\n")
    for number, line in enumerate(parts):
        if line and not line.isspace():
            seen.records += 1
            record, *problem = _record(line, text_key)
            if record is not None:
                yield record, line
            else:
                seen.bad_line(offset, number, *problem)
        offset += len(line) + 1
    seen.end, seen.lines = seen.start + len(lines), len(parts) - 1


def json_problem(error: Exception) -> str:
    """Returns what is wrong with a JSON text that Python cannot read. A plain ValueError is about a long integer."""
    is_long = isinstance(error, ValueError) and not isinstance(error, (json.JSONDecodeError, UnicodeError))
    return "it has an integer of too many digits" if is_long else str(error)


def _record(line: bytes, text_key: str) -> tuple[dict[str, Any] | None, str, str]:
    """Returns the record of a line; or None, what is wrong with the line, and what to do about it."""
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
    if isinstance(record, dict) and isinstance(record.get(text_key), str):
        return record, "", ""
    problem, remedy = f"expected an object with a string {text_key!r}", _OF_ARRAY if isinstance(record, list) else ""
    if isinstance(record, dict) and text_key not in record:
        keys = ", ".join(repr(key[:40]) for key in islice(record, 8))
        problem += f", but its keys are {keys or 'none'}"
        remedy = f"pass the key of the text in {param('text_key')}" if can_pass("text_key") else ""
    return None, problem, remedy
