"""Finds the differences between two tokenizers."""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise, zip_longest
from typing import Any

from ..tokenizer import Tokenizer

_SHOWN_DIFFERENCES = 1000


def differences(a: Tokenizer, b: Tokenizer) -> dict[str, Any]:
    """Returns the differences between two tokenizers, as plain data.

    Returns:
        "equal": whether they give the same ids for every text. "settings": name -> [value in a, value in b] where they
        differ. "only_in_a", "only_in_b": tokens, ordinary or special. "other_ids": [token, id in a, id in b].
        "first_merge": [rank, merge of a, merge of b] where the lists first differ, or None. Tokens are shown as text,
        with U+FFFD for bytes that are not UTF-8.
    """
    left, right = _tokens(a), _tokens(b)
    return {
        "equal": a.model.fingerprint == b.model.fingerprint,
        "settings": _settings(a, b),
        "only_in_a": [_shown(key) for key in left if key not in right],
        "only_in_b": [_shown(key) for key in right if key not in left],
        "other_ids": [[_shown(key), i, right[key]] for key, i in left.items() if right.get(key, i) != i],
        "first_merge": _first_merge(a, b),
    }


def _tokens(tokenizer: Tokenizer) -> dict[tuple[bool, bytes], int]:
    """Returns (is special, bytes) -> id."""
    specials = set(tokenizer.special_tokens.values())
    return {(i in specials, token): i for i, token in tokenizer.model.vocab.items()}


def _shown(key: tuple[bool, bytes]) -> str:
    return key[1].decode("utf-8", "replace")


def _settings(a: Tokenizer, b: Tokenizer) -> dict[str, list[Any]]:
    def facts(tokenizer: Tokenizer) -> dict[str, Any]:
        model = tokenizer.model
        return {
            "vocab_size": tokenizer.vocab_size,
            "merges": len(model.merges),
            "pattern": model.pattern,
            "normalizer": model.normalizer,
            "whole_words": model.whole_words,
            "dropout": model.dropout,
            "eot_token": model.eot,
            "template": str(model.template) if model.template is not None else None,
            "prefix_space": model.prefix_space,
            "matching": {text: rules.names for text, rules in model.matching.items()},
        }

    left, right = facts(a), facts(b)
    different = {name: [value, right[name]] for name, value in left.items() if right[name] != value}
    if "pattern" in different:  # patterns are equal if their regular expressions are, even if their names differ
        different["pattern"] = list(map(str, different["pattern"]))
    return different


def _first_merge(a: Tokenizer, b: Tokenizer) -> list[Any] | None:
    for rank, (one, other) in enumerate(zip_longest(a.merges, b.merges)):
        if one != other:
            shown = [[part.decode("utf-8", "replace") for part in pair] if pair else None for pair in (one, other)]
            return [rank, *shown]
    return None


def differences_on(a: Tokenizer, b: Tokenizer, text: bytes) -> dict[str, Any]:
    """Compares how two tokenizers encode a text.

    Returns:
        "tokens_a", "tokens_b": the numbers of tokens. "different": [byte offset, tokens of a, tokens of b] for up to
        1000 places where the token boundaries differ, with tokens as text, or None if the tokenizers decode to
        different texts, for example because of their normalizers.
    """
    ids_a, ids_b = a.encode(text), b.encode(text)
    facts: dict[str, Any] = {"tokens_a": len(ids_a), "tokens_b": len(ids_b), "different": None}
    text = a.decode_bytes(ids_a)
    if text == b.decode_bytes(ids_b):
        facts["different"] = _different_places(text, _ends(a, ids_a), _ends(b, ids_b))
    return facts


def _different_places(text: bytes, ends_a: list[int], ends_b: list[int]) -> list[Any]:
    found: list[Any] = []
    for start, end in pairwise([0, *sorted(set(ends_a) & set(ends_b))]):
        a, b = (ends[bisect_right(ends, start) : bisect_right(ends, end)] for ends in (ends_a, ends_b))
        if a != b and len(found) < _SHOWN_DIFFERENCES:
            found.append([start, _pieces(text, start, a), _pieces(text, start, b)])
    return found


def _ends(tokenizer: Tokenizer, ids: list[int]) -> list[int]:
    return list(accumulate(len(tokenizer.model.tokens[i]) for i in ids))


def _pieces(text: bytes, start: int, ends: list[int]) -> list[str]:
    return [text[a:b].decode("utf-8", "replace") for a, b in zip([start, *ends], ends)]
