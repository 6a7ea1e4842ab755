"""What a run that was killed leaves, so that the same command goes on where it was.

A hidden folder inside the output folder holds the spools of shards that are not published, and journal.json: how
many tasks are done, and the state of each split after them. At a checkpoint, in this order,

1. the spools are synced, so the tokens that the journal counts are on disk;
2. the journal is replaced atomically;
3. closed shards are published. A kill in between leaves some that the journal knows and that have no name yet;
   a run that goes on gives it to them first.

So whenever the process dies, the journal counts tokens that are there, and what came after it is made again,
from the same tasks, to the same bytes. The folder is removed at the end.

The journal also names the files that earlier runs have published, and that this one has not replaced yet. Programs
find shards by a pattern, so they would read those together with this run's. They are removed before the first shard of
this run is published; until then the folder stays what it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any

from .. import _binding
from ..errors import FileError, FormatError, file_errors
from ..folders import make_folder
from ..locking import FOLDER, LOCK
from .manifest import Manifest, is_plain_name, manifest_name
from .split_writer import SplitState

NAME = "journal.json"
STAGED = "input-"  # how the names of what a run makes before its journal begin: inputs that were copied, a tokenizer


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
        older: names of the files that earlier runs, finished or not, have left in the output folder.
    """

    def __init__(self, folder: str, identity: str, splits: int, resume: bool) -> None:
        self.folder = make_folder(os.path.join(folder, FOLDER))
        self._path = os.path.join(self.folder, NAME)
        self._identity = identity
        self.tasks = 0
        self.states = [SplitState() for _ in range(splits)]
        found = self._read()
        if resume and found.get("identity") == identity:
            self.tasks, self.states = found["tasks"], found["states"]
            self.older: list[str] = found["older"]
        else:
            self.older = sorted({*found.get("older", ()), *found.get("files", ()), *_files_of_manifest(folder)})
            self.save(0, self.states, ())
            self._clean()

    def _read(self) -> dict[str, Any]:
        """What the journal says that is there; nothing if there is none, or one that was damaged."""
        try:
            with open(self._path, "rb") as stream:
                data = json.load(stream)
            states = [SplitState.from_json(state) for state in data["states"]]
            whole = isinstance(data["tasks"], int) and all(map(is_plain_name, data["files"] + data["older"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}
        return {**data, "states": states} if whole else {}

    def save(self, tasks: int, states: Sequence[SplitState], files: Sequence[str]) -> None:
        """Replaces journal.json. `files`: the names of all files that are published, or will be now."""
        data = {
            "identity": self._identity,
            "tasks": tasks,
            "states": [state.to_json() for state in states],
            "files": list(files),
            "older": self.older,
        }
        _binding.write_file(self._path, json.dumps(data).encode())

    def remove(self) -> None:
        """The run is done, or is not to go on. The journal goes last: a kill in between changes nothing."""
        with file_errors(self.folder, "cannot be removed"):
            for name in sorted(os.listdir(self.folder), key=lambda name: name == NAME):
                if name != LOCK:
                    os.unlink(os.path.join(self.folder, name))

    def _clean(self) -> None:
        """Removes what a run left, except staged inputs and tokenizers, which are this run's."""
        with file_errors(self.folder, "cannot be cleaned"):
            for name in os.listdir(self.folder):
                if name != NAME and not name.startswith(STAGED):
                    os.unlink(os.path.join(self.folder, name))


def _files_of_manifest(folder: str) -> list[str]:
    """The names of the files that a finished run has written, its manifest among them."""
    try:
        return [manifest_name(folder), *Manifest.load(folder).file_names]
    except (FileError, FormatError):
        return []
