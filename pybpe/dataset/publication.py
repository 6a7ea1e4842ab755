"""The end of a run that writes token files: older files are removed, and the manifest and companions are written."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..arguments import counted
from ..errors import FormatError, warn
from ..support.output_files import remove_file, write_through
from .layout import Layout
from .manifest import FILE_NAMES, FileRecord, Input, Manifest, Records, record_file
from .parts import PartsLog


@dataclass(frozen=True)
class Publication:
    """What a run publishes next to its shards.

    Attributes:
        layout: where the files go, and what they are.
        log: knows the files of earlier runs.
        beside: writes the files that accompany the shards; called just before the first shard gets its name.
    """

    layout: Layout
    log: PartsLog
    beside: Callable[[], None]

    def begin(self, files: Sequence[str]) -> None:
        """Runs before the first of this run's files gets its name. Removes the files of earlier runs, the manifest
        first, since it would be wrong from then on. `files` are the names of this run's files."""
        older = sorted(self.log.older, key=lambda name: name not in FILE_NAMES)
        paths = [os.path.join(self.layout.folder, name) for name in older]
        left = [path for path in paths if os.path.lexists(path)]
        if left:
            some = counted(len(left), "file")
            warn(f"{self.layout.folder}: replacing {some} of an earlier run, such as {os.path.basename(left[-1])}")
        for path in left:
            if os.path.basename(path) not in files:
                remove_file(path)
        self.beside()

    def finish(
        self,
        settings: dict[str, Any],
        description: dict[str, object],
        records: Records,
        inputs: Sequence[Input] = (),
        skipped: dict[str, Any] | None = None,
    ) -> Manifest:
        """Writes the manifest and the other files that belong to the shards.

        Args:
            settings, description: what the manifest says of the call and of the tokenizer.
            records: the shards' records.
            inputs: what the token files were made from.
            skipped: what the manifest says of skipped records. skipped["file"] is the name of their list, which is
                there already.
        """
        text_bytes = {split: sum(record.text_bytes for record in found) for split, found in records.items()}
        files = self._companions(records)
        if skipped is not None:
            files.append(record_file(os.path.join(self.layout.folder, skipped["file"])))
        manifest = Manifest(settings, description, text_bytes, records, files, skipped, self.layout.call, inputs)
        self._write(self.layout.form.manifest, manifest.to_json())
        self.log.remove()
        return manifest

    def _companions(self, records: Records) -> list[FileRecord]:
        folder, form = self.layout.folder, self.layout.form
        found = []
        if form.companion_name is not None:
            for record in (record for split in records.values() for record in split):
                found.append(record_file(os.path.join(folder, form.companion_name(record.file))))
        if form.of_tokenizer is not None:
            name, content = form.of_tokenizer
            found.append(record_file(self._write(name, content(self.layout.tok))))
        return found

    def _write(self, name: str, data: bytes) -> str:
        path = os.path.join(self.layout.folder, name)
        write_through(os.path.join(self.layout.unfinished, name), path, data)
        return path


def say_that_work_is_kept(error: FormatError) -> None:
    """Adds to the error about a bad record what a user can do."""
    what = "Finished work is kept: fix the file and run the same command again to resume before it"
    error.args = (f"{error}. {what}",)
