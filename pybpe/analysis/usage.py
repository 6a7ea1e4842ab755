"""Measures a tokenizer on counted words: which tokens it uses, and how well it compresses each script."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from .. import _binding
from ..model import refuse_dropout
from ..tokenizer import Tokenizer

_SCRIPT_NAMES = {"CJK": "Han", "FULLWIDTH": "Latin", "HALFWIDTH": "Katakana", "MODIFIER": "Latin"}


@dataclass
class Amount:
    """An amount of text, and the number of its tokens."""

    bytes: int = 0
    characters: int = 0
    tokens: int = 0

    @property
    def bytes_per_token(self) -> float:
        return self.bytes / self.tokens if self.tokens else 0.0

    @property
    def tokens_per_character(self) -> float:
        return self.tokens / self.characters if self.characters else 0.0

    @property
    def facts(self) -> dict[str, float]:
        """The bytes, and the compression, as plain data."""
        compression = {"bytes_per_token": self.bytes_per_token, "tokens_per_character": self.tokens_per_character}
        return {"bytes": self.bytes, **{name: round(value, 3) for name, value in compression.items()}}


@dataclass
class Usage:
    """How a tokenizer encodes words."""

    counts: list[int]  # the number of occurrences of each id
    scripts: dict[str, Amount] = field(default_factory=dict)  # script (see `script_of`) -> amount of its words
    total: Amount = field(default_factory=Amount)  # the amount of all words

    @property
    def unused(self) -> list[int]:
        """The ids that never occur."""
        return [i for i, count in enumerate(self.counts) if not count]


def measure(tokenizer: Tokenizer, words: Mapping[bytes, int]) -> Usage:
    """Returns the usage of a tokenizer on words that its pattern split (word -> count, as from `Counts.to_dict`)."""
    refuse_dropout(tokenizer.model, "cannot count tokens")
    encoder = _binding.Encoder(tokenizer.model.to_vocab())
    usage = Usage([0] * tokenizer.vocab_size)
    for word, count in words.items():
        ids = encoder.encode_words(word, [len(word)])
        for i in ids:
            usage.counts[i] += count
        text = word.decode("utf-8", "replace")
        for amount in (usage.total, usage.scripts.setdefault(script_of(text), Amount())):
            amount.bytes += count * len(word)
            amount.characters += count * len(text)
            amount.tokens += count * len(ids)
    usage.scripts = dict(sorted(usage.scripts.items(), key=lambda entry: -entry[1].bytes))
    return usage


def script_of(word: str) -> str:
    """Returns the script of a word's first letter, such as "Latin" or "Han"; for a word without letters "numbers",
    "white space" or "symbols".

    >>> [script_of(word) for word in (" the", "中文", " 42", "!?")]
    ['Latin', 'Han', 'numbers', 'symbols']
    """
    letter = next(filter(str.isalpha, word), None)
    if letter is not None:
        return _script_of_letter(letter)
    if any(map(str.isnumeric, word)):
        return "numbers"
    return "white space" if word.isspace() else "symbols"


@lru_cache(maxsize=1 << 16)
def _script_of_letter(letter: str) -> str:
    """Returns a letter's script, with which its Unicode name begins: CYRILLIC SMALL LETTER A."""
    first = unicodedata.name(letter, "UNNAMED").split(" ")[0].split("-")[0]
    return _SCRIPT_NAMES.get(first, first.capitalize())
