"""Recognizes files that are not text by their first bytes, or by their names if their kind has no mark.

Without this check pybpe would read such files as text, and the tokenizer would learn from compressed bytes. So pybpe
refuses them, with an error that says what the file is and what to do.
"""

from __future__ import annotations

import codecs
import json
import posixpath
import re
from typing import NamedTuple

from .. import _binding
from .unpacking import PACKING_MARKS, packing_of_content, without_ending

HEAD_BYTES = 512  # tar's mark is at 257
JSON_HEAD_BYTES = 1 << 16  # for what begins like JSON: its first lines show whether it is JSON lines

# The magic number with which each kind of llm.c's files begins (little-endian).
CHECKPOINT_MAGIC = 20240326
EVAL_MAGIC = 20240522
_LLMC_FILES: dict[int, str] = {
    **dict.fromkeys(_binding.SHARD_MAGICS.values(), "a token shard"),
    EVAL_MAGIC: "an eval file",
    _binding.TOKENIZER_MAGIC: "a tokenizer",
    CHECKPOINT_MAGIC: "a checkpoint",
}


def llmc_file(head: bytes) -> str | None:
    """Returns the kind of a file of llm.c, such as "a token shard", judging by its first bytes; otherwise None."""
    return _LLMC_FILES.get(int.from_bytes(head[:4], "little"))


class NoText(NamedTuple):
    """A kind of file that is not read as text.

    Attributes:
        what: the kind, such as "a zip archive".
        advice: what the user should do.
        is_own: whether pybpe writes such files. It leaves them out if it finds them in a folder.
        is_json: whether the file is JSON, which `open_text` accepts as text.
    """

    what: str
    advice: str
    is_own: bool = False
    is_json: bool = False


_UNPACK = "unpack it and pass the files inside"
_LEAVE_OUT = "leave it out"
_EXTRACT = "extract its text first"
_OFFICE = "an office document"
_WEIGHTS = "it holds weights, not text: leave it out"
_UNKNOWN_PACKING = "decompress it first, or compress it with gzip, bzip2, xz or zstd"
_ARROW = "give it a name that ends in .arrow"
_OLD_ARROW = "convert it with pyarrow.feather or datasets.load_from_disk(FOLDER).to_parquet('x.parquet')"
_PICKLE = NoText("a Python pickle, perhaps from PyTorch", "export its texts as JSON lines")
_TOKENS = "it already holds tokens; TokenDataset and llm.c read it"

# Marks that no text begins with, and their offsets.
_MARKS: tuple[tuple[int, bytes, NoText], ...] = (
    (0, b"PK\x03\x04", NoText("a zip archive (or an office document)", _UNPACK)),
    (0, b"PK\x05\x06", NoText("an empty zip archive", _UNPACK)),
    (257, b"ustar\0", NoText("a tar archive", _UNPACK)),
    (257, b"ustar  \0", NoText("a tar archive", _UNPACK)),
    (0, b"7z\xbc\xaf\x27\x1c", NoText("a 7z archive", _UNPACK)),
    (0, b"Rar!\x1a\x07", NoText("a rar archive", _UNPACK)),
    (0, b"!<arch>\n", NoText("an ar archive", _UNPACK)),
    (0, b"\x04\x22\x4d\x18", NoText("compressed with lz4", _UNKNOWN_PACKING)),
    (0, b"\x89LZO\x00", NoText("compressed with lzop", _UNKNOWN_PACKING)),
    (0, b"\xff\x06\x00\x00sNaPpY", NoText("compressed with snappy", _UNKNOWN_PACKING)),
    (0, b"\x89PNG\r\n\x1a\n", NoText("a PNG image", _LEAVE_OUT)),
    (0, b"\xff\xd8\xff", NoText("a JPEG image", _LEAVE_OUT)),
    (0, b"II*\x00", NoText("a TIFF image", _LEAVE_OUT)),
    (0, b"MM\x00*", NoText("a TIFF image", _LEAVE_OUT)),
    (0, b"%PDF-", NoText("a PDF document", f"{_EXTRACT}, for example with pdftotext")),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", NoText(_OFFICE, f"{_EXTRACT}: save it as text")),
    (0, b"\x7fELF", NoText("a program or library", _LEAVE_OUT)),
    (0, b"\xca\xfe\xba\xbe", NoText("a program or library", _LEAVE_OUT)),
    (0, b"\xcf\xfa\xed\xfe", NoText("a program or library", _LEAVE_OUT)),
    (0, b"\x00asm", NoText("a WebAssembly program", _LEAVE_OUT)),
    (0, b"SQLite format 3\x00", NoText("a SQLite database", "export its texts as JSON lines")),
    (0, b"\x89HDF\r\n\x1a\n", NoText("an HDF5 file", "export its texts as JSON lines")),
    (0, b"ARROW1\x00\x00", NoText("an Arrow or Feather file", _ARROW)),
    (0, b"\x93NUMPY", NoText("a numpy array", _TOKENS, True)),
    (0, b"MMIDIDX\x00", NoText("a Megatron index", _TOKENS, True)),
    (0, b"WARC/", NoText("a WARC archive of web pages", f"{_EXTRACT}, for example with trafilatura")),
    (0, b"pybpecnt", NoText("a pybpe counts file", "pass it to `pybpe train --counts`", True)),
)
_OF_LLMC = {
    "a token shard": NoText("an llm.c token shard", _TOKENS, True),
    "an eval file": NoText("an llm.c eval file", _TOKENS, True),
    "a tokenizer": NoText("a tokenizer.bin", "pass text files instead", True),
    "a checkpoint": NoText("an llm.c checkpoint", _WEIGHTS),
}

# Marks with which a text could begin. They count only if the first bytes are not text; so do the endings below.
_WEAK_MARKS: tuple[tuple[bytes, NoText], ...] = (
    (b"GIF87a", NoText("a GIF image", _LEAVE_OUT)),
    (b"GIF89a", NoText("a GIF image", _LEAVE_OUT)),
    (b"PAR1", NoText("a parquet file", "give it a name that ends in .parquet")),
    (b"FEA1", NoText("a Feather file of version 1", _OLD_ARROW)),
    (b"MZ", NoText("a program or library", _LEAVE_OUT)),
    (b"BM", NoText("a BMP image", _LEAVE_OUT)),
    (b"RIFF", NoText("an image, sound or video (RIFF)", _LEAVE_OUT)),
    (b"OggS", NoText("a sound file", _LEAVE_OUT)),
    (b"ID3", NoText("a sound file", _LEAVE_OUT)),
    (b"fLaC", NoText("a sound file", _LEAVE_OUT)),
    (b"wOF", NoText("a font", _LEAVE_OUT)),
    (b"OTTO", NoText("a font", _LEAVE_OUT)),
    (b"ORC", NoText("an ORC file", "convert it to parquet")),
    (b"Obj\x01", NoText("an Avro file", "convert it to parquet")),
    (b"GGUF", NoText("a GGUF model", _WEIGHTS)),
    (b"\x1f\x9d", NoText("compressed with compress", _UNKNOWN_PACKING)),
    (b"LZIP", NoText("compressed with lzip", _UNKNOWN_PACKING)),
    *((b"\x80" + bytes((protocol,)), _PICKLE) for protocol in range(2, 6)),
)
_ENDINGS: dict[str, NoText] = {
    **dict.fromkeys((".zip", ".tar", ".7z", ".rar", ".jar", ".whl", ".epub"), NoText("an archive", _UNPACK)),
    **dict.fromkeys((".br", ".lz4", ".sz", ".z"), NoText("a compressed file", _UNKNOWN_PACKING)),
    **dict.fromkeys((".docx", ".xlsx", ".pptx", ".odt", ".doc", ".xls", ".ppt"), NoText(_OFFICE, _EXTRACT)),
    **dict.fromkeys((".pt", ".pth", ".ckpt", ".safetensors", ".onnx"), NoText("a model", _WEIGHTS)),
    **dict.fromkeys((".pkl", ".pickle", ".npz"), NoText("a Python pickle or array", "export its texts as JSON lines")),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), NoText("an Arrow or Feather file of an old version", _OLD_ARROW)),
    **dict.fromkeys((".jpg", ".jpeg", ".png", ".gif", ".webp", ".ico", ".heic"), NoText("an image", _LEAVE_OUT)),
    **dict.fromkeys((".mp3", ".mp4", ".wav", ".m4a", ".mkv", ".avi", ".mov"), NoText("sound or video", _LEAVE_OUT)),
    **dict.fromkeys((".pyc", ".so", ".dll", ".exe", ".o", ".a", ".class"), NoText("a program", _LEAVE_OUT)),
    **dict.fromkeys((".ttf", ".otf", ".woff", ".woff2"), NoText("a font", _LEAVE_OUT)),
}
_OF_DATASETS = NoText(
    "a description of a Hugging Face dataset", "pass the folder of the dataset, or leave this file out", is_json=True
)
# The files next to the Arrow files that Dataset.save_to_disk writes, and a key in each.
_DESCRIPTIONS = {"state.json": b'"_data_files"', "dataset_info.json": b'"features"', "dataset_dict.json": b'"splits"'}
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
ROW_ENDINGS = (".parquet", *ARROW_ENDINGS)
_ROW_MARKS = {"parquet": b"PAR1", "arrow": b"ARROW1\x00\x00"}
_CONTROL = re.compile(rb"[\x00-\x06\x0e-\x1a]")
_ARRAY = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s*[{\[\"\]]")
_OBJECT = re.compile(rb'(?:\xef\xbb\xbf)?\s*\{[ \t\r]*["}]')
_TEXT = re.compile(rb'"text"[ \t]*:[ \t]*"')
_NAMES_OF_RECORDS = (".jsonl", ".ndjson", ".jsonlines", ".jl")
_REPORT = NoText("a report of pybpe or its list of skipped records", _LEAVE_OUT, is_own=True, is_json=True)
_RECORD_OF_RUN = re.compile(
    rb'\{\n "documents_in": \d|<!doctype html>\n<html lang="en"><head>[^\n]*<title>Corpus report</title>'
    rb'|\{"file": "[^\n]*", (?:"row": \d+|"line": (?:\d+|null), "offset": \d+), "reason": "'
)
_MANIFEST = re.compile(rb'\{\s*"version": \d+,\s*"settings": \{\s*"format": ')
_TOKENIZER = re.compile(rb'\s*\{\s*"version":.*"truncation":', re.DOTALL)


def no_text(head: bytes, path: str) -> NoText | None:
    """Returns the kind of a file, judging by its first HEAD_BYTES bytes (decompressed if it was compressed); None if it
    seems to be text."""
    rows = row_kind(path)
    is_stream = _is_arrow_stream(head)
    if rows is not None and (head.startswith(_ROW_MARKS[rows]) or (is_stream and rows == "arrow")):
        return None
    if is_stream:
        return NoText("an Arrow stream", _ARROW)
    found = _marked_kind(head) if head[:2] in _FIRST_TWO or head[257:262] == b"ustar" else None
    if found is not None:
        return found
    if _TOKENIZER.match(head):
        return NoText("a tokenizer.json", "pass text files instead", is_own=True, is_json=True)
    if _RECORD_OF_RUN.match(head):
        return _REPORT
    if _MANIFEST.match(head):
        return NoText("the manifest of token files", "name their folder", is_own=True, is_json=True)
    if is_json_name(path):
        return _OF_DATASETS if _is_of_datasets(head, path) else _json_kind(head)
    return _binary_kind(head, without_ending(path).lower()) if is_binary(head) else None


def _is_arrow_stream(head: bytes) -> bool:
    """Returns whether a file begins with a message of Arrow: a mark, and the size of its description, padded to 8."""
    size = int.from_bytes(head[4:8], "little")
    return head.startswith(b"\xff\xff\xff\xff") and 0 < size < 1 << 24 and size % 8 == 0


def _marked_kind(head: bytes) -> NoText | None:
    """Returns the kind of a file that begins with a mark that no text begins with."""
    found = next((kind for at, mark, kind in _MARKS if head.startswith(mark, at)), None)
    if found is not None:
        return found
    if (known := llmc_file(head)) is not None:
        return _OF_LLMC[known]
    packing = packing_of_content(head)
    return NoText(f"compressed twice (inside, with {packing})", "decompress it once") if packing is not None else None


# The first two bytes of all marks at the start of a file, so that most files are compared with no mark.
_FIRST_TWO = frozenset(
    mark[:2]
    for mark in (
        *(mark for at, mark, _ in _MARKS if at == 0),
        *(number.to_bytes(4, "little") for number in _LLMC_FILES),
        *(mark for mark, _ in PACKING_MARKS),
    )
)


def row_kind(path: str) -> str | None:
    """Returns "parquet" or "arrow" for a file whose documents are rows, judging by its name; otherwise None."""
    name = path.lower()
    if not name.endswith(ROW_ENDINGS):  # most files
        return None
    return "parquet" if name.endswith(".parquet") else "arrow"


def _is_of_datasets(head: bytes, path: str) -> bool:
    """Returns whether a JSON file describes a dataset of Hugging Face's `datasets`."""
    key = _DESCRIPTIONS.get(posixpath.basename(path))
    return key is not None and key in head


def is_json_name(path: str) -> bool:
    """Returns whether a file holds one JSON value, judging by its name."""
    return without_ending(path).lower().endswith(".json")


def _json_kind(head: bytes) -> NoText | None:
    if _ARRAY.match(head):
        return NoText(
            "a JSON array, whose brackets and keys would be read as text",
            "convert it to JSON lines (jq -c '.[]' x.json > x.jsonl), or give it a name that ends in .txt",
            is_json=True,
        )
    return None


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


def _binary_kind(head: bytes, name: str) -> NoText | None:
    if head[8:10] == b'{"' and head[5:8] == b"\0\0\0":
        return NoText("a safetensors file", _WEIGHTS)
    if head[4:8] == b"ftyp":
        return NoText("a video", _LEAVE_OUT)
    by_mark = next((kind for mark, kind in _WEAK_MARKS if head.startswith(mark)), None)
    return by_mark or next((kind for ending, kind in _ENDINGS.items() if name.endswith(ending)), None)


def is_binary(head: bytes) -> bool:
    """Returns whether the first bytes are not UTF-8 text: they contain control characters, or do not decode."""
    if _CONTROL.search(head):
        return True
    try:
        head.decode("utf-8")
    except UnicodeDecodeError as error:
        return error.start < len(head) - 3  # otherwise a character extends past the head
    return False
