"""csrc/python/short_calls.h: short texts and lists of ids give what long ones do, and each mistake is still reported.

A memoryview takes the long way, as does an array of ids.
"""

from __future__ import annotations

import gc
import random
from array import array
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate, chain, cycle, islice
from typing import Any

import numpy
import pytest
from test_odd_vocabularies import trained

import pybpe

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


@pytest.mark.parametrize("wrong", [None, 1, ["a"], object()])
def test_what_is_no_text_is_an_error(tok: pybpe.Tokenizer, wrong: Any) -> None:
    for call in (tok.encode, tok.encode_ordinary, tok.encode_to_numpy, tok.count):
        with pytest.raises(pybpe.errors.ArgumentError):
            call(wrong)


def test_a_byte_without_a_token_is_an_error_each_time() -> None:
    lacking = pybpe.Tokenizer.from_hf(trained())
    expected = lacking.encode(memoryview(b"hello world"))
    for _ in range(3):
        for call in (lacking.encode, lacking.encode_ordinary, lacking.encode_to_numpy, lacking.count):
            with pytest.raises(pybpe.errors.Error):
                call("hello \0 world")
        assert lacking.encode("hello world") == expected


def test_threads_share_a_tokenizer(tok: pybpe.Tokenizer) -> None:
    some = list(texts(300))
    expected = [tok.encode(text) for text in some]

    def work(seed: int) -> bool:
        order = random.Random(seed).sample(range(len(some)), len(some))
        return all(tok.encode(some[i]) == expected[i] and tok.count(some[i]) == len(expected[i]) for i in order)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(8)))


@pytest.mark.slow
def test_ids_outlive_their_tokenizer() -> None:
    ids = []
    for _ in range(20):
        other = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [])
        ids.append(other.encode("é the cat"))
        array_of = other.encode_to_numpy("é the cat")
        del other
        gc.collect()
    assert all(row == ids[0] for row in ids) and array_of.tolist() == ids[0] == list("é the cat".encode())
