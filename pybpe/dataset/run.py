"""One run that writes token files: appends the results of tasks to the spools of the splits, with checkpoints, and then
makes shards of them."""

from __future__ import annotations

import errno
import shutil
import time
from array import array
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from ..errors import ArgumentError, FileError, FormatError, LimitError, file_error, note
from ..reading.bad_records import SkippedRecords, SkipState
from ..reading.splits import SPLIT_NAMES
from ..reading.text_encoding import Doubts
from ..support.progress import Progress
from ..support.run_options import RunOptions
from .assembly import MOST_AT_ONCE, cut, publish, shards_of
from .encoding import Segment
from .eot import EotPlacer
from .layout import Layout
from .manifest import Facts, Input, Manifest
from .parts import Part, PartsLog, Reached
from .publication import Publication, Records, say_that_work_is_kept
from .skip_list import NAME as LIST
from .skip_list import SkipList
from .spool import Spool
from .workers import Result, Work

CHECKPOINT_SECONDS = 10.0


class _Split:
    """The tokens of a split, from where an earlier run came to the end."""

    def __init__(self, layout: Layout, split: str, reached: Reached) -> None:
        self._placer = EotPlacer(layout.output.mode, layout.tok.eot_token, reached.in_document)
        self.spool = Spool(layout.spool(split), reached.tokens, reached.documents)
        self._text_bytes = reached.text_bytes

    def add(self, segment: Segment) -> None:
        """Appends a segment, with marks where they belong."""
        self.spool.append(*self._placer.place(segment.ids, segment.marks))
        self._text_bytes += segment.text_bytes
        if segment.ends_document and (mark := self._placer.end_document(self.spool.files.typecode)):
            self.spool.append(mark, array("Q"))

    @property
    def reached(self) -> Reached:
        """How far the split has come."""
        return Reached(self.spool.tokens, self.spool.documents, self._text_bytes, self._placer.is_open)


class Run:
    """A run that writes token files, from what its log says to the end.

    Args:
        work: makes the segments.
        layout: where the files go, and what they are.
        log: what an earlier run left.
        beside: writes the files that accompany the shards; called just before the first shard gets its name.
        skips: whether bad records are skipped and listed.
    """

    def __init__(
        self, work: Work, layout: Layout, log: PartsLog, beside: Callable[[], None], skips: bool = False
    ) -> None:
        self._work, self._layout, self._log = work, layout, log
        self._publication = Publication(layout, log, beside)
        self._names = SPLIT_NAMES[: len(log.marks)]
        self._splits: list[_Split] = []
        self._doubts = Doubts()
        skipped = SkipState(**log.last.skipped)
        self._skips, self._list = skips, SkipList(layout.unfinished, skipped.bytes)
        self._records = SkippedRecords(self._list.write, layout.source_names, skipped)
        self._done = 0  # the amount of input processed
        self._saved = time.monotonic()

    def write_shards(self, options: RunOptions, total: int | None) -> Records:
        """Does the remaining work, up to the last shard. Returns the shards' records by split.

        Args:
            options: how to use the machine.
            total: the amount of input, in the unit of the work, if known.
        """
        if self._log.last.tasks:
            self._say_resumed(total)
        try:
            if self._log.shards is None:
                self._write_spools(options, total)
            return self._make_shards()
        except (ArgumentError, LimitError):
            self._close()
            self._log.remove()  # other input is needed, so the results so far are useless
            raise
        except FormatError as error:
            if self._log.saved_tasks:
                say_that_work_is_kept(error)
                raise
            self._close()
            self._log.remove()
            raise
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._disk_full(error, total) from None
            raise
        finally:
            self._close()

    def _say_resumed(self, total: int | None) -> None:
        reached = self._log.last.splits
        tokens, text_bytes = sum(split.tokens for split in reached), sum(split.text_bytes for split in reached)
        share = f", at about {min(99, 100 * text_bytes // total)}%" if total and self._work.unit == "B" else ""
        note(f"{self._layout.folder}: resuming after {tokens} tokens{share}")

    def _write_spools(self, options: RunOptions, total: int | None) -> None:
        for name, reached in zip(self._names, self._log.last.splits):
            self._splits.append(_Split(self._layout, name, reached))
        with Progress(self._work.description, total, self._work.unit, options.progress) as bar:
            for result in self._work.results(self._log.last.tasks, options, self._doubts):
                self._take(result)
                bar.add(result.size)
        self._records.check(at_end=True)
        self._checkpoint()
        shards = [
            shards_of(self._layout, name, Facts(*split.reached[:3]), marks)
            for name, split, marks in zip(self._names, self._splits, self._log.marks)
        ]
        self._log.complete(shards, self._files(shards))

    def _take(self, result: Result) -> None:
        self._doubts.tell(result.doubt)
        for segment in result.segments:
            self._splits[segment.split].add(segment)
        for seen in result.seen:
            self._records.add(seen)
        self._done += result.size
        if result.ends_task:
            self._records.check()
            reached = [split.reached for split in self._splits]
            self._log.add(Part(self._log.last.tasks + 1, result.plan, {**vars(self._records.state)}, reached))
            if time.monotonic() - self._saved >= CHECKPOINT_SECONDS:
                self._checkpoint()

    def _checkpoint(self) -> None:
        for split in self._splits:
            split.spool.sync()
        self._list.sync()
        self._log.save()
        self._saved = time.monotonic()

    def _make_shards(self) -> Records:
        shards = self._log.shards or []
        records = {name: cut(self._layout, name, found) for name, found in zip(self._names, shards)}
        self._publication.begin(self._files(shards))
        for name, found in zip(self._names, shards):
            publish(self._layout, name, found)
        return records

    def _files(self, shards: Sequence[Sequence[Facts]]) -> list[str]:
        """Returns the names of all files that get published."""
        found = zip(self._names, shards)
        names = [name for split, some in found for name in self._layout.file_names(split, len(some))]
        return names + [LIST] * self._skips

    def _close(self) -> None:
        """Closes the files. Errors are ignored, since the user of a failed run should see the first error; in a run
        that succeeds, everything is on disk already."""
        everything: list[Spool | PartsLog | SkipList] = [self._list, self._log]
        everything += [split.spool for split in self._splits]
        for thing in everything:
            with suppress(OSError):
                thing.close()

    def _disk_full(self, error: OSError, total: int | None) -> FileError:
        """Returns the error that says how much space is missing."""
        written = sum(split.spool.tokens for split in self._splits) * self._layout.output.id_bytes
        missing = ""
        if total is not None and self._done:
            copied = max(
                (sum(facts.tokens for facts in some[1:][-MOST_AT_ONCE:]) for some in self._log.shards or ()), default=0
            )
            left = (total - self._done) * written // self._done + copied * self._layout.output.id_bytes
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
