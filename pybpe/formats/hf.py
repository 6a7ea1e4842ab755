"""Tokenizer objects of Hugging Face: tokenizers.Tokenizer, and the fast ones of transformers."""

from __future__ import annotations

import re
from typing import Any

from ..errors import ArgumentError, MissingExtraError, UnsupportedError
from ..model import Model
from ..pattern import Pattern
from . import tokenizer_json
from .pretrained import with_roles

# What Oniguruma, Hugging Face's engine, reads otherwise than Python's regex package: anchors of lines, a quantified
# quantifier, \h, sets in sets, and flags in other letters.
_OTHER_ENGINE = re.compile(r"(?<![\[\\])\^|(?<!\\)\$|\}\+|\\h|\\Z|\[\[:|&&|\(\?[a-hj-zA-Z]")


def from_hf(tokenizer: Any, pattern: Pattern | None = None) -> Model:
    """The model of such an object. ArgumentError for another thing; FormatError for parts that pybpe lacks."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        raise ArgumentError(
            "expected a tokenizers.Tokenizer or a fast tokenizer of transformers, not"
            f" {type(tokenizer).__module__}.{type(tokenizer).__name__}"
        )
    model = tokenizer_json.loads(
        backend.to_str(), f"the {type(tokenizer).__name__}", pattern, of_transformers=backend is not tokenizer
    )
    return with_roles(model, getattr(tokenizer, "eos_token", None), getattr(tokenizer, "chat_template", None))


def to_hf(model: Model) -> Any:
    """The tokenizers.Tokenizer.

    Raises:
        UnsupportedError: a special is spelled as a token, or a custom pattern has what the two engines read
            differently.
        MissingExtraError: tokenizers is not installed.
    """
    check_pattern(model.pattern)
    text = tokenizer_json.dumps(model)
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtraError("tokenizers is not installed: pip install 'pybpe[hf]'") from None
    return Tokenizer.from_str(text)


def check_pattern(pattern: Pattern) -> None:
    """UnsupportedError for a custom pattern that Hugging Face's engine would read differently."""
    found = _OTHER_ENGINE.search(pattern.regex) if pattern.is_custom else None
    if found is not None:
        raise UnsupportedError(
            f"the pattern has {found.group()!r} at character {found.start()}, which Hugging Face's engine (Oniguruma)"
            f" reads differently: {pattern.regex!r}"
        )
