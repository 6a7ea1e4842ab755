"""What a call may replace: nothing but what is equal to its result, unless its caller passes force=True.

The result goes into a hidden folder next to an output that is there, and is compared with it at the end:

    nothing there, or only an empty file or folder   the result gets the name
    the same bytes                                   nothing changes: the call was made before
    anything else                                    it stays, and the call raises ArgumentError

In a folder, this is so for each file that the call writes, and other files stay as they are.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import count

from ..arguments import param
from ..errors import ArgumentError, Error, file_errors, note
from . import platform
from .locking import FOLDER, only_writer
from .output_files import make_folder, remove_entry, unfinished_folder


@contextmanager
def output_at(path: str, force: bool = False, keep: bool = False, alone: Collection[str] = ()) -> Iterator[str]:
    """Yields where to write a file or a folder. If the block raises no error, it then is at `path`.

    Args:
        path: the output.
        force: True replaces what is there.
        keep: whether a result that may not get its name stays under another one, because it took long to make.
        alone: names of files. If the folder has one of them that the call does not write, it is another result too.

    Raises:
        ArgumentError: something else is there.
    """
    target = os.path.realpath(path)
    if force or not is_something(target):
        yield path
        return
    hidden = unfinished_folder(target)
    new = os.path.join(hidden, os.path.basename(os.path.normpath(path)))
    with only_writer(hidden, temporary=True):
        with file_errors(hidden, "cannot be emptied"):
            for name in set(os.listdir(hidden)) - {FOLDER}:  # left by a killed call
                remove_entry(os.path.join(hidden, name))
        try:
            yield new
            other = _other(new, target, alone)
            if other is None:
                note(f"{path}: was complete already")
                _add_missing(new, target)
                return
            where = "" if other == target else f", in {os.path.relpath(other, target)}"
            told = f"{path}: has something else than this call makes{where}, and it stays"
            if keep:
                told += f"; the new result is in {_kept(new, path)}"
            raise ArgumentError(f"{told}: choose another output, or replace it with {param(force=True)}")
        except Error as error:  # in which the hidden folder may be named
            error.args = tuple(arg.replace(new, path) if isinstance(arg, str) else arg for arg in error.args)
            raise
        finally:
            if os.path.lexists(new):
                remove_entry(new)


def is_something(path: str) -> bool:
    """Returns whether there is a file with content, or a folder that is not empty. (Unfinished work does not count,
    nor does a device, to which a call writes.)"""
    if os.path.isdir(path):
        with file_errors(path, "cannot be read"):
            return bool(set(os.listdir(path)) - {FOLDER})
    return os.path.isfile(path) and os.path.getsize(path) > 0


def _files(folder: str) -> list[str]:
    return [os.path.relpath(os.path.join(at, name), folder) for at, _, names in os.walk(folder) for name in names]


def _other(new: str, old: str, alone: Collection[str]) -> str | None:
    """Returns a file that is there and differs from the one to write, or that is one of `alone` and is not written."""
    if not os.path.isdir(new) or not os.path.isdir(old):
        with file_errors(old, "cannot be read"):
            is_same = os.path.isfile(new) and os.path.isfile(old) and filecmp.cmp(new, old, shallow=False)
        return None if is_same else old
    files = _files(new)
    for name in sorted(files):
        path = os.path.join(old, name)
        if os.path.lexists(path) and (found := _other(os.path.join(new, name), path, ())) is not None:
            return found
    stale = (os.path.join(old, name) for name in sorted(set(alone) - set(files)))
    return next(filter(os.path.lexists, stale), None)


def _add_missing(new: str, old: str) -> None:
    for name in _files(new) if os.path.isdir(new) else ():
        path = os.path.join(old, name)
        if not os.path.lexists(path):
            make_folder(os.path.dirname(path))
            with file_errors(path, "cannot be written"):
                platform.replace_file(os.path.join(new, name), path)


def _kept(new: str, path: str) -> str:
    """Gives a result a name that nothing has, which it returns."""
    stem, ending = os.path.splitext(os.path.normpath(path))
    spare = next(name for number in count(1) if not os.path.lexists(name := f"{stem}.new{number}{ending}"))
    with file_errors(spare, "cannot be written"):
        os.rename(new, spare)
    return spare
