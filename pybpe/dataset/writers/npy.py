"""numpy: one-dimensional arrays, which numpy.load opens, memory-mapped with mmap_mode="r"."""

from __future__ import annotations

from ...formats import npy
from .base import Format, id_bytes, read_flat

FORMAT = Format(
    name="npy",
    file="{name}_{split}_{index:06d}.npy",
    read=read_flat,
    header_bytes=npy.HEADER_BYTES,
    header=lambda tokens, dtype: npy.header(tokens, id_bytes(dtype)),
)
