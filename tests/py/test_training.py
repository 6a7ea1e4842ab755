"""pybpe.train and train_bpe, through files and texts. The merge loop itself: tests/c/test_train_random.c."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from gpt2 import GPT2_REGEX
from reference import encode as reference
from reference import pretok
from texts import chinese, english, mixed

import pybpe


@pytest.fixture
def corpus(tmp_path: Path) -> Callable[[str | bytes], Path]:
    def write(text: str | bytes) -> Path:
        path = tmp_path / "corpus.txt"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


# ------------------------------------------------------------------------------------------------------
# The result


def test_the_worked_example(corpus: Callable[[str], Path]) -> None:
    vocab, merges = pybpe.train_bpe(corpus("aa bb aa"), 258, [])
    assert merges == [(b"a", b"a"), (b"b", b"b")]
    assert vocab == {i: bytes([i]) for i in range(256)} | {256: b"aa", 257: b"bb"}


@pytest.mark.parametrize("name", ["english", "chinese", "mixed"])
def test_equals_the_naive_trainer(corpus: Callable[[str], Path], name: str) -> None:
    text = {"english": english()[:8_000], "chinese": chinese()[:2000], "mixed": mixed()[:4_000]}[name]
    parts = text[:1500], text[1500:]
    vocab, merges = pybpe.train_bpe(corpus("<|endoftext|>".join(parts)), 256 + 1 + 80, ["<|endoftext|>"])
    words = [word for part in parts for word in pretok.words(GPT2_REGEX, part.encode())]
    assert merges == reference.train(words, 80)
    assert vocab[256] == b"<|endoftext|>"
    assert [vocab[257 + i] for i in range(80)] == [a + b for a, b in merges]


@pytest.mark.parametrize(("where", "first_special"), [("first", 0), ("after_bytes", 256), ("last", 256 + 44)])
def test_where_special_ids_are(where: str, first_special: int) -> None:
    specials = ["<|a|>", "<|b|>"]
    tok = pybpe.train(iter([english()[:20_000]]), vocab_size=302, special_tokens=specials, special_ids=where)
    assert tok.special_tokens == {"<|a|>": first_special, "<|b|>": first_special + 1}
    assert tok.vocab_size == 302 and len(tok.merges) == 44
    assert tok.merges == pybpe.train(iter([english()[:20_000]]), vocab_size=300).merges
    text = "text <|a|> with <|b|> specials"
    assert tok.decode(tok.encode(text)) == text


def test_min_frequency_and_max_token_length(corpus: Callable[[str], Path]) -> None:
    # "abcabcabc" occurs 3 times: (b, c) and (a, b) 9 times, (c, a) 6; after bc, (a, bc) 9; nothing else is left.
    tok = pybpe.train(corpus("abcabcabc xyz " * 3), vocab_size=1000, min_frequency=9)
    assert tok.merges == [(b"b", b"c"), (b"a", b"bc")]
    tok = pybpe.train(corpus("abcdefgh " * 30), vocab_size=1000, max_token_length=3)
    assert max(len(token) for token in tok.model.vocab.values()) == 3
    tok = pybpe.train(corpus("abcdefgh " * 30), vocab_size=1000)
    assert len(tok) < 1000 and b" abcdefgh" in tok.model.vocab.values()


# ------------------------------------------------------------------------------------------------------
# Small, odd and bad inputs


@pytest.mark.filterwarnings("ignore:.*this file is empty")
@pytest.mark.filterwarnings("ignore:.*uses these bytes unchanged")
@pytest.mark.parametrize("data", [b"", b"a", b"ab", b"no newline", b"\xff\xfe\x00\x80", b"\n"])
def test_odd_inputs_train_and_round_trip(corpus: Callable[[bytes], Path], data: bytes) -> None:
    tok = pybpe.train(corpus(data), vocab_size=300, special_tokens=["<|endoftext|>"])
    assert 257 <= tok.vocab_size <= 300
    if len(data) < 2:
        assert tok.vocab_size == 257
    assert tok.decode_bytes(tok.encode(data)) == data


def test_missing_and_unreadable_inputs_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere.txt") as caught:
        pybpe.train(tmp_path / "nowhere.txt", vocab_size=300)
    assert isinstance(caught.value, pybpe.Error) and "\n" not in str(caught.value)
    with pytest.raises(pybpe.errors.ArgumentError, match=str(tmp_path)):
        pybpe.train(tmp_path, vocab_size=300)
    with pytest.raises(pybpe.errors.ArgumentError, match="bytes object"):
        pybpe.train(b"text", vocab_size=300)


@pytest.mark.slow
def test_slots_of_two_and_of_four_bytes() -> None:
    """The trainer's slots have two bytes up to 65,534 tokens."""
    rng = random.Random(5)
    words = {rng.randbytes(24): rng.randint(1, 9) for _ in range(9000)}
    narrow, wide = (pybpe.train(counts=words, vocab_size=size).merges for size in (65_534, 65_535))
    assert len(narrow) == 65_534 - 256 and narrow == wide[:-1]
