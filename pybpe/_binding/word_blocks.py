"""Sorted lists of words in blocks, so that lists of any length can be written, read and added in little memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .. import errors
from .core import call, ffi, lib, new_uncleared, raise_error

_BYTES_PER_WORD = 12  # an estimate for the first buffer, which grows


class WordBlock(NamedTuple):
    """Some words with their counts."""

    blob: bytes  # the bytes of the words, end to end
    lengths: array[int]  # the number of bytes of each word; type I
    counts: array[int]  # the count of each word; type Q

    @property
    def first(self) -> bytes:
        return self.blob[: self.lengths[0]]

    @property
    def last(self) -> bytes:
        return self.blob[len(self.blob) - self.lengths[-1] :]


class SortedWords(NamedTuple):
    """Words in ascending order of their bytes, each once, in blocks. `name` is what errors call them."""

    name: str
    blocks: Iterator[WordBlock]


class _Room:
    """Buffers for one block, which C fills."""

    def __init__(self, words: int) -> None:
        self._lengths, self._counts = new_uncleared("uint32_t[]", words), new_uncleared("uint64_t[]", words)
        self._bytes = new_uncleared("uint8_t[]", _BYTES_PER_WORD * words)
        self.c = ffi.new("pybpe_words_block *")
        self.c.lengths, self.c.counts, self.c.cap = self._lengths, self._counts, words
        self.c.bytes, self.c.bytes_cap = self._bytes, len(self._bytes)

    def enlarge(self) -> None:
        larger = new_uncleared("uint8_t[]", 2 * len(self._bytes))
        ffi.memmove(larger, self._bytes, self.c.size)
        self._bytes = larger
        self.c.bytes, self.c.bytes_cap = larger, len(larger)

    def take(self) -> WordBlock:
        """Returns the block as Python objects, and empties it."""
        blob, lengths, counts = bytes(ffi.buffer(self._bytes, self.c.size)), array("I"), array("Q")
        lengths.frombytes(ffi.buffer(self._lengths, 4 * self.c.count))
        counts.frombytes(ffi.buffer(self._counts, 8 * self.c.count))
        self.c.count = self.c.size = 0
        return WordBlock(blob, lengths, counts)


def sorted_blocks(strings: Any, counts: Any, block_words: int) -> Iterator[WordBlock]:
    """Yields words in ascending order, `block_words` of them at a time. `strings` and `counts` are as C takes them."""
    total, done = strings.count, 0
    order = new_uncleared("uint32_t[]", total or 1)
    call(lib.pybpe_words_sort, strings, order, ffi.NULL)
    room, taken = _Room(block_words), ffi.new("size_t *")
    while done < total:
        call(lib.pybpe_words_take, strings, counts, order + done, total - done, taken, room.c)
        done += taken[0]
        if room.c.count == block_words or done == total:
            yield room.take()
        else:
            room.enlarge()


def merged_blocks(lists: Sequence[SortedWords], block_words: int) -> Iterator[WordBlock]:
    """Yields the sum of sorted lists, sorted, `block_words` words at a time. One block of each list is in memory.
    Raises FormatError for a list that is not in ascending order."""
    parts = _Parts(lists)
    room, state = _Room(block_words), ffi.new("int *")
    while True:
        parts.merge(room, state)
        if state[0] == lib.PYBPE_MERGE_PART:
            parts.refill()
        elif state[0] == lib.PYBPE_MERGE_ROOM:
            room.enlarge()
        else:
            if room.c.count:
                yield room.take()
            if state[0] == lib.PYBPE_MERGE_DONE:
                return


class _Parts:
    """The blocks of sorted lists that are in memory."""

    def __init__(self, lists: Sequence[SortedWords]) -> None:
        self._lists = lists
        self._c = ffi.new("pybpe_words_part[]", len(lists))
        self._blocks: list[WordBlock | None] = [None] * len(lists)
        self._buffers: list[object] = [None] * len(lists)
        for i in range(len(lists)):
            self._next_block(i)

    def merge(self, room: _Room, state: Any) -> None:
        err = ffi.new("pybpe_error *")
        if lib.pybpe_words_merge(self._c, len(self._lists), room.c, state, ffi.NULL, err) < 0:
            if err.code == lib.PYBPE_ERR_VALUE:
                raise errors.FormatError(f"{self._lists[err.offset].name}: {ffi.string(err.msg).decode()}")
            raise_error(err)

    def refill(self) -> None:
        """Replaces the blocks that have been merged. The part of a list that has ended stays as it is."""
        for i, block in enumerate(self._blocks):
            if block is not None and self._c[i].at == self._c[i].count:
                self._next_block(i)

    def _next_block(self, i: int) -> None:
        before, block = self._blocks[i], next(self._lists[i].blocks, None)
        if before is not None and block is not None and before.last >= block.first:
            raise errors.FormatError(f"{self._lists[i].name}: words are not in ascending order")
        self._blocks[i] = block
        if block is None:
            return
        part = self._c[i]
        blob = ffi.from_buffer("uint8_t[]", block.blob)
        lengths = ffi.from_buffer("uint32_t[]", block.lengths)
        counts = ffi.from_buffer("uint64_t[]", block.counts)
        self._buffers[i] = (blob, lengths, counts)
        part.bytes, part.size, part.lengths, part.counts = blob, len(blob), lengths, counts
        part.count, part.at, part.offset = len(block.lengths), 0, 0
