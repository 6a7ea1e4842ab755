"""Files of packed rows: llm.c's shards, and formats that have a column for each of COLUMNS.

    llmc        the tokens of all rows, and one more end-of-text token, the target of the last
    npy         a file per column, NAME_SPLIT_INDEX.COLUMN.npy: an array of shape (rows, tokens per row)
    parquet     a row per row, a list per column
    webdataset  a tar with a sample per row, and a member KEY.COLUMN.npy per column

They are written into a folder that has no name yet, so a file needs no temporary name.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import IO, TYPE_CHECKING

from ... import _binding
from ..._numpy import numpy
from ...reading.parquet import pyarrow_parquet
from ...support import platform
from ..spool import id_bytes
from .columns import Columns

if TYPE_CHECKING:
    import tarfile

COLUMNS = ("input_ids", "document_ids", "position_ids", "loss_mask")


@dataclass(frozen=True)
class NewShard:
    """A shard to write.

    Attributes:
        base: its path without an ending.
        dtype: the dtype of its ids.
        rows, size: the number of rows, and tokens per row.
        mark: the id that begins each row.
    """

    base: str
    dtype: str
    rows: int
    size: int
    mark: int


class RowFile(ABC):
    """A shard that is being written.

    Attributes:
        path: the file with the tokens.
        others: files that belong to it.
    """

    path: str
    others: tuple[str, ...] = ()

    @abstractmethod
    def write(self, columns: Columns) -> None:
        """Appends rows."""

    @abstractmethod
    def finish(self) -> None:
        """Completes the file, after all rows of the shard, and writes it to disk."""

    @abstractmethod
    def discard(self) -> None:
        """Closes the file. It is removed with its folder."""


class LlmcFile(RowFile):
    """A shard of llm.c."""

    def __init__(self, shard: NewShard) -> None:
        self.path = shard.base + ".bin"
        self._shard = shard
        self._writer = _binding.ShardWriter(self.path, "llmc", id_bytes(shard.dtype))

    def write(self, columns: Columns) -> None:
        """See RowFile."""
        self._writer.write(columns.input_ids.reshape(-1).astype(self._shard.dtype, copy=False))

    def finish(self) -> None:
        """Ends the shard with a mark, the target of its last token: it begins the row that comes next, whichever."""
        self._writer.write(numpy.array([self._shard.mark], dtype=self._shard.dtype))
        self._writer.finish()

    def discard(self) -> None:
        """See RowFile."""
        self._writer.discard()


class NpyFiles(RowFile):
    """An array per column."""

    def __init__(self, shard: NewShard) -> None:
        kinds = {"input_ids": f"<u{id_bytes(shard.dtype)}", "loss_mask": "|u1"}
        self._kinds = {column: numpy.dtype(kinds.get(column, "<i4")) for column in COLUMNS}
        self.path, *others = (f"{shard.base}.{column}.npy" for column in COLUMNS)
        self.others = tuple(others)
        self._streams: dict[str, IO[bytes]] = {}
        for column, kind in self._kinds.items():
            header = {"descr": kind.str, "fortran_order": False, "shape": (shard.rows, shard.size)}
            self._streams[column] = open(f"{shard.base}.{column}.npy", "wb")
            numpy.lib.format.write_array_header_1_0(self._streams[column], header)

    def write(self, columns: Columns) -> None:
        """See RowFile."""
        for column, stream in self._streams.items():
            stream.write(getattr(columns, column).astype(self._kinds[column]).tobytes())

    def finish(self) -> None:
        """See RowFile."""
        self.discard()
        for path in (self.path, *self.others):
            platform.sync_file(path)

    def discard(self) -> None:
        """See RowFile."""
        for stream in self._streams.values():
            stream.close()


class ParquetFile(RowFile):
    """A parquet file."""

    def __init__(self, shard: NewShard) -> None:
        self.path = shard.base + ".parquet"
        parquet = pyarrow_parquet(self.path)
        import pyarrow

        kinds = {"input_ids": getattr(pyarrow, shard.dtype)(), "loss_mask": pyarrow.uint8()}
        self._kinds = {column: kinds.get(column, pyarrow.int32()) for column in COLUMNS}
        schema = pyarrow.schema([(column, pyarrow.list_(kind)) for column, kind in self._kinds.items()])
        self._writer = parquet.ParquetWriter(self.path, schema, compression="zstd")
        self._schema = schema

    def write(self, columns: Columns) -> None:
        """See RowFile."""
        import pyarrow

        rows, size = columns.input_ids.shape
        offsets = pyarrow.array(numpy.arange(0, (rows + 1) * size, size), pyarrow.int32())
        lists = [
            pyarrow.ListArray.from_arrays(offsets, pyarrow.array(getattr(columns, column).reshape(-1), kind))
            for column, kind in self._kinds.items()
        ]
        self._writer.write_table(pyarrow.Table.from_arrays(lists, schema=self._schema))

    def finish(self) -> None:
        """See RowFile."""
        self._writer.close()
        platform.sync_file(self.path)

    def discard(self) -> None:
        """See RowFile."""
        self._writer.close()


class WebdatasetFile(RowFile):
    """A tar of WebDataset."""

    def __init__(self, shard: NewShard) -> None:
        import tarfile

        self.path = shard.base + ".tar"
        self._key = "-".join(shard.base.rsplit("_", 2)[1:])
        self._tar: tarfile.TarFile = tarfile.open(self.path, mode="w", format=tarfile.USTAR_FORMAT)
        self._count = 0

    def write(self, columns: Columns) -> None:
        """See RowFile."""
        for row in range(len(columns.input_ids)):
            for column in COLUMNS:
                data = io.BytesIO()
                numpy.save(data, getattr(columns, column)[row])
                self._add(f"{self._key}-{self._count:09d}.{column}.npy", data.getvalue())
            self._count += 1

    def _add(self, name: str, data: bytes) -> None:
        """Adds a member whose times and owners are 0, so that equal tokens give equal tars."""
        import tarfile

        member = tarfile.TarInfo(name)
        member.size = len(data)
        self._tar.addfile(member, io.BytesIO(data))

    def finish(self) -> None:
        """See RowFile."""
        self._tar.close()
        platform.sync_file(self.path)

    def discard(self) -> None:
        """See RowFile."""
        self._tar.close()


@dataclass(frozen=True)
class RowFormat:
    """A format of packed rows.

    Attributes:
        new: begins to write a shard.
        more: tokens of a shard after its rows.
        check_packages: raises MissingExtraError if a package is not installed.
    """

    new: Callable[[NewShard], RowFile]
    more: int = 0
    check_packages: Callable[[], object] = lambda: None


ROW_FORMATS = {
    "llmc": RowFormat(LlmcFile, more=1),
    "npy": RowFormat(NpyFiles),
    "parquet": RowFormat(ParquetFile, check_packages=partial(pyarrow_parquet, "format='parquet'")),
    "webdataset": RowFormat(WebdatasetFile),
}
