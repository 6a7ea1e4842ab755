"""pybpe's Encoding does what tiktoken's does, and does the work itself."""

import copy
import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy
import pytest
import tiktoken
from gpt2 import EOT, gpt2_tokenizer
from texts import CORNER_TEXTS, english, mixed

import pybpe
from pybpe.like_tiktoken import Encoding


def trained(specials: list[str]) -> pybpe.Tokenizer:
    return pybpe.train(iter([english()[:20_000]]), vocab_size=600, special_tokens=specials, pattern="cl100k")


TOKENIZERS: dict[str, Callable[[], pybpe.Tokenizer]] = {
    "gpt2": gpt2_tokenizer,
    "several": lambda: trained([EOT, "<|pad|>", "<|user|>"]),
    "no common beginning": lambda: trained([EOT, "[pad]"]),
    "none": lambda: trained([]),
}


@pytest.fixture(scope="module", params=TOKENIZERS)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def ours(name: str) -> Encoding:
    return Encoding(TOKENIZERS[name](), name)


@pytest.fixture(scope="module")
def theirs(name: str, ours: Encoding) -> tiktoken.Encoding:
    return TOKENIZERS[name]().to_tiktoken(name)


TEXTS = [
    *CORNER_TEXTS,
    mixed()[:2000],
    "<",
    "<|",
    EOT[:-1],
    EOT,
    f"a {EOT}<|pad|>b[pad]",
    "\ud800",
    "\ud83d\ude00 \udc00",
]
ALLOWED: list[Any] = [set(), "all", {EOT}, frozenset({EOT, "nope"}), [EOT], 5]
DISALLOWED: list[Any] = ["all", (), {EOT}, [EOT], {"b"}, "ab", 5]


def outcome(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Returns the result of a call, with its types, or the error."""
    try:
        found = call(*args, **options)
    except Exception as error:
        return type(error), str(error)
    if isinstance(found, numpy.ndarray):
        return found.dtype, found.tolist()
    return type(found), found


def same(ours: Encoding, theirs: tiktoken.Encoding, method: str, *args: Any, **options: Any) -> None:
    assert outcome(getattr(ours, method), *args, **options) == outcome(getattr(theirs, method), *args, **options), (
        f"{method}{args!r:.200} {options}"
    )


def test_encoding(ours: Encoding, theirs: tiktoken.Encoding) -> None:
    for text in [*TEXTS, b"a", None, 5]:
        same(ours, theirs, "encode_ordinary", text)
        for method in ("encode", "encode_to_numpy"):
            same(ours, theirs, method, text)
    few = [EOT, f"a {EOT}<|pad|>b[pad]", "<|b", "ab", "\ud800", "", None]
    for text, allowed, disallowed in product(few, ALLOWED, DISALLOWED):
        for method in ("encode", "encode_to_numpy"):
            same(ours, theirs, method, text, allowed_special=allowed, disallowed_special=disallowed)


def test_batches(ours: Encoding, theirs: tiktoken.Encoding) -> None:
    ordinary = [text for text in TEXTS if "<|" not in text and "[pad]" not in text]
    for batch in (ordinary, TEXTS, [], "ab", [EOT, None], ["a", b"b"], None, 5):
        same(ours, theirs, "encode_ordinary_batch", batch)
        same(ours, theirs, "encode_batch", batch)
        same(ours, theirs, "encode_batch", batch, allowed_special="all", num_threads=2)
        same(ours, theirs, "encode_batch", batch, allowed_special={EOT}, disallowed_special=())
    for threads in (0, -1, 1.5, None):
        same(ours, theirs, "encode_batch", ["a", "b"], num_threads=threads)


def test_special_tokens_in_iterators(ours: Encoding, theirs: tiktoken.Encoding) -> None:
    """Only one of the two libraries can read an iterator, and both must see a forbidden token."""
    for method, text in (("encode", EOT), ("encode_to_numpy", EOT), ("encode_batch", [EOT, "a"])):
        for options in ({"allowed_special": "all"}, {}, {"nope": 1}):
            results = [
                outcome(getattr(each, method), text, disallowed_special=iter([EOT]), **options)
                for each in (ours, theirs)
            ]
            assert results[0] == results[1] and issubclass(results[0][0], (ValueError, TypeError))


def test_decoding(ours: Encoding, theirs: tiktoken.Encoding) -> None:
    ids = theirs.encode(mixed()[:2000], disallowed_special=())
    last = theirs.max_token_value
    rows: list[Any] = [ids, tuple(ids), numpy.array(ids), numpy.array(ids, "uint16")[::2], [last], [128, 200], []]
    rows += [range(3), [last + 1], [-1], [1 << 40], [1.0], ["a"], [None], [True], [numpy.int64(3)], numpy.array([[1]])]
    rows += [b"ab", "ab", "", {1}, iter([1]), None, 5]
    for row in rows:
        for method in ("decode", "decode_bytes", "decode_tokens_bytes", "decode_with_offsets"):
            if not hasattr(row, "__next__"):
                same(ours, theirs, method, row)
    for errors in ("strict", "ignore", "nope"):
        for row in ([128, 200], ids):
            same(ours, theirs, "decode", row, errors)
            same(ours, theirs, "decode_batch", [row, row], errors=errors)
    for batch in ([ids, [], (3, 4)], numpy.array([[1, 2], [3, 4]]), [[last + 1]], [{1}], [5], [], None):
        same(ours, theirs, "decode_batch", batch)
        same(ours, theirs, "decode_bytes_batch", batch, num_threads=2)


def test_the_rest_is_tiktokens(ours: Encoding, theirs: tiktoken.Encoding) -> None:
    assert isinstance(ours, tiktoken.Encoding) and repr(ours) == repr(theirs)
    assert {name for name in dir(theirs) if name not in dir(ours)} == set()
    for name in ("name", "n_vocab", "max_token_value", "special_tokens_set", "eot_token"):
        assert outcome(getattr, ours, name) == outcome(getattr, theirs, name)
    same(ours, theirs, "token_byte_values")
    stable, completions = ours.encode_with_unstable("some te")
    assert (stable, sorted(completions)) == (lambda ids, more: (ids, sorted(more)))(
        *theirs.encode_with_unstable("some te")
    )
    for token in ("a", b"a", "\xff", EOT, "qqqq", 5):
        same(ours, theirs, "encode_single_token", token)
    for i in (0, ours.n_vocab - 1, ours.n_vocab, -1, "a"):
        same(ours, theirs, "decode_single_token_bytes", i)
        same(ours, theirs, "is_special_token", i)


def test_pybpe_does_the_work(ours: Encoding, theirs: tiktoken.Encoding) -> None:
    ids, part = theirs.encode("some text, and more"), copy.copy(ours)
    part._core_bpe = None  # tiktoken's
    assert part.encode("some text, and more", disallowed_special=()) == ids
    assert part.encode_batch(["some text, and more"] * 2) == part.encode_ordinary_batch(["some text, and more"] * 2)
    assert part.encode_to_numpy("some text, and more").tolist() == ids
    assert part.decode(ids) == part.decode_batch([ids])[0] == part.decode_bytes(ids).decode() == "some text, and more"


def test_copies(ours: Encoding, theirs: tiktoken.Encoding) -> None:
    for again in (pickle.loads(pickle.dumps(ours)), copy.deepcopy(ours)):
        assert isinstance(again, Encoding) and again.name == ours.name
        assert again.encode(EOT, allowed_special="all") == theirs.encode(EOT, allowed_special="all")


def test_what_tiktoken_cannot_hold_is_refused() -> None:
    with pytest.raises(pybpe.errors.UnsupportedError, match="NFC"):
        Encoding(pybpe.train(iter(["a"]), vocab_size=256, normalizer="NFC"))
    with pytest.raises(pybpe.errors.ArgumentError, match="tokenizer must be a Tokenizer"):
        Encoding("gpt2")  # type: ignore[arg-type]
