"""The output of `clean`: one file, or a folder of files of about equal size. A hidden file there, the receipt, says how
it was made: the call, its settings, and samples of the files.

All files are made in a hidden folder, which then gets the name PARTS. From there they get their names, the receipt
last. If a run is killed meanwhile, the next run continues from there.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .. import _binding
from .._lazy import shutil
from ..arguments import number_of, param, refuse_unused, whole_number
from ..errors import ArgumentError, file_errors, note
from ..reading.streams import sample_of
from ..support import platform
from ..support.output_files import (
    CLEANED,
    FOLDER,
    PARTS,
    differences,
    give_name,
    make_folder,
    only_writer,
    output_file,
    receipt_name,
    remove_file,
    remove_folder,
    remove_work,
    unfinished_folder,
)
from .output_formats import FORMATS, check_installed, schema_of, writer

SHARD_BYTES = 256 * 10**6
_SAMPLED = 1 << 16  # bytes
_MOST_FILES = 10**6  # in a folder: a longer number would sort before shorter ones, and readers sort names
LISTED = "list"  # in the hidden folder, then in PARTS: the list of skipped records


class Target:
    """Where the output goes: one file, with its hidden files next to it.

    Attributes:
        path: the file or folder, as errors name it.
        format: one of FORMATS.
        shard_bytes: the size at which a file ends, or None for one file.
        folder: where the files get their names.
        home: the folder whose lock the writer holds, and into which inputs are staged.
        hidden: the folder for unfinished work.
        receipt: the file that says how the output was made.
    """

    def __init__(self, path: str, format: str) -> None:
        self.path, self.format = path, format
        self.shard_bytes: int | None = None
        self.folder, self._name = os.path.split(output_file(path))
        self.home = self.hidden = unfinished_folder(os.path.join(self.folder, self._name))
        self.receipt = os.path.join(self.folder, receipt_name(self._name))

    def names(self) -> Iterator[str]:
        """Yields the names of the files."""
        yield self._name

    def there(self) -> list[str]:
        """Returns the names of the files of the output that are there. Raises ArgumentError if a folder has something
        else, because programs read all of its files."""
        return [self._name] if os.path.exists(self.path) and os.path.getsize(self.path) else []

    def clear(self) -> None:
        """Removes the unfinished work."""
        remove_folder(self.home)

    @contextmanager
    def only_writer(self) -> Iterator[None]:
        """Holds the lock of the output, and completes a `publish` that was killed."""
        with only_writer(self.home, temporary=self.shard_bytes is None):
            if os.path.isdir(os.path.join(self.hidden, PARTS)):
                self.publish()
            self.there()  # refuses now, not after an hour of work
            yield

    def made_before(self, call: str, asked: dict[str, Any], repeats: bool, list_path: str) -> dict[str, Any] | None:
        """Returns the receipt of the output if an equal call has made it, or None if this call has to do the work.
        Raises ArgumentError if the output is of another call. `repeats` says that an equal call does the work again."""
        there = self.there()
        if not there:
            return None
        found = self.read_receipt()
        if found.get("files") == {name: _sample(os.path.join(self.folder, name)) for name in there}:
            if found["call"] == call and repeats:
                return None
            if found["call"] == call and (found["skipped"] is None or os.path.exists(list_path)):
                documents = number_of(found["tally"]["documents"].get("out", 0), "document")
                note(f"{self.path}: already complete ({documents})")
                return found
            told = (
                differences(found["asked"], asked) if found["call"] != call else "Its list of skipped records is gone"
            )
        else:
            told = "Its content is not what a call wrote there"
        raise ArgumentError(
            f"{self.path}: was not made by this call. {told}: choose another output, or pass {param(force=True)}"
        )

    def read_receipt(self) -> dict[str, Any]:
        """Returns the receipt, or an empty one if there is none that can be read."""
        with suppress(OSError, ValueError), open(self.receipt, "rb") as stream:
            found = json.load(stream)
            if isinstance(found, dict) and found.keys() >= {"call", "asked", "files", "skipped", "tally"}:
                return found
        return {}

    def write(
        self,
        blocks: Callable[[], Iterable[_binding.Data]],
        receipt: Callable[[], dict[str, Any]],
        listed: str | None = None,
    ) -> None:
        """Writes the files, and gives them their names.

        Args:
            blocks: yields the lines of the documents. For parquet, it is called twice.
            receipt: returns the other entries of the receipt, when the files are written.
            listed: the path that the list of skipped records gets.
        """
        new = f"{os.path.join(self.hidden, PARTS)}.new"
        remove_folder(new)
        make_folder(new)
        schema = schema_of(self.path, blocks()) if self.format == "parquet" else None
        rest, files = (block for block in blocks() if memoryview(block).nbytes), dict[str, Any]()
        block, most = next(rest, None), self.shard_bytes or float("inf")
        for name in self.names():
            with _binding.Output(os.path.join(new, name)) as output:
                write, end = writer(self.format, output, self.path, schema, most)
                size = 0
                while block is not None and size < most:
                    size, block = write(block), next(rest, None)
                end()
            files[name] = _sample(os.path.join(new, name))
            if block is None:
                break
        replaced = [*self.read_receipt().get("files", {})] if self.shard_bytes else []
        content = {**receipt(), "files": files, "replaced": replaced}
        if listed is not None:
            os.rename(os.path.join(self.hidden, LISTED), os.path.join(new, LISTED))
            content["list"] = os.path.abspath(output_file(listed))
        _binding.write_file(os.path.join(new, os.path.basename(self.receipt)), json.dumps(content).encode())
        with file_errors(new, "cannot be renamed"):
            os.rename(new, os.path.join(self.hidden, PARTS))
            platform.sync_folder(self.hidden)
        self.publish()

    def publish(self) -> None:
        """Gives the files in PARTS their names, then the list of skipped records, which may be on another disk, and the
        receipt last. Removes the files that they replace."""
        parts, last = os.path.join(self.hidden, PARTS), os.path.basename(self.receipt)
        if os.path.exists(os.path.join(parts, last)):  # otherwise they have their names
            with open(os.path.join(parts, last), "rb") as stream:
                made = json.load(stream)
            for name in made["replaced"]:
                if name not in made["files"]:
                    remove_file(os.path.join(self.folder, name))
            for name in made["files"]:
                if os.path.exists(os.path.join(parts, name)):
                    give_name(os.path.join(parts, name), os.path.join(self.folder, name))
            if "list" in made:
                with open(os.path.join(parts, LISTED), "rb") as stream, _binding.Output(made["list"]) as output:
                    for block in iter(lambda: stream.read(_SAMPLED), b""):
                        output.write(block)
            give_name(os.path.join(parts, last), os.path.join(self.folder, last))
        shutil.rmtree(parts)


class FolderTarget(Target):
    """A folder of files, which has nothing else."""

    def __init__(self, path: str, format: str, shard_bytes: int) -> None:
        self.path, self.format, self.shard_bytes = path, format, shard_bytes
        self.folder = self.home = path
        self.hidden, self.receipt = os.path.join(path, FOLDER), os.path.join(path, CLEANED)

    def names(self) -> Iterator[str]:
        yield from (f"part-{number:06d}.{self.format}" for number in range(_MOST_FILES))
        told = f"would need more than {_MOST_FILES} files: raise {param('shard_bytes')}, and the call resumes"
        raise ArgumentError(f"{self.path}: {told}")

    def there(self) -> list[str]:
        names = sorted(name for name in os.listdir(self.folder) if not name.startswith("."))
        others = set(names) - self.read_receipt().get("files", {}).keys()
        if others:
            raise ArgumentError(f"{self.path}: contains other files, such as {min(others)}: use another folder")
        return names

    def clear(self) -> None:
        remove_work(self.path)


def target_of(out: _binding.PathLike, format: str | None, shard_bytes: int | None) -> Target:
    """Returns where the output goes. Raises ArgumentError for a name with another ending, and MissingExtraError if a
    format needs a package."""
    path = _binding.path_text(out)
    ending = next((form for form in FORMATS if path.replace(".ndjson", ".jsonl").endswith(f".{form}")), None)
    if ending is None and os.path.splitext(path)[1] and not os.path.isdir(path):
        raise ArgumentError(f"{path}: name it .{', .'.join(FORMATS)}, or name a folder, without an ending")
    found: Target
    if ending is None or os.path.isdir(path):
        if format not in (None, *FORMATS):
            raise ArgumentError(f"{param('format')} must be one of {', '.join(FORMATS)}, not {format!r}")
        most = SHARD_BYTES if shard_bytes is None else whole_number("shard_bytes", shard_bytes, 1)
        found = FolderTarget(path, format or FORMATS[0], most)
    else:
        for name, value in (("format", format), ("shard_bytes", shard_bytes)):
            if value is not None:
                refuse_unused(name, value, "the name of a file has its format; name a folder to get several files")
        found = Target(path, ending)
    check_installed(found.format, path)
    return found


def check_outside(folder: str, **others: str | None) -> None:
    """Raises ArgumentError if another file that a call writes, by its parameter, is in the folder of the output: the
    next call would refuse the folder, because programs read all of its files."""
    for name, path in others.items():
        if path is not None and os.path.realpath(path).startswith(os.path.join(os.path.realpath(folder), "")):
            raise ArgumentError(f"{path}: {param(name)} must not be in the output folder, {folder}: choose another")


def _sample(path: str) -> list[object] | None:
    """Returns the size of a file, and a hash of parts of it, or None if there is no file."""
    with suppress(FileNotFoundError), file_errors(path, "cannot be read"):
        size = os.path.getsize(path)
        return [size, sample_of(path, size, _SAMPLED).hex()]
    return None
