"""One run that writes token files: does the tasks, with checkpoints, and then makes shards of their tokens."""

from __future__ import annotations

import errno
import os
import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from ..arguments import counted
from ..errors import ArgumentError, FileError, FormatError, LimitError, file_error, note, warn
from ..reading.bad_records import SkippedRecords, SkipState
from ..reading.text_encoding import Doubts
from ..support.output_files import remove_file, write_through
from ..support.progress import Progress
from ..support.run_options import RunOptions
from .layout import Layout
from .manifest import FILE_NAMES, Facts, FileRecord, Manifest, Records, record_file
from .parts import LIST_NAME, Part, PartsLog, SkipList, Step, Store
from .workers import Work

CHECKPOINT_SECONDS = 10.0


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
        self._store, self._beside = log.store, beside
        self._doubts = Doubts()
        skipped = SkipState(**log.last.skipped)
        self._skips, self._list = skips, SkipList(layout.unfinished, skipped.bytes)
        self._records = SkippedRecords(self._list.write, layout.source_names, skipped)
        self._done = 0  # the amount of input processed
        self._saved = time.monotonic()

    def write(self, options: RunOptions, total: int | None, known: Manifest) -> Manifest:
        """Does the remaining work, up to the manifest, which it returns.

        Args:
            options: how to use the machine.
            total: the amount of input, in the unit of the work, if known.
            known: what the manifest says of the call, the tokenizer and the inputs.
        """
        return self._finish(known, self._write_shards(options, total))

    def _write_shards(self, options: RunOptions, total: int | None) -> Records:
        if self._log.last.tasks:
            self._say_resumed(total)
        try:
            if self._log.shards is None:
                self._write_parts(options, total)
            return self._make_shards(options)
        except (ArgumentError, LimitError):
            self._close()
            self._log.remove()  # other input is needed, so the results so far are useless
            raise
        except FormatError as error:
            self._keep_work()
            if self._log.saved_tasks:
                what = "Finished work is kept: fix the file and run the same command again to resume before it"
                error.args = (f"{error}. {what}",)
                raise
            self._close()
            self._log.remove()
            raise
        except OSError as error:
            self._keep_work()
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise self._disk_full(error, total) from None
            raise
        except BaseException:
            self._keep_work()
            raise
        finally:
            self._close()

    def _say_resumed(self, total: int | None) -> None:
        reached = self._log.last.splits
        tokens, text_bytes = sum(split.tokens for split in reached), sum(split.text_bytes for split in reached)
        share = f", at about {min(99, 100 * text_bytes // total)}%" if total and self._work.unit == "B" else ""
        note(f"{self._layout.folder}: resuming after {tokens} tokens{share}")

    def _write_parts(self, options: RunOptions, total: int | None) -> None:
        with Progress(self._work.description, total, self._work.unit, options.progress) as bar:
            for step in self._store.steps(self._work, self._log.last, options, self._doubts):
                self._take(step)
                bar.add(step.size)
        self._records.check(at_end=True)
        self._checkpoint()
        shards = self._store.shards(self._log.last)
        self._log.complete(shards, self._files(shards))
        self._store.close()

    def _keep_work(self) -> None:
        """Makes a checkpoint if that is still possible, because the run ends with an error."""
        if self._log.shards is None:
            with suppress(OSError):
                self._checkpoint()

    def _take(self, step: Step) -> None:
        self._doubts.tell(step.doubt)
        for seen in step.seen:
            self._records.add(seen)
        self._done += step.size
        if step.splits is not None:
            self._records.check()
            tasks, skipped = self._log.last.tasks + step.tasks, {**vars(self._records.state)}
            self._log.add(Part(tasks, step.plan, skipped, step.splits, step.kept))
            if time.monotonic() - self._saved >= CHECKPOINT_SECONDS:
                self._checkpoint()

    def _checkpoint(self) -> None:
        self._store.sync()
        self._list.sync()
        self._log.save()
        self._saved = time.monotonic()

    def _close(self) -> None:
        """Closes the files. Errors are ignored, since the user of a failed run should see the first error; in a run
        that succeeds, everything is on disk already."""
        everything: list[Store | SkipList | PartsLog] = [self._store, self._list, self._log]
        for thing in everything:
            with suppress(OSError):
                thing.close()

    def _disk_full(self, error: OSError, total: int | None) -> FileError:
        """Returns the error that says how much space is missing."""
        missing = ""
        if total is not None and self._done:
            left = (total - self._done) * self._store.written_bytes // self._done
            left += self._store.spare_bytes(self._log.shards or ())
            free = shutil.disk_usage(self._layout.folder).free
            missing = f"; about {max(left - free, 1 << 20) / 1e6:.0f} MB more are needed"
        return file_error(
            error.errno or 0,
            f"{self._layout.folder}: the disk is full{missing}. Finished work is kept: free some space and run the"
            " same command again to resume",
        )

    # ------------------------------------------------------------------------------------------------
    # The end

    def _make_shards(self, options: RunOptions) -> Records:
        shards = self._log.shards or []
        records = self._store.make(shards, options)
        self._replace_older(self._files(shards))
        self._beside()
        self._store.publish(shards)
        return records

    def _files(self, shards: Sequence[Sequence[Facts]]) -> list[str]:
        """Returns the names of all files that get published."""
        found = zip(self._store.names, shards)
        names = [name for split, some in found for name in self._layout.file_names(split, len(some))]
        return names + [LIST_NAME] * self._skips

    def _replace_older(self, files: Sequence[str]) -> None:
        """Removes the files of earlier runs that this run does not replace, the manifest first, since it would be wrong
        from then on."""
        older = sorted(self._log.older, key=lambda name: name not in FILE_NAMES)
        paths = [os.path.join(self._layout.folder, name) for name in older]
        left = [path for path in paths if os.path.lexists(path)]
        if left:
            some = counted(len(left), "file")
            warn(f"{self._layout.folder}: replacing {some} of an earlier run, such as {os.path.basename(left[-1])}")
        for path in left:
            if os.path.basename(path) not in files:
                remove_file(path)

    def _finish(self, known: Manifest, records: Records) -> Manifest:
        """Writes the manifest and the other files that belong to the shards."""
        files, skipped = self._companions(records), None
        if self._skips:
            path, first = self._list.publish(self._layout.folder)
            skipped = {**self._records.finish(path, first), "file": LIST_NAME}
            files.append(record_file(path))
        text_bytes = {split: sum(record.text_bytes for record in found) for split, found in records.items()}
        manifest = replace(
            known, text_bytes=text_bytes, shards=records, files=files, skipped=skipped, call=self._layout.call
        )
        self._write(self._layout.form.manifest, manifest.to_json())
        self._log.remove()
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
