"""What `create_dataloader` accepts as one source: texts, which are encoded in memory, files of either, and ids."""

from __future__ import annotations

import glob
import os
import re
from typing import Any

from ..._numpy import numpy
from ...arguments import instance, shown
from ...errors import ArgumentError, FileMissingError
from ...reading.files import input_files, open_text
from ...reading.input_file import InputFile, refusal
from ...tokenizer import Tokenizer
from ...tokens.manifest import describes_tokens
from ...urls import is_url, without_secrets
from .mixture import folder_paths

_LIKE_A_NAME = re.compile(r"(?=\S{1,255}$)(?:[\w~.*-]*/\S*|\S+\.[A-Za-z]\w{0,5}(?:\.(?:gz|bz2|xz|zst))?)")
_LONGEST_PATTERN = 250  # characters; a longer string is text, even with stars and question marks


def tokens_of(source: Any, tokenizer: Tokenizer | None) -> Any:
    """Returns an argument for TokenStream: paths of token files, or an array of ids."""
    if hasattr(source, "dtype"):
        return source
    if isinstance(source, (str, bytes)) and not _names_files(source):
        if isinstance(source, str) and _LIKE_A_NAME.fullmatch(source):
            raise FileMissingError(
                f"{shown(source)}: there is no such file; to pass a text that looks like this, encode it first"
            )
        return _need(tokenizer).encode_to_numpy(source)
    if isinstance(source, (str, os.PathLike)) and os.path.isdir(source) and describes_tokens(os.fspath(source)):
        return folder_paths(os.fspath(source))
    paths = input_files(source)
    are_tokens = {without_secrets(path).endswith((".bin", ".npy")) for path in paths}
    if len(are_tokens) > 1:
        raise ArgumentError("some files hold tokens (*.bin, *.npy) and others text: pass files of one kind")
    return source if True in are_tokens else _encoded(paths, _need(tokenizer))


def _names_files(source: str | bytes) -> bool:
    """Returns whether a string is a file's name, or a glob pattern that matches a file, and not text."""
    if isinstance(source, bytes):
        return False
    if os.path.exists(source) or (is_url(source) and not re.search(r"\s", source)):
        return True
    return len(source) <= _LONGEST_PATTERN and "\0" not in source and bool(glob.glob(source, recursive=True))


def _need(tokenizer: Tokenizer | None) -> Tokenizer:
    if tokenizer is None:
        raise ArgumentError("a text needs a tokenizer; only token files (*.bin, *.npy) do not need one")
    instance("tokenizer", tokenizer, Tokenizer, "a Tokenizer or None")
    return tokenizer


def _encoded(paths: list[str], tokenizer: Tokenizer) -> numpy.ndarray[Any, Any]:
    parts: list[numpy.ndarray[Any, Any]] = []
    for path in paths:
        name = without_secrets(path)
        file, what = InputFile.look(path)
        if what is not None and what.is_own:
            raise refusal(name, what)
        if file.form == "jsonl":
            raise ArgumentError(
                f"{name}: JSON lines are not supported here; convert them to token files with pybpe.binarize"
            )
        if parts and tokenizer.eot_token is not None:
            parts.append(numpy.array([tokenizer.eot_token], dtype=tokenizer.model.dtype))
        parts.append(tokenizer.encode_to_numpy(_read(path)))
    return numpy.concatenate(parts)


def _read(path: str) -> bytes:
    data = bytearray()
    block = memoryview(bytearray(1 << 20))
    with open_text(path) as stream:
        while got := stream.readinto(block):  # type: ignore[attr-defined]
            data += block[:got]
    return bytes(data)
