"""Explanations of real tokenizers: every step is the one that the definition of BPE takes; the last one is `encode`."""

import json
import random
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
import tokenizers
from gpt2 import gpt2_tokenizer
from test_added_tokens import PREFIX, file, random_texts, token
from texts import english, mixed

import pybpe
from pybpe.cli import main
from pybpe.tokenizer.explanation import LONGEST_WORD


def check(tok: pybpe.Tokenizer, text: str | bytes) -> set[str]:
    """Compares the steps with the definition. Returns the rules that occur."""
    explained = tok.explain(text)
    assert explained.ids == tok.encode(text)
    tokens = tok.model.tokens
    ranks = {pair: rank for rank, pair in reversed(list(enumerate(tok.model.merges)))}
    specials = set(tok.special_tokens.values())
    for word in explained.words:
        start, *steps = word.steps
        if start.rule == "special token":
            assert specials.issuperset(start.ids) and not steps
            continue
        assert all(b"".join(tokens[i] for i in step.ids) == word.text for step in word.steps)
        if start.rule == "whole word":
            assert tok.model.whole_words and len(start.ids) == 1 and not steps
            continue
        assert start.rule == "bytes" and all(len(tokens[i]) == 1 for i in start.ids)
        for before, after in pairwise(word.steps):
            pairs = list(pairwise(before.ids))
            assert after.rank == min(ranks[pair] for pair in pairs if pair in ranks)
            at = pairs.index(tok.model.merges[after.rank])
            assert after.ids == (*before.ids[:at], after.ids[at], *before.ids[at + 2 :])
            assert tokens[after.ids[at]] == tokens[before.ids[at]] + tokens[before.ids[at + 1]]
        assert ranks.keys().isdisjoint(pairwise(word.steps[-1].ids))
    return {word.steps[0].rule for word in explained.words}


TEXT = mixed(1500) + "<|endoftext|> a12345  e\u0301\ufb01 \ud800"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"pattern": "cl100k", "digits": 1, "normalizer": "NFC"},
        {"pattern": "o200k", "normalizer": "NFKC", "special_ids": "last"},
        {"pattern": r"[a-e]+|\s+(?then)\p{L}|[^\p{L}]+"},  # several in sequence
        pytest.param(
            {"pattern": r"(?<=a)b|\w+|\s+"},  # it runs in Python
            marks=pytest.mark.filterwarnings("ignore:the pattern .* does not compile"),
        ),
        {"superwords": True},
    ],
)
def test_trained_tokenizers(options: dict[str, object]) -> None:
    texts = [english()[:5000], mixed(5000)]
    tok = pybpe.train(iter(texts), vocab_size=900, special_tokens=["<|endoftext|>"], **options)
    invalid = b"\xff\xe4\xb8 the\x00 \xe4\xb8\xad<|endoftext|>\xf0\x9f"
    for text in (TEXT, invalid, "", "<|endoftext|>"):
        check(tok, text)
    assert "special token" in check(tok, TEXT)
    assert tok.explain(TEXT, allowed_special=()).ids == tok.encode_ordinary(TEXT)


@pytest.mark.parametrize("ignore_merges", [False, True])
def test_tokenizers_of_hugging_face(ignore_merges: bool) -> None:
    """Special tokens with flags, a space that is added, and words that are tokens which no merge makes."""
    rng = random.Random(3)
    data = json.loads(file([token("<m>", lstrip=True), token("<n>", rstrip=True, normalized=True)], PREFIX))
    data["model"]["ignore_merges"] = ignore_merges
    data["model"]["vocab"] |= {"ababa": 1000, "\u0120ababa": 1001}
    tok = pybpe.Tokenizer.from_hf(tokenizers.Tokenizer.from_str(json.dumps(data)))
    found = set().union(*(check(tok, text) for text in random_texts(rng, ["<m>", "<n>", " ababa", "ababa"], 60)))
    assert found == {"bytes", "special token"} | ({"whole word"} if ignore_merges else set())
    assert [word.text for word in tok.explain("ab  <m>a").words] == [b" ab", b"  <m>", b" a"]


def test_merges_that_are_not_in_the_order_of_training() -> None:
    """A merge may make a pair of lower rank than its own."""
    merges = [(b"aa", b"b"), (b"ab", b"a"), (b"a", b"a"), (b"a", b"b"), (b"b", b"aab"), (b"aa", b"a"), (b"b", b"a")]
    made = dict.fromkeys(left + right for left, right in [*merges, (b"b", b"aab")])
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)} | dict(enumerate(made, 256)), merges)
    rng = random.Random(1)
    for _ in range(200):
        check(tok, "".join(rng.choices("ab", k=rng.randint(0, 12))))


def test_what_it_looks_like(tmp_path: Path) -> None:
    tok = gpt2_tokenizer()
    text = "lower<|endoftext|> \u5317<"
    explained = tok.explain(text)
    shown = """\
'lower': 21037
          bytes  'l' 'o' 'w' 'e' 'r'
        merge 7  'l' 'o' 'w' 'er'
       merge 66  'l' 'ow' 'er'
      merge 533  'l' 'ower'
    merge 20781  'lower'
'<|endoftext|>': 50256
  special token  '<|endoftext|>'
' \u5317': 10263 234 245
          bytes  ' ' b'\\xe5' b'\\x8c' b'\\x97'
    merge 10007  b' \\xe5' b'\\x8c' b'\\x97'
'<': 27
          bytes  '<'"""
    assert str(explained) == shown
    assert repr(explained) == "Explanation(4 words; print shows them)"

    class Page(HTMLParser):
        cells: list[str] = []

        def handle_data(self, data: str) -> None:
            self.cells.append(data)

    page = Page()
    page.feed(explained._repr_html_())
    assert " ".join(page.cells).split() == " ".join(line.split(": ")[0] for line in shown.splitlines()).split()
    assert explained.to_html().count('title="21037"') == 1

    out = tmp_path / "steps.txt"
    tok.save(tmp_path / "gpt2.json")
    options = ["encode", "-t", str(tmp_path / "gpt2.json"), "--text", text, "--explain", "-o", str(out)]
    assert main(options) == 0
    assert out.read_text(encoding="utf-8") == f"{shown}\n"
    assert main([*options, "--ordinary", "--force"]) == 0
    assert out.read_text(encoding="utf-8") == f"{tok.explain(text, allowed_special=())}\n"


def test_what_cannot_be_explained(tok: pybpe.Tokenizer, capsys: pytest.CaptureFixture[str]) -> None:
    assert tok.explain("x" * LONGEST_WORD).ids == tok.encode("x" * LONGEST_WORD)
    with pytest.raises(pybpe.errors.LimitError, match=r"the word 'x{20}'... has 2001 bytes"):
        tok.explain("x" * (LONGEST_WORD + 1))
    with pytest.raises(pybpe.errors.UnsupportedError, match=r"at random \(dropout 0.1\)"):
        tok.replace(dropout=0.1).explain("a")
    for option, said in ((["--dropout", "0.1", "--seed", "1"], "not random"), (["-o", "x.npy"], "--explain writes")):
        assert main(["encode", "-t", "gpt2", "--text", "a", "--explain", *option]) == 2
        assert said in capsys.readouterr().err
