"""The teaching tokenizers, compared with the tutorial's own code."""

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from texts import english

import pybpe
from pybpe.teaching import ClassicBPE, Step, WordTokenizer, merge_steps, split_words

PIECES = st.sampled_from([*"""aAb,.:;?_!"()'-\n\t """, "--", "the", "tea", "<|unk|>", " <|endoftext|> ", "é", "中"])
TEXTS = st.lists(PIECES, max_size=40).map("".join)


# ----------------------------------------------------------------------------------------------------
# Words


def tutorial(text: str, vocabulary: dict[str, int]) -> list[int]:
    """SimpleTokenizerV2 from the tutorial."""
    items = [item.strip() for item in re.split(r'([,.:;?_!"()\']|--|\s)', text)]
    return [vocabulary[item] if item in vocabulary else vocabulary["<|unk|>"] for item in items if item]


@given(TEXTS, TEXTS)
def test_words_are_those_of_the_tutorial(trained: str, text: str) -> None:
    tokenizer = WordTokenizer.train(trained)
    words = sorted(set(split_words(trained)) - {"<|endoftext|>", "<|unk|>"})
    vocabulary = {word: i for i, word in enumerate([*words, "<|endoftext|>", "<|unk|>"])}
    assert tokenizer.get_vocab() == vocabulary
    assert tokenizer.encode(text) == tutorial(text, vocabulary)
    known = [word for word in split_words(trained) if word != "<|unk|>"]
    assert split_words(tokenizer.decode(tokenizer.encode(" ".join(known)))) == known


def test_words_by_hand() -> None:
    text = 'It\'s the last he painted, you know -- said Mrs. Gisburn: (well) "yes"; no_w?!'
    assert split_words(text) == (
        ["It", "'", "s", "the", "last", "he", "painted", ",", "you", "know", "--", "said", "Mrs", ".", "Gisburn", ":"]
        + ["(", "well", ")", '"', "yes", '"', ";", "no", "_", "w", "?", "!"]
    )
    tokenizer = WordTokenizer.train("b a, B")
    assert tokenizer.get_vocab() == {",": 0, "B": 1, "a": 2, "b": 3, "<|endoftext|>": 4, "<|unk|>": 5}
    assert tokenizer.encode("a, c <|endoftext|> B") == [2, 0, 5, 4, 1]
    assert tokenizer.decode([2, 0, 5, 4, 1]) == "a, <|unk|> <|endoftext|> B"
    assert (tokenizer.eot_token, len(tokenizer), tokenizer.vocab_size) == (4, 6, 6)
    assert (tokenizer.token_to_id("b"), tokenizer.token_to_id("c"), tokenizer.id_to_token(3)) == (3, None, "b")


@pytest.mark.parametrize("specials", [("a", "a"), ("",), "a", {"a": 1}])
def test_special_tokens_are_checked(specials: object) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="special"):
        WordTokenizer(["b"], specials)  # type: ignore[arg-type]


def test_without_a_token_for_unknown_words() -> None:
    tokenizer = WordTokenizer.train("a b", special_tokens=())
    assert tokenizer.vocab_size == 2 and tokenizer.eot_token is None
    with pytest.raises(pybpe.errors.ArgumentError, match="'c' is not in the vocabulary"):
        tokenizer.encode("a c")
    for wrong in (-1, 2):
        with pytest.raises(pybpe.errors.ArgumentError, match=rf"{wrong} is not an id of this vocabulary \(0 to 1\)"):
            tokenizer.decode([0, wrong])


# ----------------------------------------------------------------------------------------------------
# BPE


def test_the_steps_of_the_textbook() -> None:
    words = {"old": 7, "older": 3, "finest": 9, "lowest": 4}
    steps = list(merge_steps(words))
    assert [step.left + step.right for step in steps[:5]] == ["es", "est", "est</w>", "ol", "old"]
    assert [step.frequency for step in steps[:5]] == [13, 13, 13, 10, 10]
    assert [" ".join(symbols) for symbols in steps[4].words] == [
        "old </w>",
        "old e r </w>",
        "f i n est</w>",
        "l o w est</w>",
    ]
    assert list(steps[-1].words) == [("old</w>",), ("older</w>",), ("finest</w>",), ("lowest</w>",)]
    shown: list[Step] = []
    tokenizer = ClassicBPE.train(words, 5, show=shown.append)
    assert shown == steps[:5]
    assert tokenizer.merges == [(step.left, step.right) for step in steps[:5]]
    characters = ["</w>", *"defilnorstw"]
    assert list(tokenizer.get_vocab()) == [*characters, "es", "est", "est</w>", "ol", "old", "<|unk|>"]


def test_a_step_shows_four_words() -> None:
    words = {(letter,): count for count, letter in enumerate("abcde")}
    assert str(Step("x", "y", 3, words)) == "x + y = xy, 3 times: a x0, b x1, c x2, d x3, ..."
    assert str(Step("x", "y", 3, {("a", "b"): 2})) == "x + y = xy, 3 times: a b x2"
    assert str(Step("x", "y", 3, dict(list(words.items())[:4]))) == "x + y = xy, 3 times: a x0, b x1, c x2, d x3"


def test_steps_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    ClassicBPE.train("ab ab c d e f", 9)
    assert capsys.readouterr().out.splitlines()[:2] == [
        "a + b = ab, 2 times: ab </w> x2, c </w> x1, d </w> x1, e </w> x1, ...",
        "ab + </w> = ab</w>, 2 times: ab</w> x2, c </w> x1, d </w> x1, e </w> x1, ...",
    ]


def test_the_words_of_training_become_what_training_made_of_them() -> None:
    text = english()[:3000]
    tokenizer = ClassicBPE.train(text, 200, show=None)
    *_, last = zip(range(200), merge_steps(Counter(text.split())))
    for symbols in last[1].words:
        assert tokenizer.tokenize("".join(symbols).removesuffix("</w>")) == list(symbols)


@given(TEXTS, st.integers(0, 30))
def test_words_come_back(text: str, merges: int) -> None:
    tokenizer = ClassicBPE.train(text, merges, show=None)
    assert tokenizer.decode(tokenizer.encode(text)) == " ".join(text.split())
    assert len(tokenizer.merges) <= merges


def test_characters_that_were_never_seen() -> None:
    tokenizer = ClassicBPE.train("ab", 9, show=None)
    assert tokenizer.decode(tokenizer.encode("ab xb")) == "ab <|unk|>b"


def test_repeated_symbols_are_merged_from_the_left() -> None:
    tokenizer = ClassicBPE.train({"aaa": 1}, 1, show=None)
    assert tokenizer.tokenize("aaaaa") == ["aa", "aa", "a", "</w>"]


@pytest.mark.parametrize("words, merges", [({"a</w>b": 1}, 1), ({"ab": 0}, 1), ("ab", -1)])
def test_what_cannot_be_trained_on(words: object, merges: int) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="</w>|merges"):
        ClassicBPE.train(words, merges)  # type: ignore[arg-type]
