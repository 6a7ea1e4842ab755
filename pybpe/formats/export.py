"""Writes a model in any of the formats. features.py refuses an export that would lose something."""

from __future__ import annotations

import os

from .. import _binding
from ..arguments import one_of
from ..errors import ArgumentError, UnsupportedError, warn
from ..model import Model
from . import patterns, pretrained, tiktoken, tokenizer_json
from .features import held

FORMATS = ("json", "bin", "bin1", "files", "tiktoken", "pretrained")
_ENDINGS = {".json": "json", ".bin": "bin", ".tiktoken": "tiktoken"}


def format_of(path: _binding.PathLike) -> str:
    """Returns the format for the ending of a path; "pretrained" if it has none."""
    ending = os.path.splitext(_binding.path_text(path))[1]
    if ending and ending not in _ENDINGS:
        known = ", ".join(_ENDINGS)
        raise ArgumentError(f"{os.fsdecode(path)}: {ending} is not a known format: use {known}, or no ending")
    return _ENDINGS.get(ending, "pretrained")


def write(model: Model, path: _binding.PathLike, format: str | None = None, ids_only: bool = False) -> None:
    """Writes a model. `format` is one of FORMATS; None chooses by the ending of the path. `ids_only` is as in `held`.

    Raises:
        UnsupportedError: the format cannot hold the model. LimitError: a token is too long.
        ArgumentError: there is no such format. FileError: a file cannot be written.
    """
    format = format_of(path) if format is None else format
    one_of("format", format, FORMATS)
    if format == "bin1":
        _warn_of_version_1(model)
    model = held(model, format.removesuffix("1"), ids_only)
    if format == "json":
        _warn_of_private(model)
        _binding.write_file(path, tokenizer_json.dumps(model).encode("utf-8"))
    elif format in ("bin", "bin1"):
        model.to_vocab().save(path, 1 if format == "bin1" else 2)
    elif format == "files":
        pretrained.write_two_files(model, path)
    elif format == "tiktoken":
        _binding.write_file(path, tiktoken.format_ranks(model))
    else:
        pretrained.write(model, path, {})


def _warn_of_version_1(model: Model) -> None:
    """Warns unless llm.c can read this model from a tokenizer.bin of version 1."""
    if (len(model.tokens), model.eot_id) != (50257, 50256):
        warn(
            f"llm.c aborts on a version 1 tokenizer.bin with {len(model.tokens)} tokens: it assumes 50257. Write"
            " version 2"
        )


def _warn_of_private(model: Model) -> None:
    """Warns if Hugging Face will refuse the tokenizer.json."""
    try:
        patterns.check_for_hugging_face(held(model, "pretrained").pattern)
    except UnsupportedError as error:
        warn(f"only pybpe can load this tokenizer.json; Hugging Face refuses it: {error}")
