"""Divides many texts, or one long text, into items of work for threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from .arguments import Text, instance, utf8
from .errors import ArgumentError

if TYPE_CHECKING:
    import numpy

_GROUP_BYTES = 1 << 18  # enough work to be worth handing to a thread
_GROUP_TEXTS = 1 << 13


def text_list(texts: Iterable[Text]) -> list[Text]:
    """Returns the texts of a batch as a list. Raises ArgumentError if the caller passed one text instead of several."""
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        raise ArgumentError(f"expected a sequence of texts, not one {type(texts).__name__}: pass [text]")
    instance("texts", texts, Iterable, "a sequence of texts")
    return list(texts)


class TextGroup(NamedTuple):
    """Consecutive texts of a batch."""

    first: int
    """The index of the first text in the batch."""
    texts: Sequence[Text]
    is_long: bool = False
    """Whether the group is one long text."""


def text_groups(texts: Sequence[Text], long_text: int) -> Iterator[TextGroup]:
    """Yields all texts in order, many short ones per group. A text longer than `long_text` characters or bytes gets
    a separate group."""
    import numpy

    try:
        sizes = numpy.fromiter(map(len, texts), numpy.int64, len(texts))  # type: ignore[arg-type]
    except TypeError:  # a buffer without a length, or not a text
        sizes = numpy.fromiter((len(utf8(text)) for text in texts), numpy.int64, len(texts))
    ends = numpy.cumsum(sizes)
    alone = numpy.flatnonzero(sizes > long_text).tolist()
    first = 0
    for stop in (*alone, len(texts)):
        while first < stop:
            before = ends[first] - sizes[first]
            until = int(numpy.searchsorted(ends, before + _GROUP_BYTES))
            until = min(max(until, first + 1), first + _GROUP_TEXTS, stop)
            yield TextGroup(first, texts[first:until])
            first = until
        if stop < len(texts):
            yield TextGroup(stop, texts[stop : stop + 1], True)
            first = stop + 1


def packed(texts: Sequence[Text]) -> tuple[bytes, numpy.ndarray[Any, Any]]:
    """Returns all texts as UTF-8, end to end, and the byte offsets at which each begins and the last ends: shape
    (texts + 1,), uint64."""
    import numpy

    try:
        data, lengths = _packed_str(texts)  # type: ignore[arg-type]
    except (TypeError, UnicodeEncodeError):  # bytes; surrogates
        try:
            data, lengths = b"".join(texts), list(map(bytes.__len__, texts))  # type: ignore[arg-type]
        except TypeError:  # of several types
            parts = [bytes(utf8(text)) for text in texts]
            data, lengths = b"".join(parts), list(map(len, parts))
    offsets = numpy.zeros(len(texts) + 1, numpy.uint64)
    numpy.cumsum(numpy.array(lengths, numpy.uint64), out=offsets[1:])
    return data, offsets


def _packed_str(texts: Sequence[str]) -> tuple[bytes, list[int]]:
    """Returns all texts as UTF-8, end to end, and the length of each. The loops run in C, and do not trust the length
    that a subclass of str reports."""
    text = "".join(texts)
    if text.isascii():
        return text.encode(), list(map(str.__len__, texts))
    parts = list(map(str.encode, texts))
    return b"".join(parts), list(map(len, parts))


def joined(parts: list[Any], dtype: numpy.dtype[Any]) -> numpy.ndarray[Any, Any]:
    """Concatenates arrays. Releases each array after copying it; `parts` is empty afterwards."""
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
