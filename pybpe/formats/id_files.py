"""Files of ids: the header of a numpy file, and files that contain only ids, as nanoGPT writes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import prod
from typing import Any, BinaryIO, NamedTuple

from .. import _binding
from .._lazy import numpy
from ..errors import FormatError
from ..reading.file_types import is_binary, no_text
from ..reading.streams import read_items

LOOK_BYTES = 1 << 12
_LEAST_LOOK = 1 << 7  # bytes. A shorter file does not show its contents
_LARGEST_HIGH = 15  # the greatest high half of an id below 2^20


def problem_of_ids(head: bytes) -> str | None:
    """Returns why a file does not seem to contain only uint16 ids, judging by its first LOOK_BYTES bytes, or None if it
    does. (The bytes of any file could be read as ids.)

    >>> problem_of_ids(b"It was a dark and stormy night; " * 4)
    'seems to be text, not ids'
    >>> problem_of_ids(bytes([101, 0, 0, 0] * 32))
    'its ids seem to be uint32'
    """
    if int.from_bytes(head[:4], "big") in _binding.SHARD_MAGICS.values():
        return "is a big-endian shard, and llm.c's shards are little-endian"
    kind = no_text(head, "")
    if kind is not None:
        return f"is {kind.what}, not ids"
    if len(head) < _LEAST_LOOK:
        return None
    ids = numpy.frombuffer(head[: len(head) // 4 * 4], "<u2")
    if ids[1::2].max() <= _LARGEST_HIGH < ids[0::2].max():  # in uint32 ids, every second 16-bit half is nearly 0
        return "its ids seem to be uint32"
    return None if is_binary(head) else "seems to be text, not ids"


NPY_MAGIC = b"\x93NUMPY"
_NPY_START = 12  # bytes of magic, version and length of the header: numpy.lib.format
NPY_HEADER_BYTES = 128


def npy_header(tokens: int, id_bytes: int) -> bytes:
    """Returns the header of an array of shape (tokens,) of little-endian unsigned integers of `id_bytes`."""
    fields = f"{{'descr': '<u{id_bytes}', 'fortran_order': False, 'shape': ({tokens},), }}"
    start = NPY_MAGIC + b"\x01\x00" + (NPY_HEADER_BYTES - 10).to_bytes(2, "little")
    return start + fields.ljust(NPY_HEADER_BYTES - 11).encode() + b"\n"


class NpyHeader(NamedTuple):
    """The header of a .npy file."""

    dtype: numpy.dtype[Any]  # of its items
    shape: tuple[int, ...]  # of the array
    by_columns: bool  # whether the items are in Fortran order
    offset: int  # the byte where they begin


def read_npy_header(stream: BinaryIO, path: str) -> NpyHeader:
    """Reads the header at the start of a .npy file, and leaves the stream after it. Raises FormatError if the file is
    damaged, shorter than its header says, or holds Python objects."""
    from numpy.lib import format as npy

    stream.seek(0)
    size = os.fstat(stream.fileno()).st_size
    _check_start(stream.read(_NPY_START), size, path)
    stream.seek(0)
    try:
        read = npy.read_array_header_1_0 if npy.read_magic(stream) == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, dtype = read(stream)
    except OSError as error:
        if error.errno is not None:
            raise
        raise _not_numbers(path, error) from None
    except Exception as error:  # numpy's parsers raise any of a dozen types on a damaged header
        raise _not_numbers(path, error) from None
    header = NpyHeader(dtype, shape, by_columns and len(shape) > 1, stream.tell())
    if dtype.hasobject:
        raise _not_numbers(path, ValueError("it holds Python objects"))
    if min(shape, default=0) < 0 or header.offset + prod(shape) * dtype.itemsize > size:
        raise _not_numbers(path, ValueError(f"its header promises the shape {shape}, but it has {size} bytes"))
    return header


def npy_blocks(stream: BinaryIO, header: NpyHeader, path: str, most: int) -> Iterator[numpy.ndarray[Any, Any]]:
    """Yields the items of an array after its header, row by row, in blocks of at most `most`. An array that is
    stored by columns is one block. Raises FormatError if the file was truncated."""
    count = prod(header.shape)
    for at in range(0, count, count if header.by_columns else most):
        wanted = count if header.by_columns else min(most, count - at)
        items = read_items(stream, header.dtype, wanted)
        if len(items) < wanted:
            raise FormatError(f"{path}: was truncated while it was read", header.offset + at * header.dtype.itemsize)
        yield items.reshape(header.shape, order="F").ravel() if header.by_columns else items


def _not_numbers(path: str, problem: Exception) -> FormatError:
    what = str(problem).splitlines()[0] if str(problem) else type(problem).__name__
    return FormatError(f"{path}: damaged, or not an array of numbers: {what}", len(NPY_MAGIC))


def _check_start(start: bytes, size: int, path: str) -> None:
    """Checks the magic and the header's length. numpy would allocate memory for a header longer than the file."""
    if not start.startswith(NPY_MAGIC):
        raise FormatError(f"{path}: begins with {start[:6]!r}, expected {NPY_MAGIC!r}: not a .npy file", 0)
    length_bytes = 2 if start[6:7] == b"\x01" else 4
    length = int.from_bytes(start[8 : 8 + length_bytes], "little")
    if len(start) < 8 + length_bytes or 8 + length_bytes + length > size:
        raise FormatError(f"{path}: damaged: its header would be {length} bytes long, the file has {size}", 8)
