"""Checks that tokens are packed rows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..._numpy import numpy
from ...arguments import counted


def row_fault(blocks: Iterable[numpy.ndarray[Any, Any]], size: int, mark: int, more: int = 1) -> str | None:
    """Returns what is wrong with a shard of packed rows, or None.

    Args:
        blocks: the tokens of the shard, in order.
        size: tokens per row.
        mark: the id that begins each row.
        more: the tokens after the last row: 1 in llm.c's shards, 0 in others.
    """
    seen = 0
    for ids in blocks:
        first = -seen % size  # the first token of the block that begins a row
        wrong = (ids[first::size] != mark).nonzero()[0]
        if len(wrong):
            place = seen + first + int(wrong[0]) * size
            return f"token {place} begins a row of {size} tokens, but is not the end of text, id {mark}"
        seen += len(ids)
    if seen % size != more:
        and_more = " and one more token" if more else ""
        return f"has {counted(seen, 'token')}, which is not a whole number of rows of {size}{and_more}"
    return None
