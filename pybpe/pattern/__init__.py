"""Patterns: how text is split into words before BPE.

The C library splits text with a built-in pattern (NAMES), or with any other regular expression that pybpe can compile
to an automaton (automata). Python's `regex` package runs all other patterns, which gives exactly the right words too,
but is about a hundred times slower.

A pattern can be a sequence of steps, as in many of Hugging Face's tokenizers. The first step splits the text, the
second step splits every piece as a separate text, and so on:

    \\p{N}{1,3}(?then)gpt2         "pi is 3.14" -> "pi is ", "3", ".", "14" -> "pi", " is", " ", "3", ".", "14"

(?then) is not valid in any regular expression, so no other program mistakes a sequence for a regular expression.
(?bytes) at the beginning of a step makes it read bytes: every byte as the character with that code point.

To add a built-in pattern (most regular expressions run in C without this):

1. csrc/pybpe.h: a constant in `enum pybpe_pattern`, with the next number. tokenizer.bin stores it, so it never changes.
   csrc/pybpe_train.h: the name in the comment of `pybpe_pattern_find`. csrc/pretok/pattern.c: the name, and the regular
   expression with and without PYBPE_PATTERN_DIGITS1.
2. csrc/pretok/pretok_splitter.h: a CUT_... constant. pretok.c: its case in `cutter_of`. pretok_kernel.h: a
   PRETOK_CUTTER with the rules, in the order of the constants. If `pretok_rules` cannot express the pattern: masks in
   pretok_cl100k.h, the same rules one word at a time in pretok_scan.c, and the argument for safe cuts at the top of
   pretok_cut.c.
3. NAMES below, and published spellings in _SPELLINGS. The names in the help of TrainOptions, and in trainer.py.
4. tests/py/test_pretok.py (every code point against `regex`; run `make exhaustive`), tests/c/test_pretok.c and
   test_cut.c, the number of patterns in tests/fuzz/fuzz_pretok.c and fuzz_encode.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import Literal

from .. import _binding
from .._lazy import cached_property, regex
from ..arguments import instance, is_unicode, param, shown
from ..errors import ArgumentError, UnsupportedError, warn
from ..support.parallel import end_if_unwanted

NAMES = ("gpt2", "cl100k", "o200k", "llama3", "qwen2", "nanochat")

THEN = "(?then)"  # between the steps of a sequence
OF_BYTES = "(?bytes)"  # before a step that reads bytes
_MOST_COPIED = 2_000_000  # characters
_MOST_STEPS = 16  # csrc/pretok/pretok.h

# Other published spellings of the built-in patterns, mostly from versions of tiktoken. They give the same words. The
# older spellings of cl100k have no rule for white space at the end, so they equal llama3's pattern.
_SPELLINGS = {
    r"""'s|'t|'re|'ve|'m|'ll|'d| ?[\p{L}]+| ?[\p{N}]+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""": "gpt2",
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+""": "gpt2",
    r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s""": "gpt2",
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)"""
    r"""|\s+""": "llama3",
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,2}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)"""
    r"""|\s+""": "nanochat",
    r"""'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]"""
    r"""|\s+(?!\S)|\s""": "cl100k",
}


FROM_RIGHT: Literal["3-from-right"] = "3-from-right"
Digits = Literal[1, "3-from-right"] | None
_DIGITS: dict[Digits, int] = {None: 0, 1: _binding.DIGITS1, FROM_RIGHT: _binding.DIGITS3}


# Parts of the built-in patterns, and others with the same matches, which more readers of a tokenizer.json take:
# JavaScript has no possessive quantifiers. Older versions of transformers.js replace this (?i:) only, which JavaScript
# lacks; version 1.0.0-rc.3 of tokenizers takes {1,2} for {1,3}, but refuses a pattern that it does not know.
_PORTABLE = {
    r"\s++$": r"\s+(?![\s\S])",
    r"'(?i:[sdmt]|ll|ve|re)": r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
    r"\p{N}{1,2}": r"\p{N}\p{N}?",
}


def portable(regex: str) -> str:
    """Returns the regular expression of a built-in pattern as most readers of a tokenizer.json take it."""
    for part, written in _PORTABLE.items():
        regex = regex.replace(part, written)
    return regex


def unnamed(regex: str) -> str:
    """Returns the regular expression, in a group if it could be taken for the name of a pattern."""
    return f"(?:{regex})" if re.fullmatch(r"[\w.-]*", regex) else regex


def _name_of(number: int) -> tuple[str, Digits]:
    """Returns the name and the digits of a built-in pattern."""
    digits = next(digits for digits, flag in _DIGITS.items() if number & sum(_DIGITS.values()) == flag)
    return next(name for name in NAMES if _binding.pattern_find(name) == number - _DIGITS[digits]), digits


@lru_cache(maxsize=64)
def _automaton(regex: str) -> _binding.Pretok | None:
    """Returns the compiled splitter of a regular expression. If it does not compile, returns None, and warns the first
    time."""
    from . import automata

    try:
        return automata.compiled(regex.removeprefix(OF_BYTES), regex.startswith(OF_BYTES))
    except UnsupportedError as error:
        warn(
            f"the pattern {shown(regex)} does not compile, so Python's regex package runs it, about a hundred times"
            f" slower: {error}"
        )
        return None


def _check_copies(pattern: str) -> None:
    """Raises ArgumentError if `regex` would copy too much: it writes out what {n} repeats, and takes 3 microseconds and
    300 bytes per part of a copy, in a call that Ctrl-C does not interrupt."""
    from .dialects import REGEX, parse, written_out

    try:
        size = written_out(parse(pattern, REGEX))
    except (UnsupportedError, RecursionError):  # the product of all numbers is not less, however they are nested
        size = len(pattern)
        for digits in re.findall(r"\{([0-9]+)", pattern):
            size = min(size * max(1, int(digits[:9])), 10 * _MOST_COPIED)
    if size > _MOST_COPIED:
        raise ArgumentError(
            f"the pattern has more than {_MOST_COPIED} characters when {{n}} and {{n,m}} are written out: use"
            " smaller numbers"
        )


def _check_custom(pattern: str, digits: Digits) -> None:
    """Raises ArgumentError for a misspelled name, and for digits, which a regular expression does not take."""
    if re.fullmatch(r"[\w.-]*", pattern):
        raise ArgumentError(f"there is no pattern {pattern!r}: use one of {', '.join(NAMES)}, or a regex")
    if digits is not None:
        raise ArgumentError(
            f"{param(digits=digits)} needs a built-in pattern: put the rule in the regular expression instead"
        )


def _steps_of(pattern: str) -> list[str]:
    """Returns the steps of a pattern. Raises ArgumentError if the steps are invalid."""
    if "\0" in pattern or not is_unicode(pattern):
        raise ArgumentError("a pattern cannot contain a NUL or a lone surrogate: write it as \\x00 or \\ud800")
    steps = pattern.split(THEN)
    if len(steps) > _MOST_STEPS:
        raise ArgumentError(f"a pattern has at most {_MOST_STEPS} steps, not {len(steps)}")
    if OF_BYTES in steps:
        raise ArgumentError(f"a step of the pattern is only {OF_BYTES}: a regular expression must follow it")
    of_bytes = [step.startswith(OF_BYTES) for step in steps]
    if of_bytes != sorted(of_bytes):
        raise ArgumentError(f"a step without {OF_BYTES} cannot follow one with it, which may divide characters")
    return steps


class Pattern:
    """A way to split text into words.

    Args:
        pattern: a built-in name (NAMES, or the aliases r50k and gpt4), a regular expression for the `regex`
            package, or a Pattern. A regular expression that is known to spell a built-in pattern becomes that pattern.
            Text that a regular expression does not match becomes a separate word, so that nothing is lost. Several of
            these with (?then) between them are the steps of a sequence.
        digits: 1 makes every digit a separate word, and "3-from-right" splits numbers into groups of three digits that
            are counted from the right: 12|345|678 (built-in patterns only). None keeps the pattern's rule.

    Raises:
        ArgumentError: the name is unknown, the regular expression does not compile or searches backwards, or `digits`
            is invalid.
    """

    def __init__(self, pattern: PatternLike, digits: Digits = None) -> None:
        if isinstance(pattern, Pattern):
            digits = digits or pattern.digits
            pattern = pattern.name or pattern.regex
        if digits is not None and (isinstance(digits, bool) or digits not in (1, FROM_RIGHT)):
            raise ArgumentError(
                f"{param('digits')} must be 1 (every digit is a separate word), {FROM_RIGHT!r} or None, not"
                f" {shown(digits)}"
            )
        instance("pattern", pattern, str, "a name or a regular expression")
        steps = _steps_of(pattern)
        self.steps: tuple[Pattern, ...] = tuple(map(Pattern, steps)) if len(steps) > 1 else ()
        pattern = THEN.join(step.regex for step in self.steps) or pattern
        pattern, own_digits = self._named(pattern)
        digits = digits or own_digits
        number = _binding.pattern_find(pattern)
        if number is None:
            _check_custom(pattern, digits)
        self.name: str | None = pattern if number is not None else None
        self.digits: Digits = digits
        self.number = _binding.CUSTOM if number is None else number + _DIGITS[digits]
        self.regex: str = pattern if number is None else _binding.pattern_regex(self.number)
        if number is None and not self.steps:
            self._compiled  # noqa: B018  refuses a bad regular expression now, not at first use

    @classmethod
    def from_number(cls, number: int, custom: str | None) -> Pattern:
        """Returns the pattern of a `pybpe_vocab_spec`."""
        if number == _binding.CUSTOM:
            return cls(custom or "")
        return cls(*_name_of(number))

    @staticmethod
    def _named(pattern: str) -> tuple[str, Digits]:
        """Returns the name and the digits of the built-in pattern that a regular expression spells, otherwise the
        argument and None."""
        if pattern in _SPELLINGS:
            return _SPELLINGS[pattern], None
        number = _binding.pattern_find_regex(pattern)
        return (pattern, None) if number is None else _name_of(number)

    @classmethod
    def known(cls, regex: str) -> Pattern | None:
        """Returns the built-in pattern that a regular expression spells, both here and in tiktoken, or None."""
        return cls(regex) if regex in _SPELLINGS else cls.builtin(regex)

    @classmethod
    def builtin(cls, regex: str) -> Pattern | None:
        """Returns the built-in pattern with exactly this regular expression, or as `portable` writes it, under a name
        without digits if it has one, otherwise None."""
        return cls(regex) if _binding.pattern_find_regex(regex) is not None else None

    @property
    def is_custom(self) -> bool:
        """Whether the pattern is not built in."""
        return self.number == _binding.CUSTOM

    @property
    def tables(self) -> str:
        """The Unicode tables that decide the words, for comparison: the C library's, or, for a custom
        pattern, the tables of the installed `regex` package."""
        if not self.is_custom:
            return f"Unicode {_binding.unicode_version()}"
        return f"regex {regex.__version__}"

    @property
    def custom(self) -> str | None:
        """The regular expression of a custom pattern, or None for a built-in pattern."""
        return self.regex if self.is_custom else None

    def __eq__(self, other: object) -> bool:
        # Names may share one regular expression: qwen2 is llama3 with digits=1.
        return isinstance(other, Pattern) and self.regex == other.regex

    def __hash__(self) -> int:
        return hash(self.regex)

    def __repr__(self) -> str:
        digits = f", digits={self.digits!r}" if self.digits else ""
        return f"Pattern({self.name or self.regex!r}{digits})"

    def __str__(self) -> str:
        return f"{self.name or self.regex}{f' with digits {self.digits}' if self.digits else ''}"

    def __reduce__(self) -> tuple[object, ...]:
        return Pattern, (self.name or self.regex, self.digits)

    @cached_property
    def pretok(self) -> _binding.Pretok | None:
        """The C splitter, or None if there is none. `word_ends` then runs the regular expression in Python."""
        if self.steps:
            parts = [part for step in self.steps if (part := step.pretok) is not None]
            return _binding.Pretok.from_sequence(parts) if len(parts) == len(self.steps) else None
        return _automaton(self.regex) if self.is_custom else _binding.Pretok(self.number)

    @cached_property
    def _compiled(self) -> regex.Pattern[str]:
        expression = self.regex.removeprefix(OF_BYTES)
        _check_copies(expression)
        try:
            compiled = regex.compile(expression)
        except (regex.error, ValueError, RecursionError) as error:  # incompatible flags, deep nesting
            raise ArgumentError(f"the pattern is not a valid regular expression: {error}") from None
        if compiled.flags & regex.REVERSE:
            raise ArgumentError("a pattern splits from left to right: remove the flag (?r), which searches backwards")
        return compiled

    def word_ends(self, data: bytes) -> list[int]:
        """Returns the ends of the words of `data` as ascending byte offsets. The last is len(data).

        A custom pattern sees invalid UTF-8 as lone surrogates (U+DC80 to U+DCFF), one per byte.
        """
        if self.pretok is not None:
            return self.pretok.split(data)
        return self._ends_of_steps(data, Pattern.word_ends) if self.steps else self.searched_ends(data)

    def searched_ends(self, data: bytes) -> list[int]:
        """Returns the same as `word_ends`, but finds the words of any pattern with the `regex` package."""
        if self.steps:
            return self._ends_of_steps(data, Pattern.searched_ends)
        encoding = "latin-1" if self.regex.startswith(OF_BYTES) else "utf-8"
        text = data.decode(encoding, "surrogateescape")
        ends = []
        end = 0
        for word in self._words(text):
            end += len(word.encode(encoding, "surrogateescape"))
            ends.append(end)
        return ends

    def _ends_of_steps(self, data: bytes, find: Callable[[Pattern, bytes], list[int]]) -> list[int]:
        ends = [len(data)]
        for step in self.steps:
            pieces = pairwise([0, *ends])
            ends = [start + end for start, stop in pieces for end in find(step, data[start:stop])]
        return ends

    def _words(self, text: str) -> Iterator[str]:
        """Yields the matches of the custom pattern, and the text between them."""
        done = 0
        for i, match in enumerate(self._compiled.finditer(text)):
            if i % 1024 == 0:
                end_if_unwanted()
            start, end = match.span()
            start = max(start, done)  # with \K in a lookbehind a match may begin inside the previous one
            if start > done:
                yield text[done:start]
            if end > start:
                yield text[start:end]
            done = max(start, end)  # an empty match separates the text around it
        if done < len(text):
            yield text[done:]


PatternLike = str | Pattern
