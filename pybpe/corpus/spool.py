"""Stores task results as files, so that a killed run resumes with the unfinished tasks.

A hidden folder next to the output holds a file per finished task, which appears complete or not at all, and the
identity of the run: a hash of everything that the results depend on, except the inputs. The name of a task's file is a
hash of the ranges of the inputs that it reads. So if inputs change, the results of all tasks that read others stay. A
file has one result after another, because a task may read more text than fits in memory. Each has a header of 8 bytes
(its length, little-endian), JSON, then sections of bytes whose names and sizes the header holds.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from .. import _binding
from .._numpy import Array, numpy
from ..errors import FileMissingError, FormatError, file_error, file_errors
from ..reading.streams import open_input
from ..support.output_files import make_folder, remove_folder


def pack(header: Mapping[str, Any], sections: Mapping[str, bytes]) -> bytes:
    """Returns a result in the file's format. The header has the number of `documents`."""
    sizes = {name: len(data) for name, data in sections.items()}
    head = json.dumps({**header, "sections": sizes}).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *sections.values()])


class Result:
    """A result in the file of a task.

    Attributes:
        documents: how many documents it has.
        start, end: its place in the file.
    """

    def __init__(self, path: str, start: int) -> None:
        self._path, self.start = path, start
        header, at = self._header()
        self.documents: int = header["documents"]
        self._places: dict[str, tuple[int, int]] = {}
        for name, length in header["sections"].items():
            self._places[name] = (at, length)
            at += length
        self.end = at

    def _header(self) -> tuple[dict[str, Any], int]:
        with open_input(self._path) as stream:
            stream.seek(self.start)
            size = int.from_bytes(stream.read(8), "little")
            try:
                return json.loads(stream.read(size)), self.start + 8 + size
            except ValueError:
                problem = "damaged; delete its folder and run the command again"
                raise FormatError(f"{self._path}: {problem}", self.start + 8) from None

    def header(self) -> dict[str, Any]:
        """Returns its JSON. It is read again, because the headers of all results can be large."""
        return self._header()[0]

    def section(self, name: str) -> bytes:
        """Returns the bytes of a section."""
        return self._bytes(*self._places[name])

    def array(self, name: str, dtype: str, columns: int = 0, rows: slice = slice(None)) -> Array:
        """Returns the numbers of a section; with `columns`, some of its rows: shape (rows, columns)."""
        at, length = self._places[name]
        if not columns:
            return numpy.frombuffer(self._bytes(at, length), dtype)
        size = numpy.dtype(dtype).itemsize * columns
        first, end, _ = rows.indices(length // size)
        return numpy.frombuffer(self._bytes(at + size * first, size * (end - first)), dtype).reshape(-1, columns)

    def mapped(self, name: str, dtype: str, columns: int) -> Array:
        """Returns the rows of a section, of which only those that are used are read."""
        at, length = self._places[name]
        shape = length // (numpy.dtype(dtype).itemsize * columns), columns
        with file_errors(self._path, "cannot be read"):
            try:
                return numpy.memmap(self._path, dtype, "r", at, shape)
            except ValueError:
                raise self._shorter(at) from None

    def _bytes(self, at: int, length: int) -> bytes:
        with open_input(self._path) as stream:
            stream.seek(at)
            data = stream.read(length)
        if len(data) < length:
            raise self._shorter(at)
        return data

    def _shorter(self, at: int) -> FormatError:
        return FormatError(f"{self._path}: became shorter; delete its folder and run the command again", at)


class Spool:
    """The folder of an output file.

    Args:
        folder: where the results of finished work are kept.
        tasks: what distinguishes each task from others (see planning.described).
        identity: the run's identity; results of a run with another identity are dropped.
        resume: False drops the results of any run.

    Attributes:
        paths: the file of each task.
    """

    def __init__(self, folder: str, tasks: Iterable[bytes], identity: str, resume: bool) -> None:
        self.folder = folder
        names = [f"task-{hashlib.blake2b(task, digest_size=16).hexdigest()}" for task in tasks]
        self.paths = [os.path.join(folder, name) for name in names]
        self._identity_file = os.path.join(folder, "identity")
        if resume and self._is(identity):
            self._clean({"identity", *names})
        else:
            self._clean(())
            make_folder(folder)
            _binding.write_file(self._identity_file, identity.encode())

    def _is(self, identity: str) -> bool:
        try:
            with open_input(self._identity_file) as stream:
                return stream.read() == identity.encode()
        except FileMissingError:
            return False

    def _clean(self, keep: Collection[str]) -> None:
        """Removes an earlier run's files, except those with names in `keep`, and staged inputs, which belong to this
        run."""
        try:
            for name in os.listdir(self.folder) if os.path.isdir(self.folder) else ():
                path = os.path.join(self.folder, name)
                if name not in keep and os.path.isfile(path):
                    os.unlink(path)
        except OSError as error:
            raise file_error(error.errno or 0, f"{self.folder}: cannot be emptied: {error.strerror}") from None

    def leave(self) -> None:
        """Ends a failed run. A later run resumes if there is anything to resume from."""
        if not any(map(os.path.exists, self.paths)):
            shutil.rmtree(self.folder, ignore_errors=True)

    def remove(self) -> None:
        """Ends a finished run."""
        remove_folder(self.folder)


def results_in(path: str) -> Iterator[Result]:
    """Yields the results in the file of a task, in order."""
    start = 0
    with file_errors(path, "cannot be read"):
        size = os.path.getsize(path)
    while start < size:
        result = Result(path, start)
        yield result
        start = result.end
