"""The list of records that a run skipped. Until the run ends, it is in the hidden folder, and only grows."""

from __future__ import annotations

import os
import shutil
from typing import BinaryIO

from ..errors import file_errors
from ..support.output_files import give_name

NAME = "skipped.jsonl"


class SkipList:
    """The list of a run.

    Args:
        folder: the hidden folder.
        size: the number of bytes of an existing list that count; anything after them is dropped.
    """

    def __init__(self, folder: str, size: int) -> None:
        self._path = os.path.join(folder, NAME)
        self._size = size
        self._stream: BinaryIO | None = None

    def write(self, lines: bytes) -> None:
        """Appends lines."""
        with file_errors(self._path, "cannot be written"):
            if self._stream is None:
                self._stream = open(self._path, "ab", buffering=0)
                self._stream.truncate(self._size)
            view = memoryview(lines)
            while view:
                view = view[self._stream.write(view) :]

    def sync(self) -> None:
        """Syncs the lines to disk."""
        if self._stream is not None:
            with file_errors(self._path, "cannot be written"):
                os.fsync(self._stream.fileno())

    def close(self) -> None:
        """Closes the file."""
        if self._stream is not None:
            with file_errors(self._path, "cannot be written"):
                self._stream.close()

    def publish(self, folder: str) -> tuple[str, bytes]:
        """Copies the list into a folder. Returns the path of the copy, and its first line. After a kill, it can be
        copied again."""
        copy, path = f"{self._path}.copy", os.path.join(folder, NAME)
        self.write(b"")
        with file_errors(copy, "cannot be written"):
            shutil.copyfile(self._path, copy)
        give_name(copy, path)
        with file_errors(path, "cannot be read"), open(path, "rb") as stream:
            return path, stream.readline()


def has_list(folder: str, size: int) -> bool:
    """Returns whether the list in a hidden folder has at least so many bytes."""
    try:
        return not size or os.path.getsize(os.path.join(folder, NAME)) >= size
    except OSError:
        return False
