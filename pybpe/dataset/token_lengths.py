"""How much text ids stand for."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

from .. import _binding
from ..tokenizer import Tokenizer

if TYPE_CHECKING:
    import numpy


def token_lengths(tok: Tokenizer) -> numpy.ndarray[Any, Any]:
    """Bytes of each id, shape (n_vocab,), int64; 0 for <|endoftext|>, which is no text."""
    import numpy

    lengths = numpy.fromiter(map(len, tok.model.tokens), dtype=numpy.int64, count=tok.n_vocab)
    if tok.eot_token is not None:
        lengths[tok.eot_token] = 0
    return lengths


def text_length(tok: Tokenizer, ids: array[int] | memoryview) -> int:
    """Bytes of the text that ids of type H or I stand for, <|endoftext|> being none."""
    length = len(tok.decode_bytes(ids))
    if tok.eot_token is not None:
        length -= _binding.count_id(ids, tok.eot_token) * len(tok.token_bytes(tok.eot_token))
    return length
