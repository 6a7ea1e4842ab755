"""Counting words, compared with collections.Counter over the matches of `regex`."""

from collections import Counter
from pathlib import Path

import pytest
import regex
from texts import chinese, english, mixed, random_bytes

import pybpe
from pybpe import _binding
from pybpe.pattern import NAMES, Pattern
from pybpe.training import word_counter

SPECIALS = ["<|endoftext|>", "<|im_start|>"]
TEXTS = {
    "english": (english()[:60_000] + "<|endoftext|>" + english()[60_000:120_000]).encode(),
    "chinese": ("<|im_start|>".join([chinese(), chinese(500, seed=9)])).encode(),
    "mixed": mixed().encode(),
    "invalid": random_bytes(20_000, 4) + b"<|endoftext|>" + random_bytes(20_000, 5),
    "long words": b"x" * 15 + b" " + b"x" * 16 + b"\n" + b"y" * 14 + b" " + b"z" * 3_000_000 + b" " + b"z" * 3_000_000,
    "empty": b"",
}


def expected(data: bytes, pattern: Pattern) -> Counter[bytes]:
    """Counts by the definition: cuts at specials, then with the pattern. Invalid bytes become lone surrogates, which
    every pattern treats as other characters."""
    counts: Counter[bytes] = Counter()
    for segment in regex.split("|".join(map(regex.escape, SPECIALS)), data.decode("utf-8", "surrogateescape")):
        counts.update(w.encode("utf-8", "surrogateescape") for w in regex.findall(pattern.regex, segment))
    return counts


def count(data: bytes, pattern: Pattern) -> dict[bytes, int]:
    counter = _binding.Counter(pattern.pretok, _binding.Specials({text: 0 for text in SPECIALS}))
    counter.add(data)
    return counter.export().to_dict()


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("pattern", NAMES)
def test_counts_are_those_of_the_definition(name: str, pattern: str) -> None:
    assert count(TEXTS[name], Pattern(pattern)) == expected(TEXTS[name], Pattern(pattern))


@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("pattern", ["gpt2", r"\w+|\W"])
def test_large_tables_are_gathered(workers: int, pattern: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that constantly move their tables to the common one count the same as a single table."""
    text = english()[:100_000] + chinese() + mixed()
    path = tmp_path / "text.txt"
    path.write_text(text * 4, encoding="utf-8")  # several pieces
    whole = pybpe.count_words(iter([text * 4]), pattern=pattern, workers=1)
    monkeypatch.setattr(word_counter, "_LARGE_TABLE", 50)
    assert pybpe.count_words(path, pattern=pattern, workers=workers) == whole
    assert pybpe.count_words(iter([text * 4]), pattern=pattern, workers=workers) == whole


def test_word_counts_round_trip() -> None:
    counts = {b"a": 1, b"": 0, b"\x00" * 40: 1 << 63, "中文".encode(): 7}
    words = _binding.Words.from_dict(counts)
    assert words.to_dict() == counts
    counter = _binding.Counter(None, None)
    counter.add_words(words)
    assert counter.export().to_dict() == {word: n for word, n in counts.items() if word}
