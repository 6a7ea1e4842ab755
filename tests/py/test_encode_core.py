"""Encoding in C against the definition and against tiktoken."""

import random
from collections.abc import Iterator

import pytest
from core_encoder import CoreError, Encoder, Vocab
from gpt2 import EOT, EOT_ID, gpt2_tiktoken, gpt2_tokens_and_merges
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import encode as reference
from reference import pretok
from texts import chinese, english, mixed

from pybpe._core import ffi, lib

ALPHABETS = ["ab", "ab c", "abcdefg h", "aé ö", "中文字，", "я а", "a中\u0301 😀", "\u3040\u3041あいう ", "a’s "]


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


def expected(vocab: Vocab, words: list[bytes], merges: list[tuple[bytes, bytes]]) -> list[int]:
    ids = {token: id_ for id_, token in reversed(list(enumerate(vocab.tokens)))}
    return [ids[part] for word in words for part in reference.split(word, merges)]


@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("seed", range(6))
def test_trained_on_random_text(alphabet: str, seed: int) -> None:
    rng = random.Random(f"{alphabet}{seed}")
    text = random_text(rng, alphabet, 300)
    gpt2 = ffi.string(lib.pybpe_pattern_regex(lib.PYBPE_PATTERN_GPT2)).decode()
    # Trained on words, or on text without words, whose tokens cross all boundaries.
    train_on = pretok.words(gpt2, text.encode()) if seed % 2 else [text.encode()]
    merges = reference.train(train_on, rng.randint(1, 60))
    vocab = Vocab.from_merges(merges)
    encoder = Encoder(vocab)
    for _ in range(8):
        data = random_text(rng, alphabet, rng.choice([5, 30, 200])).encode()
        for sample in (data, hostile(rng, data)):
            want = expected(vocab, pretok.words(gpt2, sample), merges)
            assert encoder.encode(sample) == want
            assert encoder.encode(sample, id_bytes=2) == want
            assert encoder.encode_words([sample]) == expected(vocab, [sample], merges)
            assert vocab.decode(want) == sample


@given(st.data())
@settings(max_examples=150)
def test_any_merges_any_word(data: st.DataObject) -> None:
    """Merges in an order that no trainer makes, of tokens that are not characters, on bytes that are not text."""
    letters = st.sampled_from([bytes([byte]) for byte in b"ab\x80\xb8\xc3\xe4\xf0"])
    known = data.draw(st.lists(letters, min_size=2, max_size=4))
    merges: list[tuple[bytes, bytes]] = []
    for _ in range(data.draw(st.integers(0, 12))):
        pair = (data.draw(st.sampled_from(known)), data.draw(st.sampled_from(known)))
        if len(pair[0] + pair[1]) <= 12 and pair not in merges:
            merges.append(pair)
            known.append(pair[0] + pair[1])
    merges = data.draw(st.permutations(merges))
    vocab = Vocab.from_merges(merges)
    encoder = Encoder(vocab)
    words = data.draw(st.lists(st.lists(st.sampled_from(known), max_size=12).map(b"".join), max_size=5))
    assert encoder.encode_words(words) == expected(vocab, words, merges)


def test_words_given_by_the_caller() -> None:
    merges = [(b"a", b"b"), (b"ab", b"ab")]
    vocab = Vocab.from_merges(merges, pattern=lib.PYBPE_PATTERN_CUSTOM, custom=".+")
    encoder = Encoder(vocab)
    assert encoder.encode_words([b"abab", b"a", b"", b"b"]) == [257, ord("a"), ord("b")]
    with pytest.raises(CoreError, match="custom pattern") as caught:
        encoder.encode(b"abab")
    assert caught.value.code == lib.PYBPE_ERR_VALUE


# ---------------------------------------------------------------------------------------------------
# GPT-2


@pytest.fixture(scope="module")
def gpt2() -> Iterator[Encoder]:
    tokens, merges = gpt2_tokens_and_merges()
    yield Encoder(Vocab.new(tokens, merges, [EOT_ID], eot=EOT_ID))


def test_gpt2_worked(gpt2: Encoder) -> None:
    text = b"Hello, do you like tea? <|endoftext|> In the sunlit terracesof someunknownPlace."
    ids = "15496 11 466 345 588 8887 30 220 50256 554 262 4252 18250 8812 2114 1659 617 34680 27271 13"
    assert gpt2.encode(text, specials=True) == [int(id_) for id_ in ids.split()]
    assert gpt2.encode(text) == gpt2_tiktoken().encode_ordinary(text.decode())
    assert gpt2.encode(b"", specials=True) == []
    assert gpt2.encode(EOT.encode() * 2, specials=True) == [EOT_ID] * 2


@pytest.mark.parametrize("text", [english(), chinese(), mixed()], ids=["english", "chinese", "mixed"])
def test_gpt2_as_tiktoken(gpt2: Encoder, text: str) -> None:
    want = gpt2_tiktoken().encode_ordinary(text)
    data = text.encode()
    gpt2.forget()
    for _ in range(2):  # cold, then from the cache
        assert gpt2.encode(data) == want
        assert gpt2.encode(data, id_bytes=2) == want
    assert gpt2.vocab.decode(want) == data


def test_gpt2_pieces_of_text(gpt2: Encoder) -> None:
    """Short calls: every length, and every place where wide loads must not read past the end."""
    text = mixed()
    tiktoken = gpt2_tiktoken()
    rng = random.Random(5)
    for length in [*range(40), 100, 500] * 5:
        start = rng.randrange(len(text) - length)
        piece = text[start : start + length]
        assert gpt2.encode(piece.encode()) == tiktoken.encode_ordinary(piece)


def test_gpt2_every_token_alone(gpt2: Encoder) -> None:
    tokens, merges = gpt2_tokens_and_merges()
    del merges
    for id_, token in enumerate(tokens[:EOT_ID]):
        if b" " not in token[1:]:
            ids = gpt2.encode_words([token])
            assert gpt2.vocab.decode(ids) == token
            assert ids == [id_] or len(ids) > 1


def test_random_bytes_come_back(gpt2: Encoder) -> None:
    rng = random.Random(6)
    for length in [1, 2, 3, 15, 16, 17, 100, 1000, 20_000]:
        data = rng.randbytes(length)
        ids = gpt2.encode(data)
        assert gpt2.vocab.decode(ids) == data
        words = pretok.words(ffi.string(lib.pybpe_pattern_regex(lib.PYBPE_PATTERN_GPT2)).decode(), data)
        assert ids == [id_ for word in words for id_ in gpt2.encode_words([word])]


LONG = {
    "a": "a" * 200_000,
    "spaces": " " * 200_000,
    "newlines": "\n" * 200_000,
    "ab": "ab" * 100_000,
    "letters": "".join(random.Random(7).choices("abcdefghijklmnopqrstuvwxyz", k=20_000)),
    "mixed case": "".join(random.Random(8).choices("abcdefghijABCDEFGHIJ", k=20_000)),
    "digits": "".join(random.Random(9).choices("0123456789", k=20_000)),
    "english": "".join(c for c in english()[:60_000] if c.isalpha()),
    "chinese": "".join(c for c in chinese()[:40_000] if c.isalpha()),
    "punctuation": "!?" * 10_000,
    "emoji": "😀" * 10_000,
}


@pytest.mark.parametrize("name", LONG)
def test_gpt2_one_long_word(gpt2: Encoder, name: str) -> None:
    """tiktoken takes quadratic time on some of these, so it gets only a part; the rest must only round-trip."""
    text = LONG[name]
    part = text[:20_000]
    assert gpt2.encode(part.encode()) == gpt2_tiktoken().encode_ordinary(part)
    assert gpt2.vocab.decode(gpt2.encode(text.encode())) == text.encode()


def test_ids_that_do_not_fit() -> None:
    """A vocabulary of more than 65,536 tokens, whose last token is needed."""
    filler = [b"#" + n.to_bytes(3, "big") for n in range(66_000)]
    tokens = [bytes([byte]) for byte in range(256)] + filler + [b"xy"]
    encoder = Encoder(Vocab.new(tokens, [(b"x", b"y")]))
    assert encoder.encode(b"axy xy") == [ord("a"), 66_256, ord(" "), 66_256]
    assert encoder.encode(b"x y", id_bytes=2) == [ord("x"), ord(" "), ord("y")]
    with pytest.raises(CoreError, match="66256") as caught:
        encoder.encode(b"axy", id_bytes=2)
    assert caught.value.code == lib.PYBPE_ERR_LIMIT
