"""Texts for tests: from Python's own documentation, generated texts, and everything that breaks tokenizers."""

import random
from functools import cache


@cache
def english() -> str:
    """Returns the topics of pydoc: about 700 kB of English with some code."""
    from pydoc_data import topics

    return "\n\n".join(topics.topics[name] for name in sorted(topics.topics))


@cache
def chinese(clauses: int = 4000, seed: int = 1) -> str:
    """Returns made-up Chinese: words of a small lexicon, with Zipf-like frequencies, in clauses with punctuation."""
    rng = random.Random(seed)
    characters = [chr(c) for c in range(0x4E00, 0x4E00 + 600)]
    lexicon = ["".join(rng.choices(characters, k=rng.choice([1, 2, 2, 2, 3, 4]))) for _ in range(900)]
    weights = [1 / (i + 1) for i in range(len(lexicon))]
    parts = []
    for _ in range(clauses):
        parts.append("".join(rng.choices(lexicon, weights, k=rng.randint(2, 12))))
        parts.append(rng.choice(["，", "，", "。", "！", "？", "。\n", "：“", "”"]))
    return "".join(parts)


@cache
def mixed(size: int = 60_000, seed: int = 2) -> str:
    """Returns many scripts, numbers, white space of all kinds, emoji and contractions, in random order."""
    rng = random.Random(seed)
    pieces = [
        *("Hello", "world", "don't", "I'LL", "we've", "café", "naïve", "Ünïcödé", "Привет", "мир", "שלום"),
        *("مرحبا", "नमस्ते", "こんにちは", "カタカナ", "안녕하세요", "你好，世界。", "ﬁ", "ǅ", "ǲ", "e\u0301"),
        *("1234567890", "３４５", "½", "²", "Ⅷ", "a_b", "x+=1;", "http://x.y/z?q=1", "...", "--", "''"),
        *("\U0001f469\u200d\U0001f467", "\U0001f1e8\U0001f1f3", "\u2019s", "'s", "'S", " ", "  ", "   ", "\n"),
        *("\n\n", "\r\n", "\t", "\u00a0", "\u3000", "\u2028", "\u200b", "\ufeff", "\x00", "\x7f"),
    ]
    parts = []
    total = 0
    while total < size:
        parts.append(rng.choice(pieces))
        total += len(parts[-1])
    return "".join(parts)


def random_bytes(size: int, seed: int) -> bytes:
    """Returns bytes that are mostly not valid UTF-8."""
    return random.Random(seed).randbytes(size)


CORNER_TEXTS: list[str] = [
    "", "a", " ", "\n", "\x00", "  ", " a", "a ", "a  b", "a\n b", "'s", "it's", "''s", "\u3000", "中", "中文。",
    "a" * 300, " " * 300, "\n" * 300, "ab" * 200, "1" * 300, "!" * 300, "中" * 300, "é" * 300, "👍" * 100, "\r\n" * 100,
]  # fmt: skip
