"""Tokens that come once and in memory as a row of shards. For corpora, which need more, see split_writer.py."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from .. import _binding
from ..errors import ShardTooSmallError
from .manifest import ShardRecord, record_shard

if TYPE_CHECKING:
    import numpy


class SplitWriter:
    """Writes the tokens of one split as llm.c's shards.

    A shard is closed at `shard_tokens` only when `min_tokens` more have come, so the last one is never too
    small: it is up to min_tokens longer instead.

    Args:
        path: the shards' path with a place for the number, such as "out/talks_train_{:06d}.bin".
        folder: where they are until the caller gives them these names.
        id_bytes: 2 or 4.
        shard_tokens: the size of a shard.
        min_tokens: the least size of a shard.
    """

    def __init__(self, path: str, folder: str, id_bytes: int, shard_tokens: int, min_tokens: int) -> None:
        self._path = path
        self._folder = folder
        self._id_bytes = id_bytes
        self._shard_tokens = shard_tokens
        self._min_tokens = min_tokens
        self._writer: _binding.ShardWriter | None = None
        self._written = 0  # in the open shard
        self._held: list[numpy.ndarray[Any, Any]] = []  # beyond the open shard's size, not yet min_tokens
        self._held_tokens = 0
        self.records: list[ShardRecord] = []

    def write(self, ids: numpy.ndarray[Any, Any]) -> None:
        """Appends tokens, shape (n,), uint16 or uint32."""
        while len(ids):
            room = self._shard_tokens - self._written
            if room:
                self._append(ids[:room])
                ids = ids[room:]
                continue
            self._held.append(ids.copy())
            self._held_tokens += len(ids)
            if self._held_tokens >= self._min_tokens:
                self._close()
                ids = self._take_held()
            else:
                return

    def finish(self) -> None:
        """Closes the last shard.

        Raises:
            ShardTooSmallError: the split has fewer than min_tokens tokens.
        """
        held = self._take_held()
        if len(held):
            self._append(held)
        if self._written < self._min_tokens:
            raise ShardTooSmallError(
                f"{self._shard_path()}: would have {self._written} tokens, and llm.c needs at least"
                f" {self._min_tokens} in every shard; give more text or another split, or allow it with"
                " min_shard_tokens=0",
                self._shard_path(),
                self._written,
            )
        if self._written or not self.records:
            self._close()

    def discard(self) -> None:
        """Drops the open shard; finished ones stay."""
        if self._writer is not None:
            self._writer.discard()

    def _shard_path(self) -> str:
        return self._path.format(len(self.records))

    def _temporary_path(self) -> str:
        return os.path.join(self._folder, os.path.basename(self._shard_path()))

    def _open(self) -> _binding.ShardWriter:
        """The writer of the current shard, opened if it is not."""
        if self._writer is None:
            self._writer = _binding.ShardWriter(self._temporary_path(), "llmc", self._id_bytes)
        return self._writer

    def _append(self, ids: numpy.ndarray[Any, Any]) -> None:
        self._open().write(ids)
        self._written += len(ids)

    def _take_held(self) -> numpy.ndarray[Any, Any]:
        import numpy

        held = numpy.concatenate(self._held) if self._held else numpy.empty(0, dtype=numpy.uint16)
        self._held, self._held_tokens = [], 0
        return held

    def _close(self) -> None:
        writer, self._writer = self._open(), None
        path = self._temporary_path()
        writer.finish()
        self.records.append(record_shard(path, self._written))
        self._written = 0
