"""tokenizer.json: the schema of Hugging Face tokenizers.

What we write loads in `tokenizers.Tokenizer.from_file` and gives the same ids. What we read is the part of
the schema that our model has: BPE over bytes (ByteLevel), with or without a Split pattern before it and
NFC or NFKC before that. Anything else is refused by name, never guessed.

Our own facts (how it was trained) stand in the model under the key "pybpe", which Hugging Face ignores there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import FormatError, LimitError
from ..model import Model
from ..pattern import Pattern
from . import byte_level

JsonObject = dict[str, Any]

# What a normaliser of ours is called there, and back.
_NORMALIZER_TYPES = {"NFC": "NFC", "NFKC": "NFKC"}


# ----------------------------------------------------------------------------------------------------
# Writing


def dumps(model: Model) -> str:
    """The text of a tokenizer.json.

    Raises:
        LimitError: a special token is spelled as an ordinary token is, which the format cannot tell apart.
    """
    return json.dumps(to_object(model), ensure_ascii=False, indent=2) + "\n"


def to_object(model: Model) -> JsonObject:
    """The same as a JSON object."""
    names = token_names(model)
    byte_level_part = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(text, i) for text, i in sorted(model.specials.items(), key=lambda x: x[1])],
        "normalizer": {"type": model.normalizer} if model.normalizer else None,
        "pre_tokenizer": _pre_tokenizer(model.pattern),
        "post_processor": None,
        "decoder": {**byte_level_part, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {name: i for i, name in enumerate(names) if name},
            "merges": [f"{names[left]} {names[right]}" for left, right in model.merges],
            "pybpe": dict(model.training),
        },
    }


def token_names(model: Model) -> list[str]:
    """Every token as vocab.json spells it: specials as they are, the others through byte_level."""
    names = [byte_level.to_text(token) for token in model.tokens]
    for text, i in model.specials.items():
        names[i] = text
    owners: dict[str, int] = {}
    for i, name in enumerate(names):
        if name and owners.setdefault(name, i) != i:
            raise LimitError(
                f"tokens {owners[name]} and {i}, one of them special, are both spelled {name!r}: tokenizer.json"
                " cannot tell them apart; choose another special token, or save as tokenizer.bin"
            )
    return names


def _added_token(text: str, i: int) -> JsonObject:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": i, "content": text, **flags}


def _pre_tokenizer(pattern: Pattern) -> JsonObject:
    byte_level_part = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    if pattern == Pattern("gpt2"):
        return {**byte_level_part, "use_regex": True}
    split = {"type": "Split", "pattern": {"Regex": pattern.regex}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [split, {**byte_level_part, "use_regex": False}]}


# ----------------------------------------------------------------------------------------------------
# Reading


def loads(text: str | bytes, name: str) -> Model:
    """The model in the text of a tokenizer.json; `name` is what errors call it.

    Raises:
        FormatError: not JSON, not this schema, or a part that pybpe does not have; it says which.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{name}: not a tokenizer.json: {error}") from None
    return from_object(data, name)


def from_object(data: Any, name: str) -> Model:
    """The same from a JSON object."""
    model = _part(data, "model", dict, name)
    if model.get("type", "BPE") != "BPE":
        raise FormatError(f"{name}: the model is {model.get('type')!r}; pybpe reads BPE only")
    _refuse_options(model, name)
    specials = _read_specials(data, name)
    vocab = _part(model, "vocab", dict, name)
    for text, i in specials.items():
        vocab.setdefault(text, i)
    training = model.get("pybpe")
    return build_model(
        vocab,
        _read_merges(_part(model, "merges", list, name), name),
        specials,
        _read_pattern(data.get("pre_tokenizer"), name),
        _read_normalizer(data.get("normalizer"), name),
        training if isinstance(training, dict) else {},
        name,
    )


def build_model(
    vocab: Mapping[str, int],
    merges: Sequence[tuple[str, str]],
    specials: Mapping[str, int],
    pattern: Pattern,
    normalizer: str | None,
    training: Mapping[str, object],
    name: str,
) -> Model:
    """A model from tokens and merges spelled as in vocab.json. FormatError if they do not fit together."""
    if any(type(i) is not int or not 0 <= i < 1 << 24 for i in vocab.values()):
        raise FormatError(f"{name}: vocab: every id must be an integer from 0 to {(1 << 24) - 1}")
    tokens = [b""] * (max(vocab.values(), default=-1) + 1)
    for text, i in vocab.items():
        if tokens[i]:
            raise FormatError(f"{name}: vocab: id {i} is given twice, the second time to {text!r}")
        tokens[i] = text.encode("utf-8") if specials.get(text) == i else _token_bytes(text, i, name)
    pairs = []
    for rank, (left, right) in enumerate(merges):
        if left not in vocab or right not in vocab:
            raise FormatError(f"{name}: merges[{rank}]: {left!r} + {right!r}: both must be in the vocabulary")
        pairs.append((vocab[left], vocab[right]))
    return Model(tokens, pairs, dict(specials), pattern, normalizer, training)


def _token_bytes(text: str, i: int, name: str) -> bytes:
    try:
        return byte_level.to_bytes(text)
    except KeyError as error:
        raise FormatError(
            f"{name}: vocab: token {i}, {text!r}, has {error} which stands for no byte: it is not a byte-level"
            " vocabulary, or a special token that is not listed as one"
        ) from None


def _part(data: Any, key: str, kind: type, name: str) -> Any:
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, kind):
        raise FormatError(f"{name}: not a tokenizer.json: {key!r} is missing or no {kind.__name__}")
    return value


def _refuse_options(model: JsonObject, name: str) -> None:
    for key in ("dropout", "unk_token", "continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(key):
            raise FormatError(f"{name}: model.{key} is {model[key]!r}, which pybpe does not do")
    for key in ("byte_fallback", "ignore_merges"):
        if model.get(key):
            raise FormatError(f"{name}: model.{key} is on, which pybpe does not do")


def _read_specials(data: JsonObject, name: str) -> dict[str, int]:
    specials = {}
    for entry in data.get("added_tokens") or []:
        content, number = _part(entry, "content", str, name), _part(entry, "id", int, name)
        for flag in ("single_word", "lstrip", "rstrip"):
            if entry.get(flag):
                raise FormatError(f"{name}: the added token {content!r} has {flag} on, which pybpe does not do")
        specials[content] = number
    return specials


def _read_merges(merges: list[Any], name: str) -> list[tuple[str, str]]:
    """Merges are "left right" in older files, ["left", "right"] in newer ones."""
    pairs = []
    for rank, merge in enumerate(merges):
        parts = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(parts, list) or len(parts) != 2 or not all(isinstance(p, str) for p in parts):
            raise FormatError(f"{name}: merges[{rank}] is {merge!r}, not two tokens")
        pairs.append((parts[0], parts[1]))
    return pairs


def _read_normalizer(normalizer: Any, name: str) -> str | None:
    if normalizer is None:
        return None
    kind = normalizer.get("type") if isinstance(normalizer, dict) else normalizer
    if kind not in _NORMALIZER_TYPES:
        raise FormatError(f"{name}: the normalizer is {kind!r}; pybpe has NFC and NFKC")
    return str(kind)


def _read_pattern(part: Any, name: str) -> Pattern:
    """The pattern of ByteLevel alone, or of a Sequence of Split and ByteLevel."""
    nested = part.get("pretokenizers") if isinstance(part, dict) and part.get("type") == "Sequence" else None
    steps: list[Any] = nested if isinstance(nested, list) else [part]
    kinds = [step.get("type") if isinstance(step, dict) else None for step in steps]
    if kinds == ["ByteLevel"] and steps[0].get("use_regex", True) and not steps[0].get("add_prefix_space"):
        return Pattern("gpt2")
    if kinds == ["Split", "ByteLevel"] and not steps[1].get("use_regex", True):
        split = steps[0]
        regex = split.get("pattern", {}).get("Regex") if isinstance(split.get("pattern"), dict) else None
        plain = split.get("behavior") == "Isolated" and not split.get("invert")
        if isinstance(regex, str) and plain and not steps[1].get("add_prefix_space"):
            return Pattern.from_regex(regex)
    raise FormatError(
        f"{name}: the pre_tokenizer is {kinds}, with options that pybpe does not have; it reads ByteLevel, and"
        " Split (a regex, isolated) followed by ByteLevel, both without add_prefix_space"
    )
