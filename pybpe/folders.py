"""Folders for output, and files in them that get their names when they are complete."""

from __future__ import annotations

import os

from . import _binding
from .errors import file_error


def make_folder(path: _binding.PathLike) -> str:
    """Makes a folder, and those above it, unless it is there; returns its name."""
    folder = os.fsdecode(path)
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise file_error(error.errno or 0, f"{folder}: cannot be made: {error.strerror}") from None
    return folder


def give_name(temporary: str, path: str) -> None:
    """Gives a finished file its name: the file is on disk before, the name after."""
    try:
        with open(temporary, "rb") as stream:
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise file_error(error.errno or 0, f"{path}: cannot be written: {error.strerror}") from None


def write_through(temporary: str, path: str, data: bytes) -> None:
    """Writes a file atomically, by way of another place on the same disk: a kill leaves nothing beside it."""
    _binding.write_file(temporary, data)
    give_name(temporary, path)


def remove_file(path: str) -> None:
    """Removes a file, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise file_error(error.errno or 0, f"{path}: cannot be removed: {error.strerror}") from None
