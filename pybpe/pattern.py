"""Patterns: how text is cut into words before BPE.

The C library cuts with a built-in pattern (gpt2, cl100k, o200k, llama3, qwen2), and with any other regular expression
that can be compiled to an automaton (automata). Python's `regex` package runs what cannot be compiled: as exact, and
about a hundred times slower.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

from . import _binding, automata
from .arguments import instance, shown
from .errors import ArgumentError, UnsupportedError
from .parallel import end_if_unwanted
from .warning import warn

if TYPE_CHECKING:
    import regex

NAMES = ("gpt2", "cl100k", "o200k", "llama3", "qwen2")

# Other spellings under which the built-in patterns were published, mostly by versions of tiktoken: each gives
# the same words. cl100k's older ones have no rule for white space at the end, which makes them llama3's.
_SPELLINGS = {
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""": "gpt2",
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""": "gpt2",
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""": "gpt2",
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)"""
    r"""|\s+""": "llama3",
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"""
    r"""|\s+(?!\S)|\s""": "cl100k",
}


@lru_cache(maxsize=1)
def _built_in() -> dict[str, tuple[str, int | None]]:
    """The regular expression of every built-in pattern -> its name (qwen2 before llama3 with digits=1) and digits."""
    table: dict[str, tuple[str, int | None]] = {}
    for digits in (None, 1):
        for name in NAMES:
            number = _binding.pattern_find(name) or 0
            table.setdefault(_binding.pattern_regex(number + (_binding.DIGITS1 if digits else 0)), (name, digits))
    return table


@lru_cache(maxsize=64)
def _automaton(regex: str) -> _binding.Pretok | None:
    """The compiled splitter of a regular expression. Without one: None, and a warning, the first time."""
    try:
        return automata.compiled(regex)
    except UnsupportedError as error:
        warn(
            f"the pattern {shown(regex)} does not compile, so Python's regex package runs it, about a hundred times"
            f" slower: {error}"
        )
        return None


class Pattern:
    """One way of cutting text.

    Args:
        pattern: a built-in name (NAMES, or the aliases r50k and gpt4), or a regular expression as the
            `regex` package takes it; one that is known for a built-in pattern is that pattern. What a regular
            expression does not match is a word of its own, so that nothing is lost.
        digits: 1 makes every digit a word of its own (built-in patterns only); None keeps the pattern's
            own rule.

    Raises:
        ArgumentError: an unknown name, a regular expression that does not compile or searches backwards, or other
            digits.
    """

    def __init__(self, pattern: str, digits: int | None = None) -> None:
        if digits is not None and digits != 1:
            raise ArgumentError(f"digits must be 1 (every digit a word of its own) or None, not {digits!r}")
        instance("pattern", pattern, str, "a name or a regular expression")
        if "\0" in pattern or any("\ud800" <= char <= "\udfff" for char in pattern):
            raise ArgumentError("a pattern cannot hold a NUL or a lone surrogate: write it as \\x00 or \\ud800")
        pattern, own_digits = self._named(pattern)
        digits = digits or own_digits
        number = _binding.pattern_find(pattern)
        if number is None and re.fullmatch(r"[\w.-]*", pattern):
            raise ArgumentError(f"there is no pattern {pattern!r}: use one of {', '.join(NAMES)}, or a regex")
        if number is None and digits is not None:
            raise ArgumentError("digits=1 goes with a built-in pattern; put it into the regex instead")
        self.name = pattern if number is not None else None
        self.digits = digits
        self.number = _binding.CUSTOM if number is None else number + (_binding.DIGITS1 if digits else 0)
        self.regex = pattern if number is None else _binding.pattern_regex(self.number)
        if number is None:
            self._compiled  # noqa: B018  a bad regular expression is refused now, not at first use

    @classmethod
    def from_number(cls, number: int, custom: str | None) -> Pattern:
        """The pattern of a `pybpe_vocab_spec`."""
        if number == _binding.CUSTOM:
            return cls(custom or "")
        base = number & ~_binding.DIGITS1
        name = next(name for name in NAMES if _binding.pattern_find(name) == base)
        return cls(name, 1 if number & _binding.DIGITS1 else None)

    @staticmethod
    def _named(pattern: str) -> tuple[str, int | None]:
        """The name and the digits of a built-in pattern that is given by a regular expression; else what is given."""
        if pattern in _SPELLINGS:
            return _SPELLINGS[pattern], None
        return _built_in().get(pattern, (pattern, None))

    @classmethod
    def known(cls, regex: str) -> Pattern | None:
        """The built-in pattern that a regular expression stands for, here and in tiktoken; None if it is another."""
        return cls(regex) if regex in _SPELLINGS else cls.builtin(regex)

    @classmethod
    def builtin(cls, regex: str) -> Pattern | None:
        """The built-in pattern with exactly this regular expression, by its own name if it has one (qwen2)."""
        return cls(regex) if regex in _built_in() else None

    @property
    def is_custom(self) -> bool:
        """Whether the pattern is none of the built-in ones."""
        return self.number == _binding.CUSTOM

    @property
    def custom(self) -> str | None:
        """The regular expression of a custom pattern."""
        return self.regex if self.is_custom else None

    def __eq__(self, other: object) -> bool:
        # Two names may stand for one regular expression: qwen2 is llama3 with digits=1.
        return isinstance(other, Pattern) and self.regex == other.regex

    def __hash__(self) -> int:
        return hash(self.regex)

    def __repr__(self) -> str:
        digits = f", digits={self.digits}" if self.digits else ""
        return f"Pattern({self.name or self.regex!r}{digits})"

    def __str__(self) -> str:
        return f"{self.name or self.regex}{' with digits=1' if self.digits else ''}"

    def __reduce__(self) -> tuple[object, ...]:
        return Pattern, (self.name or self.regex, self.digits)

    @cached_property
    def pretok(self) -> _binding.Pretok | None:
        """The C splitter. None if there is none: `word_ends` runs the regular expression in Python then."""
        return _automaton(self.regex) if self.is_custom else _binding.Pretok(self.number)

    @cached_property
    def _compiled(self) -> regex.Pattern[str]:
        import regex

        try:
            compiled = regex.compile(self.regex)
        except (regex.error, ValueError, RecursionError) as error:  # flags that exclude one another; deep nesting
            raise ArgumentError(f"the pattern is not a valid regular expression: {error}") from None
        if compiled.flags & regex.REVERSE:
            raise ArgumentError("a pattern cuts from left to right: leave out the flag (?r), which searches backwards")
        return compiled

    def word_ends(self, data: bytes) -> list[int]:
        """The ends of the words of `data`, ascending byte offsets; the last is len(data).

        Invalid UTF-8 reaches a custom pattern as lone surrogates (U+DC80 to U+DCFF), one for each byte.
        """
        if self.pretok is not None:
            return self.pretok.split(data)
        return self.searched_ends(data)

    def searched_ends(self, data: bytes) -> list[int]:
        """The same, found by the `regex` package, whatever the pattern."""
        text = data.decode("utf-8", "surrogateescape")
        ends = []
        end = 0
        for word in self._words(text):
            end += len(word.encode("utf-8", "surrogateescape"))
            ends.append(end)
        return ends

    def _words(self, text: str) -> Iterator[str]:
        """What the custom pattern matches, and what lies between its matches."""
        done = 0
        for i, match in enumerate(self._compiled.finditer(text)):
            if i % 1024 == 0:
                end_if_unwanted()
            start, end = match.span()
            start = max(start, done)  # \K in a look-behind begins a match inside the one before
            if start > done:
                yield text[done:start]
            if end > start:
                yield text[start:end]
            done = max(start, end)  # an empty match separates what lies around it
        if done < len(text):
            yield text[done:]
