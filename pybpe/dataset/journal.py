"""The state that a stopped or killed run leaves, so that the same command resumes.

A hidden folder inside the output folder holds the spools of unpublished shards, and journal.jsonl, a file that only
grows: a line for the run, and a line for each checkpoint, which says how many tasks are done and what has changed in
the state of each split. So a checkpoint costs the same however many shards there are. Each line begins with a checksum
of itself and the lines before it. At a checkpoint, in this order,

1. the spools are synced, so the tokens that the journal counts are on disk;
2. a line is appended to the journal, and synced. If the process dies meanwhile, the line is incomplete, and a run that
   resumes drops it;
3. closed shards are published. A kill in between leaves shards that are in the journal but have no name
   yet; a run that resumes first gives them their names.

So whenever the process dies, the journal counts only tokens that are on disk. Everything later is made again from the
same tasks, byte for byte. The folder is removed at the end.

If inputs have changed, because a file with a bad record was fixed, the run returns to the last checkpoint before the
first task that differs. Each line of a checkpoint has a hash of all tasks up to there (files with their sizes and
times, ranges, splits), and equal tasks give equal tokens. What the spools no longer hold, because it is in a published
shard, cannot be undone; then the run returns to an earlier checkpoint, or begins again.

The journal also names the files that earlier runs published and this run has not replaced yet. Programs find shards by
a pattern, so they would read them together with this run's. They are removed before this run publishes its first shard;
until then the folder is unchanged.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

from .. import _binding
from ..errors import ArgumentError, FileError, FormatError, UnsupportedError, file_errors
from ..reading.bad_records import SkipState
from ..reading.splits import SPLIT_NAMES
from ..support.locking import FOLDER, LOCK, STAGED
from ..support.output_files import make_folder
from ..support.platform import sync_folder
from ..tokenizer import Tokenizer
from .described import check_tokenizer
from .manifest import Manifest, is_plain_name, manifest_name
from .skip_list import NAME as LIST
from .skip_list import has_list
from .split_writer import Layout, Saved, SplitState, are_published, has_spools, spool_names

NAME = "journal.jsonl"
TOKENIZER_NAMES = ("tokenizer.json", "tokenizer.bin")  # what `prepare` writes next to token files
_GONE = ".removed"
_VERSION = 2
_CHECKSUM_BYTES = 8  # of a line: hexadecimal digits


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
    check_tokenizer(folder, manifest.tokenizer.get("fingerprint"), tok)
    return manifest


class Corpus(NamedTuple):
    """The inputs of a run, if it can resume after some of them have changed.

    Attributes:
        skips: whether bad records are skipped. A run that does not skip them cannot resume after one was skipped.
        identity: a hash of what distinguishes them from others with the same names.
        hashes: yields the hash of the first task, of the first two tasks, and so on: see `hashed_tasks`.
    """

    skips: bool
    identity: str
    hashes: Callable[[], Iterable[str]]


class Journal:
    """The journal of an output folder.

    Args:
        layout: where the files go.
        identity: a hash of everything that the result depends on, except the inputs, if `corpus` is given. The files
            of a run with another identity are dropped.
        splits: the number of splits.
        resume: False drops the files of any run.
        corpus: the inputs, if the run can resume after some of them have changed.
        area: the name of a folder next to the journal that a run keeps even if it begins again.

    Attributes:
        folder: the hidden folder.
        area: the path of the argument.
        tasks: the number of finished tasks.
        plan: their hash: see `hashed_tasks`.
        states: the state of each split.
        skipped: the records so far, bad ones included.
        older: names of the files that earlier runs, finished or not, left in the output folder.
    """

    def __init__(
        self,
        layout: Layout,
        identity: str,
        splits: int,
        resume: bool,
        corpus: Corpus | None = None,
        area: str | None = None,
    ) -> None:
        self.folder = make_folder(os.path.join(layout.folder, FOLDER))
        self.area = None if area is None else os.path.join(self.folder, area)
        self._path = os.path.join(self.folder, NAME)
        self._layout, self._identity, self._corpus = layout, identity, corpus
        self.tasks, self.plan, self.skipped = 0, "", SkipState()
        self.states = [SplitState() for _ in range(splits)]
        self.older: list[str] = []
        found = _Found(self._path)
        if not (resume and found.identity == identity and self._resume(found)):
            self.tasks, self.plan, self.skipped = 0, "", SkipState()
            self.states = [SplitState() for _ in range(splits)]
            there = files_of_manifest(layout.folder) + stale_tokenizers(layout.folder, layout.tok)
            self.older = sorted({*found.older, *found.files, *there})
            self._write_header([])
            self._clean({area} if area is not None and resume else ())
        self._saved = [Saved.of(state) for state in self.states]
        with file_errors(self._path, "cannot be written"):
            self._stream = open(self._path, "ab", buffering=0)

    def _resume(self, found: _Found) -> bool:
        """Takes over the state of the last checkpoint that is still right. Returns whether there is one."""
        same = self._corpus is None or found.inputs == self._corpus.identity
        last = len(found.lines) if same else self._last_equal(found)
        if self._corpus is not None and not self._corpus.skips:
            last = next((n for n, line in enumerate(found.lines[:last]) if line["skipped"]["skipped"]), last)
        count = self._last_whole(found, last, same)
        if count is None or not (same or count):
            return False
        self.tasks, self.plan, self.skipped, self.states, begun = found.state(count, len(self.states))
        if not all(are_published(self._layout, state) for state in self.states):
            return False
        if not has_list(self.folder, self.skipped.bytes):
            return False
        self.older = sorted({*([] if begun else found.older), *found.files_after(count)})
        if same and count == len(found.lines):
            with file_errors(self._path, "cannot be shortened"):
                os.truncate(self._path, found.size)
            self._checksum = found.checksum
        else:
            # The files published later are removed when the run begins, as those of earlier runs.
            kept = [*found.lines[: count - 1], {**found.lines[count - 1], "begun": not self.older}] if count else []
            self._write_header(kept)
            self._clean({*spool_names(self._layout, self.states), LIST})
        return True

    def _last_whole(self, found: _Found, last: int, same: bool) -> int | None:
        """Returns the number of the last checkpoint, up to number `last`, whose tokens are still in the spools. If the
        inputs have changed, the splits must not be finished, because other tasks follow."""

        def is_whole(states: Sequence[SplitState]) -> bool:
            pairs = zip(SPLIT_NAMES, states)
            whole = all(has_spools(self._layout, split, state) for split, state in pairs)
            return whole and (same or not any(state.finished for state in states))

        if is_whole(found.state(last, len(self.states)).states):
            return last
        replayed = found.replay(last, len(self.states))
        return max((number for number, states in enumerate(replayed) if is_whole(states)), default=None)

    def _last_equal(self, found: _Found) -> int:
        """Returns the number of checkpoints whose tasks are the first ones of this run, too."""
        assert self._corpus is not None
        hashes = chain([""], self._corpus.hashes())
        number, digest = 0, next(hashes, None)
        for count, line in enumerate(found.lines):
            while number < line["tasks"] and digest is not None:
                number, digest = number + 1, next(hashes, None)
            if digest != line["plan"]:
                return count
        return len(found.lines)

    def _write_header(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Replaces the journal by one with some of its checkpoints."""
        inputs = self._corpus.identity if self._corpus is not None else ""
        header = {"journal": _VERSION, "identity": self._identity, "inputs": inputs, "older": self.older}
        data, self._checksum = b"", 0
        for line in (header, *lines):
            part, self._checksum = _line(line, self._checksum)
            data += part
        _binding.write_file(self._path, data)

    def save(self, tasks: int, plan: str, files: Sequence[str]) -> None:
        """Appends a checkpoint.

        Args:
            tasks: the number of finished tasks.
            plan: their hash: see `hashed_tasks`.
            files: the names of the files that are published, or are about to be, since the checkpoint before.
        """
        states = [state.since(saved) for state, saved in zip(self.states, self._saved)]
        record = {"tasks": tasks, "plan": plan, "skipped": vars(self.skipped), "states": states}
        record |= {"files": list(files), "begun": not self.older}
        data, checksum = _line(record, self._checksum)
        with file_errors(self._path, "cannot be written"):
            view = memoryview(data)
            while view:
                view = view[self._stream.write(view) :]
            os.fsync(self._stream.fileno())
        self.tasks, self.plan, self._checksum = tasks, plan, checksum
        self._saved = [Saved.of(state) for state in self.states]

    def close(self) -> None:
        """Closes the file."""
        with file_errors(self._path, "cannot be written"):
            self._stream.close()

    def remove(self) -> None:
        """Ends the run, finished or given up. The journal is removed last, so that a kill in between changes
        nothing."""
        self.close()
        with file_errors(self.folder, "cannot be removed"):
            for name in sorted(os.listdir(self.folder), key=lambda name: name == NAME):
                if name != LOCK:
                    _remove(os.path.join(self.folder, name))

    def _clean(self, keep: Collection[str]) -> None:
        """Removes an earlier run's files, except staged inputs and tokenizers, which may belong to this run, and the
        names in `keep`."""
        with file_errors(self.folder, "cannot be emptied"):
            for name in os.listdir(self.folder):
                if name != NAME and name not in keep and not name.startswith(STAGED):
                    _remove(os.path.join(self.folder, name))


def _remove(path: str) -> None:
    """Removes a file, or a folder with all that is in it. A worker that was given up may still write to the folder; it
    cannot if the folder's name is gone."""
    if not os.path.isdir(path):
        with suppress(FileNotFoundError):  # what a kill left of a folder is removed with the folder
            os.unlink(path)
        return
    gone = path.removesuffix(_GONE) + _GONE
    if gone != path:
        shutil.rmtree(gone, ignore_errors=True)  # left by a kill
        os.rename(path, gone)
        sync_folder(os.path.dirname(path))
    shutil.rmtree(gone)


class _Found:
    """What a journal on disk says, up to its first damaged line.

    Attributes:
        identity, inputs, older: as the run wrote them; "" or nothing if there is no journal.
        lines: the checkpoints.
        size: the number of bytes that are right.
        checksum: that of the last line.
    """

    def __init__(self, path: str) -> None:
        self.identity, self.inputs, self.older = "", "", list[str]()
        self.lines: list[dict[str, Any]] = []
        self.size = self.checksum = 0
        try:
            with open(path, "rb") as stream:
                self._read(stream.read())
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            self.identity, self.older, self.lines = "", [], []

    def _read(self, data: bytes) -> None:
        found: list[dict[str, Any]] = []
        for line in data.split(b"\n")[:-1]:
            checksum = zlib.crc32(line[_CHECKSUM_BYTES:], self.checksum)
            if line[:_CHECKSUM_BYTES] != b"%08x" % checksum:
                break
            found.append(json.loads(line[_CHECKSUM_BYTES:]))
            self.checksum, self.size = checksum, self.size + len(line) + 1
        header, self.lines = found[0], found[1:]
        names = [name for line in found for name in line["files" if "files" in line else "older"]]
        if header["journal"] != _VERSION or not all(map(is_plain_name, names)):
            raise ValueError
        self.identity, self.inputs, self.older = header["identity"], header["inputs"], header["older"]

    @property
    def files(self) -> list[str]:
        """The names of all files that the run has published."""
        return self.files_after(0)

    def files_after(self, count: int) -> list[str]:
        """Returns the names of the files that the run published with the checkpoints after the first `count`."""
        return [name for line in self.lines[count:] for name in line["files"]]

    def replay(self, count: int, splits: int) -> Iterator[list[SplitState]]:
        """Yields the state of each split at the beginning, and after each of the first `count` checkpoints. These are
        the same objects every time."""
        states = [SplitState() for _ in range(splits)]
        yield states
        for line in self.lines[:count]:
            for state, change in zip(states, line["states"]):
                state.apply(change)
            yield states

    def state(self, count: int, splits: int) -> _Checkpoint:
        """Returns the state after the first `count` checkpoints."""
        (states,) = deque(self.replay(count, splits), maxlen=1)
        last: dict[str, Any] = {"tasks": 0, "plan": "", "skipped": {}, "begun": False}
        if count:
            last = self.lines[count - 1]
        return _Checkpoint(last["tasks"], last["plan"], SkipState(**last["skipped"]), states, last["begun"])


class _Checkpoint(NamedTuple):
    """The state at a checkpoint: the number of finished tasks, their hash, the records so far, the state of each split,
    and whether the files of earlier runs were removed already."""

    tasks: int
    plan: str
    skipped: SkipState
    states: list[SplitState]
    begun: bool


def _line(record: Mapping[str, Any], checksum: int) -> tuple[bytes, int]:
    """Returns the line of a record, and its checksum. `checksum` is that of the line before it."""
    text = b" " + json.dumps(record).encode()
    checksum = zlib.crc32(text, checksum)
    return b"%08x%s\n" % (checksum, text), checksum


def files_of_manifest(folder: str) -> list[str]:
    """Returns the names of the files that a finished run wrote, its manifest included."""
    try:
        return [manifest_name(folder), *Manifest.load(folder).file_names]
    except (FileError, FormatError):
        return []


def stale_tokenizers(folder: str, tok: Tokenizer | None) -> list[str]:
    """Returns the names of the tokenizer's files in a folder, unless they hold this tokenizer: next to its token files,
    they would decode them to another text."""
    there = [name for name in TOKENIZER_NAMES if os.path.exists(os.path.join(folder, name))]
    try:
        if there and tok is not None and Tokenizer.from_file(os.path.join(folder, there[0])).model == tok.model:
            return []
    except (FileError, FormatError, UnsupportedError):
        pass
    return there
