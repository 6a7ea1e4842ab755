"""Opens folders of token files that `binarize` or `prepare` finished, as inputs of further work."""

from __future__ import annotations

import os

from .. import _binding
from ..errors import ArgumentError, FormatError, file_errors
from ..support.locking import FOLDER
from ..tokenizer import Tokenizer
from .journal import NAME as JOURNAL_NAME
from .manifest import Manifest
from .token_files import TokenStream


def finished_manifest(data: _binding.PathLike, tok: Tokenizer) -> Manifest:
    """Returns the manifest of a folder of token files.

    Raises:
        ArgumentError: its files are not finished, or another tokenizer made them. FileError, FormatError: there is no
            manifest, or it is damaged.
    """
    name = _binding.path_text(data)
    manifest = Manifest.load(name)
    if os.path.exists(os.path.join(name, FOLDER, JOURNAL_NAME)):
        raise ArgumentError(f"{name}: the run that writes to this folder has not finished: run its command again")
    if manifest.tokenizer.get("fingerprint") != tok.model.fingerprint():
        raise ArgumentError(f"{name}: another tokenizer made these files: its fingerprint differs")
    return manifest


def split_stream(folder: str, manifest: Manifest, split: str) -> TokenStream:
    """Opens the tokens of a split, which has at least one file.

    Raises:
        FormatError: a file is not as long as the manifest says. FileError: it cannot be opened.
    """
    paths = [os.path.join(folder, record.file) for record in manifest.shards[split]]
    for path, record in zip(paths, manifest.shards[split]):
        with file_errors(path, "cannot be read"):
            size = os.path.getsize(path)
        if size != record.bytes:
            raise FormatError(f"{path}: has {size} bytes, but the manifest says {record.bytes}: write the data again")
    return TokenStream(paths, str(manifest.settings.get("dtype")))
