"""Checkpoints of training runs. A run that was killed resumes from its checkpoint, with an identical result.

A checkpoint is a .counts file (pybpe/formats/counts_file.py) whose header also holds the settings of the run and the
names, sizes and times of its inputs. It is written when all words are counted; saved_counting.py saves the counts until
then. Blocks of merges follow, one every few seconds:

    4              n, the number of merges in the block; plus 2^31 if they are the last of a stage
    8 * n          (left, right) numbers: 0-255 for bytes, then tokens as made
    4              CRC-32 of the block up to here

pybpe removes a block that was incomplete when the process died. To resume, it extends a tokenizer that has these
merges, using these counts: it first applies the merges to the words in order. The result is the state at which the run
stopped, as long as each merge made a new token. A merge whose result is a token of the base, as (bb, b) if the base has
(b, bb), may put that token where an earlier merge would apply again. So from such a merge on, the run repeats
everything. A stage that has ended is saved with all its merges, because the next stage first applies them in order.
"""

from __future__ import annotations

import os
import struct
import time
import zlib
from array import array
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, BinaryIO

from .. import _binding
from .._version import __version__
from ..errors import ArgumentError, FormatError, file_errors
from ..formats import counts_file
from ..support.locking import only_holder
from ..support.output_files import remove_file
from .saved_counting import SavedCounting, remove_saved

SECONDS = 2.0  # between blocks
_KEY = "training"
_STAGE_ENDS = 1 << 31


def only_trainer(path: _binding.PathLike) -> AbstractContextManager[None]:
    """Holds the lock of a checkpoint, a hidden file next to it. Raises FileError if another run is writing to it."""
    name = _binding.path_text(path)
    return only_holder(os.path.join(os.path.dirname(name), f".{os.path.basename(name)}.lock"), name)


class Checkpoint:
    """One checkpoint file.

    Args:
        path: the path of the file, which need not exist yet.
        settings: everything that the result depends on, in types that JSON can hold.

    Attributes:
        words: the counts, if the file exists.
        ended: the number of stages that have ended.
        earlier: the merges of these stages.
        merges: the merges of the next stage.

    Raises:
        ArgumentError: the file belongs to a run with other settings.
        FormatError: the file is damaged, or not a checkpoint.
    """

    def __init__(self, path: _binding.PathLike, settings: Mapping[str, Any]) -> None:
        self._path = _binding.path_text(path)
        self._settings = dict(settings)
        self._stream: BinaryIO | None = None
        self._saved = time.monotonic()
        self.words: _binding.Words | None = None
        self.ended = 0
        self.earlier: list[tuple[int, int]] = []
        self.merges: list[tuple[int, int]] = []
        if os.path.exists(self._path):
            self._load()

    def _load(self) -> None:
        with counts_file.Reader(self._path) as reader:
            self._check(reader.header.get(_KEY))
            self.words = _binding.Words.from_blocks(reader.blocks())
            end = reader.stream.tell()
            while (block := _read_merges(reader.stream)) is not None:
                merges, stage_ends = block
                self.merges += merges
                if stage_ends:
                    self._next_stage()
                end = reader.stream.tell()
        with file_errors(self._path, "cannot be written"):
            os.truncate(self._path, end)

    def _check(self, found: object) -> None:
        if not isinstance(found, dict):
            raise FormatError(f"{self._path}: this is a counts file, not a checkpoint", 16)
        names = sorted(self._settings.keys() | found.keys())
        for name in names:
            if found.get(name) != self._settings.get(name):
                raise ArgumentError(
                    f"{self._path}: this checkpoint belongs to another training run: its {name} differs. Delete the"
                    " file to start over"
                )

    def counting(self) -> SavedCounting:
        """Returns what this run has saved while it counted."""
        return SavedCounting(self._path, self._settings | {"version": __version__})  # it decides the tasks of a corpus

    def start(self, words: _binding.Words) -> None:
        """Saves the counts, unless the file already has them."""
        if self.words is None:
            counts_file.write(self._path, {_KEY: self._settings}, counts_file.sorted_blocks(words))
            self.words = words
        remove_saved(self._path)
        with file_errors(self._path, "cannot be written"):
            self._stream = open(self._path, "ab", buffering=0)  # noqa: SIM115

    def update(self, trainer: _binding.Trainer, skip: int) -> None:
        """Saves the merges so far, except the first `skip`, if the last save is at least SECONDS ago."""
        if time.monotonic() - self._saved < SECONDS:
            return
        pairs = _resumable(trainer.merges(), skip)
        self._append(pairs[len(self.merges) :])
        self.merges = pairs
        self._saved = time.monotonic()

    def end_stage(self, trainer: _binding.Trainer, skip: int) -> None:
        """Saves all merges of a stage that has ended, except the first `skip`."""
        pairs = [(left, right) for left, right, _ in trainer.merges()[skip:]]
        self._append(pairs[len(self.merges) :], _STAGE_ENDS)
        self.merges = pairs
        self._next_stage()

    def _next_stage(self) -> None:
        self.earlier += self.merges
        self.merges = []
        self.ended += 1

    def _append(self, pairs: Sequence[tuple[int, int]], flag: int = 0) -> None:
        assert self._stream is not None
        block = struct.pack("<I", len(pairs) | flag) + struct.pack(
            f"<{2 * len(pairs)}I", *(i for pair in pairs for i in pair)
        )
        rest = memoryview(block + struct.pack("<I", zlib.crc32(block)))
        with file_errors(self._path, "cannot be written"):
            while rest:
                rest = rest[self._stream.write(rest) :]
            os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Closes the file and keeps it for the next run."""
        if self._stream is not None:
            with file_errors(self._path, "cannot be written"):
                self._stream.close()

    def remove(self) -> None:
        """Removes the file, when training is done."""
        self.close()
        remove_file(self._path)


def _resumable(merges: Sequence[tuple[int, int, int]], skip: int) -> list[tuple[int, int]]:
    """Returns the merges after the first `skip`, up to the first merge that does not make a new token."""
    made = {merged for _, _, merged in merges[:skip]}
    pairs = []
    for left, right, merged in merges[skip:]:
        if merged in made:
            break
        made.add(merged)
        pairs.append((left, right))
    return pairs


def _read_merges(stream: BinaryIO) -> tuple[list[tuple[int, int]], bool] | None:
    """Returns the next block and whether it ends a stage, or None if no complete block is left."""
    start = stream.read(4)
    if len(start) < 4:
        return None
    count = struct.unpack("<I", start)[0]
    size = 8 * (count & ~_STAGE_ENDS)
    if size > os.fstat(stream.fileno()).st_size:
        return None
    data, checksum = stream.read(size), stream.read(4)
    if len(data) < size or checksum != struct.pack("<I", zlib.crc32(start + data)):
        return None
    numbers = array("I", struct.unpack(f"<{size // 4}I", data))
    return list(zip(numbers[0::2], numbers[1::2])), count >= _STAGE_ENDS
