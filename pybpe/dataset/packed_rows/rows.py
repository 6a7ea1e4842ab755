"""Checks that tokens are packed rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy


def row_fault(ids: numpy.ndarray[Any, Any], size: int, mark: int) -> str | None:
    """Returns what is wrong with a shard of packed rows, or None.

    Args:
        ids: the tokens of the shard.
        size: tokens per row.
        mark: the id that begins each row.
    """
    if len(ids) % size != 1:
        return f"has {len(ids)} tokens, which is not a whole number of rows of {size} and one more token"
    wrong = (ids[::size] != mark).nonzero()[0]
    if len(wrong):
        return f"token {int(wrong[0]) * size} begins a row of {size} tokens, but is not the end of text, id {mark}"
    return None
