"""A tokenizer as a folder for transformers: tokenizer.json, tokenizer_config.json, special_tokens_map.json.

The configuration gives the roles of special tokens, and how to turn a chat into text. `AutoTokenizer` loads the folder
as a PreTrainedTokenizerFast, which reads everything else from tokenizer.json.
"""

from __future__ import annotations

import glob
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from .. import _binding
from ..arguments import by_caller, instance, is_unicode, param
from ..control_tokens import default_template
from ..errors import ArgumentError, Error, FileMissingError, FormatError, MissingExtraError, UnsupportedError, warn
from ..model import PLAIN, Model, Template
from ..pattern import Pattern
from ..reading.streams import Snapshot, read_file
from ..support.output_files import make_folder, remove_file, remove_others
from . import tokenizer_json, vocab_merges
from .pre_tokenizer import check_for_hugging_face

TOKENIZER = "tokenizer.json"
VOCAB, MERGES = "vocab.json", "merges.txt"
CONFIG = "tokenizer_config.json"
SPECIALS_MAP = "special_tokens_map.json"
CHAT_TEMPLATE = "chat_template.jinja"
MORE_TEMPLATES = "additional_chat_templates"
ADDED_TOKENS = "added_tokens.json"
# The names that programs look for in the folder of a tokenizer.
TOKENIZER_FILES = (
    TOKENIZER, VOCAB, MERGES, CONFIG, SPECIALS_MAP, CHAT_TEMPLATE, MORE_TEMPLATES, ADDED_TOKENS, "tokenizer.bin",
    "tokenizer.model", "tokenizer.pkl", "token_bytes.pt",
)  # fmt: skip
_OF_MODEL = "config.json"

# Classes of transformers that use tokenizer.json as it is, without "Fast" at the end of their names. Version 5 builds
# the tokenizers of other classes by rules in the code of the class.
_PLAIN_CLASSES = ("PreTrainedTokenizer", "TokenizersBackend", "LlamaTokenizer", "BloomTokenizer")
# The classes whose rules are known: the pattern and the normalizer. None has ignore_merges.
_RULES = {"Qwen2Tokenizer": ("qwen2", "NFC"), "GPTNeoXTokenizer": ("gpt2", "NFC"),
          "GPT2Tokenizer": ("gpt2", None), "CodeGenTokenizer": ("gpt2", None)}  # fmt: skip
_PADDING = ("<|padding|>", "<|pad|>", "<pad>")
# The classes that, in version 4, put bos_token and eos_token around a text as add_bos_token and add_eos_token say, and
# their defaults.
_AROUND = {"LlamaTokenizer": (True, False), "CodeLlamaTokenizer": (True, False), "GemmaTokenizer": (True, False),
           "CohereTokenizer": (True, False), "GPTNeoXTokenizer": (False, False)}  # fmt: skip
_OF_CLASS = ("tokenizer_class", "add_bos_token", "add_eos_token")
# Fields of a configuration that a Model does not keep: it has these itself, or they are about files and objects.
_NOT_KEPT = {
    *("chat_template", "added_tokens_decoder", "auto_map", "name_or_path", "tokenizer_file", "special_tokens_map_file"),
    *("vocab_file", "merges_file", "is_local", "local_files_only", "files_loaded", "device_map"),
}
_SETTINGS = ("model_max_length", "padding_side", "truncation_side", "clean_up_tokenization_spaces", "model_input_names",
             "extra_special_tokens")  # fmt: skip
_LISTS = ("additional_special_tokens", "extra_special_tokens", "model_specific_special_tokens")


def chat_template(model: Model) -> str | None:
    """Returns the model's chat template, or the template that fits its special tokens, or None."""
    return default_template(model.specials) if model.chat_template is None else model.chat_template or None


def roles(model: Model) -> dict[str, str]:
    """Returns the roles that special tokens have in the configuration of the model, such as bos_token.

    Without a configuration these are bos_token, eos_token and pad_token. bos is the special token that the template
    begins with. Without a template, the end of text, as in GPT-2.
    """
    found: dict[str, str] = {}
    if model.config is not None:
        given = {**model.config, "eos_token": model.eos or model.config.get("eos_token")}
        return {key: str(text) for key, text in given.items() if _is_role(key, text) and text in model.specials}
    first = model.template.single[0] if model.template is not None else None
    bos = first.text if first is not None and not first.is_sequence else model.eot
    pad = next((text for text in _PADDING if text in model.specials), None)
    for role, text in (("bos_token", bos), ("eos_token", model.eot), ("pad_token", pad)):
        if text is not None:
            found[role] = text
    return found


def _is_role(key: str, text: object) -> bool:
    return key.endswith("_token") and isinstance(text, str)


def write(
    model: Model,
    folder: _binding.PathLike,
    tokens: Mapping[str, str] | None = None,
    settings: Mapping[str, object] | None = None,
) -> None:
    """Writes the folder. `tokens` adds to or replaces the roles that `roles` finds, such as {"unk_token": "<unk>"}.
    `settings` does so with the rest of the configuration. Raises UnsupportedError as tokenizer_json.dumps does, or if
    the pattern may split text differently in Hugging Face's engine."""
    check_for_hugging_face(model.pattern)
    text = tokenizer_json.dumps(model)
    special_map, config = described(model, tokens or {})
    config |= settings or {}
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
    plain = replace(model, config=without_class(model.config))
    config = described(plain, {})[1] | {"tokenizer_class": "GPT2Tokenizer"}
    for role in ("bos_token", "eos_token", "unk_token"):
        config.setdefault(role, None)  # otherwise the class adds <|endoftext|>
    entries = tokenizer_json.write_added(model)
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
    kept: Mapping[str, Any] | None = model.config
    if kept is None:
        others = [text for text in model.specials if text not in named.values() and text not in model.visible]
        kept = {
            "clean_up_tokenization_spaces": False,
            "model_max_length": 10**30,  # transformers writes this for "no limit"
            **({"additional_special_tokens": others} if others else {}),
        }
    kept = {key: _plain(value) for key, value in kept.items() if key == "chat_template" or key not in _NOT_KEPT}
    kept |= {key: _of_model(kept[key], model) for key in _LISTS if key in kept}
    special_map = {**named, **({"additional_special_tokens": more} if (more := kept.get(_LISTS[0])) else {})}
    kept = {key: value for key, value in kept.items() if not _is_role(key, value)}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", **kept, **special_map}
    if model.prefix_space or "add_prefix_space" in kept:
        config["add_prefix_space"] = model.prefix_space
    template, by_name = chat_template(model), config.pop("chat_template", None)
    if isinstance(by_name, dict):
        named_templates = {"default": template, **by_name} if template is not None else by_name
        config["chat_template"] = [{"name": name, "template": one} for name, one in named_templates.items()]
    elif template is not None:
        config["chat_template"] = template
    return special_map, config


def _of_model(tokens: Any, model: Model) -> Any:
    """Returns the part of a list of tokens, or of a mapping to them, that are special tokens of the model."""
    if isinstance(tokens, dict):
        return {name: text for name, text in tokens.items() if isinstance(text, str) and text in model.specials}
    if isinstance(tokens, list):
        return [text for text in tokens if isinstance(text, str) and text in model.specials]
    return tokens


def without_class(config: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """Returns a configuration for a tokenizer that has changed: without its class in transformers, which may have rules
    of its own."""
    return config and {key: value for key, value in config.items() if key not in _OF_CLASS}


def _remove_older(folder: str) -> None:
    """Removes the files of an earlier tokenizer that transformers would read."""
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
    # The setting is off unless it is there. Versions of transformers differ in which of the two files they follow.
    if config and bool(config.get("add_prefix_space")) != model.prefix_space:
        here, there = ("off", "on") if model.prefix_space else ("on", "off")
        told = f"add_prefix_space is {here} here and {there} in {TOKENIZER}: make them equal"
        raise FormatError(f"{os.path.join(folder, CONFIG)}: {told}")
    _check_config(config, model, os.path.join(folder, CONFIG))
    _check_config(roles_map, model, os.path.join(folder, SPECIALS_MAP))
    added_path = os.path.join(folder, ADDED_TOKENS)  # old versions of transformers wrote it. New ones read it
    _check_ids(_read_object(added_path, files) if os.path.exists(added_path) else {}, model, added_path)
    # Newer versions of transformers keep chat templates next to the configuration.
    found = {"default": os.path.join(folder, CHAT_TEMPLATE)}
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), MORE_TEMPLATES, "*.jinja"))):
        found[os.path.basename(path).removesuffix(".jinja")] = path
    beside = {name: files.read(path).decode("utf-8", "replace") for name, path in found.items() if os.path.exists(path)}
    if not config and not roles_map and not beside:
        return model
    config = {**config, **roles_map, **({"chat_template": beside} if beside else {})}
    for key, value in config.items():
        if not is_unicode(json.dumps([key, value], ensure_ascii=False)):
            raise FormatError(
                f"{os.path.join(folder, CONFIG)}: {key} contains a lone surrogate, which is not valid Unicode"
            )
    _warn_of_added(config, model, folder)
    return _configured(model, config)


def model_vocab_size(folder: str) -> int | None:
    """Returns the number of tokens of the model in a folder of transformers, if there is one that says it."""
    with suppress(Error, ValueError, RecursionError, AttributeError):
        size = json.loads(read_file(os.path.join(folder, _OF_MODEL))).get("vocab_size")
        return size if isinstance(size, int) else None
    return None


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
    """Returns the model of vocab.json and merges.txt. Its special tokens are the added tokens of the configuration. If
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
            f" {by_caller('pass pattern', 'name it: `pybpe export FOLDER --pattern P -o NEW`')}, or load the folder"
            f" with AutoTokenizer{by_caller('', ' in Python')} and use from_hf"
        )
    added = tokenizer_json.read_decoder(config.get("added_tokens_decoder"), os.path.join(folder, CONFIG))
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


def _warn_of_added(config: Mapping[str, Any], model: Model, folder: str) -> None:
    """Warns if version 4 of transformers puts other special tokens around a text than the template."""
    kind = config.get("tokenizer_class")
    usual = _AROUND.get(_class_name(kind)) if isinstance(kind, str) else None
    if usual is None:
        return
    texts = [token_text(config.get(role)) for role in ("bos_token", "eos_token")]
    is_on = [config.get(f"add_{role}", default) for role, default in zip(("bos_token", "eos_token"), usual)]
    bos, eos = (text if on else None for text, on in zip(texts, is_on))
    theirs = Template.around(bos, eos).single if bos or eos else Template.parse("$A").single
    ours = model.template.single if model.template is not None else Template.parse("$A").single
    if [piece.text for piece in theirs] != [piece.text for piece in ours]:
        warn(
            f"{folder}: with the tokenizer_class {kind!r:.80}, version 4 of transformers encodes a text as"
            f" {' '.join(map(str, theirs))!r}; version 5 and pybpe follow {TOKENIZER}, which says"
            f" {' '.join(map(str, ours))!r}"
        )


def _named_templates(template: Any) -> dict[str, str]:
    """Returns chat templates by name. The name of the one that transformers uses is "default"."""
    if isinstance(template, list):
        template = {str(entry.get("name")): entry.get("template") for entry in template if isinstance(entry, dict)}
    found = template if isinstance(template, dict) else {"default": template}
    return {name: text for name, text in found.items() if isinstance(text, str)}


def _configured(model: Model, config: Mapping[str, Any]) -> Model:
    """Returns the model with the facts of a configuration of transformers."""
    kept = {key: _plain(value) for key, value in config.items() if key not in _NOT_KEPT}
    if "auto_map" in config:  # the class is in another file of the folder
        kept = dict(without_class(kept) or {})
    if kept.get("tokenizer_class") == "TokenizersBackend":
        kept["tokenizer_class"] = "PreTrainedTokenizerFast"  # the name in version 4, which version 5 knows too
    if isinstance(kept.get("extra_special_tokens"), list) and (more := kept.pop("extra_special_tokens")):
        kept["additional_special_tokens"] = more  # the older name, which version 4 reads, too
    templates = _named_templates(config.get("chat_template"))
    template = templates.pop("default", None)
    if templates:
        kept["chat_template"] = templates
    eos = kept.get("eos_token")
    if isinstance(eos, str) and eos in model.specials and eos != model.eot:
        model = replace(model, eos=eos)
    if template != chat_template(model):
        model = replace(model, chat_template=template or "")
    return replace(model, config=kept)


def _plain(value: Any) -> Any:
    """Returns a value of a configuration in which tokens that are objects are replaced by their text."""
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if (text := token_text(value)) is not None:
        return text
    return {key: _plain(one) for key, one in value.items()} if isinstance(value, dict) else value


def token_text(token: Any) -> str | None:
    """Returns the text of a token that a configuration gives as a string or an object, or None for anything else."""
    text = token.get("content") if isinstance(token, dict) else getattr(token, "content", token)
    return text if isinstance(text, str) else None


def _read_object(path: str, files: Snapshot) -> dict[str, Any]:
    try:
        config = json.loads(files.read(path))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not JSON: {error}") from None
    if not isinstance(config, dict):
        raise FormatError(f"{path}: expected one JSON object")
    return config


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
    """Raises FormatError if other ids result when the flags of these tokens replace the ones in tokenizer.json."""
    entries = tokenizer_json.write_added(model)
    for entry in entries:
        given = tokens.get(entry["content"], {})
        entry |= {flag: bool(given[flag]) for flag in tokenizer_json.written_flags(PLAIN) if flag in given}
    replaced = tokenizer_json.read_added({"added_tokens": entries}, model.normalizer, path).matching
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
        if type(backend).__module__.partition(".")[0] == "tokenizers":
            raise ArgumentError(
                "an object of tokenizers 1.0 does not show its parts: pass its file to from_file instead"
            )
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
    settings = getattr(tokenizer, "init_kwargs", None) if backend is tokenizer else _settings_of(tokenizer)
    template = getattr(tokenizer, "chat_template", None)
    if settings is not None:
        return _configured(model, {**settings, "chat_template": template})
    said = {"eos_token": getattr(tokenizer, "eos_token", None), "chat_template": template or chat_template(model)}
    return replace(_configured(model, said), config=model.config)


def _settings_of(tokenizer: Any) -> dict[str, Any]:
    """Returns the settings that a tokenizer of transformers has now, without its class, whose rules its
    `backend_tokenizer` has."""
    found = dict(tokenizer.init_kwargs)
    found |= {key: None for key in found if key.endswith("_token")}
    given = [key for key in (*found, *_SETTINGS) if not key.endswith("_token") and hasattr(tokenizer, key)]
    found |= {key: getattr(tokenizer, key) for key in given}
    found |= tokenizer.special_tokens_map
    return {key: value for key, value in found.items() if key not in _OF_CLASS and _is_json(value)}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(_plain(value))
    except (TypeError, ValueError):
        return False
    return True


def to_hf(model: Model) -> Any:
    """Returns the tokenizers.Tokenizer. Raises UnsupportedError if a special token has the same spelling as an ordinary
    token, or the pattern may split text differently there."""
    check_for_hugging_face(model.pattern)
    text = tokenizer_json.dumps(model)
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtraError("tokenizers is not installed: pip install 'pybpe[hf]'") from None
    if not hasattr(Tokenizer, "from_str"):
        raise MissingExtraError(
            "tokenizers 1.0 makes no object from a text: pip install 'pybpe[hf]', which has a version before it; or"
            " save a tokenizer.json, which its Tokenizer.from_file reads"
        )
    made: Any = Tokenizer.from_str(text)
    made.eos_token, made.chat_template = model.eot, model.chat_template  # as in transformers. `from_hf` reads them
    if model.config is not None:
        made.init_kwargs = described(model, {})[1]
        made.chat_template = made.init_kwargs.get("chat_template")
    return made
