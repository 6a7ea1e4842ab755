"""The Tokenizer: encoding, decoding, specials, and its errors for bad input."""

import codecs
import copy
import os
import pickle
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import numpy
import pytest
from texts import chinese, english, mixed, random_bytes

import pybpe
from pybpe.tokenizer import decoding, encoding, of_model

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
BYTES = {i: bytes([i]) for i in range(256)}


@pytest.fixture(scope="module")
def small() -> pybpe.Tokenizer:
    return pybpe.train([english()[:100_000], chinese()[:20_000]].__iter__(), vocab_size=1500, special_tokens=SPECIALS)


# ------------------------------------------------------------------------------------------------------
# Every byte string comes back


def test_a_path_is_no_vocabulary() -> None:
    for arguments, message in (
        (("tok.json",), r"Tokenizer\.from_file\('tok.json'\)"),
        (({0: b"a"},), "merges: missing"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.Tokenizer(*arguments)


def test_any_bytes_round_trip(small: pybpe.Tokenizer) -> None:
    for seed in range(20):
        data = random_bytes(random.Random(seed).randint(0, 3000), seed)
        assert small.decode_bytes(small.encode(data)) == data
    every_pair = bytes(b for a in range(256) for c in range(256) for b in (a, c))
    assert small.decode_bytes(small.encode(every_pair)) == every_pair


# ------------------------------------------------------------------------------------------------------
# Special tokens


def test_of_overlapping_specials_the_longest_wins() -> None:
    tok = pybpe.Tokenizer(BYTES, [], ["<|eot|>", "<|eot|><|eot|>"])
    assert tok.encode("<|eot|><|eot|><|eot|>x") == [257, 256, ord("x")]


@pytest.mark.parametrize("made", [list, tuple, set, frozenset, iter])
def test_special_tokens_to_find_may_be_any_iterable(made: Callable[[list[str]], Any]) -> None:
    tok = pybpe.Tokenizer(BYTES, [], ["<a>", "<b>"])
    text = "x<a><b>"
    calls: list[Callable[..., Any]] = [
        *(partial(getattr(tok, name), text) for name in ("encode", "encode_to_numpy", "encode_with_offsets", "count")),
        partial(tok.encode_batch, [text]),
        partial(tok.encode_batch_to_numpy, [text]),
        partial(tok.encode_dropout, text, seed=1, dropout=0.5),
    ]
    for call in calls:
        assert repr(call(allowed_special=made(["<a>"]))) == repr(call(allowed_special={"<a>"}))
        assert repr(call(allowed_special=made([]))) == repr(call(allowed_special=()))
        with pytest.raises(pybpe.errors.ArgumentError, match="disallowed special token '<b>'"):
            call(disallowed_special=made(["<b>"]))
        assert repr(call(disallowed_special=made([]))) == repr(call())
    like = pybpe.train(iter(["ab"]), vocab_size=260, special_tokens=made(["<c>", "<d>"]), like=tok)
    assert set(like.special_tokens) == {"<a>", "<b>", "<c>", "<d>"}


# ------------------------------------------------------------------------------------------------------
# Construction


def test_a_tokenizer_of_parts() -> None:
    vocab = BYTES | {256: b"th", 257: b"the", 258: b"<|endoftext|>"}
    tok = pybpe.Tokenizer(vocab, [(b"t", b"h"), (b"th", b"e")], ["<|endoftext|>", "<|new|>"])
    assert tok.encode("the<|endoftext|><|new|>") == [257, 258, 259]
    assert len(tok) == tok.vocab_size == tok.vocab_size == 260
    assert tok.model.vocab == vocab | {259: b"<|new|>"}
    assert tok.merges == [(b"t", b"h"), (b"th", b"e")]
    assert tok.token_to_id("the") == 257 and tok.token_to_id("<|new|>") == 259 and tok.token_to_id("xyz") is None
    assert tok.id_to_token(257) == "the" and tok.decode_single_token_bytes(258) == b"<|endoftext|>"


# ------------------------------------------------------------------------------------------------------
# Decoding


@pytest.mark.parametrize("as_input", [list, tuple, iter, numpy.array])
def test_decode_skips_special_tokens(small: pybpe.Tokenizer, as_input: Callable[[list[int]], Any]) -> None:
    for text, shown in {"a中": "a中", "a<|im_start|>中<|im_end|>": "a中", "<|im_end|>": "", "": ""}.items():
        assert small.decode(as_input(small.encode(text)), skip_special_tokens=True) == shown
    for wrong in ([97, 10**6], [97, {}]):  # a dict has no hash
        with pytest.raises(pybpe.errors.UnknownIdError, match="is not an id"):
            small.decode(as_input(wrong), skip_special_tokens=True)


def test_streams_that_share_texts_return_the_same_as_decode(small: pybpe.Tokenizer) -> None:
    """A stream keeps the texts of tokens for others. Wrong ids are refused all the same."""
    rng = random.Random(3)
    shown = pybpe.tokenizer.of_model(replace(small.model, visible=frozenset(["<|im_end|>"])))
    ids = [*small.encode("a<|im_start|>中<|im_end|>"), *(rng.randrange(len(small)) for _ in range(3000))]
    for tok, skip in product((small, shown), (False, True, False, True)):
        stream = tok.decode_stream(skip_special_tokens=skip)
        parts = [stream.push(i if rng.random() < 0.5 else numpy.int64(i)) for i in ids]
        assert "".join(parts) + stream.flush() == tok.decode(ids, skip_special_tokens=skip)
        for wrong in (-1, len(small), 65.0, "a", None):
            with pytest.raises(pybpe.errors.ArgumentError, match="at position 0 is not an id"):
                stream.push(wrong)  # type: ignore[arg-type]


def test_handlers_of_errors_get_the_bytes_of_all_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    codecs.register_error("test-place", lambda error: (f"[{error.start} of {len(error.object)}]", error.end))
    monkeypatch.setattr(decoding, "CHUNK", 2)
    tok = pybpe.Tokenizer(BYTES, [])
    assert tok.decode([97] * 5 + [255], "test-place") == "aaaaa[5 of 6]"


@pytest.mark.parametrize("name", ["zzz", "xmlcharrefreplace", "a\0b", "\ud800", 5, None])
def test_an_unknown_handler_of_errors_is_refused(small: pybpe.Tokenizer, name: object) -> None:
    for decode in (
        lambda: small.decode([5], errors=name),
        lambda: small.decode_batch([[5]], errors=name),
        lambda: small.decode_stream(name),
        lambda: pybpe.DecodeStream(small, name),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match="errors must be"):
            decode()
    assert small.decode([small.token_to_id(b"\xe4")], errors="ignore") == ""


def test_token_to_id_of_a_special_token() -> None:
    tok = pybpe.Tokenizer(BYTES, [], ["<s>", "a"])
    assert tok.token_to_id("<s>") == tok.token_to_id(b"<s>") == 256
    assert (tok.token_to_id("a"), tok.token_to_id(b"a")) == (257, 97)


@pytest.mark.parametrize("step", [1, 7, 1 << 16])
def test_offsets_equal_their_definition(small: pybpe.Tokenizer, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Tests texts of every kind, and bytes that are not UTF-8: each lead byte or single byte counts as a character."""
    monkeypatch.setattr(encoding, "_STEP", step)
    texts = [mixed().encode()[3000:4000], chinese().encode()[:500], b"plain " * 9 + "é".encode() + b" plain" * 9]
    for data in [*texts, b"", b"\x80\x80a\xff", random_bytes(500, 1), *(t[1:-1] for t in texts)]:
        ids, byte_spans, char_spans = small.encode_with_offsets(data)
        ends = list(accumulate(len(small.decode_single_token_bytes(i)) for i in ids))
        assert byte_spans == list(zip([0, *ends], ends))
        counts = [0, *accumulate(not 0x80 <= byte < 0xC0 for byte in data)]  # characters that begin before each byte
        firsts = [max(0, counts[a] - (0x80 <= data[a] < 0xC0)) for a, _ in byte_spans]
        assert char_spans == [(first, counts[b]) for first, (_, b) in zip(firsts, byte_spans)]


# ------------------------------------------------------------------------------------------------------
# encode_iterable and patterns


def test_encode_iterable_is_lazy_and_equals_the_whole(small: pybpe.Tokenizer) -> None:
    taken = 0

    def lines():
        nonlocal taken
        while True:
            taken += 1
            yield "some words of a line, again and again\n"

    ids = small.encode_iterable(lines())
    first = [next(ids) for _ in range(1000)]
    assert taken < 2000
    assert first == small.encode("some words of a line, again and again\n" * 500)[:1000]
    text = mixed()[:20_000] + "<|endoftext|>" + chinese()[:5000]
    for size in (1, 7, 1000):
        pieces = [text[i : i + size] for i in range(0, len(text), size)]
        assert list(small.encode_iterable(pieces)) == small.encode(text)


def test_encode_iterable_joins_the_halves_of_a_character(small: pybpe.Tokenizer) -> None:
    """A str may end in the first half of a surrogate pair whose second half begins the next one."""
    high, low = "\ud83d", "\ude00"
    for texts in ([high, low], ["a" + high, low + "b"], [high, "", low], [high, high, low, low], [high], ["x", high]):
        assert list(small.encode_iterable(texts)) == small.encode("".join(texts)), texts
    rng = random.Random(3)
    for _ in range(300):
        texts = ["".join(rng.choices([high, low, "a", "😀", ""], k=rng.randrange(4))) for _ in range(6)]
        assert list(small.encode_iterable(texts)) == small.encode("".join(texts)), texts
    mixed_kinds = [high, b"", low, high, b"x", low]  # with bytes between them, they are not a pair
    assert small.decode(list(small.encode_iterable(mixed_kinds))) == "😀\ufffdx\ufffd"


@pytest.mark.filterwarnings("ignore:the pattern")
@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"\w*", "a|!|!|b| | |xab|-"),  # as Hugging Face's Split with "isolated" cuts
        (r"(?<=a)", "a|!!b  xa|b-"),
        (r"\b", "a|!!|b|  |xab|-"),
        (r"a*?", "a|!|!|b| | |x|a|b|-"),
        (r"(?<=\Kxa)b|\w", "a|!!|b|  |x|a|b|-"),  # its last match begins before the previous one ends
    ],
)
def test_a_pattern_may_match_nothing(pattern: str, words: str) -> None:
    text, expected = "a!!b  xab-", words.split("|")
    assert pybpe.count_words(iter([text]), pattern=pattern).to_dict() == Counter(word.encode() for word in expected)
    tok = pybpe.Tokenizer(BYTES | {256: b"xa", 257: b"xab"}, [(b"x", b"a"), (b"xa", b"b")], pattern=pattern)
    assert tok.encode(text) == [i for word in expected for i in tok.encode(word)]
    assert tok.decode(tok.encode_to_numpy(text * 50)) == text * 50


def test_parts_are_not_read_from_memory_that_is_free(tmp_path: Path) -> None:
    """With these settings, the C library of Linux fills memory when it becomes free."""
    pybpe.train(iter([english()[:3000]]), vocab_size=300).save(tmp_path / "tok.json")
    code = """
import sys, pybpe
tok = pybpe.Tokenizer.from_file(sys.argv[1])
assert [tok.decode_single_token_bytes(i) for i in range(300)] == list(tok.model.tokens) and len(tok.merges) == 44
"""
    filling = {"PYTHONMALLOC": "malloc", "MALLOC_PERTURB_": "165", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    subprocess.run([sys.executable, "-c", code, tmp_path / "tok.json"], env={**os.environ, **filling}, check=True)


# ------------------------------------------------------------------------------------------------------
# Copies and equality


def used(tok: pybpe.Tokenizer) -> None:
    """Makes everything that a tokenizer makes at the first use."""
    (
        tok.encode("a b" * 10, allowed_special={"<|endoftext|>"}),
        tok.encode_to_numpy("a"),
        tok.encode_dropout("a", seed=1, dropout=0.5),
    )
    (
        tok.decode([1, 2], skip_special_tokens=True),
        tok.decode_stream().push(5),
        tok.token_to_id("a"),
        hash(tok),
        tok.merges,
    )
    model = tok.model
    (
        list(model.tokens),
        list(model.merges),
        model.vocab,
        model.dtype,
        model.aliases,
        model.hidden_ids,
        model.changes_text,
    )


@pytest.mark.parametrize("loaded", [False, True])
def test_a_pickle_does_not_depend_on_earlier_calls(small: pybpe.Tokenizer, tmp_path: Path, loaded: bool) -> None:
    tok = pybpe.Tokenizer(small.model.vocab, small.merges, small.special_tokens)
    if loaded:
        tok.save(tmp_path / "tok.json")
        tok = pybpe.Tokenizer.from_file(tmp_path / "tok.json")
    before = pickle.dumps(tok)
    used(tok)
    assert pickle.dumps(tok) == before
    used(pickle.loads(before))


class Named(pybpe.Tokenizer):
    name = "unnamed"


def test_copies_of_a_subclass(small: pybpe.Tokenizer, tmp_path: Path) -> None:
    small.save(tmp_path / "tok.json")
    tok = Named.from_file(tmp_path / "tok.json")
    assert isinstance(tok, Named)
    tok.name = "mine"
    used(tok)
    copies = [pickle.loads(pickle.dumps(tok)), copy.copy(tok), copy.deepcopy(tok)]
    for made in [*copies, tok.replace(dropout=0.0), tok.prune(vocab_size=300), tok.extend(["<|new|>"])]:
        assert type(made) is Named and made.name == "mine" and made.encode("a") == tok.encode("a")


def test_settings_without_an_effect_do_not_make_a_difference(small: pybpe.Tokenizer) -> None:
    whole = of_model(replace(small.model, whole_words=True))
    assert not whole.model.unreached()
    for same in (whole, small.replace(template="$A")):
        assert same == small and hash(same) == hash(small)
    unreached = pybpe.Tokenizer(small.model.vocab | {len(small): b"zq"}, small.merges, small.special_tokens)
    assert of_model(replace(unreached.model, whole_words=True)) != unreached
    assert small.replace(template="<|im_start|> $A") != small
