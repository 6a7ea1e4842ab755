"""Files that a command puts into a folder of the user's, such as a workspace: it replaces only what it made itself.

A record in the folder has the SHA-256 of every content that the command gave a file, and a hash of what that content
depended on. So an equal call knows, without making a large file again:

    the file                                  the call
    is not there                              makes it
    is what an equal call made                leaves it
    is what another call made, unchanged      replaces it
    is something else: trained, edited        raises ArgumentError, unless its caller passes force=True

The record is written before a file gets its name. So a kill leaves no file that the next call would not know.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress

from pybpe import _binding
from pybpe.arguments import param
from pybpe.errors import ArgumentError, file_errors
from pybpe.reading.streams import file_sha256, read_file
from pybpe.support.output_files import FOLDER, LOCK, give_name, make_folder, remove_entry, remove_file


class PlacedFiles:
    """The files of a folder whose lock the caller holds.

    Args:
        folder: the folder.
        record: the name of the record in it.
        force: True replaces other files, too.

    Attributes:
        changed: the names of the files that this call made, replaced or removed.
    """

    def __init__(self, folder: str, record: str, force: bool) -> None:
        self._folder, self._record, self._force = folder, os.path.join(folder, record), force
        self.changed: list[str] = []
        self._now: dict[str, tuple[str, str]] = {}  # name -> both, of the files of this call
        self._made: dict[str, dict[str, str]] = {}  # name -> SHA-256 -> hash of what the content depended on
        with suppress(OSError, ValueError, TypeError), open(self._record, "rb") as stream:
            made = json.load(stream)["files"]  # a damaged record is as good as none: then contents are compared
            self._made = {str(name): {str(sha): str(of) for sha, of in found.items()} for name, found in made.items()}
        self._hidden = make_folder(os.path.join(folder, FOLDER))
        for name in set(os.listdir(self._hidden)) - {LOCK}:  # left by a kill
            remove_entry(os.path.join(self._hidden, name))

    def is_own(self, name: str) -> bool:
        """Returns whether a file is as an earlier call made it."""
        path = os.path.join(self._folder, name)
        return name in self._made and os.path.isfile(path) and file_sha256(path) in self._made[name]

    def is_free(self, name: str, content: bytes | None = None) -> bool:
        """Returns whether a file with this content, or any, may be made or replaced without `force`."""
        path = os.path.join(self._folder, name)
        if not os.path.lexists(path) or self.is_own(name):
            return True
        return content is not None and os.path.isfile(path) and read_file(path) == content

    def place(self, name: str, depends_on: object, write: Callable[[str], object]) -> None:
        """Makes a file, unless an equal call has made it. `finish` gives it its name.

        Args:
            name: its path in the folder.
            depends_on: what its content depends on; its `repr` is the same in every process.
            write: writes the content to a path whose last part is that of `name`.

        Raises:
            ArgumentError: something else has this name.
        """
        path, made = os.path.join(self._folder, name), self._made.get(name, {})
        key = hashlib.sha256(repr(depends_on).encode("utf-8", "surrogateescape")).hexdigest()
        there = file_sha256(path) if os.path.isfile(path) else None
        if there is None or made.get(there) != key:
            new = os.path.join(self._hidden, os.path.basename(name))
            write(new)
            sha = file_sha256(new)
            if there != sha:
                if os.path.isdir(path) or os.path.islink(path):
                    raise ArgumentError(f"{path}: is a folder or a link: move it away")
                if not self._force and not self.is_free(name):
                    raise ArgumentError(
                        f"{path}: is not what pybpe made: move it away, choose another folder, or replace it with"
                        f" {param(force=True)}"
                    )
                self.changed.append(name)
            there = sha
        self._now[name] = there, key

    def finish(self) -> None:
        """Gives the files their names, and forgets contents that no file has anymore."""
        both = {name: {**self._made.get(name, {}), sha: key} for name, (sha, key) in self._now.items()}
        self._save({**self._made, **both})
        for name in self.changed:
            make_folder(os.path.dirname(path := os.path.join(self._folder, name)))
            give_name(os.path.join(self._hidden, os.path.basename(name)), path)
        for name in set(os.listdir(self._hidden)) - {LOCK}:  # equal to what was there
            remove_entry(os.path.join(self._hidden, name))
        others = {name: file_sha256(os.path.join(self._folder, name)) for name in self._made.keys() - self._now.keys()
                  if self.is_own(name)}  # fmt: skip
        self._save(
            {name: {sha: key} for name, (sha, key) in self._now.items()}
            | {name: {sha: self._made[name][sha]} for name, sha in others.items()}
        )

    def remove(self, name: str) -> None:
        """Removes a file. The caller asks before whether it may."""
        remove_file(os.path.join(self._folder, name))
        self.changed.append(name)

    def _save(self, made: dict[str, dict[str, str]]) -> None:
        if made != self._made:
            text = json.dumps({"version": 1, "files": made}, indent=1, sort_keys=True)
            with file_errors(self._record, "cannot be written"):
                _binding.write_file(self._record, text.encode())
            self._made = made
