"""Files of ids: the header of a numpy file, and files of ids alone, as nanoGPT has them."""

from __future__ import annotations

from ..reading.file_types import is_binary, no_text

LOOK_BYTES = 1 << 12
_LEAST_LOOK = 1 << 7  # files that are shorter do not show what they are
_LARGEST_HIGH = 15  # of ids below 2^20
_BIG_ENDIAN_SHARDS = tuple(magic.to_bytes(4, "big") for magic in (20240520, 20240801))


def problem_of_ids(head: bytes) -> str | None:
    """Why a file does not look as if it held uint16 ids alone, by its first LOOK_BYTES; None if it does. Any file could
    be read so.

    >>> problem_of_ids(b"It was a dark and stormy night; " * 4)
    'seems to be text, not ids'
    >>> problem_of_ids(bytes([101, 0, 0, 0] * 32))
    'its ids seem to be uint32'
    """
    import numpy

    if head[:4] in _BIG_ENDIAN_SHARDS:
        return "is a big-endian shard, and llm.c's shards are little-endian"
    kind = no_text(head, "")
    if kind is not None:
        return f"is {kind.what}, not ids"
    if len(head) < _LEAST_LOOK:
        return None
    ids = numpy.frombuffer(head[: len(head) // 4 * 4], "<u2")
    if ids[1::2].max() <= _LARGEST_HIGH < ids[0::2].max():  # of ids as uint32 every second half is nearly 0
        return "its ids seem to be uint32"
    return None if is_binary(head) else "seems to be text, not ids"


NPY_MAGIC = b"\x93NUMPY"
NPY_HEADER_BYTES = 128


def npy_header(tokens: int, id_bytes: int, byteorder: str = "little") -> bytes:
    """Returns the header of an array of shape (tokens,) of unsigned integers of `id_bytes`."""
    order = "<" if byteorder == "little" else ">"
    fields = f"{{'descr': '{order}u{id_bytes}', 'fortran_order': False, 'shape': ({tokens},), }}"
    start = NPY_MAGIC + b"\x01\x00" + (NPY_HEADER_BYTES - 10).to_bytes(2, "little")
    return start + fields.ljust(NPY_HEADER_BYTES - 11).encode() + b"\n"
