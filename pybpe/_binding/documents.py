"""Documents: dividing a corpus into them, the records of JSON lines, the measures of texts, and their signatures."""

from __future__ import annotations

import os
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._lazy import numpy
from .core import Data, Strings, call, ffi, lib, make_handle, new_block, new_uncleared, raise_error
from .text import Specials

DOCUMENTS: dict[str, int] = {
    "line": lib.PYBPE_DOCUMENTS_LINE,
    "blank": lib.PYBPE_DOCUMENTS_BLANK,
    "special": lib.PYBPE_DOCUMENTS_MARK,
    "jsonl": lib.PYBPE_DOCUMENTS_RECORD,
}


class Divider:
    """Divides pieces into documents, and these among splits. Only one thread may use it at a time. `separator` is
    written after each document, `marks` match what separates documents of the kind "special", `key` is the key of the
    text in a record, and `last` has the last hash of each split: see pybpe_division in pybpe_corpus.h."""

    def __init__(self, separator: bytes, marks: Specials | None, key: str, last: Sequence[int]) -> None:
        self._keep = marks
        self.splits, self._separator = len(last), separator
        self._err = ffi.new("pybpe_error *")
        name, hashes = key.encode(), array("Q", last)
        how = ffi.new("pybpe_division *")
        how.marks = marks.c if marks is not None else ffi.NULL
        how.key, how.key_n = ffi.from_buffer("uint8_t[]", name), len(name)
        how.separator, how.separator_n = ffi.from_buffer("uint8_t[]", separator), len(separator)
        how.last, how.splits = ffi.from_buffer("uint64_t[]", hashes), len(last)
        self.c = make_handle("pybpe_divider", lib.pybpe_divider_new, lib.pybpe_divider_free, how, ffi.NULL)

    def clear(self) -> None:
        """Removes all documents."""
        lib.pybpe_divider_clear(self.c)

    def divide(self, kind: str, data: Data) -> bool:
        """Adds the documents of a piece. Returns False if one of its lines is not a record, or may be one but needs a
        complete parser of JSON. Then the divider must be cleared."""
        view = ffi.from_buffer(data)
        code = lib.pybpe_divider_divide(self.c, DOCUMENTS[kind], view, len(view), self._err)
        if code == lib.PYBPE_ERR_FORMAT:
            return False
        if code:
            raise_error(self._err)
        return True

    def add(self, data: Data, offsets: Data) -> None:
        """Adds documents that are separate already. `offsets` are 64-bit numbers: document i is
        data[offsets[i] : offsets[i + 1]], and the last number is at most len(data)."""
        numbers = ffi.from_buffer("uint64_t[]", offsets)
        if lib.pybpe_divider_add(self.c, ffi.from_buffer(data), numbers, len(numbers) - 1, self._err):
            raise_error(self._err)

    def records(self) -> tuple[int, int]:
        """Returns the number of records and of line ends in the JSON lines that were divided."""
        found = new_uncleared("size_t[2]")
        lib.pybpe_divider_records(self.c, found, found + 1)
        return found[0], found[1]

    def documents(self, split: int) -> Any:
        """Returns the documents of a split as a pybpe_strings, valid until the next call."""
        return lib.pybpe_divider_documents(self.c, split)

    def texts(self, split: int) -> Strings:
        """Returns a copy of the documents of a split, each with the separator."""
        strings = self.documents(split)
        if not strings.count:
            return Strings()
        data = bytes(ffi.buffer(strings.bytes, strings.offsets[strings.count]))
        return Strings(data=data, offsets=bytes(ffi.buffer(strings.offsets, 8 * (strings.count + 1))))

    def joined(self, split: int) -> tuple[memoryview, int]:
        """Returns the documents of a split with the separator between them, valid until the next call, and the number
        of documents."""
        strings = self.documents(split)
        if not strings.count:
            return memoryview(b""), 0
        size = strings.offsets[strings.count] - len(self._separator)
        return memoryview(ffi.buffer(strings.bytes, size)), strings.count


class FileStarts:
    """The first bytes of files, at most `most` of each: see pybpe_file_starts_read in pybpe_corpus.h.

    Start i is data[offsets[i] : offsets[i + 1]]. If the starts have more than `room` bytes, some are missing. `sizes`
    and `modified`, in ns, are of the whole files; UNREAD is the size of a file whose start is missing, because it is
    not a regular file, or cannot be read, or changed meanwhile. `known` says that all are regular files or links."""

    UNREAD = 2**64 - 1

    def __init__(self, paths: Sequence[str], most: int, room: int, known: bool = False) -> None:
        count, names = len(paths), os.fsencode("\0".join(paths)) + b"\0"
        self.data, self.offsets = new_block(room), array("Q", bytes(8 * count + 8))
        self.sizes, self.modified = array("Q", bytes(8 * count)), array("q", bytes(8 * count))
        numbers = [
            ffi.from_buffer(f"{kind}[]", items)
            for kind, items in (("uint64_t", self.offsets), ("uint64_t", self.sizes), ("int64_t", self.modified))
        ]
        out = ffi.new("pybpe_file_starts *", [ffi.from_buffer("uint8_t[]", self.data), room, *numbers])
        lib.pybpe_file_starts_read(out, ffi.from_buffer("char[]", names), count, most, known)


MINHASH_SIZE: int = lib.PYBPE_MINHASH_SIZE
DIGEST_SIZE: int = lib.PYBPE_DIGEST_SIZE
CHARACTERS: tuple[str, ...] = ("SPACE", "LETTER", "DIGIT", "PUNCTUATION", "SYMBOL", "UNSPACED")
CODE_POINTS = 0x110000

_NAMES = (
    *("chars", "visible", "digits", "symbols", "unspaced", "marks", "words", "word_chars", "alphabetic"),
    *("distinct", "top_count", "lines", "line_chars", "repeated_lines", "repeated_line_chars"),
    *("paragraphs", "paragraph_chars", "repeated_paragraphs", "repeated_paragraph_chars"),
    *("bullet_lines", "ellipsis_lines", "short_lines", "terminal_lines"),
)
MEASURES: dict[str, int] = {name: getattr(lib, f"PYBPE_MEASURE_{name.upper()}") for name in _NAMES}


class Characters:
    """A `pybpe_characters` with the memory it points to: the class of each code point, and the lowercase, uint32, of
    each code point up to its length. Immutable."""

    def __init__(self, classes: bytes, lower: bytes) -> None:
        if len(classes) != CODE_POINTS:
            raise ValueError(f"expected the classes of {CODE_POINTS} code points, not {len(classes)}")
        self._classes, self._lower = classes, lower
        self.c = ffi.new("pybpe_characters *")
        self.c.classes = ffi.from_buffer("uint8_t[]", classes)
        self.c.lower = ffi.from_buffer("uint32_t[]", lower)
        self.c.lower_count = len(lower) // 4


class Records(NamedTuple):
    """Some JSON lines."""

    # texts, lines: the texts that are not empty, and their records, written in one form.
    texts: Strings
    lines: Strings
    # records, line_ends: the number of records, and of line ends.
    records: int
    line_ends: int


def read_records(data: Data, key: str, no_cluster: bool = False) -> Records | None:
    """Reads JSON lines (see pybpe_records_read in pybpe_corpus.h). Returns None if a complete parser must read them."""
    view, name, err = ffi.from_buffer(data), key.encode(), ffi.new("pybpe_error *")
    size, offsets = len(view), f"uint64_t[{len(view) // 8 + 2}]"
    memory = [new_uncleared(kind) for kind in (f"uint8_t[{size}]", f"uint8_t[{2 * size}]", offsets, offsets)]
    out = ffi.new("pybpe_records *", memory)
    code = lib.pybpe_records_read(out, view, size, ffi.from_buffer(name), len(name), no_cluster, err)
    if code == lib.PYBPE_ERR_FORMAT:
        return None
    if code:
        raise_error(err)
    texts, lines = (_strings(memory[i], memory[i + 2], out.count) for i in (0, 1))
    return Records(texts, lines, out.records, out.line_ends)


def write_records(texts: Strings, name: bytes) -> Strings | None:
    """Returns a JSON line for each text, or None if one is not UTF-8: see pybpe_records_write in pybpe_corpus.h."""
    lines = new_uncleared(f"uint8_t[{6 * len(texts.data) + (len(name) + 7) * len(texts)}]")
    offsets, err = new_uncleared(f"uint64_t[{len(texts) + 1}]"), ffi.new("pybpe_error *")
    code = lib.pybpe_records_write(lines, offsets, texts.c, ffi.from_buffer(name), len(name), err)
    return None if code else _strings(lines, offsets, len(texts))


def keep_records(lines: Strings, keeps: Data, clusters: Data | None) -> memoryview:
    """Returns the lines of the records to keep, one after another (see pybpe_records_keep in pybpe_corpus.h)."""
    out, size = new_uncleared(f"uint8_t[{len(lines.data) + 56 * len(lines)}]"), ffi.new("size_t *")
    each = ffi.NULL if clusters is None else ffi.from_buffer("uint8_t[]", clusters)
    call(lib.pybpe_records_keep, out, size, lines.c, ffi.from_buffer("uint8_t[]", keeps), each)
    return memoryview(ffi.buffer(out, size[0]))


def _strings(data: Any, offsets: Any, count: int) -> Strings:
    """Returns strings in memory from C, which stays alive with them."""
    return Strings(data=ffi.buffer(data, offsets[count]), offsets=ffi.buffer(offsets, 8 * (count + 1)))


def measure_texts(
    texts: Strings,
    characters: Characters,
    ngrams: Sequence[int],
    words: bool,
    repeated_words: bool,
    lines: bool,
) -> numpy.ndarray[Any, Any]:
    """Returns counts: uint64, shape (texts, MEASURES, then two columns for each of `ngrams`, which ascend). Without
    `words`, `repeated_words` and `ngrams`, the measures of characters and words are 0, except "chars"."""
    out = numpy.empty((len(texts), lib.PYBPE_MEASURES + 2 * len(ngrams)), dtype=numpy.uint64)
    lengths = ffi.new("uint32_t[]", list(ngrams))
    what = ffi.new("pybpe_measuring *", [lengths, len(ngrams), repeated_words, lines, not words])
    target = ffi.from_buffer("uint64_t[]", out, require_writable=True)
    call(lib.pybpe_texts_measure, target, texts.c, characters.c, what, ffi.NULL)
    return out


def digest_texts(texts: Strings) -> bytes:
    """Returns the BLAKE2b digests of DIGEST_SIZE bytes, one after another."""
    out = bytearray(DIGEST_SIZE * len(texts))
    call(lib.pybpe_texts_digest, ffi.from_buffer("uint8_t[]", out), texts.c)
    return bytes(out)


def minhash_texts(
    texts: Strings, characters: Characters, only: numpy.ndarray[Any, Any] | None = None
) -> numpy.ndarray[Any, Any]:
    """Returns signatures: uint32, shape (signatures, MINHASH_SIZE). `only`, uint64, becomes the hash of each text that
    has no signature, as it has fewer words than a shingle, and 0 for the others. With None, each has a signature."""
    out = numpy.empty((len(texts), MINHASH_SIZE), dtype=numpy.uint32)
    target = ffi.from_buffer("uint32_t[]", out, require_writable=True)
    hashes = ffi.NULL if only is None else ffi.from_buffer("uint64_t[]", only, require_writable=True)
    call(lib.pybpe_texts_minhash, target, hashes, texts.c, characters.c, ffi.NULL)
    return out if only is None else out[: numpy.count_nonzero(only == 0)]


def cut_signatures(signatures: numpy.ndarray[Any, Any], bands: int, width: int) -> numpy.ndarray[Any, Any]:
    """Returns the hashes of the bands of signatures: uint64, shape (bands, signatures)."""
    out = numpy.empty((bands, len(signatures)), dtype=numpy.uint64)
    rows = ffi.from_buffer("uint32_t[]", signatures)
    target = ffi.from_buffer("uint64_t[]", out, require_writable=True)
    call(lib.pybpe_signatures_cut, target, rows, len(signatures), bands, width)
    return out


def shingle_hashes(text: Data, characters: Characters) -> numpy.ndarray[Any, Any]:
    """Returns the hashes of a text's shingles, in order: uint64."""
    view, count = ffi.from_buffer(text), ffi.new("size_t *")
    call(lib.pybpe_text_shingles, ffi.NULL, count, view, len(view), characters.c, ffi.NULL)
    out = numpy.empty(count[0], dtype=numpy.uint64)
    target = ffi.from_buffer("uint64_t[]", out, require_writable=True)
    call(lib.pybpe_text_shingles, target, count, view, len(view), characters.c, ffi.NULL)
    return out
