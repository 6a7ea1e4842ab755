"""Tokenizer objects of Hugging Face: tokenizers.Tokenizer, and the fast tokenizers of transformers."""

from __future__ import annotations

from typing import Any

from ..errors import ArgumentError, MissingExtraError
from ..model import Model
from ..pattern import Pattern
from . import patterns, tokenizer_json
from .pretrained import with_roles


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
    """Returns the tokenizers.Tokenizer.

    Raises:
        UnsupportedError: a special token has the same spelling as an ordinary token, or the pattern may split text
            differently there.
        MissingExtraError: tokenizers is not installed.
    """
    patterns.check_for_hugging_face(model.pattern)
    text = tokenizer_json.dumps(model)
    try:
        from tokenizers import Tokenizer
    except ImportError:
        raise MissingExtraError("tokenizers is not installed: pip install 'pybpe[hf]'") from None
    made: Any = Tokenizer.from_str(text)
    made.eos_token, made.chat_template = model.eot, model.chat_template  # as in transformers; `from_hf` reads them
    return made
