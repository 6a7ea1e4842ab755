"""Output folders, and files that get their names only when they are complete."""

from __future__ import annotations

import errno
import glob
import io
import os
from collections.abc import Collection
from contextlib import suppress

from .. import _binding
from .._lazy import hashlib, shutil
from ..arguments import refuse_as_output
from ..errors import file_error, file_errors
from . import platform

_GONE = ".removed"  # the ending of a folder that is being removed
_LONGEST_NAME = 255  # bytes; the limit of nearly all file systems


def make_folder(path: _binding.PathLike) -> str:
    """Makes a folder and its parents, if needed. Returns its path."""
    folder = _binding.path_text(path)
    refuse_as_output(folder)
    with file_errors(folder, "cannot be made"):
        os.makedirs(folder, exist_ok=True)
    return folder


def real_output(path: _binding.PathLike) -> str:
    """Returns the path of an output folder without links. Raises ArgumentError for a URL."""
    name = _binding.path_text(path)
    refuse_as_output(name)
    return os.path.realpath(name)


def unfinished_folder(path: str) -> str:
    """Returns the path of a hidden folder next to a file, for unfinished work. Its name contains the file's name, or a
    hash of that name if it is too long."""
    folder, name = os.path.split(path)
    return os.path.join(folder, _hidden(name, "unfinished"))


def record_name(name: str) -> str:
    """Returns the name of the hidden file, next to a file with this name, that says how `corpus.clean` made it."""
    return _hidden(name, "made")


def _hidden(name: str, ending: str) -> str:
    hidden = f".{name}.{ending}"
    if len(os.fsencode(hidden)) > _LONGEST_NAME:
        hidden = f".{hashlib.blake2b(os.fsencode(name), digest_size=16).hexdigest()}.{ending}"
    return hidden


def output_file(path: str) -> str:
    """Returns the file to write for a path: the path itself, or the target of a link. Raises FileError for a pipe, a
    device or the like, which a regular file would replace."""
    refuse_as_output(path)
    target = os.path.realpath(path) if os.path.islink(path) else path
    if os.path.exists(target) and not os.path.isfile(target):
        raise file_error(errno.EINVAL, f"{path}: cannot be written: not a regular file")
    return target


def give_name(temporary: str, path: str) -> None:
    """Gives a finished file its name. Writes the content to disk before the name, and returns when both are on disk.
    The file gets the mode of the file that it replaces."""
    with file_errors(path, "cannot be written"):
        platform.sync_file(temporary, like=path)
        platform.replace_file(temporary, path)
        platform.sync_folder(os.path.dirname(path) or ".")


def write_all(stream: io.FileIO, data: _binding.Data) -> int:
    """Writes bytes to a file without a buffer, of which a system call may write a part. Returns their number."""
    view = memoryview(data)
    rest = view.cast("B") if view.nbytes else view  # items may have several bytes, and an array of no columns has rows
    while rest.nbytes:
        rest = rest[stream.write(rest) :]
    return view.nbytes


def write_through(temporary: str, path: str, data: bytes) -> None:
    """Writes a file atomically, by way of a temporary path on the same disk. So a kill leaves nothing next to it."""
    with file_errors(temporary, "cannot be written"), open(temporary, "wb") as stream:
        stream.write(data)
    give_name(temporary, path)


def remove_file(path: str) -> None:
    """Removes a file, if it exists."""
    with file_errors(path, "cannot be removed"), suppress(FileNotFoundError):
        os.unlink(path)


def remove_folder(path: str) -> None:
    """Removes a folder with its files, if it exists."""
    with file_errors(path, "cannot be removed"), suppress(FileNotFoundError):
        shutil.rmtree(path)


def remove_entry(path: str) -> None:
    """Removes a file, or a folder with all that is in it. A worker that was given up may still write to the folder; it
    cannot if the folder's name is gone."""
    if not os.path.isdir(path):
        with suppress(FileNotFoundError):  # what a kill left of a folder is removed with the folder
            os.unlink(path)
        return
    gone = path.removesuffix(_GONE) + _GONE
    if gone != path:
        shutil.rmtree(gone, ignore_errors=True)  # left by a kill
        os.rename(path, gone)
        platform.sync_folder(os.path.dirname(path))
    shutil.rmtree(gone)


def remove_others(folder: str, pattern: str, keep: Collection[str]) -> None:
    """Removes the files of a folder whose names match a glob pattern, except those with these names. Otherwise, readers
    would mistake files that an earlier run left for files of this run."""
    for name in glob.glob(pattern, root_dir=folder):
        if name not in keep:
            remove_file(os.path.join(folder, name))
