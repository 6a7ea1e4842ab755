"""Allows one writer at a time. Two writers in one folder would overwrite each other's files, and both report success.

A writer takes the lock before it writes anything, and holds it until it has written everything. The lock is a file that
the process locks, so a kill releases it, and worker processes do not inherit it. Such a lock belongs to the process, so
a table in memory keeps its threads apart. At the end, the writer removes the file. A process that opened the file
before that notices that the name no longer refers to it, and tries again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..arguments import refuse_as_output
from ..errors import FileError, file_error, file_errors
from . import platform
from .output_files import make_folder

FOLDER = ".pybpe-unfinished"  # inside an output folder; holds unfinished files and the lock
STAGED = "input-"  # the prefix of what is made before the log: copied inputs
LOCK = "input-lock"  # begins with STAGED, because a new run keeps such files: see tokens/run.py
_TRIES = 100  # a lock file disappears between opening and locking only if another writer ends at that moment
_held: dict[tuple[int, str], object] = {}  # (process, lock file) of the locks that this process's threads hold


@contextmanager
def only_writer(folder: str, temporary: bool = False) -> Iterator[None]:
    """Holds the lock of an output folder, or raises FileError. Makes the folder if needed; if so, or with `temporary`,
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
    """Holds a lock file, or raises FileError. Its message names `target` as what is being written."""
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
