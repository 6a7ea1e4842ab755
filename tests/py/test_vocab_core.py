"""Vocabularies and tokenizer.bin in C, on GPT-2's and on random ones."""

import codecs
import random
import struct
from pathlib import Path

import pytest
from core_encoder import NULL, CoreError, Vocab, check, make_spec
from gpt2 import EOT_ID, gpt2_tokens_and_merges
from hypothesis import given
from hypothesis import strategies as st
from reference import encode as reference
from texts import mixed

import pybpe
from pybpe import _binding
from pybpe._binding.core import Strings
from pybpe._core import ffi, lib
from pybpe.pattern import Pattern


def llmc_file(tokens: list[bytes], version: int, eot: int) -> bytes:
    """Returns a tokenizer.bin like those of llm.c's train_gpt2.py."""
    header = struct.pack("<256i", 20240328, version, len(tokens), eot, *[0] * 252)
    return header + b"".join(bytes([len(token)]) + token for token in tokens)


def recovered(tokens: list[bytes]) -> list[tuple[bytes, bytes]]:
    spec, _alive = make_spec(tokens)
    out, count, err = ffi.new("uint32_t[]", 2 * len(tokens)), ffi.new("size_t *"), ffi.new("pybpe_error *")
    check(lib.pybpe_vocab_recover_merges(spec, out, count, NULL, err), err)
    return [(tokens[out[2 * i]], tokens[out[2 * i + 1]]) for i in range(count[0])]


@pytest.mark.parametrize("version", [1, 2])
def test_gpt2s_merges_from_the_order_of_ids(version: int) -> None:
    tokens, merges = gpt2_tokens_and_merges()
    vocab = Vocab.load(llmc_file(tokens, version, EOT_ID if version == 2 else 0))
    assert vocab.tokens == tokens
    assert vocab.merges == merges
    assert vocab.spec.eot_id == EOT_ID
    assert [vocab.spec.specials[i] for i in range(vocab.spec.specials_count)] == [EOT_ID]
    assert vocab.spec.pattern == lib.PYBPE_PATTERN_GPT2


@pytest.mark.parametrize("seed", range(8))
def test_recovery_against_the_definition(seed: int) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choices(["ab", "cab", "dé", "中文", " a"], k=80)).encode()
    merges = reference.train([text], 40)
    tokens = [left + right for left, right in merges]
    extra = [rng.randbytes(rng.randint(2, 90)) for _ in range(10)]
    tokens = list(dict.fromkeys(tokens + extra))
    if seed % 2:
        rng.shuffle(tokens)
    every = [bytes([byte]) for byte in range(256)] + tokens
    assert recovered(every) == reference.recover(every)


def test_gpt2_there_and_back(tmp_path: Path) -> None:
    tokens, merges = gpt2_tokens_and_merges()
    vocab = Vocab.new(tokens, merges, [EOT_ID], eot=EOT_ID)
    path = tmp_path / "tokenizer.bin"
    vocab.save(path)
    data = path.read_bytes()
    plain = llmc_file(tokens, 2, EOT_ID)
    assert data[:16] == plain[:16] and data[1024 : len(plain)] == plain[1024:], "what llm.c reads"
    again = Vocab.load(data)
    assert (again.tokens, again.merges) == (tokens, merges)
    assert [p.name for p in tmp_path.iterdir()] == ["tokenizer.bin"]


@given(st.binary(max_size=64), st.integers(0, 600), st.integers(0, 1500), st.booleans())
def test_any_bytes_give_a_vocabulary_or_an_error(junk: bytes, at: int, cut: int, foreign: bool) -> None:
    """The test overwrites a valid file with junk and truncates it. The reader never crashes; every error has an offset
    inside the file."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b"abc", b"<|e|>"]
    data = bytearray(llmc_file(tokens, 2, 258))
    if not foreign:
        data[16:20] = b"PYBP"
    at = (at * 37) % len(data)
    data[at : at + len(junk)] = junk
    damaged = bytes(data[: len(data) - cut]) if cut % 3 == 0 else bytes(data)
    try:
        vocab = Vocab.load(damaged)
    except CoreError as error:
        assert error.code == lib.PYBPE_ERR_FORMAT
        assert error.offset <= len(damaged)
        assert str(error)
    else:
        assert vocab.decode(range(256)) is not None


def test_decoding_refuses_what_is_no_id() -> None:
    vocab = Vocab.new([bytes([byte]) for byte in range(256)] + [b""])
    for bad in (256, 257, 2**32 - 1):
        with pytest.raises(CoreError, match=str(bad)) as caught:
            vocab.decode([65, 66, bad])
        assert caught.value.code == lib.PYBPE_ERR_VALUE
        assert caught.value.offset == 2


@given(st.text(max_size=20), st.binary(max_size=4))
def test_complete_prefix(text: str, tail: bytes) -> None:
    """The part cut off can still become a character, and the part kept cannot wait for more."""
    data = text.encode() + tail
    n = lib.pybpe_utf8_complete(data, len(data))
    assert len(data) - 3 <= n <= len(data)
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    assert decoder.getstate()[0] == data[n:]


@pytest.mark.parametrize("tie_break", ["lexicographic", "huggingface"])
@pytest.mark.parametrize(("special_ids", "number"), [("first", 0), ("after_bytes", 1), ("last", 2)])
def test_a_trainers_vocabulary_is_that_of_pythons_train(tie_break: str, special_ids: str, number: int) -> None:
    specials = ["<|endoftext|>", "a", "中"]
    tok = pybpe.train(
        iter([mixed()[:20_000]]),
        vocab_size=500,
        special_tokens=specials,
        special_ids=special_ids,
        tie_break=tie_break,
        max_token_length=16,
    )
    counter = _binding.Counter(Pattern("gpt2").pretok, _binding.Specials({text: 0 for text in specials}))
    counter.add(mixed()[:20_000].encode())
    trainer = _binding.Trainer(
        counter.export(), vocab_size=500 - 3, max_token_length=16, min_frequency=0, tie_break=tie_break
    )
    while not trainer.step(1 << 20):
        pass
    strings = Strings([text.encode() for text in specials])
    layout, out, err = ffi.new("pybpe_vocab_layout *"), ffi.new("pybpe_vocab **"), ffi.new("pybpe_error *")
    layout.specials, layout.special_ids, layout.eot = strings.c[0], number, 0
    layout.pattern = lib.PYBPE_PATTERN_GPT2
    check(lib.pybpe_trainer_vocab(out, trainer.c, layout, NULL, err), err)
    made, wanted = _binding.Vocab(ffi.gc(out[0], lib.pybpe_vocab_free)), tok.model.to_vocab()
    assert list(map(bytes, made.packed())) == list(map(bytes, wanted.packed()))
    assert made.specials() == wanted.specials() and made.eot_id == wanted.eot_id
