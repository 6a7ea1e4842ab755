"""Output folders, and files in them that get their names when they are complete."""

from __future__ import annotations

import errno
import glob
import hashlib
import os
from collections.abc import Collection
from contextlib import suppress

from .. import _binding
from ..errors import file_error, file_errors
from . import platform

_LONGEST_NAME = 255  # bytes; the limit of nearly all file systems


def make_folder(path: _binding.PathLike) -> str:
    """Makes a folder and its parents, if needed. Returns its name."""
    folder = _binding.path_text(path)
    with file_errors(folder, "cannot be made"):
        os.makedirs(folder, exist_ok=True)
    return folder


def unfinished_folder(path: str) -> str:
    """Returns the name of a hidden folder next to a file, for unfinished work. It holds the file's name, or a hash of
    it if that is too long."""
    folder, name = os.path.split(path)
    hidden = f".{name}.unfinished"
    if len(os.fsencode(hidden)) > _LONGEST_NAME:
        hidden = f".{hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest()}.unfinished"
    return os.path.join(folder, hidden)


def output_file(path: str) -> str:
    """Returns the file to write for a path, which is the target of a link.

    Raises:
        FileError: the path is not a regular file but, for example, a pipe or device, which a file would replace.
    """
    target = os.path.realpath(path) if os.path.islink(path) else path
    if os.path.exists(target) and not os.path.isfile(target):
        raise file_error(errno.EINVAL, f"{path}: cannot be written: not a regular file")
    return target


def give_name(temporary: str, path: str) -> None:
    """Gives a finished file its name. The content is on disk before the name is, and the name is on disk afterwards.
    The file keeps the mode of the file that it replaces."""
    with file_errors(path, "cannot be written"):
        platform.sync_file(temporary, like=path)
        os.replace(temporary, path)
        platform.sync_folder(os.path.dirname(path) or ".")


def write_through(temporary: str, path: str, data: bytes) -> None:
    """Writes a file atomically, through another path on the same disk. So a kill leaves nothing next to the file."""
    _binding.write_file(temporary, data)
    give_name(temporary, path)


def remove_file(path: str) -> None:
    """Removes a file, if it exists."""
    with file_errors(path, "cannot be removed"), suppress(FileNotFoundError):
        os.unlink(path)


def remove_others(pattern: str, keep: Collection[str]) -> None:
    """Removes the files that a glob pattern matches, except those with these names. Files that an earlier run left
    would otherwise be taken for files of this one."""
    for path in glob.glob(pattern):
        if os.path.basename(path) not in keep:
            remove_file(path)
