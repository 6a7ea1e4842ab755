"""Writes a model in any of the formats. Refuses an export that would change ids."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from .. import _binding
from ..errors import ArgumentError, UnsupportedError
from ..model import Model, refuse_aliases, refuse_dropout, refuse_matching
from ..support.output_files import make_folder
from . import hf, patterns, pretrained, tiktoken, tokenizer_json, vocab_merges

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


def export(model: Model, path: _binding.PathLike, format: str | None = None) -> None:
    """Writes a model. `format` is one of FORMATS; None chooses by the ending of the path.

    Raises:
        UnsupportedError: the format cannot represent something that affects ids. LimitError: a token is too long.
        ArgumentError: there is no such format. FileError: a file cannot be written.
    """
    format = format_of(path) if format is None else format
    if format == "json":
        patterns.warn_of_private(model)
        _binding.write_file(path, tokenizer_json.dumps(model).encode("utf-8"))
    elif format == "bin":
        save_bin(model, model.to_vocab(), path)
    elif format == "files":
        _refuse_for(model, "vocab.json and merges.txt")
        folder = make_folder(path)
        pretrained.refuse_hiding(model, folder)
        save_files(model, os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt"))
    elif format == "tiktoken":
        refuse_template(model, "a .tiktoken file")
        _binding.write_file(path, tiktoken.format_ranks(model))
    elif format == "pretrained":
        save_pretrained(model, path, {})
    else:
        raise ArgumentError(f"there is no format {format!r}: use one of {', '.join(FORMATS)}")


def save_bin(model: Model, vocab: _binding.Vocab, path: _binding.PathLike, version: int = 2) -> None:
    """Writes a tokenizer.bin. `vocab` is the model's C vocabulary."""
    _refuse_for(model, "tokenizer.bin")
    vocab.save(path, version)


def save_files(model: Model, vocab_json: _binding.PathLike, merges_txt: _binding.PathLike) -> None:
    """Writes vocab.json and merges.txt."""
    _refuse_for(model, "vocab.json and merges.txt")
    vocab_merges.write(model, vocab_json, merges_txt)


def save_pretrained(model: Model, folder: _binding.PathLike, tokens: Mapping[str, str]) -> None:
    """Writes a folder for transformers. `tokens` are special tokens by role."""
    pretrained.write(model, folder, tokens)


def to_tiktoken(model: Model, name: str) -> Any:
    """Returns a tiktoken.Encoding."""
    refuse_template(model, "a tiktoken.Encoding")
    return tiktoken.to_encoding(model, name)


def to_hf(model: Model) -> Any:
    """Returns a tokenizers.Tokenizer."""
    return hf.to_hf(model)


def chat_template(model: Model) -> str | None:
    """Returns the chat template that `save_pretrained` writes."""
    return pretrained.chat_template(model)


def _refuse_for(model: Model, target: str) -> None:
    refuse_template(model, target)
    refuse_aliases(model, target)
    refuse_matching(model, target)


def refuse_template(model: Model, target: str) -> None:
    """Raises UnsupportedError if the model has dropout or a template that changes ids. Only tokenizer.json can hold
    these."""
    refuse_dropout(model, f"{target} cannot hold the dropout")
    if model.template is not None and model.template.changes_ids:
        raise UnsupportedError(
            f"{target} cannot hold the template {str(model.template)!r}: save a tokenizer.json, or export"
            " tokenizer.with_template(None)"
        )
