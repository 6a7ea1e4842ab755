"""llm.c's token shards and its DataLoader, in Python, and the batch that must fit in every shard. At the end, a reader
of JSON lines, from which evals.py and chat.py make files.

A shard is a header of 256 int32 (magic 20240520, version 1, token count) and the tokens as uint16, with nothing after
them. Llama 3's has magic 20240801, version 7 and uint32. Source: llm.c, llmc/dataloader.h and dev/data/data_common.py.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, BinaryIO, NamedTuple

from pybpe import _binding
from pybpe._lazy import numpy
from pybpe.arguments import together, whole_number
from pybpe.errors import ArgumentError, FormatError, LimitError
from pybpe.reading.cuts import line_cut, stream_pieces
from pybpe.reading.files import open_text
from pybpe.reading.records import json_problem

_MOST = (1 << 31) - 1  # llm.c counts in int
_VERSIONS = {2: 1, 4: 7}  # by bytes per id
HEADER_BYTES = 1024  # of all files of llm.c: 256 int32, little-endian. The first two are a magic and a version


def header(*numbers: int) -> bytes:
    """Returns a header that begins with these numbers."""
    return struct.pack(f"<{len(numbers)}i", *numbers).ljust(HEADER_BYTES, b"\0")


def header_numbers(raw: bytes, name: str, what: str) -> tuple[int, ...]:
    """Returns the 256 numbers at the beginning of a file. Raises FormatError if it is shorter."""
    if len(raw) < HEADER_BYTES:
        raise FormatError(
            f"{name}: too short for {what}: {len(raw)} bytes, but the header alone has {HEADER_BYTES}", len(raw)
        )
    return struct.unpack_from("<256i", raw)


def read_shard(path: _binding.PathLike) -> numpy.ndarray[Any, Any]:
    """Reads all tokens of a shard: shape (tokens,), uint16 or uint32 as in the file.

    Raises:
        FileError, FormatError: the error gives the offset, and the effect of such a file on llm.c.
    """
    shard = _binding.Shard(path)
    return shard.read(0, len(shard)).astype(numpy.uint16 if shard.id_bytes == 2 else numpy.uint32)


def write_shard(path: _binding.PathLike, ids: numpy.ndarray[Any, Any]) -> None:
    """Writes tokens, shape (tokens,), uint16 or uint32, as one shard, atomically.

    Raises:
        ArgumentError: the dtype or shape is wrong. LimitError: the file would be 2 GiB or more, too large for llm.c to
            seek in.
    """
    if ids.dtype not in (numpy.uint16, numpy.uint32) or ids.ndim != 1:
        raise ArgumentError(f"tokens must be one-dimensional uint16 or uint32, not {ids.dtype} of shape {ids.shape}")
    if HEADER_BYTES + ids.nbytes > _binding.SHARD_MAX_BYTES:
        raise LimitError(
            f"{os.fsdecode(path)}: {len(ids)} tokens would exceed 2 GiB, beyond which llm.c cannot seek: write more,"
            " smaller shards"
        )
    with _binding.Output(path) as output:
        output.write(header(_binding.SHARD_MAGICS[ids.itemsize], _VERSIONS[ids.itemsize], len(ids)))
        output.write(numpy.ascontiguousarray(ids, f"<u{ids.itemsize}"))


class DataLoader(_binding.Loader):
    """Returns the batches that llm.c's DataLoader returns for the same arguments, in the same order, forever.

    Args:
        filename_pattern: a glob pattern. Shards are read in its order.
        B, T: batch size and sequence length.
        process_rank, num_processes: the part of a global batch to read. Pass both, or neither for one process.
        should_shuffle: permute the shards and the samples in them, as llm.c does (mt19937, seed 42 + rank).

    Raises:
        FileError, FormatError, ArgumentError: there are no shards, or one is damaged. LimitError: a shard has
            fewer than num_processes * B * T + 1 tokens.
    """

    def __init__(
        self,
        filename_pattern: str | os.PathLike[str],
        B: int,
        T: int,
        process_rank: int | None = None,
        num_processes: int | None = None,
        should_shuffle: bool = False,
    ) -> None:
        B, T = whole_number("B", B, 1, _MOST), whole_number("T", T, 1, _MOST)
        together(process_rank=process_rank, num_processes=num_processes)
        rank = 0 if process_rank is None else whole_number("process_rank", process_rank, 0, _MOST)
        processes = 1 if num_processes is None else whole_number("num_processes", num_processes, 1, _MOST)
        super().__init__(filename_pattern, B, T, rank, processes, bool(should_shuffle))

    def seek(self, batches: int) -> None:
        """Moves to where a new loader is after `batches` batches, permutations included, to resume a run."""
        super().seek(whole_number("batches", batches, 0, (1 << 64) - 1))


@dataclass(frozen=True)
class Batch:
    """Batch size B and sequence length T per process. The defaults are compiled into llm.c's CPU trainer.

    Raises:
        ArgumentError: a value is below 1.
    """

    B: int = 4
    T: int = 64
    processes: int = 1

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            whole_number(name, value, 1)

    @property
    def min_tokens(self) -> int:
        """The fewest tokens a shard may hold: one batch, plus one token for the last target."""
        return self.processes * self.B * self.T + 1

    def needs(self) -> str:
        """`min_tokens` written as a formula."""
        return f"{self.processes} x B {self.B} x T {self.T} + 1 = {self.min_tokens}"

    def largest_fit(self, tokens: int) -> str:
        """Describes the largest B and T that a shard of `tokens` tokens allows with this many processes."""
        fit = (tokens - 1) // self.processes  # B * T may be at most this
        if fit < 1:
            return "no B and T fit: add more text" + (" or use fewer processes" if self.processes > 1 else "")
        B, T = (fit // self.T, self.T) if fit >= self.T else (1, fit)
        return f"the largest batch that fits is B {B} x T {T}"


CPU_BATCH = Batch()


# ----------------------------------------------------------------------------------------------------
# JSON lines with their positions, so that an error about a record can name its line


class Record(NamedTuple):
    """One line: its bytes, its JSON value, and its position."""

    line: bytes
    value: Any
    file: str
    number: int
    offset: int

    def error(self, problem: str) -> FormatError:
        """Returns an error that names this line."""
        return FormatError(f"{self.file}: line {self.number}: {problem}", self.offset)


def read_records(source: _binding.PathLike | BinaryIO) -> Iterator[Record]:
    """Yields the records of JSON lines in a file (*.gz and *.zst are decompressed) or an open stream. Blank lines are
    skipped. Line numbers start at 1.

    Raises:
        FileError. FormatError: a line is not JSON. The error names the line.
    """
    opened: AbstractContextManager[BinaryIO]
    if isinstance(source, (str, bytes, os.PathLike)):
        name = os.fsdecode(source)
        opened = open_text(name)
    else:
        name, opened = str(getattr(source, "name", "input")), nullcontext(source)
    number, offset = 0, 0
    with opened as stream:
        for piece in stream_pieces(stream, line_cut):
            lines = bytes(piece).split(b"\n")
            if not lines[-1]:  # nothing follows the last newline
                lines.pop()
            for line in lines:
                number += 1
                if line and not line.isspace():
                    record = Record(line, None, name, number, offset)
                    try:
                        record = record._replace(value=json.loads(line))
                    except (ValueError, RecursionError) as error:
                        raise record.error(f"not JSON ({json_problem(error)})") from None
                    yield record
                offset += len(line) + 1
