"""Loads any tokenizer file or folder. The content shows which kind it is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from .. import _binding, formats
from ..arguments import by_caller, can_pass, param
from ..errors import ArgumentError, FormatError
from ..model import Model
from ..pattern import Pattern, PatternLike
from ..reading.file_types import no_text
from ..reading.streams import PULL, Snapshot, open_unchanged
from . import tokenizer_json, vocab_merges
from .vocab_merges import NO_MERGE

_BIN_MAGIC = _binding.TOKENIZER_MAGIC.to_bytes(4, "little")
# The first piece of the protocol buffer: its length, then a text with its length, and its score.
_SENTENCEPIECE = re.compile(rb"\n[\x08-\x7f]\n[\x01-\x78][^\x00-\x1f]+\x15", re.DOTALL)
_RANK_LINE = re.compile(rb"[A-Za-z0-9+/]+={0,2} \d+\r?\n")
_FIRST_ID = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\d')  # the beginning of a vocab.json
Specials = Iterable[str] | Mapping[str, int]


def load(
    path: _binding.PathLike,
    pattern: PatternLike | None = None,
    special_tokens: Specials | None = None,
    merges: _binding.PathLike | None = None,
) -> tuple[Model, _binding.Vocab]:
    """Returns the model in a file or folder, and its C vocabulary. The arguments and errors are the same as in
    `Tokenizer.from_file`."""
    name = _binding.path_text(path)
    if merges is not None:
        return _pair(path, merges, special_tokens, pattern)
    if os.path.isdir(path):
        _refuse_specials(special_tokens, path)
        return fitting(formats.pretrained.read(name, _chosen(pattern)), name)
    with open_unchanged(path) as stream:
        start = stream.read(512)
        if name.endswith(".tiktoken") or _RANK_LINE.match(start):
            return _ranks(path, pattern, special_tokens)
        if _FIRST_ID.match(start):
            beside = os.path.join(os.path.dirname(name), formats.pretrained.MERGES)
            if os.path.exists(beside):
                return _pair(path, beside, special_tokens, pattern)
        _refuse_specials(special_tokens, path)
        if start.lstrip()[:1] == b"{":
            if stream.seekable():  # no pipe; joining the whole file to its start would copy it
                start = b"" if stream.seek(0) == 0 else start
            return fitting(tokenizer_json.loads(start + stream.read(), name, _chosen(pattern)), name)
    if not start:
        raise FormatError(f"{name}: this file is empty, not a tokenizer")
    if start[:4] != _BIN_MAGIC:
        raise FormatError(f"{name}: {_kind(start, name)}")
    if pattern is not None:
        raise ArgumentError(f"{name}: a tokenizer.bin has its own pattern: leave out {param('pattern')}")
    vocab = _binding.Vocab.load(path)
    return Model.from_vocab(vocab), vocab


def _kind(start: bytes, name: str) -> str:
    """Returns, for an error, what a file is that begins like this and is not a tokenizer."""
    if start.startswith(NO_MERGE.encode()):
        return (
            "this is a merges.txt, which needs its vocab.json: "
            + by_caller("use Tokenizer.from_file(vocab_json, merges=merges_txt), or ", "")
            + "pass their folder"
        )
    if _SENTENCEPIECE.match(start):
        return "this is a model of SentencePiece, whose tokens are not bytes: pybpe does not read it"
    known = no_text(start, name)
    if known is not None:
        what = known.what if known.advice == PULL else f"{known.what}, not a tokenizer"
        return f"this is {what}: {known.advice if known.advice == PULL else 'pass the tokenizer.json of the model'}"
    return (
        "not a tokenizer: expected JSON (tokenizer.json), lines of base64 and ranks (.tiktoken), or the number"
        f" {_binding.TOKENIZER_MAGIC} (tokenizer.bin), but it begins with {start[:16]!r}"
    )


def _chosen(pattern: PatternLike | None) -> Pattern | None:
    return Pattern(pattern) if pattern is not None else None


def fitting(model: Model, name: str) -> tuple[Model, _binding.Vocab]:
    """Returns a model with its C vocabulary. Raises FormatError, which names the file `name`, if its parts do not fit
    together."""
    try:
        return model, model.to_vocab()
    except ArgumentError as error:
        raise FormatError(f"{name}: {error}") from None


def _ranks(
    path: _binding.PathLike, pattern: PatternLike | None, special_tokens: Specials | None
) -> tuple[Model, _binding.Vocab]:
    """Loads a .tiktoken file."""
    name = _binding.path_text(path)
    if pattern is None:
        here = f"pass one, as in {param(pattern='cl100k')}, and {param('special_tokens')}; or "
        raise ArgumentError(
            f"{name}: a .tiktoken file has no pattern: {here if can_pass('pattern') else ''}make a tokenizer.json:"
            " `pybpe export FILE --pattern cl100k --special-token '<|endoftext|>=100257' -o tok.json`"
        )
    return fitting(formats.tiktoken.read(path, special_tokens or {}, pattern), name)


def _pair(
    vocab_json: _binding.PathLike,
    merges_txt: _binding.PathLike,
    special_tokens: Specials | None,
    pattern: PatternLike | None,
) -> tuple[Model, _binding.Vocab]:
    """Loads GPT-2's vocab.json and merges.txt."""
    chosen = Pattern("gpt2" if pattern is None else pattern)
    with Snapshot() as files:
        model = vocab_merges.read(vocab_json, merges_txt, special_tokens, chosen, files)
    return fitting(model, f"{os.fsdecode(vocab_json)} and {os.fsdecode(merges_txt)}")


def _refuse_specials(special_tokens: Specials | None, path: _binding.PathLike) -> None:
    if special_tokens is not None:
        raise ArgumentError(
            f"{os.fsdecode(path)}: the file has its own special tokens: leave out {param('special_tokens')}"
        )
