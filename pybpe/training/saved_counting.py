"""What a training run with a checkpoint saves, so that it resumes after it is killed, with an identical result: the
words that it has counted. To merge takes less time than to count, and to repeat the merges that were made takes half of
the time of making them, so a run that is killed while it merges begins to merge again.

The checkpoint is a folder. In the hidden folder that all unfinished outputs have, there are sorted runs of words
(counts_file.py), and a file that names the runs which together have exactly the words of the corpus up to a place:

    tok.checkpoint/.pybpe-unfinished/state.json      the settings of the run, the place, and the names of the runs
                                     run000000-1f3a09c2.counts, run000001-1f3a09c2.counts, ...

The counter writes runs first and then replaces state.json. If the process dies between the two, the next process
removes the runs that state.json does not name. The names of runs differ between processes, so a process that a user has
interrupted, and that is still writing, cannot change a run of the next one.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from .. import _binding
from .._version import __version__
from ..arguments import whole_number
from ..errors import ArgumentError, FormatError, file_errors
from ..support.locking import FOLDER, LOCK, only_writer
from ..support.output_files import remove_others
from .counts_file import Runs

SECONDS = 30.0  # between two saves
_STATE = "state.json"

Item = TypeVar("Item")


class Place(NamedTuple):
    """A place in a corpus: all words before it have been counted."""

    tasks: int = 0  # the number of tasks before the one in which it is
    pieces: int = 0  # the number of pieces of this task before it
    size: int = 0  # the number of bytes of all pieces before it


class SavedCounting:
    """The saved part of the counts of one run: the `runs` of words so far, and the `place` where to resume. `folder` is
    the hidden folder of the checkpoint, which exists; `settings` are everything that the counts depend on, in types
    that JSON can hold. Raises ArgumentError if the folder belongs to a run with other settings."""

    def __init__(self, folder: str, settings: Mapping[str, Any]) -> None:
        self._folder = folder
        self._settings = dict(settings)
        self.place, names = self._load()
        self.remove_except({_STATE, *names})
        self.runs = Runs(self._folder, names)

    def _load(self) -> tuple[Place, list[str]]:
        path = os.path.join(self._folder, _STATE)
        if not os.path.exists(path):
            return Place(), []
        with file_errors(path, "cannot be read"), open(path, "rb") as stream:
            text = stream.read()
        try:
            state = json.loads(text)
            tasks, pieces, size = (whole_number("place", number, 0, sys.maxsize) for number in state["place"])
            names, settings = list(map(str, state["runs"])), dict(state["settings"])
        except (ValueError, KeyError, TypeError, RecursionError):
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
        text = json.dumps(state, sort_keys=True).encode()
        _binding.write_file(os.path.join(self._folder, _STATE), text)
        self.place = place

    def remove_except(self, names: Collection[str]) -> None:
        """Removes all files except these."""
        remove_others(self._folder, "*", {LOCK, *names})


@contextmanager
def resumable(checkpoint: _binding.PathLike, settings: Mapping[str, Any]) -> Iterator[SavedCounting]:
    """Yields what earlier runs with a checkpoint have saved, and holds the lock of its folder. Removes the checkpoint
    at the end of the block, unless the block raises. `settings` is as in SavedCounting."""
    path = _binding.path_text(checkpoint)
    with only_writer(path, temporary=True):
        # The version decides the tasks of a corpus.
        saved = SavedCounting(os.path.join(path, FOLDER), {**settings, "version": __version__})
        yield saved
        saved.remove_except(())


def turns(items: Iterator[Item]) -> Iterator[Iterator[Item]]:
    """Yields the items in turns of SECONDS, so that the caller can save between two turns. The caller must process all
    items of a turn before it takes the next one."""
    for first in items:
        yield chain((first,), _until(time.monotonic() + SECONDS, items))


def _until(due: float, items: Iterator[Item]) -> Iterator[Item]:
    while time.monotonic() < due:
        try:
            yield next(items)
        except StopIteration:
            return
