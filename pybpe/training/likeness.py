"""Training in the likeness of a tokenizer: what the new one takes from it. That is everything except its tokens and
merges, as in train_new_from_iterator of Hugging Face's transformers."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from ..errors import ArgumentError
from ..model import Model
from ..pattern import Pattern
from . import superwords

_KEPT = ("whole_words", "template", "eos", "chat_template", "unknown", "prefix_space", "dropout")


def special_tokens(like: Model) -> list[str]:
    """Returns the special tokens in the order of their ids, except those that readers see as text: Hugging Face does
    not keep added tokens that are not special."""
    return sorted(like.specials.keys() - like.visible, key=lambda text: (like.specials[text], text))


def special_ids(like: Model) -> str:
    """Returns where the ids of the special tokens are: the value of special_ids."""
    first = min(map(like.specials.__getitem__, special_tokens(like)), default=0)
    return "first" if first == 0 else "after_bytes" if first == 256 and like.merges else "last"


def pattern(like: Model) -> Pattern:
    """Returns the pattern. Raises ArgumentError if the tokenizer does not record all of it."""
    if superwords.is_chunk_pattern(like.pattern):
        raise ArgumentError(
            "like: this tokenizer has superwords, so it does not record the pattern of words: pass pattern, and"
            " superwords=True"
        )
    return like.pattern


def settings_of(like: Model, specials: Collection[str]) -> dict[str, Any]:
    """Returns the fields of Model that the new tokenizer, which has these special tokens, takes over. Raises
    ArgumentError if the template has another token, which is not special."""
    if like.template is not None:
        like.template.check(dict.fromkeys(specials, 0))
    matching = {text: rules for text, rules in like.matching.items() if text in specials}
    return {"matching": matching, **{name: getattr(like, name) for name in _KEPT}}
