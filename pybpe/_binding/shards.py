"""Streams of ids: marks between documents, shards, and llm.c's DataLoader."""

from __future__ import annotations

import os
import threading
from array import array
from typing import Any

from .._lazy import Array, numpy
from .core import PathLike, call, ffi, lib, make_handle, new_block, output_bytes, path_bytes, raise_error
from .vocabulary import IdBuffer

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
    """Places one mark, or none, around each document in a piece of a stream, which has `count` marks: see
    pybpe_marks_place. Returns the ids; the indexes at which documents begin in them, of type Q; and whether a document
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
    """Returns first + start for each document, of type Q as `starts`."""
    shifted = new_block(8 * len(starts)).cast("Q")
    lib.pybpe_starts_shift(
        ffi.from_buffer("uint64_t[]", starts), len(starts), first, ffi.from_buffer("uint64_t[]", shifted)
    )
    return shifted


def fill_rows(ids: Array, starts: Array, lengths: Array, width: int) -> Array:
    """Packs documents into rows without padding: see pybpe_rows_fill. `ids` are uint16 or uint32; `starts` and
    `lengths`, of type uint64, say where documents are. Each begins with a mark. Returns the rows, in the dtype of the
    ids: shape (rows, width)."""
    rows = numpy.empty((int(lengths.sum()) // (width - 1), width), dtype=ids.dtype)
    documents, count = _marked(IdBuffer(ids), starts, lengths), ffi.new("size_t *")
    call(lib.pybpe_rows_fill, documents, width, ffi.from_buffer(rows), count, ffi.NULL)
    return rows[: count[0]]


def fit_rows(lengths: Array, width: int) -> Array:
    """Returns the row of each of some texts, which are not cut: see pybpe_rows_fit. int64, the shape of `lengths`."""
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
    """Copies parts of documents into rows: see pybpe_rows_gather. `ids` are uint16 or uint32; `starts`, `lengths`,
    `rows` and `ends` have an item per part. Returns arrays of this shape, (rows, width): the ids; and, if there are
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


SHARD_FORMATS: dict[tuple[str, int], int] = {
    ("llmc", 2): lib.PYBPE_SHARD_UINT16,
    ("llmc", 4): lib.PYBPE_SHARD_UINT32,
    ("raw", 2): lib.PYBPE_SHARD_RAW_UINT16,
    ("raw", 4): lib.PYBPE_SHARD_RAW_UINT32,
}


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


class ShardWriter:
    """Writes a token shard. The file appears, complete, at `finish`. C stores the handle where `__del__` finds it: see
    Output."""

    _process = 0  # until there is something to discard

    def __init__(self, path: PathLike, format: str, id_bytes: int) -> None:
        self._handle = ffi.new("pybpe_shard_writer **")
        self._process = os.getpid()
        number = SHARD_FORMATS[format, id_bytes]
        call(lib.pybpe_shard_writer_new, self._handle, output_bytes(path), number, ffi.NULL)

    def write(self, ids: numpy.ndarray[Any, Any]) -> None:
        """Appends a contiguous array of uint16 or uint32."""
        if len(ids):
            call(lib.pybpe_shard_writer_write, self._handle[0], ffi.from_buffer(ids), ids.itemsize, len(ids))

    def finish(self) -> None:
        """Completes the file."""
        err = ffi.new("pybpe_error *")
        handle, self._handle[0] = self._handle[0], ffi.NULL
        if lib.pybpe_shard_writer_finish(handle, err) < 0:
            raise_error(err)

    def discard(self) -> None:
        """Removes the unfinished file. Does nothing after `finish`."""
        handle, self._handle[0] = self._handle[0], ffi.NULL
        lib.pybpe_shard_writer_discard(handle)

    def __del__(self) -> None:
        if self._process == os.getpid():  # the file is not a forked child's
            self.discard()


class Loader:
    """llm.c's DataLoader: batches of shape (B, T) from the shards that match a glob pattern. Threads take turns."""

    def __init__(self, pattern: PathLike, B: int, T: int, rank: int, world: int, shuffle: bool) -> None:
        self._shape = (B, T)
        self._turn = threading.RLock()  # a signal handler may take a batch too
        self.c = make_handle(
            "pybpe_loader",
            lib.pybpe_loader_new,
            lib.pybpe_loader_free,
            path_bytes(pattern),
            B,
            T,
            rank,
            world,
            int(shuffle),
            ffi.NULL,
        )

    def next(self) -> tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]:
        """Returns inputs and targets, int32, each of shape (B, T)."""
        inputs = numpy.empty(self._shape, dtype=numpy.int32)
        targets = numpy.empty(self._shape, dtype=numpy.int32)
        with self._turn:
            call(
                lib.pybpe_loader_next,
                self.c,
                ffi.from_buffer("int32_t[]", inputs),
                ffi.from_buffer("int32_t[]", targets),
            )
        return inputs, targets

    def reset(self) -> None:
        """Returns to the start."""
        with self._turn:
            call(lib.pybpe_loader_reset, self.c)

    def seek(self, batches: int) -> None:
        """Moves to the state after `batches` calls of `next` on a new loader."""
        with self._turn:
            call(lib.pybpe_loader_seek, self.c, batches)

    @property
    def tokens(self) -> int:
        """The number of tokens in all shards."""
        return int(lib.pybpe_loader_tokens(self.c))

    @property
    def batches(self) -> int:
        """The number of batches per epoch for each process."""
        return int(lib.pybpe_loader_batches(self.c))

    @property
    def shards(self) -> int:
        """The number of shards that match the pattern."""
        return int(lib.pybpe_loader_shards(self.c))
