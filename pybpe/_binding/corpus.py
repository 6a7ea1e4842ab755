"""Documents: dividing a corpus into them, the records of JSON lines, their measures and signatures, and
their tokens: shards, rows, and llm.c's loader."""

from __future__ import annotations

import os
import threading
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

from .._lazy import Array, numpy
from .core import (
    Data,
    PathLike,
    Strings,
    call,
    ffi,
    lib,
    make_handle,
    new_block,
    new_uncleared,
    path_bytes,
    raise_error,
)
from .text import Specials
from .vocabulary import IdBuffer

DOCUMENTS: dict[str, int] = {
    "line": lib.PYBPE_DOCUMENTS_LINE,
    "blank": lib.PYBPE_DOCUMENTS_BLANK,
    "special": lib.PYBPE_DOCUMENTS_MARK,
    "jsonl": lib.PYBPE_DOCUMENTS_RECORD,
}


class Divider:
    """Divides pieces into documents, and these among splits. Only one thread may use it at a time. `separator` is
    written after every document, `marks` match the separators of documents of the kind "special", `key` is the key of
    the text in a record, and `last` has the last hash of every split: see pybpe_division in pybpe_corpus.h.
    `id_key` is the key of the ids of records, if these belong to the origins."""

    def __init__(
        self,
        separator: bytes,
        marks: Specials | None,
        key: str,
        last: Sequence[int],
        has_origins: bool = False,
        id_key: str | None = None,
    ) -> None:
        self._keep = marks
        self.splits, self._separator = len(last), separator
        self._err = ffi.new("pybpe_error *")
        name, hashes, id_name = key.encode(), array("Q", last), (id_key or "").encode()
        how = ffi.new("pybpe_division *")
        how.marks = marks.c if marks is not None else ffi.NULL
        how.key, how.key_n = ffi.from_buffer("uint8_t[]", name), len(name)
        how.separator, how.separator_n = ffi.from_buffer("uint8_t[]", separator), len(separator)
        how.last, how.splits = ffi.from_buffer("uint64_t[]", hashes), len(last)
        how.has_origins = has_origins
        if id_key is not None:
            how.id, how.id_n = ffi.from_buffer("uint8_t[]", id_name), len(id_name)
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
        """Returns the number of records, and of line ends in JSON lines: see pybpe_divider_records in
        pybpe_corpus.h."""
        found = new_uncleared("size_t[2]")
        lib.pybpe_divider_records(self.c, found, found + 1)
        return found[0], found[1]

    def documents(self, split: int) -> Any:
        """Returns the documents of a split as a pybpe_strings, valid until the next call."""
        return lib.pybpe_divider_documents(self.c, split)

    def origins(self, split: int) -> array[int]:
        """Returns three numbers for each document of a split: see pybpe_origin in pybpe_corpus.h."""
        count, found = self.documents(split).count, array("Q")
        if count:
            found.frombytes(ffi.buffer(lib.pybpe_divider_origins(self.c, split), 24 * count))
        return found

    def texts(self, split: int) -> Strings:
        """Returns a copy of the documents of a split, with a separator after every one."""
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
    """The first bytes of files, at most `most` bytes per file: see pybpe_file_starts_read in pybpe_corpus.h.

    Start i is data[offsets[i] : offsets[i + 1]]. If the starts have more than `room` bytes, some are missing. `sizes`
    and `modified`, in ns, are of the whole files. UNREAD is the size of a file whose start is missing, because it is
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
    """A `pybpe_characters` with the memory it points to: the class of every code point, and its lowercase, uint32, for
    code points below the array's length. Immutable."""

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
    """Returns the texts as JSON lines, or None if one is not UTF-8: see pybpe_records_write in pybpe_corpus.h."""
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
    """Returns counts: uint64, shape (texts, MEASURES, then two columns per item of `ngrams`, which ascend). Without
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
    """Returns signatures: uint32, shape (signatures, MINHASH_SIZE). `only`, uint64, becomes the hash of a text that
    has no signature, because it has fewer words than a shingle, and 0 for the others. With None, every text has a
    signature."""
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


# ----------------------------------------------------------------------------------------------------
# Streams of ids: marks between documents, shards, and llm.c's DataLoader.


SHARD_MAGICS: dict[int, int] = {2: lib.PYBPE_MAGIC_SHARD_UINT16, 4: lib.PYBPE_MAGIC_SHARD_UINT32}  # by bytes per id
TOKENIZER_MAGIC: int = lib.PYBPE_MAGIC_TOKENIZER
SHARD_HEADER_BYTES: int = lib.PYBPE_SHARD_HEADER_BYTES
SHARD_MAX_BYTES: int = lib.PYBPE_SHARD_MAX_BYTES
MARKS: dict[str, int] = {
    "none": lib.PYBPE_MARKS_NONE,
    "prepend": lib.PYBPE_MARKS_PREPEND,
    "append": lib.PYBPE_MARKS_APPEND,
}


def count_id(ids: array[int] | memoryview, number: int) -> int:
    """Returns how many of the ids equal `number`."""
    buffer = IdBuffer(ids)
    return int(lib.pybpe_ids_count(buffer.c, buffer.id_bytes, buffer.count, number))


def place_marks(
    ids: array[int], mark: int, count: int, mode: str, is_open: bool
) -> tuple[memoryview, memoryview, bool]:
    """Places one mark, or none, at every document in a piece of a stream, which has `count` marks: see
    pybpe_marks_place. Returns the ids, the indexes where documents begin in them, of type Q, and whether a document
    is open at the end."""
    buffer = IdBuffer(ids)
    out = new_block((buffer.count + 1) * buffer.id_bytes)
    starts = new_block(8 * (count + 1)).cast("Q")
    c_open, documents = ffi.new("int *", is_open), ffi.new("size_t *")
    length = lib.pybpe_marks_place(
        buffer.c, buffer.id_bytes, buffer.count, mark, MARKS[mode], c_open, ffi.from_buffer(out),
        ffi.from_buffer("uint64_t[]", starts), documents,
    )  # fmt: skip
    placed: Any = out[: length * buffer.id_bytes]
    return placed.cast(ids.typecode), starts[: documents[0]], bool(c_open[0])


def shift_starts(starts: array[int] | memoryview, first: int) -> memoryview:
    """Returns first + start for all documents, of type Q as `starts`."""
    shifted = new_block(8 * len(starts)).cast("Q")
    lib.pybpe_starts_shift(
        ffi.from_buffer("uint64_t[]", starts), len(starts), first, ffi.from_buffer("uint64_t[]", shifted)
    )
    return shifted


def fill_rows(ids: Array, starts: Array, lengths: Array, width: int) -> Array:
    """Packs documents into rows without padding: see pybpe_rows_fill. `ids` are uint16 or uint32. `starts` and
    `lengths`, of type uint64, say where documents are. All begin with a mark. Returns the rows, in the dtype of the
    ids: shape (rows, width)."""
    rows = numpy.empty((int(lengths.sum()) // (width - 1), width), dtype=ids.dtype)
    documents, count = _marked(IdBuffer(ids), starts, lengths), ffi.new("size_t *")
    call(lib.pybpe_rows_fill, documents, width, ffi.from_buffer(rows), count, ffi.NULL)
    return rows[: count[0]]


def fit_rows(lengths: Array, width: int) -> Array:
    """Returns the rows of some documents, which are not cut: see pybpe_rows_fit. int64, the shape of `lengths`."""
    rows, given = numpy.empty(len(lengths), numpy.int64), numpy.ascontiguousarray(lengths, numpy.uint64)
    buffers = ffi.from_buffer("uint64_t[]", given), len(given), width, ffi.from_buffer("uint64_t[]", rows)
    call(lib.pybpe_rows_fit, *buffers, ffi.NULL)
    return rows


def gather_rows(
    ids: Array,
    starts: Array,
    lengths: Array,
    rows: Array,
    shape: tuple[int, int],
    *,
    mark: int = lib.PYBPE_NO_ID,
    pad: int = 0,
    ends: Array | None = None,
) -> list[Array]:
    """Copies parts of documents into rows: see pybpe_rows_gather. `ids` are uint16 or uint32. `starts`, `lengths`,
    `rows` and `ends` have an item per part. Returns arrays of this shape, (rows, width): the ids. And, if there are
    `ends`, documents and positions, int32, and the loss mask, uint8."""
    kinds = [ids.dtype, *((numpy.int32, numpy.int32, numpy.uint8) if ends is not None else ())]
    found = [numpy.empty(shape, dtype=kind) for kind in kinds]
    columns = [ffi.cast(kind, ffi.from_buffer(made)) for kind, made in zip(_COLUMNS, found)]
    buffer, whole = IdBuffer(ids), [numpy.ascontiguousarray(given, numpy.uint64) for given in (starts, lengths, rows)]
    last = ffi.NULL if ends is None else ffi.from_buffer("uint8_t[]", numpy.ascontiguousarray(ends, numpy.uint8))
    to = ffi.new("pybpe_rows *", [shape[1], shape[0], mark, pad, *columns])
    place = ffi.from_buffer("uint64_t[]", whole[2])
    call(lib.pybpe_rows_gather, _marked(buffer, *whole[:2]), buffer.count, place, last, to)
    return found


_COLUMNS = ("void *", "int32_t *", "int32_t *", "uint8_t *")  # of a pybpe_rows


def _marked(ids: IdBuffer, starts: Array, lengths: Array) -> Any:
    pointers = (ffi.from_buffer("uint64_t[]", given) for given in (starts, lengths))
    return ffi.new("pybpe_marked *", [ids.c, ids.id_bytes, *pointers, len(starts)])


class Shard:
    """A token shard with a header, for reading."""

    def __init__(self, path: PathLike) -> None:
        self.c = make_handle("pybpe_shard", lib.pybpe_shard_open, lib.pybpe_shard_free, path_bytes(path), ffi.NULL)

    def __len__(self) -> int:
        return int(lib.pybpe_shard_count(self.c))

    @property
    def id_bytes(self) -> int:
        """2 for uint16, 4 for uint32."""
        return int(lib.pybpe_shard_id_bytes(self.c))

    def read(self, start: int, count: int) -> numpy.ndarray[Any, Any]:
        """Returns tokens `start` to `start + count` (exclusive) as uint32, shape (count,)."""
        ids = numpy.empty(count, dtype=numpy.uint32)
        if count:
            call(lib.pybpe_shard_read, self.c, start, count, ffi.from_buffer("uint32_t[]", ids))
        return ids


class Loader:
    """llm.c's DataLoader: batches of shape (B, T) from the shards that match a glob pattern. Threads take turns."""

    def __init__(self, pattern: PathLike, B: int, T: int, rank: int, world: int, shuffle: bool) -> None:
        self._shape = (B, T)
        self._turn = threading.RLock()  # a signal handler may take a batch too
        given = path_bytes(pattern), B, T, rank, world, int(shuffle), ffi.NULL
        self.c = make_handle("pybpe_loader", lib.pybpe_loader_new, lib.pybpe_loader_free, *given)

    def next_batch(self) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """Returns inputs and targets, two int32 arrays of shape (B, T). Targets are the inputs shifted by one token."""
        inputs, targets = (numpy.empty(self._shape, dtype=numpy.int32) for _ in range(2))
        with self._turn:
            call(lib.pybpe_loader_next, self.c, *(ffi.from_buffer("int32_t[]", ids) for ids in (inputs, targets)))
        return inputs, targets

    def reset(self) -> None:
        """Returns to the beginning. With should_shuffle, draws a new permutation."""
        with self._turn:
            call(lib.pybpe_loader_reset, self.c)

    def seek(self, batches: int) -> None:
        """Moves to where a new loader is after `batches` batches, permutations included, to resume a run."""
        with self._turn:
            call(lib.pybpe_loader_seek, self.c, batches)

    @property
    def num_tokens(self) -> int:
        """The number of tokens in all shards."""
        return int(lib.pybpe_loader_tokens(self.c))

    @property
    def batches_per_epoch(self) -> int:
        """The number of batches per process."""
        return int(lib.pybpe_loader_batches(self.c))

    @property
    def num_shards(self) -> int:
        """The number of shards that match the pattern."""
        return int(lib.pybpe_loader_shards(self.c))
