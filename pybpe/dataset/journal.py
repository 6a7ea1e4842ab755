"""What a run that was killed leaves, so that the same command goes on where it was.

A hidden folder inside the output folder holds the spools of shards that are not published, and journal.json: how
many tasks are done, and the state of each split after them. At a checkpoint, in this order,

1. the spools are synced, so the tokens that the journal counts are on disk;
2. the journal is replaced atomically;
3. closed shards are published. A kill in between leaves some that the journal knows and that have no name yet;
   a run that goes on gives it to them first.

So whenever the process dies, the journal counts tokens that are there, and what came after it is made again,
from the same tasks, to the same bytes. The folder is removed at the end.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from .. import _binding
from ..errors import file_error, file_errors
from ..folders import make_folder
from .split_writer import SplitState

FOLDER = ".pybpe-unfinished"
NAME = "journal.json"
STAGED = "input-"  # how the names of what a run makes before its journal begin: inputs that were copied, a tokenizer
_LOCK = STAGED + "lock"


@contextmanager
def only_run(folder: str) -> Iterator[None]:
    """Two runs at once would write into one another's files. The lock is the process's own: its workers do not inherit
    it, and a kill ends it.

    Raises:
        FileError: another process is writing into this folder.
    """
    path = os.path.join(make_folder(os.path.join(folder, FOLDER)), _LOCK)
    with file_errors(path, "cannot be written"):
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            os.close(handle)
            problem = "another process is writing into it; wait for that one, or name another folder"
            raise file_error(error.errno, f"{folder}: {problem}") from None
        # Else the file system has no locks.
    try:
        yield
    finally:
        with suppress(OSError):  # nothing was written into it
            os.close(handle)


class Journal:
    """The journal of an output folder.

    Args:
        folder: the output folder.
        identity: a hash of everything that the result depends on. What a run of another identity left is
            dropped.
        resume: False: drop what any run left.

    Attributes:
        tasks: how many are done.
        states: of each split.
    """

    def __init__(self, folder: str, identity: str, splits: int, resume: bool) -> None:
        self.folder = os.path.join(folder, FOLDER)
        self._path = os.path.join(self.folder, NAME)
        self._identity = identity
        self.tasks = 0
        self.states = [SplitState() for _ in range(splits)]
        if not (resume and self._load()):
            self._clean()
            make_folder(self.folder)

    def _load(self) -> bool:
        try:
            with open(self._path, "rb") as stream:
                data = json.load(stream)
            if data["identity"] != self._identity:
                return False
            self.tasks, self.states = data["tasks"], [SplitState.from_json(state) for state in data["states"]]
        except (OSError, ValueError, KeyError, TypeError):
            return False
        return True

    def save(self, tasks: int, states: Sequence[SplitState]) -> None:
        """Replaces journal.json."""
        data = {"identity": self._identity, "tasks": tasks, "states": [state.to_json() for state in states]}
        _binding.write_file(self._path, json.dumps(data).encode())

    def remove(self) -> None:
        """The run is done, or is not to go on. The journal goes last: a kill in between changes nothing."""
        with file_errors(self.folder, "cannot be removed"):
            for name in sorted(os.listdir(self.folder), key=lambda name: name == NAME):
                os.unlink(os.path.join(self.folder, name))
            os.rmdir(self.folder)

    def _clean(self) -> None:
        """Removes what a run left, except staged inputs and tokenizers, which are this run's."""
        if not os.path.isdir(self.folder):
            return
        with file_errors(self.folder, "cannot be cleaned"):
            for name in os.listdir(self.folder):
                if not name.startswith(STAGED):
                    os.unlink(os.path.join(self.folder, name))
