"""Encoding against its definition, and short texts (csrc/python/short_calls.h) against long ones. tests/c/test_encode.c
has the paths for words of each length, test_tiktoken.py the ids of GPT-2."""

import gc
import random
from array import array
from collections.abc import Iterator
from itertools import accumulate, chain, cycle, islice
from typing import Any

import numpy
import pytest
from reference import encode as reference
from reference import pretok
from texts import english

import pybpe
from pybpe.pattern import Pattern

ALPHABETS = ["ab", "ab c", "abcdefg h", "aé ö", "中文字，", "я а", "a中\u0301 😀", "\u3040\u3041あいう ", "a’s "]
ONE_WORD = r"[\s\S]+"
Merges = list[tuple[bytes, bytes]]


def random_text(rng: random.Random, alphabet: str, length: int) -> str:
    """Returns words of a small lexicon in random order, so that there are pairs to merge."""
    lexicon = ["".join(rng.choices(alphabet, k=rng.randint(1, 6))) for _ in range(12)]
    text = ""
    while len(text) < length:
        text += rng.choice(lexicon)
    return text


def hostile(rng: random.Random, text: bytes) -> bytes:
    """Returns the text with random bytes changed, inserted and removed, so that it is not valid UTF-8."""
    data = bytearray(text)
    for _ in range(1 + len(data) // 20):
        at = rng.randrange(len(data) + 1)
        data[at : at + rng.randint(0, 2)] = rng.randbytes(rng.randint(0, 2))
    return bytes(data)


def tokenizer_of(merges: Merges, pattern: str) -> pybpe.Tokenizer:
    tokens = dict.fromkeys([*(bytes([byte]) for byte in range(256)), *(left + right for left, right in merges)])
    return pybpe.Tokenizer(dict(enumerate(tokens)), merges, pattern=pattern)


def expected(tok: pybpe.Tokenizer, words: list[bytes], merges: Merges) -> list[int]:
    ids = {token: id_ for id_, token in tok.model.vocab.items()}
    return [ids[part] for word in words for part in reference.split(word, merges)]


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("seed", range(2))
def test_trained_on_random_text(alphabet: str, seed: int) -> None:
    rng = random.Random(f"{alphabet}{seed}")
    text, gpt2 = random_text(rng, alphabet, 300), Pattern("gpt2").regex
    # Trained on words, or on text without words, whose tokens cross all boundaries.
    train_on = pretok.words(gpt2, text.encode()) if seed % 2 else [text.encode()]
    merges = reference.train(train_on, rng.randint(1, 60))
    tok, whole = tokenizer_of(merges, "gpt2"), tokenizer_of(merges, ONE_WORD)
    for _ in range(8):
        data = random_text(rng, alphabet, rng.choice([5, 30, 200])).encode()
        for sample in (data, hostile(rng, data)):
            want = expected(tok, pretok.words(gpt2, sample), merges)
            assert tok.encode(sample) == tok.encode_to_numpy(sample).tolist() == want
            assert whole.encode(sample) == expected(tok, [sample], merges)
            assert tok.decode_bytes(want) == sample


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "superwords"])
def test_many_special_tokens_between_short_texts(pattern: str) -> None:
    """Special tokens share the batches of words, and one that is like the last one is found without a search."""
    rng, superwords = random.Random(5), pattern == "superwords"
    how: dict[str, Any] = {"superwords": True} if superwords else {"pattern": pattern}
    specials = {"<|end|>": 0, "<|endoftext|>": 1, "<|": 2} if superwords else {"<|end|>": 0, "<|pad|>": 1}
    text = english()[:20_000]
    tok = pybpe.train(iter([text]), vocab_size=400, special_tokens=list(specials), **how)
    parts = [*specials, *("" if rng.random() < 0.2 else text[at : at + rng.randrange(40)] for at in range(0, 9000, 30))]
    characters = ["é", "字", "🎉", " a", "'s", "12", "\n", "  ", "!"]
    parts += ["".join(rng.choices(characters, k=rng.randrange(12))) for _ in range(300)]
    found, joined = [], ""
    for _ in range(3000):
        part = rng.choice(parts)
        mark = rng.choice(list(specials) if rng.random() < 0.2 else ["<|end|>"])
        found += [*([specials[part]] if part in specials else tok.encode_ordinary(part)), specials[mark]]
        joined += part + mark
    assert tok.encode(joined) == tok.encode_to_numpy(joined).tolist() == found
    assert tok.count(joined) == len(found)


# ---------------------------------------------------------------------------------------------------
# Short texts and lists of ids. A memoryview takes the way of long texts, as does an array of ids.

MARK = "<|endoftext|>"
PIECES = ["a", "the", " the", "  ", "\n", "é", "字", "字符", "🎉", "\0", "12", MARK, "<|end", "\ud800", "'s", "\u0345"]


@pytest.fixture(scope="module")
def tok() -> pybpe.Tokenizer:
    return pybpe.train(iter(["the 字符 é the cat 字 sat " * 20]), vocab_size=300, special_tokens=[MARK], progress=False)


@pytest.fixture(scope="module")
def wide() -> pybpe.Tokenizer:
    """Ids of 4 bytes, most of which no text makes."""
    return pybpe.Tokenizer(
        {i: bytes([i]) for i in range(256)} | {i: b"\xff%d" % i for i in range(256, 70_000)}, [], {MARK: 70_000}
    )


def texts(count: int) -> Iterator[str]:
    rng = random.Random(1)
    for _ in range(count):
        yield "".join(rng.choices(PIECES, k=rng.randrange(30)))
    for size in (4095, 8191, 8192, 8193):
        yield from ("a" * size, "字" * (size // 3), "x" + "字" * (size // 3))


@pytest.mark.parametrize("count", [0, 1, 16, 17, 400, 9000])
@pytest.mark.parametrize("allowed", ["all", frozenset()])
def test_batches_of_all_sizes_give_the_ids_of_each_text(tok: pybpe.Tokenizer, count: int, allowed: Any) -> None:
    some = list(islice(cycle(islice(texts(100), 105)), count))  # mostly short
    expected = [tok.encode_to_numpy(text, allowed_special=allowed).tolist() for text in some]
    rows = tok.encode_batch(some, allowed_special=allowed)
    assert rows == expected and len({id(row) for row in rows}) == count
    assert {type(i) for row in rows for i in row} <= {int}
    ids, offsets = tok.encode_batch_to_numpy(some, allowed_special=allowed)
    assert ids.tolist() == list(chain.from_iterable(expected)) and ids.dtype == numpy.uint16 and ids.base is None
    assert offsets.tolist() == list(accumulate(map(len, expected), initial=0)) and offsets.dtype == numpy.int64


@pytest.mark.parametrize("name", ["tok", "wide"])
def test_short_texts_are_encoded_as_long_ones(name: str, request: pytest.FixtureRequest) -> None:
    tok: pybpe.Tokenizer = request.getfixturevalue(name)
    assert tok._short.encode_array("the") is not None  # with this numpy, too
    for text in texts(1500):
        data = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()
        expected = tok.encode(memoryview(data))
        assert tok.encode(text) == tok.encode(data) == expected
        assert (
            tok.encode_ordinary(text) == tok.encode_ordinary(memoryview(data)) == tok.encode(text, allowed_special=())
        )
        assert tok.count(text) == len(expected)
        found = tok.encode_to_numpy(text)
        assert found.tolist() == expected and found.dtype == (numpy.uint16 if len(tok) <= 1 << 16 else numpy.uint32)
        assert found.flags.writeable and found.ndim == 1
        assert tok.decode(expected) == data.decode() and tok.decode_bytes(expected) == data


def test_bytes_that_are_not_utf8(tok: pybpe.Tokenizer) -> None:
    rng = random.Random(2)
    for _ in range(500):
        data = rng.randbytes(rng.randrange(40))
        ids = tok.encode(data)
        assert ids == tok.encode(memoryview(data)) and tok.decode_bytes(ids) == data
        assert tok.decode(ids) == data.decode("utf-8", "replace")
        assert tok.decode(ids, "backslashreplace") == data.decode("utf-8", "backslashreplace")


def test_lists_of_ids_are_decoded_as_arrays(tok: pybpe.Tokenizer) -> None:
    rng = random.Random(3)
    for size in (*range(20), 1023, 1024, 1025, 9000):
        ids = [rng.randrange(len(tok)) for _ in range(size)]
        assert tok.decode_bytes(ids) == tok.decode_bytes(array("I", ids)) == tok.decode_bytes(tuple(ids))
        assert tok.decode(ids) == tok.decode(array("I", ids)) == tok.decode(list(map(numpy.uint16, ids)))


def test_ids_outlive_their_tokenizer() -> None:
    ids = []
    for _ in range(3):
        other = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [])
        ids.append(other.encode("é the cat"))
        array_of = other.encode_to_numpy("é the cat")
        del other
        gc.collect()
    assert all(row == ids[0] for row in ids) and array_of.tolist() == ids[0] == list("é the cat".encode())
