"""The differences between POSIX and Windows. Only this module imports and calls functions that one of the two lacks.
All other modules of pybpe and llmc_compat run on both."""

from __future__ import annotations

import errno
import os
import signal
import stat
import sys
import time
from contextlib import suppress

if sys.platform == "win32":  # pragma: no cover (other systems)
    import msvcrt
    import shutil
    import threading

    _positions = threading.Lock()

    # The signals that end a program from outside. Windows sends SIGBREAK when the user closes the program's console.
    ENDING_SIGNALS = (signal.SIGTERM, signal.SIGBREAK)

    def lock_file(handle: int) -> None:
        """Locks an open file until this process ends. Raises PermissionError (EACCES) if another process holds the
        lock, and for any other error, because Wine reports that one with a random error number."""
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError as error:
            raise PermissionError(errno.EACCES, error.strerror) from None

    def remove_and_close(handle: int, path: str) -> None:
        """Releases the lock of a file, and removes the file. Windows cannot remove a file that is open. If another
        process has opened it, that process removes it later."""
        os.close(handle)
        with suppress(OSError):
            os.unlink(path)

    def sync_file(path: str, like: str | None = None) -> None:
        """Makes sure that a file's content is on disk. It inherits its permissions from its folder."""
        with open(path, "r+b") as stream:
            os.fsync(stream.fileno())

    def replace_file(source: str, target: str) -> None:
        """Renames a file, and replaces the file with the new name. Windows refuses that while any program has this file
        open or mapped. Programs that examine new files have them open for an instant. So tries again for half a
        second, and then raises PermissionError."""
        for pause in (0.01, 0.04, 0.15, 0.3, None):
            try:
                return os.replace(source, target)
            except PermissionError as error:
                if pause is None:
                    reason = f"{error.strerror}; perhaps the file is open in a program"
                    raise PermissionError(error.errno, reason, target) from None
                time.sleep(pause)

    def sync_folder(folder: str) -> None:
        """Does nothing. Windows cannot sync a folder, and NTFS keeps a journal of names."""

    def make_link(target: str, link: str) -> None:
        """Makes a symbolic link, or a copy if the user may not make links. `target` is relative to the link."""
        try:
            os.symlink(target, link)
        except OSError:
            shutil.copyfile(os.path.join(os.path.dirname(link), target), link)

    def open_files_limit() -> int | None:
        """Returns how many files this process may have open, or None if nothing limits it."""
        return None

    def machine_memory() -> int | None:
        """Returns None: Python cannot say on Windows."""
        return None

    def read_at(handle: int, size: int, offset: int) -> bytes:
        """Returns bytes from a place in an open file. Fewer than `size` only at its end. Windows has one position for
        every open file, so threads take turns."""
        with _positions:
            os.lseek(handle, offset, os.SEEK_SET)
            data = os.read(handle, size)
            while len(data) < size and (more := os.read(handle, size - len(data))):
                data += more
        return data

    def cpu_count() -> int:
        """Returns the number of CPUs that this process may use."""
        return os.cpu_count() or 1

else:
    import fcntl
    import resource

    # The signals that end a program from outside. The system sends SIGHUP when the program's terminal closes.
    ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)

    def lock_file(handle: int) -> None:
        """Locks an open file until this process ends. Raises OSError with EACCES or EAGAIN if another process holds the
        lock, and with another error number if the file system has no locks."""
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove_and_close(handle: int, path: str) -> None:
        """Removes a locked file, and then releases the lock, so that nobody locks a file without a name."""
        with suppress(OSError):
            os.unlink(path)
        os.close(handle)

    def sync_file(path: str, like: str | None = None) -> None:
        """Makes sure that a file's content is on disk. It gets the permissions of the file `like`, if there is one."""
        with open(path, "rb") as stream:
            if like is not None:
                with suppress(OSError):  # there is no such file, or the file system has no permissions
                    os.fchmod(stream.fileno(), stat.S_IMODE(os.stat(like).st_mode) & 0o777)
            os.fsync(stream.fileno())

    def replace_file(source: str, target: str) -> None:
        """Renames a file, and replaces the file with the new name."""
        os.replace(source, target)

    def sync_folder(folder: str) -> None:
        """Makes sure that the names in a folder are on disk."""
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def make_link(target: str, link: str) -> None:
        """Makes a symbolic link. `target` is relative to the link."""
        os.symlink(target, link)

    def open_files_limit() -> int | None:
        """Returns how many files this process may have open, or None if nothing limits it."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return None if soft == resource.RLIM_INFINITY else soft

    def machine_memory() -> int | None:
        """Returns how many bytes of memory the machine has, or fewer if the process's cgroup has a limit."""
        sizes = []
        with suppress(OSError, ValueError):
            sizes.append(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
        groups = [""]  # in a container, its own group may be the root of all that it sees
        with suppress(OSError), open("/proc/self/cgroup") as stream:
            groups += [
                line.rstrip("\n").split(":", 2)[2].rstrip("/")
                for line in stream
                if line[:3] == "0::" or ":memory:" in line
            ]
        for group in groups:
            for name in (f"{group}/memory.max", f"memory{group}/memory.limit_in_bytes"):
                with suppress(OSError, ValueError), open(f"/sys/fs/cgroup/{name}") as stream:
                    sizes.append(int(stream.read()))  # "max" is no limit
        return min(sizes, default=None)

    def read_at(handle: int, size: int, offset: int) -> bytes:
        """Returns bytes from a place in an open file; fewer than `size` only at its end."""
        data = os.pread(handle, size, offset)
        while len(data) < size and (more := os.pread(handle, size - len(data), offset + len(data))):
            data += more  # systems limit the bytes of one call
        return data

    def cpu_count() -> int:
        """Returns how many CPUs this process may use."""
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
