"""What is in an output folder: the log of a run that has not finished, the files of one that has, a tokenizer."""

from __future__ import annotations

import os

from ..errors import ArgumentError, FileError, FormatError, UnsupportedError
from ..support.locking import FOLDER
from ..tokenizer import Tokenizer
from .described import check_tokenizer
from .manifest import Manifest, manifest_name

LOG_NAME = "parts.log"
TOKENIZER_NAMES = ("tokenizer.json", "tokenizer.bin")  # what `prepare` writes next to token files


def is_unfinished(folder: str) -> bool:
    """Returns whether a run that writes to a folder was killed or is still running."""
    return os.path.exists(os.path.join(folder, FOLDER, LOG_NAME))


def check_finished(folder: str) -> None:
    """Raises ArgumentError if a run that writes to a folder was killed or is still running."""
    if is_unfinished(folder):
        raise ArgumentError(f"{folder}: the run that writes to this folder has not finished: run its command again")


def finished_manifest(folder: str, tok: Tokenizer) -> Manifest:
    """Returns the manifest of a folder of token files.

    Raises:
        ArgumentError: the run that writes to it has not finished, or another tokenizer made the files. FileError,
            FormatError: there is no manifest, or it is damaged.
    """
    manifest = Manifest.load(folder)
    check_finished(folder)
    check_tokenizer(folder, manifest.tokenizer.get("fingerprint"), tok)
    return manifest


def files_of_manifest(folder: str) -> list[str]:
    """Returns the names of the files that a finished run wrote, its manifest included."""
    try:
        return [manifest_name(folder), *Manifest.load(folder).file_names]
    except (FileError, FormatError):
        return []


def stale_tokenizers(folder: str, tok: Tokenizer | None) -> list[str]:
    """Returns the names of the tokenizer's files in a folder, unless they hold this tokenizer: next to its token files,
    they would decode them to another text."""
    there = [name for name in TOKENIZER_NAMES if os.path.exists(os.path.join(folder, name))]
    try:
        if there and tok is not None and Tokenizer.from_file(os.path.join(folder, there[0])).model == tok.model:
            return []
    except (FileError, FormatError, UnsupportedError):
        pass
    return there
