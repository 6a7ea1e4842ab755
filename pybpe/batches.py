"""Many texts, or a long one, as items of work for threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from . import _binding
from .arguments import instance
from .errors import ArgumentError
from .pretokenize import Text

if TYPE_CHECKING:
    import numpy

Item = list[tuple[int, _binding.Data]]
"""Pieces of texts, each with the index of its text."""

_ITEM_BYTES = 1 << 18  # so much work is worth handing to a thread
_ITEM_PIECES = 1 << 10


def text_list(texts: Iterable[Text]) -> list[Text]:
    """The texts of a batch. ArgumentError for one text instead of several."""
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        raise ArgumentError(f"expected a sequence of texts, not one {type(texts).__name__}")
    instance("texts", texts, Iterable, "a sequence of texts")
    return list(texts)


def work_items(texts: Iterable[Text], pieces: Callable[[Text], Iterable[_binding.Data]]) -> Iterator[Item]:
    """The pieces of all texts in order: many short texts make one item, a long text makes many."""
    item: Item = []
    size = 0
    for i, text in enumerate(texts):
        for piece in pieces(text):
            item.append((i, piece))
            size += len(piece)
            if size >= _ITEM_BYTES or len(item) >= _ITEM_PIECES:
                yield item
                item, size = [], 0
    if item:
        yield item


def joined(parts: list[Any], dtype: numpy.dtype[Any]) -> numpy.ndarray[Any, Any]:
    """The concatenation of arrays, each of which is let go when it is copied; `parts` is empty afterwards."""
    import numpy

    if len(parts) == 1:
        return parts.pop()  # type: ignore[no-any-return]
    out = numpy.empty(sum(map(len, parts)), dtype=dtype)
    end = len(out)
    while parts:
        part = parts.pop()
        out[end - len(part) : end] = part
        end -= len(part)
    return out
