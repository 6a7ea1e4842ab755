"""Writes the rows of each split into shards of equal size.

Each split is read twice: first to count its rows, which gives the size of its shards, then to write them. So no token
is written twice, and memory is that of one group of documents.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ... import _binding
from ...errors import ArgumentError, FormatError, file_errors
from ...support.output_files import make_folder
from ...support.progress import Progress
from ...tokenizer import Tokenizer
from ..encoding import token_lengths
from ..equal_shards import check_least
from ..manifest import FILE_NAME, Manifest, ShardRecord, record_shard, split_paths
from ..token_files import TokenStream
from ..writers.base import id_bytes
from ..writers.flat import LLMC
from .layout import Placed, make_rows, place, shuffled
from .pieces import Group, groups

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_BLOCK_TOKENS = 1 << 20


@dataclass(frozen=True)
class Packing:
    """What to pack, and how.

    Attributes:
        tok: the tokenizer that made the data.
        folder, source: the data, and their manifest.
        identity: what the manifest says about the packing: see `pack`.
        shard_tokens: the most tokens per shard.
    """

    tok: Tokenizer
    folder: str
    source: Manifest
    identity: Mapping[str, Any]
    shard_tokens: int

    @property
    def size(self) -> int:
        """Tokens per row."""
        return int(self.identity["sequence_length"])

    @property
    def pad(self) -> int:
        """The id of the padding token."""
        return int(self.identity["pad"])

    @property
    def mark(self) -> int:
        """The id that begins each row and document."""
        assert self.tok.eot_token is not None
        return self.tok.eot_token

    @property
    def dtype(self) -> str:
        """The dtype of the ids."""
        return str(self.source.settings["dtype"])

    def text_lengths(self) -> Array:
        """Returns the bytes of text of each id; padding is not text."""
        lengths = token_lengths(self.tok)
        lengths[self.pad] = 0
        return lengths


def write_packed(packing: Packing, settings: Mapping[str, Any], folder: str, bar: Progress) -> None:
    """Writes the shards of all splits and the manifest into a new folder."""
    with file_errors(folder, "cannot be emptied"):
        if os.path.isdir(folder):
            shutil.rmtree(folder)
    make_folder(folder)
    shards: dict[str, list[ShardRecord]] = {}
    counts: dict[str, dict[str, int]] = {}
    for split, records in packing.source.shards.items():
        shards[split], counts[split] = _write_split(packing, split, folder, bar) if records else ([], {})
    described = {**settings, "packing": {**packing.identity, "splits": counts}}
    manifest = Manifest(described, packing.source.tokenizer, packing.source.text_bytes, shards)
    _binding.write_file(os.path.join(folder, FILE_NAME), manifest.to_json())


def _write_split(packing: Packing, split: str, folder: str, bar: Progress) -> tuple[list[ShardRecord], dict[str, int]]:
    """Writes one split. Returns its shards, and the numbers of rows, padding tokens, and cuts in documents."""
    import numpy

    stream = TokenStream(split_paths(packing.folder, packing.source, split))
    planned = sum(placed.count for _, placed in _placed(packing, stream, bar))
    shards, per_shard = _divide(packing, split, planned)
    writer = _ShardWriter(packing, split, folder, per_shard)
    pieces = documents = used = 0
    with writer:
        for group, placed in _placed(packing, stream, bar):
            placed = shuffled(placed, int(packing.identity["seed"]), group.number)
            begins = numpy.bincount(placed.rows, placed.pieces.begins, placed.count).astype(numpy.int64)
            writer.add(make_rows(group, placed, packing.size, packing.mark, packing.pad), begins)
            pieces, documents = pieces + len(placed.rows), documents + int(begins.sum())
            used += int(placed.pieces.texts.sum()) + len(placed.rows)
        spare = numpy.full((shards * per_shard - planned, packing.size), packing.pad, dtype=stream.dtype)
        spare[:, :1] = packing.mark
        writer.add(spare, numpy.zeros(len(spare), dtype=numpy.int64))
    _check(packing, split, documents, sum(record.text_bytes for record in writer.records))
    rows = shards * per_shard
    return writer.records, {"rows": rows, "padding": rows * packing.size - used, "cuts": pieces - documents}


def _placed(packing: Packing, stream: TokenStream, bar: Progress) -> Iterator[tuple[Group, Placed]]:
    """Yields each group, and the rows of its pieces.

    Raises:
        ArgumentError: the documents contain the padding token.
    """
    for group in groups(stream, packing.mark, packing.size):
        if packing.pad != packing.mark and (group.ids == packing.pad).any():
            raise ArgumentError(
                f"{packing.folder}: the documents contain the padding token, id {packing.pad}: pass another one as pad"
            )
        yield group, place(group.documents, packing.size, str(packing.identity["method"]))
        bar.add(int(group.documents.texts.sum()) + len(group.documents.texts))


def _divide(packing: Packing, split: str, rows: int) -> tuple[int, int]:
    """Returns the number of shards of a split, and of rows in each.

    Of up to twice as many shards as necessary, the fewest that need the fewest rows of padding to be equal.

    Raises:
        ShardTooSmallError: the split is too small for one shard.
    """
    least = max(1, int(packing.source.settings.get("min_shard_tokens", LLMC.min_tokens)))  # type: ignore[call-overload]
    check_least(packing.source.shards[split][0].file, rows * packing.size + 1, least)
    least_rows = -(-(least - 1) // packing.size)
    fewest = -(-rows // ((packing.shard_tokens - 1) // packing.size))
    counts = range(fewest, max(fewest, min(2 * fewest, rows // max(1, least_rows))) + 1)
    shards = min(counts, key=lambda count: (-rows % count, count))
    return shards, -(-rows // shards)


def _check(packing: Packing, split: str, documents: int, text_bytes: int) -> None:
    """Raises FormatError unless what was packed is what the manifest says: the data may be damaged."""
    expected = packing.source.split_documents(split), packing.source.text_bytes.get(split, 0)
    if (documents, text_bytes) != expected:
        raise FormatError(
            f"{packing.folder}: its {split} split has {documents} documents and {text_bytes} bytes of text, but the"
            f" manifest says {expected[0]} and {expected[1]}: write the data again"
        )


class _ShardWriter:
    """Writes rows into one shard after another. The end of the `with` block removes a shard that is not finished.

    Attributes:
        records: those of the finished shards.
    """

    def __init__(self, packing: Packing, split: str, folder: str, per_shard: int) -> None:
        self._packing, self._split, self._folder, self._per_shard = packing, split, folder, per_shard
        self._lengths = packing.text_lengths()
        self._name = packing.source.shards[split][0].file.rsplit(f"_{split}_", 1)[0]
        self._shard: _binding.ShardWriter | None = None
        self._rows = self._documents = self._text_bytes = 0
        self.records: list[ShardRecord] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._shard is not None:
            self._shard.discard()

    @property
    def _path(self) -> str:
        name = LLMC.file.format(name=self._name, split=self._split, index=len(self.records))
        return os.path.join(self._folder, name)

    def add(self, rows: Array, begins: Array) -> None:
        """Writes rows, in each of which so many documents begin."""
        while len(rows):
            part = self._per_shard - self._rows
            with file_errors(self._path, "cannot be written"):
                self._write(rows[:part])
                self._rows += len(rows[:part])
                self._documents += int(begins[:part].sum())
                if self._rows == self._per_shard:
                    self._finish()
            rows, begins = rows[part:], begins[part:]

    def _write(self, rows: Array) -> None:
        if self._shard is None:
            self._shard = _binding.ShardWriter(self._path, LLMC.name, id_bytes(self._packing.dtype))
        self._shard.write(rows.reshape(-1).astype(self._packing.dtype, copy=False))
        at_once = max(1, _BLOCK_TOKENS // self._packing.size)
        for at in range(0, len(rows), at_once):
            self._text_bytes += int(self._lengths[rows[at : at + at_once]].sum())

    def _finish(self) -> None:
        """Ends a shard with a mark, the target of its last token: it begins the row that comes next, whichever."""
        import numpy

        assert self._shard is not None
        self._shard.write(numpy.array([self._packing.mark], dtype=self._packing.dtype))
        self._shard.finish()
        record = record_shard(self._path, self._per_shard * self._packing.size + 1)
        self.records.append(replace(record, documents=self._documents, text_bytes=self._text_bytes))
        self._shard, self._rows, self._documents, self._text_bytes = None, 0, 0, 0
