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
from ..errors import FileMissingError, FormatError, file_error, file_errors
from ..reading.streams import open_input
from ..support.output_files import make_folder, remove_folder


def pack(header: Mapping[str, Any], sections: Mapping[str, bytes]) -> bytes:
    """Returns a result in the file's format."""
    sizes = {name: len(data) for name, data in sections.items()}
    head = json.dumps({**header, "sections": sizes}).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *sections.values()])


class Result:
    """A result in the file of a task.

    Attributes:
        header: its JSON.
        start, end: its place in the file.
    """

    def __init__(self, path: str, start: int = 0) -> None:
        self._path, self.start = path, start
        with open_input(path) as stream:
            stream.seek(start)
            size = int.from_bytes(stream.read(8), "little")
            try:
                self.header: dict[str, Any] = json.loads(stream.read(size))
            except ValueError:
                raise FormatError(f"{path}: damaged; delete its folder and run the command again", start + 8) from None
        self._places = {}
        at = start + 8 + size
        for name, length in self.header["sections"].items():
            self._places[name] = (at, length)
            at += length
        self.end = at

    def place(self, name: str) -> tuple[str, int]:
        """Returns the file, and where in it a section begins."""
        return self._path, self._places[name][0]

    def section(self, name: str) -> bytes:
        """Returns the bytes of a section."""
        at, length = self._places[name]
        with open_input(self._path) as stream:
            stream.seek(at)
            data = stream.read(length)
        if len(data) < length:
            raise FormatError(f"{self._path}: became shorter; delete its folder and run the command again", at)
        return data


class Spool:
    """The folder of an output file.

    Args:
        folder: where the results of finished work are kept.
        tasks: what distinguishes each task from others (see planning.described).
        identity: the run's identity; results of a run with another identity are dropped.
        resume: False drops the results of any run.
    """

    def __init__(self, folder: str, tasks: Iterable[bytes], identity: str, resume: bool) -> None:
        self.folder = folder
        self._names = [f"task-{hashlib.blake2b(task, digest_size=16).hexdigest()}" for task in tasks]
        self._identity_file = os.path.join(folder, "identity")
        if resume and self._is(identity):
            self._clean({"identity", *self._names})
        else:
            self._clean(())
            make_folder(folder)
            _binding.write_file(self._identity_file, identity.encode())

    def __len__(self) -> int:
        """Returns the number of tasks."""
        return len(self._names)

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

    def name(self, task: int) -> str:
        """Returns the path of a task's file."""
        return os.path.join(self.folder, self._names[task])

    def has(self, task: int) -> bool:
        """Returns whether a task is finished."""
        return os.path.exists(self.name(task))

    def results_of(self, task: int) -> Iterator[Result]:
        """Yields the results of a finished task, in order."""
        path, start = self.name(task), 0
        with file_errors(path, "cannot be read"):
            size = os.path.getsize(path)
        while start < size:
            result = Result(path, start)
            yield result
            start = result.end

    def results(self) -> Iterator[Result]:
        """Yields the results of all tasks, in order."""
        for task in range(len(self)):
            yield from self.results_of(task)

    def leave(self) -> None:
        """Ends a failed run. A later run resumes if there is anything to resume from."""
        if not any(map(self.has, range(len(self)))):
            shutil.rmtree(self.folder, ignore_errors=True)

    def remove(self) -> None:
        """Ends a finished run."""
        remove_folder(self.folder)
