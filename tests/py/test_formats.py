"""Saved tokenizers: what is read is what was written, in every format; a format refuses what it cannot hold; damaged
and foreign files are refused by name. tests/c/test_vocab.c has damaged files of tokenizer.bin."""

import json
import os
import random
import struct
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest
import tiktoken as openai
from gpt2 import EOT_ID, gpt2_files, gpt2_tokenizer, gpt2_tokens_and_merges
from reference import encode as reference
from test_hf_import import hostile_texts
from texts import CORNER_TEXTS, chinese, english, mixed

import pybpe
from pybpe import Template
from pybpe.cli import main
from pybpe.control_tokens import CONTROL_TOKENS
from pybpe.formats.any_format import FORMATS
from pybpe.formats.nanochat import SPECIAL_TOKENS as NANOCHAT
from pybpe.formats.pretrained import chat_template
from pybpe.model import Matching, Model
from pybpe.pattern import FROM_RIGHT, Digits, Pattern

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
PATTERNS = ["gpt2", "cl100k", "o200k", "llama3", "qwen2", "nanochat"]
BYTES = {i: bytes([i]) for i in range(256)}


@cache
def texts() -> list[str]:
    return [*CORNER_TEXTS, *hostile_texts(7, 300, SPECIALS), english()[:5000], chinese()[:2000], mixed()[:5000]]


@cache
def trained(special_ids: str = "after_bytes", pattern: str = "gpt2", vocab_size: int = 1200) -> pybpe.Tokenizer:
    corpus, given = [english()[:60_000], chinese()[:10_000], mixed()[:20_000]], {"special_tokens": SPECIALS}
    return pybpe.train(iter(corpus), vocab_size=vocab_size, special_ids=special_ids, pattern=pattern, **given)


Way = Callable[[pybpe.Tokenizer, Path], pybpe.Tokenizer]


def saved(name: str) -> Way:
    """Returns a function that saves a tokenizer under this name, and reads it again."""

    def way(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
        tok.save(folder / name)
        return pybpe.Tokenizer.from_file(folder / name)

    way.__name__ = name
    return way


json_file, bin2, pretrained = map(saved, ("tokenizer.json", "tokenizer.bin", "hub"))


def bin1(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    with pytest.warns(UserWarning, match="50257"):
        tok.save(folder / "tokenizer.bin", "bin1")
    return pybpe.Tokenizer.from_file(folder / "tokenizer.bin")


def json2(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    tok.save(folder / "second.json", "json2")
    return pybpe.Tokenizer.from_file(folder / "second.json")


def files(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    tok.save(folder / "gpt2", "files")
    return pybpe.Tokenizer.from_file(folder / "gpt2/vocab.json", special_tokens=SPECIALS)


def ranks(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    tok.save(folder / "t.tiktoken")
    return pybpe.Tokenizer.from_file(folder / "t.tiktoken", pattern=tok.pattern.name, special_tokens=tok.special_tokens)


def hf(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    return pybpe.Tokenizer.from_hf(tok.to_hf())


def tiktoken(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    return pybpe.Tokenizer.from_tiktoken(tok.to_tiktoken())


WAYS = [json_file, json2, bin2, bin1, files, ranks, pretrained, hf, tiktoken]


@pytest.mark.parametrize("special_ids", ["first", "after_bytes", "last"])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_read_is_what_was_written(tmp_path: Path, way: Way, special_ids: str) -> None:
    """So it can be written in any other format, too."""
    tok = trained(special_ids)
    copy = way(tok, tmp_path)
    assert copy == tok and copy.special_tokens == tok.special_tokens and copy.model.vocab == tok.model.vocab
    assert copy.merges == tok.merges and copy.pattern == tok.pattern
    assert copy.model.fingerprint == tok.model.fingerprint
    for text in texts():
        assert copy.encode(text) == tok.encode(text)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_other_libraries_give_these_ids(pattern: str) -> None:
    tok = trained(pattern=pattern, vocab_size=700)
    theirs, ranked = tok.to_hf(), tok.to_tiktoken()
    for text in texts():
        expected = tok.encode(text)
        assert theirs.encode(text).ids == ranked.encode(text, allowed_special="all") == expected
        assert ranked.encode_ordinary(text) == tok.encode_ordinary(text)
        assert theirs.decode(expected, skip_special_tokens=False) == tok.decode(expected)
    assert ranked.n_vocab == tok.vocab_size and theirs.get_vocab() == tok.get_vocab()


def test_whole_words_survive_where_they_can(tmp_path: Path) -> None:
    merges = [(b"a", b"b")]
    vocab = BYTES | {256: b"ab", 257: b"xyz"}
    plain = pybpe.Tokenizer(vocab, merges, ["<s>"])
    assert plain.encode("xyz") == [120, 121, 122]
    for target in (lambda: plain.to_tiktoken(), lambda: plain.save(tmp_path / "t.tiktoken")):
        with pytest.raises(pybpe.errors.UnsupportedError, match="token 257, b'xyz'"):
            target()
    ranks_of = {token: i for i, token in vocab.items()}
    regex = Pattern("gpt2").regex
    theirs = openai.Encoding("x", pat_str=regex, mergeable_ranks=ranks_of, special_tokens={"<s>": 258})
    whole = pybpe.Tokenizer.from_tiktoken(theirs)
    assert whole.encode("xyz xyz abxyz") == [257, 32, 120, 121, 122, 32, 256, 120, 121, 122]
    with pytest.raises(pybpe.errors.UnsupportedError, match="ignore_merges"):
        whole.save(tmp_path / "f", "files")


# ------------------------------------------------------------------------------------------------------
# What each format holds


def test_a_template_is_applied() -> None:
    """test_hf_import.py compares templates with those of Hugging Face."""
    tok = trained().replace(template="<|im_start|> $A <|im_end|>")
    start, end = tok.special_tokens["<|im_start|>"], tok.special_tokens["<|im_end|>"]
    assert tok.encode("a") == trained().encode("a") and tok.encode("a", "b") == tok.encode("a") + tok.encode("b")
    assert tok.encode_batch(["a", "b"], add_special_tokens=True)[1] == [start, *tok.encode("b"), end]
    assert tok.replace(template=None).model.template is None


@pytest.mark.parametrize(
    ("single", "pair", "message"),
    [
        ("<|im_start|>", "$A $B", r"\$A once"),
        ("$A $A", "$A $B", r"\$A once"),
        ("$B", "$A $B", r"\$A once"),
        ("$A", "$A", r"\$A and \$B"),
        ("$A <nope>", "$A $B", "<nope>"),
        ("$C", "$A $B", r"\$C"),
    ],
)
def test_templates_that_make_no_sense(single: str, pair: str, message: str) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match=message):
        trained().replace(template=Template.parse(single, pair))


def folder_of_files(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    tok.save(folder / "files", "files")
    return pybpe.Tokenizer.from_file(folder / "files")


def variants() -> dict[str, pybpe.Tokenizer]:
    """A tokenizer with nine special tokens, and the same with one feature each."""
    specials = [*CONTROL_TOKENS, "</s>"]
    corpus = [english()[:20_000], "a1 b22 c333"]
    options = {"": {}, "pattern": {"pattern": "cl100k"}, "normalizer": {"normalizer": "NFC"}}
    made = {
        key: pybpe.train(iter(corpus), vocab_size=400, special_tokens=specials, **given)
        for key, given in options.items()
    }
    plain = made[""].model
    whole = {"tokens": [*plain.tokens, b" zqzq"], "whole_words": True}
    changes = {
        "whole_words": whole,
        "prefix_space": {"prefix_space": True},
        "matching": {"matching": {"</s>": Matching(lstrip=True)}},
        "specials": {"specials": {**plain.specials, "<shared>": plain.specials["</s>"]}},
        "dropout": {"dropout": 0.5},
        "template": {"template": pybpe.Template.parse("$A </s>")},
        "chat_template": {"chat_template": "{{ messages }}"},
        "visible": {"visible": frozenset(["</s>", "<|thought|>"])},
        "eos": {"eos": "</s>"},
        "training": {},  # says only how a tokenizer was made
        "unknown": {},  # is for the library that reads a tokenizer.json
        "config": {},  # is for transformers: see test_pretrained_folders.py
    }
    return made | {key: pybpe.tokenizer.of_model(replace(plain, **given)) for key, given in changes.items()}


def held(tok: pybpe.Tokenizer) -> list[object]:
    """All that a user can see of a tokenizer."""
    model = tok.model
    ids = range(len(CONTROL_TOKENS) + 1)
    seen = [tok, tok.special_tokens, tok.eot_token, chat_template(tok.model), tok.model.template, model.matching]
    shown = [
        tok.decode(ids),
        tok.decode(ids, skip_special_tokens=True),
        tok.model.normalizer,
        tok.pattern,
        tok.model.dropout,
    ]
    return [*seen, *shown, *(tok.encode(text, add_special_tokens=True) for text in texts() if not tok.model.dropout)]


HOLDING = [json_file, json2, bin2, folder_of_files, ranks, pretrained, hf, tiktoken]
NOWHERE_ELSE = {"prefix_space", "dropout", "template"}
IN_CONFIG = {"chat_template", "visible", "eos"}
REFUSED: dict[Way, set[str]] = {
    json_file: set(),
    json2: {"prefix_space", "specials", "dropout"},
    pretrained: {"specials"},
    hf: {"specials"},
    bin2: {*NOWHERE_ELSE, "matching", "specials", "chat_template", "visible"},
    folder_of_files: {*NOWHERE_ELSE, "specials", "pattern", "normalizer", "whole_words"},
    ranks: {*NOWHERE_ELSE, *IN_CONFIG, "matching", "specials", "normalizer"},
    tiktoken: {*NOWHERE_ELSE, *IN_CONFIG, "matching", "normalizer", "specials"},
}


@pytest.mark.filterwarnings("ignore:only pybpe can load")
@pytest.mark.parametrize("way", HOLDING)
def test_each_feature_is_held_or_refused(tmp_path: Path, way: Way) -> None:
    found = variants()
    assert {""} | {field.name for field in fields(Model)} - {"tokens", "merges"} == set(found)
    for key, tok in found.items():
        if key in REFUSED[way]:
            before = sorted(tmp_path.rglob("*"))
            with pytest.raises(pybpe.errors.UnsupportedError, match="cannot hold|would decode"):
                way(tok, tmp_path)
            assert [path for path in sorted(tmp_path.rglob("*")) if path.is_file() and path not in before] == []
        else:
            assert held(way(tok, tmp_path)) == held(tok), key


def test_what_ids_do_not_need_can_be_left_out(tmp_path: Path) -> None:
    found = variants()
    for key in ("template", "chat_template", "visible", "eos"):
        for format in (format for format in FORMATS if format not in ("bin1", "gguf", "byte_lengths", "nanochat")):
            target = tmp_path / f"{key}.{format}"
            found[key].save(target, format, ids_only=True)
            given = {"pattern": "gpt2", "special_tokens": found[key].special_tokens} if format == "tiktoken" else {}
            loaded = pybpe.Tokenizer.from_file(target, **given)
            assert [loaded.encode(text) for text in texts()] == [found[key].encode(text) for text in texts()]
        assert found[key].to_tiktoken(ids_only=True).n_vocab == found[key].vocab_size
    with pytest.raises(pybpe.errors.UnsupportedError, match="ends a document: .*ids_only"):
        found["eos"].to_tiktoken()
    found["eos"].save(tmp_path / "t.bin", ids_only=True)
    assert pybpe.Tokenizer.from_file(tmp_path / "t.bin").eot_token == found["eos"].eot_token  # a tokenizer.bin holds it


@pytest.mark.filterwarnings("ignore:the pattern")
def test_what_targets_cannot_hold_is_refused(tmp_path: Path) -> None:
    custom = pybpe.train(iter(["aa bb"]), vocab_size=258, pattern=r"\w+$|\X")
    for target in (custom.to_tiktoken, custom.to_hf, lambda: custom.save(tmp_path / "f", "pretrained")):
        with pytest.raises(pybpe.errors.UnsupportedError, match=r"'\\\\X'.* at character 5"):
            target()
    with pytest.raises(
        pybpe.errors.ArgumentError,
        match="must be one of json, json2, bin, bin1, files, tiktoken, pretrained, gguf, byte_lengths, nanochat, not",
    ):
        trained().save(tmp_path / "t", "xml")
    with pytest.raises(pybpe.errors.ArgumentError, match="xml is not a known format"):
        trained().save(tmp_path / "t.xml")


@pytest.mark.parametrize(
    ("merges", "message"),
    [
        ([(b"b", b"c"), (b"a", b"b")], "order of ids"),  # ab is 256, bc is 257
        ([(b"a", b"b")], "merges do not make token 257"),
    ],
)
def test_merges_that_ranks_cannot_say(merges: list[tuple[bytes, bytes]], message: str) -> None:
    vocab = BYTES | {256: b"ab", 257: b"bc"}
    with pytest.raises(pybpe.errors.UnsupportedError, match=message):
        pybpe.Tokenizer(vocab, merges).to_tiktoken()


# ------------------------------------------------------------------------------------------------------
# Patterns, GPT-2's own files, and tokenizer.bin


KEPT = [*((name, None) for name in (*PATTERNS, r"\w+|\s+")), ("gpt2", 1), ("gpt2", FROM_RIGHT), ("o200k", FROM_RIGHT)]


@pytest.mark.parametrize(("pattern", "digits"), KEPT)
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


def llmc_file(path: Path, tokens: list[bytes], version: int, eot: int) -> bytes:
    """Writes a tokenizer.bin like those of llm.c's train_gpt2.py."""
    header = struct.pack("<256i", 20240328, version, len(tokens), eot, *[0] * 252)
    path.write_bytes(header + b"".join(bytes([len(token)]) + token for token in tokens))
    return path.read_bytes()


@pytest.mark.parametrize("version", [1, 2])
def test_gpt2s_merges_from_the_order_of_ids(version: int, tmp_path: Path) -> None:
    tokens, merges = gpt2_tokens_and_merges()
    plain = llmc_file(tmp_path / "t.bin", tokens, version, EOT_ID if version == 2 else 0)
    tok = pybpe.Tokenizer.from_file(tmp_path / "t.bin")
    assert list(tok.model.tokens) == tokens and tok.merges == merges and tok == gpt2_tokenizer()
    assert tok.special_tokens == {"<|endoftext|>": EOT_ID} and tok.eot_token == EOT_ID and tok.pattern.name == "gpt2"
    tok.save(tmp_path / "again.bin")
    data = (tmp_path / "again.bin").read_bytes()
    assert data[1024 : len(plain)] == plain[1024:] and (version == 1 or data[:16] == plain[:16])  # what llm.c reads


@pytest.mark.parametrize("seed", range(8))
def test_recovery_against_the_definition(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choices(["ab", "cab", "dé", "中文", " a"], k=80)).encode()
    tokens = [left + right for left, right in reference.train([text], 40)]
    tokens = list(dict.fromkeys(tokens + [rng.randbytes(rng.randint(2, 90)) for _ in range(10)]))
    if seed % 2:
        rng.shuffle(tokens)
    every = [bytes([byte]) for byte in range(256)] + tokens
    llmc_file(tmp_path / "t.bin", [*every, b"<|e|>"], 2, len(every))
    assert pybpe.Tokenizer.from_file(tmp_path / "t.bin").merges == reference.recover(every)


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


def test_a_special_spelled_like_a_token_is_refused_by_json_and_kept_by_bin(tmp_path: Path) -> None:
    vocab = BYTES | {256: b"ab"}
    tok = pybpe.Tokenizer(vocab, [(b"a", b"b")], ["ab"])
    assert tok.encode("ab") == [257] and tok.encode_ordinary("ab") == [256]
    with pytest.raises(pybpe.errors.UnsupportedError, match="'ab'"):
        tok.save(tmp_path / "t.json")
    tok.save(tmp_path / "t.bin")
    copy = pybpe.Tokenizer.from_file(tmp_path / "t.bin")
    assert copy.encode("ab") == [257] and copy.encode_ordinary("ab") == [256]


def test_numbers_from_the_right(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("1234567 234 567 1 " * 50)
    argv = ["train", str(tmp_path / "t.txt"), "--vocab-size", "270", "--digits", FROM_RIGHT, "--quiet", "-o"]
    assert main([*argv, str(tmp_path / "t.json")]) == 0
    tok = pybpe.Tokenizer.from_file(tmp_path / "t.json")
    assert tok == pybpe.train(tmp_path / "t.txt", vocab_size=270, digits=FROM_RIGHT)
    assert [tok.id_to_token(i) for i in tok.encode("1234567")] == ["1", "234", "567"]
    assert str(tok.pattern) == "gpt2 with digits 3-from-right" and eval(repr(tok.pattern), {"Pattern": Pattern})
    with pytest.raises(pybpe.errors.ArgumentError, match="needs a built-in pattern"):
        pybpe.train(tmp_path / "t.txt", vocab_size=270, pattern=r"\w+", digits=FROM_RIGHT)


# ------------------------------------------------------------------------------------------------------
# Foreign and damaged files


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


@pytest.mark.parametrize("data", [b"Genesis 1\n\nIn the", b"Mark 1\nThe beginning", b"Mark 1\n1 The beginning"])
def test_a_book_with_a_numbered_heading_is_no_list_of_ranks(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(pybpe.errors.FormatError, match="x: not a tokenizer"):
        pybpe.Tokenizer.from_file(tmp_path / "x")


def test_damaged_vocab_and_merges_are_refused(tmp_path: Path) -> None:
    vocab, merges = tmp_path / "vocab.json", tmp_path / "merges.txt"
    trained().save(tmp_path, "files")
    lines = merges.read_text()
    merges.write_text(lines + lines.splitlines()[-1] + "\n")
    with pytest.raises(pybpe.errors.FormatError, match="is a repeated merge"):
        pybpe.Tokenizer.from_file(vocab, merges=merges)
    merges.write_text(lines + "one two three\n")
    with pytest.raises(pybpe.errors.FormatError, match=r"merges.txt: line \d+"):
        pybpe.Tokenizer.from_file(vocab, merges=merges)
    merges.write_bytes(b"\xff\n")
    with pytest.raises(pybpe.errors.FormatError, match="byte 0"):
        pybpe.Tokenizer.from_file(vocab, merges=merges)
    vocab.write_text("[]")
    with pytest.raises(pybpe.errors.FormatError, match="JSON object"):
        pybpe.Tokenizer.from_file(vocab, merges=merges)
    with pytest.raises(pybpe.errors.UnsupportedError, match="gpt2"):
        trained(pattern="cl100k").save(tmp_path, "files")


# ------------------------------------------------------------------------------------------------------
# nanochat's folder. extras/test_nanochat_extras.py reads it.


def for_nanochat(specials: tuple[str, ...] = NANOCHAT, **options: object) -> pybpe.Tokenizer:
    given = {"pattern": "nanochat", "tie_break": "rustbpe", "special_ids": "last", **options}
    return pybpe.train(
        iter(["In 1984 the café had 12345 visitors. " * 9]), vocab_size=290, special_tokens=specials, **given
    )


@pytest.mark.parametrize(
    ("tok", "message"),
    [
        (
            for_nanochat(("<|bos|>",)),
            r"needs the special tokens <\|user_start\|> .*<\|output_end\|>, which this tokenizer lacks",
        ),
        (for_nanochat(normalizer="NFC"), "nanochat cannot hold the normalizer NFC"),
        (
            for_nanochat(end_of_text="<|user_end|>"),
            r"begins documents with <\|bos\|>, and this tokenizer ends them with '<\|us",
        ),
        (for_nanochat((*NANOCHAT, "<|bos|>x")), "begins with another one"),
    ],
)
def test_what_nanochat_cannot_hold(tok: pybpe.Tokenizer, message: str, tmp_path: Path) -> None:
    with pytest.raises(pybpe.errors.UnsupportedError, match=message):
        tok.save(tmp_path / "out", "nanochat")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("package", ["torch", "tiktoken"])
def test_a_missing_package(package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(pybpe.errors.MissingExtraError, match="pip install"):
        for_nanochat().save(tmp_path / "out", "nanochat")
    assert not list(tmp_path.iterdir())


def test_objects_of_tokenizers_1_are_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    newer = type("Tokenizer", (), {"__module__": "tokenizers"})
    monkeypatch.setitem(sys.modules, "tokenizers", SimpleNamespace(Tokenizer=newer))
    with pytest.raises(pybpe.errors.MissingExtraError, match=r"pip install 'pybpe\[hf\]'.*Tokenizer.from_file reads"):
        trained().to_hf()
    with pytest.raises(pybpe.errors.ArgumentError, match="pass its file to from_file instead"):
        pybpe.Tokenizer.from_hf(newer())


def test_an_export_without_the_pattern_and_special_tokens_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pybpe.train(iter(["a b"]), vocab_size=259, special_tokens=["<a>", "<b>"]).save("tok.json")
    assert main(["export", "tok.json", "-o", "tok.tiktoken"]) == 0
    told = (
        "tok.tiktoken: this format lacks the pattern and its 2 special tokens: to load the file, `pybpe export` takes"
    )
    assert told in capsys.readouterr().err
