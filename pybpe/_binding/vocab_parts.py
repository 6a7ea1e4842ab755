"""The parts of a C vocabulary as Python objects, which are made at their first use. Most programs only encode, and
making fifty thousand objects takes longer than loading the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Generic, TypeVar, overload

from .. import _binding

Item = TypeVar("Item")


class VocabPart(Sequence[Item], Generic[Item]):
    """The list that `read()` returns. Immutable; it is pickled as that list.

    Attributes:
        vocab: the vocabulary to which the part belongs.
    """

    def __init__(self, vocab: _binding.Vocab, read: Callable[[], list[Item]], size: int) -> None:
        self.vocab, self._read, self._size = vocab, read, size

    @cached_property
    def _items(self) -> list[Item]:
        return self._read()

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        return self._items[index]

    def __iter__(self) -> Iterator[Item]:
        return iter(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._items == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._items)

    def __reduce__(self) -> tuple[object, ...]:
        return list, (self._items,)


def tokens_of(vocab: _binding.Vocab) -> VocabPart[bytes]:
    """Returns the bytes of every id; b"" for an unused id."""
    return VocabPart(vocab, vocab.tokens, vocab.sizes[0])


def merges_of(vocab: _binding.Vocab) -> VocabPart[tuple[int, int]]:
    """Returns the merges as (left id, right id), in rank order."""
    return VocabPart(vocab, vocab.merges, vocab.sizes[1])
