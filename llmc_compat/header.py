"""The header of llm.c's files: 256 int32, little-endian. The first two are a magic and a version."""

from __future__ import annotations

import struct

from pybpe.errors import FormatError

HEADER_BYTES = 1024


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
