"""A folder of a run that all its workers see, on this machine or on others."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import NamedTuple

from .. import _binding
from ..errors import WorkerError, file_errors

MARK = "run"  # a file with the random number of the run


class SharedFolder(NamedTuple):
    """The folder of a run, as workers find it.

    Attributes:
        path: its path, which must be the same on all machines.
        number: a random number. A worker that does not find it in the folder sees another folder.
    """

    path: str
    number: str

    @classmethod
    def begin(cls, path: str) -> SharedFolder:
        """Marks a folder, which exists, as that of a new run."""
        shared = cls(os.path.abspath(path), secrets.token_hex(16))
        _binding.write_file(os.path.join(shared.path, MARK), shared.number.encode())
        return shared

    def is_seen(self) -> bool:
        """Returns whether this machine sees the folder, and no other one of its name."""
        mark, found = os.path.join(self.path, MARK), ""
        with file_errors(mark, "cannot be read"), suppress(FileNotFoundError, NotADirectoryError):
            with open(mark, "rb") as stream:
                found = stream.read().decode("latin-1")
        return found == self.number

    def new_file(self, name: str, ending: str = "") -> str:
        """Returns the path of a new file. If a cluster repeats a task, the names differ.

        Raises:
            WorkerError: this machine sees another folder of this name, or none.
        """
        if not self.is_seen():
            raise WorkerError(
                f"{self.path}: all workers must see this folder of the run: put the output on a shared disk"
            )
        return os.path.join(self.path, f"{name}-{secrets.token_hex(4)}{ending}")
