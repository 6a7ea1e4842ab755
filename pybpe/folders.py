"""Folders for output, and files in them that get their names when they are complete."""

from __future__ import annotations

import errno
import glob
import hashlib
import os
import stat
from collections.abc import Collection
from contextlib import suppress

from . import _binding
from .errors import file_error, file_errors

_LONGEST_NAME = 255  # bytes; what nearly all file systems take


def make_folder(path: _binding.PathLike) -> str:
    """Makes a folder, and those above it, unless it is there; returns its name."""
    folder = _binding.path_text(path)
    with file_errors(folder, "cannot be made"):
        os.makedirs(folder, exist_ok=True)
    return folder


def unfinished_folder(path: str) -> str:
    """The name of a hidden folder beside a file, for what is not finished yet; a hash if the file's name is too long to
    be a part of it."""
    folder, name = os.path.split(path)
    hidden = f".{name}.unfinished"
    if len(os.fsencode(hidden)) > _LONGEST_NAME:
        hidden = f".{hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest()}.unfinished"
    return os.path.join(folder, hidden)


def output_file(path: str) -> str:
    """The file to write for a path: where a link leads.

    Raises:
        FileError: what is there is no regular file, such as a pipe or device: a file would take its place.
    """
    target = os.path.realpath(path) if os.path.islink(path) else path
    if os.path.exists(target) and not os.path.isfile(target):
        raise file_error(errno.EINVAL, f"{path}: cannot be written: not a regular file")
    return target


def give_name(temporary: str, path: str) -> None:
    """Gives a finished file its name: the file is on disk before, the name after. It keeps the mode of the file that it
    replaces."""
    with file_errors(path, "cannot be written"):
        with open(temporary, "rb") as stream:
            with suppress(OSError):  # there is none, or the file system has no modes
                os.fchmod(stream.fileno(), stat.S_IMODE(os.stat(path).st_mode) & 0o777)
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        sync_folder(os.path.dirname(path) or ".")


def sync_folder(folder: str) -> None:
    """The names in a folder are on disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_through(temporary: str, path: str, data: bytes) -> None:
    """Writes a file atomically, by way of another place on the same disk: a kill leaves nothing beside it."""
    _binding.write_file(temporary, data)
    give_name(temporary, path)


def remove_file(path: str) -> None:
    """Removes a file, if it is there."""
    with file_errors(path, "cannot be removed"), suppress(FileNotFoundError):
        os.unlink(path)


def remove_others(pattern: str, keep: Collection[str]) -> None:
    """Removes what a glob pattern finds, but the files of these names: what an earlier run left beside those of this
    one would be taken for its own."""
    for path in glob.glob(pattern):
        if os.path.basename(path) not in keep:
            remove_file(path)
