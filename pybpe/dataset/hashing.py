"""Computes the SHA-256 of files."""

from __future__ import annotations

import hashlib

from ..reading.streams import Limited, open_input
from ..support.parallel import end_if_unwanted

_BLOCK = 1 << 18  # fits in a CPU cache


def file_sha256(path: str, size: int | None = None) -> str:
    """Returns the SHA-256 of a file, or of its first `size` bytes, in hex."""
    digest = hashlib.sha256()
    block = memoryview(bytearray(_BLOCK))
    with open_input(path) as whole:
        stream = whole if size is None else Limited(whole, size)
        while got := stream.readinto(block):
            end_if_unwanted()
            digest.update(block[:got])
    return digest.hexdigest()
