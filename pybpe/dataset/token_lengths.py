"""Computes how much text ids represent."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from .. import _binding
from ..tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy


def token_lengths(tok: Tokenizer) -> numpy.ndarray[Any, Any]:
    """Returns the number of bytes of each id: int64, shape (n_vocab,). <|endoftext|> is not text and counts as 0."""
    import numpy

    lengths = numpy.fromiter(map(len, tok.model.tokens), dtype=numpy.int64, count=tok.n_vocab)
    if tok.eot_token is not None:
        lengths[tok.eot_token] = 0
    return lengths


def text_length(tok: Tokenizer, ids: array[int] | memoryview) -> int:
    """Returns the bytes of text that ids of type H or I represent; <|endoftext|> counts as 0."""
    length = len(tok.decode_bytes(ids))
    if tok.eot_token is not None:
        length -= _binding.count_id(ids, tok.eot_token) * len(tok.token_bytes(tok.eot_token))
    return length
