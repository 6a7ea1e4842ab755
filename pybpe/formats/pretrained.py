"""A tokenizer as a folder for transformers: tokenizer.json, tokenizer_config.json, special_tokens_map.json.

The configuration gives the roles of special tokens, and how to turn a chat into text. `AutoTokenizer` loads the folder
as a PreTrainedTokenizerFast, which reads everything else from tokenizer.json.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from .. import _binding
from ..arguments import by_caller, instance, is_unicode, param
from ..control_tokens import default_template
from ..errors import ArgumentError, Error, FileMissingError, FormatError, MissingExtraError, UnsupportedError, warn
from ..model import PLAIN, Model
from ..pattern import Pattern
from ..reading.streams import Snapshot, read_file
from ..support.output_files import make_folder, remove_file, remove_others
from . import added_tokens, patterns, tokenizer_json, vocab_merges

TOKENIZER = "tokenizer.json"
VOCAB, MERGES = "vocab.json", "merges.txt"
CONFIG = "tokenizer_config.json"
SPECIALS_MAP = "special_tokens_map.json"
CHAT_TEMPLATE = "chat_template.jinja"
MORE_TEMPLATES = "additional_chat_templates"
ADDED_TOKENS = "added_tokens.json"

# Classes of transformers that use tokenizer.json as it is, without "Fast" at the end of their names. Version 5 builds
# the tokenizers of other classes by rules in the code of the class.
_PLAIN_CLASSES = ("PreTrainedTokenizer", "TokenizersBackend", "LlamaTokenizer", "BloomTokenizer")
# The classes whose rules are known: the pattern and the normalizer. None has ignore_merges.
_RULES = {"Qwen2Tokenizer": ("qwen2", "NFC"), "GPTNeoXTokenizer": ("gpt2", "NFC"),
          "GPT2Tokenizer": ("gpt2", None), "CodeGenTokenizer": ("gpt2", None)}  # fmt: skip
_PADDING = ("<|padding|>", "<|pad|>", "<pad>")


def chat_template(model: Model) -> str | None:
    """Returns the model's chat template, or the template that fits its special tokens, or None."""
    return default_template(model.specials) if model.chat_template is None else model.chat_template or None


def roles(model: Model) -> dict[str, str]:
    """Returns the roles among bos_token, eos_token and pad_token that the model has.

    bos is the special token that the template begins with; without a template, the end of text, as in GPT-2.
    """
    found: dict[str, str] = {}
    first = model.template.single[0] if model.template is not None else None
    bos = first.text if first is not None and not first.is_sequence else model.eot
    pad = next((text for text in _PADDING if text in model.specials), None)
    for role, text in (("bos_token", bos), ("eos_token", model.eot), ("pad_token", pad)):
        if text is not None:
            found[role] = text
    return found


def write(model: Model, folder: _binding.PathLike, tokens: Mapping[str, str] | None = None) -> None:
    """Writes the folder. `tokens` adds to or replaces the roles that `roles` finds, such as {"unk_token": "<unk>"}.
    Raises UnsupportedError as tokenizer_json.dumps does, or if the pattern may split text differently in Hugging Face's
    engine."""
    patterns.check_for_hugging_face(model.pattern)
    text = tokenizer_json.dumps(model)
    special_map, config = described(model, tokens or {})
    name = _binding.path_text(folder)
    make_folder(name)
    _binding.write_file(os.path.join(name, TOKENIZER), text.encode())
    _binding.write_file(os.path.join(name, SPECIALS_MAP), _json(special_map))
    _binding.write_file(os.path.join(name, CONFIG), _json(config))
    _remove_older(name)


def write_two_files(model: Model, folder: _binding.PathLike) -> None:
    """Writes a folder with vocab.json and merges.txt, and with a configuration that has the special tokens. Raises
    UnsupportedError as vocab_merges.write does, or if the folder has the tokenizer.json of another tokenizer."""
    name = make_folder(folder)
    _refuse_hiding(model, name)
    config = described(model, {})[1] | {"tokenizer_class": "GPT2Tokenizer"}
    for role in ("bos_token", "eos_token", "unk_token"):
        config.setdefault(role, None)  # otherwise the class adds <|endoftext|>
    entries = added_tokens.write(model)
    config["added_tokens_decoder"] = {str(entry.pop("id")): entry for entry in entries}
    vocab_merges.write(model, os.path.join(name, VOCAB), os.path.join(name, MERGES))
    _binding.write_file(os.path.join(name, CONFIG), _json(config))
    _remove_older(name)


def described(model: Model, tokens: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Returns the contents of special_tokens_map.json and tokenizer_config.json: see `write`."""
    named = {**roles(model), **tokens}
    for role, token in named.items():
        instance(role, token, str, "one special token")
        if not role.endswith("_token"):
            raise ArgumentError(f"{role!r:.80} is not a role of a token: the names of roles end in _token")
        if token not in model.specials:
            raise ArgumentError(f"{param(**{role: token})} is not a special token of this tokenizer")
    others = [text for text in model.specials if text not in named.values() and text not in model.visible]
    special_map = {**named, "additional_special_tokens": others} if others else named
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 10**30,  # transformers writes this for "no limit"
        **special_map,
    }
    if model.prefix_space:
        config["add_prefix_space"] = True
    template = chat_template(model)
    if template is not None:
        config["chat_template"] = template
    return special_map, config


def _remove_older(folder: str) -> None:
    """Removes what an earlier tokenizer left in the folder, and what transformers would read."""
    for other in (CHAT_TEMPLATE, ADDED_TOKENS):
        remove_file(os.path.join(folder, other))
    remove_others(os.path.join(folder, MORE_TEMPLATES), "*.jinja", ())


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode()


def read(folder: str, pattern: Pattern | None = None) -> Model:
    """Returns the model of such a folder, or of a folder with only vocab.json and merges.txt. Raises FormatError also
    if the configuration contradicts tokenizer.json."""
    with Snapshot() as files:
        return _read_all(folder, pattern, files)


def _read_all(folder: str, pattern: Pattern | None, files: Snapshot) -> Model:
    paths = [os.path.join(folder, file) for file in (CONFIG, SPECIALS_MAP)]
    config, roles_map = (_read_object(path, files) if os.path.exists(path) else {} for path in paths)
    if "added_tokens_decoder" in config:  # then transformers does not read the map, which otherwise comes first
        roles_map = {}
    path = os.path.join(folder, TOKENIZER)
    if os.path.exists(path):
        of_transformers = os.path.exists(os.path.join(folder, CONFIG))
        model = tokenizer_json.loads(files.read(path), path, pattern, of_transformers=of_transformers)
        if pattern is None:
            _warn_of_class(config.get("tokenizer_class"), model, folder)
    else:
        model = _read_two_files(folder, config, pattern, files)
    _check_prefix_space(config, model, os.path.join(folder, CONFIG))
    _check_config(config, model, os.path.join(folder, CONFIG))
    _check_config(roles_map, model, os.path.join(folder, SPECIALS_MAP))
    added_path = os.path.join(folder, ADDED_TOKENS)  # old versions of transformers wrote it; new ones read it
    _check_ids(_read_object(added_path, files) if os.path.exists(added_path) else {}, model, added_path)
    template = config.get("chat_template")
    chat_path = os.path.join(folder, CHAT_TEMPLATE)
    if os.path.exists(chat_path):  # newer versions of transformers keep it next to the configuration
        template = files.read(chat_path).decode("utf-8", "replace")
    if isinstance(template := _default_of(template), str) and not is_unicode(template):
        raise FormatError(
            f"{os.path.join(folder, CONFIG)}: chat_template contains a lone surrogate, which is not valid Unicode"
        )
    return with_roles(model, token_text({**config, **roles_map}.get("eos_token")), template)


def _refuse_hiding(model: Model, folder: str) -> None:
    """Raises UnsupportedError if a folder has the tokenizer.json of another tokenizer. Programs that read the folder
    use that file, and ignore the vocab.json and merges.txt next to it."""
    path = os.path.join(folder, TOKENIZER)
    if not os.path.exists(path):
        return
    try:
        is_same = tokenizer_json.loads(read_file(path), path).fingerprint == model.fingerprint
    except Error:
        is_same = False
    if not is_same:
        raise UnsupportedError(
            f"{path} belongs to another tokenizer, and programs that read the folder use it instead of vocab.json and"
            " merges.txt: remove it, or choose another folder"
        )


def _read_two_files(folder: str, config: Mapping[str, Any], pattern: Pattern | None, files: Snapshot) -> Model:
    """Returns the model of vocab.json and merges.txt. Its special tokens are the added tokens of the configuration; if
    that has none, <|endoftext|>."""
    pair = os.path.join(folder, VOCAB), os.path.join(folder, MERGES)
    if not all(map(os.path.exists, pair)):
        raise FileMissingError(f"{folder}: this folder has neither {TOKENIZER} nor {VOCAB} and {MERGES}")
    kind = config.get("tokenizer_class")
    plain = (*_PLAIN_CLASSES, "GPT2Tokenizer", "CodeGenTokenizer")
    if pattern is None and isinstance(kind, str) and _class_name(kind) not in plain:
        raise FormatError(
            f"{folder}: {VOCAB} and {MERGES} do not say how text is split into words; transformers knows it from"
            f" the class {kind!r:.80}:"
            f" {by_caller('pass pattern', 'name it: pybpe export FOLDER --pattern P')}, or load the folder with"
            f" AutoTokenizer{by_caller('', ' in Python')} and use from_hf"
        )
    added = added_tokens.read_decoder(config.get("added_tokens_decoder"), os.path.join(folder, CONFIG))
    specials = added.specials if "added_tokens_decoder" in config else None
    model = vocab_merges.read(*pair, specials, pattern or Pattern("gpt2"), files)
    return replace(model, visible=added.visible, matching=added.matching)


def _class_name(kind: str) -> str:
    return kind.removesuffix("Fast")


def _warn_of_class(kind: Any, model: Model, folder: str) -> None:
    """Warns if transformers may follow the rules of a class that differ from tokenizer.json."""
    if not isinstance(kind, str) or _class_name(kind) in _PLAIN_CLASSES:
        return
    name, normalizer = _RULES.get(_class_name(kind), (None, None))
    is_same = name is not None and (Pattern(name), normalizer) == (model.pattern, model.normalizer)
    if not is_same or (model.whole_words and model.unreached()):
        warn(
            f"{folder}: the tokenizer_class is {kind!r:.80}: some versions of transformers follow the rules of that"
            " class instead of tokenizer.json, which pybpe follows; for their ids, load the folder with AutoTokenizer"
            " and use from_hf"
        )


def _default_of(template: Any) -> Any:
    """Returns the chat template that transformers uses: the only one, or of several with names the default."""
    if isinstance(template, list):
        template = {entry.get("name"): entry.get("template") for entry in template if isinstance(entry, dict)}
    return template.get("default") if isinstance(template, dict) else template


def with_roles(model: Model, eos: str | None, template: Any) -> Model:
    """Returns the model with the end of text and the chat template of a transformers tokenizer, if it has them."""
    if eos is not None and eos in model.specials and eos != model.eot:
        model = replace(model, eos=eos)
    template = _default_of(template)
    if isinstance(template, str) and template != chat_template(model):
        model = replace(model, chat_template=template)
    return model


def token_text(token: Any) -> str | None:
    """Returns the text of a token that a configuration gives as a string or an object; None for anything else."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _read_object(path: str, files: Snapshot) -> dict[str, Any]:
    try:
        config = json.loads(files.read(path))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not JSON: {error}") from None
    if not isinstance(config, dict):
        raise FormatError(f"{path}: expected one JSON object")
    return config


def _check_prefix_space(config: Mapping[str, Any], model: Model, path: str) -> None:
    """Raises FormatError if a configuration, where the setting is off unless it is there, differs from tokenizer.json:
    versions of transformers differ in which one they follow."""
    if config and bool(config.get("add_prefix_space")) != model.prefix_space:
        here, there = ("off", "on") if model.prefix_space else ("on", "off")
        raise FormatError(f"{path}: add_prefix_space is {here} here and {there} in {TOKENIZER}: make them equal")


def _check_config(config: Mapping[str, Any], model: Model, path: str) -> None:
    """Raises FormatError if the configuration would change the ids that tokenizer.json gives."""
    if config.get("split_special_tokens"):
        raise FormatError(
            f"{path}: split_special_tokens is on, which encodes special tokens as text; pybpe's encode recognizes them"
        )
    decoder = config.get("added_tokens_decoder")
    tokens = (
        {i: token for i, token in decoder.items() if token_text(token) is not None} if isinstance(decoder, dict) else {}
    )
    _check_ids({token_text(token): int(i) if i.isdecimal() else i for i, token in tokens.items()}, model, path)
    _check_flags({token["content"]: token for token in tokens.values() if isinstance(token, dict)}, model, path)
    for text in _named_tokens(config):
        if text not in model.specials:
            raise FormatError(f"{path}: adds the special token {text!r:.80}: put it in added_tokens of {TOKENIZER}")


def _check_ids(ids: Mapping[Any, Any], model: Model, path: str) -> None:
    """Raises FormatError for a token that tokenizer.json does not have with this id."""
    for text, i in ids.items():
        if text not in model.specials or model.specials[text] != i:
            raise FormatError(
                f"{path}: adds the token {text!r:.80} with id {i!r:.20}, which {TOKENIZER} does not define with that"
                f" id: put it in added_tokens of {TOKENIZER}"
            )


def _check_flags(tokens: Mapping[str, Mapping[str, Any]], model: Model, path: str) -> None:
    """Raises FormatError if other ids result when these tokens replace the flags of those in tokenizer.json."""
    entries = added_tokens.write(model)
    for entry in entries:
        given = tokens.get(entry["content"], {})
        entry |= {flag: bool(given[flag]) for flag in added_tokens.written_flags(PLAIN) if flag in given}
    replaced = added_tokens.read({"added_tokens": entries}, model.normalizer, path).matching
    for text in tokens:
        ours, theirs = (flags.get(text, PLAIN).names for flags in (model.matching, replaced))
        for flag in sorted({*ours} ^ {*theirs}):
            here, there = ("off", "on") if flag in ours else ("on", "off")
            raise FormatError(
                f"{path}: the added token {text!r:.80} has {flag} {here} here and {there} in {TOKENIZER}; transformers"
                " follows one of them: make them equal"
            )


def _named_tokens(config: Mapping[str, Any]) -> Iterator[str]:
    """Yields the tokens that a configuration gives a role or calls special. transformers adds any that are missing."""
    found: list[Any] = [value for key, value in config.items() if key.endswith("_token")]
    for key in ("additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens"):
        more = config.get(key)
        found += more.values() if isinstance(more, dict) else more if isinstance(more, list) else []
    return (text for text in map(token_text, found) if text is not None)


# ----------------------------------------------------------------------------------------------------
# Objects: tokenizers.Tokenizer, and the fast tokenizers of transformers


def from_hf(tokenizer: Any, pattern: Pattern | None = None) -> Model:
    """Returns the model of such an object. Raises ArgumentError for anything else, and FormatError for parts that pybpe
    does not support."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        raise ArgumentError(
            "expected a tokenizers.Tokenizer or a fast tokenizer of transformers, not"
            f" {type(tokenizer).__module__}.{type(tokenizer).__name__}"
        )
    if getattr(tokenizer, "split_special_tokens" if backend is not tokenizer else "encode_special_tokens", False):
        raise ArgumentError(
            f"the {type(tokenizer).__name__} encodes special tokens as text: turn that setting off"
            " (split_special_tokens or encode_special_tokens), and call encode_ordinary instead"
        )
    model = tokenizer_json.loads(
        backend.to_str(), f"the {type(tokenizer).__name__}", pattern, of_transformers=backend is not tokenizer
    )
    return with_roles(model, getattr(tokenizer, "eos_token", None), getattr(tokenizer, "chat_template", None))


def to_hf(model: Model) -> Any:
    """Returns the tokenizers.Tokenizer. Raises UnsupportedError if a special token has the same spelling as an ordinary
    token, or the pattern may split text differently there."""
    patterns.check_for_hugging_face(model.pattern)
    text = tokenizer_json.dumps(model)
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtraError("tokenizers is not installed: pip install 'pybpe[hf]'") from None
    made: Any = Tokenizer.from_str(text)
    made.eos_token, made.chat_template = model.eot, model.chat_template  # as in transformers; `from_hf` reads them
    return made
