"""A normalizer belongs to its tokenizer: training, encoding and files always use the same one."""

import inspect
import random
import sys
import unicodedata
from pathlib import Path

import pytest
import regex
from corpora import tokens_of
from reference.normalization import normalized

import pybpe
from pybpe._core import ffi, lib
from pybpe.pattern import Pattern
from pybpe.reading.pieces import cutter

COMPOSED = "Caf\u00e9 au lait, d\u00e9j\u00e0 vu \u00fcber ﬁne ｆｕｌｌ <|endoftext|> na\u00efve "
SPECIALS = ["<|endoftext|>"]


def decomposed(text: str) -> str:
    result = unicodedata.normalize("NFD", text)
    assert result != text
    return result


def train(text: str, normalizer: str | None, **more: object) -> pybpe.Tokenizer:
    return pybpe.train(iter([text * 20]), vocab_size=320, special_tokens=SPECIALS, normalizer=normalizer, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_training_sees_the_normalised_text(form: str) -> None:
    tok = train(decomposed(COMPOSED), form)
    assert tok.merges == train(unicodedata.normalize(form, COMPOSED), None).merges
    assert tok.merges != train(decomposed(COMPOSED), None).merges


@pytest.mark.parametrize("form", ["NFC", "NFKC"])
def test_every_way_of_encoding_normalises(form: str) -> None:
    tok = train(COMPOSED, form)
    text = decomposed(COMPOSED)
    ids = tok.encode(unicodedata.normalize(form, COMPOSED))
    assert tok.encode(text) == ids == tok.encode(text.encode())
    assert tok.encode_to_numpy(text).tolist() == ids
    assert tok.encode_batch([text, text]) == [ids, ids]
    flat, ends = tok.encode_batch_to_numpy([text, text])
    assert flat.tolist() == ids + ids
    assert list(tok.encode_iterable([text[:40], text[40:]])) == ids
    assert tok.encode_with_offsets(text).ids == ids
    assert tok.count(text) == len(ids)
    assert tok.encode_ordinary(text) == tok.encode_ordinary(COMPOSED)


def test_no_call_takes_another_normalizer() -> None:
    tok = train(COMPOSED, "NFC")
    for name in dir(tok):
        if name.startswith(("encode", "count", "with_", "extend", "prune")) and callable(getattr(tok, name)):
            assert "normalizer" not in inspect.signature(getattr(tok, name)).parameters
    with pytest.raises(AttributeError):
        tok.model.normalizer = None  # type: ignore[misc]
    counts = pybpe.count_words(iter([COMPOSED]), special_tokens=SPECIALS, normalizer="NFC")
    assert pybpe.train(None, counts=counts, vocab_size=300).model.normalizer == "NFC"  # type: ignore[arg-type]
    with pytest.raises(pybpe.errors.ArgumentError, match="the base or the counts already have 'NFC'"):
        pybpe.train(None, counts=counts, vocab_size=300, normalizer="NFKC")  # type: ignore[arg-type]
    with pytest.raises(pybpe.errors.ArgumentError, match="the base or the counts already have 'NFC'"):
        pybpe.train(iter([COMPOSED]), base=tok, vocab_size=400, normalizer="NFKC")
    others = pybpe.count_words(iter([COMPOSED]), special_tokens=SPECIALS)
    with pytest.raises(pybpe.errors.ArgumentError, match="a different pattern or normalizer"):
        pybpe.train(None, counts=others, base=tok, vocab_size=400)  # type: ignore[arg-type]


def test_the_c_library_says_what_it_needs() -> None:
    """It makes no encoder that would give wrong ids. (test_llmc_headers.py tests the drop-in header for llm.c.)"""
    for form in (None, "NFC", "NFKC"):
        vocab, out = train(COMPOSED, form).model.to_vocab(), ffi.new("pybpe_encoder **")
        assert vocab.normalizer == form
        code = lib.pybpe_encoder_new(out, vocab.c, ffi.NULL, ffi.NULL)
        lib.pybpe_encoder_free(out[0])
        assert code == (lib.PYBPE_OK if form is None else lib.PYBPE_ERR_VALUE)


def check_cuts(text: str, form: str, pattern: Pattern, at_least: int = 0) -> None:
    """If each side of a cut is normalized separately, their words are those of the normalized text."""

    def words(part: bytes) -> list[str]:
        return regex.findall(pattern.regex, normalized(part, form).decode())

    data, whole, cuts = text.encode(), words(text.encode()), set()
    cut = cutter(pattern, None, form)
    for start in range(1, len(data)):
        at = cut(data, start)
        if at not in cuts:
            cuts.add(at)
            assert words(data[:at]) + words(data[at:]) == whole, (form, pattern, at, ascii(text))
    assert len(cuts) > at_least


@pytest.mark.slow
@pytest.mark.parametrize("form", ["NFC", "NFKC"])
@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k", "llama3", "qwen2"])
def test_normalising_does_not_notice_cuts(form: str, name: str) -> None:
    """Tests random texts of characters that compose, decompose, are reordered, or become characters of another kind."""
    rng = random.Random(f"{form} {name}")
    pattern = Pattern(name)
    changed = [c for c in map(chr, range(0x80, sys.maxunicode + 1)) if unicodedata.normalize("NFKC", c) != c]
    rare = (
        "\u0338\u0323\u0307\u0301\u3099\u1161\u11a8\u1100\ub098<>'\u2019\uff07\u2120"
        "\u3392\u2026\u00b4\u00bd\u2003\u00a0\u2028\u1e9b\u30fd"
    )
    for _ in range(3000):
        alphabet = ["a", "Z", "1", ".", " ", "\n", "\u4e2d", "\u3002", *rng.sample(rare, 4), *rng.sample(changed, 4)]
        check_cuts("".join(rng.choices(alphabet, k=12)), form, pattern)


def test_chinese_can_be_cut_although_it_is_normalised() -> None:
    check_cuts("\u5929\u4e0b\u3002\n\u5206\u4e45\uff0c\u5fc5\u5408\u3002", "NFC", Pattern("gpt2"), at_least=3)


@pytest.mark.slow
def test_cutting_a_corpus_changes_no_id(tmp_path: Path) -> None:
    """NFKC joins a letter and a symbol such as \u2120 into one word; otherwise text could be cut between them."""
    path = tmp_path / "marks.txt"
    path.write_text("".join(random.Random(4).choices(["a\u2120", "b\u2120", " "], [9, 9, 1], k=700_000)))
    tok = pybpe.train(path, vocab_size=290, special_tokens=SPECIALS, normalizer="NFKC")
    normalised = unicodedata.normalize("NFKC", path.read_text())
    plain = pybpe.train(iter([normalised]), vocab_size=290, special_tokens=SPECIALS)
    assert tok.merges == plain.merges
    pybpe.binarize(tok, path, tmp_path / "out", splits=(1,), eot="none")
    assert tokens_of(tmp_path / "out", "train") == tok.encode(path.read_text()) == plain.encode(normalised)
