"""Several tokenizers, each with a name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..arguments import instance, shown
from ..errors import ArgumentError
from . import Tokenizer

Tokenizers = Tokenizer | Mapping[str, Tokenizer] | Sequence[Tokenizer]


def named_tokenizers(tokenizers: Tokenizers) -> dict[str, Tokenizer]:
    """Returns tokenizers by name. Those without a name become "tokenizer", or "tokenizer 1", "tokenizer 2" and so
    on."""
    if isinstance(tokenizers, Tokenizer):
        tokenizers = {"tokenizer": tokenizers}
    if isinstance(tokenizers, (list, tuple)):
        tokenizers = {f"tokenizer {number}": tok for number, tok in enumerate(tokenizers, 1)}
    if not isinstance(tokenizers, Mapping):
        raise ArgumentError(
            f"tokenizers must be a Tokenizer, a list of them, or a mapping of names to them, not {shown(tokenizers)}"
        )
    for name, tok in tokenizers.items():
        instance("the name of a tokenizer", name, str, "a str")
        instance(f"tokenizers[{shown(name)}]", tok, Tokenizer, "a Tokenizer")
    return dict(tokenizers)
