"""The rows of a folder that `pack` wrote with columns: as npy, parquet or webdataset (see tokens/pack/rows.py).

Any row can be read at once. In arrays of numpy, the rows of a column follow one another. In a tar, all samples have the
same size, so the first one shows where all are. Parquet is compressed, so its columns are first copied to temporary
files, which go with the object.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from .._lazy import Array, numpy, tarfile
from ..arguments import instance, param, shown
from ..errors import ArgumentError, FormatError, file_errors
from ..formats.id_files import read_npy_header
from ..reading.rows import parquet_batches
from ..reading.streams import open_unchanged
from ..support.output_files import temporary_folder
from ..tokenizer import Tokenizer
from ..tokens.formats import LLMC
from ..tokens.manifest import Manifest, check_tokenizer, split_paths
from ..tokens.output_folder import check_finished
from ..tokens.pack.rows import COLUMNS
from ..tokens.token_files import TokenFile, describes_tokens

MORE = COLUMNS[1:]  # those that a batch may have besides inputs and targets
_MOST_OPEN = 64
_BATCH = 1024  # rows of parquet that are decoded at once


class _Column(NamedTuple):
    """Where a file has a column."""

    path: str
    offset: int  # the byte where the first row begins
    step: int  # the bytes from the start of a row to the start of the next one
    dtype: str


class PackedRows:
    """The rows of a split by index, like PackedSequences: the windows are the rows.

    Args:
        folder: a folder that `pack` wrote with columns.
        manifest: its manifest.
        split: the split of the folder.
        sequence_length: the tokens of a row.
        columns: some of MORE.

    Raises:
        ArgumentError: an argument is invalid, or the rows have another length. FileError, FormatError: a file is
            missing or damaged.
    """

    def __init__(
        self, folder: str, manifest: Manifest, split: str, sequence_length: int, columns: Sequence[str]
    ) -> None:
        packing = manifest.packing
        assert packing is not None
        self.sequence_length = self.stride = int(packing["sequence_length"])
        if sequence_length != self.sequence_length:
            told = f"open it with {param(sequence_length=self.sequence_length)}"
            raise ArgumentError(f"{folder}: has packed rows of {self.sequence_length} tokens: {told}")
        self.paths, records = split_paths(folder, manifest, split), manifest.shards[split]
        self._ends = list(accumulate(record.tokens // self.sequence_length for record in records))
        self._mark = int(manifest.tokenizer["eot"])  # type: ignore[call-overload]
        self._hashes = [record.sha256 for record in manifest.records]
        self.made_by = (folder, str(manifest.tokenizer.get("fingerprint")))
        form, names = str(manifest.settings.get("format")), [COLUMNS[0], *columns]
        counts = [end - start for start, end in zip([0, *self._ends], self._ends)]
        if form == "parquet":
            temporary = temporary_folder(self)
            found = [
                {name: _decoded(path, name, os.path.join(temporary, f"{number}.{name}")) for name in names}
                for number, path in enumerate(self.paths)
            ]
        else:
            found = [_of_npy(path, names) if form == "npy" else _of_tar(path) for path in self.paths]
        self._columns = found
        for shard, count in zip(found, counts):
            for name in names:
                self._check(shard[name], count)
        self._open()

    def _check(self, column: _Column, rows: int) -> None:
        """Raises FormatError if a file is too short for its rows."""
        row = self.sequence_length * numpy.dtype(column.dtype).itemsize
        end = column.offset + max(0, rows - 1) * column.step + row
        with file_errors(column.path, "cannot be read"):
            size = os.path.getsize(column.path)
        if rows and (size < end or (rows > 1 and column.step < row)):
            raise FormatError(f"{column.path}: {size} bytes do not hold {rows} rows: pack again", size)

    def _open(self) -> None:
        self._file = lru_cache(_MOST_OPEN)(lambda path: TokenFile(path, as_bytes=True))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_file"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    @property
    def stream(self) -> PackedRows:
        """The tokens: itself, since rows are read one by one."""
        return self

    def __len__(self) -> int:
        return self._ends[-1]

    def column(self, name: str, index: int) -> Array:
        """Returns a column of a row: shape (sequence_length,), read-only."""
        shard = bisect_right(self._ends, index)
        path, offset, step, dtype = self._columns[shard][name]
        start = offset + step * (index - (self._ends[shard - 1] if shard else 0))
        return self._file(path).read(start, start + self.sequence_length * numpy.dtype(dtype).itemsize).view(dtype)

    def ids(self, index: int) -> Array:
        """Returns the tokens of a row, and the end of text that begins the next row."""
        return numpy.append(self.column(COLUMNS[0], index), numpy.uint32(self._mark))

    def more(self, name: str, index: int) -> Array:
        """Returns a column of a row as batches have it: the loss mask is of the targets. Whether a document ends with
        the row is not known, so the mask of the last target is 0."""
        values = self.column(name, index)
        return numpy.append(values[1:], values.dtype.type(0)) if name == "loss_mask" else values

    def fingerprint(self) -> str:
        """Returns a hash of the hashes of all files."""
        return hashlib.sha256(repr(self._hashes).encode()).hexdigest()

    def check_tokenizer(self, tok: Tokenizer) -> None:
        """Raises ArgumentError if another tokenizer made the tokens."""
        instance("tokenizer", tok, Tokenizer, "a Tokenizer or None")
        check_tokenizer(*self.made_by, tok)


def packed_rows(source: Any, split: str, sequence_length: int, columns: Sequence[str]) -> PackedRows | None:
    """Opens a folder that `pack` wrote with columns. Returns None for any other source. Raises ArgumentError if some
    columns are wanted there."""
    instance("columns", columns, (list, tuple), "a list of names")
    for name in columns:
        if name not in MORE:
            raise ArgumentError(f"{param('columns')} may have {', '.join(MORE)}, not {shown(name)}")
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source) and describes_tokens(os.fspath(source)):
        folder = os.fspath(source)
        check_finished(folder)
        manifest = Manifest.load(folder)
        if manifest.packing is not None and manifest.settings.get("format") != LLMC.name:
            return PackedRows(folder, manifest, split, sequence_length, columns)
    if columns:
        told = "only rows have them: pass a folder that `pybpe pack --format npy` (parquet, webdataset) wrote"
        raise ArgumentError(f"{param('columns')}: {told}, not {shown(source)}")
    return None


def _of_npy(path: str, names: Sequence[str]) -> dict[str, _Column]:
    found = {}
    for name in names:
        file = path.removesuffix(f"{COLUMNS[0]}.npy") + f"{name}.npy"
        with open_unchanged(file) as stream:
            header = read_npy_header(stream, file)
        found[name] = _Column(file, header.offset, header.shape[-1] * header.dtype.itemsize, header.dtype.str)
    return found


def _of_tar(path: str) -> dict[str, _Column]:
    found, places = dict[str, tuple[int, str]](), list[int]()
    with open_unchanged(path) as stream:
        try:
            with tarfile.open(fileobj=stream, mode="r:") as tar:
                while len(places) <= len(COLUMNS) and (member := tar.next()) is not None:
                    places.append(member.offset)
                    if len(places) <= len(COLUMNS):
                        data: Any = tar.extractfile(member)
                        numpy.lib.format.read_magic(data)
                        dtype = numpy.lib.format.read_array_header_1_0(data)[2].str
                        found[member.name.split(".")[1]] = member.offset_data + data.tell(), dtype
        except (tarfile.TarError, ValueError, IndexError) as error:
            raise FormatError(f"{path}: not a tar of packed rows, or damaged ({error})") from None
    step = places[-1] - places[0] if len(places) > len(COLUMNS) else 0
    if set(found) != set(COLUMNS):
        raise FormatError(f"{path}: not a tar of packed rows: its first sample has {', '.join(found) or 'nothing'}")
    return {name: _Column(path, offset, step, dtype) for name, (offset, dtype) in found.items()}


def _decoded(path: str, name: str, to: str) -> _Column:
    """Copies a column of a parquet file to a temporary file."""
    dtype, size = "|u1", 0
    with file_errors(to, "cannot be written"), open(to, "wb") as target:
        for batch in parquet_batches(path, _BATCH, [name]):
            values = batch.column(0).flatten().to_numpy()
            dtype, size = values.dtype.str, len(values) // max(1, len(batch)) * values.itemsize
            target.write(values.data)
    return _Column(to, 0, size, dtype)
