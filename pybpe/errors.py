"""The exceptions that pybpe raises on purpose.

They derive from `Error` and from the built-in exceptions they resemble, so both `except pybpe.Error` and an existing
`except ValueError` or `except OSError` catch it. The message is one line: what was wrong, where, and what to do.
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable


class Error(Exception):
    """The base class of all errors of this package."""

    def __str__(self) -> str:  # KeyError would quote it, and OSError put "[Errno 2]" before it
        return str(self.args[0]) if self.args else ""


class ArgumentError(Error, ValueError):
    """The function does not accept an argument."""


class UnknownIdError(ArgumentError, KeyError):
    """An id is not in the vocabulary. This is a ValueError like every wrong argument, and a KeyError as in tiktoken."""


class FormatError(Error, ValueError):
    """The content of a file violates its format. `offset` is the byte offset where pybpe found the violation."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


class LimitError(Error, OverflowError):
    """A valid value exceeds a limit of the target format or of this library."""


class UnsupportedError(Error, ValueError):
    """A target format or library cannot represent a feature of this tokenizer. The message says which."""


class ShardTooSmallError(LimitError):
    """A split of a corpus has too few tokens for one shard: it has `tokens`, and the shard would be `path`."""

    def __init__(self, message: str, path: str, tokens: int) -> None:
        super().__init__(message, path, tokens)
        self.path, self.tokens = path, tokens


class OutOfMemoryError(Error, MemoryError):
    """An allocation failed."""


class MissingExtraError(Error, ImportError):
    """An optional package is not installed. The message has the command for `pip`."""


class NotCompiledError(Error, ImportError):
    """This copy of the package is source code without its compiled extension. Python found it before the installed one,
    as in a clone."""


class WorkerError(Error, RuntimeError):
    """A worker process died before it returned its result, or the system has no more threads."""


class FileError(Error, OSError):
    """The operating system could not read or write a file. `errno` is its error number."""

    def __reduce__(self) -> tuple[object, ...]:  # OSError would lose errno between processes
        return file_error, (self.errno or 0, str(self))


class FileMissingError(FileError, FileNotFoundError):
    """A file or folder does not exist."""


class FilePermissionError(FileError, PermissionError):
    """This user may not read or write a file or folder."""


class FileIsFolderError(FileError, IsADirectoryError):
    """A folder is where a file was expected."""


class FileChangedError(FileError):
    """An input changed while it was being read, or another machine has a different copy of it."""


_BY_ERRNO: dict[int, type[FileError]] = {
    errno.ENOENT: FileMissingError,
    errno.EACCES: FilePermissionError,
    errno.EPERM: FilePermissionError,
    errno.EISDIR: FileIsFolderError,
    errno.ESTALE: FileChangedError,
}


def file_error(sys_errno: int, message: str) -> FileError:
    """Returns the FileError for an errno, with `message` as its whole text."""
    error = _BY_ERRNO.get(sys_errno, FileError)(message)
    error.errno = sys_errno
    error.strerror = message
    return error


class file_errors:  # noqa: N801  a context manager, which takes a third of the time of one made by a decorator
    """Turns the operating system's errors inside the block into FileErrors: "PATH: PROBLEM: reason"."""

    __slots__ = ("_path", "_problem")

    def __init__(self, path: str | bytes | os.PathLike[str] | os.PathLike[bytes], problem: str) -> None:
        self._path, self._problem = path, problem

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError) and not isinstance(error, Error):
            reason = error.strerror or error
            raise file_error(error.errno or 0, f"{os.fsdecode(self._path)}: {self._problem}: {reason}") from None


class PybpeWarning(UserWarning):
    """The class of all warnings of this package, for `warnings.filterwarnings`."""


def _log(message: str) -> None:
    import logging  # takes milliseconds

    logging.getLogger("pybpe").info(message)


show_note: Callable[[str], None] = _log  # the command line replaces it, as it replaces warnings.showwarning


def note(message: str) -> None:
    """Logs an event that a caller may not expect, such as resuming: logger "pybpe", level INFO. The command line
    prints it."""
    show_note(message)


def warn(message: str) -> None:
    """Issues a warning whose location is the first line outside the package: the caller's."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(os.path.dirname(__file__) + os.sep):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, PybpeWarning, stacklevel=level)
