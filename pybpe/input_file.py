"""One file of a corpus, as a run first saw it: where it is, how it is read, and what shows that it has changed since.

A run looks at each file once, before it reads any. Whoever reads the file later, or a range of it, on this machine or
on another, compares size and time with what was seen then: before the first byte and after the last one. So a file
that is cut, grows or is replaced during a run is an error, never a result with a part of the text.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from .errors import FileChangedError, FileError, file_error, file_errors
from .pretokenize import STDIN, InputStream, open_stdin
from .unpacking import packing_of_name, unpacked


@dataclass(frozen=True)
class InputFile:
    """A file as it was when the run began.

    Attributes:
        path: its name; STDIN is standard input.
        size, mtime_ns: of the file. `size` is None for what is no regular file, where nothing can be compared.
        packing: how it is compressed (see unpacking.py), or None.
    """

    path: str
    size: int | None = None
    mtime_ns: int = 0
    packing: str | None = None

    @classmethod
    def of(cls, path: str) -> InputFile:
        """Looks at a file. FileError if there is none."""
        packing = packing_of_name(path)
        if path == STDIN:
            return cls(path, packing=packing)
        with file_errors(path, "cannot be opened"):
            status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return cls(path, packing=packing)
        return cls(path, status.st_size, status.st_mtime_ns, packing)

    @property
    def is_sequential(self) -> bool:
        """Whether it can only be read from its start: what is at a place of the text is not at that place of the
        file."""
        return self.packing is not None

    @property
    def known_size(self) -> int | None:
        """How many bytes of text there are, if the file's size tells."""
        return None if self.is_sequential else self.size

    def open(self) -> BinaryIO:
        """Opens the file for reading; what is compressed is decompressed on the way.

        Raises:
            FileChangedError: it is not the file that was looked at. The stream, used as a context manager, raises it
                too, after the block, if the file has changed meanwhile.
        """
        if self.path == STDIN:
            stream: InputStream = open_stdin()
        else:
            with file_errors(self.path, "cannot be opened"):
                stream = _CheckedStream(self)
        return unpacked(self.path, self.packing, stream)

    def check(self, status: os.stat_result) -> None:
        """FileChangedError unless this is the status of the file that was looked at."""
        if self.size is None or (self.size, self.mtime_ns) == (status.st_size, status.st_mtime_ns):
            return
        what = f"has {status.st_size} bytes now, and had {self.size}"
        if status.st_size == self.size:
            what = f"was written to: its time of change differs, its size of {self.size} bytes does not"
        raise self._changed(what)

    def check_progress(self, start: int, stop: int) -> None:
        """FileChangedError unless a search for the next place in the file led forward: it does as long as the file is
        as long as it was."""
        if stop <= start:
            raise self._changed(f"ends before byte {start + 1} now, and had {self.size} bytes")

    def _changed(self, what: str) -> FileError:
        return file_error(
            errno.ESTALE,
            f"{self.path}: changed after this run first looked at it: it {what}. Run again when nothing writes to it;"
            " workers on other machines need the same copy",
        )

    def check_now(self) -> None:
        """The same with the status that the file has now, by its name."""
        with file_errors(self.path, "cannot be opened"):
            status = os.stat(self.path)
        self.check(status)


def known_total(files: Iterable[InputFile]) -> int | None:
    """How many bytes of text there are in all, if the files' sizes tell. Standard input and pipes count nothing."""
    files = list(files)
    return None if any(file.is_sequential for file in files) else sum(file.size or 0 for file in files)


class _CheckedStream(InputStream):
    """The stream of an InputFile, which compares the file when it is opened and when it has been read."""

    def __init__(self, file: InputFile) -> None:
        super().__init__(file.path)
        self._file = file
        try:
            self.check()
        except FileChangedError:
            self.close()
            raise

    def check(self) -> None:
        """FileChangedError if the file is not as it was."""
        self._file.check(os.fstat(self.fileno()))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None:
                self.check()
        finally:
            self.close()
