"""What each format can hold of a tokenizer. Every export asks `held` before it writes anything.

Every format holds tokens, merges and special tokens, or its reader passes the special tokens, as for a .tiktoken file.
A feature is anything else that a tokenizer may have. The module of a format checks what else it requires, such as
merges in the order of ids.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..errors import UnsupportedError
from ..model import Model, end_of_text
from ..pattern import Pattern
from .chat_templates import default_template


class _Feature(NamedTuple):
    """Attributes:
    found: returns what of this a model has, as an error names it; "" if nothing.
    without: the fields of a Model that leave this out; empty if ids depend on it.
    """

    found: Callable[[Model], str]
    without: Mapping[str, Any] = {}


def _normalizer(model: Model) -> str:
    return f"the normalizer {model.normalizer}" if model.normalizer is not None else ""


def _pattern(model: Model) -> str:
    return "" if model.pattern == Pattern("gpt2") else f"the pattern {model.pattern}, since its readers assume gpt2"


def _whole_words(model: Model) -> str:
    return "ignore_merges, which some tokens need" if model.whole_words and model.unreached() else ""


def _matching(model: Model) -> str:
    flagged = ((text, rules.names) for text, rules in model.matching.items())
    return next((f"the special token {text!r:.80}, which has {' and '.join(on)} on" for text, on in flagged), "")


def _aliases(model: Model) -> str:
    shared = ((text, model.specials[text]) for text in model.aliases)
    found = (f"the special token {text!r:.80}, which shares its id, {i}, with another one" for text, i in shared)
    return next(found, "")


def _dropout(model: Model) -> str:
    return f"the dropout {model.dropout:g}, without which replace(dropout=0) makes a tokenizer" if model.dropout else ""


def _template(model: Model) -> str:
    changes_ids = model.template is not None and model.template.changes_ids
    return f"the template {str(model.template)!r:.80}" if changes_ids else ""


def _chat_template(model: Model) -> str:
    if model.chat_template in (None, default_template(model.specials) or ""):
        return ""
    return "the chat template" if model.chat_template else "that there is no chat template"


def _visible(model: Model) -> str:
    return next((f'that {text!r:.80} is text to readers ("special": false)' for text in sorted(model.visible)), "")


def _eos(model: Model) -> str:
    return f"that {model.eot!r:.80} ends a document" if model.eot != end_of_text(model.specials, None) else ""


FEATURES = {
    "normalizer": _Feature(_normalizer),
    "pattern": _Feature(_pattern),
    "whole_words": _Feature(_whole_words),
    "prefix_space": _Feature(lambda model: "add_prefix_space" if model.prefix_space else ""),
    "matching": _Feature(_matching),
    "aliases": _Feature(_aliases),
    "dropout": _Feature(_dropout),
    "template": _Feature(_template, {"template": None}),
    "chat_template": _Feature(_chat_template, {"chat_template": None}),
    "visible": _Feature(_visible, {"visible": frozenset()}),
    "eos": _Feature(_eos, {"eos": None}),
}

_OF_JSON = {"prefix_space", "matching", "aliases", "dropout", "template"}  # only tokenizer.json holds these
_OF_TWO_FILES = {"normalizer", "pattern", "whole_words"}  # which vocab.json and merges.txt lack
_NAMED = {"chat_template", "visible", "eos"}  # what a tokenizer_config.json can add
# What an error calls each format, and the features that it cannot hold.
_LACKED: dict[str, tuple[str, set[str]]] = {
    "json": ("tokenizer.json", set()),
    "pretrained": ("Hugging Face", {"aliases"}),
    "bin": ("tokenizer.bin", _OF_JSON | {"chat_template", "visible"}),
    "files": ("a folder with vocab.json and merges.txt", (_OF_JSON | _OF_TWO_FILES) - {"matching"}),
    "tiktoken": ("a .tiktoken file", _OF_JSON | _NAMED | {"normalizer"}),
    "encoding": ("a tiktoken.Encoding", (_OF_JSON | _NAMED | {"normalizer"}) - {"aliases"}),
}


def held(model: Model, format: str, ids_only: bool = False) -> Model:
    """Returns the model as a format can hold it, which is the whole model unless `ids_only`.

    Args:
        ids_only: leave out what the format cannot hold if ids do not depend on it.

    Raises:
        UnsupportedError: the format cannot hold a feature of the model. The message names all of these.
    """
    name, lacked = _LACKED[format]
    found = {key: text for key, feature in FEATURES.items() if key in lacked and (text := feature.found(model))}
    can_go = all(FEATURES[key].without for key in found)
    if found and not (can_go and ids_only):
        raise UnsupportedError(
            f"{name} cannot hold {', nor '.join(found.values())}: save a tokenizer.json"
            + (", or pass ids_only=True, which leaves this out" if can_go else "")
        )
    return replace(model, **{field: value for key in found for field, value in FEATURES[key].without.items()})
