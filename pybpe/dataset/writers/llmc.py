"""llm.c: a header of 256 int32 (magic, version, count), then the ids. See csrc/shard.c."""

from __future__ import annotations

import struct

from ... import _binding
from .base import Format, read_flat

MIN_TOKENS = 257  # B*T + 1 of llm.c's CPU trainer, whose B is 4 and T 64
_MAGIC_AND_VERSION = {"uint16": (20240520, 1), "uint32": (20240801, 7)}


def _header(tokens: int, dtype: str) -> bytes:
    return struct.pack("<3i", *_MAGIC_AND_VERSION[dtype], tokens).ljust(_binding.SHARD_HEADER_BYTES, b"\0")


FORMAT = Format(
    name="llmc",
    file="{name}_{split}_{index:06d}.bin",
    read=read_flat,
    eot="prepend",
    min_tokens=MIN_TOKENS,
    header_bytes=_binding.SHARD_HEADER_BYTES,
    header=_header,
    max_bytes=_binding.SHARD_MAX_BYTES,
    equal_shards=True,
)
