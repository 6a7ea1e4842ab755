"""Writes the tokens of a split as llm.c shards in one pass, which cannot resume. For corpora, see run.py."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

from .._numpy import numpy
from ..errors import file_errors
from ..support.output_files import give_name
from .assembly import cut_shards
from .equal_shards import checked_sizes
from .formats.flat import llmc_header
from .manifest import ShardRecord
from .options import OutputOptions


class OnePassWriter:
    """Writes the tokens of one split as llm.c's shards of equal size.

    All tokens go into the first shard, from which the others are cut at the end.

    Args:
        path: the shards' path, with a placeholder for the number, such as "out/talks_train_{:06d}.bin".
        folder: where the shards are until the caller gives them these names.
        output: the options of the shards, for the tokenizer.
    """

    def __init__(self, path: str, folder: str, output: OutputOptions) -> None:
        self._path, self._folder, self._output = path, folder, output
        self._tokens = 0
        with self._errors():
            self._stream = open(self._unnamed_path(0), "wb")
            self._stream.write(self._header(0))
        self.records: list[ShardRecord] = []

    def write(self, ids: numpy.ndarray[Any, Any]) -> None:
        """Appends tokens, shape (n,), of the writer's dtype."""
        with self._errors():
            self._stream.write(ids.astype(f"<u{self._output.id_bytes}", copy=False).data)
        self._tokens += len(ids)

    def finish(self) -> None:
        """Writes the shards.

        Raises:
            ShardTooSmallError: the split has fewer than min_shard_tokens tokens. LimitError: a shard would be too big.
        """
        sizes = checked_sizes(self._shard_path(0), self._tokens, self._output)
        with self._errors():
            self._stream.close()
        digests = cut_shards(self._unnamed_path, self._header, self._output.id_bytes, sizes)
        for index, (size, digest) in enumerate(zip(sizes, digests)):
            path = self._temporary_path(index)
            give_name(self._unnamed_path(index), path)
            self.records.append(ShardRecord(os.path.basename(path), size, os.path.getsize(path), digest))

    def discard(self) -> None:
        """Closes the file. The caller removes the folder."""
        with suppress(OSError):
            self._stream.close()

    def _header(self, tokens: int) -> bytes:
        return llmc_header(tokens, self._output.dtype)

    def _errors(self) -> Any:
        return file_errors(self._temporary_path(0), "cannot be written")

    def _shard_path(self, index: int) -> str:
        return self._path.format(index)

    def _unnamed_path(self, index: int) -> str:
        return self._temporary_path(index) + ".tmp"

    def _temporary_path(self, index: int) -> str:
        return os.path.join(self._folder, os.path.basename(self._shard_path(index)))
