"""The vocabulary size that a model is given: a little above the tokenizer's, for fast matrix shapes."""

from __future__ import annotations

from .arguments import whole_number


def padded_vocab_size(v: int, multiple: int = 128) -> int:
    """The least multiple of `multiple` that is at least v.

    128 is llm.c's own convention (50257 -> 50304), 64 is nanoGPT's. The rows above v are never produced by
    the tokenizer, and must be zero in a llm.c checkpoint.

    Raises:
        ArgumentError: v or multiple is below 1, or no integer.

    >>> padded_vocab_size(50257), padded_vocab_size(20009, 64)
    (50304, 20032)
    """
    multiple = whole_number("multiple", multiple, 1)
    return -(-whole_number("the vocabulary size", v, 1) // multiple) * multiple
