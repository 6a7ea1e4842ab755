"""Writes numpy files of one-dimensional arrays without numpy, which takes a tenth of a second to import.

Source of the format: numpy.lib.format, version 1.0. The header is padded to 128 bytes, whatever the count, so
that it can be filled in at the end.
"""

from __future__ import annotations

MAGIC = b"\x93NUMPY"
HEADER_BYTES = 128


def header(tokens: int, id_bytes: int, byteorder: str = "little") -> bytes:
    """Returns the header of an array of shape (tokens,) of unsigned integers of `id_bytes`."""
    order = "<" if byteorder == "little" else ">"
    fields = f"{{'descr': '{order}u{id_bytes}', 'fortran_order': False, 'shape': ({tokens},), }}"
    start = MAGIC + b"\x01\x00" + (HEADER_BYTES - 10).to_bytes(2, "little")
    return start + fields.ljust(HEADER_BYTES - 11).encode() + b"\n"
