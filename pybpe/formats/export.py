"""Writes a model in any of the formats. features.py refuses an export that would lose something."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .. import _binding
from ..errors import ArgumentError, UnsupportedError, warn
from ..model import Model
from . import hf, patterns, pretrained, tiktoken, tokenizer_json, vocab_merges
from .features import held

FORMATS = ("json", "bin", "files", "tiktoken", "pretrained")
_ENDINGS = {".json": "json", ".bin": "bin", ".tiktoken": "tiktoken"}


def format_of(path: _binding.PathLike) -> str:
    """Returns the format for the ending of a path; "pretrained" if it has none."""
    ending = os.path.splitext(_binding.path_text(path))[1]
    if ending and ending not in _ENDINGS:
        known = ", ".join(_ENDINGS)
        raise ArgumentError(f"{os.fsdecode(path)}: {ending} is not a known format: use {known}, or no ending")
    return _ENDINGS.get(ending, "pretrained")


def refuse_other_ending(path: _binding.PathLike) -> None:
    """Raises ArgumentError if the name of a tokenizer.json has the ending of another format."""
    ending = os.path.splitext(_binding.path_text(path))[1]
    if _ENDINGS.get(ending, "json") != "json":
        raise ArgumentError(
            f"{os.fsdecode(path)}: `save` writes a tokenizer.json, and {ending} is the ending of another format: use"
            " `export`, which goes by the ending"
        )


def export(model: Model, path: _binding.PathLike, format: str | None = None, ids_only: bool = False) -> None:
    """Writes a model. `format` is one of FORMATS; None chooses by the ending of the path. `ids_only` is as in `held`.

    Raises:
        UnsupportedError: the format cannot hold the model. LimitError: a token is too long.
        ArgumentError: there is no such format. FileError: a file cannot be written.
    """
    format = format_of(path) if format is None else format
    if format not in FORMATS:
        raise ArgumentError(f"there is no format {format!r}: use one of {', '.join(FORMATS)}")
    model = held(model, format, ids_only)
    if format == "json":
        _warn_of_private(model)
        _binding.write_file(path, tokenizer_json.dumps(model).encode("utf-8"))
    elif format == "bin":
        model.to_vocab().save(path, 2)
    elif format == "files":
        pretrained.write_two_files(model, path)
    elif format == "tiktoken":
        _binding.write_file(path, tiktoken.format_ranks(model))
    else:
        pretrained.write(model, path, {})


def _warn_of_private(model: Model) -> None:
    """Warns if Hugging Face will refuse the tokenizer.json."""
    try:
        patterns.check_for_hugging_face(held(model, "pretrained").pattern)
    except UnsupportedError as error:
        warn(f"only pybpe can load this tokenizer.json; Hugging Face refuses it: {error}")


def save_bin(model: Model, vocab: _binding.Vocab, path: _binding.PathLike, version: int = 2) -> None:
    """Writes a tokenizer.bin. `vocab` is the model's C vocabulary."""
    held(model, "bin")
    vocab.save(path, version)


def save_files(model: Model, vocab_json: _binding.PathLike, merges_txt: _binding.PathLike) -> None:
    """Writes vocab.json and merges.txt."""
    vocab_merges.write(held(model, "two files"), vocab_json, merges_txt)


def save_pretrained(model: Model, folder: _binding.PathLike, tokens: Mapping[str, str]) -> None:
    """Writes a folder for transformers. `tokens` are special tokens by role."""
    pretrained.write(held(model, "pretrained"), folder, tokens)


def to_tiktoken(model: Model, name: str, ids_only: bool) -> Any:
    """Returns a tiktoken.Encoding."""
    return tiktoken.to_encoding(held(model, "encoding", ids_only), name)


def to_hf(model: Model) -> Any:
    """Returns a tokenizers.Tokenizer."""
    return hf.to_hf(held(model, "pretrained"))


def chat_template(model: Model) -> str | None:
    """Returns the chat template that `save_pretrained` writes."""
    return pretrained.chat_template(model)
