"""The data of the page, in a form that JSON can hold and encoder.js unpacks."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from functools import cache
from typing import Any

from .. import _binding
from ..arguments import Text, utf8, whole_number
from ..errors import ArgumentError, UnsupportedError
from ..model import Model
from ..pattern import Pattern
from ..tokenizer import Tokenizer
from . import js_regex

MAX_TOKENIZERS = 4  # as many as fit side by side


def page_data(
    text: Text, tokenizers: Mapping[str, Tokenizer], source: str, max_bytes: int, total: int | None
) -> dict[str, Any]:
    """Returns all data that the page needs. See `viz.make_page` for the arguments."""
    if not 1 <= len(tokenizers) <= MAX_TOKENIZERS:
        raise ArgumentError(f"a page shows 1 to {MAX_TOKENIZERS} tokenizers, not {len(tokenizers)}")
    data = bytes(utf8(text))
    shown = cut_text(data, whole_number("max_bytes", max_bytes, 1))
    return {
        "unicode": _binding.unicode_version(),
        "classes": packed_classes(),
        "source": source,
        "shown_bytes": len(shown),
        "total_bytes": max(len(data), total or 0),
        "tokenizers": [tokenizer_data(name, tok, shown) for name, tok in tokenizers.items()],
    }


def cut_text(data: bytes, max_bytes: int) -> bytes:
    """Returns the first bytes, without an incomplete character at the end."""
    if len(data) <= max_bytes:
        return data
    end = max_bytes
    while end > max(1, max_bytes - 3) and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end]


def tokenizer_data(name: str, tok: Tokenizer, text: bytes) -> dict[str, Any]:
    """Returns the data of one tokenizer, including the ids of the text."""
    ids = Packer()
    for i in tok.encode(text):
        ids.number(i)
    tokens, merges = packed_vocabulary(tok.model)
    return {
        "name": name,
        "size": tok.vocab_size,
        "tokens": tokens,
        "merges": merges,
        "specials": list(tok.special_tokens.items()),
        "normalizer": tok.model.normalizer,
        "whole_words": tok.model.whole_words,
        "rewrites": tok.model.strips or tok.model.prefix_space,
        "pattern": {**pattern_data(tok.pattern), **_what_the_page_lacks(tok.model)},
        "ids": ids.base64(),
        "curve": compression_curve(tok, text),
    }


def packed_vocabulary(model: Model) -> tuple[str, str]:
    """Returns the tokens that merges do not make, as (id, length, bytes); and the merges, as (left, right, difference
    from the previous merge's id)."""
    specials = set(model.specials.values())
    by_bytes = {token: i for i, token in enumerate(model.tokens) if i not in specials}
    merged = [by_bytes[model.tokens[left] + model.tokens[right]] for left, right in model.merges]

    # The page builds tokens in the order of merges, so tokens that are used before they are made must be included.
    made: set[int] = set()
    used_early: set[int] = set()
    for (left, right), new in zip(model.merges, merged):
        used_early |= {left, right} - made
        made.add(new)
    tokens = Packer()
    for i, token in enumerate(model.tokens):
        if token and (i not in made or i in used_early):
            tokens.number(i)
            tokens.number(len(token))
            tokens.take(token)
    merges = Packer()
    last = 0
    for (left, right), new in zip(model.merges, merged):
        merges.number(left)
        merges.number(right)
        merges.signed(new - last)
        last = new
    return tokens.base64(), merges.base64()


def pattern_data(pattern: Pattern) -> dict[str, Any]:
    """Returns the pattern in Python's and JavaScript's syntax. `why` is the reason if JavaScript cannot run it."""
    javascript, why = None, None
    try:
        javascript = js_regex.translate(pattern.regex)
    except UnsupportedError as error:
        why = f"its pattern cannot run in a browser: {error}"
    return {
        "name": pattern.name,
        "digits": pattern.digits,
        "regex": pattern.regex,
        "custom": pattern.is_custom,
        "javascript": javascript,
        "why": why,
    }


def _what_the_page_lacks(model: Model) -> dict[str, Any]:
    """Returns no pattern, and the reason, if the page cannot encode with this tokenizer whatever its pattern is."""
    if model.prefix_space:
        return {"javascript": None, "why": "it adds a space before each text (add_prefix_space)"}
    for text, rules in model.matching.items():
        return {"javascript": None, "why": f"its special token {text!r:.80} has {rules.names[0]} on"}
    return {}


def compression_curve(tok: Tokenizer, text: bytes) -> list[tuple[int, int]]:
    """Returns (vocabulary size, number of tokens of the text) without merges, for powers of two, and for the whole
    vocabulary; an empty list for an empty text."""
    if not text:
        return []
    made = {tok.model.tokens[left] + tok.model.tokens[right] for left, right in tok.model.merges}
    specials = set(tok.special_tokens.values())
    least = sum(1 for i, token in tok.model.vocab.items() if i in specials or token not in made)
    powers = itertools.takewhile(lambda size: size < tok.vocab_size, (1 << bits for bits in itertools.count(8)))
    sizes = sorted({least, *(size for size in powers if size > least)} - {tok.vocab_size})
    points = [(size, tok.prune(vocab_size=size).count(text)) for size in sizes]
    return [*points, (tok.vocab_size, tok.count(text))]


@cache
def packed_classes() -> str:
    """Returns the class of each code point as the patterns see it, in runs of (length, class)."""
    newline = 64  # this bit is set only in ASCII characters, which the page does not look up
    packer = Packer()
    for kind, run in itertools.groupby(_binding.unicode_classes()):
        packer.number(sum(1 for _ in run))
        packer.number(kind & ~newline)
    return packer.base64()


class Packer:
    """Collects numbers and bytes."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def number(self, value: int) -> None:
        """Appends an unsigned number, seven bits per byte, lowest bits first."""
        while value >= 128:
            self._bytes.append(value & 127 | 128)
            value >>= 7
        self._bytes.append(value)

    def signed(self, value: int) -> None:
        """Appends a signed number: 0, -1, 1, -2, 2, ... are packed as 0, 1, 2, 3, 4, ..."""
        self.number(2 * value if value >= 0 else -2 * value - 1)

    def take(self, data: bytes) -> None:
        """Appends bytes unchanged. Their number is not stored, so the reader must know it."""
        self._bytes += data

    def base64(self) -> str:
        """Returns everything as ASCII text."""
        return base64.b64encode(self._bytes).decode("ascii")
