"""tie_break="rustbpe": the merges of rustbpe, with which nanochat trains. See extras/test_nanochat_extras.py, too."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from reference import rustbpe
from texts import chinese, english, mixed

import pybpe
from pybpe.pattern import Pattern

NANOCHAT = Pattern("nanochat")


def words(texts: list[str]) -> Counter[bytes]:
    parts = [text.encode() for text in texts]
    return Counter(part[a:b] for part in parts for a, b in pairwise([0, *NANOCHAT.word_ends(part)]))


def check(texts: list[str], merges: int) -> None:
    found = pybpe.train(
        iter(texts), vocab_size=256 + merges, pattern=NANOCHAT, tie_break="rustbpe", max_token_length=1 << 20
    )
    expected = rustbpe.train(words(texts), merges)
    assert found.merges == expected
    assert found.model.tokens == [*(bytes([i]) for i in range(256)), *(left + right for left, right in expected)]


@pytest.mark.parametrize("text", [english()[:9000], chinese()[:2000], mixed()[:9000]], ids=["en", "zh", "mixed"])
def test_merges_of_a_text(text: str) -> None:
    check(text.split("\n\n"), 200)


def test_merges_of_many_small_corpora() -> None:
    """With few letters, most merges are ties. No two merges make the same bytes, so rustbpe's ids are the tokens."""
    rng = random.Random(7)
    for _ in range(150):
        letters = rng.choice(["ab", "aab1", "中文字ab", "abcdefgh ", "a'sé1 .\n", "\x00\x7f ~ÿ"])
        check(["".join(rng.choices(letters, k=rng.randrange(60))) for _ in range(8)], rng.randrange(40))
