"""tokenizer.json, in the schema of Hugging Face tokenizers.

Files that pybpe writes load in `tokenizers.Tokenizer.from_file` and give the same ids. pybpe reads the part of the
schema that its model supports: BPE over bytes, and the steps around it. It never guesses: for anything else it raises
an error that names the part. The pre-tokenizer is in pre_tokenizer.py.

There are two versions. Every version of the library reads 1.0; 2.0 is the one that its version 1.0 writes. Of what
pybpe reads, 2.0 spells differently: byte_level in the model, where 1.0 has a step ByteLevel, regular expressions for
another engine, templates with ids, merges, which are always pairs, and role_to_token, which names the end of text.
Sources of 2.0: tokenizers/tk-serialize/SPEC.md and tk-convert/src/convert.rs in Hugging Face's repository.

Facts that only pybpe uses (how the tokenizer was trained, the end of text, the chat template) are in the model
under the key "pybpe", which Hugging Face ignores.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

from .. import _binding
from ..arguments import by_caller, is_unicode, utf8
from ..errors import ArgumentError, Error, FormatError, LimitError, UnsupportedError, warn
from ..model import MOST_IDS, PLAIN, Matching, Model, Template, TemplatePiece, check_spaces, end_of_text, matcher
from ..pattern import Pattern
from . import VERSION_KEY, check_version_of
from .pre_tokenizer import (
    BYTE_LEVEL,
    JsonObject,
    own_spelling,
    part,
    read_pattern,
    read_prefix_space,
    type_of,
    with_byte_level,
    write_pre_tokenizer,
    write_splits,
)
from .vocab_merges import NO_MERGE, read_parts, to_bytes, token_names

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
_UNKNOWN = {"unk_token": str, "fuse_unk": bool}  # the contents of Model.unknown, without empty values
_ALWAYS_PLAIN = ("type", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback")


def dumps(model: Model, version: str = "1.0") -> str:
    """Returns the text of a tokenizer.json. Raises UnsupportedError if a special token has the same spelling as an
    ordinary token, so the format cannot distinguish them, or if version 2.0 cannot hold the pattern or template."""
    return json.dumps(to_object(model, version), ensure_ascii=False, indent=2) + "\n"


def to_object(model: Model, version: str = "1.0") -> JsonObject:
    """Returns a tokenizer.json as a JSON object."""
    names = token_names(model)
    word = taken_as_word(model, model.specials)
    if word is not None:
        raise UnsupportedError(
            f"Hugging Face would return the special token {word!r:.80} for a word or byte with the same spelling:"
            " save as tokenizer.bin instead"
        )
    own = {key: getattr(model, key) for key in _OWN_FACTS if getattr(model, key) is not None}
    own |= {"regex": regex} if (regex := own_spelling(model.pattern, version)) is not None else {}
    # Every version of Hugging Face's tokenizers reads strings in version 1.0, but drops one that begins with NO_MERGE.
    as_pairs = version != "1.0" or any(names[left].startswith(NO_MERGE) for left, _ in model.merges)
    pairs = ([names[left], names[right]] for left, right in model.merges)
    settings = {**_PLAIN_MODEL, **model.unknown, "dropout": model.dropout or None, "ignore_merges": model.whole_words}
    parts = {
        "vocab": {name: i for i, name in enumerate(names) if name},
        "merges": list(pairs) if as_pairs else list(map(" ".join, pairs)),
        "pybpe": {VERSION_KEY: _OWN_VERSION, **model.training, **own},
    }
    shared = {
        "added_tokens": write_added(model),
        "normalizer": {"type": model.normalizer} if model.normalizer is not None else None,
    }
    start = {"version": version, "truncation": None, "padding": None}
    if version == "1.0":
        return {
            **start,
            **shared,
            "pre_tokenizer": write_pre_tokenizer(model.pattern, model.prefix_space),
            "post_processor": _write_template(model.template, model.specials, version),
            "decoder": {**BYTE_LEVEL, "use_regex": True},
            "model": {**settings, **parts},
        }
    del settings["dropout"]
    return {
        **start,
        "role_to_token": {_EOS_ROLE: model.eot} if model.eot is not None else None,
        **shared,
        "pre_tokenizer": write_splits(model.pattern, version),
        "post_processor": _write_template(model.template, model.specials, version),
        "decoder": {"type": "ByteLevel"},
        "model": {**settings, "byte_level": True, **parts},
    }


def loads(text: str | bytes, name: str, pattern: Pattern | None = None, *, of_transformers: bool = False) -> Model:
    """Returns the model in the text of a tokenizer.json. Errors call it `name`. `pattern` replaces the file's.

    pybpe ignores truncation and padding. It warns about them, because the library tokenizers applies them, but not with
    `of_transformers`: transformers chooses them in every call, and its files have only the settings of the last
    call."""
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
    """Like `loads`, with C reading the tokens and merges. Returns None if the file is unusual or invalid."""
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
        if not in_order or taken_as_word(model, model.specials):
            return None
        vocab = _binding.Vocab.from_json(text, spans, model.specials, model.rules)
    except (ArgumentError, FormatError, LimitError, ValueError, OverflowError, RecursionError):
        return None  # the caller reads it again and says why
    aliases = _read_aliases(data, model.specials, name)
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
    if unused := {text for text in made if is_always_found(around, text)}:
        merges = [(left, right) for left, right in merges if unused.isdisjoint((left, right, left + right))]
    tokens, pairs = read_parts({**vocab, **missing}, merges, around.specials, name)
    _check_ids(around.specials, vocab, name)
    word = taken_as_word(around, set(around.specials) - set(missing))
    if word is not None:
        raise FormatError(
            f"{name}: Hugging Face returns the added token {word!r:.80}, which is in model.vocab, for a word or byte"
            " with the same spelling; pybpe does not support this"
        )
    aliases = _read_aliases(data, around.specials, name)
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
    model = part(data, "model", dict, name)
    version = _refuse_options(data, model, name)
    if not of_transformers:
        for key in ("truncation", "padding"):
            if data.get(key):
                warn(
                    f"{name}: pybpe ignores the {key} in this file and always encodes the whole text"
                    f" (to silence this warning, set {key!r} to null in the file)"
                )
    normalizer = _read_normalizer(data.get("normalizer"), name)
    added = read_added(data, normalizer, name)
    own = model.get("pybpe")
    facts = dict(own) if isinstance(own, dict) else {}
    check_version_of(facts, _OWN_VERSION, f"{name}: model.pybpe")
    facts.pop(VERSION_KEY, None)
    regex = facts.pop("regex", None)
    if not is_unicode(json.dumps(facts, ensure_ascii=False)):
        raise FormatError(f"{name}: model.pybpe contains a lone surrogate, which is not valid Unicode")
    pre_tokenizer = data.get("pre_tokenizer")
    if version != "1.0":
        pre_tokenizer = with_byte_level(pre_tokenizer, name)
    if pattern is None:
        pattern = read_pattern(pre_tokenizer, regex if isinstance(regex, str) else None, name, version)
    if (decoder := type_of(data.get("decoder"))) not in (None, "ByteLevel"):
        raise FormatError(f"{name}: the decoder is {decoder!r}; pybpe supports ByteLevel")
    template = _read_post_processor(data.get("post_processor"), added.specials, name, version)
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
        prefix_space=read_prefix_space(pre_tokenizer, name),
        dropout=_read_dropout(model, name),
        **fields,
    )


def _read_dropout(model: JsonObject, name: str) -> float:
    """Returns Model.dropout. Like Hugging Face, refuses numbers that are not from 0 to 1."""
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


def _read_merges(merges: list[Any], is_ours: bool, name: str) -> list[tuple[str, str]]:
    """Returns the merges as pairs. They are "left right" in older files, ["left", "right"] in newer ones. Hugging Face
    drops a string that begins with "#version", because it may be the first line of a merges.txt. In a file from an
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


# ----------------------------------------------------------------------------------------------------
# Normalizer


def _read_normalizer(normalizer: Any, name: str) -> str | None:
    if normalizer is None:
        return None
    kind, steps = type_of(normalizer), None
    if kind == "Sequence" and isinstance(normalizer, dict):
        steps = normalizer.get("normalizers")
    if isinstance(steps, list) and len(steps) < 2:
        return _read_normalizer(next(iter(steps), None), name)
    if kind not in ("NFC", "NFKC"):
        raise FormatError(f"{name}: the normalizer is {kind!r}; pybpe supports NFC and NFKC")
    return str(kind)


# ----------------------------------------------------------------------------------------------------
# Post-processor: our template


_MOST_TYPES = 256  # in version 2.0


def _write_template(template: Template | None, specials: Mapping[str, int], version: str) -> JsonObject | None:
    """Returns the post-processor, which has runs of ids in the place of names in version 2.0. Raises UnsupportedError
    for a template that Hugging Face refuses there."""
    if template is None:
        return None
    both = {"single": template.single, "pair": template.pair}
    if version == "1.0":
        return {
            "type": "TemplateProcessing",
            **{
                key: [
                    {"Sequence" if piece.is_sequence else "SpecialToken": {"id": piece.text, "type_id": piece.type_id}}
                    for piece in pieces
                ]
                for key, pieces in both.items()
            },
            "special_tokens": {
                text: {"id": text, "ids": [specials[text]], "tokens": [text]} for text in template.special_tokens
            },
        }
    if [piece.text for piece in template.pair if piece.is_sequence] != ["A", "B"] or any(
        piece.type_id >= _MOST_TYPES for pieces in both.values() for piece in pieces
    ):
        raise UnsupportedError(
            f"version 2.0 of tokenizer.json cannot hold the template {str(template)!r:.200}: $A must come before $B,"
            f" and types are below {_MOST_TYPES}"
        )
    return {"type": "TemplateProcessing", **{key: _write_runs(pieces, specials) for key, pieces in both.items()}}


def _write_runs(pieces: Iterable[TemplatePiece], specials: Mapping[str, int]) -> list[JsonObject]:
    found: list[JsonObject] = []
    for (text, type_id), run in groupby(pieces, lambda piece: (piece.text if piece.is_sequence else "", piece.type_id)):
        what: JsonObject = {"seq": text} if text else {"ids": [specials[piece.text] for piece in run]}
        found.append({**what, "type_id": type_id} if type_id else what)
    return found


def _read_runs(pieces: Iterable[Any], specials: Mapping[str, int], name: str) -> tuple[TemplatePiece, ...]:
    """Returns the pieces of a template in version 2.0."""
    texts = {i: text for text, i in specials.items()}
    found: list[TemplatePiece] = []
    for piece in pieces:
        type_id = piece.get("type_id", 0) if isinstance(piece, dict) else None
        if type(type_id) is not int or not 0 <= type_id < _MOST_TYPES or ("seq" in piece) == ("ids" in piece):
            raise FormatError(f"{name}: expected seq or ids, and a type_id below {_MOST_TYPES}, found {piece!r:.80}")
        if "seq" in piece:
            found.append(TemplatePiece(part(piece, "seq", str, name), True, type_id))
            continue
        for i in part(piece, "ids", list, name):
            if type(i) is not int or i not in texts:
                raise FormatError(f"{name}: {i!r:.80} is not the id of an added token")
            found.append(TemplatePiece(texts[i], False, type_id))
    return tuple(found)


# Sources: tokenizers/src/processors/{roberta,bert}.rs.
_FIXED_TEMPLATES = {
    "RobertaProcessing": ("{cls} $A {sep}", "{cls} $A {sep} {sep} $B {sep}"),
    "BertProcessing": ("{cls} $A {sep}", "{cls} $A {sep} $B:1 {sep}:1"),
}


def _read_post_processor(processor: Any, specials: Mapping[str, int], name: str, version: str) -> Template | None:
    """Returns the template, or None. Ignores ByteLevel, which only trims offsets."""
    if processor is None:
        return None
    if version != "1.0" and type_of(processor) != "TemplateProcessing":
        raise FormatError(f"{name}: the post_processor is {type_of(processor)!r:.80}; {version} has TemplateProcessing")
    is_list = type_of(processor) == "Sequence" and isinstance(processor, dict)
    steps = part(processor, "processors", list, f"{name}: post_processor") if is_list else [processor]
    # Hugging Face recognizes ByteLevel by its members.
    others = [
        step
        for step in steps
        if not (type_of(step) == "ByteLevel" and isinstance(step, dict) and type(step.get("add_prefix_space")) is bool)
    ]
    if not others:
        return None
    kinds = [type_of(step) for step in others]
    if len(kinds) == 1 and kinds[0] in list(_FIXED_TEMPLATES):  # in a damaged file, a type may be unhashable
        return _fixed_template(kinds[0], others[0], specials, f"{name}: post_processor")
    if kinds != ["TemplateProcessing"]:
        raise FormatError(
            f"{name}: the post_processor is {kinds}; pybpe supports ByteLevel and one of TemplateProcessing,"
            " RobertaProcessing and BertProcessing"
        )
    return _read_template(others[0], specials, name, version)


def _fixed_template(kind: str, processor: JsonObject, specials: Mapping[str, int], name: str) -> Template:
    """Returns the template of a processor that only says which tokens it uses."""
    tokens: dict[str, str] = {}
    for role in ("cls", "sep"):
        given = processor.get(role)
        if not (isinstance(given, list) and len(given) == 2 and specials.get(str(given[0]), -1) == given[1]):
            raise FormatError(f"{name}: {kind}: {role} is {given!r:.80}, which is not an added token with its id")
        tokens[role] = str(given[0])
    single, pair = ([piece.format(**tokens) for piece in spelled.split()] for spelled in _FIXED_TEMPLATES[kind])
    return Template.parse(single, pair)


def _read_template(processor: JsonObject, specials: Mapping[str, int], name: str, version: str) -> Template | None:
    name = f"{name}: post_processor"
    pieces = [part(processor, key, list, name) for key in ("single", "pair")]
    try:
        if version == "1.0":
            template = Template(*(tuple(_read_piece(piece, name) for piece in each) for each in pieces))
        else:
            template = Template(*(_read_runs(each, specials, name) for each in pieces))
        template.check(specials)
    except ArgumentError as error:
        raise FormatError(f"{name}: {error}") from None
    given = part(processor, "special_tokens", dict, name) if version == "1.0" else {}
    for text in template.special_tokens if version == "1.0" else ():
        ids = part(given.get(text), "ids", list, name)
        if ids != [specials[text]]:
            raise FormatError(f"{name}: {text!r} has the ids {ids}; pybpe uses its own id, {specials[text]}")
    return template if template != Template.parse("$A") else None  # transformers writes "$A" for no template


def _read_piece(piece: Any, name: str) -> TemplatePiece:
    for kind in ("Sequence", "SpecialToken"):
        if isinstance(piece, dict) and kind in piece:
            inner = piece[kind]
            text, type_id = part(inner, "id", str, name), part(inner, "type_id", int, name)
            return TemplatePiece(text, kind == "Sequence", type_id)
    raise FormatError(f"{name}: expected a Sequence or a SpecialToken, found {piece!r:.80}")


# ----------------------------------------------------------------------------------------------------
# The added tokens of a tokenizer.json, which are pybpe's special tokens.
#
# Hugging Face finds them in the text before anything else. It ignores their ids in the file: a token in model.vocab
# keeps the id that it has there, and the others get the next ids after the vocabulary, in the order of the file. pybpe
# refuses a file with different ids.


# The key of an entry for a text that shares the id of another special token. Hugging Face has no such tokens, and
# refuses the file because the entry has no id.
_ALIAS = "same_id_as"


def write_added(model: Model) -> list[JsonObject]:
    """Returns the entries for all special tokens."""
    aliases = model.aliases
    by_id = sorted((i, text) for text, i in model.specials.items() if text not in aliases)
    entries: list[JsonObject] = [
        {
            "id": i,
            "content": text,
            **written_flags(model.matching.get(text, PLAIN)),
            "special": text not in model.visible,
        }
        for i, text in by_id
    ]
    return entries + [{"content": text, _ALIAS: model.tokens[model.specials[text]].decode()} for text in aliases]


def written_flags(rules: Matching) -> JsonObject:
    return {flag: flag in rules.names for flag in ("single_word", "lstrip", "rstrip", "normalized")}


def _read_aliases(data: JsonObject, specials: Mapping[str, int], name: str) -> dict[str, int]:
    """Returns text -> id of the added tokens that share the id of another added token."""
    entries = data.get("added_tokens") or []
    found = {part(entry, "content", str, name): part(entry, _ALIAS, str, name) for entry in entries if _ALIAS in entry}
    for text, other in found.items():
        if not text or not is_unicode(text) or text in specials or other not in specials:
            raise FormatError(f"{name}: the added token {text!r:.80} cannot share the id of {other!r:.80}")
    return {text: specials[other] for text, other in found.items()}


class AddedTokens(NamedTuple):
    """The added tokens of a file."""

    specials: dict[str, int]  # text -> id, in the order of the file
    visible: frozenset[str]  # the text of the tokens that are not marked "special"
    matching: dict[str, Matching]  # the flags of the tokens that have any


def read_decoder(entries: Any, name: str) -> AddedTokens:
    """Returns the tokens of `added_tokens_decoder` in a tokenizer_config.json, which maps ids to such entries."""
    found = part({"added_tokens_decoder": entries or {}}, "added_tokens_decoder", dict, name)
    numbered = [(int(i), entry) for i, entry in found.items() if i.isdecimal() and isinstance(entry, dict)]
    return read_added({"added_tokens": [{**entry, "id": i} for i, entry in sorted(numbered)]}, None, name)


def read_added(data: JsonObject, normalizer: str | None, name: str) -> AddedTokens:
    """Returns all added tokens."""
    found: dict[str, tuple[int, bool, Matching]] = {}
    for given in part(data, "added_tokens", list, name) if data.get("added_tokens") is not None else []:
        if isinstance(given, dict) and _ALIAS in given:  # see _read_aliases
            continue
        text, entry = _read_entry(given, name)
        if not text:  # Hugging Face ignores it
            continue
        if found.setdefault(text, entry) != entry:
            raise FormatError(f"{name}: the added token {text!r:.80} occurs twice, with different ids or settings")
    matching = {text: rules for text, (_, _, rules) in found.items()}
    try:
        if normalizer is not None:
            # Hugging Face looks for "normalized" tokens in the normalized text, pybpe for all in the original text.
            for text, rules in matching.items():
                if rules.late and not (normalizer == "NFC" and _is_stable(text) and not rules.single_word):
                    told = (
                        "has normalized on, and there is a normalizer: pybpe looks for special tokens in the original"
                    )
                    raise ArgumentError(f"the added token {text!r:.80} {told} text only")
        if _is_one_pass(matching):
            matching = {}
        check_spaces(matching, matching)
    except ArgumentError as error:
        raise FormatError(f"{name}: {error}") from None
    return AddedTokens(
        {text: i for text, (i, _, _) in found.items()},
        frozenset(text for text, (_, is_special, _) in found.items() if not is_special),
        {text: rules for text, rules in matching.items() if rules != PLAIN},
    )


def _read_entry(entry: Any, name: str) -> tuple[str, tuple[int, bool, Matching]]:
    """Returns the text of an entry; and its id, whether it is special, and its flags."""
    text, number = part(entry, "content", str, name), part(entry, "id", int, name)
    if not is_unicode(text):
        raise FormatError(f"{name}: the added token {text!r:.80} contains a lone surrogate, which is not valid Unicode")
    if not 0 <= number < MOST_IDS:  # Python's hashes of larger numbers can collide, which would take quadratic time
        raise FormatError(f"{name}: the added token {text!r:.80} has id {number}; ids are from 0 to {MOST_IDS - 1}")
    flags = ("lstrip", "rstrip", "single_word", "normalized", "special")
    *rules, is_special = (flag in entry and part(entry, flag, bool, name) for flag in flags)
    return text, (number, is_special, Matching(*rules))


def _check_ids(specials: Mapping[str, int], vocab: Collection[str], name: str) -> None:
    """Raises FormatError unless Hugging Face gives the same ids to the added tokens that `vocab` (model.vocab) lacks.
    `specials` is in the order of the file.

    The ids after the vocabulary start at the number of its tokens. In older versions of Hugging Face's tokenizers they
    follow the highest id of the preceding added tokens, if that is greater. Both must equal the ids in the file.
    """
    missing, highest = 0, -1
    for text, i in specials.items():
        if text not in vocab:
            expected = {len(vocab) + missing, max(len(vocab), highest + 1)}
            missing += 1
            if expected != {i}:
                raise FormatError(
                    f"{name}: the added token {text!r:.80} has id {i}, but Hugging Face ignores that and assigns"
                    f" {' or '.join(map(str, sorted(expected)))}, the next id after model.vocab in the order of the"
                    " file: put the token with its id in model.vocab"
                )
        highest = max(highest, i)


def taken_as_word(model: Model, specials: Iterable[str]) -> str | None:
    """Returns the first of these special tokens whose id Hugging Face may return for a word or byte of a text that does
    not contain the special token itself, or None.

    Hugging Face looks up bytes in model.vocab, and with ignore_merges also words, and returns their ids, even of
    special tokens. pybpe never encodes a byte or word as a special token. A special token whose spelling there equals
    its text, as in ASCII, is found before the text is split into words, unless a normalizer produces it later, or it
    overlaps a "single_word" one, whose text is passed over if a word character is next to it.
    """
    for text in specials:
        try:
            word = to_bytes(text)
        except KeyError:
            continue
        if len(word) > 1 and not (model.whole_words and model.pattern.word_ends(word) == [len(word)]):
            continue
        if not is_always_found(model, text):
            return text
    return None


def is_always_found(model: Model, text: str) -> bool:
    """Returns whether no word contains the bytes that a special token spells in model.vocab: they are its text, which
    is found before the text is split into words."""
    try:
        is_itself = model.normalizer is None and to_bytes(text) == text.encode()
    except KeyError:
        return False
    single = [other for other, rules in model.matching.items() if rules.single_word]
    return is_itself and not (single and (first_overlap(single, [text]) or first_overlap([text], single)))


# Added tokens with "normalized" on
_COMPOSED = ";K`"  # NFC turns other characters into these: U+037E, U+212A and U+1FEF
_COMPOSING = "<=>"  # NFC joins these, and letters, with some of the marks after them
_LONG = 1 << 9  # characters. Looking for the beginnings of others takes time that grows with the square


def _is_stable(text: str) -> bool:
    """Returns whether NFC produces a text only from itself, wherever it is. White space composes with nothing."""
    last_composes = text[-1].isalpha() or text[-1] in _COMPOSING
    return text.isascii() and not last_composes and not any(char in _COMPOSED for char in text)


def _is_one_pass(matching: Mapping[str, Matching]) -> bool:
    """Returns whether looking for all tokens at once finds the same as looking for "normalized" ones after the
    others."""
    if any(rules.strips or rules.single_word for rules in matching.values()):
        return False
    late = sorted(text for text, rules in matching.items() if rules.late)
    early = sorted(text for text, rules in matching.items() if not rules.late)
    return not late or not early or not (first_overlap(late, early) or first_overlap(early, late))


def first_overlap(texts: Iterable[str], others: Iterable[str]) -> tuple[str, str] | None:
    """Returns (text, other) for the first of `texts` that contains one of `others`, or ends with the beginning of one,
    or None if there is none. A long text counts as one that does."""
    ordered = sorted(others)
    inside = matcher(ordered, {})
    if inside is None:
        return None
    for text in texts:
        if (found := inside.find(text.encode())) is not None:
            return text, ordered[found[2]]
        if len(text) > _LONG:
            return text, ordered[0]
        for end in (text[i:] for i in range(len(text))):
            at = bisect_left(ordered, end)
            if at < len(ordered) and ordered[at].startswith(end):
                return text, ordered[at]
    return None
