"""parts.log: what a stopped or killed run has done, so that the same command resumes.

A hidden folder inside the output folder holds this log, which only grows, and the tokens, which a store keeps: in a
spool for each split (append_store.py), or in files that the workers of an executor write (shared_store.py). The log's
first line describes the run. Each further line ends a part, the work of one task, or of several that a worker did at
once:

    {"tasks": 7, "plan": "9f..", "skipped": {..}, "splits": [[tokens, documents, text bytes, in a document], ..], ..}

The numbers count from the beginning of the run, so one line is enough to resume after it.
Each line begins with a checksum of itself and the lines before it; what follows the first damaged line is dropped.

Lines are written at checkpoints, after the tokens are on disk. So whenever the process dies, the log counts only tokens
that are on disk. Everything later is made again from the same tasks, byte for byte.

`plan` is a hash of all tasks up to there: files with their sizes and times, ranges, splits. Equal tasks give equal
tokens. So a run keeps the longest beginning whose hashes are those of its own tasks, and cuts off the rest: if an input
has changed, because a bad record was fixed, only what comes after it is made again.

A run that resumes with other inputs, or cuts off parts, adds a line that identifies its inputs. If they are the same at
the next attempt, it need not plan the tasks in order to compare hashes.

The last line says that all tasks are done, and of which shards each split consists. Then the store makes the shards,
and gives them their names.

The log also names the files that earlier runs published. Programs find shards by a pattern, so they would read them
together with this run's. They are removed just before this run publishes its first shard; until then the output folder
is unchanged.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, BinaryIO, NamedTuple, Protocol

from .. import _binding
from ..errors import file_errors
from ..reading.bad_records import Seen, SkipState
from ..reading.text_encoding import Doubts
from ..support.locking import LOCK, STAGED
from ..support.output_files import give_name, make_folder, remove_entry
from ..support.run_options import RunOptions
from .layout import Layout
from .manifest import Facts, Records, is_plain_name
from .output_folder import LOG_NAME, files_of_manifest, stale_tokenizers

LIST_NAME = "skipped.jsonl"
_VERSION = 1
_CHECKSUM_BYTES = 8  # of a line: hexadecimal digits


class Reached(NamedTuple):
    """How far a split has come.

    Attributes:
        tokens, documents, text_bytes: how many there are.
        in_document: see EotPlacer.is_open.
    """

    tokens: int = 0
    documents: int = 0
    text_bytes: int = 0
    in_document: bool = False


class Part(NamedTuple):
    """A line of the log.

    Attributes:
        tasks: the number of finished tasks.
        plan: their hash: see `hashed_tasks`.
        skipped: the fields of a SkipState: the records so far, bad ones included.
        splits: how far each split has come.
        kept: what the store must know to find the tokens, as JSON values.
    """

    tasks: int
    plan: str
    skipped: Mapping[str, Any]
    splits: Sequence[Reached]
    kept: Any = None


class Step(NamedTuple):
    """Some finished work.

    Attributes:
        size, doubt, seen: as in Result.
        tasks: how many tasks end with it, if any do.
        plan: as in Part.
        splits, kept: as in Part; splits is None if no task ends.
    """

    size: int
    doubt: str | None
    seen: Sequence[Seen]
    tasks: int
    plan: str
    splits: Sequence[Reached] | None
    kept: Any = None


class Store(Protocol):
    """Where a run keeps its tokens until they are shards."""

    @property
    def names(self) -> Sequence[str]:
        """The names of the splits."""

    def note(self, part: Part) -> None:
        """Notes a part that is done. All parts are noted, in order, those of an earlier run, too."""

    def has(self, part: Part) -> bool:
        """Returns whether the tokens up to a part are still there. Another program may have removed some."""

    def can_assemble(self, shards: Sequence[Sequence[Facts]]) -> bool:
        """Returns whether an earlier run has left what `make` and `publish` need."""

    def steps(self, work: Any, last: Part, options: RunOptions, doubts: Doubts) -> Iterator[Step]:
        """Does the work after the last part."""

    @property
    def written_bytes(self) -> int:
        """The size of all tokens so far."""

    def spare_bytes(self, shards: Sequence[Sequence[Facts]]) -> int:
        """Returns the most disk space that `make` needs beyond the tokens."""

    def sync(self) -> None:
        """Writes all tokens to disk."""

    def shards(self, last: Part) -> list[list[Facts]]:
        """Returns the facts of each split's shards. Raises ShardTooSmallError, LimitError."""

    def make(self, shards: Sequence[Sequence[Facts]], options: RunOptions) -> Records:
        """Makes the shards. If killed, resumes when called again. Returns their records by split."""

    def publish(self, shards: Sequence[Sequence[Facts]]) -> None:
        """Gives the shards their names. If killed, resumes when called again."""

    def close(self) -> None:
        """Closes all files."""


class LoggedTasks(NamedTuple):
    """The tasks of a run, if it can resume after some of its inputs have changed.

    Attributes:
        skips: whether bad records are skipped. A run that does not skip them cannot resume after one was skipped.
        identity: a hash of what distinguishes the inputs from others. If it is the same, so are the tasks.
        hashes: yields the hash of the first task, of the first two tasks, and so on: see `hashed_tasks`.
    """

    skips: bool
    identity: str
    hashes: Callable[[], Iterable[str]]


class PartsLog:
    """The log of an output folder.

    Args:
        layout: where the files go.
        identity: a hash of everything that the result depends on, except the inputs, if `planned` is given. The files
            of a run with another identity are dropped.
        store: where the tokens are.
        resume: False drops the files of any run.
        planned: the tasks, if the run can resume after some of its inputs have changed.

    Attributes:
        folder: the hidden folder.
        store: as given.
        last: the last part.
        shards: the facts of each split's shards if all tasks are done, otherwise None.
        older: names of the files that earlier runs, finished or not, left in the output folder.
    """

    def __init__(
        self,
        layout: Layout,
        identity: str,
        store: Store,
        resume: bool,
        planned: LoggedTasks | None = None,
    ) -> None:
        self.folder = make_folder(layout.unfinished)
        self._path = os.path.join(self.folder, LOG_NAME)
        self.store, self._planned = store, planned
        self.last = Part(0, "", vars(SkipState()), [Reached()] * len(store.names))
        self.shards: list[list[Facts]] | None = None
        found = _LogFile(self._path)
        if not (resume and found.identity == identity and self._resumes(found)):
            there = files_of_manifest(layout.folder) + stale_tokenizers(layout.folder, layout.tok)
            self.older = sorted({*found.older, *found.files, *there})
            first = {"log": _VERSION, "identity": identity, "older": self.older, "inputs": self._inputs}
            header, self._checksum = _line(first, 0)
            _binding.write_file(self._path, header)
            self._clean()
        self.saved_tasks = self.last.tasks
        self._waiting: list[Part] = []
        with file_errors(self._path, "cannot be written"):
            self._stream = open(self._path, "ab", buffering=0)
        if self.last.tasks and (found.inputs != self._inputs or self.last.tasks != found.parts[-1].tasks):
            self._append([{"inputs": self._inputs}])

    @property
    def _inputs(self) -> str:
        return self._planned.identity if self._planned is not None else ""

    def _resumes(self, found: _LogFile) -> bool:
        """Takes over what is still right. Returns whether there is anything."""
        if found.shards is not None:
            if self._equal(found) <= len(found.parts) or not self._can_assemble(found, found.shards):
                return False
            count, self.shards = len(found.parts), found.shards
        else:
            count = min(self._equal(found), len(found.parts))
            while count and not self._has(found.parts[count - 1]):
                count -= 1
        if not count and self.shards is None:
            return False
        self.older = found.older
        for part in found.parts[:count]:
            self._note(part)
        size, self._checksum = found.ends[count] if self.shards is None else found.end
        with file_errors(self._path, "cannot be shortened"):
            os.truncate(self._path, size)
        return True

    def _equal(self, found: _LogFile) -> int:
        """Returns how many of the first parts are right for this run's tasks; one more if no task follows them."""
        if self._planned is None:
            return len(found.parts) + 1
        skipped = next((n for n, part in enumerate(found.parts) if part.skipped["skipped"]), len(found.parts) + 1)
        most = len(found.parts) + 1 if self._planned.skips else skipped
        return most if found.inputs == self._inputs else min(most, self._equal_tasks(found, self._planned))

    def _equal_tasks(self, found: _LogFile, planned: LoggedTasks) -> int:
        hashes = chain([""], planned.hashes())
        number, digest = 0, next(hashes, None)
        for count, part in enumerate(found.parts):
            while number < part.tasks and digest is not None:
                number, digest = number + 1, next(hashes, None)
            if digest != part.plan:
                return count
        return len(found.parts) + (next(hashes, None) is None)

    def _has(self, part: Part) -> bool:
        return has_list(self.folder, part.skipped["bytes"]) and self.store.has(part)

    def _can_assemble(self, found: _LogFile, shards: Sequence[Sequence[Facts]]) -> bool:
        has_skipped = not found.parts or has_list(self.folder, found.parts[-1].skipped["bytes"])
        return has_skipped and self.store.can_assemble(shards)

    # ------------------------------------------------------------------------------------------------
    # Writing

    def _note(self, part: Part) -> None:
        self.last = part
        self.store.note(part)

    def add(self, part: Part) -> None:
        """Adds a part, which `save` writes."""
        self._note(part)
        self._waiting.append(part)

    def save(self) -> None:
        """Writes all parts to disk. Their tokens must be there already."""
        self._append([part._asdict() for part in self._waiting])
        self._waiting, self.saved_tasks = [], self.last.tasks

    def complete(self, shards: list[list[Facts]], files: Sequence[str]) -> None:
        """Notes that all tasks are done.

        Args:
            shards: of each split.
            files: the names of the files that are about to be published.
        """
        facts = [[[one.tokens, one.documents, one.text_bytes] for one in some] for some in shards]
        self._append([{"shards": facts, "files": list(files)}])
        self.shards = shards

    def _append(self, records: Iterable[Mapping[str, Any]]) -> None:
        data, checksum = [], self._checksum
        for record in records:
            line, checksum = _line(record, checksum)
            data.append(line)
        with file_errors(self._path, "cannot be written"):
            view = memoryview(b"".join(data))
            while view:
                view = view[self._stream.write(view) :]
            os.fsync(self._stream.fileno())
        self._checksum = checksum

    def close(self) -> None:
        """Closes the file."""
        with file_errors(self._path, "cannot be written"):
            self._stream.close()

    def remove(self) -> None:
        """Ends the run, finished or given up. The log is removed last, so that a kill in between changes nothing."""
        self.close()
        with file_errors(self.folder, "cannot be removed"):
            for name in sorted(os.listdir(self.folder), key=lambda name: name == LOG_NAME):
                if name != LOCK:
                    remove_entry(os.path.join(self.folder, name))

    def _clean(self) -> None:
        """Removes an earlier run's files, except staged inputs and tokenizers, which may belong to this run."""
        with file_errors(self.folder, "cannot be emptied"):
            for name in os.listdir(self.folder):
                if name != LOG_NAME and not name.startswith(STAGED):
                    remove_entry(os.path.join(self.folder, name))


class _LogFile:
    """What a log on disk says, up to its first damaged line.

    Attributes:
        identity, older, inputs: as the run wrote them; "" or nothing if there is no log.
        parts: the parts.
        shards, files: what `complete` wrote; None and nothing if the run has not come so far.
        ends: where the first line ends, and each part, with the checksum there; `end` is that of the last line.
    """

    def __init__(self, path: str) -> None:
        self._drop()
        try:
            with open(path, "rb") as stream:
                self._read(stream.read())
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            self._drop()

    def _drop(self) -> None:
        self.identity, self.inputs, self.older = "", "", list[str]()
        self.parts: list[Part] = []
        self.shards: list[list[Facts]] | None = None
        self.files: list[str] = []
        self.ends: list[tuple[int, int]] = []
        self.end = (0, 0)

    def _read(self, data: bytes) -> None:
        checksum = size = 0
        for line in data.split(b"\n")[:-1]:
            checksum = zlib.crc32(line[_CHECKSUM_BYTES:], checksum)
            if line[:_CHECKSUM_BYTES] != b"%08x" % checksum:
                break
            size += len(line) + 1
            self._take(json.loads(line[_CHECKSUM_BYTES:]), (size, checksum))
        if not all(map(is_plain_name, [*self.older, *self.files])):
            raise ValueError

    def _take(self, record: dict[str, Any], end: tuple[int, int]) -> None:
        self.end = end
        self.inputs = record.get("inputs", self.inputs)
        if not self.ends:
            if record["log"] != _VERSION:
                raise ValueError
            self.identity, self.older = record["identity"], record["older"]
            self.ends.append(end)
        elif "shards" in record:
            self.files = record["files"]
            self.shards = [[Facts(*facts) for facts in some] for some in record["shards"]]
        elif "tasks" in record:
            self.ends.append(end)
            splits = [Reached(*reached) for reached in record["splits"]]
            skipped = vars(SkipState(**record["skipped"]))
            self.parts.append(Part(record["tasks"], record["plan"], skipped, splits, record["kept"]))


def _line(record: Mapping[str, Any], checksum: int) -> tuple[bytes, int]:
    """Returns the line of a record, and its checksum. `checksum` is that of the line before it."""
    text = b" " + json.dumps(record).encode()
    checksum = zlib.crc32(text, checksum)
    return b"%08x%s\n" % (checksum, text), checksum


# ----------------------------------------------------------------------------------------------------
# The list of skipped records


class SkipList:
    """The list of records that a run skipped. Until the run ends, it is in the hidden folder, and only grows.

    Args:
        folder: the hidden folder.
        size: the number of bytes of an existing list that count; anything after them is dropped.
    """

    def __init__(self, folder: str, size: int) -> None:
        self._path = os.path.join(folder, LIST_NAME)
        self._size = size
        self._stream: BinaryIO | None = None

    def write(self, lines: bytes) -> None:
        """Appends lines."""
        with file_errors(self._path, "cannot be written"):
            if self._stream is None:
                self._stream = open(self._path, "ab", buffering=0)
                self._stream.truncate(self._size)
            view = memoryview(lines)
            while view:
                view = view[self._stream.write(view) :]

    def sync(self) -> None:
        """Syncs the lines to disk."""
        if self._stream is not None:
            with file_errors(self._path, "cannot be written"):
                os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Closes the file."""
        if self._stream is not None:
            with file_errors(self._path, "cannot be written"):
                self._stream.close()

    def publish(self, folder: str) -> tuple[str, bytes]:
        """Copies the list into a folder. Returns the path of the copy, and its first line. After a kill, it can be
        copied again."""
        copy, path = f"{self._path}.copy", os.path.join(folder, LIST_NAME)
        self.write(b"")
        with file_errors(copy, "cannot be written"):
            shutil.copyfile(self._path, copy)
        give_name(copy, path)
        with file_errors(path, "cannot be read"), open(path, "rb") as stream:
            return path, stream.readline()


def has_list(folder: str, size: int) -> bool:
    """Returns whether the list in a hidden folder has at least so many bytes."""
    try:
        return not size or os.path.getsize(os.path.join(folder, LIST_NAME)) >= size
    except OSError:
        return False
