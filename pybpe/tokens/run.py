"""One run that writes token files: does the tasks, with checkpoints, and then makes shards of their tokens. Its log has
what is done, so that the same command resumes a run that was stopped or killed.

A hidden folder inside the output folder holds parts.log, which only grows, and the tokens, which a store keeps. The
first line of the log describes the run. Each further line ends a part: the work of one task, or of several that a
worker did at once. The numbers count from the beginning of the run, so one line is enough to resume after it:

    {"tasks": 7, "plan": "9f..", "skipped": {..}, "splits": [[tokens, documents, text bytes, in a document], ..], ..}

Each line begins with a checksum of itself and the lines before it; what follows the first damaged line is dropped.
Lines are written at checkpoints, after the tokens are on disk. So whenever the process dies, the log counts only tokens
that are on disk. Everything later is made again from the same tasks, byte for byte.

`plan` is a hash of all tasks up to there: files with their sizes and times, ranges, splits. Equal tasks give equal
tokens. So a run keeps the longest beginning that has the hashes of its own tasks, and cuts off the rest: if an input
has changed, because a bad record was fixed, only what comes after it is made again. Then it adds a line that identifies
its inputs. If they are the same at the next attempt, it need not plan the tasks in order to compare hashes.

The last line says that all tasks are done, and which shards each split has. Then the store makes the shards.

The log also names the files that earlier runs published. Programs find shards by a pattern, so they would read them
together with this run's. They are removed just before this run publishes its first shard; until then the output folder
is unchanged.
"""

from __future__ import annotations

import errno
import json
import os
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import Any, BinaryIO

from .. import _binding
from ..arguments import counted
from ..errors import ArgumentError, FormatError, LimitError, file_error, file_errors, note, warn
from ..reading.bad_records import SkippedRecords, SkipState, check_list
from ..reading.input_file import check_has_text
from ..reading.text_encoding import Doubts
from ..support.locking import STAGED
from ..support.output_files import give_name, make_folder, remove_entry, remove_file, write_through
from ..support.parallel import RunOptions
from ..support.progress import Progress
from .encoding import Encoded, EncodingJob, Part
from .finished import TOKENIZER_NAMES, hashed, remove_work, replaced_files
from .manifest import FILE_NAMES, LOG_NAME, Manifest, Records, ShardRecord, is_plain_name, record_file
from .options import ArrayOptions, Layout
from .spool import Reached
from .store import Store

CHECKPOINT_SECONDS = 10.0
LIST_NAME = "skipped.jsonl"
_VERSION = 1  # of the log
_CHECKSUM_BYTES = 8  # of a line: hexadecimal digits


class PartsLog:
    """The log of an output folder: what its file says up to the first damaged line, and what a run adds.

    Args:
        folder: the hidden folder.

    Attributes:
        identity, older, inputs: as `begin` wrote them; "" or nothing if there is no log.
        parts: the parts that an earlier run has left.
        shards: the records of each split's shards, without hashes, if all tasks are done, otherwise None.
        files: the names of the files that were about to be published then.
        stream: the file, to add lines.
    """

    def __init__(self, folder: str) -> None:
        self._path = os.path.join(folder, LOG_NAME)
        self.stream: BinaryIO | None = None
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
            record, self._end = json.loads(text), (self._end[0] + len(line), checksum)
            self.inputs = record.get("inputs", self.inputs)
            if not self._ends:
                if record["log"] != _VERSION:
                    raise ValueError
                self.identity, self.older = record["identity"], record["older"]
                self._ends.append(self._end)
            elif "shards" in record:
                self.files = record["files"]
                self.shards = [[ShardRecord(**shard) for shard in some] for some in record["shards"]]
            elif "tasks" in record:
                self._ends.append(self._end)
                splits = [Reached(*reached) for reached in record["splits"]]
                skipped = vars(SkipState(**record["skipped"]))
                self.parts.append(Part(record["tasks"], record["plan"], skipped, splits, record["kept"]))
        if not all(map(is_plain_name, [*self.older, *self.files])):
            raise ValueError

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
            self.append([{"inputs": inputs}])
        return kept

    def _open(self, end: tuple[int, int]) -> None:
        self._end = end
        with file_errors(self._path, "cannot be written"):
            self.stream = open(self._path, "ab", buffering=0)
            os.truncate(self._path, end[0])

    def append(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Writes lines to disk: parts, whose tokens must be there already; or, when all tasks are done, the records of
        each split's shards, and the names of the files that are about to be published."""
        data, (size, checksum) = b"", self._end
        for record in records:
            line, checksum = _line(record, checksum)
            data += line
        assert self.stream is not None
        with file_errors(self._path, "cannot be written"):
            view = memoryview(data)
            while view:
                view = view[self.stream.write(view) :]
            os.fsync(self.stream.fileno())
        self._end = (size + len(data), checksum)

    def listed(self) -> Iterator[bytes]:
        """Yields the lines about all records that were skipped."""
        with file_errors(self._path, "cannot be read"), open(self._path, "rb") as stream:
            for line in stream:
                yield json.loads(line[_CHECKSUM_BYTES:]).get("listed", "").encode("utf-8", "surrogateescape")


def _line(record: Mapping[str, Any], checksum: int) -> tuple[bytes, int]:
    """Returns the line of a record, and its checksum. `checksum` is the checksum of the line before it."""
    text = b" " + json.dumps(record).encode()
    checksum = zlib.crc32(text, checksum)
    return b"%08x%s\n" % (checksum, text), checksum


# ----------------------------------------------------------------------------------------------------
# The run


class TokenRun:
    """A run that writes token files, from what an earlier run left to the end.

    Args:
        layout: where the files go, and what they are.
        store: does the work, and has the tokens.
        identity: a hash of everything that the result depends on, except the inputs of `encoding`. What a run with
            another identity left is dropped.
        work: what is in progress, for the progress bar, and the unit of its size.
        encoding: the tasks, if the run can resume after some of its inputs have changed.
        resume: False drops what any run left.
    """

    def __init__(
        self,
        layout: Layout,
        store: Store,
        identity: str,
        work: tuple[str, str] = ("encoding", "B"),
        encoding: EncodingJob | None = None,
        resume: bool = True,
    ) -> None:
        self._layout, self._store, self._encoding = layout, store, encoding
        self._description, self._unit = work
        self._skips = encoding is not None and encoding.encoder.kinds.read.skips
        self._log = log = PartsLog(make_folder(layout.unfinished))
        self._last = Part(0, "", vars(SkipState()), [Reached()] * len(store.names))
        inputs = hashed([*map(encoding.identity, encoding.plan.files.parts)]) if encoding is not None else ""
        kept = self._kept(inputs) if resume and log.identity == identity else None
        if kept is not None:
            for part in log.resume(inputs, kept):
                store.note(part)
                self._last = part
        else:
            older = {*log.older, *log.files, *replaced_files(layout.folder, layout.tok.model.fingerprint)}
            if self._skips and LIST_NAME not in older:
                check_list(os.path.join(layout.folder, LIST_NAME))
            log.begin(identity, inputs, sorted(older))
            with file_errors(layout.unfinished, "cannot be emptied"):
                for name in os.listdir(layout.unfinished):
                    if name != LOG_NAME and not name.startswith(STAGED):  # staged inputs may belong to this run
                        remove_entry(os.path.join(layout.unfinished, name))
        self._listed: list[bytes] = []  # lines about records that were skipped since the last part
        self._records = SkippedRecords(self._listed.append, layout.source_names, SkipState(**self._last.skipped))
        self._doubts = Doubts()
        self._unsaved: list[Part] = []
        self._saved = time.monotonic()

    # ------------------------------------------------------------------------------------------------
    # What an earlier run left

    def _kept(self, inputs: str) -> int | None:
        """Returns how many parts of the log are right for this run's tasks, and have their tokens. If all tasks were
        done, these are all parts. None means that the run must start over."""
        log, equal = self._log, self._equal(inputs)
        if log.shards is not None:
            for part in log.parts:
                self._store.note(part)
            is_right = equal > len(log.parts) and self._store.can_assemble(log.shards)
            self._store.forget()
            return len(log.parts) if is_right else None
        count = min(equal, len(log.parts))
        while count and not self._store.has(log.parts[count - 1]):
            count -= 1
        return count or None

    def _equal(self, inputs: str) -> int:
        """Returns how many of the first parts are right for this run's tasks; one more if no task follows them."""
        parts, most = self._log.parts, len(self._log.parts) + 1
        if not self._skips:  # a run that stops at bad records cannot use what one that skipped some has made
            most = next((count for count, part in enumerate(parts) if part.skipped["skipped"]), most)
        if self._encoding is None or inputs == self._log.inputs:
            return most
        hashes = chain([""], (digest for _, digest in self._encoding.hashed()))
        number, digest = 0, next(hashes, None)
        for count, part in enumerate(parts):
            while number < part.tasks and digest is not None:
                number, digest = number + 1, next(hashes, None)
            if digest != part.plan:
                return min(most, count)
        return min(most, len(parts) + (next(hashes, None) is None))

    def _remove_work(self) -> None:
        self._close()
        remove_work(self._layout.folder)

    # ------------------------------------------------------------------------------------------------
    # The tasks

    def write(self, options: RunOptions, total: int | None, known: Manifest, with_tokenizer: bool = False) -> Manifest:
        """Does the remaining work, up to the manifest, which it returns.

        Args:
            options: how to use the machine.
            total: the amount of input, in the unit of the work, if known.
            known: what the manifest says of the call, the tokenizer and the inputs.
            with_tokenizer: whether to write the tokenizer too, just before the first shard gets its name: until then,
                an earlier run's tokenizer matches the shards there.
        """
        self._beside = TOKENIZER_NAMES if with_tokenizer else ()
        try:
            if self._last.tasks:
                tokens = sum(split.tokens for split in self._last.splits)
                text_bytes = sum(split.text_bytes for split in self._last.splits)
                share = f", at about {min(99, 100 * text_bytes // total)}%" if total and self._unit == "B" else ""
                note(f"{self._layout.folder}: resuming after {tokens} tokens{share}")
            if self._log.shards is None:
                self._write_parts(options, total)
            shards = self._log.shards or []
            records = self._store.make(shards, options)
            self._replace_older(self._files(shards))
            for name in self._beside:
                hidden = os.path.join(self._layout.unfinished, name)
                self._layout.tok.save(hidden)
                give_name(hidden, os.path.join(self._layout.folder, name))
            self._store.publish(shards)
        except (ArgumentError, LimitError):
            self._remove_work()  # other input is needed, so the results so far are useless
            raise
        except FormatError as error:
            self._keep_work()
            if self._last.tasks:
                what = "Finished work is kept: fix the file and run the same command again to resume before it"
                error.args = (f"{error}. {what}",)
            else:
                self._remove_work()
            raise
        except OSError as error:
            self._keep_work()
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                text = f"{self._layout.folder}: the disk is full. Finished work is kept: free some space and run the"
                raise file_error(error.errno, f"{text} same command again to resume") from None
            raise
        except BaseException:
            self._keep_work()
            raise
        finally:
            self._close()
        return self._finish(known, records)

    def _write_parts(self, options: RunOptions, total: int | None) -> None:
        with Progress(self._description, total, self._unit, options.progress) as bar:
            for step in self._store.steps(self._last, options, self._doubts):
                self._take(step)
                bar.add(step.size)
        self._records.check(at_end=True)
        if self._encoding is not None and not isinstance(self._layout.output, ArrayOptions):
            if not any(split.text_bytes for split in self._last.splits):
                check_has_text(self._encoding.plan.files, "tokens to write")
        self._checkpoint()
        shards = self._store.shards(self._last)
        described = [[record._asdict() for record in some] for some in shards]
        self._log.append([{"shards": described, "files": self._files(shards)}])
        self._log.shards = shards
        self._store.close()

    def _keep_work(self) -> None:
        """Makes a checkpoint if that is still possible, because the run ends with an error."""
        if self._log.shards is None:
            with suppress(OSError):
                self._checkpoint()

    def _take(self, step: Encoded) -> None:
        self._doubts.tell(step.doubt)
        for seen in step.seen:
            self._records.add(seen)
        if step.tasks:
            self._records.check()
            tasks, skipped = self._last.tasks + step.tasks, {**vars(self._records.state)}
            listed = b"".join(self._listed).decode("utf-8", "surrogateescape")
            self._listed.clear()
            self._last = Part(tasks, step.plan, skipped, step.splits, step.kept)
            self._store.note(self._last)
            self._unsaved.append(self._last._replace(listed=listed))
            if time.monotonic() - self._saved >= CHECKPOINT_SECONDS:
                self._checkpoint()

    def _checkpoint(self) -> None:
        self._store.sync()
        self._log.append(map(Part._asdict, self._unsaved))
        self._unsaved, self._saved = [], time.monotonic()

    def _close(self) -> None:
        """Closes the files. Errors are ignored, since the user of a failed run should see the first error; in a run
        that succeeds, everything is on disk already."""
        with suppress(OSError):
            self._store.close()
        with suppress(OSError):
            if self._log.stream is not None:
                self._log.stream.close()

    # ------------------------------------------------------------------------------------------------
    # The end

    def _files(self, shards: Iterable[Sequence[ShardRecord]]) -> list[str]:
        """Returns the names of all files that get published."""
        names = [record.file for some in shards for record in some]
        return [*names, *self._indexes(shards), *([LIST_NAME] * self._skips), *self._beside]

    def _indexes(self, shards: Iterable[Sequence[ShardRecord]]) -> list[str]:
        name = self._layout.output.form.index_name
        return [name(record.file) for some in shards for record in some] if name is not None else []

    def _replace_older(self, files: Sequence[str]) -> None:
        """Removes the files of earlier runs that this run does not replace, the manifest first, since it would be wrong
        from then on."""
        folder = self._layout.folder
        left = [name for name in self._log.older if os.path.lexists(os.path.join(folder, name))]
        if left:
            left.sort(key=lambda name: name not in FILE_NAMES)
            warn(f"{folder}: replacing {counted(len(left), 'file')} of an earlier run, such as {left[-1]}")
        for name in left:
            if name not in files:
                remove_file(os.path.join(folder, name))

    def _finish(self, known: Manifest, records: Records) -> Manifest:
        """Writes the manifest and the other files that belong to the shards."""
        layout, skipped = self._layout, None
        folder, form = layout.folder, layout.output.form
        files = [record_file(os.path.join(folder, name)) for name in (*self._indexes(records.values()), *self._beside)]
        if form.of_tokenizer is not None:
            name, content = form.of_tokenizer
            files.append(record_file(self._write(name, content(layout.tok))))
        if self._skips:
            path = self._write_list()
            with file_errors(path, "cannot be read"), open(path, "rb") as stream:
                skipped = {**self._records.finish(path, stream.readline()), "file": LIST_NAME}
            files.append(record_file(path))
        text_bytes = {split: sum(record.text_bytes for record in found) for split, found in records.items()}
        manifest = replace(
            known, text_bytes=text_bytes, shards=records, files=files, skipped=skipped, call=self._layout.call
        )
        self._write(self._layout.output.form.manifest, manifest.to_json())
        self._remove_work()
        return manifest

    def _write_list(self) -> str:
        """Writes the list of skipped records. Returns its path."""
        hidden, path = (os.path.join(folder, LIST_NAME) for folder in (self._layout.unfinished, self._layout.folder))
        with _binding.Output(hidden) as output:
            for lines in self._log.listed():
                output.write(lines)
        give_name(hidden, path)
        return path

    def _write(self, name: str, data: bytes) -> str:
        path = os.path.join(self._layout.folder, name)
        write_through(os.path.join(self._layout.unfinished, name), path, data)
        return path
