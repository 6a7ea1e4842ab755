"""Vocabularies in which some bytes have no token, as Hugging Face's trainer makes them without initial_alphabet: the
same ids, and an error where that library drops bytes."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from test_added_tokens import BYTE_LEVEL, added
from tokenizers import decoders, models, pre_tokenizers, trainers

import pybpe
from pybpe import byte_level
from pybpe.formats import tokenizer_json

CORPUS = ["hello world, hello hell: low é 中文 中", "the lower the hello", "wérld"] * 3


def trained(corpus: list[str] = CORPUS, unk: str | None = None) -> Any:
    """Trains a tokenizer as most tutorials do."""
    tokenizer = tokenizers.Tokenizer(models.BPE(unk_token=unk))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    specials = [*([unk] if unk else []), "<s>", "<ü>"]
    tokenizer.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=90, special_tokens=specials))
    return tokenizer


def test_texts_that_need_no_such_byte_have_hugging_faces_ids(tmp_path: Path) -> None:
    theirs = trained()
    theirs.save(str(tmp_path / "t.json"))
    ours = pybpe.Tokenizer.from_file(tmp_path / "t.json")
    assert ours == pybpe.Tokenizer.from_hf(theirs) and 0 in ours.model.lacking_bytes
    lacking = set(ours.model.lacking_bytes)
    rng = random.Random(1)
    pieces = ["hello", " world", "low", " é", "中", "文", "<s>", "<ü>", " the", "x", "ü", "\x00", "é", "w", "\u3000"]
    read = 0
    for _ in range(1500):
        text = "".join(rng.choices(pieces[:9] + pieces[12:14], k=rng.randrange(8)))
        if rng.random() < 0.4:
            text += rng.choice(pieces) + rng.choice(("hello", "<s>hello", "<ü> low<s>"))
        ids = theirs.encode(text).ids
        if lacking.isdisjoint(text.replace("<s>", "").replace("<ü>", "").encode()):
            read += 1
            assert ours.encode(text) == ids and ours.count(text) == len(ids)
            assert ours.encode_to_numpy(text).tolist() == ids
        else:
            for call in (ours.encode, ours.count, ours.encode_to_numpy, lambda text: ours.encode_batch([text])):
                with pytest.raises(pybpe.errors.ArgumentError, match="for which this vocabulary has no token"):
                    call(text)
    assert 700 < read < 1400


def test_the_error_names_the_byte_and_leaves_the_tokenizer_as_it_was() -> None:
    ours = pybpe.Tokenizer.from_hf(trained())
    before = ours.encode("hello world")
    for bad, byte in (("xyz", 0x78), ("hello \x00", 0), ("hello" * 50 + "Z" * 100, 0x5A), ("é" * 40 + "ü", 0xBC)):
        with pytest.raises(pybpe.errors.ArgumentError, match=f"the byte 0x{byte:02X}, .*initial_alphabet"):
            ours.encode(bad)
        assert ours.encode("hello world") == before
    assert ours.encode("<ü>") == [ours.special_tokens["<ü>"]]
    with pytest.raises(pybpe.errors.ArgumentError, match="0x3C"):
        ours.encode_ordinary("<ü>")
    with pytest.raises(pybpe.errors.ArgumentError, match="0x78"):
        list(ours.encode_iterable(["hello ", "x"]))


def test_long_texts_and_long_words() -> None:
    theirs = trained()
    ours = pybpe.Tokenizer.from_hf(theirs)
    for text in ("hello" * 200_000, "hello world " * 100_000, "中文é" * 50_000):
        assert ours.encode(text) == theirs.encode(text).ids
        with pytest.raises(pybpe.errors.ArgumentError, match="0x78"):
            ours.encode(text + "x")


def test_other_patterns_and_normalizers() -> None:
    data = json.loads(trained(["a b ab é"]).to_str())
    data["normalizer"] = {"type": "NFC"}
    theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
    ours = pybpe.Tokenizer.from_hf(theirs)
    assert ours.encode("ab e\u0301") == theirs.encode("ab é").ids
    with pytest.raises(pybpe.errors.ArgumentError, match="0x65"):
        ours.encode("ab e")
    custom = pybpe.Tokenizer.from_hf(theirs, pattern=r" ?\w+|\W")
    assert custom.encode("a b") == theirs.encode("a b").ids
    with pytest.raises(pybpe.errors.ArgumentError, match="0x65"):
        custom.encode("a e")


def test_words_that_are_taken_whole_need_no_bytes() -> None:
    vocab = {"a": 0, "b": 1, "ab": 2, "xy": 3, "xyz": 4, "Ġ": 5}
    for ignore_merges in (True, False):
        data = {
            "version": "1.0",
            "added_tokens": [added(6, "<s>")],
            "pre_tokenizer": BYTE_LEVEL,
            "decoder": BYTE_LEVEL,
            "model": {"type": "BPE", "vocab": vocab, "merges": ["a b"], "ignore_merges": ignore_merges},
        }
        theirs = tokenizers.Tokenizer.from_str(json.dumps(data))
        ours = pybpe.Tokenizer.from_hf(theirs)
        assert ours.model.unreached() == [3, 4]
        assert ours.encode("ab ab<s>") == theirs.encode("ab ab<s>").ids
        if ignore_merges:
            assert ours.encode("xy<s>xyz<s>ab") == theirs.encode("xy<s>xyz<s>ab").ids
        for text in ("xyxy", "ab x", "xy x", "x"):
            with pytest.raises(pybpe.errors.ArgumentError, match="0x78"):
                ours.encode(text)


def test_what_can_be_done_with_them(tmp_path: Path) -> None:
    theirs = trained(unk="[UNK]")
    ours = pybpe.Tokenizer.from_hf(theirs)
    for name in ("t.json", "folder"):
        ours.save(tmp_path / name)
        assert pybpe.Tokenizer.from_file(tmp_path / name) == ours
    ours.save(tmp_path / "files", "files")
    again = pybpe.Tokenizer.from_file(tmp_path / "files/vocab.json", special_tokens=ours.special_tokens)
    assert again.encode("hello<s>") == ours.encode("hello<s>")
    for text in ("hello xyz", "zz<s>"):  # Hugging Face treats other bytes as it does with its own file
        assert ours.to_hf().encode(text).ids == theirs.encode(text).ids
    small = ours.prune([ours.encode("hello")[0]])
    assert small.vocab_size < ours.vocab_size and len(small.encode("hello")) == 1
    assert ours.prune(vocab_size=ours.vocab_size - 1).encode("low")
    with pytest.raises(pybpe.errors.LimitError, match=r"t\.bin: no token is the single byte 0x00"):
        ours.save(tmp_path / "t.bin")
    with pytest.raises(pybpe.errors.UnsupportedError, match="a token for each byte; this tokenizer lacks"):
        ours.to_tiktoken()
    with pytest.raises(pybpe.errors.ArgumentError, match="base: there is no token for the byte 0x00"):
        ours.extend((), iter(["hello"]), vocab_size=200)
    with pytest.raises(pybpe.errors.ArgumentError, match="there is no token for the byte 0x00"):
        pybpe.Tokenizer(ours.model.vocab, ours.merges)


def test_both_readers_take_them(monkeypatch: pytest.MonkeyPatch) -> None:
    text = trained().to_str()
    found = tokenizer_json.loads(text, "x")
    monkeypatch.setattr(tokenizer_json, "_loads_quickly", lambda *_: None)
    assert tokenizer_json.loads(text, "x") == found
    assert byte_level.to_bytes("Ġ") in found.tokens
