"""numpy: arrays of one dimension, which numpy.load opens, memory-mapped with mmap_mode="r".

Source of the format: numpy.lib.format, version 1.0. The header is padded to 128 bytes, whatever the count, so
that it can be filled in at the end.
"""

from __future__ import annotations

from .base import Format, id_bytes, read_flat

HEADER_BYTES = 128


def header(tokens: int, dtype: str) -> bytes:
    """The header of an array of shape (tokens,)."""
    fields = f"{{'descr': '<u{id_bytes(dtype)}', 'fortran_order': False, 'shape': ({tokens},), }}"
    start = b"\x93NUMPY\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little")
    return start + fields.ljust(HEADER_BYTES - 11).encode() + b"\n"


FORMAT = Format(
    name="npy", file="{name}_{split}_{index:06d}.npy", read=read_flat, header_bytes=HEADER_BYTES, header=header
)
