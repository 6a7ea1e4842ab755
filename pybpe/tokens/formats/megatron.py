"""Megatron-LM: NAME.bin holds the ids, NAME.idx where each document is in it.

The index, little-endian, as megatron/core/datasets/indexed_dataset.py reads it: "MMIDIDX\\0\\0"; u64 version 1;
u8 type of the ids (8: uint16, 4: int32); u64 sequences; u64 documents + 1; then int32 lengths, int64 byte
offsets of the sequences, int64 document borders, which are sequence numbers from 0. Each document is one
sequence here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ..._binding import Output
from ..._numpy import Array, numpy
from ...errors import LimitError
from ...support.output_files import give_name
from ..spool import id_bytes
from .base import Finished, Format, read_flat

MAGIC = b"MMIDIDX\0\0"
LARGEST_UINT16_VOCABULARY = 65499  # Megatron itself uses uint16 below 65500
_TYPES = {"uint16": 8, "uint32": 4}
_BLOCK = 1 << 16  # documents processed at once


def index_name(path: str) -> str:
    """Writes the index of a .bin file."""
    return path.removesuffix(".bin") + ".idx"


def _write_index(finished: Finished, path: str) -> None:
    count = finished.facts.documents
    unfinished = finished.files.base + ".idx"
    with Output(unfinished) as output:
        output.write(MAGIC + struct.pack("<QBQQ", 1, _TYPES[finished.dtype], count, count + 1))
        for starts in _starts(finished):
            lengths = numpy.diff(starts)
            if len(lengths) and int(lengths.max()) > 2**31 - 1:
                raise LimitError(f"{path}: a document has {lengths.max()} tokens, but Megatron's index allows 2^31 - 1")
            output.write(lengths.astype("<i4"))
        for starts in _starts(finished):
            output.write((starts[:-1] * id_bytes(finished.dtype)).astype("<i8"))
        for at in range(0, count + 1, _BLOCK):
            output.write(numpy.arange(at, min(at + _BLOCK, count + 1), dtype="<i8"))
    give_name(unfinished, index_name(path))


def _starts(finished: Finished) -> Iterator[Array]:
    """Yields where documents begin, in blocks, each with the end of its last document."""
    for first in range(0, finished.facts.documents, _BLOCK):
        last = min(first + _BLOCK, finished.facts.documents)
        starts = numpy.array(
            finished.files.read_starts(first, min(last + 1, finished.facts.documents)), dtype=numpy.int64
        )
        yield starts if last < finished.facts.documents else numpy.append(starts, finished.facts.tokens)


FORMAT = Format(
    name="megatron",
    file="{name}_{split}.bin",
    read=read_flat,
    header=lambda tokens, dtype: b"",
    companion=_write_index,
    companion_name=index_name,
    largest_uint16_vocabulary=LARGEST_UINT16_VOCABULARY,
)
