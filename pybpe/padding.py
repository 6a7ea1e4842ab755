"""The vocabulary size that a model is given: a little above the tokenizer's, for fast matrix shapes."""

from __future__ import annotations

from .errors import ArgumentError


def padded_vocab_size(v: int, multiple: int = 128) -> int:
    """The least multiple of `multiple` that is at least v.

    128 is llm.c's own convention (50257 -> 50304), 64 is nanoGPT's. The rows above v are never produced by
    the tokenizer, and must be zero in a llm.c checkpoint.

    Raises:
        ArgumentError: v or multiple is below 1.

    >>> padded_vocab_size(50257), padded_vocab_size(20009, 64)
    (50304, 20032)
    """
    if v < 1 or multiple < 1:
        raise ArgumentError(f"vocabulary size and multiple must be at least 1, not {v} and {multiple}")
    return -(-v // multiple) * multiple
