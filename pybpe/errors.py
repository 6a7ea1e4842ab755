"""Every exception that pybpe raises on purpose.

Each derives from `Error` and from the built-in exception it resembles, so both `except pybpe.Error` and
the `except ValueError` or `except OSError` that a caller already has will catch it. The message is one
line: what was wrong, where, and what to do.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager


class Error(Exception):
    """The base of all errors of this package."""


class ArgumentError(Error, ValueError):
    """An argument is outside what the function accepts."""


class UnknownIdError(ArgumentError, KeyError):
    """An id that is not in the vocabulary: a ValueError as all wrong arguments, and a KeyError as in tiktoken."""

    def __str__(self) -> str:  # KeyError would quote it
        return str(self.args[0])


class FormatError(Error, ValueError):
    """A file's content is not what its format demands. `offset` is the byte at which that showed."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


class LimitError(Error, OverflowError):
    """Valid, but more than the target format or this library can hold."""


class UnsupportedError(Error, ValueError):
    """A target format or library cannot hold something of this tokenizer; the message says what."""


class ShardTooSmallError(LimitError):
    """A split of a corpus has too few tokens for one shard: `tokens`, at `path`."""

    def __init__(self, message: str, path: str, tokens: int) -> None:
        super().__init__(message, path, tokens)
        self.path, self.tokens = path, tokens

    def __str__(self) -> str:
        return str(self.args[0])


class OutOfMemoryError(Error, MemoryError):
    """An allocation failed."""


class MissingExtraError(Error, ImportError):
    """An optional package is not installed; the message names what to `pip install`."""


class NotCompiledError(Error, ImportError):
    """This copy of the package is source code without its compiled part."""


class WorkerError(Error, RuntimeError):
    """A worker process died before it gave its result, or the system has no more threads."""


class FileError(Error, OSError):
    """The operating system refused to read or write a file. `errno` is its reason."""

    def __str__(self) -> str:  # OSError would put "[Errno 2]" before it
        return str(self.args[0])

    def __reduce__(self) -> tuple[object, ...]:  # OSError would lose errno on the way from another process
        return file_error, (self.errno or 0, str(self))


class FileMissingError(FileError, FileNotFoundError):
    """A file or folder does not exist."""


class FilePermissionError(FileError, PermissionError):
    """A file or folder may not be read or written by this user."""


class FileIsFolderError(FileError, IsADirectoryError):
    """A file was expected where there is a folder."""


class FileChangedError(FileError):
    """An input was changed while it was read, or another machine has another copy of it."""


_BY_ERRNO: dict[int, type[FileError]] = {
    errno.ENOENT: FileMissingError,
    errno.EACCES: FilePermissionError,
    errno.EPERM: FilePermissionError,
    errno.EISDIR: FileIsFolderError,
    errno.ESTALE: FileChangedError,
}


def file_error(sys_errno: int, message: str) -> FileError:
    """The FileError for an errno, with `message` as its whole text."""
    error = _BY_ERRNO.get(sys_errno, FileError)(message)
    error.errno = sys_errno
    error.strerror = message
    return error


def not_compiled(package: str) -> NotCompiledError:
    """The error of a package in this folder that was found before the installed one, as happens in a clone."""
    return NotCompiledError(
        f"{package} is source code that is not compiled. To use the pybpe that you installed, run Python from another"
        f" folder than {os.path.dirname(package)}. To work on the source, run `make` there and use .venv/bin/python"
    )


@contextmanager
def file_errors(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], problem: str) -> Iterator[None]:
    """Turns the operating system's errors inside the block into FileErrors: "PATH: PROBLEM: reason"."""
    try:
        yield
    except Error:
        raise
    except OSError as error:
        raise file_error(error.errno or 0, f"{os.fsdecode(path)}: {problem}: {error.strerror or error}") from None
