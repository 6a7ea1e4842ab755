"""Files of ids alone, as nanoGPT has them: nothing in such a file says so, so its beginning is looked at."""

from __future__ import annotations

from ..file_types import is_binary, no_text

LOOK_BYTES = 1 << 12
_LEAST_LOOK = 1 << 7  # files that are shorter do not show what they are
_LARGEST_HIGH = 15  # of ids below 2^20
_BIG_ENDIAN_SHARDS = tuple(magic.to_bytes(4, "big") for magic in (20240520, 20240801))


def problem(head: bytes) -> str | None:
    """Why a file does not look as if it held uint16 ids alone, by its first LOOK_BYTES; None if it does. Any file could
    be read so.

    >>> problem(b"It was a dark and stormy night; " * 4)
    'seems to be text, not ids'
    >>> problem(bytes([101, 0, 0, 0] * 32))
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
