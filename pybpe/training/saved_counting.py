"""What a run with a checkpoint saves while it counts, so that it resumes counting after it is killed.

Next to the checkpoint there is a hidden folder with sorted runs of words (runs.py), and a file that names the runs
which together have exactly the words of the corpus up to a place:

    .tok.checkpoint.unfinished/state.json      the settings of the run, the place, and the names of the runs
                               run000000-1f3a09c2.counts, run000001-1f3a09c2.counts, ...

The counter writes runs first and then replaces state.json. If the process dies between the two, the next process
removes the runs that state.json does not name. The names of runs differ between processes, so a process that a user has
interrupted, and that is still writing, cannot change a run of the next one.
"""

from __future__ import annotations

import glob
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from .. import _binding
from ..errors import ArgumentError, FormatError, file_errors
from ..support.output_files import remove_folder, remove_others, unfinished_folder
from .runs import Runs

SECONDS = 30.0  # between two saves
_STATE = "state.json"

Item = TypeVar("Item")


class Place(NamedTuple):
    """A place in a corpus: all words before it have been counted.

    Attributes:
        tasks: the number of tasks before the one in which it is.
        pieces: the number of pieces of this task before it.
        size: the number of bytes of all pieces before it.
    """

    tasks: int = 0
    pieces: int = 0
    size: int = 0


class SavedCounting:
    """The saved part of the counts of one run.

    Args:
        checkpoint: the path of the run's checkpoint.
        settings: everything that the counts depend on, in types that JSON can hold.

    Attributes:
        runs: the runs of words so far.
        place: where to resume.

    Raises:
        ArgumentError: the folder belongs to a run with other settings. FormatError: its state is damaged.
    """

    def __init__(self, checkpoint: str, settings: Mapping[str, Any]) -> None:
        self._folder = unfinished_folder(checkpoint)
        self._settings = dict(settings)
        self.place, names = self._load()
        with file_errors(self._folder, "cannot be made"):
            os.makedirs(self._folder, exist_ok=True)
        remove_others(os.path.join(glob.escape(self._folder), "*"), {_STATE, *names})
        self.runs = Runs(self._folder, names)

    def _load(self) -> tuple[Place, list[str]]:
        path = os.path.join(self._folder, _STATE)
        if not os.path.exists(path):
            return Place(), []
        with file_errors(path, "cannot be read"), open(path, "rb") as stream:
            text = stream.read()
        try:
            state = json.loads(text)
            tasks, pieces, size = map(int, state["place"])
            names, settings = list(map(str, state["runs"])), dict(state["settings"])
        except (ValueError, KeyError, TypeError):
            raise FormatError(f"{path}: damaged; delete the folder {self._folder} to count from the start", 0) from None
        for name in sorted(self._settings.keys() | settings.keys()):
            if settings.get(name) != self._settings.get(name):
                raise ArgumentError(
                    f"{self._folder}: these counts belong to another training run: its {name} differs. Delete the"
                    " folder to start over"
                )
        return Place(tasks, pieces, size), names

    def save(self, place: Place) -> None:
        """Saves that the runs have all words before this place."""
        state = {"settings": self._settings, "place": place, "runs": self.runs.names}
        text = json.dumps(state, sort_keys=True, ensure_ascii=False).encode()
        _binding.write_file(os.path.join(self._folder, _STATE), text)
        self.place = place


def remove_saved(checkpoint: str) -> None:
    """Removes the folder of a checkpoint, which has all counts now."""
    remove_folder(unfinished_folder(checkpoint))


def turns(items: Iterable[Item], saved: SavedCounting | None) -> Iterator[Iterator[Item]]:
    """Yields the items in turns of SECONDS, so that the caller can save between two turns; in one turn if nothing is to
    be saved. The caller must process all items of a turn before it takes the next one."""
    rest = iter(items)
    if saved is None:
        yield rest
        return
    for first in rest:
        yield chain((first,), _until(time.monotonic() + SECONDS, rest))


def _until(due: float, items: Iterator[Item]) -> Iterator[Item]:
    while time.monotonic() < due:
        try:
            yield next(items)
        except StopIteration:
            return
