"""Divides many texts, or one long text, into items of work for threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .._lazy import numpy
from ..arguments import Text, instance, utf8
from ..errors import ArgumentError

GROUP_BYTES = 1 << 18  # enough work to be worth handing to a thread
_MOST_GROUPS = 8  # for each of several threads: each group takes 20 microseconds of Python, in which others may wait
GROUP_TEXTS = 1 << 13
_MOST_EXPECTED = 1 << 28  # ids


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


def text_sizes(texts: Sequence[Text]) -> numpy.ndarray[Any, Any]:
    """Returns the characters or bytes of each text: shape (texts,), int64."""
    try:
        return numpy.fromiter(map(len, texts), numpy.int64, len(texts))  # type: ignore[arg-type]
    except TypeError:  # a buffer without a length, or not a text
        return numpy.fromiter((len(utf8(text)) for text in texts), numpy.int64, len(texts))


def text_groups(
    texts: Sequence[Text], sizes: numpy.ndarray[Any, Any], long_text: int, num_threads: int
) -> Iterator[TextGroup]:
    """Yields all texts in order, many short ones per group. A text longer than `long_text` characters or bytes gets
    a separate group. `sizes` is text_sizes(texts)."""
    ends = numpy.cumsum(sizes)
    share = int(sizes.sum()) // (1 if num_threads == 1 else _MOST_GROUPS * num_threads)
    group_bytes = min(max(share, GROUP_BYTES), 4 * GROUP_BYTES)
    alone = numpy.flatnonzero(sizes > long_text).tolist()
    first = 0
    for stop in (*alone, len(texts)):
        while first < stop:
            before = ends[first] - sizes[first]
            until = int(numpy.searchsorted(ends, before + group_bytes))
            until = min(max(until, first + 1), first + GROUP_TEXTS, stop)
            yield TextGroup(first, texts[first:until])
            first = until
        if stop < len(texts):
            yield TextGroup(stop, texts[stop : stop + 1], True)
            first = stop + 1


def ascii_or_bytes(texts: Sequence[Text]) -> list[str | bytes]:
    """Returns the texts as a new list in which every str is ASCII, which is the same in UTF-8; the others are bytes.
    Does not trust what a subclass of str reports about itself."""
    try:
        if all(map(str.isascii, texts)):  # type: ignore[arg-type]
            return list(texts)  # type: ignore[arg-type]
        return [text if str.isascii(text) else str.encode(text) for text in texts]  # type: ignore[arg-type, misc]
    except (TypeError, UnicodeEncodeError):  # bytes; surrogates
        return [bytes(utf8(text)) for text in texts]


class GrowingIds:
    """An array of ids that grows at its end.

    Attributes:
        count: the number of ids.
    """

    def __init__(self, dtype: numpy.dtype[Any], expected: int) -> None:
        """`expected` is a guess of the number of ids. Memory that is not touched costs nothing, but the system may
        refuse a large amount of it."""
        self.count = 0
        self._ids = numpy.empty(min(expected, _MOST_EXPECTED), dtype=dtype)

    def room(self, size: int) -> numpy.ndarray[Any, Any]:
        """Returns the free end of the array, with room for at least `size` ids."""
        need = self.count + size
        if need > len(self._ids):
            grown = numpy.empty(max(need, 2 * self.count), dtype=self._ids.dtype)
            grown[: self.count] = self._ids[: self.count]
            self._ids = grown
        return self._ids[self.count :]

    def took(self, count: int) -> None:
        """Says that the room begins with `count` ids."""
        self.count += count

    def append(self, ids: numpy.ndarray[Any, Any]) -> None:
        """Adds a copy of some ids."""
        self.room(len(ids))[: len(ids)] = ids
        self.took(len(ids))

    def result(self) -> numpy.ndarray[Any, Any]:
        """Returns all ids. The object must not be used any more, and no view of its room may be left."""
        self._ids.resize(self.count, refcheck=False)
        return self._ids
