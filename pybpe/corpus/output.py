"""Writes JSON lines, compressed if the file's name says so."""

from __future__ import annotations

import os
import zlib
from typing import Any

from .. import _binding
from ..errors import ArgumentError
from ..reading.unpacking import zstd_module


def check_name(path: _binding.PathLike) -> str:
    """Returns the path. Raises ArgumentError unless its name ends in a known format."""
    name = _binding.path_text(path)
    if not name.removesuffix(".gz").removesuffix(".zst").endswith((".jsonl", ".ndjson")):
        raise ArgumentError(f"{name}: the output is JSON lines: name it .jsonl, .jsonl.gz or .jsonl.zst")
    if os.path.isdir(name):
        raise ArgumentError(f"{name}: this is a folder; give the name of a file")
    _compressor(name)
    return name


def _compressor(name: str) -> Any:
    if name.endswith(".gz"):
        return zlib.compressobj(wbits=31)  # a gzip header without a timestamp: equal texts give equal bytes
    if name.endswith(".zst"):
        return zstd_module(name).ZstdCompressor()
    return None


class LineWriter:
    """A file of lines that appears complete at the end of the `with` block, or not at all."""

    def __init__(self, path: str) -> None:
        self._compressor = _compressor(path)
        self._output = _binding.Output(path)

    def write(self, lines: bytes) -> None:
        """Appends lines, which include their newlines."""
        data = lines if self._compressor is None else self._compressor.compress(lines)
        if data:
            self._output.write(data)

    def __enter__(self) -> LineWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is not None:
            self._output.discard()
            return
        with self._output:
            if self._compressor is not None:
                self._output.write(self._compressor.flush())
