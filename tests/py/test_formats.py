"""Saved tokenizers: tokenizer.json as Hugging Face reads it, tokenizer.bin, vocab.json + merges.txt."""

import json
import os
import struct
from pathlib import Path

import pytest
from gpt2 import gpt2_files, gpt2_tokenizer, gpt2_tokens_and_merges
from texts import chinese, english, mixed

import pybpe
from pybpe.cli import main
from pybpe.pattern import FROM_RIGHT, Digits, Pattern

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PATTERNS = [
    ("gpt2", None), ("gpt2", 1), ("gpt2", FROM_RIGHT), ("o200k", FROM_RIGHT), ("cl100k", None), ("o200k", None),
    ("llama3", None), ("qwen2", None), ("nanochat", None),
]  # fmt: skip


def trained(pattern: str = "gpt2", digits: Digits = None, special_ids: str = "first") -> pybpe.Tokenizer:
    return pybpe.train(
        iter([english()[:60_000], chinese()[:10_000], mixed()[:20_000]]),
        vocab_size=1200,
        special_tokens=SPECIALS,
        pattern=pattern,
        digits=digits,
        special_ids=special_ids,
    )


@pytest.mark.parametrize(("pattern", "digits"), [*PATTERNS, (r"\w+|\s+", None)])
def test_pattern_and_normalizer_are_kept(tmp_path: Path, pattern: str, digits: Digits) -> None:
    tok = pybpe.train(
        iter(["cafe\u0301 1234 it's"] * 9), vocab_size=270, pattern=pattern, digits=digits, normalizer="NFC"
    )
    tok.save(tmp_path / "t.json")
    tok.save(tmp_path / "t.bin")
    for name in ("t.json", "t.bin"):
        copy = pybpe.Tokenizer.from_file(tmp_path / name)
        assert copy.pattern == tok.pattern and copy.model.normalizer == "NFC"
        assert copy.encode("cafe\u0301 2026's") == tok.encode("cafe\u0301 2026's")


def test_gpt2_from_its_own_files(tmp_path: Path) -> None:
    tok = gpt2_tokenizer()
    tokens, merges = gpt2_tokens_and_merges()
    assert [tok.decode_single_token_bytes(i) for i in range(0, 50257, 97)] == tokens[::97]
    assert tok.merges == merges and tok.eot_token == 50256
    tok.save(tmp_path, "files")
    assert pybpe.Tokenizer.from_file(tmp_path / "vocab.json") == tok
    assert json.loads((tmp_path / "vocab.json").read_text()) == json.loads(gpt2_files()[0].read_text())
    assert (tmp_path / "merges.txt").read_text() == gpt2_files()[1].read_text()


def test_saving_is_atomic(tmp_path: Path) -> None:
    tok = trained()
    path = tmp_path / "tokenizer.json"
    path.write_text("old")
    with pytest.raises(pybpe.errors.FileError):
        tok.save(tmp_path / "tokenizer.json" / "tokenizer.json")
    tok.save(path)
    assert os.listdir(tmp_path) == ["tokenizer.json"]
    with pytest.raises(IsADirectoryError):
        tok.save(tmp_path, "json")


def test_a_version_1_tokenizer_bin_warns_unless_it_is_gpt2s(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="50257"):
        trained().save(tmp_path / "t.bin", "bin1")
    gpt2_tokenizer().save(tmp_path / "gpt2.bin", "bin1")
    assert pybpe.Tokenizer.from_file(tmp_path / "gpt2.bin").eot_token == 50256


def test_a_special_spelled_like_a_token_is_refused_by_json_and_kept_by_bin(tmp_path: Path) -> None:
    vocab = {i: bytes([i]) for i in range(256)} | {256: b"ab"}
    tok = pybpe.Tokenizer(vocab, [(b"a", b"b")], ["ab"])
    assert tok.encode("ab") == [257] and tok.encode_ordinary("ab") == [256]
    with pytest.raises(pybpe.errors.UnsupportedError, match="'ab'"):
        tok.save(tmp_path / "t.json")
    tok.save(tmp_path / "t.bin")
    copy = pybpe.Tokenizer.from_file(tmp_path / "t.bin")
    assert copy.encode("ab") == [257] and copy.encode_ordinary("ab") == [256]


# ------------------------------------------------------------------------------------------------------
# Foreign and damaged files


def hugging_face_file(tmp_path: Path, **changes: object) -> Path:
    tok = trained()
    tok.save(tmp_path / "tokenizer.json")
    data = json.loads((tmp_path / "tokenizer.json").read_text())
    data.update(changes)
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(data))
    return path


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model": {"type": "WordPiece", "vocab": {}}}, "WordPiece"),
        ({"model": {"type": "BPE", "vocab": {}, "merges": []}}, "byte"),
        ({"model": {"type": "BPE", "vocab": {"a": 0, "b": 0}, "merges": []}}, "twice"),
        ({"model": {"type": "BPE", "vocab": {"a": -1}, "merges": []}}, "id"),
        ({"model": {"type": "BPE", "vocab": {"a": 1 << 40}, "merges": []}}, "id"),
        ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b c"]}}, r"merges\[0\]"),
        ({"model": {"type": "BPE", "vocab": {"中": 0}, "merges": []}}, "no byte"),
        ({"model": []}, "model"),
        ({"normalizer": {"type": "Lowercase"}}, "Lowercase"),
        ({"added_tokens": [{"id": 0, "content": "<x>", "lstrip": 1}]}, "lstrip"),
        ({"added_tokens": [{"content": "<x>"}]}, "id"),
    ],
)
def test_what_pybpe_does_not_have_is_refused_by_name(tmp_path: Path, changes: dict, message: str) -> None:
    path = hugging_face_file(tmp_path, **changes)
    with pytest.raises((pybpe.errors.FormatError, pybpe.errors.ArgumentError), match=message) as caught:
        pybpe.Tokenizer.from_file(path)
    assert "\n" not in str(caught.value)


def test_merges_as_pairs_are_read(tmp_path: Path) -> None:
    path = hugging_face_file(tmp_path)
    data = json.loads(path.read_text())
    data["model"]["merges"] = [merge.split(" ") for merge in data["model"]["merges"]]
    path.write_text(json.dumps(data))
    assert pybpe.Tokenizer.from_file(path).merges == trained().merges


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"{}", b"not a tokenizer", b"\x00" * 2000, b"\xff" * 10])
def test_files_of_another_kind_are_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "thing"
    path.write_bytes(data)
    with pytest.raises(pybpe.errors.FormatError, match="thing") as caught:
        pybpe.Tokenizer.from_file(path)
    assert "\n" not in str(caught.value)
    assert data != b"not a tokenizer" or "thing: not a tokenizer: expected JSON" in str(caught.value)
    with pytest.raises(FileNotFoundError, match="missing"):
        pybpe.Tokenizer.from_file(tmp_path / "missing")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            '{"config": {"version": "v3"}, "vocab": [{"rank": 0}]}',
            r"a tekken\.json of Mistral.*use the tokenizer\.json",
        ),
        (
            '{"a": 0, "model": 1}',
            r"a vocab\.json, which needs its merges\.txt: put that next to it, or use Tokenizer\.from_file",
        ),
        ('{"tokenizer_class": "GPT2Tokenizer"}', "the configuration of a model or tokenizer: pass"),
        ("#version: 0.2\na b\n", r"a merges\.txt, which needs its vocab\.json: use Tokenizer\.from_file"),
        (b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02\n\x0c\n\x03<s>\x15", "a model of SentencePiece"),
        (b"GGUF\3\0\0\0" + bytes(16), r"a GGUF model, not a tokenizer: pass the tokenizer\.json of the model"),
        (struct.pack("<3i", 20240520, 1, 2), "a token shard of llm.c, not a tokenizer"),
    ],
)
def test_files_near_a_tokenizer_are_called_by_name(tmp_path: Path, data: str | bytes, message: str) -> None:
    (tmp_path / "x").write_bytes(data.encode() if isinstance(data, str) else data)
    with pytest.raises(pybpe.errors.FormatError, match=f"x: this is {message}"):
        pybpe.Tokenizer.from_file(tmp_path / "x")


def test_damaged_vocab_and_merges_are_refused(tmp_path: Path) -> None:
    vocab, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    trained().save(tmp_path, "files")
    merges.write_text(merges.read_text() + "one two three\n")
    with pytest.raises(pybpe.errors.FormatError, match=r"merges.txt: line \d+"):
        pybpe.Tokenizer.from_file(vocab, merges=merges)
    merges.write_bytes(b"\xff\n")
    with pytest.raises(pybpe.errors.FormatError, match="byte 0"):
        pybpe.Tokenizer.from_file(vocab, merges=merges)
    vocab.write_text("[]")
    with pytest.raises(pybpe.errors.FormatError, match="JSON object"):
        pybpe.Tokenizer.from_file(vocab, merges=merges)
    with pytest.raises(pybpe.errors.UnsupportedError, match="gpt2"):
        trained("cl100k").save(tmp_path, "files")


def test_numbers_from_the_right(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("1234567 234 567 1 " * 50)
    argv = ["train", str(tmp_path / "t.txt"), "--vocab-size", "270", "--digits", FROM_RIGHT, "--quiet", "-o"]
    for name in ("a.json", "a.bin"):
        assert main([*argv, str(tmp_path / name)]) == 0
        tok = pybpe.Tokenizer.from_file(tmp_path / name)
        assert tok == pybpe.train(tmp_path / "t.txt", vocab_size=270, digits=FROM_RIGHT)
        assert [tok.id_to_token(i) for i in tok.encode("1234567")] == ["1", "234", "567"]
        assert (tok.pattern.name, tok.pattern.digits, tok.pattern.is_custom) == ("gpt2", FROM_RIGHT, False)
        assert str(tok.pattern) == "gpt2 with digits=3-from-right" and eval(repr(tok.pattern), {"Pattern": Pattern})
    counts = pybpe.count_words(tmp_path / "t.txt", digits=FROM_RIGHT)
    counts.save(tmp_path / "t.counts")
    assert pybpe.Counts.load(tmp_path / "t.counts") == counts and counts.to_dict()[b"234"] == 100
    with pytest.raises(pybpe.errors.ArgumentError, match="'3-from-right' or None"):
        pybpe.train(tmp_path / "t.txt", vocab_size=270, digits="3-from-left")  # type: ignore[arg-type]
    with pytest.raises(pybpe.errors.ArgumentError, match="needs a built-in pattern"):
        pybpe.train(tmp_path / "t.txt", vocab_size=270, pattern=r"\w+", digits=FROM_RIGHT)
