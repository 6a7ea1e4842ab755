"""The vocabulary size of a model: a little above the tokenizer's, for fast matrix shapes."""

from __future__ import annotations

from .arguments import whole_number


def padded_vocab_size(v: int, multiple: int = 128) -> int:
    """Returns the smallest multiple of `multiple` that is at least v.

    llm.c uses 128 (50257 -> 50304), and nanoGPT uses 64. The tokenizer never produces ids of v or above. The rows of
    these ids must be zero in an llm.c checkpoint.

    Raises:
        ArgumentError: v or multiple is below 1, or not an integer.

    >>> padded_vocab_size(50257), padded_vocab_size(20009, 64)
    (50304, 20032)
    """
    multiple = whole_number("multiple", multiple, 1)
    return -(-whole_number("the vocabulary size", v, 1) // multiple) * multiple
