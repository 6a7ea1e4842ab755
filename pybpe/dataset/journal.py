"""The state that a killed run leaves, so that the same command resumes.

A hidden folder inside the output folder holds the spools of unpublished shards, and journal.json: how
many tasks are done, and the state of each split after them. At a checkpoint, in this order,

1. the spools are synced, so the tokens that the journal counts are on disk;
2. the journal is replaced atomically;
3. closed shards are published. A kill in between leaves shards that are in the journal but have no name
   yet; a run that resumes first gives them their names.

So whenever the process dies, the journal counts only tokens that are on disk. Everything later is made again from the
same tasks, byte for byte. The folder is removed at the end.

The journal also names the files that earlier runs published and this run has not replaced yet. Programs find shards by
a pattern, so they would read them together with this run's. They are removed before this run publishes its first shard;
until then the folder is unchanged.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Sequence
from typing import Any

from .. import _binding
from ..errors import ArgumentError, FileError, FormatError, file_errors
from ..support.locking import FOLDER, LOCK, STAGED
from ..support.output_files import make_folder
from ..tokenizer import Tokenizer
from .manifest import Manifest, is_plain_name, manifest_name
from .split_writer import SplitState

NAME = "journal.json"


def check_finished(folder: str) -> None:
    """Raises ArgumentError if a run that writes to a folder was killed or is still running."""
    if os.path.exists(os.path.join(folder, FOLDER, NAME)):
        raise ArgumentError(f"{folder}: the run that writes to this folder has not finished: run its command again")


def finished_manifest(folder: str, tok: Tokenizer) -> Manifest:
    """Returns the manifest of a folder of token files.

    Raises:
        ArgumentError: the run that writes to it has not finished, or another tokenizer made the files. FileError,
            FormatError: there is no manifest, or it is damaged.
    """
    manifest = Manifest.load(folder)
    check_finished(folder)
    if manifest.tokenizer.get("fingerprint") != tok.model.fingerprint():
        raise ArgumentError(f"{folder}: another tokenizer made these files: its fingerprint differs")
    return manifest


class Journal:
    """The journal of an output folder.

    Args:
        folder: the output folder.
        identity: a hash of everything that the result depends on. The files of a run with another identity are dropped.
        resume: False drops the files of any run.

    Attributes:
        tasks: the number of finished tasks.
        states: the state of each split.
        older: names of the files that earlier runs, finished or not, left in the output folder.
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
        """Returns the journal's content, or nothing if there is no journal or it is damaged."""
        try:
            with open(self._path, "rb") as stream:
                data = json.load(stream)
            states = [SplitState.from_json(state) for state in data["states"]]
            whole = isinstance(data["tasks"], int) and all(map(is_plain_name, data["files"] + data["older"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}
        return {**data, "states": states} if whole else {}

    def save(self, tasks: int, states: Sequence[SplitState], files: Sequence[str]) -> None:
        """Replaces journal.json. `files` are the names of all files that are published, or are about to be."""
        data = {
            "identity": self._identity,
            "tasks": tasks,
            "states": [state.to_json() for state in states],
            "files": list(files),
            "older": self.older,
        }
        _binding.write_file(self._path, json.dumps(data).encode())

    def remove(self) -> None:
        """Ends the run, finished or given up. The journal is removed last, so that a kill in between changes
        nothing."""
        with file_errors(self.folder, "cannot be removed"):
            for name in sorted(os.listdir(self.folder), key=lambda name: name == NAME):
                path = os.path.join(self.folder, name)
                if os.path.isdir(path):
                    shutil.rmtree(path)
                elif name != LOCK:
                    os.unlink(path)

    def _clean(self) -> None:
        """Removes an earlier run's files, except staged inputs and tokenizers, which may belong to this run."""
        with file_errors(self.folder, "cannot be emptied"):
            for name in os.listdir(self.folder):
                if name != NAME and not name.startswith(STAGED):
                    os.unlink(os.path.join(self.folder, name))


def _files_of_manifest(folder: str) -> list[str]:
    """Returns the names of the files that a finished run wrote, its manifest included."""
    try:
        return [manifest_name(folder), *Manifest.load(folder).file_names]
    except (FileError, FormatError):
        return []
