"""Reads and writes safetensors, Hugging Face's file format for weights.

A file is a little-endian u64 n, n bytes of JSON, and the data of all tensors, end to end:

    {"__metadata__": {...}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}

Source: github.com/huggingface/safetensors, README.md. The safetensors package is not used here (the tests compare with
it), because its numpy interface lacks bfloat16, holds the whole model in memory, and does not write atomically.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from math import prod
from typing import Any, BinaryIO, NamedTuple, TypeGuard

from pybpe import _binding
from pybpe._lazy import numpy
from pybpe.errors import FormatError
from pybpe.reading.streams import open_unchanged, read_items

from .checkpoint import from_bfloat16

_MAX_HEADER_BYTES = 100_000_000  # the format's own limit
_MAX_DIMENSIONS = 8
_METADATA = "__metadata__"

# Weight types -> the numpy dtypes that read them.
_NUMPY_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_ITEM_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2}


class Entry(NamedTuple):
    """A tensor's entry in the header: type, shape, and data offsets, counted from the end of the header."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def write_safetensors(
    path: _binding.PathLike,
    dtype: str,
    shapes: Mapping[str, tuple[int, ...]],
    blocks: Iterable[numpy.ndarray[Any, Any]],
) -> None:
    """Writes tensors of one type, "F32", or "BF16" with blocks of uint16, atomically, without holding more than one
    block. The blocks are contiguous, and together they are all tensors in the order of `shapes`."""
    header: dict[str, Any] = {_METADATA: {"format": "pt"}}  # transformers refuses a file without this
    end = 0
    for name, shape in shapes.items():
        start, end = end, end + prod(shape) * _ITEM_BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # so that the data is aligned
    with _binding.Output(path) as output:
        output.write(len(text).to_bytes(8, "little") + text)
        for block in blocks:
            output.write(block)


class SafetensorsFile:
    """An open file of weights: `entries` by name, and each tensor, read on demand. A context manager. FormatError says
    which tensor of the header is damaged, or does not match the file's size."""

    def __init__(self, path: _binding.PathLike) -> None:
        self.path = os.fsdecode(path)
        self._stream = open_unchanged(path)
        try:
            self._data, self.entries = _read_header(self._stream, self.path)
        except BaseException:
            self._stream.close()
            raise

    def __enter__(self) -> SafetensorsFile:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)

    def tensor(self, name: str, shape: tuple[int, ...]) -> numpy.ndarray[Any, Any]:
        """Returns a tensor as float32. Raises FormatError if there is no such tensor, it has a different shape, or its
        type is not a type of weights."""
        if name not in self.entries:
            raise FormatError(f"{self.path}: the tensor {name!r} is missing; a GPT-2 of this size has it")
        entry = self.entries[name]
        if entry.shape != shape:
            raise FormatError(f"{self.path}: {name} has the shape {entry.shape}; config.json implies {shape}")
        if entry.dtype not in _NUMPY_TYPES:
            raise FormatError(f"{self.path}: {name} is {entry.dtype}; weights must be {', '.join(_NUMPY_TYPES)}")
        self._stream.seek(self._data + entry.start)
        raw = read_items(self._stream, _NUMPY_TYPES[entry.dtype], prod(shape))
        if raw.size < prod(shape):
            raise FormatError(f"{self.path}: the file ended inside {name}: it was truncated while being read")
        return (from_bfloat16(raw) if entry.dtype == "BF16" else raw.astype("<f4", copy=False)).reshape(shape)


def _read_header(stream: BinaryIO, path: str) -> tuple[int, dict[str, Entry]]:
    size = os.fstat(stream.fileno()).st_size
    length = int.from_bytes(stream.read(8), "little")
    if size < 8 or length > min(size - 8, _MAX_HEADER_BYTES):
        raise FormatError(f"{path}: not a safetensors file: it has {size} bytes, but its header would have {length}")
    try:
        header = json.loads(stream.read(length))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not a safetensors file: its header is not JSON ({error})", 8) from None
    if not isinstance(header, dict):
        raise FormatError(f"{path}: not a safetensors file: its header is not a JSON object", 8)
    header.pop(_METADATA, None)
    data = 8 + length
    return data, {name: _entry(path, name, value, size - data) for name, value in header.items()}


def _entry(path: str, name: str, value: Any, data_bytes: int) -> Entry:
    fields = value if isinstance(value, dict) else {}
    dtype, shape, offsets = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
    if isinstance(dtype, str) and _are_sizes(shape) and _are_sizes(offsets) and len(offsets) == 2:
        start, end = offsets
        item = _ITEM_BYTES.get(dtype)
        if start <= end <= data_bytes and (item is None or end - start == prod(shape) * item):
            return Entry(dtype, tuple(shape), start, end)
    raise FormatError(
        f"{path}: the header's entry for {name!r} is damaged, or the {data_bytes} bytes after the header are", 8
    )


def _are_sizes(value: object) -> TypeGuard[list[int]]:
    """Returns whether this is a list of sizes that `prod` can multiply quickly. A million sizes would take minutes."""
    return isinstance(value, list) and len(value) <= _MAX_DIMENSIONS and all(type(i) is int and i >= 0 for i in value)
