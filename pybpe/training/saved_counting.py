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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from .. import _binding
from ..errors import ArgumentError, FormatError, file_errors
from ..reading.input_file import InputFile
from ..reading.ranges import Piece, Range, Source
from ..reading.sample import Sample
from ..support.output_files import remove_folder, remove_others, unfinished_folder
from .runs import Runs

SECONDS = 30.0  # between two saves
_STATE = "state.json"

Item = TypeVar("Item")


class Place(NamedTuple):
    """A place in a corpus: all words before it have been counted.

    Attributes:
        file: the number of files before this one. 0 in a sample, whose pieces come from all files.
        offset: the number of bytes of the file's text, or of the sample, before the place.
        size: the number of bytes of text before the place.
    """

    file: int = 0
    offset: int = 0
    size: int = 0


class PlacedPiece(NamedTuple):
    """A piece, and the place after it."""

    piece: Piece
    end: Place = Place()


class PlacedRange(NamedTuple):
    """A range that a worker counts, and the place after it."""

    part: Range
    end: Place


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
            file, offset, size = map(int, state["place"])
            names, settings = list(map(str, state["runs"])), dict(state["settings"])
        except (ValueError, KeyError, TypeError):
            raise FormatError(f"{path}: damaged; delete the folder {self._folder} to count from the start", 0) from None
        for name in sorted(self._settings.keys() | settings.keys()):
            if settings.get(name) != self._settings.get(name):
                raise ArgumentError(
                    f"{self._folder}: these counts belong to another training run: its {name} differs. Delete the"
                    " folder to start over"
                )
        return Place(file, offset, size), names

    def save(self, place: Place) -> None:
        """Saves that the runs have all words before this place."""
        state = {"settings": self._settings, "place": place, "runs": self.runs.names}
        text = json.dumps(state, sort_keys=True, ensure_ascii=False).encode()
        _binding.write_file(os.path.join(self._folder, _STATE), text)
        self.place = place


def remove_saved(checkpoint: str) -> None:
    """Removes the folder of a checkpoint, which has all counts now."""
    remove_folder(unfinished_folder(checkpoint))


def file_pieces(source: Source, files: Sequence[InputFile], start: Place) -> Iterator[PlacedPiece]:
    """Yields the pieces of files from a place on."""
    size = start.size
    for number, file in enumerate(files):
        if number < start.file:
            continue
        for piece in source.pieces(Range(file, start.offset if number == start.file else 0)):
            size += len(piece.data)
            yield PlacedPiece(piece, Place(number, piece.offset + len(piece.data), size))


def file_ranges(source: Source, files: Sequence[InputFile], size: int, start: Place) -> Iterator[PlacedRange]:
    """Yields files in ranges of about `size` bytes from a place on. The place after a range need not be a safe cut: the
    reader of the next range finds the first one."""
    seen = start.size
    for number, file in enumerate(files):
        if number < start.file:
            continue
        for part in source.ranges([file], size, start.offset if number == start.file else 0):
            seen += (part.end or file.known_size or part.start) - part.start
            yield PlacedRange(part, Place(number + 1, 0, seen) if part.end is None else Place(number, part.end, seen))


def sample_pieces(source: Source, files: Sequence[InputFile], sample: Sample, start: Place) -> Iterator[PlacedPiece]:
    """Yields the pieces of a sample from a place on. Reads those before it too, since they decide what follows."""
    size = 0
    for piece in source.sample(files, sample):
        skipped = min(max(start.offset - size, 0), len(piece.data))
        size += len(piece.data)
        if skipped < len(piece.data):
            rest = piece._replace(data=piece.data[skipped:], offset=piece.offset + skipped)
            yield PlacedPiece(rest, Place(0, size, size))


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
