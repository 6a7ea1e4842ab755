"""What several threads share gives each of them the same results, also in free-threaded Python. docs/threads.md lists
everything that changes, and test_mutable_state.py compares that list with the source."""

import sys
import sysconfig
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy
import pytest
from texts import chinese, english, mixed

import pybpe
from pybpe import encoding
from pybpe.reading.pieces import data_pieces

TEXT = english()[:40_000] + chinese()[:4_000] + mixed()[:4_000] + "<|endoftext|>" * 3
CUSTOM = r"(?<=x)y+|\p{L}+|\s+|."  # a look-behind does not compile: the package `regex` runs it
BASE = pybpe.train(iter([TEXT]), vocab_size=700, special_tokens=["<|endoftext|>", "<|pad|>"])


def fresh(pattern: str = "gpt2") -> pybpe.Tokenizer:
    """Returns a tokenizer whose caches are empty."""
    return pybpe.Tokenizer(BASE.model.vocab, BASE.merges, special_tokens=BASE.special_tokens, pattern=pattern)


USES: dict[str, Callable[[pybpe.Tokenizer], object]] = {
    "encode": lambda tok: tok.encode(TEXT),
    "encode some specials": lambda tok: tok.encode(TEXT, allowed_special={"<|pad|>"}, disallowed_special=()),
    "encode_to_numpy": lambda tok: tok.encode_to_numpy(TEXT.encode()).tolist(),
    "encode_batch": lambda tok: tok.encode_batch([TEXT[:900], TEXT], num_threads=2),
    "count": lambda tok: tok.count(TEXT),
    "decode": lambda tok: tok.decode(BASE.encode(TEXT), skip_special_tokens=True),
    "vocab": lambda tok: tok.model.vocab,
    "merges": lambda tok: tok.merges,
    "equality": lambda tok: (hash(tok), tok == BASE),
    "token_to_id": lambda tok: [tok.token_to_id(text) for text in ("<|pad|>", " the", "e", "no such token")],
    "model": lambda tok: (list(tok.model.tokens), list(tok.model.merges), tok.model.aliases),
}


def together(threads: int, call: Callable[[int], object]) -> list[object]:
    """Returns call(0), call(1), ..., which threads start at the same moment."""
    barrier = threading.Barrier(threads)

    def start(i: int) -> object:
        barrier.wait()
        return call(i)

    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(start, range(threads)))


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["gpt2", r"\p{L}+|\s+|[^\p{L}\s]+", CUSTOM], ids=["built in", "compiled", "regex"])
@pytest.mark.filterwarnings("ignore:.*does not compile")
def test_threads_that_make_the_same_thing_first(pattern: str) -> None:
    """Eight threads use a tokenizer that nobody has used before, all in the same way at the same moment."""
    expected = {name: use(fresh(pattern)) for name, use in USES.items()}
    for name, use in USES.items():
        tok = fresh(pattern)
        assert together(8, lambda _, tok=tok, use=use: use(tok)) == [expected[name]] * 8, name


def test_threads_take_and_return_the_same_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    """`encode_to_numpy` with threads reuses a few arrays. With small pieces, its threads take and return them often."""
    monkeypatch.setattr(encoding, "PIECE_BYTES", 64)
    monkeypatch.setattr(encoding, "data_pieces", partial(data_pieces, piece_bytes=64))
    data, tok = TEXT.encode(), fresh()
    expected = numpy.array(tok.encode(TEXT))
    old = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for _ in range(3):
            assert numpy.array_equal(tok.encode_to_numpy(data, num_threads=8), expected)
    finally:
        sys.setswitchinterval(old)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python has a GIL")
def test_the_extension_leaves_the_gil_off() -> None:
    assert not sys._is_gil_enabled()  # type: ignore[attr-defined,unused-ignore]
