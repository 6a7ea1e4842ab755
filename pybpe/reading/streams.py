"""Opens files and standard input for reading. The errors of these streams name the file."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, BinaryIO

from .. import _binding
from .._lazy import hashlib, numpy
from ..arguments import is_url, without_secrets
from ..errors import ArgumentError, FileError, FormatError, file_error, file_errors
from ..support.parallel import end_if_unwanted

_HASH_BLOCK = 1 << 18  # bytes; fits in a CPU cache
JSON_HEAD_BYTES = 1 << 16  # for what begins like JSON: its first lines show whether it is JSON lines
POINTER = b"version https://git-lfs.github.com/spec/"  # how a file begins that Git LFS has not fetched
PULL = "run `git lfs pull` in its repository"
_READ_BYTES = 1 << 24  # the most bytes that are read at once, whatever length a damaged file claims


class InputStream(io.FileIO):
    """A file open for reading. Its errors name the file. A read returns fewer bytes than requested only at the end of
    the file, whatever the file system does."""

    def readinto(self, block: Any) -> int:
        view = memoryview(block)
        view = view.cast("B") if view.nbytes else view[:0]  # an empty view cannot be cast
        filled = 0
        with file_errors(self.name, "cannot be read"):
            while filled < len(view):
                got = super().readinto(view[filled:])
                if not got:
                    break
                filled += got
        return filled

    def read(self, size: int | None = -1) -> bytes:
        with file_errors(self.name, "cannot be read"):
            if size is None or size < 0:
                return super().readall()
            parts = []
            while size > 0 and (part := super().read(min(size, _READ_BYTES))):
                parts.append(part)
                size -= len(part)
        return b"".join(parts)

    def readall(self) -> bytes:
        return self.read()


class UnchangedStream(InputStream):
    """A file open for reading. As a context manager, it raises FileChangedError after the block if somebody has written
    to the file meanwhile, since what was read may then be neither the old content nor the new one. (The size and the
    modification time show that. A file that was replaced by renaming is read to the end as it was. A pipe cannot be
    read twice, and has no such times.)

    Args:
        path: the file.
        compare: raises FileChangedError, here and after the block, for the status of a file that has changed.
    """

    def __init__(self, path: _binding.PathLike, compare: Callable[[os.stat_result], None] | None = None) -> None:
        super().__init__(path)
        self.status, self._compare = os.fstat(self.fileno()), compare
        try:
            self.check()
        except FileError:
            self.close()
            raise

    def check(self) -> None:
        """Raises FileChangedError if the file has changed."""
        if self._compare is not None:
            self._compare(os.fstat(self.fileno()))
        elif stat.S_ISREG(self.status.st_mode) and _content(os.fstat(self.fileno())) != _content(self.status):
            raise _changed(self.name, "somebody wrote to it")

    def check_name(self) -> None:
        """Raises FileChangedError if the name now belongs to another file."""
        with file_errors(self.name, "cannot be opened"):
            now = os.stat(self.name)
        if (now.st_dev, now.st_ino) != (self.status.st_dev, self.status.st_ino):
            raise _changed(self.name, "it was replaced")

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self.check()
        finally:
            self.close()


def _content(status: os.stat_result) -> tuple[int, int]:
    return status.st_size, status.st_mtime_ns


def _changed(name: str | bytes | os.PathLike[str] | os.PathLike[bytes], how: str) -> FileError:
    return file_error(
        errno.ESTALE,
        f"{os.fsdecode(name)}: this file changed while it was read: {how}. Run again when nothing writes to it",
    )


def open_input(path: _binding.PathLike) -> InputStream:
    """Opens a local file for reading. Raises FileError if that fails; the stream raises it if a read fails."""
    with file_errors(_local(path), "cannot be opened"):
        return InputStream(path)


def open_unchanged(path: _binding.PathLike) -> UnchangedStream:
    """Opens a local file whose content must not change while it is read: see UnchangedStream. Raises FileError if that
    fails; the stream raises it if a read fails."""
    with file_errors(_local(path), "cannot be opened"):
        return UnchangedStream(path)


def read_file(path: _binding.PathLike) -> bytes:
    """Returns the content of a local file. Raises FileError: it cannot be read, or was changed meanwhile; FormatError:
    it is a pointer of Git LFS."""
    with open_unchanged(path) as stream:
        return without_pointer(stream.read(), path)


def without_pointer(data: bytes, path: _binding.PathLike) -> bytes:
    """Returns the content of a file. Raises FormatError for what Git has in place of a large file."""
    if data.startswith(POINTER):
        raise FormatError(f"{_binding.path_text(path)}: a pointer of Git LFS, not the file itself: {PULL}")
    return data


class Snapshot:
    """Reads several local files as they are at one moment. As a context manager, it raises FileChangedError after the
    block if one of them was changed or replaced meanwhile."""

    def __init__(self) -> None:
        self._streams: list[UnchangedStream] = []

    def read(self, path: _binding.PathLike) -> bytes:
        """Returns the content of a file. Raises FileError if it cannot be read."""
        self._streams.append(open_unchanged(path))
        return without_pointer(self._streams[-1].read(), path)

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with ExitStack() as stack:
            for stream in self._streams:
                stack.callback(stream.close)
            for stream in self._streams if kind is None else ():
                stream.check()
                stream.check_name()


def _local(path: _binding.PathLike) -> str:
    """Returns the name of a local file. Raises ArgumentError for a URL, and for anything that is not a path."""
    name = _binding.path_text(path)
    if is_url(name):
        raise ArgumentError(f"{without_secrets(name)}: only text can be read from a URL: copy this file here first")
    return name


class _StandardInput(InputStream):
    """Standard input. Never reads again after its end, because on a terminal each such read would wait for Ctrl-D."""

    def __init__(self) -> None:
        super().__init__(0, closefd=False)
        self.name = "standard input"
        self._ended = False

    def readinto(self, block: Any) -> int:
        got = 0 if self._ended else super().readinto(block)
        self._ended = self._ended or got < memoryview(block).nbytes
        return got

    def read(self, size: int | None = -1) -> bytes:
        data = b"" if self._ended else super().read(size)
        self._ended = self._ended or size is None or size < 0 or len(data) < size
        return data

    def seek(self, offset: int, whence: int = 0) -> int:
        self._ended = False
        return super().seek(offset, whence)


def open_stdin() -> InputStream:
    """Opens standard input, as `open_input` opens a file."""
    return _StandardInput()


class DerivedStream(io.RawIOBase):
    """A stream that is made of another one, from its start: its decompressed content, or its text in UTF-8. To move
    back, it begins again.

    Args:
        name: what errors call it.
        source: the other stream. When this object ends as a context manager, the source does.
    """

    def __init__(self, name: str, source: BinaryIO) -> None:
        self.name, self._source = name, source
        self._begin()

    def _begin(self) -> None:
        """Makes ready to read the source from its start."""
        self._given = 0

    def _next(self, size: int) -> bytes:
        """Returns the next bytes, at most `size`, which is not 0; b"" at the end."""
        raise NotImplementedError

    def _take(self, size: int) -> bytes:
        data = self._next(size)
        self._given += len(data)
        return data

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer. Fills only its start if the stream ends."""
        return _binding.fill(buffer, self._take)

    def tell(self) -> int:
        return self._given

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Moves to an offset from the start. Reads everything before it, again if necessary."""
        if offset < self._given:
            self._source.seek(0)
            self._begin()
        while self._given < offset and self._take(offset - self._given):
            pass
        return self._given

    def close(self) -> None:
        self._source.close()
        super().close()

    def __exit__(self, *error: Any) -> None:
        self._source.__exit__(*error)


class Peekable(io.BufferedReader):
    """A stream whose first JSON_HEAD_BYTES can be looked at before they are read."""

    def __init__(self, stream: Any) -> None:
        super().__init__(stream, JSON_HEAD_BYTES)
        self._stream = stream

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)  # which may look whether the file has changed


class Limited:
    """The next `size` bytes of a stream."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self.name, self._stream, self._left = stream.name, stream, size

    def readinto(self, buffer: memoryview) -> int:
        """See io.RawIOBase."""
        got: int = self._stream.readinto(buffer[: self._left]) or 0  # type: ignore[attr-defined]
        self._left -= got
        return got

    def __enter__(self) -> Limited:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)


def read_items(stream: BinaryIO, dtype: str | numpy.dtype[Any], count: int) -> numpy.ndarray[Any, Any]:
    """Reads the next `count` items of a file that `open_input` opened. Returns an array of shape (count,); shorter at
    the end of the file."""
    items = numpy.empty(count, dtype)
    got: int = stream.readinto(items)  # type: ignore[attr-defined]
    return items[: got // items.itemsize]


def file_sha256(path: str, size: int | None = None) -> str:
    """Returns the SHA-256 of a file, or of its first `size` bytes, in hex."""
    digest = hashlib.sha256()
    block = memoryview(bytearray(_HASH_BLOCK))
    with open_input(path) as whole:
        stream = whole if size is None else Limited(whole, size)
        while got := stream.readinto(block):
            end_if_unwanted()
            digest.update(block[:got])
    return digest.hexdigest()
