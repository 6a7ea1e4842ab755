"""Finds where documents begin and end in packed sequences, in the forms that attention needs.

A packed sequence holds parts of several documents. These functions find them by the id of
<|endoftext|>. With eot="append" it is the last token of its document. With eot="prepend", the first:

    ids, append             5 6 E 7 E 8 9
    ids, prepend            E 5 6 E 7 E 8
    document_ids            0 0 0 1 1 2 2
    position_ids            0 1 2 0 1 0 1
    cu_seqlens              0 3 5 7

Sequences lie along the last axis. All other axes are batches.
"""

from __future__ import annotations

from typing import Any

from .._lazy import numpy
from ..arguments import param
from ..errors import ArgumentError


def document_ids(ids: numpy.ndarray[Any, Any], eot_id: int, eot: str = "append") -> numpy.ndarray[Any, Any]:
    """Returns the number of every token's document within its sequence, from 0: int32, the shape of ids.

    Raises:
        ArgumentError: eot is neither "append" nor "prepend".

    >>> import numpy
    >>> document_ids(numpy.array([5, 6, 0, 7, 0, 8]), eot_id=0).tolist()
    [0, 0, 0, 1, 1, 2]
    >>> document_ids(numpy.array([5, 6, 0, 7, 0, 8]), eot_id=0, eot="prepend").tolist()
    [0, 0, 1, 1, 2, 2]
    """
    if eot not in ("append", "prepend"):
        raise ArgumentError(f"{param('eot')} must be 'append' or 'prepend', not {eot!r}")
    begins = numpy.zeros(ids.shape, dtype=bool)  # never True at 0: the first document is number 0 either way
    begins[..., 1:] = ids[..., :-1] == eot_id if eot == "append" else ids[..., 1:] == eot_id
    return numpy.cumsum(begins, axis=-1, dtype=numpy.int32)


def position_ids(documents: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Returns every token's position in its document (or in the sequence's part of it): int32, the shape of documents.

    >>> import numpy
    >>> position_ids(numpy.array([0, 0, 0, 1, 1, 2])).tolist()
    [0, 1, 2, 0, 1, 0]
    """
    places = numpy.arange(documents.shape[-1], dtype=numpy.int32)
    starts = numpy.where(_begins(documents), places, 0)
    return (places - numpy.maximum.accumulate(starts, axis=-1)).astype(numpy.int32)


def cu_seqlens(documents: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Returns the cumulative lengths of all documents, from 0 to the number of tokens: int32, shape (documents + 1,),
    as FlashAttention's varlen functions take them. A batch counts as one long row. No document crosses its rows.

    >>> import numpy
    >>> cu_seqlens(numpy.array([[0, 0, 0, 1], [0, 1, 1, 1]])).tolist()
    [0, 3, 4, 5, 8]
    """
    starts = numpy.flatnonzero(_begins(documents))
    return numpy.append(starts, documents.size).astype(numpy.int32)


def causal_mask(documents: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Returns the block-diagonal causal mask: bool, shape (..., T, T). [q, k] is true where token q may attend to token
    k, which is in the same document and not after q. PyTorch's scaled_dot_product_attention takes it.

    >>> import numpy
    >>> causal_mask(numpy.array([0, 0, 1])).astype(int).tolist()
    [[1, 0, 0], [1, 1, 0], [0, 0, 1]]
    """
    length = documents.shape[-1]
    mask: numpy.ndarray[Any, Any] = documents[..., :, None] == documents[..., None, :]
    mask &= numpy.tri(length, dtype=bool)
    return mask


def _begins(documents: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Returns which tokens are the first of a document in their sequence."""
    begins = numpy.ones(documents.shape, dtype=bool)
    begins[..., 1:] = documents[..., 1:] != documents[..., :-1]
    return begins
