"""Writes the rows of each split into shards; those of llm.c have equal size.

The pieces of a split are placed first, which gives the number of rows and so the size of its shards, and then
written. So no token is written twice, and memory is that of one group of documents.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from ... import _binding
from ..._numpy import Array
from ...errors import ArgumentError, FormatError, file_errors
from ...support.output_files import make_folder
from ...support.progress import Progress
from ...tokenizer import Tokenizer
from ..encoding import token_lengths
from ..equal_shards import check_least
from ..formats import FORMATS as TOKEN_FORMATS
from ..formats.flat import LLMC
from ..manifest import FileRecord, Manifest, ShardRecord, record_file, record_shard, split_paths
from ..token_files import TokenStream
from .columns import Columns, columns_of, spare_rows
from .layout import Placed, chunks, place, shuffled
from .pieces import Group, groups
from .placements import Placements
from .row_files import ROW_FORMATS, NewShard, RowFile

_PLACEMENTS = "placements"  # a file in the unfinished folder


@dataclass(frozen=True)
class Packing:
    """What to pack, and how.

    Attributes:
        tok: the tokenizer that made the data.
        folder, source: the data, and their manifest.
        identity: what the manifest says about the packing: see `pack`.
        format: the name of one of ROW_FORMATS.
        shard_tokens: the most tokens per shard.
        call: the hash of the call: see finished.py.
    """

    tok: Tokenizer
    folder: str
    source: Manifest
    identity: Mapping[str, Any]
    format: str
    shard_tokens: int
    call: str

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
    writers: dict[str, _SplitWriter] = {}
    counts: dict[str, dict[str, int]] = {}
    for split in packing.source.shards:
        writers[split] = _SplitWriter(packing, split, folder)
        has_tokens = packing.source.split_tokens(split) > 0  # otherwise, the split has no rows, and no file
        counts[split] = _write_split(packing, writers[split], bar) if has_tokens else {}
    described = {**settings, "packing": {**packing.identity, "splits": counts}}
    shards = {split: writer.records for split, writer in writers.items()}
    files = [record for writer in writers.values() for record in writer.others]
    source = packing.source
    manifest = Manifest(
        described, source.tokenizer, source.text_bytes, shards, files, call=packing.call, inputs=source.inputs
    )
    name = TOKEN_FORMATS[packing.format].manifest
    _binding.write_file(os.path.join(folder, name), manifest.to_json())


def _write_split(packing: Packing, writer: _SplitWriter, bar: Progress) -> dict[str, int]:
    """Writes one split. Returns the numbers of rows, padding tokens, and cuts in documents."""
    split, size = writer.split, packing.size
    stream = TokenStream(split_paths(packing.folder, packing.source, split))
    path = os.path.join(writer.folder, _PLACEMENTS)
    pieces = documents = used = 0
    with file_errors(path, "cannot be written"), open(path, "w+b") as file, writer:
        placements = Placements(stream, file)
        placements.write(_placed(packing, stream, bar))
        shards, per_shard = _divide(packing, split, placements.rows)
        rows = shards * per_shard if packing.format == LLMC.name else placements.rows
        writer.begin(rows, per_shard)
        for ids, placed in placements.read():
            for part in chunks(placed, size):
                columns = columns_of(ids, part, size, packing.mark, packing.pad)
                writer.add(columns)
                pieces, documents = pieces + len(part.rows), documents + int(columns.begins.sum())
                used += int(part.pieces.texts.sum()) + len(part.rows)
            bar.add(int(placed.pieces.texts.sum()) + int(placed.pieces.begins.sum()))
        spare = rows - placements.rows
        writer.add(spare_rows(spare, size, packing.mark, packing.pad, str(stream.dtype)))
    os.unlink(path)
    _check(packing, split, documents, sum(record.text_bytes for record in writer.records))
    return {"rows": rows, "padding": rows * size - used, "cuts": pieces - documents}


def _placed(packing: Packing, stream: TokenStream, bar: Progress) -> Iterator[tuple[Group, Placed]]:
    """Yields each group, and the rows of its pieces, shuffled.

    Raises:
        ArgumentError: the documents contain the padding token.
    """
    for group in groups(stream, packing.mark, packing.size):
        if packing.pad != packing.mark and (group.ids == packing.pad).any():
            raise ArgumentError(
                f"{packing.folder}: the documents contain the padding token, id {packing.pad}: pass another one as pad"
            )
        placed = place(group.documents, packing.size, str(packing.identity["method"]))
        yield group, shuffled(placed, int(packing.identity["seed"]), group.number)
        bar.add(int(group.documents.texts.sum()) + len(group.documents.texts))


def _divide(packing: Packing, split: str, rows: int) -> tuple[int, int]:
    """Returns the number of shards of a split, and of rows in each; the last may have fewer.

    Those of llm.c are equal. Of up to twice as many shards as necessary, the fewest that need the fewest rows of
    padding to be equal.

    Raises:
        ShardTooSmallError: the split is too small for one shard.
    """
    if packing.format != "llmc":
        each = max(1, packing.shard_tokens // packing.size)
        return -(-rows // each), each
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


class _SplitWriter:
    """Writes the rows of a split into one shard after another.

    Attributes:
        records: those of the finished shards.
        others: those of other files.
    """

    def __init__(self, packing: Packing, split: str, folder: str) -> None:
        self.split, self.folder = split, folder
        self._packing = packing
        self._lengths = packing.text_lengths()
        self._file: RowFile | None = None
        self._left = self._per_shard = 0  # rows to come, and of a shard
        self._in_shard = self._room = self._documents = self._text_bytes = 0
        self.records: list[ShardRecord] = []
        self.others: list[FileRecord] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            with suppress(OSError):  # closing a file on a full disk fails again
                self._file.discard()

    def begin(self, rows: int, per_shard: int) -> None:
        """Sets the number of rows of the split, and of a shard."""
        self._left, self._per_shard = rows, per_shard

    def add(self, columns: Columns) -> None:
        """Writes rows."""
        while len(columns.begins):
            file = self._file or self._new()
            part = columns.part(slice(self._room))
            with file_errors(file.path, "cannot be written"):
                file.write(part)
                self._room -= len(part.begins)
                self._documents += int(part.begins.sum())
                self._text_bytes += int(self._lengths[part.input_ids].sum())
                if not self._room:
                    self._finish(file)
            columns = columns.part(slice(len(part.begins), None))

    def _new(self) -> RowFile:
        packing = self._packing
        name = packing.source.shards[self.split][0].file.rsplit(f"_{self.split}_", 1)[0]
        base = os.path.join(self.folder, f"{name}_{self.split}_{len(self.records):06d}")
        self._in_shard = self._room = min(self._per_shard, self._left)
        self._left -= self._room
        shard = NewShard(base, packing.dtype, self._room, packing.size, packing.mark)
        with file_errors(base, "cannot be written"):
            self._file = ROW_FORMATS[packing.format].new(shard)
        return self._file

    def _finish(self, file: RowFile) -> None:
        file.finish()
        self._file = None
        record = record_shard(file.path, self._in_shard * self._packing.size + ROW_FORMATS[self._packing.format].more)
        self.records.append(replace(record, documents=self._documents, text_bytes=self._text_bytes))
        self.others += [record_file(path) for path in file.others]
        self._documents = self._text_bytes = 0
