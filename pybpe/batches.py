"""Many texts, or a long one, as items of work for threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _binding
from .arguments import instance
from .errors import ArgumentError
from .pretokenize import Text, utf8

if TYPE_CHECKING:
    import numpy

Item = list[tuple[int, _binding.Data]]
"""Pieces of texts, each with the index of its text."""

_ITEM_BYTES = 1 << 18  # so much work is worth handing to a thread
_ITEM_PIECES = 1 << 10
_GROUP_TEXTS = 1 << 13


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


class TextGroup(NamedTuple):
    """Texts of a batch that follow one another."""

    first: int
    """The index of the first one."""
    texts: Sequence[Text]
    is_long: bool = False
    """Whether it is one long text."""


def text_groups(texts: Sequence[Text], long_text: int) -> Iterator[TextGroup]:
    """All texts in order, many short ones per group. A text of more than `long_text` characters or bytes is alone."""
    import numpy

    try:
        sizes = numpy.fromiter(map(len, texts), numpy.int64, len(texts))  # type: ignore[arg-type]
    except TypeError:  # a buffer without a length, or no text
        sizes = numpy.fromiter((len(utf8(text)) for text in texts), numpy.int64, len(texts))
    ends = numpy.cumsum(sizes)
    alone = numpy.flatnonzero(sizes > long_text).tolist()
    first = 0
    for stop in (*alone, len(texts)):
        while first < stop:
            before = ends[first] - sizes[first]
            until = int(numpy.searchsorted(ends, before + _ITEM_BYTES))
            until = min(max(until, first + 1), first + _GROUP_TEXTS, stop)
            yield TextGroup(first, texts[first:until])
            first = until
        if stop < len(texts):
            yield TextGroup(stop, texts[stop : stop + 1], True)
            first = stop + 1


def packed(texts: Sequence[Text]) -> tuple[bytes, numpy.ndarray[Any, Any]]:
    """The UTF-8 of all texts, and where in it each begins: shape (texts + 1,), uint64. Its loops are in C."""
    import numpy

    try:
        text = "".join(texts)  # type: ignore[arg-type]
        if text.isascii():
            data, lengths = text.encode(), map(str.__len__, texts)  # type: ignore[arg-type]
        else:
            parts = list(map(str.encode, texts))  # type: ignore[arg-type]
            data, lengths = b"".join(parts), map(len, parts)
    except (TypeError, UnicodeEncodeError):  # bytes; surrogates
        parts = [bytes(utf8(text)) for text in texts]
        data, lengths = b"".join(parts), map(len, parts)
    offsets = numpy.zeros(len(texts) + 1, numpy.uint64)
    numpy.cumsum(numpy.fromiter(lengths, numpy.uint64, len(texts)), out=offsets[1:])
    return data, offsets


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
