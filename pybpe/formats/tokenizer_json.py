"""tokenizer.json, in the schema of Hugging Face tokenizers.

Files that pybpe writes load in `tokenizers.Tokenizer.from_file` and give the same ids. pybpe reads the part of the
schema that its model supports: BPE over bytes, and around it what pipeline.py reads. It never guesses: for anything
else it raises an error that names the part.

There are two versions. Every version of the library reads 1.0; 2.0 is the one that its version 1.0 writes. Of what
pybpe reads, 2.0 spells differently: byte_level in the model, where 1.0 has a step ByteLevel; regular expressions for
another engine; templates with ids; merges, which are always pairs; and role_to_token, which says what ends a document.
Sources of 2.0: tokenizers/tk-serialize/SPEC.md and tk-convert/src/convert.rs in Hugging Face's repository.

Facts that only pybpe uses (how the tokenizer was trained, what ends a document, the chat template) are in the model
under the key "pybpe", which Hugging Face ignores.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import _binding
from ..arguments import by_caller, is_unicode, utf8
from ..errors import ArgumentError, Error, FormatError, LimitError, UnsupportedError, warn
from ..model import Model, end_of_text
from ..pattern import Pattern
from . import VERSION_KEY, added_tokens, check_version_of, pipeline, steps
from .pipeline import JsonObject, part
from .vocab_merges import NO_MERGE, read_parts, token_names

# Facts of a Model that are stored under "pybpe", besides `training`.
_OWN_FACTS = {"eos": str, "chat_template": str, "config": dict}
_OWN_VERSION = 1
# The settings of a model of Hugging Face, in its order, and the values that they usually have.
_PLAIN_MODEL = {
    "type": "BPE",
    "dropout": None,
    "unk_token": None,
    "continuing_subword_prefix": None,
    "end_of_word_suffix": None,
    "fuse_unk": False,
    "byte_fallback": False,
    "ignore_merges": False,
}
_EOS_ROLE = "eos_token"  # of role_to_token
_UNKNOWN = {"unk_token": str, "fuse_unk": bool}  # what Model.unknown has, without empty values
_ALWAYS_PLAIN = ("type", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback")


def dumps(model: Model, version: str = "1.0") -> str:
    """Returns the text of a tokenizer.json. Raises UnsupportedError if a special token has the same spelling as an
    ordinary token, so the format cannot distinguish them, or if version 2.0 cannot hold the pattern or template."""
    return json.dumps(to_object(model, version), ensure_ascii=False, indent=2) + "\n"


def to_object(model: Model, version: str = "1.0") -> JsonObject:
    """Returns a tokenizer.json as a JSON object."""
    names = token_names(model)
    word = added_tokens.taken_as_word(model, model.specials)
    if word is not None:
        raise UnsupportedError(
            f"Hugging Face would return the special token {word!r:.80} for a word or byte with the same spelling:"
            " save as tokenizer.bin instead"
        )
    own = {key: getattr(model, key) for key in _OWN_FACTS if getattr(model, key) is not None}
    own |= {"regex": regex} if (regex := steps.own_spelling(model.pattern, version)) is not None else {}
    settings = {**_PLAIN_MODEL, **model.unknown, "dropout": model.dropout or None, "ignore_merges": model.whole_words}
    parts = {
        "vocab": {name: i for i, name in enumerate(names) if name},
        "merges": _write_merges(names, model.merges, version),
        "pybpe": {VERSION_KEY: _OWN_VERSION, **model.training, **own},
    }
    shared = {
        "added_tokens": added_tokens.write(model),
        "normalizer": {"type": model.normalizer} if model.normalizer is not None else None,
    }
    start = {"version": version, "truncation": None, "padding": None}
    if version == "1.0":
        return {
            **start,
            **shared,
            "pre_tokenizer": steps.write_pre_tokenizer(model.pattern, model.prefix_space),
            "post_processor": pipeline.write_post_processor(model.template, model.specials),
            "decoder": {**steps.BYTE_LEVEL, "use_regex": True},
            "model": {**settings, **parts},
        }
    del settings["dropout"]
    return {
        **start,
        "role_to_token": {_EOS_ROLE: model.eot} if model.eot is not None else None,
        **shared,
        "pre_tokenizer": steps.write_splits(model.pattern, version),
        "post_processor": pipeline.write_runs(model.template, model.specials),
        "decoder": {"type": "ByteLevel"},
        "model": {**settings, "byte_level": True, **parts},
    }


def _write_merges(names: Sequence[str], merges: Sequence[tuple[int, int]], version: str) -> list[Any]:
    """Returns merges as strings, which every version of Hugging Face's tokenizers reads in version 1.0; or as pairs, if
    Hugging Face would drop one of the strings, and in version 2.0."""
    if version != "1.0" or any(names[left].startswith(NO_MERGE) for left, _ in merges):
        return [[names[left], names[right]] for left, right in merges]
    return [f"{names[left]} {names[right]}" for left, right in merges]


def loads(text: str | bytes, name: str, pattern: Pattern | None = None, *, of_transformers: bool = False) -> Model:
    """Returns the model in the text of a tokenizer.json. Errors call it `name`. `pattern` replaces the file's.

    pybpe ignores truncation and padding. It warns about them, because the library tokenizers applies them, but not with
    `of_transformers`: transformers chooses them in each call, and its files have only the settings of the last call."""
    model = _loads_quickly(utf8(text), name, pattern, of_transformers)
    if model is not None:
        return model
    try:
        return from_object(json.loads(text), name, pattern, of_transformers)
    except Error:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{name}: not a tokenizer.json: {error}") from None


def _loads_quickly(text: bytes, name: str, pattern: Pattern | None, of_transformers: bool = False) -> Model | None:
    """Does what `loads` does, with C reading the tokens and merges. Returns None if the file is unusual or invalid."""
    spans = _binding.tokenizer_json_spans(text)
    if spans is None:
        return None
    (start, end, empty), (second, last, second_empty) = sorted(
        [(spans[0], spans[1], b"{}"), (spans[2], spans[3], b"[]")]
    )
    around = b"".join([text[:start], empty, text[end:second], second_empty, text[last:]])
    try:
        data = json.loads(around)
        model = _without_parts(data, name, pattern, of_transformers)
        in_order = sorted(ids := list(model.specials.values())) == ids
        if not in_order or added_tokens.taken_as_word(model, model.specials):
            return None
        vocab = _binding.Vocab.from_json(text, spans, model.specials, model.rules)
    except (ArgumentError, FormatError, LimitError, ValueError, OverflowError, RecursionError):
        return None  # the caller reads it again and says why
    aliases = added_tokens.read_aliases(data, model.specials, name)
    tokens, merges = vocab.parts
    return replace(model, tokens=tokens, merges=merges, specials={**model.specials, **aliases})


def from_object(data: Any, name: str, pattern: Pattern | None = None, of_transformers: bool = False) -> Model:
    """Returns the model in a JSON object: see `loads`."""
    _refuse_other_files(data, name)
    around = _without_parts(data, name, pattern, of_transformers)
    merges = _read_merges(part(data["model"], "merges", list, name), "pybpe" in data["model"], name)
    vocab = part(data["model"], "vocab", dict, name)
    missing = {text: i for text, i in around.specials.items() if text not in vocab}
    made = {left + right for left, right in merges}.intersection(around.specials)
    if unused := {text for text in made if added_tokens.is_always_found(around, text)}:
        merges = [(left, right) for left, right in merges if unused.isdisjoint((left, right, left + right))]
    tokens, pairs = read_parts({**vocab, **missing}, merges, around.specials, name)
    added_tokens.check_ids(around.specials, vocab, name)
    word = added_tokens.taken_as_word(around, set(around.specials) - set(missing))
    if word is not None:
        raise FormatError(
            f"{name}: Hugging Face returns the added token {word!r:.80}, which is in model.vocab, for a word or byte"
            " with the same spelling; pybpe does not support this"
        )
    aliases = added_tokens.read_aliases(data, around.specials, name)
    return replace(around, tokens=tokens, merges=pairs, specials={**around.specials, **aliases})


def _refuse_other_files(data: Any, name: str) -> None:
    """Raises FormatError for another JSON file that belongs to a tokenizer."""
    if not isinstance(data, dict) or isinstance(data.get("model"), dict):
        return
    what = ""
    if isinstance(data.get("vocab"), list) and isinstance(data.get("config"), dict):
        what = "a tekken.json of Mistral, which pybpe does not read: use the tokenizer.json of the model"
    elif "tokenizer_class" in data or "model_type" in data:
        what = "the configuration of a model or tokenizer: pass the tokenizer.json next to it, or their folder"
    elif data and all(type(i) is int for i in data.values()):
        what = "a vocab.json, which needs its merges.txt: put that next to it"
        what += by_caller(", or use Tokenizer.from_file(vocab_json, merges=merges_txt)", "")
    if what:
        raise FormatError(f"{name}: this is {what}")


def _without_parts(data: Any, name: str, pattern: Pattern | None, of_transformers: bool) -> Model:
    """Returns the model without tokens and merges."""
    model = part(data, "model", dict, name)
    version = _refuse_options(data, model, name)
    if not of_transformers:
        _warn_of_call_settings(data, name)
    normalizer = pipeline.read_normalizer(data.get("normalizer"), name)
    added = added_tokens.read(data, normalizer, name)
    own = model.get("pybpe")
    facts = dict(own) if isinstance(own, dict) else {}
    check_version_of(facts, _OWN_VERSION, f"{name}: model.pybpe")
    facts.pop(VERSION_KEY, None)
    regex = facts.pop("regex", None)
    if not is_unicode(json.dumps(facts, ensure_ascii=False)):
        raise FormatError(f"{name}: model.pybpe contains a lone surrogate, which is not valid Unicode")
    pre_tokenizer = data.get("pre_tokenizer")
    if version != "1.0":
        pre_tokenizer = steps.with_byte_level(pre_tokenizer, name)
    if pattern is None:
        pattern = steps.read_pattern(pre_tokenizer, regex if isinstance(regex, str) else None, name, version)
    if (decoder := pipeline.type_of(data.get("decoder"))) not in (None, "ByteLevel"):
        raise FormatError(f"{name}: the decoder is {decoder!r}; pybpe supports ByteLevel")
    template = pipeline.read_post_processor(data.get("post_processor"), added.specials, name, version)
    fields = {key: fact for key, kind in _OWN_FACTS.items() if isinstance(fact := facts.pop(key, None), kind)}
    if version != "1.0" and "eos" not in fields and (eos := _read_eos(data, added.specials, name)) is not None:
        fields["eos"] = eos
    return Model(
        (),
        (),
        added.specials,
        pattern,
        normalizer,
        training=facts,
        whole_words="ignore_merges" in model and part(model, "ignore_merges", bool, name),
        visible=added.visible,
        template=template,
        unknown={
            key: part(model, key, kind, name) for key, kind in _UNKNOWN.items() if model.get(key) not in (None, False)
        },
        matching=added.matching,
        prefix_space=steps.read_prefix_space(pre_tokenizer, name),
        dropout=_read_dropout(model, name),
        **fields,
    )


def _read_dropout(model: JsonObject, name: str) -> float:
    """Returns Model.dropout. Hugging Face refuses what is not from 0 to 1 too."""
    dropout = 0.0 if model.get("dropout") is None else model["dropout"]
    if isinstance(dropout, bool) or not isinstance(dropout, (int, float)) or not 0 <= dropout <= 1:
        raise FormatError(f"{name}: model.dropout is {dropout!r:.80}, not a number from 0 to 1")
    return float(dropout)


def _read_eos(data: JsonObject, specials: Mapping[str, int], name: str) -> str | None:
    """Returns Model.eos as role_to_token says it, which may name a token that is not there."""
    roles = {} if data.get("role_to_token") is None else part(data, "role_to_token", dict, name)
    eos = part(roles, _EOS_ROLE, str, f"{name}: role_to_token") if _EOS_ROLE in roles else None
    return eos if eos in specials and eos != end_of_text(specials, None) else None


def _refuse_options(data: JsonObject, model: JsonObject, name: str) -> str:
    """Returns the version. Raises FormatError for another one, and for settings that pybpe does not support."""
    version = data.get("version", "1.0")
    if version not in ("1.0", "2.0"):
        raise FormatError(f"{name}: the format has version {version!r:.80}; pybpe supports 1.0 and 2.0")
    if version == "2.0" and not part(model, "byte_level", bool, name):
        raise FormatError(f"{name}: model.byte_level is False; pybpe supports only True")
    if version == "2.0" and model.get("dropout"):
        raise FormatError(f"{name}: model.dropout is {model['dropout']!r:.80}, which version 2.0 does not have")
    for key in _ALWAYS_PLAIN:
        if (model.get(key) or _PLAIN_MODEL[key]) != _PLAIN_MODEL[key]:
            raise FormatError(f"{name}: model.{key} is {model[key]!r:.80}; pybpe supports only {_PLAIN_MODEL[key]!r}")
    return str(version)


def _warn_of_call_settings(data: JsonObject, name: str) -> None:
    for key in ("truncation", "padding"):
        if data.get(key):
            warn(
                f"{name}: pybpe ignores the {key} in this file and always encodes the whole text"
                f" (to silence this warning, set {key!r} to null in the file)"
            )


def _read_merges(merges: list[Any], is_ours: bool, name: str) -> list[tuple[str, str]]:
    """Returns the merges as pairs. They are "left right" in older files, ["left", "right"] in newer ones. Hugging Face
    drops a string that begins with "#version", because it may be the first line of a merges.txt; in a file from an
    older pybpe it is a merge."""
    pairs = []
    for rank, merge in enumerate(merges):
        if isinstance(merge, str) and merge.startswith(NO_MERGE) and not is_ours:
            continue
        parts = merge.split(" ") if isinstance(merge, str) else merge
        if not isinstance(parts, list) or [type(part) for part in parts] != [str, str]:
            raise FormatError(f"{name}: merges[{rank}] is {merge!r}, not two tokens")
        pairs.append((parts[0], parts[1]))
    return pairs
