"""parts.log: what a stopped or killed run has done, so that the same command resumes.

A hidden folder inside the output folder holds this log, which only grows, and the tokens, which a store keeps: in one
file per split (store.py), or in files that the workers of an executor write (shared_store.py). The log's
first line describes the run. Each further line ends a part, the work of one task, or of several that a worker did at
once:

    {"tasks": 7, "plan": "9f..", "skipped": {..}, "splits": [[tokens, documents, text bytes, in a document], ..], ..}

The numbers count from the beginning of the run, so one line is enough to resume after it. The lines also have the list
of the records that the run skipped.
Each line begins with a checksum of itself and the lines before it; what follows the first damaged line is dropped.

Lines are written at checkpoints, after the tokens are on disk. So whenever the process dies, the log counts only tokens
that are on disk. Everything later is made again from the same tasks, byte for byte.

`plan` is a hash of all tasks up to there: files with their sizes and times, ranges, splits. Equal tasks give equal
tokens. So a run keeps the longest beginning that has the hashes of its own tasks, and cuts off the rest: if an input
has changed, because a bad record was fixed, only what comes after it is made again.

A run that resumes with other inputs, or cuts off parts, adds a line that identifies its inputs. If they are the same at
the next attempt, it need not plan the tasks in order to compare hashes.

The last line says that all tasks are done, and which shards each split has. Then the store makes the shards,
and gives them their names.

The log also names the files that earlier runs published. Programs find shards by a pattern, so they would read them
together with this run's. They are removed just before this run publishes its first shard; until then the output folder
is unchanged.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO, NamedTuple

from .. import _binding
from ..errors import file_errors
from ..reading.bad_records import SkipState
from .finished import LOG_NAME
from .manifest import ShardRecord, is_plain_name
from .spool import Reached

_VERSION = 1
_CHECKSUM_BYTES = 8  # of a line: hexadecimal digits


class Part(NamedTuple):
    """A line of the log.

    Attributes:
        tasks: the number of finished tasks.
        plan: their hash: see `hashed_tasks`.
        skipped: the fields of a SkipState: the records so far, bad ones included.
        splits: how far each split has come.
        kept: what the store must know to find the tokens, as JSON values.
        listed: the lines about records that were skipped since the part before.
    """

    tasks: int
    plan: str
    skipped: Mapping[str, Any]
    splits: Sequence[Reached]
    kept: Any = None
    listed: str = ""


class PartsLog:
    """The log of an output folder: what its file says up to the first damaged line, and what a run adds.

    Args:
        folder: the hidden folder.

    Attributes:
        identity, older, inputs: as `begin` wrote them; "" or nothing if there is no log.
        parts: the parts that an earlier run has left.
        shards: the records of each split's shards, without hashes, if all tasks are done, otherwise None.
        files: the names of the files that were about to be published then.
    """

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, LOG_NAME)
        self._stream: BinaryIO | None = None
        self._drop()
        try:
            with open(self._path, "rb") as stream:
                self._read(stream)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
            self._drop()

    def _drop(self) -> None:
        self.identity, self.inputs, self.older = "", "", list[str]()
        self.parts: list[Part] = []
        self.shards: list[list[ShardRecord]] | None = None
        self.files: list[str] = []
        # Where the first line ends, and each part, with the checksum there; and where the last line ends.
        self._ends: list[tuple[int, int]] = []
        self._end = (0, 0)

    def _read(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            text = line[_CHECKSUM_BYTES:-1]
            checksum = zlib.crc32(text, self._end[1])
            if line != b"%08x%s\n" % (checksum, text):
                break
            self._take(json.loads(text), (self._end[0] + len(line), checksum))
        if not all(map(is_plain_name, [*self.older, *self.files])):
            raise ValueError

    def _take(self, record: dict[str, Any], end: tuple[int, int]) -> None:
        self._end = end
        self.inputs = record.get("inputs", self.inputs)
        if not self._ends:
            if record["log"] != _VERSION:
                raise ValueError
            self.identity, self.older = record["identity"], record["older"]
            self._ends.append(end)
        elif "shards" in record:
            self.files = record["files"]
            self.shards = [[ShardRecord(**shard) for shard in some] for some in record["shards"]]
        elif "tasks" in record:
            self._ends.append(end)
            splits = [Reached(*reached) for reached in record["splits"]]
            skipped = vars(SkipState(**record["skipped"]))
            self.parts.append(Part(record["tasks"], record["plan"], skipped, splits, record["kept"]))

    def begin(self, identity: str, inputs: str, older: list[str]) -> None:
        """Replaces the log by one without parts.

        Args:
            identity: a hash of everything that the result depends on, except the inputs.
            inputs: identifies these.
            older: names of the files that earlier runs, finished or not, left in the output folder.
        """
        self._drop()
        self.older = older
        header, checksum = _line({"log": _VERSION, "identity": identity, "older": older, "inputs": inputs}, 0)
        _binding.write_file(self._path, header)
        self._open((len(header), checksum))

    def resume(self, inputs: str, count: int) -> list[Part]:
        """Keeps the first parts, so many, which it returns. `inputs` identifies this run's inputs."""
        kept, is_cut = self.parts[:count], count < len(self.parts)
        self._open(self._ends[count] if is_cut else self._end)
        self.parts, self._ends = [], []  # memory must not grow with the corpus
        if kept and (is_cut or inputs != self.inputs):
            self._append([{"inputs": inputs}])
        return kept

    def _open(self, end: tuple[int, int]) -> None:
        self._end = end
        with file_errors(self._path, "cannot be written"):
            self._stream = open(self._path, "ab", buffering=0)
            os.truncate(self._path, end[0])

    def add(self, parts: Iterable[Part]) -> None:
        """Writes parts to disk. Their tokens must be there already."""
        self._append(part._asdict() for part in parts)

    def complete(self, shards: list[list[ShardRecord]], files: Sequence[str]) -> None:
        """Notes that all tasks are done.

        Args:
            shards: of each split.
            files: the names of the files that are about to be published.
        """
        self._append([{"shards": [list(map(vars, some)) for some in shards], "files": list(files)}])
        self.shards = shards

    def _append(self, records: Iterable[Mapping[str, Any]]) -> None:
        data, (size, checksum) = b"", self._end
        for record in records:
            line, checksum = _line(record, checksum)
            data += line
        assert self._stream is not None
        with file_errors(self._path, "cannot be written"):
            view = memoryview(data)
            while view:
                view = view[self._stream.write(view) :]
            os.fsync(self._stream.fileno())
        self._end = (size + len(data), checksum)

    def listed(self) -> Iterator[bytes]:
        """Yields the lines about all records that were skipped."""
        with file_errors(self._path, "cannot be read"), open(self._path, "rb") as stream:
            for line in stream:
                yield json.loads(line[_CHECKSUM_BYTES:]).get("listed", "").encode("utf-8", "surrogateescape")

    def close(self) -> None:
        """Closes the file."""
        if self._stream is not None:
            with file_errors(self._path, "cannot be written"):
                self._stream.close()


def _line(record: Mapping[str, Any], checksum: int) -> tuple[bytes, int]:
    """Returns the line of a record, and its checksum. `checksum` is the checksum of the line before it."""
    text = b" " + json.dumps(record).encode()
    checksum = zlib.crc32(text, checksum)
    return b"%08x%s\n" % (checksum, text), checksum
