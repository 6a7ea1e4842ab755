"""The memory of a training run: what merging takes, and how the number of distinct words grows with the text."""

from __future__ import annotations

from math import log
from typing import NamedTuple

from ..errors import LimitError, note
from ..support.platform import machine_memory

_LARGE = 1 << 28  # bytes: less is not worth a note
_USUAL, _STEEP = 0.5, 0.8  # exponents: 0.5 in English books, more than 0.9 in Chinese
_WIDE = (1 << 16) - 1  # the trainer's ids have 2 bytes below this number of tokens, otherwise 4


def default_limit() -> int | None:
    """Returns the memory limit of a run that has none: half of the machine's memory."""
    memory = machine_memory()
    return None if memory is None else memory // 2


class Growth(NamedTuple):
    """How the number of distinct words grows with the text, by Heaps' law: words = K * occurrences ** exponent."""

    # first, last: (occurrences, words), when they were counted first and last.
    first: tuple[int, int] = (0, 0)
    last: tuple[int, int] = (0, 0)

    def now(self, occurrences: int, words: int) -> Growth:
        """Returns the growth up to these numbers."""
        last = (occurrences, words)
        return Growth(self.first if self.first[0] else last, last)

    @property
    def exponent(self) -> float | None:
        """The exponent; None if the number of words has not doubled since the first count."""
        (before, fewer), (after, more) = self.first, self.last
        return log(more / fewer) / log(after / before) if more > 2 * fewer > 0 else None


class MergingMemory(NamedTuple):
    """The memory that merging may take."""

    limit: int | None  # number of bytes; None for no limit
    size: int  # the trainer's vocab_size

    def need(self, words: int, size: int) -> int:
        """Returns about how many bytes merging takes for distinct words that have `size` bytes. First there are the
        words, with their counts, offsets and order, and the trainer's slots, one for each byte and each word; then the
        slots, and lists of the places of pairs, which have up to half as many entries."""
        slots, width = size + words, 2 if self.size < _WIDE else 4
        return width * slots + max(size + 20 * words, 4 * slots // 2)

    def fits(self, words: int, size: int) -> bool:
        return self.limit is None or self.need(words, size) <= self.limit

    def check(self, words: int, size: int, growth: Growth | None = None, text: int = 0) -> None:
        """Raises LimitError if the words do not fit. Logs what merging takes if it takes much and words grow almost as
        fast as the text. `text` is the size of the text that has them, 0 if unknown."""
        need, exponent = self.need(words, size), None if growth is None else growth.exponent
        if self.limit is not None and need > self.limit:
            share = (0.9 * self.limit / need) ** (1 / (exponent or _USUAL))
            sample = f"max_bytes={int(float(f'{0.95 * share * text:.1e}'))}" if text else "max_bytes"
            raise LimitError(
                f"merging {words} distinct words takes about {_shown(need)}, more than memory_limit allows"
                f" ({_shown(self.limit)}; by default, half of the machine's memory): train on a sample, with {sample},"
                " or give a larger memory_limit"
            )
        if exponent is not None and exponent > _STEEP and need > _LARGE:
            note(
                f"{words} distinct words, which grow with the text to the power of {exponent:.2f}: merging takes about"
                f" {_shown(need)}. A sample (max_bytes) takes less: 60 of 90 MB of Chinese cost 0.2% more tokens"
            )


def _shown(size: float) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"
