"""How much text ids stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
