"""A tokenizer as a folder of transformers: tokenizer.json, tokenizer_config.json, special_tokens_map.json.

The configuration says which special tokens play which role, and how a chat becomes text. `AutoTokenizer` loads the
folder as a PreTrainedTokenizerFast, which takes everything else from tokenizer.json.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .. import _binding
from ..arguments import instance, is_unicode
from ..errors import ArgumentError, FileMissingError, FormatError
from ..folders import make_folder
from ..model import Model
from ..pattern import Pattern
from ..pretokenize import open_input
from . import patterns, tokenizer_json, vocab_merges
from .chat_templates import default_template

TOKENIZER = "tokenizer.json"
CONFIG = "tokenizer_config.json"
SPECIALS_MAP = "special_tokens_map.json"
CHAT_TEMPLATE = "chat_template.jinja"

_ROLES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
_PADDING = ("<|padding|>", "<|pad|>", "<pad>")


def chat_template(model: Model) -> str | None:
    """The model's chat template, else the one that its special tokens ask for."""
    return default_template(model.specials) if model.chat_template is None else model.chat_template


def roles(model: Model) -> dict[str, str]:
    """bos_token, eos_token and pad_token, as far as the model has them.

    bos is the special with which the template begins; without a template, the end of text, as in GPT-2.
    """
    found: dict[str, str] = {}
    first = model.template.single[0] if model.template is not None else None
    bos = first.text if first is not None and not first.is_sequence else model.eot
    pad = next((text for text in _PADDING if text in model.specials), None)
    for role, text in (("bos_token", bos), ("eos_token", model.eot), ("pad_token", pad)):
        if text is not None:
            found[role] = text
    return found


def write(model: Model, folder: _binding.PathLike, tokens: Mapping[str, str]) -> None:
    """Writes the folder.

    Args:
        tokens: roles beside or instead of those that `roles` finds, such as {"unk_token": "<unk>"}.

    Raises:
        UnsupportedError: see tokenizer_json.dumps; or the pattern may cut other words in Hugging Face's engine.
        ArgumentError: a role's token is no special token.
        FileError: the folder or a file cannot be written.
    """
    patterns.check_for_hugging_face(model)
    text = tokenizer_json.dumps(model)
    named = {**roles(model), **tokens}
    for role, token in named.items():
        instance(role, token, str, "one special token")
        if token not in model.specials:
            raise ArgumentError(f"{role}={token!r} is no special token of this tokenizer")
    others = [text for text in model.specials if text not in named.values() and text not in model.visible]
    special_map = {**named, "additional_special_tokens": others} if others else named
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": 10**30,  # what transformers writes for "no limit"
        **special_map,
    }
    template = chat_template(model)
    if template is not None:
        config["chat_template"] = template
    name = _binding.path_text(folder)
    make_folder(name)
    _binding.write_file(os.path.join(name, TOKENIZER), text.encode())
    _binding.write_file(os.path.join(name, SPECIALS_MAP), _json(special_map))
    _binding.write_file(os.path.join(name, CONFIG), _json(config))


def _json(data: Mapping[str, Any]) -> bytes:
    return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode()


def read(folder: str, pattern: Pattern | None = None) -> Model:
    """The model of such a folder, or of one with vocab.json and merges.txt only.

    Raises:
        FileError, FormatError: see tokenizer_json.loads; also if the configuration contradicts tokenizer.json.
    """
    path = os.path.join(folder, TOKENIZER)
    if not os.path.exists(path):
        pair = os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt")
        if not all(map(os.path.exists, pair)):
            raise FileMissingError(f"{folder}: has neither {TOKENIZER} nor vocab.json and merges.txt")
        return vocab_merges.read(*pair, None, pattern or Pattern("gpt2"))
    config_path = os.path.join(folder, CONFIG)
    model = tokenizer_json.loads(_read(path), path, pattern, of_transformers=os.path.exists(config_path))
    config = _read_config(config_path) if os.path.exists(config_path) else {}
    _check_config(config, model, config_path)
    template = config.get("chat_template")
    chat_path = os.path.join(folder, CHAT_TEMPLATE)
    if os.path.exists(chat_path):  # newer versions of transformers keep it beside the configuration
        template = _read(chat_path).decode("utf-8", "replace")
    if isinstance(template, str) and not is_unicode(template):
        raise FormatError(f"{config_path}: chat_template holds a lone surrogate: not valid Unicode")
    return with_roles(model, token_text(config.get("eos_token")), template)


def with_roles(model: Model, eos: str | None, template: Any) -> Model:
    """The model with the end of text and the chat template of a transformers tokenizer, where it has them."""
    if eos is not None and eos in model.specials and eos != model.eot:
        model = replace(model, eos=eos)
    if isinstance(template, str) and template != chat_template(model):
        model = replace(model, chat_template=template)
    return model


def token_text(token: Any) -> str | None:
    """The text of a token that a configuration gives as a string or as an object."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else None


def _read(path: str) -> bytes:
    with open_input(path) as stream:
        return stream.read()


def _read_config(path: str) -> dict[str, Any]:
    try:
        config = json.loads(_read(path))
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not JSON: {error}") from None
    if not isinstance(config, dict):
        raise FormatError(f"{path}: expected one JSON object")
    return config


def _check_config(config: Mapping[str, Any], model: Model, path: str) -> None:
    """FormatError for what transformers would add to tokenizer.json, which changes ids."""
    if config.get("add_prefix_space"):
        raise FormatError(f"{path}: add_prefix_space is on, which pybpe does not do")
    if config.get("split_special_tokens"):
        raise FormatError(
            f"{path}: split_special_tokens is on: it makes text of special tokens, but here encode finds them"
        )
    added = config.get("added_tokens_decoder")
    for number, token in added.items() if isinstance(added, dict) else ():
        text = token_text(token)
        if text is not None and str(model.specials.get(text)) != number:
            raise FormatError(f"{path}: adds the token {text!r} with id {number}, which {TOKENIZER} does not have so")
        for flag in ("single_word", "lstrip", "rstrip"):
            if isinstance(token, dict) and token.get(flag):
                raise FormatError(f"{path}: the added token {text!r:.80} has {flag} on, which pybpe does not do")
    for text in _named_tokens(config):
        if text not in model.specials:
            raise FormatError(f"{path}: adds the special token {text!r:.80}: put it into added_tokens of {TOKENIZER}")


def _named_tokens(config: Mapping[str, Any]) -> list[str]:
    """The tokens that a configuration gives a role, or calls special. transformers adds those that there are not."""
    found: list[Any] = [config.get(f"{role}_token") for role in _ROLES]
    for key in ("additional_special_tokens", "extra_special_tokens"):
        more = config.get(key)
        found += more.values() if isinstance(more, dict) else more if isinstance(more, list) else []
    return [text for text in map(token_text, found) if text is not None]
