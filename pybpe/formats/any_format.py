"""Reads a tokenizer file or folder of any format, and writes a model in any of them, unless it would lose something.

Every format holds tokens, merges and special tokens, or its reader passes the special tokens, as for a .tiktoken file.
A feature is anything else that a tokenizer may have. The module of a format checks what else it requires, such as
merges in the order of ids.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from .. import _binding, formats
from ..arguments import by_caller, can_pass, one_of, param
from ..control_tokens import default_template
from ..errors import ArgumentError, FormatError, UnsupportedError, warn
from ..model import Model, end_of_text
from ..pattern import Pattern, PatternLike
from ..reading.file_types import no_text
from ..reading.streams import PULL, Snapshot, open_unchanged
from . import tokenizer_json, vocab_merges
from .pre_tokenizer import check_for_hugging_face
from .vocab_merges import NO_MERGE

# ----------------------------------------------------------------------------------------------------
# Reading. The content shows which format it is.


_BIN_MAGIC = _binding.TOKENIZER_MAGIC.to_bytes(4, "little")
# The first piece of the protocol buffer: its length, then a text with its length, and its score.
_SENTENCEPIECE = re.compile(rb"\n[\x08-\x7f]\n[\x01-\x78][^\x00-\x1f]+\x15", re.DOTALL)
_RANK = rb"[A-Za-z0-9+/]+={0,2} \d+\r?\n"
# Two lines, unless the file or this part of it ends before. One alone may be a heading, such as "Genesis 1".
_RANKS = re.compile(_RANK + rb"(?:" + _RANK + rb"|[A-Za-z0-9+/]*={0,2}(?: \d*)?\r?\Z)")
_FIRST_ID = re.compile(rb'\s*\{\s*"(?:[^"\\]|\\.)*"\s*:\s*\d')  # the beginning of a vocab.json
Specials = Iterable[str] | Mapping[str, int]


def read(
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
        if name.endswith(".tiktoken") or _RANKS.match(start):
            return _ranks(path, pattern, special_tokens)
        if _FIRST_ID.match(start):
            beside = os.path.join(os.path.dirname(name), formats.pretrained.MERGES)
            if os.path.exists(beside):
                return _pair(path, beside, special_tokens, pattern)
        _refuse_specials(special_tokens, path)
        if start.lstrip()[:1] == b"{":
            if stream.seekable():  # no pipe. Joining the whole file to its start would copy it
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
    """Returns the kind of a file that begins like this and is not a tokenizer, for an error."""
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


def _chosen(pattern: PatternLike | None) -> Pattern | None:  # not for .tiktoken, whose expressions are tiktoken's
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


# ----------------------------------------------------------------------------------------------------
# The features that a format can hold


class _Feature(NamedTuple):
    found: Callable[[Model], object]  # returns the values of a model, as an error names them. A false value if nothing
    without: Mapping[str, Any] = {}  # the fields of a Model that leave this out. Empty if ids depend on it


def _matching(model: Model) -> str | None:
    flagged = ((text, rules.names) for text, rules in model.matching.items())
    return next((f"the special token {text!r:.80}, which has {' and '.join(on)} on" for text, on in flagged), None)


def _aliases(model: Model) -> str | None:
    shared = ((text, model.specials[text]) for text in model.aliases)
    found = (f"the special token {text!r:.80}, which shares its id, {i}, with another one" for text, i in shared)
    return next(found, None)


def _chat_template(model: Model) -> str | None:
    if model.chat_template in (None, default_template(model.specials) or ""):
        return None
    return "the chat template" if model.chat_template else "that there is no chat template"


_FEATURES = {
    "normalizer": _Feature(lambda model: model.normalizer and f"the normalizer {model.normalizer}"),
    "pattern": _Feature(
        lambda model: model.pattern != Pattern("gpt2") and f"the pattern {model.pattern}, since its readers assume gpt2"
    ),
    "whole_words": _Feature(
        lambda model: model.whole_words and model.unreached() and "ignore_merges, which some tokens need"
    ),
    "prefix_space": _Feature(lambda model: model.prefix_space and "add_prefix_space"),
    "matching": _Feature(_matching),
    "aliases": _Feature(_aliases),
    "dropout": _Feature(
        lambda model: (
            model.dropout
            and f"the dropout {model.dropout:g}{by_caller(', without which replace(dropout=0) makes a tokenizer', '')}"
        )
    ),
    "template": _Feature(
        lambda model: (
            model.template is not None and model.template.changes_ids and f"the template {str(model.template)!r:.80}"
        ),
        {"template": None},
    ),
    "chat_template": _Feature(_chat_template, {"chat_template": None}),
    "visible": _Feature(
        lambda model: model.visible and f'that {min(model.visible)!r:.80} is text to readers ("special": false)',
        {"visible": frozenset()},
    ),
    "eos": _Feature(
        lambda model: model.eot != end_of_text(model.specials, None) and f"that {model.eot!r:.80} ends a document",
        {"eos": None},
    ),
}
_OF_JSON = {"prefix_space", "matching", "aliases", "dropout", "template"}  # only tokenizer.json holds these
_OF_TWO_FILES = {"normalizer", "pattern", "whole_words"}  # which vocab.json and merges.txt lack
_NAMED = {"chat_template", "visible", "eos"}  # the fields that a tokenizer_config.json can add


def held(model: Model, format: str, ids_only: bool = False) -> Model:
    """Returns the model as a format (one of FORMATS, or "encoding" for a tiktoken.Encoding) can hold it: all of it, or
    with `ids_only` what ids depend on. Raises UnsupportedError, which names all features that the format cannot
    hold."""
    name, lacked, _ = _FORMATS[format]
    found = {key: text for key, feature in _FEATURES.items() if key in lacked and (text := feature.found(model))}
    can_go = all(_FEATURES[key].without for key in found)
    if found and not (can_go and ids_only):
        raise UnsupportedError(
            f"{name} cannot hold {', nor '.join(map(str, found.values()))}: save a tokenizer.json"
            + (f", or pass {param(ids_only=True)}, which leaves this out" if can_go and can_pass("ids_only") else "")
        )
    return replace(model, **{field: value for key in found for field, value in _FEATURES[key].without.items()})


# ----------------------------------------------------------------------------------------------------
# Writing


def write(model: Model, path: _binding.PathLike, format: str | None = None, ids_only: bool = False) -> None:
    """Writes a model: see `Tokenizer.save`. Raises FileError if a file cannot be written."""
    format = format_of(path) if format is None else format
    one_of("format", format, FORMATS)
    save = _FORMATS[format].write
    assert save is not None
    save(held(model, format, ids_only), path)


def format_of(path: _binding.PathLike) -> str:
    """Returns the format for the ending of a path, or "pretrained" if it has none."""
    ending = os.path.splitext(_binding.path_text(path))[1]
    if ending and ending not in _ENDINGS:
        known = ", ".join(_ENDINGS)
        how = by_caller("pass format", "use `pybpe export --format`")
        raise ArgumentError(f"{os.fsdecode(path)}: {ending} is not a known format: use {known} or no ending, or {how}")
    return _ENDINGS.get(ending, "pretrained")


def _write_json(model: Model, path: _binding.PathLike) -> None:
    try:
        check_for_hugging_face(held(model, "pretrained").pattern)
    except UnsupportedError as error:
        warn(f"only pybpe can load this tokenizer.json; Hugging Face refuses it: {error}")
    _binding.write_file(path, tokenizer_json.dumps(model).encode("utf-8"))


def _write_version_1(model: Model, path: _binding.PathLike) -> None:
    if (len(model.tokens), model.eot_id) != (50257, 50256):
        warn(
            f"llm.c aborts on a version 1 tokenizer.bin with {len(model.tokens)} tokens: it assumes 50257. Write"
            " version 2"
        )
    model.to_vocab().save(path, 1)


class _Format(NamedTuple):
    name: str  # its name in errors
    lacked: set[str]  # the features that it cannot hold
    write: Callable[[Model, _binding.PathLike], None] | None  # None for an object of another library


_OF_BIN = _OF_JSON | {"chat_template", "visible"}
_OF_RANKS = _OF_JSON | _NAMED | {"normalizer"}
_FORMATS = {
    "json": _Format("tokenizer.json", set(), _write_json),
    "json2": _Format(
        "version 2.0 of tokenizer.json",
        {"prefix_space", "aliases", "dropout"},
        lambda model, path: _binding.write_file(path, tokenizer_json.dumps(model, "2.0").encode("utf-8")),
    ),
    "bin": _Format("tokenizer.bin", _OF_BIN, lambda model, path: model.to_vocab().save(path, 2)),
    "bin1": _Format("tokenizer.bin", _OF_BIN, _write_version_1),
    "files": _Format(
        "a folder with vocab.json and merges.txt",
        (_OF_JSON | _OF_TWO_FILES) - {"matching"},
        lambda model, path: formats.pretrained.write_two_files(model, path),
    ),
    "tiktoken": _Format("a .tiktoken file", _OF_RANKS, lambda model, path: formats.tiktoken.write(model, path)),
    "pretrained": _Format("Hugging Face", {"aliases"}, lambda model, path: formats.pretrained.write(model, path)),
    "gguf": _Format("GGUF", _OF_JSON | {"normalizer"}, lambda model, path: formats.gguf.write(model, path)),
    "byte_lengths": _Format(
        "a table of byte lengths", set(), lambda model, path: formats.nanochat.write_lengths(model, path)
    ),
    "nanochat": _Format("nanochat", _OF_RANKS - {"eos"}, lambda model, path: formats.nanochat.write(model, path)),
    "encoding": _Format("a tiktoken.Encoding", _OF_RANKS - {"aliases"}, None),
}
FORMATS = tuple(name for name, format in _FORMATS.items() if format.write is not None)
_ENDINGS = {".json": "json", ".bin": "bin", ".tiktoken": "tiktoken", ".gguf": "gguf"}
