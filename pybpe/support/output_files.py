"""Output folders, which have one writer at a time, and files that get their names only when they are complete."""

from __future__ import annotations

import errno
import glob
import io
import os
import weakref
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress

from .. import _binding
from .._lazy import hashlib, shutil, tempfile
from ..arguments import refuse_as_output
from ..errors import FileError, file_error, file_errors
from . import platform

_GONE = ".removed"  # the ending of a folder that is being removed
_LONGEST_NAME = 255  # bytes. The limit of nearly all file systems


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
    """Removes a file, or a folder with all that is in it. A worker that was given up may still write to the folder. It
    cannot if the folder's name is gone."""
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
    """Removes the work of a run that has ended, finished or given up."""
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
# One writer at a time: two in one folder would overwrite each other's files, and both report success.
#
# A writer takes the lock before it writes anything, and holds it until it has written everything. The lock is a file
# that the process locks, so a kill releases it, and worker processes do not inherit it. Such a lock belongs to the
# process, so a table in memory keeps its threads apart. At the end, the writer removes the file. A process that opened
# the file before that notices that the name no longer refers to it, and tries again.

FOLDER = ".pybpe-unfinished"  # inside an output folder. Holds unfinished files and the lock
STAGED = "input-"  # the prefix of what is made before the log: copied inputs
LOCK = "input-lock"  # begins with STAGED, because a new run keeps such files: see tokens/run.py
PARTS = "parts"  # there, too: the output of `corpus.clean` whose files are getting their names
_TRIES = 100  # a lock file disappears between opening and locking only if another writer ends at that moment
_held: dict[tuple[int, str], object] = {}  # (process, lock file) of the locks that this process's threads hold


@contextmanager
def only_writer(folder: str, temporary: bool = False) -> Iterator[None]:
    """Holds the lock of an output folder, or raises FileError. Makes the folder if needed. If so, or with `temporary`,
    removes it afterwards if it is empty. If Ctrl-C ends the block and unfinished work is left, the KeyboardInterrupt
    says so."""
    refuse_as_output(folder)
    is_new = not os.path.isdir(folder)
    hidden = make_folder(os.path.join(folder, FOLDER))
    paths = (hidden, folder) if temporary else (hidden,)
    try:
        try:
            with only_holder(os.path.join(hidden, LOCK), folder):
                yield
        finally:
            for path in (hidden, *([folder] if temporary or is_new else ())):
                with suppress(OSError):  # it is not empty, or another writer uses it
                    os.rmdir(path)
    except KeyboardInterrupt as interrupt:
        if os.path.exists(paths[-1]):
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
