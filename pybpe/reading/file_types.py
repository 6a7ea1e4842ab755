"""Recognizes files that are not text by their first bytes, and JSON lines.

Without this check pybpe would read such files as text, and the tokenizer would learn from compressed bytes. So pybpe
refuses them, with an error that names the kind of file and the remedy.
"""

from __future__ import annotations

import codecs
import json
import os
import posixpath
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from .. import _binding
from ..arguments import can_pass, param
from .streams import JSON_HEAD_BYTES, PACKING_MARKS, POINTER, PULL, packing_of_content, without_ending

HEAD_BYTES = 512  # tar's mark is at 257

LLMQ_MAGIC = b"BIN.TOK\n"  # the start of token files for llmq

# The magic numbers at the start of llm.c's files (little-endian).
CHECKPOINT_MAGIC = 20240326
EVAL_MAGIC = 20240522
_LLMC_FILES: dict[int, str] = {
    **dict.fromkeys(_binding.SHARD_MAGICS.values(), "a token shard"),
    EVAL_MAGIC: "an eval file",
    _binding.TOKENIZER_MAGIC: "a tokenizer",
    CHECKPOINT_MAGIC: "a checkpoint",
}


def llmc_file(head: bytes) -> str | None:
    """Returns the kind of a file of llm.c, such as "a token shard", judging by its first bytes, or None."""
    return _LLMC_FILES.get(int.from_bytes(head[:4], "little"))


class NoText(NamedTuple):
    """A kind of file that is not read as text."""

    what: str  # the kind, such as "a zip archive"
    advice: str  # the remedy
    is_own: bool = False  # whether pybpe writes such files. It leaves them out if it finds them in a folder
    is_json: bool = False  # whether the file is JSON, which `open_text` accepts as text


_ARCHIVE = NoText("an archive or an office document", "unpack it, or save it as text, and pass the files inside")
_LEAVE_OUT = "leave it out"
_EBOOK = NoText("a Kindle book", "convert it to EPUB first, for example with Calibre's ebook-convert")
_DOCUMENTS = {  # whose content does not show more than that they are archives
    ".docx": NoText("a Word document", "convert it first, for example with: pandoc -t plain x.docx -o x.txt"),
    ".odt": NoText("an OpenDocument text", "convert it first, for example with: pandoc -t plain x.odt -o x.txt"),
}
_ARROW = "give it a name that ends in .arrow"
_TOKENS = "it already holds tokens; TokenDataset and llm.c read it"
_MARKS = {
    POINTER: NoText("a pointer of Git LFS, not the file itself", PULL),
    b"PK\x03\x04": _ARCHIVE,
    b"PK\x05\x06": _ARCHIVE,
    b"7z\xbc\xaf\x27\x1c": _ARCHIVE,
    b"Rar!\x1a\x07": _ARCHIVE,
    b"!<arch>\n": _ARCHIVE,
    b"{\\rtf": NoText("a document in RTF", "convert it first, for example with: pandoc -t plain x.rtf -o x.txt"),
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": NoText(
        "an old Office document", "save it as text, for example with LibreOffice"
    ),
    b"%PDF-": NoText("a PDF document", "extract its text first, for example with pdftotext"),
    b"WARC/": NoText("a WARC archive of web pages", "extract their text first, for example with trafilatura"),
    b"ARROW1\0\0": NoText("an Arrow or Feather file", _ARROW),
    b"PAR1\x15": NoText("a parquet file", "give it a name that ends in .parquet"),
    **dict.fromkeys((b"GGUF\2\0", b"GGUF\3\0"), NoText("a GGUF model", _LEAVE_OUT)),
    b"\x93NUMPY": NoText("a numpy array", _TOKENS, is_own=True),
    LLMQ_MAGIC: NoText("a token file for llmq", _TOKENS, is_own=True),
    b"MMIDIDX\0": NoText("a Megatron index", _TOKENS, is_own=True),
    b"pybpecnt": NoText("a file of word counts", "pass it to `pybpe train --counts`", is_own=True),
}
_STARTS = (*_MARKS, *(mark for mark, _ in PACKING_MARKS), *(number.to_bytes(4, "little") for number in _LLMC_FILES))
# Text begins with none of these, but after white space with a letter, a digit, punctuation of ASCII other than {, or
# the first byte of a longer character that is no byte order mark, and has no control characters. All other kinds begin
# with something else, such as the first tag of XML or of pybpe's pages, or have control characters.
_PLAIN = re.compile(
    rb"(?!%s)\s*(?:[!-;=-z|}~\xc2-\xee\xf0-\xf4]|<(?!\?xml|!doctype html>\n))" % b"|".join(map(re.escape, _STARTS))
)
_OF_DATASETS = NoText(
    "a description of a Hugging Face dataset", "pass the folder of the dataset, or leave this file out", is_json=True
)
_JSON_ARRAY = NoText(
    "a JSON array, whose brackets and keys would be read as text",
    "convert it to JSON lines (jq -c '.[]' x.json > x.jsonl), or give it a name that ends in .txt",
    is_json=True,
)
# The files next to the Arrow files that Dataset.save_to_disk writes, and a key in them.
_DESCRIPTIONS = {"state.json": b'"_data_files"', "dataset_info.json": b'"features"', "dataset_dict.json": b'"splits"'}
RANKS_ENDING = ".tiktoken"
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
ROW_ENDINGS = (".parquet", *ARROW_ENDINGS)
_ROW_MARKS = {"parquet": b"PAR1", "arrow": b"ARROW1\x00\x00"}
_CONTROLS = bytes((*range(7), *range(14, 27)))
_CONTROL = re.compile(b"[%s]" % _CONTROLS)
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*[{\[\"\]]")
_OBJECT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{[ \t\r]*["}]')
_TEXT = re.compile(rb'"text"[ \t]*:[ \t]*"')
_NAMES_OF_RECORDS = (".jsonl", ".ndjson", ".jsonlines", ".jl")
_REPORT = NoText("a report of pybpe or its list of skipped records", _LEAVE_OUT, is_own=True, is_json=True)
RECORD_OF_RUN = re.compile(
    rb'\{\n "documents_in": \d|<!doctype html>\n<html lang="en"><head>[^\n]*<title>Corpus report</title>'
    rb'|\{"file": "[^\n]*", (?:"row": \d+|"line": (?:\d+|null), "offset": \d+), "reason": "'
)
_PAGE = re.compile(rb'<!doctype html>\n<html lang="en">.*<meta name="generator" content="pybpe ', re.DOTALL)
_RANKS = re.compile(rb"[A-Za-z0-9+/]+=* \d+\n")
_MANIFEST = re.compile(rb'\{\s*"version": \d+,\s*"settings": \{\s*"format": ')
_FICTION_BOOK = re.compile(rb"(?:\xef\xbb\xbf)?\s*<\?xml[^>]*>\s*<FictionBook\b")
_TOKENIZER = re.compile(rb'\s*\{\s*"version":.*"truncation":', re.DOTALL)


def plain_starts(data: bytes, offsets: Sequence[int]) -> list[bool]:
    """Returns for the start of every file, data[offsets[i] : offsets[i + 1]], whether it shows at a glance that the
    file is plain text if it is UTF-8: `no_text`, `binary_kind` and the others below need not look at it."""
    ranges = [(start, end, min(start + HEAD_BYTES, end)) for start, end in pairwise(offsets)]
    heads = b"".join([data[start:head] for start, _, head in ranges])
    # It is faster to look at all at once. Most often there are none.
    has_controls = b"\0" in data or len(heads.translate(None, _CONTROLS)) < len(heads)
    return [
        _PLAIN.match(data, start, end) is not None
        and not (has_controls and (data.find(0, start, end) >= 0 or _CONTROL.search(data, start, head)))
        for start, end, head in ranges
    ]


def no_text(head: bytes, path: str) -> NoText | None:
    """Returns the kind of a file, judging by its first HEAD_BYTES bytes (decompressed if it was compressed), if it is
    known and not text, otherwise None."""
    rows = row_kind(path)
    is_stream = _is_arrow_stream(head)
    if rows is not None and (head.startswith(_ROW_MARKS[rows]) or (is_stream and rows == "arrow")):
        return None
    if is_stream:
        return NoText("an Arrow stream", _ARROW)
    if head[257:].startswith((b"ustar\0", b"ustar  \0")):  # of tar
        return _ARCHIVE
    if head[60:].startswith((b"BOOKMOBI", b"TEXtREAd")):
        return _EBOOK
    if _FICTION_BOOK.match(head):
        return NoText("a book in FB2", "convert it to EPUB first, for example with Calibre's ebook-convert")
    if head.startswith(_STARTS):
        kind = _marked_kind(head)
        return _DOCUMENTS.get(posixpath.splitext(path.lower())[1], kind) if kind is _ARCHIVE else kind
    if _TOKENIZER.match(head):
        return NoText("a tokenizer.json", "pass text files instead", is_own=True, is_json=True)
    if path.lower().endswith(RANKS_ENDING) and _RANKS.match(head):
        return NoText("a .tiktoken file, which is a tokenizer", "pass text files instead", is_own=True)
    if RECORD_OF_RUN.match(head) or _PAGE.match(head):
        return _REPORT
    if _MANIFEST.match(head):
        return NoText("the manifest of token files", "name their folder", is_own=True, is_json=True)
    if is_json_name(path):
        key = _DESCRIPTIONS.get(posixpath.basename(path))
        if key is not None and key in head:
            return _OF_DATASETS
        return _JSON_ARRAY if _ARRAY.match(head) else None
    return None


def binary_kind(head: bytes) -> NoText | None:
    """Returns the kind of a file if nothing else is known of it, and it certainly is not text: it has zeros and is
    not UTF-8, or more than a tenth of its first bytes are control characters."""
    is_utf8 = _binding.utf8_valid(head) >= len(head) - 3  # a character may extend past the head
    if 10 * len(_CONTROL.findall(head)) <= len(head) and (b"\0" not in head or is_utf8):
        return None
    remedy = f"; or, if it is text, pass {param('encoding')}" if can_pass("encoding") else ""
    return NoText(f"binary data, which begins with {head[:8]!r}", f"leave it out{remedy}")


def _is_arrow_stream(head: bytes) -> bool:
    """Returns whether a file begins with a message of Arrow: a mark, and the size of its description, padded to 8."""
    size = int.from_bytes(head[4:8], "little")
    return head.startswith(b"\xff\xff\xff\xff") and 0 < size < 1 << 24 and size % 8 == 0


def _marked_kind(head: bytes) -> NoText:
    known = next((kind for mark, kind in _MARKS.items() if head.startswith(mark)), None)
    if known is not None:
        return known
    if (kind := llmc_file(head)) is not None:
        return NoText(f"{kind} of llm.c", "pass text files instead", is_own=kind != "a checkpoint")
    return NoText(f"compressed twice (inside, with {packing_of_content(head)})", "decompress it once")


# Only files that commands write, and that are not recognized elsewhere
_MADE = {
    _PAGE: "a page",
    re.compile(rb"(\x89PNG|%PDF-|<\?xml).*[Mm]atplotlib", re.DOTALL): "a picture",
    RECORD_OF_RUN: "a report or a list of records",
    re.compile(rb'{"command": "[a-z ]+", "pid": '): "the status of a command",
    _RANKS: "a tokenizer",
    re.compile(rb"[\[\]\d,\s]+\Z"): "ids",
}
_MADE_NAMES = {"a tokenizer.json": "a tokenizer", "a file of word counts": "a counts file"}
_MADE_HEAD_BYTES = 4096


def made_kind(path: str) -> str:
    """Returns the kind of a file that a command may have written, such as "a page", or the kind of any other file."""
    with open(path, "rb") as stream:
        head = stream.read(_MADE_HEAD_BYTES)
        if head.startswith(b"%PDF-"):  # which names its program at its end
            stream.seek(-min(_MADE_HEAD_BYTES, os.path.getsize(path)), os.SEEK_END)
            head += stream.read()
    found = llmc_file(head) or next((kind for mark, kind in _MADE.items() if mark.match(head)), None)
    if found is not None:
        return found
    if (known := no_text(head, "")) is not None:
        return _MADE_NAMES.get(known.what, known.what)
    if is_binary(head):
        return "plain ids" if path.endswith(".bin") and packing_of_content(head) is None else "other data"
    return "a text"


def row_kind(path: str) -> str | None:
    """Returns "parquet" or "arrow" if the name of a file says that its documents are rows, otherwise None."""
    name = path.lower()
    if not name.endswith(ROW_ENDINGS):  # most files
        return None
    return "parquet" if name.endswith(".parquet") else "arrow"


def is_json_name(path: str) -> bool:
    """Returns whether a file holds one JSON value, judging by its name."""
    return without_ending(path).lower().endswith(".json")


def says_records(path: str) -> bool:
    """Returns whether a file holds JSON lines, judging by its name."""
    return without_ending(path).lower().endswith(_NAMES_OF_RECORDS)


def begins_like_json(head: bytes) -> bool:
    """Returns whether a file may hold JSON, so that JSON_HEAD_BYTES of it are needed to recognize JSON lines."""
    return _OBJECT.match(head) is not None


def holds_records(head: bytes, path: str) -> bool:
    """Returns whether text is JSON lines, judging by its first JSON_HEAD_BYTES: its first line is an object, and the
    next line begins one. A single object is a record only if it has a "text" and is not in a .json file, because code
    has many small files with one object."""
    if not begins_like_json(head):
        return False
    first, newline, rest = head.removeprefix(codecs.BOM_UTF8).lstrip().partition(b"\n")
    if not rest.strip() and (is_json_name(path) or not _TEXT.search(first)):
        return False
    if not newline and len(head) >= JSON_HEAD_BYTES:
        return True
    try:
        return isinstance(json.loads(first), dict) and (not rest.strip() or begins_like_json(rest))
    except (ValueError, RecursionError):
        return False


def is_binary(head: bytes) -> bool:
    """Returns whether the first bytes are not UTF-8 text: they contain control characters, or do not decode. (A
    character may extend past them.)"""
    return _CONTROL.search(head) is not None or _binding.utf8_valid(head) < len(head) - 3
