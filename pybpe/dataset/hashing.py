"""Computes the SHA-256 of files."""

from __future__ import annotations

import hashlib

from ..reading.streams import open_input

_BLOCK = 1 << 18  # fits in a CPU cache


def file_sha256(path: str) -> str:
    """Returns the SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    block = memoryview(bytearray(_BLOCK))
    with open_input(path) as stream:
        while got := stream.readinto(block):
            digest.update(block[:got])
    return digest.hexdigest()
