"""Finished work: the results of tasks, as files in a hidden folder, so that a killed run resumes with the tasks that
are left.

A task has one file, which appears complete or not at all. Its name is a hash of everything that the results depend on:
the run's settings, and the ranges of the inputs that the task reads. So if some inputs change, the results of tasks
that read others stay. A file has one result after another, because a task may read more text than fits in memory. Each
is: the length and the CRC-32 of its header (4 bytes and 4 bytes), then the header, JSON, and sections of bytes whose
names, sizes and CRC-32 the header has.

Files are not synced, which would take long for many tasks, so a power failure may damage some. Whoever reads them
compares the CRC-32.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple

from .._binding import Data
from .._lazy import Array, hashlib, numpy
from .._version import __version__
from ..errors import FormatError, file_errors
from . import platform
from .output_files import FOLDER, STAGED, make_folder, remove_entry, remove_file, write_all

TASKS = "tasks"  # a folder in a hidden folder
_NUMBERS = 8  # bytes before a header
_BLOCK = 1 << 19  # bytes that are read at once
_UNFINISHED = ".tmp"  # the ending of a file


class DamagedResultError(FormatError):
    """The file with the results of a task was damaged. It is removed, so the next run does the task again."""


class Order(NamedTuple):
    """A task to do."""

    task: Any
    path: str  # the file for its results
    stamp: str = ""  # identifies the versions of the files that it reads


def hashed(*parts: object) -> str:
    """Returns a hash of this version of pybpe and of objects, whose `repr` is the same in every process."""
    return hashlib.sha256(repr((__version__, *parts)).encode("utf-8", "surrogateescape")).hexdigest()


def task_folder(hidden: str, fingerprint: str, keeps: bool = False) -> str:
    """Makes the folder for the results of tasks, in the hidden folder of an output. `fingerprint` is a hash of the
    settings. If no run with these has left results, removes everything that another run has left in the hidden folder,
    except staged inputs and the lock, not with `keeps`."""
    made = os.path.join(hidden, TASKS, fingerprint[:32])
    if not keeps and not os.path.isdir(made):
        with file_errors(make_folder(hidden), "cannot be emptied"):
            for name in os.listdir(hidden):
                if name != FOLDER and not name.startswith(STAGED):
                    remove_entry(os.path.join(hidden, name))
    for name in os.listdir(make_folder(made)):
        if name.endswith(_UNFINISHED):  # left by a kill
            remove_file(os.path.join(made, name))
    return made


def task_path(folder: str, task: bytes) -> str:
    """Returns the path of a task's results. `task` is its fingerprint (see planning.py)."""
    return os.path.join(folder, hashlib.blake2b(task, digest_size=16).hexdigest())


def packed(header: Mapping[str, Any], sections: Mapping[str, Sequence[Data]]) -> list[Data]:
    """Returns a result in the file's format, in parts, as its sections are."""
    sizes = {
        name: (
            sum(memoryview(part).nbytes for part in parts),
            reduce(lambda crc, part: zlib.crc32(part, crc), parts, 0),
        )
        for name, parts in sections.items()
    }
    head = json.dumps({**header, "sections": sizes}).encode()
    numbers = len(head).to_bytes(4, "little") + zlib.crc32(head).to_bytes(4, "little")
    return [numbers, head, *chain.from_iterable(sections.values())]


def write_results(path: str, parts: Iterable[Data]) -> int:
    """Writes the results of a task: parts that `packed` returned. Several workers may write the same file. Returns its
    size."""
    size = 0
    temporary = f"{path}-{os.urandom(4).hex()}{_UNFINISHED}"
    try:
        with file_errors(temporary, "cannot be written"), open(temporary, "wb", buffering=0) as stream:
            for part in parts:
                size += write_all(stream, part)
        with file_errors(path, "cannot be written"):
            platform.replace_file(temporary, path)
    except BaseException:
        remove_file(temporary)
        raise
    return size


class Section(NamedTuple):
    """A section of a result."""

    path: str  # the file
    at: int  # where it begins
    size: int  # its bytes
    crc: int  # its CRC-32
    skipped: int = 0  # bytes at its start that only count for the CRC-32

    def read(self) -> bytes:
        """Returns its bytes. Raises FormatError if they have changed since they were written, and removes the file."""
        return b"".join(self.blocks())

    def blocks(self) -> Iterator[bytes]:
        """Yields its bytes, in blocks, so that the section need not fit in memory. Raises what `read` raises, at the
        end."""
        crc = 0
        for at in range(0, self.size, _BLOCK):
            data = _read(self.path, self.at + at, min(_BLOCK, self.size - at))
            crc = zlib.crc32(data, crc)
            yield data[max(0, self.skipped - at) :]
        if crc != self.crc:
            raise _damaged(self.path, self.at)


class Result:
    """A result in the file of a task: its sections, and where it ends there. Does not keep its header, because the
    headers of all results can be large. If it is damaged, its methods raise FormatError, and remove the file: then the
    next run does the task again.

    Args:
        path: the file.
        start: where the result begins.
        header: its JSON.
        at: where its sections begin.
    """

    def __init__(self, path: str, start: int, header: Mapping[str, Any], at: int) -> None:
        self._path, self._start = path, start
        self.documents: int = header.get("documents", 0)
        self.sections: dict[str, Section] = {}
        for name, (size, crc) in header["sections"].items():
            self.sections[name] = Section(path, at, size, crc)
            at += size
        self.end = at

    def header(self) -> dict[str, Any]:
        """Reads its JSON again."""
        return _header(self._path, self._start)[0]

    def section(self, name: str) -> bytes:
        """Returns the bytes of a section."""
        return self.sections[name].read()

    def array(self, name: str, dtype: str, columns: int = 1) -> Array:
        """Returns the numbers of a section: shape (rows, columns)."""
        return numpy.frombuffer(self.section(name), dtype).reshape(-1, columns)

    def row(self, name: str, dtype: str, columns: int, row: int) -> Array:
        """Returns one row of a section. Does not compare the CRC-32."""
        size = numpy.dtype(dtype).itemsize * columns
        return numpy.frombuffer(_read(self._path, self.sections[name].at + size * row, size), dtype)

    def mapped(self, name: str, dtype: str, columns: int) -> Array:
        """Returns the rows of a section. Only the rows that are used are read. Does not compare the CRC-32."""
        at, size = self.sections[name][1:3]
        with file_errors(self._path, "cannot be read"):
            try:
                return numpy.memmap(
                    self._path, dtype, "r", at, (size // (numpy.dtype(dtype).itemsize * columns), columns)
                )
            except ValueError:
                raise _damaged(self._path, at) from None


def results_in(path: str) -> Iterator[tuple[Result, dict[str, Any]]]:
    """Yields the results in the file of a task, in order, with their headers. Raises FormatError as Result does."""
    start, size = 0, size_of(path)
    if size < 0:  # another reader found damage
        raise _damaged(path, 0)
    while start < size:
        header, at = _header(path, start)
        result = Result(path, start, header, at)
        if result.end > size:
            raise _damaged(path, start)
        yield result, header
        start = result.end


def headers_of(path: str, is_read: bool = False) -> list[dict[str, Any]] | None:
    """Returns the headers of the results of a task, or None if there is no whole file. With `is_read`, reads all
    sections to see whether it is."""
    try:
        found = list(results_in(path)) if os.path.exists(path) else []
        for section in chain.from_iterable(result.sections.values() for result, _ in found if is_read):
            section.read()
        return [header for _, header in found] or None
    except FormatError:
        return None


def size_of(path: str) -> int:
    """Returns the size of a file, or -1 if there is none. Another program may have removed it, or a part of it."""
    try:
        return os.path.getsize(path)
    except OSError:
        return -1


def _header(path: str, start: int) -> tuple[dict[str, Any], int]:
    """Returns the header of a result that begins at `start`, and where its sections begin."""
    numbers = _read(path, start, _NUMBERS)
    size, at = int.from_bytes(numbers[:4], "little"), start + _NUMBERS
    head = _read(path, at, size)
    if zlib.crc32(head) != int.from_bytes(numbers[4:], "little"):
        raise _damaged(path, at)
    return json.loads(head), at + size


def _read(path: str, at: int, size: int) -> bytes:
    data = b""
    with file_errors(path, "cannot be read"), suppress(FileNotFoundError), open(path, "rb", buffering=0) as stream:
        data = platform.read_at(stream.fileno(), size, at)
    if len(data) < size:
        raise _damaged(path, at)
    return data


def _damaged(path: str, at: int) -> DamagedResultError:
    remove_file(path)
    return DamagedResultError(f"{path}: damaged: run the same command again, which makes it again", at)
