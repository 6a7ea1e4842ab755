"""Texts for tests: from Python's own documentation, generated texts, and everything that breaks tokenizers."""

import random
from collections.abc import Sequence
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


# What has broken a tokenizer: contractions, digits, punctuation, marks, scripts, control characters, white space.
HOSTILE = (
    "a a b ab aba B A S s k K i I x Z Ab ABCd abc's The don't 's 's 'S 't 'll 'LL 're 've 'ſ '' ' \u2019s ſ K ß"
    " ss İ ı ǅ ǆ ᾼ ꞇ 0 1 12 123 1234567 23 019 3.14 ² ³é ½ Ⅷ ⓐ ٣ ３ १२३ 𝟘 _ - -- . ... ! !? ?! / // /n , ; ( ) [ ]"
    " { } < > | ^ $ ~ \\ ` x_y $+<=>^` #include … 。 ， ！／ ‘’ 、।۔، ¡ ⹏ ᙭ ¤ ª ʰ é É e\u0301 \u0301 \u0338"
    " \u0903 \u20dd \u1e9b\u0323 ﬁ \ufdfa Å ① 中 中文 中文字 你好 一龥 丁 ひら の カタ ア・イ ゠ \u3099 ゛ 한"
    " 한국어 \uac00\u11a8 ࠀ คำ हिन्दी क्ष العربية م\u200cن 👍 👩\u200d👧 \U0001f600 \U0001f1e6 \u200b \u200c"
    " \u200d \ufeff \x00 \x7f \ue000 \u0378 \U000e0001 \U0010ffff"
).split(" ")
HOSTILE += [
    " ", "  ", "   ", " a", "\n", "\n\n", "\r", "\r\n", "\t", "\x0b", "\x0c", "\x1c", "\x1f", "\x85", "\xa0", "\u1680",
    "\u2003", "\u2028", "\u2029", "\u202f", "\u3000", " " * 40, "\u3000" * 20, "a" * 30, "中" * 22,
]  # fmt: skip
BROKEN = [
    b"\xff", b"\xe4", b"\xe4\xb8", b"\x80", b"\xf0\x9f", b"\xf0\x9f\x98", b"\xc0\x80", b"\xc1\x81", b"\xc5",
    b"\xe0\x81\x81", b"\xed\xa0\x80", b"\xf0\x80\x81\x81", b"\xf4\x90\x80\x80",
]  # fmt: skip


def hostile(rng: random.Random, most: int, more: Sequence[str] = ()) -> str:
    """Returns up to `most` hostile pieces, often of few kinds, so that equal ones meet; `more` are among them."""
    pieces = rng.sample(HOSTILE, rng.choice([2, 4, 8, 30, len(HOSTILE)]))
    pieces += [piece for piece in more for _ in range(1 + len(pieces) // (2 * len(more)))]
    return "".join(rng.choices(pieces, k=rng.randint(0, most)))


def hostile_bytes(rng: random.Random, most: int) -> bytes:
    """Returns the same as UTF-8. A fifth of these texts have bytes that are not UTF-8."""
    data = hostile(rng, most).encode()
    if rng.random() < 0.2:
        for bad in rng.sample(BROKEN, 2):
            at = rng.randint(0, len(data))
            data = data[:at] + bad + data[at:]
    return data


def random_bytes(size: int, seed: int) -> bytes:
    """Returns bytes that are mostly not valid UTF-8."""
    return random.Random(seed).randbytes(size)


CORNER_TEXTS: list[str] = [
    "", "a", " ", "\n", "\x00", "  ", " a", "a ", "a  b", "a\n b", "'s", "it's", "''s", "\u3000", "中", "中文。",
    "a" * 300, " " * 300, "\n" * 300, "ab" * 200, "1" * 300, "!" * 300, "中" * 300, "é" * 300, "👍" * 100, "\r\n" * 100,
]  # fmt: skip
