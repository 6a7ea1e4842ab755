"""The tokens of rows, and the facts about tokens that trainers other than llm.c need.

    input_ids       | 1 2 3 | 7 8 .     (| is <|endoftext|>, . is padding, 7 8 is a part of a longer document)
    document_ids    0 0 0 0 1 1 1 -1
    position_ids    0 1 2 3 0 1 2 0
    loss_mask       0 1 1 1 1 1 1 0

All arrays have shape (rows, tokens per row).

input_ids: in the dtype of the shards.
document_ids: int32. The number of the document, or part of one, in its row, from 0, -1 for padding. Attention within
    documents lets a token see tokens with the same number.
position_ids: int32. The position in the document or part, from 0 for its mark. Padding counts from 0 too, as one more
    document, so that lengths can be found from the zeros, as FlashAttention's users do.
loss_mask: uint8, for labels that are the inputs themselves, which a model shifts (`labels = where(loss_mask, input_ids,
    -100)`): 1 where the tokens before it in the row, up to the last mark, predict the token. It is 0 for padding, for
    the first token of a row, and for a mark after a part whose document continues elsewhere. It is 1 for a mark after
    the end of a document, and so teaches the model where documents end.

Files of packed rows: llm.c's shards, and formats that have one column per item of COLUMNS.

    llmc        the tokens of all rows, and one more end-of-text token, the target of the last
    npy         a file per column, NAME_SPLIT_INDEX.COLUMN.npy: an array of shape (rows, tokens per row)
    parquet     a row per row, a list per column
    webdataset  a tar with a sample per row, and a member KEY.COLUMN.npy per column

They are written into a folder that has no name yet, so a file needs no temporary name. The first file of a shard has
its tokens.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from typing import Any, NamedTuple

from ... import _binding
from ..._lazy import Array, numpy, tarfile
from ...arguments import number_of
from ...errors import file_errors
from ...reading.rows import pyarrow_parquet
from ..formats import llmc_header
from ..manifest import FileRecord
from ..task_encoder import ID_BYTES
from .spans import row_count

COLUMNS = ("input_ids", "document_ids", "position_ids", "loss_mask")


Columns = dict[str, Array]
"""Some rows: the arrays by name, or only the input_ids."""


def columns_of(ids: Array, spans: Array, size: int, mark: int, pad: int, has_all: bool = True) -> Columns:
    """Returns the rows of spans.

    Args:
        ids: the tokens of the group.
        spans: some of its spans, in the order of rows, which count from 0.
        size: tokens per row.
        mark: the id that begins every span.
        pad: the id of the padding token.
        has_all: whether there are columns other than the input_ids.
    """
    parts, shape = (spans["start"], spans["length"], spans["row"]), (row_count(spans), size)
    ends = spans["ends"] if has_all else None
    return dict(zip(COLUMNS, _binding.gather_rows(ids, *parts, shape, mark=mark, pad=pad, ends=ends)))


def row_fault(blocks: Iterable[Array], size: int, mark: int, more: int = 1) -> str | None:
    """Returns the problem with a shard of packed rows, or None.

    Args:
        blocks: the tokens of the shard, in order.
        size: tokens per row.
        mark: the id that begins every row.
        more: the tokens after the last row: 1 in llm.c's shards, 0 in others.
    """
    seen = 0
    for ids in blocks:
        first = -seen % size  # the first token of the block that begins a row
        wrong = (ids[first::size] != mark).nonzero()[0]
        if len(wrong):
            place = seen + first + int(wrong[0]) * size
            return f"token {place} begins a row of {size} tokens, but is not the end of text, id {mark}"
        seen += len(ids)
    if seen % size != more:
        and_more = " and one more token" if more else ""
        return f"has {number_of(seen, 'token')}, which is not a whole number of rows of {size}{and_more}"
    return None


# ----------------------------------------------------------------------------------------------------
# Files


class NewShard(NamedTuple):
    """A shard to write."""

    base: str  # its path without an ending
    dtype: str  # the dtype of its ids
    rows: int
    size: int  # tokens per row
    mark: int  # the id that begins every row


class _File(io.FileIO):
    """A new file, which is hashed while it is written."""

    def __init__(self, path: str) -> None:
        with file_errors(path, "cannot be written"):
            super().__init__(path, "wb")
        self._path, self._digest = path, hashlib.sha256()

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        size = len(view)
        self._digest.update(view)
        with file_errors(self._path, "cannot be written"):
            while view:
                view = view[super().write(view) :]
        return size

    def finish(self) -> FileRecord:
        """Writes everything to disk."""
        with file_errors(self._path, "cannot be written"):
            os.fsync(self.fileno())
        return FileRecord(os.path.basename(self._path), self.tell(), self._digest.hexdigest())


def _write_llmc(shard: NewShard, rows: Iterable[Columns]) -> list[FileRecord]:
    """The mark at the end is the target of the last token: it begins the next row, whatever that is."""
    with _File(shard.base + ".bin") as file:
        file.write(llmc_header(shard.rows * shard.size + 1, shard.dtype, 0))
        kind = f"<u{ID_BYTES[shard.dtype]}"
        for some in rows:
            file.write(some["input_ids"].astype(kind, copy=False))
        file.write(numpy.array([shard.mark], dtype=kind))
        return [file.finish()]


def _write_npy(shard: NewShard, rows: Iterable[Columns]) -> list[FileRecord]:
    kinds = {**dict.fromkeys(COLUMNS, "<i4"), "input_ids": f"<u{ID_BYTES[shard.dtype]}", "loss_mask": "|u1"}
    with ExitStack() as opened:
        files = {column: opened.enter_context(_File(f"{shard.base}.{column}.npy")) for column in COLUMNS}
        for column, file in files.items():
            header = {"descr": kinds[column], "fortran_order": False, "shape": (shard.rows, shard.size)}
            numpy.lib.format.write_array_header_1_0(file, header)
        for some in rows:
            for column, file in files.items():
                file.write(some[column].astype(kinds[column], copy=False))
        return [file.finish() for file in files.values()]


def _write_parquet(shard: NewShard, rows: Iterable[Columns]) -> list[FileRecord]:
    path = shard.base + ".parquet"
    parquet = pyarrow_parquet(path)
    import pyarrow

    kinds = {column: pyarrow.int32() for column in COLUMNS}
    kinds |= {"input_ids": getattr(pyarrow, shard.dtype)(), "loss_mask": pyarrow.uint8()}
    schema = pyarrow.schema([(column, pyarrow.list_(kind)) for column, kind in kinds.items()])
    with _File(path) as file:
        with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            for some in rows:
                columns = [pyarrow.array(some[column].reshape(-1), kind) for column, kind in kinds.items()]
                offsets = pyarrow.array(numpy.arange(0, len(columns[0]) + 1, shard.size), pyarrow.int32())
                lists = [pyarrow.ListArray.from_arrays(offsets, column) for column in columns]
                writer.write_table(pyarrow.Table.from_arrays(lists, schema=schema))
        return [file.finish()]


def _write_webdataset(shard: NewShard, rows: Iterable[Columns]) -> list[FileRecord]:
    """The times and owners of members are 0, so that equal tokens give equal tars. The members of a column differ only
    in their data and in the number in their names, on which the checksum depends. So numpy and tarfile, which are slow,
    make the first one."""
    key, number = "-".join(shard.base.rsplit("_", 2)[1:]), 0
    with _File(shard.base + ".tar") as file:
        for some in rows:
            members = [_Member(f"{key}-%09d.{column}.npy", values[0]) for column, values in some.items()]
            data = [numpy.ascontiguousarray(values) for values in some.values()]
            for row in range(len(some["input_ids"])):
                file.write(b"".join([member.of(number, values[row]) for member, values in zip(members, data)]))
                number += 1
        file.write(bytes(-(file.tell() + 2 * tarfile.BLOCKSIZE) % tarfile.RECORDSIZE + 2 * tarfile.BLOCKSIZE))
        return [file.finish()]


class _Member:
    """The members of a tar with this name, where %09d is the number, and with arrays like this one."""

    def __init__(self, name: str, values: Array) -> None:
        file = io.BytesIO()
        numpy.save(file, values)
        member = tarfile.TarInfo(name % 0)
        member.size = file.tell()
        head = member.tobuf(tarfile.USTAR_FORMAT)
        place = name.encode().index(b"%09d")
        self._before, self._between, self._after = head[:place], head[place + 9 : 148], head[156:]
        self._sum = sum(self._before + self._between + self._after) + 8 * ord(" ")
        self._after += file.getvalue()[: -values.nbytes]
        self._end = bytes(-member.size % tarfile.BLOCKSIZE)

    def of(self, number: int, values: Array) -> bytes:
        """Returns a member."""
        digits = b"%09d" % number
        checksum = b"%06o\0 " % (self._sum + sum(digits))
        return b"".join((self._before, digits, self._between, checksum, self._after, values.tobytes(), self._end))


WRITERS: dict[str, Callable[[NewShard, Iterable[Columns]], list[FileRecord]]] = {
    "llmc": _write_llmc,
    "npy": _write_npy,
    "parquet": _write_parquet,
    "webdataset": _write_webdataset,
}
"""Write a shard, given its rows in order, and return the records of its files."""
