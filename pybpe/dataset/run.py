"""One run that writes token files: passes task results to split writers, with checkpoints."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ..errors import ArgumentError, FileError, FormatError, LimitError, file_error, note
from ..reading.bad_records import SkippedRecords
from ..reading.splits import SPLIT_NAMES
from ..reading.text_encoding import Doubts
from ..support.output_files import remove_file
from ..support.progress import Progress
from ..support.run_options import RunOptions
from .journal import Journal
from .manifest import Input, Manifest
from .publication import Publication, Records, say_that_work_is_kept
from .skip_list import NAME as LIST
from .skip_list import SkipList
from .split_writer import Layout, SplitWriter, file_names
from .workers import Result, Work

CHECKPOINT_SECONDS = 10.0


class Run:
    """A run that writes token files, from its journal's state to the end.

    Args:
        work: makes the segments.
        layout: where the files go, and what they are.
        journal: the state that an earlier run left.
        beside: writes the files that accompany the shards; called just before the first shard gets its name.
        skips: whether bad records are skipped and listed.
    """

    def __init__(
        self, work: Work, layout: Layout, journal: Journal, beside: Callable[[], None], skips: bool = False
    ) -> None:
        self._work, self._layout, self._journal = work, layout, journal
        self._publication = Publication(layout, journal, beside)
        self._tasks, self._plan = journal.tasks, journal.plan
        self._named = [state.index for state in journal.states]  # the shards of each split that the journal names
        self._writers: list[SplitWriter] = []
        self._doubts = Doubts()
        self._skips, self._list = skips, SkipList(layout.unfinished, journal.skipped.bytes)
        self._records = SkippedRecords(self._list.write, layout.source_names, journal.skipped)
        self._done = 0  # the amount of input processed
        self._saved = time.monotonic()

    def write_shards(self, options: RunOptions, total: int | None) -> Records:
        """Does the remaining work, up to the last shard. Returns the shards' records by split.

        Args:
            options: how to use the machine.
            total: the amount of input, in the unit of the work, if known.
        """
        if self._journal.tasks:
            self._say_resumed(total)
        try:
            self._publication.begin(self._files())
            for split, state in zip(SPLIT_NAMES, self._journal.states):
                self._writers.append(SplitWriter(self._layout, split, state))
            with Progress(self._work.description, total, self._work.unit, options.progress) as bar:
                for result in self._work.results(self._journal.tasks, options, self._doubts):
                    self._take(result)
                    bar.add(result.size)
            self._records.check(at_end=True)
            for writer in self._writers:
                writer.finish()
            self._checkpoint()
            if any([writer.cut() for writer in self._writers]):
                self._checkpoint()
            self._close()
        except (ArgumentError, LimitError):
            self._close()
            self._drop()
            raise
        except FormatError as error:
            self._close()
            if not self._journal.tasks:
                self._drop()
                raise
            say_that_work_is_kept(error)
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

    def _say_resumed(self, total: int | None) -> None:
        done = [amount for state in self._journal.states for amount in state.amounts()]
        tokens, text_bytes = (sum(amounts) for amounts in zip(*done))
        share = f", at about {min(99, 100 * text_bytes // total)}%" if total and self._work.unit == "B" else ""
        note(f"{self._layout.folder}: resuming after {tokens} tokens{share}")

    def _take(self, result: Result) -> None:
        self._doubts.tell(result.doubt)
        for segment in result.segments:
            self._writers[segment.split].add(segment)
        for seen in result.seen:
            self._records.add(seen)
        self._done += result.size
        if result.ends_task:
            self._records.check()
            self._tasks, self._plan = self._tasks + 1, result.plan
            due = time.monotonic() - self._saved >= CHECKPOINT_SECONDS
            if due or any(writer.has_ready for writer in self._writers):
                self._checkpoint()

    def _checkpoint(self) -> None:
        """Makes a checkpoint. See journal.py for the order and the reason for it."""
        for writer in self._writers:
            writer.sync()
        self._list.sync()
        self._journal.save(self._tasks, self._plan, self._files(self._named) + [LIST] * self._skips)
        self._named = [state.index for state in self._journal.states]
        self._publication.begin(self._files())
        for writer in self._writers:
            writer.publish()
        self._saved = time.monotonic()

    def _files(self, first: Sequence[int] = (0, 0, 0)) -> list[str]:
        """Returns the names of all files that are published, or will be after the journal is saved: those of each split
        from number `first`."""
        every = zip(SPLIT_NAMES, self._journal.states, first)
        return [name for split, state, number in every for name in file_names(self._layout, split, state, number)]

    def _drop(self) -> None:
        """Gives up when other input is needed: the results so far are useless, and programs would read published
        shards."""
        if self._publication.has_begun:
            for name in self._files():
                remove_file(os.path.join(self._layout.folder, name))
        self._journal.remove()

    def _close(self) -> None:
        """Closes the files. Errors are ignored, since the user of a failed run should see the first error; in a run
        that succeeds, all files are closed already."""
        everything: list[SplitWriter | Journal | SkipList] = [*self._writers, self._list, self._journal]
        for thing in everything:
            with suppress(OSError):
                thing.close()

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

    def finish(
        self,
        settings: dict[str, Any],
        description: dict[str, object],
        records: Records,
        inputs: Sequence[Input] = (),
    ) -> Manifest:
        """Writes the manifest and the other files that belong to the shards.

        Args:
            settings, description: what the manifest says of the call and of the tokenizer.
            records: the shards' records.
            inputs: what the token files were made from.
        """
        if not self._skips:
            return self._publication.finish(settings, description, records, inputs)
        path, first = self._list.publish(self._layout.folder)
        skipped = {**self._records.finish(path, first), "file": LIST}
        return self._publication.finish(settings, description, records, inputs, skipped)
