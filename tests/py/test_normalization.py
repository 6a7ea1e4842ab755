"""A tokenizer's normalizer goes with it: training, encoding and files cannot disagree about it."""

import inspect
import unicodedata
from pathlib import Path

import pytest

import pybpe

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
        tok.normalizer = None  # type: ignore[misc]
    counts = pybpe.count_words(iter([COMPOSED]), special_tokens=SPECIALS, normalizer="NFC")
    assert pybpe.train(None, counts=counts, vocab_size=300).normalizer == "NFC"  # type: ignore[arg-type]
    with pytest.raises(pybpe.ArgumentError, match="that of the base or the counts, 'NFC'"):
        pybpe.train(None, counts=counts, vocab_size=300, normalizer="NFKC")  # type: ignore[arg-type]
    with pytest.raises(pybpe.ArgumentError, match="that of the base or the counts, 'NFC'"):
        pybpe.train(iter([COMPOSED]), base=tok, vocab_size=400, normalizer="NFKC")
    others = pybpe.count_words(iter([COMPOSED]), special_tokens=SPECIALS)
    with pytest.raises(pybpe.ArgumentError, match="another pattern or normalizer"):
        pybpe.train(None, counts=others, base=tok, vocab_size=400)  # type: ignore[arg-type]


@pytest.mark.parametrize("form", [None, "NFC", "NFKC"])
@pytest.mark.parametrize("name", ["tok.json", "tok.bin"])
def test_files_keep_it(form: str | None, name: str, tmp_path: Path) -> None:
    tok = train(COMPOSED, form)
    tok.export(tmp_path / name, Path(name).suffix[1:])
    again = pybpe.Tokenizer.from_file(tmp_path / name)
    assert again.normalizer == form
    assert again.encode(decomposed(COMPOSED)) == tok.encode(decomposed(COMPOSED))


def test_formats_that_cannot_hold_it_refuse(tmp_path: Path) -> None:
    tok = train(COMPOSED, "NFC")
    for form in ("files", "tiktoken"):
        with pytest.raises(pybpe.Error, match="NFC"):
            tok.export(tmp_path / form, form)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_the_c_library_says_what_it_needs() -> None:
    """pybpe_vocab_get_spec; that the drop-in header for llm.c refuses such texts is in test_llmc_headers.py."""
    for form in (None, "NFC", "NFKC"):
        assert train(COMPOSED, form).model.to_vocab().normalizer == form
