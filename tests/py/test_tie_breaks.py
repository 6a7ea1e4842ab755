"""Training that breaks ties as other libraries do has the merges of Hugging Face's BpeTrainer, and of rustbpe."""

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from reference import rustbpe
from selection import one_in
from texts import chinese, english, mixed
from tokenizers import models, pre_tokenizers, trainers

import pybpe
from pybpe.formats import tokenizer_json
from pybpe.pattern import Pattern

SPECIALS = ["<|endoftext|>", "<|pad|>"]


def code() -> str:
    """Returns some Python code."""
    files = sorted(Path(json.__file__).parents[1].glob("*.py"))
    return "".join(path.read_text(encoding="utf-8", errors="ignore") for path in files)[:300_000]


TEXTS = {
    "english": lambda: english()[:300_000],
    "chinese": lambda: chinese(4_000),
    "code": code,
    "mixed": lambda: mixed(100_000) + english()[:70_000] + chinese(1500),
}


def theirs(text: str, **options: Any) -> dict[str, Any]:
    """Returns the model of a tokenizer.json that Hugging Face trained on one whole document."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(initial_alphabet=alphabet, show_progress=False, **options)
    tokenizer.train_from_iterator([text], trainer)
    return json.loads(tokenizer.to_str())["model"]


def ours(text: str, **options: Any) -> dict[str, Any]:
    tok = pybpe.train(iter([text]), tie_break="huggingface", progress=False, **options)
    return tokenizer_json.to_object(tok.model)["model"]


def merges(model: dict) -> list[str]:
    return [merge if isinstance(merge, str) else " ".join(merge) for merge in model["merges"]]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(("vocab_size", "min_frequency"), one_in(2, [(500, 0), (8000, 2), (2000, 1), (20_000, 0)]))
def test_equals_hugging_face(name: str, vocab_size: int, min_frequency: int) -> None:
    text = TEXTS[name]()
    options: dict[str, Any] = {"vocab_size": vocab_size, "min_frequency": min_frequency}
    options["special_tokens"] = SPECIALS if vocab_size != 2000 else []
    expected, found = theirs(text, **options), ours(text, **options)
    assert merges(found) == merges(expected)
    assert found["vocab"] == expected["vocab"]


@pytest.mark.parametrize("limit", [1, 2, 3, 6])
@pytest.mark.parametrize("name", ["english", "mixed"])
def test_the_limit_of_hugging_face_is_one_more(name: str, limit: int) -> None:
    text, options = TEXTS[name]()[:30_000], {"vocab_size": 600, "min_frequency": 2}
    found = ours(text, max_token_length=max(2, limit - 1), **options)
    assert merges(found) == merges(theirs(text, max_token_length=limit, **options))


# ------------------------------------------------------------------------------------------------------
# tie_break="rustbpe": the merges of rustbpe, with which nanochat trains. See extras/test_nanochat_extras.py, too.


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


@pytest.mark.parametrize("text", [english()[:4000], chinese()[:1500], mixed()[:4000]], ids=["en", "zh", "mixed"])
def test_merges_of_a_text(text: str) -> None:
    check(text.split("\n\n"), 120)


def test_merges_of_many_small_corpora() -> None:
    """With few letters, most merges are ties. No two merges make the same bytes, so rustbpe's ids are the tokens."""
    rng = random.Random(7)
    for _ in range(50):
        letters = rng.choice(["ab", "aab1", "中文字ab", "abcdefgh ", "a'sé1 .\n", "\x00\x7f ~ÿ"])
        check(["".join(rng.choices(letters, k=rng.randrange(60))) for _ in range(8)], rng.randrange(40))
