"""One token file: finds out how it stores ids, and reads them at any place.

    llm.c shard     1024 bytes of header (shard.c), then uint16 or uint32
    .npy            numpy's header, then an array of one dimension
    anything else   only the ids, as nanoGPT reads them

The first bytes of a file tell which it is. All numbers are little-endian, unless the header of
a .npy file says otherwise.

The ids are read, not memory-mapped. If another program truncates a mapped file, the system kills the process (SIGBUS);
and pages of a map count as memory of the process.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator
from typing import Any

from .. import _binding
from .._numpy import numpy
from ..errors import ArgumentError, FormatError, file_errors
from ..formats.id_files import LOOK_BYTES, NPY_MAGIC, problem_of_ids, read_npy_header
from ..reading.file_types import llmc_file
from ..reading.streams import UnchangedStream, open_unchanged
from ..support import platform
from .described import file_facts

# Asking for a file's modification time takes longer than reading a window of tokens.
_CHECKED_BYTES = 1 << 16


class TokenFile:
    """The ids of an open token file. Threads may share it, and so may processes that were forked.

    Args:
        path: the file.
        dtype: see TokenStream.

    Attributes:
        dtype: the dtype of the ids.
        identity: what distinguishes the content of this file from others: size, modification time, inode.

    Raises:
        FileError, FormatError, ArgumentError: see TokenStream.
    """

    def __init__(self, path: _binding.PathLike, dtype: str | None = None) -> None:
        self.path = _binding.path_text(path)
        if os.path.exists(self.path) and not os.path.isfile(self.path) and not os.path.isdir(self.path):
            raise ArgumentError(f"{self.path}: neither a file nor a folder; only a file can be read at any place")
        self._stream = open_unchanged(self.path)
        self._handle, self._unchecked = self._stream.fileno(), 0
        status = self._stream.status
        self.identity = (status.st_size, status.st_mtime_ns, status.st_ino)
        try:
            self.dtype, self._offset, self._count = _layout(self._stream, self.path, dtype)
        except BaseException:
            self._stream.close()
            raise
        self._item_bytes = self.dtype.itemsize
        # Not __del__: when the interpreter exits, it may run after the modules that it needs are gone.
        weakref.finalize(self, self._stream.close)

    def __len__(self) -> int:
        return self._count

    def read(self, start: int = 0, stop: int | None = None) -> numpy.ndarray[Any, Any]:
        """Returns ids start .. stop, read-only, shape (stop - start,). None means the end.

        Raises:
            FileError: the file cannot be read. FormatError: it was truncated since it was opened; or it was
                overwritten, which is noticed by the time that 64 KiB more have been read.
        """
        size = self._item_bytes
        begin, end = self._offset + start * size, self._offset + (self._count if stop is None else stop) * size
        try:
            data = platform.read_at(self._handle, end - begin, begin)
        except OSError:
            with file_errors(self.path, "cannot be read"):
                raise
        self._unchecked += end - begin
        if len(data) < end - begin or self._unchecked > _CHECKED_BYTES:
            self._check(len(data) < end - begin)
        return numpy.frombuffer(data, self.dtype)

    def _check(self, is_shorter: bool) -> None:
        """Raises FormatError if the file was truncated or overwritten. Bytes may have been appended."""
        self._unchecked = 0
        with file_errors(self.path, "cannot be read"):
            now = os.fstat(self._handle)
        size, modified, _ = self.identity
        what = "written to"
        if is_shorter or now.st_size < size:
            what = f"truncated from {size} to {now.st_size} bytes"
        elif now.st_size > size or now.st_mtime_ns == modified:
            return
        raise FormatError(
            f"{self.path}: was {what} while it was open; open it again, and replace token files by renaming, not in"
            " place",
            now.st_size,
        )

    def blocks(self, most: int) -> Iterator[numpy.ndarray[Any, Any]]:
        """Yields all ids in blocks of at most `most`. Raises what `read` raises; at the end at the latest."""
        for at in range(0, self._count, most):
            yield self.read(at, min(at + most, self._count))
        self._check(False)


def _layout(stream: UnchangedStream, path: str, dtype: str | None) -> tuple[numpy.dtype[Any], int, int]:
    """Returns the dtype of the ids in a file, the byte at which they begin, and their number."""
    start, size = stream.read(LOOK_BYTES), stream.status.st_size
    if start.startswith(NPY_MAGIC) or path.endswith(".npy"):
        header = read_npy_header(stream, path)
        if len(header.shape) != 1 or header.dtype.kind not in "ui":
            what = f"{header.dtype} of shape {header.shape}"
            raise FormatError(f"{path}: {what}, expected a one-dimensional array of integers")
        return header.dtype, header.offset, header.shape[0]
    known = llmc_file(start)
    if known == "a token shard":
        shard = _binding.Shard(path)  # checks the header against the size
        stream.check_name()  # both are the same file
        return numpy.dtype(f"<u{shard.id_bytes}"), _binding.SHARD_HEADER_BYTES, len(shard)
    if known is not None:  # a pattern such as data/*.bin matches it too, and it would pass for headerless ids
        raise FormatError(f"{path}: {known} of llm.c, not tokens: name only token files", 0)
    if dtype is None and (facts := file_facts([path])[0]) is not None:
        dtype = facts.dtype
    if dtype is None and (problem := problem_of_ids(start)) is not None:
        raise FormatError(f"{path}: {problem}: pass dtype='uint32' or 'uint16' if it holds ids and nothing else", 0)
    id_bytes = 4 if dtype == "uint32" else 2
    if size % id_bytes:
        raise FormatError(
            f"{path}: {size} bytes is not a whole number of uint{8 * id_bytes}", size // id_bytes * id_bytes
        )
    return numpy.dtype(f"<u{id_bytes}"), 0, size // id_bytes
