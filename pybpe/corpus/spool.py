"""Results of tasks as files, so that a run that was killed goes on with the tasks that are not done.

A hidden folder beside the output holds a file for each task that is done, which appears complete or not at all, and
the identity of the run: a hash of everything that the result depends on. A file has a header of 8 bytes (its length,
little-endian), JSON, then sections of bytes whose names and sizes the header holds.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from typing import Any

from .. import _binding
from ..errors import FormatError, file_error
from ..folders import make_folder
from ..pretokenize import open_input


def pack(header: Mapping[str, Any], sections: Mapping[str, bytes]) -> bytes:
    """A result as a file holds it."""
    sizes = {name: len(data) for name, data in sections.items()}
    head = json.dumps({**header, "sections": sizes}).encode()
    return b"".join([len(head).to_bytes(8, "little"), head, *sections.values()])


class Result:
    """A result in a file."""

    def __init__(self, path: str) -> None:
        self._path = path
        with open_input(path) as stream:
            size = int.from_bytes(stream.read(8), "little")
            try:
                self.header: dict[str, Any] = json.loads(stream.read(size))
            except ValueError:
                raise FormatError(f"{path}: damaged; delete its folder and run again", 8) from None
        self._places = {}
        at = 8 + size
        for name, length in self.header["sections"].items():
            self._places[name] = (at, length)
            at += length

    def section(self, name: str) -> bytes:
        """The bytes of a section."""
        at, length = self._places[name]
        with open(self._path, "rb") as stream:
            stream.seek(at)
            return stream.read(length)


class Spool:
    """The folder of an output file.

    Args:
        out: the output file.
        identity: what a run of another identity left is dropped.
        resume: False: drop what any run left.
    """

    def __init__(self, folder: str, identity: str, resume: bool) -> None:
        self.folder = folder
        self._identity_file = os.path.join(folder, "identity")
        if not (resume and self._is(identity)):
            self._clean()
            make_folder(folder)
            _binding.write_file(self._identity_file, identity.encode())

    def _is(self, identity: str) -> bool:
        try:
            with open(self._identity_file, "rb") as stream:
                return stream.read() == identity.encode()
        except OSError:
            return False

    def _clean(self) -> None:
        """Removes what a run left, but staged inputs, which are this run's."""
        try:
            for name in os.listdir(self.folder) if os.path.isdir(self.folder) else ():
                path = os.path.join(self.folder, name)
                if os.path.isfile(path):
                    os.unlink(path)
        except OSError as error:
            raise file_error(error.errno or 0, f"{self.folder}: cannot be cleaned: {error.strerror}") from None

    def name(self, task: int) -> str:
        """The file of a task."""
        return os.path.join(self.folder, f"task-{task:06d}")

    def has(self, task: int) -> bool:
        """Whether a task is done."""
        return os.path.exists(self.name(task))

    def results(self, tasks: int) -> Iterator[Result]:
        """The results of all tasks, in order."""
        for task in range(tasks):
            yield Result(self.name(task))

    def leave(self) -> None:
        """The run has failed; a later one goes on, if there is something to go on with."""
        if not self.has(0):
            self.remove()

    def remove(self) -> None:
        """The run is done."""
        shutil.rmtree(self.folder, ignore_errors=True)
