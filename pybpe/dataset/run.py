"""One run that writes token files: passes task results to split writers, with checkpoints."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ..errors import ArgumentError, FileError, FormatError, LimitError, file_error, warn
from ..reading.splits import SPLIT_NAMES
from ..reading.text_encoding import Doubts
from ..support.output_files import remove_file, write_through
from ..support.progress import Progress
from ..support.run_options import RunOptions
from .journal import Journal
from .manifest import FILE_NAMES, FileRecord, Manifest, ShardRecord, record_file
from .split_writer import Layout, SplitState, SplitWriter, file_names
from .workers import Result, Work

CHECKPOINT_SECONDS = 10.0

Records = dict[str, list[ShardRecord]]


class Run:
    """A run that writes token files, from its journal's state to the end.

    Args:
        work: makes the segments.
        layout: where the files go, and what they are.
        journal: the state that an earlier run left.
        beside: writes the files that accompany the shards; called just before the first shard gets its name.
    """

    def __init__(self, work: Work, layout: Layout, journal: Journal, beside: Callable[[], None]) -> None:
        self._work, self._layout, self._journal, self._beside = work, layout, journal, beside
        self._tasks = journal.tasks
        self._writers: list[SplitWriter] = []
        self._doubts = Doubts()
        self._done = 0  # the amount of input processed
        self._saved = time.monotonic()
        self._has_begun = False  # whether the folder is this run's: see _begin

    def write_shards(self, options: RunOptions, total: int | None) -> Records:
        """Does the remaining work, up to the last shard. Returns the shards' records by split.

        Args:
            options: how to use the machine.
            total: the amount of input, in the unit of the work, if known.
        """
        try:
            self._begin(self._files(self._journal.states))
            for split, state in zip(SPLIT_NAMES, self._journal.states):
                self._writers.append(SplitWriter(self._layout, split, state))
            with Progress(self._work.description, total, self._work.unit, options.progress) as bar:
                for result in self._work.results(self._journal.tasks, options, self._doubts):
                    self._take(result)
                    bar.add(result.size)
            for writer in self._writers:
                writer.finish()
            self._checkpoint()
            if any([writer.cut() for writer in self._writers]):
                self._checkpoint()
            self._close()
        except (ArgumentError, FormatError, LimitError):
            self._close()
            self._drop()
            raise
        except OSError as error:
            self._close()
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._disk_full(error, total) from None
            raise
        except BaseException:
            self._close()
            raise
        return {split: writer.records for split, writer in zip(SPLIT_NAMES, self._writers)}

    def _take(self, result: Result) -> None:
        self._doubts.tell(result.doubt)
        for segment in result.segments:
            self._writers[segment.split].add(segment)
        self._done += result.size
        if result.ends_task:
            self._tasks += 1
            due = time.monotonic() - self._saved >= CHECKPOINT_SECONDS
            if due or any(writer.has_ready for writer in self._writers):
                self._checkpoint()

    def _checkpoint(self) -> None:
        """Makes a checkpoint. See journal.py for the order and the reason for it."""
        states = [writer.sync() for writer in self._writers]
        files = self._files(states)
        self._journal.save(self._tasks, states, files)
        self._begin(files)
        for writer in self._writers:
            writer.publish()
        self._saved = time.monotonic()

    def _files(self, states: Sequence[SplitState]) -> list[str]:
        """Returns the names of all files that are published, or will be after the journal is saved."""
        return [name for split, state in zip(SPLIT_NAMES, states) for name in file_names(self._layout, split, state)]

    def _begin(self, files: Sequence[str]) -> None:
        """Runs before the first of this run's files gets its name. Removes the files of earlier runs, the manifest
        first, since it would be wrong from then on."""
        if self._has_begun or not files:
            return
        self._has_begun = True
        older = sorted(self._journal.older, key=lambda name: name not in FILE_NAMES)
        paths = [os.path.join(self._layout.folder, name) for name in older]
        left = [path for path in paths if os.path.lexists(path)]
        if left:
            some = "a file" if len(left) == 1 else f"{len(left)} files"
            warn(f"{self._layout.folder}: replacing {some} of an earlier run, such as {os.path.basename(left[-1])}")
        for path in left:
            if os.path.basename(path) not in files:
                remove_file(path)
        self._journal.older = []
        self._beside()

    def _drop(self) -> None:
        """Gives up when other input is needed: the results so far are useless, and programs would read published
        shards."""
        if self._has_begun:
            for name in self._files([writer.state for writer in self._writers]):
                remove_file(os.path.join(self._layout.folder, name))
        self._journal.remove()

    def _close(self) -> None:
        """Closes the files. Errors are ignored, since the user of a failed run should see the first error; in a run
        that succeeds, all files are closed already."""
        for writer in self._writers:
            with suppress(OSError):
                writer.close()

    def _disk_full(self, error: OSError, total: int | None) -> FileError:
        """Returns the error that says how much space is missing."""
        written = sum(writer.written_bytes for writer in self._writers)
        missing = ""
        if total is not None and self._done:
            left = (total - self._done) * written // self._done + max(w.spare_bytes for w in self._writers)
            free = shutil.disk_usage(self._layout.folder).free
            missing = f"; about {max(left - free, 1 << 20) / 1e6:.0f} MB more are needed"
        return file_error(
            error.errno or 0,
            f"{self._layout.folder}: the disk is full{missing}. Finished work is kept: free some space and run the"
            " same command again to resume",
        )

    # ------------------------------------------------------------------------------------------------
    # The end

    def finish(self, settings: dict[str, Any], description: dict[str, object], records: Records) -> Manifest:
        """Writes the manifest and the other files that belong to the shards.

        Args:
            settings, description: what the manifest says of the call and of the tokenizer.
            records: the shards' records.
        """
        manifest = Manifest(
            settings,
            description,
            {split: sum(record.text_bytes for record in found) for split, found in records.items()},
            records,
            self._companions(records),
        )
        self._write(self._layout.form.manifest, manifest.to_json())
        self._journal.remove()
        return manifest

    def _companions(self, records: Records) -> list[FileRecord]:
        folder, form = self._layout.folder, self._layout.form
        found = []
        if form.companion_name is not None:
            for record in (record for split in records.values() for record in split):
                found.append(record_file(os.path.join(folder, form.companion_name(record.file))))
        if form.of_tokenizer is not None:
            name, content = form.of_tokenizer
            found.append(record_file(self._write(name, content(self._layout.tok))))
        return found

    def _write(self, name: str, data: bytes) -> str:
        path = os.path.join(self._layout.folder, name)
        write_through(os.path.join(self._layout.unfinished, name), path, data)
        return path
