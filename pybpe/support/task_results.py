"""Finished work: the results of tasks, as files in a hidden folder, so that a killed run resumes with the tasks that
are left.

A task has one file, which appears complete or not at all. Its name is a hash of everything that the results depend on:
the run's settings, and the ranges of the inputs that the task reads. So if some inputs change, the results of tasks
that read others stay. A file has one result after another, because a task may read more text than fits in memory. Each
has a header of 8 bytes (its length, little-endian), JSON, then sections of bytes whose names and sizes the header has.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from .._binding import Data
from .._lazy import Array, numpy
from ..errors import FormatError, file_errors
from .output_files import make_folder, remove_others


def result_paths(folder: str, identity: str, tasks: Iterable[bytes], resume: bool) -> list[str]:
    """Returns the path of each task's results in a folder. Removes other files there, or all without `resume`.
    `identity` is a hash of the settings; `tasks` are what distinguishes each task from others (see
    planning.described)."""
    paths = [result_path(folder, identity, task) for task in tasks]
    remove_others(make_folder(folder), "*", set(map(os.path.basename, paths)) if resume else ())
    return paths


def result_path(folder: str, identity: str, task: bytes) -> str:
    """Returns the path of a task's results in a folder. The arguments are as in `result_paths`."""
    key = bytes.fromhex(identity)
    return os.path.join(folder, f"task-{hashlib.blake2b(task, digest_size=16, key=key).hexdigest()}")


def result_names(folder: str) -> list[str]:
    """Returns the names of the files of all tasks that have results in a folder, also those of other runs."""
    return [name for name in os.listdir(folder) if name.startswith("task-") and not name.endswith(".tmp")]


def packed(header: Mapping[str, Any], sections: Mapping[str, Sequence[Data]]) -> list[Data]:
    """Returns a result in the file's format, in parts, as its sections are. The header has the number of
    `documents`."""
    sizes = {name: sum(memoryview(part).nbytes for part in parts) for name, parts in sections.items()}
    head = json.dumps({**header, "sections": sizes}).encode()
    return [len(head).to_bytes(8, "little"), head, *chain.from_iterable(sections.values())]


class Result:
    """A result in the file of a task: the number of its `documents`, and where it ends there."""

    def __init__(self, path: str, start: int) -> None:
        self._path, self._start = path, start
        header, at = self._header()
        self.documents: int = header["documents"]
        self._places: dict[str, tuple[int, int]] = {}
        for name, size in header["sections"].items():
            self._places[name] = at, size
            at += size
        self.end = at

    def _header(self) -> tuple[dict[str, Any], int]:
        size = int.from_bytes(self._read(self._start, 8), "little")
        at = self._start + 8
        try:
            return json.loads(self._read(at, size)), at + size
        except ValueError:
            raise FormatError(f"{self._path}: damaged; delete its folder and run the command again", at) from None

    def header(self) -> dict[str, Any]:
        """Returns its JSON. It is read again, because the headers of all results can be large."""
        return self._header()[0]

    def section(self, name: str) -> bytes:
        """Returns the bytes of a section."""
        return self._read(*self._places[name])

    def array(self, name: str, dtype: str, columns: int = 1) -> Array:
        """Returns the numbers of a section: shape (rows, columns)."""
        return numpy.frombuffer(self.section(name), dtype).reshape(-1, columns)

    def row(self, name: str, dtype: str, columns: int, row: int) -> Array:
        """Returns one row of a section."""
        size = numpy.dtype(dtype).itemsize * columns
        return numpy.frombuffer(self._read(self._places[name][0] + size * row, size), dtype)

    def mapped(self, name: str, dtype: str, columns: int) -> Array:
        """Returns the rows of a section. Only the rows that are used are read."""
        at, size = self._places[name]
        with file_errors(self._path, "cannot be read"):
            try:
                return numpy.memmap(
                    self._path, dtype, "r", at, (size // (numpy.dtype(dtype).itemsize * columns), columns)
                )
            except ValueError:
                raise self._shorter(at) from None

    def _read(self, at: int, size: int) -> bytes:
        with file_errors(self._path, "cannot be read"), open(self._path, "rb") as stream:
            stream.seek(at)
            data = stream.read(size)
        if len(data) < size:
            raise self._shorter(at)
        return data

    def _shorter(self, at: int) -> FormatError:
        return FormatError(f"{self._path}: became shorter; delete its folder and run the command again", at)


def results_in(path: str) -> Iterator[Result]:
    """Yields the results in the file of a task, in order."""
    start = 0
    with file_errors(path, "cannot be read"):
        size = os.path.getsize(path)
    while start < size:
        result = Result(path, start)
        yield result
        start = result.end
