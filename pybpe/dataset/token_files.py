"""Opens token files as one stream of ids: checked and memory-mapped, never read as a whole.

    llm.c shard     1024 bytes of header (shard.c), then uint16 or uint32
    .npy            numpy's header, then an array of one dimension
    anything else   only the ids, as nanoGPT reads them

The first bytes of a file tell which it is. All numbers are little-endian.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from threading import Lock
from typing import TYPE_CHECKING, Any

from .. import _binding
from ..errors import ArgumentError, FormatError
from ..formats.id_files import LOOK_BYTES, NPY_MAGIC, map_npy, problem_of_ids
from ..reading.file_types import llmc_file
from ..reading.files import input_files
from ..reading.paths import path_list
from ..reading.streams import open_input
from ..support import platform
from .manifest import FILE_NAME

if TYPE_CHECKING:
    import numpy

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

_MOST_MAPS = 1 << 14


class TokenStream:
    """The ids of several files, one after another, as if they were one array.

    A slice of files is a copy, which stays as it is when a file is truncated later. Do not change the files in place
    while they are open: slicing a file that has become shorter raises an error, unless that happens while the slice is
    copied, which kills the process (SIGBUS). Replacing a file by renaming another one over it is safe. A stream is
    pickled as its paths: another process maps the files again, and raises FormatError if their lengths are no longer
    the same. So does a process that was forked.

    Args:
        source: a path, a glob pattern (its files sorted, as llm.c reads shards), several of them, or an array
            of integers, shape (tokens,).
        dtype: "uint16" or "uint32", for files without a header; None uses the manifest.json next to the file, or uint16
            if there is none, unless the file looks like uint32, text or an archive. Other files state their dtype.

    Raises:
        FileError, FormatError: a file cannot be opened, or is damaged; the error gives the offset.
        ArgumentError: there are no files, a path is a folder (which may hold several splits), or dtypes differ.
    """

    def __init__(self, source: Paths | numpy.ndarray[Any, Any], dtype: str | None = None) -> None:
        if dtype not in (None, "uint16", "uint32"):
            raise ArgumentError(f"dtype must be 'uint16', 'uint32' or None, not {dtype!r}")
        self._arguments: tuple[Any, ...]
        if hasattr(source, "dtype"):
            self._parts: _Array | _Files = _Array(_checked(source, "the array of ids"))
            self._arguments = (source, dtype)
        else:
            paths = _token_paths(source)
            self._parts = _Files(paths, dtype)
            self._arguments = (paths, dtype)
        self._starts = [0, *accumulate(self._parts.lengths)]
        self.dtype: numpy.dtype[Any] = self._parts.dtype

    def __reduce__(self) -> tuple[object, ...]:
        return _reopened, (*self._arguments, self._parts.lengths)

    @property
    def paths(self) -> list[str]:
        """The files; none if the stream is an array."""
        source = self._arguments[0]
        return source if isinstance(source, list) else []

    @property
    def starts(self) -> list[int]:
        """Where each file starts, and where the last one ends."""
        return self._starts

    def __len__(self) -> int:
        return self._starts[-1]

    def __repr__(self) -> str:
        return f"TokenStream({len(self)} {self.dtype} ids in {len(self._parts.lengths)} files)"

    def slice(self, start: int, stop: int) -> numpy.ndarray[Any, Any]:
        """Returns ids start .. stop, shape (stop - start,), where 0 <= start <= stop <= len(self).

        Raises:
            FormatError: the file has become shorter since it was opened.
        """
        return self._parts.own(self.mapped(start, stop))

    def mapped(self, start: int, stop: int) -> numpy.ndarray[Any, Any]:
        """Returns what `slice` returns, perhaps as a view of a mapped file: copy it at once."""
        import numpy

        first = min(bisect_right(self._starts, start), len(self._parts.lengths)) - 1
        begin = start - self._starts[first]
        if stop <= self._starts[first + 1]:
            return self._parts.get(first)[begin : stop - self._starts[first]]
        pieces = [self._parts.get(first)[begin:]]
        for i in range(first + 1, len(self._parts.lengths)):
            if self._starts[i] >= stop:
                break
            pieces.append(self._parts.get(i)[: stop - self._starts[i]])
        return numpy.concatenate(pieces)


def _reopened(source: Any, dtype: str | None, lengths: list[int]) -> TokenStream:
    """Opens a stream that was pickled."""
    stream = TokenStream(source, dtype)
    for path, before, now in zip(stream.paths, lengths, stream._parts.lengths):
        if before != now:
            raise FormatError(f"{path}: had {before} tokens when it was first opened, now {now}: open it again", 0)
    return stream


class _Array:
    """An array in memory, as a stream's only part."""

    def __init__(self, array: numpy.ndarray[Any, Any]) -> None:
        self._array = array
        self.lengths, self.dtype = [len(array)], array.dtype

    def get(self, i: int) -> numpy.ndarray[Any, Any]:
        """The ids."""
        return self._array

    @staticmethod
    def own(ids: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
        """Returns some of the ids as they are: they do not depend on a file."""
        return ids


class _Files:
    """Token files by number. A map holds a file descriptor as long as a view of it exists, so only the most recently
    used files stay mapped. Others are opened again when needed, and must be unchanged."""

    def __init__(self, paths: Sequence[str], dtype: str | None) -> None:
        self._paths, self._dtype = paths, dtype
        self._most = _most_maps()
        self._mapped: OrderedDict[int, numpy.ndarray[Any, Any]] = OrderedDict()
        self._lock, self._process = Lock(), os.getpid()
        self._seen: list[tuple[int, ...]] = []
        self.lengths: list[int] = []
        for i, path in enumerate(paths):
            part = open_tokens(path, dtype)
            if not i:
                self.dtype = part.dtype
            if part.dtype != self.dtype:
                raise ArgumentError(
                    f"{path} holds {part.dtype}, but {paths[0]} {self.dtype}: files that are read as"
                    " one stream must have one dtype"
                )
            self._seen.append(_identity(path))
            self.lengths.append(len(part))
            self._keep(i, part)

    def get(self, i: int) -> numpy.ndarray[Any, Any]:
        """Returns the ids of one file. Reading bytes that were truncated after mapping would kill the process."""
        if self._process != os.getpid():  # this process was forked, perhaps while a thread held the lock
            self._lock, self._process = Lock(), os.getpid()
            self._mapped = OrderedDict()
        with self._lock:
            part = self._mapped.get(i)
            if part is None:
                part = self._open_again(i)
            self._keep(i, part)
        file = getattr(
            part.base, "_mmap", None
        )  # its size() asks the system for the current size; None for an empty file
        if file is not None and file.size() < self._seen[i][0]:
            raise FormatError(
                f"{self._paths[i]}: was truncated from {self._seen[i][0]} to {file.size()} bytes while it was open;"
                " open it again, and replace token files by renaming, not in place",
                file.size(),
            )
        return part

    @staticmethod
    def own(ids: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
        """Returns a read-only copy of ids that are mapped, and ids that are not mapped as they are."""
        if not ids.flags.owndata:
            ids = ids.copy()
            ids.flags.writeable = False
        return ids

    def _keep(self, i: int, part: numpy.ndarray[Any, Any]) -> None:
        self._mapped[i] = part
        self._mapped.move_to_end(i)
        while len(self._mapped) > self._most:
            self._mapped.popitem(last=False)

    def _open_again(self, i: int) -> numpy.ndarray[Any, Any]:
        part = open_tokens(self._paths[i], self._dtype)
        if _identity(self._paths[i]) != self._seen[i]:
            raise FormatError(f"{self._paths[i]}: was changed or replaced since it was first opened: open it again", 0)
        return part


def _identity(path: str) -> tuple[int, ...]:
    status = os.stat(path)
    return status.st_size, status.st_mtime_ns, status.st_ino


def _most_maps() -> int:
    """Returns how many files may stay mapped: a quarter of this process's limit on descriptors."""
    limit = platform.open_files_limit()
    return _MOST_MAPS if limit is None else max(4, min(_MOST_MAPS, limit // 4))


def open_tokens(path: _binding.PathLike, dtype: str | None = None) -> numpy.ndarray[Any, Any]:
    """Maps the ids of one file: shape (tokens,), read-only. See TokenStream."""
    name = os.fsdecode(path)
    if os.path.exists(name) and not os.path.isfile(name) and not os.path.isdir(name):
        raise ArgumentError(f"{name}: neither a file nor a folder; only a file can be memory-mapped")
    with open_input(path) as stream:
        start = stream.read(LOOK_BYTES)
        size = os.fstat(stream.fileno()).st_size
    if start.startswith(NPY_MAGIC) or name.endswith(".npy"):
        return _checked(map_npy(name), name)
    known = llmc_file(start)
    if known == "a token shard":
        shard = _binding.Shard(path)  # checks the header against the size
        return _map(name, f"<u{shard.id_bytes}", _binding.SHARD_HEADER_BYTES, len(shard))
    if known is not None:  # a pattern such as data/*.bin matches it too, and it would pass for headerless ids
        raise FormatError(f"{name}: {known} of llm.c, not tokens: name only token files", 0)
    dtype = dtype or _manifest_dtype(name)
    if dtype is None and (problem := problem_of_ids(start)) is not None:
        raise FormatError(f"{name}: {problem}: pass dtype='uint32' or 'uint16' if it holds ids and nothing else", 0)
    id_bytes = 4 if dtype == "uint32" else 2
    if size % id_bytes:
        raise FormatError(
            f"{name}: {size} bytes is not a whole number of uint{8 * id_bytes}", size // id_bytes * id_bytes
        )
    return _map(name, f"<u{id_bytes}", 0, size // id_bytes)


def _token_paths(source: Paths) -> list[str]:
    paths: list[str] = []
    for path in path_list(source):
        if os.path.isdir(path):
            raise ArgumentError(
                f"{path}: a folder, which may hold several splits; name the files, for example"
                f" {os.path.join(path, '*_train_*.bin')!r}"
            )
        paths += input_files(path)
    return paths


def _map(path: str, dtype: str, offset: int, count: int) -> numpy.ndarray[Any, Any]:
    import numpy

    if count == 0:  # an empty file cannot be mapped
        return numpy.empty(0, dtype=dtype)
    return numpy.memmap(path, dtype=dtype, mode="r", offset=offset, shape=(count,)).view(numpy.ndarray)


def _checked(array: Any, name: str) -> numpy.ndarray[Any, Any]:
    if array.ndim != 1 or array.dtype.kind not in "ui":
        raise FormatError(f"{name}: {array.dtype} of shape {array.shape}, expected a one-dimensional array of integers")
    return array  # type: ignore[no-any-return]


def _manifest_dtype(path: str) -> str | None:
    """Returns the dtype that a manifest.json next to a file states, if it describes that file."""
    files, settings = _manifest(os.path.dirname(path))
    dtype = settings.get("dtype") if os.path.basename(path) in files else None
    return dtype if isinstance(dtype, str) else None


def packed_lengths(paths: Iterable[str]) -> list[int | None]:
    """Returns the tokens per row of each file if it has packed rows, as the manifest.json next to it says, or None."""
    folders: dict[str, tuple[set[str], dict[str, Any]]] = {}
    lengths: list[int | None] = []
    for path in paths:
        folder = os.path.dirname(path)
        if folder not in folders:
            folders[folder] = _manifest(folder)
        files, settings = folders[folder]
        packing = settings.get("packing") if os.path.basename(path) in files else None
        length = packing.get("sequence_length") if isinstance(packing, dict) else None
        lengths.append(length if isinstance(length, int) else None)
    return lengths


def _manifest(folder: str) -> tuple[set[str], dict[str, Any]]:
    """Returns the files that the manifest.json of a folder describes, and its settings; nothing if there is none."""
    try:
        with open(os.path.join(folder, FILE_NAME), encoding="utf-8") as stream:
            manifest = json.load(stream)
        files = {shard["file"] for shards in manifest["shards"].values() for shard in shards}
        settings = manifest["settings"]
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return set(), {}  # no manifest, or not one of ours
    return (files, settings) if isinstance(settings, dict) else (set(), {})
