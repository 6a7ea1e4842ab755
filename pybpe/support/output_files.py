"""Output folders, which have one writer at a time, and files that get their names only when they are complete. A call
replaces only files that equal its result, unless its caller passes force=True.
"""

from __future__ import annotations

import errno
import filecmp
import glob
import io
import os
import re
import weakref
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from .. import _binding
from .._lazy import hashlib, shutil, tempfile
from ..arguments import number_of, param, refuse_as_output, shown
from ..errors import ArgumentError, Error, FileError, file_error, file_errors, note, warn
from . import platform
from .call_paths import input_id

_GONE = ".removed"  # the ending of a folder that is being removed
_LONGEST_NAME = 255  # bytes. The limit of nearly all file systems


def make_folder(path: _binding.PathLike) -> str:
    """Makes a folder and its parents, if needed. Returns its path."""
    folder = _binding.path_text(path)
    refuse_as_output(folder)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:  # its name is the folder or the parent that cannot be made
        raise file_error(error.errno or 0, f"{error.filename}: cannot be made: {error.strerror}") from None
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


def receipt_name(name: str) -> str:
    """Returns the name of the hidden file, next to a file with this name, that says how `corpus.clean` made it."""
    return _hidden(name, "made")


CLEANED = ".corpus.made"  # the same in a folder that `corpus.clean` filled


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
    """Writes bytes to a file without a buffer. A system call may write a part. Returns their number."""
    view = memoryview(data)
    rest = view.cast("B") if view.nbytes else view  # items may have several bytes, and an array of no columns has rows
    while rest.nbytes:
        rest = rest[stream.write(rest) :]
    return view.nbytes


def remove_file(path: str) -> None:
    """Removes a file, if it exists."""
    with file_errors(path, "cannot be removed"), suppress(FileNotFoundError):
        os.unlink(path)


def remove_folder(path: str) -> None:
    """Removes a folder with its files, if it exists."""
    with file_errors(path, "cannot be removed"), suppress(FileNotFoundError):
        shutil.rmtree(path)


def temporary_folder(owner: object) -> str:
    """Makes a temporary folder, which is removed with an object of this process."""
    folder: str = tempfile.mkdtemp(prefix="pybpe-")
    weakref.finalize(owner, _remove_own, folder, os.getpid())
    return folder


def _remove_own(folder: str, process: int) -> None:
    if os.getpid() == process:  # not a worker, which has a copy of the object
        remove_folder(folder)


def remove_entry(path: str) -> None:
    """Removes a file, or a folder with all of its contents. First the folder gets another name, because a worker that
    pybpe no longer waits for may still write to the folder."""
    if not os.path.isdir(path):
        with suppress(FileNotFoundError):  # the remains of a killed call are removed with the folder
            os.unlink(path)
        return
    gone = path.removesuffix(_GONE) + _GONE
    if gone != path:
        shutil.rmtree(gone, ignore_errors=True)  # left by a kill
        os.rename(path, gone)
        platform.sync_folder(os.path.dirname(path))
    shutil.rmtree(gone)


def remove_work(folder: str) -> None:
    """Removes the work of a run that is finished or abandoned."""
    hidden = os.path.join(folder, FOLDER)
    with file_errors(hidden, "cannot be removed"):
        for name in sorted(set(os.listdir(hidden)) - {LOCK}):
            remove_entry(os.path.join(hidden, name))


def remove_others(folder: str, pattern: str, keep: Collection[str]) -> None:
    """Removes the files of a folder whose names match a glob pattern, except files with these names. Otherwise, readers
    would mistake files that an earlier run left for files of this run."""
    for name in glob.glob(pattern, root_dir=folder):
        if name not in keep:
            remove_file(os.path.join(folder, name))


# ----------------------------------------------------------------------------------------------------
# One writer at a time: two in one folder would overwrite files of the other one, and both report success.
#
# A writer takes the lock before it writes anything, and holds it until it has written everything. The lock is a file
# that the process locks, so a kill releases it, and worker processes do not inherit it. Such a lock belongs to the
# process, so a table in memory keeps its threads apart. At the end, the writer removes the file. A process that opened
# the file before that notices that the name no longer refers to it, and tries again.

FOLDER = ".pybpe-unfinished"  # inside an output folder. Holds unfinished files and the lock
STAGED = "input-"  # the prefix of copied inputs
LOCK = "input-lock"  # begins with STAGED, because a new run keeps such files: see task_results.py
PARTS = "parts"  # there, too: the output of `corpus.clean` whose files are getting their names
_TRIES = 100  # a lock file disappears between opening and locking only if another writer ends at that moment
_held: dict[tuple[int, str], object] = {}  # (process, lock file) of the locks that this process's threads hold


@contextmanager
def only_writer(folder: str, temporary: bool = False) -> Iterator[None]:
    """Holds the lock of an output folder, or raises FileError. Makes the folder if needed. If so, or with `temporary`,
    removes it afterwards if it is empty. Removes copied inputs, which the next call copies again. If Ctrl-C ends the
    block and unfinished work is left, the KeyboardInterrupt says so."""
    refuse_as_output(folder)
    hidden = os.path.join(folder, FOLDER)
    ours = (hidden, folder) if temporary or not os.path.isdir(folder) else (hidden,)
    make_folder(hidden)
    try:
        try:
            with only_holder(os.path.join(hidden, LOCK), folder):
                try:
                    yield
                finally:
                    remove_others(hidden, f"{STAGED}*", (LOCK,))
        finally:
            for path in ours:
                with suppress(OSError):  # it is not empty, or another writer uses it
                    os.rmdir(path)
    except KeyboardInterrupt as interrupt:
        if os.path.exists(folder if temporary else hidden):
            interrupt.args = ("to resume, run the same command again",)
        raise


@contextmanager
def only_holder(lock: str, target: str) -> Iterator[None]:
    """Holds a lock file, or raises FileError. Its message says that `target` is being written."""
    key, mine = (os.getpid(), os.path.realpath(lock)), object()
    if _held.setdefault(key, mine) is not mine:
        raise _refusal(errno.EAGAIN, target, "another thread")
    try:
        handle = _locked(lock, target)
        try:
            yield
        finally:
            with suppress(OSError):  # nothing was written to the file, so an error does not matter
                if _is_named(handle, lock):
                    platform.remove_and_close(handle, lock)
                else:
                    os.close(handle)
    finally:
        del _held[key]


def _locked(lock: str, target: str) -> int:
    """Opens and locks the lock file. Returns its handle."""
    for _ in range(_TRIES):
        make_folder(os.path.dirname(lock) or ".")
        try:
            handle = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except FileNotFoundError:  # another writer has just removed the folder
            continue
        except OSError as error:
            raise file_error(error.errno or 0, f"{lock}: cannot be written: {error.strerror}") from None
        try:
            platform.lock_file(handle)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                os.close(handle)
                raise _refusal(error.errno, target, "another process") from None
            return handle  # the file system has no locks
        if _is_named(handle, lock):
            return handle
        os.close(handle)
    raise _refusal(errno.EAGAIN, target, "another process")


def _is_named(handle: int, path: str) -> bool:
    """Returns whether a path still refers to the file that was opened through it."""
    with file_errors(path, "cannot be examined"):
        opened = os.fstat(handle)
        try:
            named = os.stat(path)
        except FileNotFoundError:
            return False
    return (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino)


def _refusal(sys_errno: int, target: str, who: str) -> FileError:
    return file_error(sys_errno, f"{target}: {who} is writing to it: wait until that ends, or choose another output")


# ----------------------------------------------------------------------------------------------------
# A call replaces only files that equal its result, unless its caller passes force=True.
#
# The result goes into a hidden folder next to a file that is there, or in a folder, and is compared with it at the end:
#
#     nothing there, or only an empty file or folder   the result gets the name
#     the same bytes                                   nothing changes: the call was made before
#     anything else                                    it stays, and the call raises ArgumentError
#
# In a folder, this is so for every file that the call writes, and other files stay as they are.

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
            warn(f"{path}: {', '.join(left)} were not removed: remove them if they belong to the old output")
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
