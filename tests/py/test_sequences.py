"""Patterns in several steps: each step splits the pieces of the step before it, as separate texts."""

import pickle
import random
import unicodedata
import warnings
from itertools import pairwise
from pathlib import Path

import pytest
import regex
from pipelines import DEEPSEEK_V3
from texts import english, hostile_bytes, mixed

import pybpe
from pybpe import _binding
from pybpe.pattern import THEN, Pattern
from pybpe.viz import pattern_data

SMOLLM = r"\p{N}(?then)gpt2"
FALCON = THEN.join([r"[\p{P}$+<=>^`|\x7e]+", "gpt2", r"(?bytes)[0-9\xb2\xb3\xb9\xbc-\xbe]+", "(?bytes)[0-9][0-9][0-9]"])
DEEPSEEK_CODER = THEN.join([r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", "[一-龥ࠀ-一가-퟿]+", r"\p{N}"])
SEQUENCES = [SMOLLM, THEN.join(DEEPSEEK_V3), DEEPSEEK_CODER, FALCON]

STEPS = [
    *("gpt2", "cl100k", "o200k", "llama3", "qwen2", r"\p{N}", r"\p{N}{1,3}", r"\p{N}+", r"\s?\p{L}+", r"\s?\p{P}+"),
    *(r"\s+$", "[一-龥]+", r"[\r\n]", "a*b|a", "[ab]", "(?:aba)", r"\s+(?!\S)|\s", r"\w+|\W", "b+|a{1,2}", "[^a]+"),
    *("(?bytes)[0-9\xb2]+", "(?bytes)[0-9][0-9][0-9]", "(?bytes)[\x80-\xff]", r"(?bytes)\s+", r"(?bytes)a|$b|\x0a"),
]


def steps_of(pattern: str) -> list[str]:
    parts = [part.removeprefix("(?bytes)") for part in pattern.split(THEN)]
    return [Pattern(part).regex if part in ("gpt2", "cl100k", "o200k", "llama3", "qwen2") else part for part in parts]


def oracle(pattern: str, data: bytes) -> list[bytes]:
    """Returns the words, from one `regex` split after another."""
    pieces = [data]
    for step, expression in zip(pattern.split(THEN), steps_of(pattern), strict=True):
        encoding = "latin-1" if step.startswith("(?bytes)") else "utf-8"
        found = []
        for piece in pieces:
            text, at = piece.decode(encoding, "surrogateescape"), 0
            for match in regex.finditer(expression, text):
                found += [text[at : match.start()], match[0]]
                at = match.end()
            found.append(text[at:])
        pieces = [word.encode(encoding, "surrogateescape") for word in found if word]
    return pieces


def words_of(pattern: Pattern, data: bytes) -> list[bytes]:
    return [data[a:b] for a, b in pairwise([0, *pattern.word_ends(data)])]


def check(pattern: str, texts: list[bytes]) -> int:
    """Returns how many safe cuts there were."""
    ours, cuts = Pattern(pattern), 0
    assert ours.pretok is not None and len(ours.steps) == pattern.count(THEN) + 1
    for data in texts:
        expected = oracle(pattern, data)
        assert words_of(ours, data) == expected, (pattern, data[:100])
        assert expected == [data[a:b] for a, b in pairwise([0, *ours.searched_ends(data)])]
        at = 0
        step = 1 + len(data) // 50
        while data and (at := _binding.text_cut(ours.pretok, None, data, at + step)) < len(data):
            cuts += 1
            assert words_of(ours, data[:at]) + words_of(ours, data[at:]) == expected, (pattern, data, at)
    return cuts


@pytest.mark.slow
def test_random_sequences() -> None:
    rng = random.Random(1)
    cuts = 0
    for _ in range(100):
        steps = rng.choices(STEPS, k=rng.choice([2, 2, 3, 3, 4, 7]))
        pattern = THEN.join(sorted(steps, key=lambda step: step.startswith("(?bytes)")))
        cuts += check(pattern, [hostile_bytes(rng, 30) for _ in range(20)])
    assert cuts > 250


def test_a_single_step_of_bytes() -> None:
    rng = random.Random(4)
    for step in ("(?bytes)[0-9\xb2]+", r"(?bytes)\s+", "(?bytes)[\x80-\xff]", "(?bytes)a|\xc3"):
        data = hostile_bytes(rng, 60)
        assert words_of(Pattern(step), data) == oracle(step, data)


@pytest.mark.parametrize("pattern", SEQUENCES)
@pytest.mark.parametrize("normalizer", [None, "NFC"])
def test_training_and_ids_do_not_depend_on_pieces(pattern: str, normalizer: str | None) -> None:
    """Compares counting and encoding with the splitter, and with the words that `regex` finds."""
    text = english()[:40_000] + mixed()[:20_000]
    tok = pybpe.train(iter([text]), vocab_size=900, pattern=pattern, normalizer=normalizer, special_tokens=["<|x|>"])
    rng = random.Random(5)
    for data in [
        "",
        "1",
        "a1 <|x|>12  <|x|>",
        *[hostile_bytes(rng, 50).decode("utf-8", "replace") for _ in range(30)],
    ]:
        expected = []
        for i, section in enumerate(data.split("<|x|>")):
            expected += [tok.special_tokens["<|x|>"]] if i else []
            form = unicodedata.normalize("NFC", section) if normalizer else section
            for word in oracle(pattern, form.encode()):
                expected += tok.encode_ordinary(word) if len(oracle(pattern, word)) == 1 else [-1]
        if -1 not in expected:
            assert tok.encode(data) == expected
        assert list(tok.encode_iterable([data])) == tok.encode(data)
        assert tok.count(data) == len(tok.encode(data))


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (r"[a](?then)[(?then)]", "not a valid regular expression"),
        (r"[(?then)]", "not a valid regular expression"),
        (r"(?then)a", "no pattern ''"),
        (r"(?bytes)a(?then)gpt2", "cannot follow"),
        (THEN.join(["gpt2"] * 17), "at most 16 steps"),
        (r"[a](?then)gpt3", "no pattern 'gpt3'"),
    ],
)
def test_what_is_not_a_sequence(pattern: str, message: str) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match=message.replace("(", r"\(")):
        Pattern(pattern)
    with pytest.raises(pybpe.errors.ArgumentError, match="built-in"):
        Pattern(SMOLLM, digits=1)


def test_a_step_that_does_not_compile() -> None:
    pattern = r"\p{N}{1,3}(?then)(?<=a)b|[^b]+(?then)gpt2"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ours = Pattern(pattern)
        assert ours.pretok is None
    assert len(caught) == 1
    rng = random.Random(6)
    for _ in range(100):
        data = hostile_bytes(rng, 40)
        assert words_of(ours, data) == oracle(pattern, data)


@pytest.mark.slow
def test_a_long_text_takes_linear_time() -> None:
    """Each word of the first step is long or has one byte; the second step looks far ahead and finds no match."""
    for text in (b"a" * 200_000, b"a1" * 100_000, b"1" * 200_000, b" " * 200_000, b"aaaa1" * 40_000):
        ends = Pattern(r"\p{N}(?then)a*b|a|[^a](?then)gpt2").word_ends(text)
        assert ends[-1] == len(text)


def test_what_has_one_regular_expression_refuses_a_sequence(tmp_path: Path) -> None:
    tok = pybpe.train(iter(["pi is 3.14"]), vocab_size=257, pattern=SMOLLM)
    with pytest.raises(pybpe.errors.UnsupportedError, match="this pattern has 2 steps"):
        tok.to_tiktoken()
    assert "several steps" in pattern_data(tok.pattern)["why"]
    counts = pybpe.count_words(iter(["pi is 3.14"]), pattern=SMOLLM)
    counts.save(tmp_path / "c.counts")
    assert pybpe.Counts.load(tmp_path / "c.counts").settings.pattern == tok.pattern
    assert pickle.loads(pickle.dumps(tok.pattern)) == tok.pattern
