"""Splits texts with several regular expression engines, for tests that compare dialects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import regex
import tiktoken
import tokenizers

from pybpe.pattern.dialects import ONIGURUMA, REGEX, RUST, Dialect

BYTES = {bytes([i]): i for i in range(256)}
# Ranges of code points of one kind, except their first and last.
_ALIKE = [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xD800, 0xDFFF), (0xE000, 0xF8FF), (0x17000, 0x18CFF),
          (0x20000, 0xE0000), (0xE0200, 0x10FFFF)]  # fmt: skip


def _characters() -> str:
    inside = {point for first, last in _ALIKE for point in range(first + 40, last - 40)} | set(range(0xD800, 0xE000))
    return "".join(chr(point) for point in range(0x110000) if point not in inside)


ALL = _characters()


def regex_words(pattern: str, texts: Sequence[str]) -> list[list[str]]:
    """Returns the matches of Python's regex package, without empty ones."""
    compiled = regex.compile(pattern)
    return [[word for match in compiled.finditer(text) if (word := match.group())] for text in texts]


def rust_words(pattern: str, texts: Sequence[str]) -> list[list[str]]:
    """Returns the matches of tiktoken's engine: every part of a text is a token, so every match is one id."""
    parts = {text[i:j].encode() for text in texts for i in range(len(text)) for j in range(i + 1, len(text) + 1)}
    tokens = [*BYTES, *sorted(part for part in parts if len(part) > 1)]
    encoding = tiktoken.Encoding(
        "t", pat_str=pattern, mergeable_ranks={token: i for i, token in enumerate(tokens)}, special_tokens={}
    )
    return [[tokens[i].decode() for i in encoding.encode_ordinary(text)] for text in texts]


def onig_words(pattern: str, texts: Sequence[str]) -> list[list[str]]:
    """Returns the matches of Hugging Face's engine."""
    step = tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "removed", invert=True)
    return [[word for word, _ in step.pre_tokenize_str(text)] for text in texts]


WORDS: dict[str, Callable[[str, Sequence[str]], list[list[str]]]] = {
    "regex": regex_words,
    "rust": rust_words,
    "onig": onig_words,
}
DIALECTS: dict[str, Dialect] = {"regex": REGEX, "rust": RUST, "onig": ONIGURUMA}


def _rust_members(pattern: str, text: str) -> str:
    encoding = tiktoken.Encoding("t", pat_str=pattern, mergeable_ranks=BYTES, special_tokens={})
    return bytes(encoding.encode_ordinary(text)).decode()


@lru_cache(maxsize=1000)
def members(engine: str, pattern: str) -> frozenset[str]:
    """Returns the characters of ALL that a pattern of one character matches."""
    if engine == "regex":
        return frozenset("".join(regex.findall(pattern, ALL)))
    if engine == "rust":
        return frozenset(_rust_members(pattern, ALL))
    return frozenset("".join(word for word in onig_words(f"(?:{pattern})+", [ALL])[0]))


@lru_cache(maxsize=1)
def assigned() -> frozenset[str]:
    """Returns the characters that all engines know and put in the same class. One character has moved since."""
    tables = [members(engine, r"\P{Cn}") for engine in WORDS]
    return frozenset.intersection(*tables) - {"\u0295"}
