"""Counting words, and merging. Sorted lists of words in blocks, so that lists of any length can be written, read and
added in little memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from .. import errors
from .._lazy import numpy
from .core import Data, Strings, call, ffi, lib, make_handle, new_uncleared, raise_error, strings_list
from .text import Pretok, Specials

_BYTES_PER_WORD = 12  # an estimate for the first buffer, which grows


class WordBlock(NamedTuple):
    """Some words with their counts."""

    blob: bytes  # the bytes of the words, end to end
    lengths: array[int]  # the lengths of the words in bytes, type I
    counts: array[int]  # the counts of the words, type Q

    @property
    def first(self) -> bytes:
        return self.blob[: self.lengths[0]]

    @property
    def last(self) -> bytes:
        return self.blob[len(self.blob) - self.lengths[-1] :]


class SortedWords(NamedTuple):
    """Distinct words in ascending order of their bytes, in blocks. `name` is their name in errors."""

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


def merged_blocks(lists: Sequence[SortedWords], block_words: int) -> Iterator[WordBlock]:
    """Yields the sum of sorted lists, sorted, `block_words` words at a time. One block per list is in memory.
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


TIE_BREAKS: dict[str, int] = {
    "lexicographic": lib.PYBPE_TIE_LEXICOGRAPHIC,
    "huggingface": lib.PYBPE_TIE_HUGGINGFACE,
    "rustbpe": lib.PYBPE_TIE_RUSTBPE,
}


RULE_WHOLE_CHARACTERS: int = lib.PYBPE_RULE_WHOLE_CHARACTERS
RULE_SUPERWORDS: int = lib.PYBPE_RULE_SUPERWORDS


class Words:
    """Distinct words with their counts, in C memory. Counters export them and trainers take them."""

    def __init__(self, strings: Any, counts: Any, keep: tuple[object, ...]) -> None:
        self.strings = strings
        self.counts = counts
        self._keep = keep

    @classmethod
    def from_dict(cls, counts: dict[bytes, int]) -> Words:
        """Makes a table from a dictionary. Raises ArgumentError for a count that is negative or exceeds 64 bits."""
        strings = Strings(list(counts))
        try:
            numbers = array("Q", counts.values())
        except (OverflowError, TypeError) as error:
            raise errors.ArgumentError(f"a word count must be an integer from 0 to 2^64 - 1: {error}") from None
        return cls(strings.c, ffi.from_buffer("uint64_t[]", numbers), (strings, numbers))

    @classmethod
    def from_blocks(cls, blocks: Iterable[WordBlock]) -> Words:
        """Makes a table from blocks of different words. Holds no Python object per word."""
        blob, offsets, counts = bytearray(), array("Q", [0]), array("Q")
        for block in blocks:
            blob += block.blob
            counts += block.counts
            ends = numpy.cumsum(block.lengths, dtype=numpy.uint64) + numpy.uint64(offsets[-1])
            offsets.frombytes(ends.tobytes())
        strings = ffi.new("pybpe_strings *")
        strings.bytes = ffi.from_buffer("uint8_t[]", blob)
        strings.offsets = ffi.from_buffer("uint64_t[]", offsets)
        strings.count = len(counts)
        return cls(strings, ffi.from_buffer("uint64_t[]", counts), (blob, offsets, counts))

    def to_block(self) -> WordBlock:
        """Returns the words, in no particular order, as one block. Raises LimitError for a word longer than 4 GiB."""
        offsets = numpy.frombuffer(ffi.buffer(self.strings.offsets, 8 * (len(self) + 1)), numpy.uint64)
        sizes = numpy.diff(offsets)
        if len(sizes) and sizes.max() >> 32:
            raise errors.LimitError("a word is longer than 4 GiB")
        lengths, counts = array("I", sizes.astype(numpy.uint32).tobytes()), array("Q")
        counts.frombytes(ffi.buffer(self.counts, 8 * len(self)))
        blob = bytes(ffi.buffer(self.strings.bytes, int(offsets[-1]))) if offsets[-1] else b""
        return WordBlock(blob, lengths, counts)

    def sorted_blocks(self, block_words: int) -> Iterator[WordBlock]:
        """Yields the words in ascending order of their bytes, `block_words` of them at a time."""
        total, done = len(self), 0
        order = new_uncleared("uint32_t[]", total or 1)
        call(lib.pybpe_words_sort, self.strings, order, ffi.NULL)
        room, taken = _Room(block_words), ffi.new("size_t *")
        while done < total:
            call(lib.pybpe_words_take, self.strings, self.counts, order + done, total - done, taken, room.c)
            done += taken[0]
            if room.c.count == block_words or done == total:
                yield room.take()
            else:
                room.enlarge()

    def __len__(self) -> int:
        return int(self.strings.count)

    @property
    def size(self) -> tuple[int, int]:
        """The number of words, and of their bytes."""
        return len(self), int(self.strings.offsets[len(self)])

    def to_dict(self) -> dict[bytes, int]:
        """Returns a dictionary word -> count."""
        return dict(zip(strings_list(self.strings), ffi.unpack(self.counts, len(self)) if len(self) else ()))


class Counter:
    """A table word -> count. Only one thread may use it at a time."""

    def __init__(self, pretok: Pretok | None, specials: Specials | None) -> None:
        self._keep = (pretok, specials)
        self.clear()

    def clear(self) -> None:
        """Removes all words, and frees their memory."""
        pretok, specials = self._keep
        self.c = make_handle(
            "pybpe_counter",
            lib.pybpe_counter_new,
            lib.pybpe_counter_free,
            pretok.c if pretok is not None else ffi.NULL,
            specials.c if specials is not None else ffi.NULL,
            ffi.NULL,
        )

    def add(self, data: Data) -> None:
        """Counts the words of one piece of text."""
        view = ffi.from_buffer(data)
        call(lib.pybpe_counter_add, self.c, view, len(view))

    def add_words(self, words: Words) -> None:
        """Adds words that were counted elsewhere."""
        call(lib.pybpe_counter_add_words, self.c, words.strings, words.counts)

    def add_texts(self, texts: Words) -> None:
        """Counts the words in texts. Adds the count of a text to the counts of its words."""
        call(lib.pybpe_counter_add_texts, self.c, texts.strings, texts.counts)

    def add_documents(self, texts: Any) -> None:
        """Counts the words in texts, given as a pybpe_strings."""
        strings = ffi.new("pybpe_strings *", texts)
        call(lib.pybpe_counter_add_texts, self.c, strings, ffi.NULL)

    def add_word_list(self, words: Sequence[bytes]) -> None:
        """Adds one occurrence of every word in a list."""
        strings = Strings(words)  # a variable, because the strings must outlive the call
        call(lib.pybpe_counter_add_words, self.c, strings.c, ffi.NULL)

    def reserve(self, words: int) -> None:
        """Makes room for a total of this many distinct words."""
        call(lib.pybpe_counter_reserve, self.c, words)

    def absorb(self, other: Counter) -> None:
        """Moves all counts of another table to this one."""
        call(lib.pybpe_counter_absorb, self.c, other.c)

    @property
    def stats(self) -> Any:
        """A struct with the fields words, bytes, total, memory and room: see pybpe_counter_stats."""
        return lib.pybpe_counter_get_stats(self.c)

    def export(self) -> Words:
        """Returns a copy of the table."""
        stats = self.stats
        blob = new_uncleared("uint8_t[]", stats.bytes or 1)
        offsets = new_uncleared("uint64_t[]", stats.words + 1)
        counts = new_uncleared("uint64_t[]", stats.words or 1)
        lib.pybpe_counter_export(self.c, blob, offsets, counts)
        strings = ffi.new("pybpe_strings *")
        strings.bytes, strings.offsets, strings.count = blob, offsets, stats.words
        return Words(strings, counts, (blob, offsets))


class Language(NamedTuple):
    """A language in parity-aware training."""

    words: Words  # the words to learn from
    # The words of a development text, which shows the cost of the language: its tokens, divided by `size`.
    measured: Words
    size: int  # an integer from 1 to 2^32 - 1


class Trainer:
    """The merge loop. Tokens 0-255 are the bytes. Later numbers follow the order of the merges. With a list
    of languages instead of words, every merge helps the language that costs the most."""

    def __init__(
        self,
        words: Words | Sequence[Language],
        *,
        vocab_size: int,
        max_token_length: int,
        min_frequency: int,
        tie_break: str,
        base_merges: Sequence[tuple[int, int]] = (),
        rules: int = 0,
    ) -> None:
        config = ffi.new("pybpe_train_config *")
        config.vocab_size = vocab_size
        config.max_token_length = max_token_length
        config.min_frequency = min_frequency
        config.tie_break = TIE_BREAKS[tie_break]
        self._base = ffi.new("uint32_t[]", [i for pair in base_merges for i in pair])
        config.base_merges = self._base
        config.base_merges_count = len(base_merges)
        config.rules = rules
        if isinstance(words, Words):
            new, texts = lib.pybpe_trainer_new, (words.strings, words.counts)
        else:
            new, texts = lib.pybpe_trainer_new_parity, (_languages(words), len(words))
        self.c = make_handle("pybpe_trainer", new, lib.pybpe_trainer_free, *texts, config, ffi.NULL)

    def step(self, budget: int) -> bool:
        """Processes about `budget` occurrences. Returns True when training is done."""
        done = ffi.new("int *")
        call(lib.pybpe_trainer_step, self.c, budget, done)
        return bool(done[0])

    @property
    def tokens(self) -> int:
        """The number of tokens so far, including the 256 bytes."""
        return int(lib.pybpe_trainer_tokens(self.c))

    def merges(self) -> list[tuple[int, int, int]]:
        """Returns the merges in order, as (left, right, merged) ids."""
        out = ffi.new("uint32_t **")
        count = lib.pybpe_trainer_merges(self.c, out)
        flat = ffi.unpack(out[0], 3 * count) if count else []
        return list(zip(flat[0::3], flat[1::3], flat[2::3]))


def _languages(languages: Sequence[Language]) -> Any:
    """Returns an array for C. The Words must outlive it."""
    array = ffi.new("pybpe_language[]", len(languages))
    for entry, language in zip(array, languages):
        entry.words, entry.counts = language.words.strings[0], language.words.counts
        entry.measured, entry.measured_counts = language.measured.strings[0], language.measured.counts
        entry.size = language.size
    return array
