"""Divides a text into one to train on and one that is held out, with nothing long in common.

Ends of documents (<|endoftext|>) become line ends. The text is cut at line ends into blocks of about 16 KiB, in random
order. The first blocks are held out. From the others, each line is removed of which 100 bytes in a row also occur in a
block that is held out.
"""

from __future__ import annotations

import random
from pathlib import Path

import numpy

_BLOCK = 1 << 14
EOT = "<|endoftext|>"
COMMON = 100  # bytes
_BASE = 0x9E3779B97F4A7C15  # odd, so it has an inverse modulo 2^64


def divide(path: str | Path, held_bytes: int, seed: int = 0) -> tuple[list[str], list[str], int]:
    """Returns the blocks to train on, the blocks that are held out (`held_bytes` or a little more), and the number of
    bytes in the lines that were removed."""
    blocks = _blocks(Path(path).read_text(encoding="utf-8").replace(EOT, "\n"))
    random.Random(seed).shuffle(blocks)
    held = []
    while sum(len(block.encode()) for block in held) < held_bytes:
        held.append(blocks.pop())
    known = numpy.unique(numpy.concatenate([_hashes(block.encode()) for block in held]))
    kept = [_without(block, known) for block in blocks]
    removed = sum(len(a.encode()) - len(b.encode()) for a, b in zip(blocks, kept))
    return [block for block in kept if block], held, removed


def _blocks(text: str) -> list[str]:
    blocks: list[list[str]] = [[]]
    size = 0
    for line in text.splitlines(keepends=True):
        blocks[-1].append(line)
        size += len(line.encode())
        if size >= _BLOCK:
            blocks.append([])
            size = 0
    return ["".join(lines) for lines in blocks if lines]


def _hashes(data: bytes) -> numpy.ndarray:
    """Returns a hash of the COMMON bytes at each offset: the sum of byte[i] * base^i / base^offset, modulo 2^64."""
    if len(data) < COMMON:
        return numpy.zeros(0, dtype=numpy.uint64)
    values = numpy.frombuffer(data, dtype=numpy.uint8).astype(numpy.uint64) + numpy.uint64(1)
    powers = _powers(_BASE, len(data))
    sums = numpy.concatenate([numpy.zeros(1, dtype=numpy.uint64), numpy.cumsum(values * powers, dtype=numpy.uint64)])
    inverse = _powers(pow(_BASE, -1, 1 << 64), len(data))
    return (sums[COMMON:] - sums[:-COMMON]) * inverse[: len(data) - COMMON + 1]


def _powers(base: int, count: int) -> numpy.ndarray:
    factors = numpy.full(count, base, dtype=numpy.uint64)
    factors[0] = 1
    return numpy.cumprod(factors, dtype=numpy.uint64)


def _without(block: str, known: numpy.ndarray) -> str:
    data = block.encode()
    hashes = _hashes(data)
    hits = known[numpy.minimum(numpy.searchsorted(known, hashes), len(known) - 1)] == hashes
    if not hits.any():
        return block
    covered = numpy.zeros(len(data) + 1, dtype=numpy.int64)
    covered[: len(hits)] += hits
    covered[COMMON : COMMON + len(hits)] -= hits[: len(covered) - COMMON]
    inside = numpy.concatenate([[0], numpy.cumsum(numpy.cumsum(covered) > 0)])
    kept, start = [], 0
    for line in data.splitlines(keepends=True):
        if inside[start + len(line)] == inside[start]:
            kept.append(line)
        start += len(line)
    return b"".join(kept).decode()
