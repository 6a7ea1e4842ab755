"""Folders for output."""

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
