"""A call replaces only files that equal its result, unless its caller passes force=True.

The result goes into a hidden folder next to a file that is there, or in a folder, and is compared with it at the end:

    nothing there, or only an empty file or folder   the result gets the name
    the same bytes                                   nothing changes: the call was made before
    anything else                                    it stays, and the call raises ArgumentError

In a folder, this is so for every file that the call writes, and other files stay as they are.
"""

from __future__ import annotations

import filecmp
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from .._lazy import shutil
from ..arguments import number_of, param, shown
from ..errors import ArgumentError, Error, file_errors, note, warn
from . import platform
from .call_paths import input_id
from .output_files import FOLDER, make_folder, only_writer, remove_entry, unfinished_folder

_RESULT = "result"  # in the hidden folder


@contextmanager
def output_at(path: str, force: bool = False, keep: bool = False, alone: Collection[str] = ()) -> Iterator[str]:
    """Yields where to write a file or a folder. If the block raises no error, it then is at `path`.

    Args:
        path: the output.
        force: True replaces other content.
        keep: whether a result that may not get its name stays under another one, because it took long to make.
        alone: names of files. If the folder has one of them that the call does not write, it is another result too.

    Raises:
        ArgumentError: something else is there.
    """
    target = os.path.realpath(path)
    if not is_something(target):
        yield path
        return
    if force:
        before = {name: stamp for name in alone if (stamp := _stamp(os.path.join(target, name))) is not None}
        yield path
        left = [name for name, stamp in before.items() if _stamp(os.path.join(target, name)) == stamp]
        if left:
            warn(f"{path}: {', '.join(left)} stay: remove them if they belong to what was replaced")
        return
    # A folder may be on another disk than its parent.
    is_folder = os.path.isdir(target)
    hidden = target if is_folder else unfinished_folder(target)
    place = os.path.join(hidden, FOLDER, _RESULT)
    new = os.path.join(place, os.path.basename(os.path.normpath(os.path.abspath(path))))
    with only_writer(hidden, temporary=not is_folder):
        if os.path.lexists(place):  # left by a killed call
            remove_entry(place)
        make_folder(place)
        try:
            yield new
            other = _other(new, target, alone)
            if other is None:
                if not _add_missing(new, target):
                    note(f"{path}: was complete already")
                return
            where = "" if other == target else f", in {os.path.relpath(other, target)}"
            told = f"{path}: has something else than this call makes{where}, and it stays"
            if keep:
                told += f"; the new result is in {_kept(new, path)}"
            raise ArgumentError(f"{told}: choose another output, or replace it with {param(force=True)}")
        except Error as error:  # that may name the hidden folder
            error.args = tuple(arg.replace(new, path) if isinstance(arg, str) else arg for arg in error.args)
            raise
        finally:
            remove_entry(place)


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Returns how a call differs from the call that made an output, as a sentence for a message.

    Args:
        old, new: the options of the two calls: parameter -> value, or values by their names. "inputs" describes the
            inputs, by their names. "auto" is any value, and so is what the new call cannot say of its tokenizer yet.
    """
    found = list(_differing(old, new))
    others = "the content of an input, an option that is not recorded, or the version of pybpe"
    return f"This call has {'; '.join(found)}" if found else f"This call differs in something else: {others}"


def _differing(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name in dict.fromkeys((*old, *new)):
        before, now = old.get(name), new.get(name)
        if name == "inputs" and not prefix:
            yield from _differing_inputs(before or {}, now or {})
        elif isinstance(before, Mapping) and isinstance(now, Mapping):
            yield from _differing(before, now, f"{prefix}{name}.")
        elif _spelled(before) != _spelled(now) and now != "auto" and (prefix != "tokenizer." or name in new):
            yield f"{prefix}{name if prefix else param(name)} {_short(now)} instead of {_short(before)}"


def _differing_inputs(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    gone = {input_id(name): name for name in old if name not in new}
    other = {name: gone.pop(input_id(name)) for name in new if name not in old and input_id(name) in gone}
    kinds = {
        "new": [name for name in new if name not in old and name not in other],
        "gone": list(gone.values()),
        "changed": [name for name in new if list(old.get(other.get(name, name), new[name])) != list(new[name])],
        "named differently": [f"{name} instead of {before}" for name, before in other.items()],
    }
    some = {kind: names for kind, names in kinds.items() if names}
    if not some and list(old) != list(new):
        yield "the inputs in another order"
    for kind, names in some.items():
        more = f" and {len(names) - 1} more" if names[1:] else ""
        yield f"{number_of(len(names), 'input')} that {'is' if len(names) == 1 else 'are'} {kind}, {names[0]}{more}"


def _spelled(value: object) -> str:
    if isinstance(value, (list, tuple)) and value:
        return ",".join(map(_spelled, value))
    return "none" if value is None or value in ((), []) else str(value).removesuffix(".0")


def _short(value: object) -> str:
    text = _spelled(value)
    return text[:12] if re.fullmatch("[0-9a-f]{32,}", text) else text if 0 < len(text) <= 60 else shown(text)


def is_something(path: str) -> bool:
    """Returns whether there is a file with content, or a folder that is not empty. (Unfinished work does not count,
    nor does a device that a call writes to.)"""
    if os.path.isdir(path):
        with file_errors(path, "cannot be read"):
            return bool(set(os.listdir(path)) - {FOLDER})
    return os.path.isfile(path) and os.path.getsize(path) > 0


def _stamp(path: str) -> tuple[int, int] | None:
    """Returns the facts that a write of a file changes, or None if there is no file."""
    with suppress(OSError):
        found = os.lstat(path)
        return found.st_ino, found.st_mtime_ns
    return None


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


def _add_missing(new: str, old: str) -> bool:
    """Adds the files of a folder that another lacks. Returns whether there were any."""
    added = False
    for name in _files(new) if os.path.isdir(new) else ():
        path = os.path.join(old, name)
        if not os.path.lexists(path):
            make_folder(os.path.dirname(path))
            with file_errors(path, "cannot be written"):
                platform.replace_file(os.path.join(new, name), path)
            added = True
    return added


def _kept(new: str, path: str) -> str:
    """Gives a result a name that nothing has, which it returns."""
    stem, ending = os.path.splitext(os.path.normpath(path))
    spare = next(name for number in count(1) if not os.path.lexists(name := f"{stem}.new{number}{ending}"))
    with file_errors(spare, "cannot be written"):
        shutil.move(new, spare)
    return spare
