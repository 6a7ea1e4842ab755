"""Every format to every other: the same ids on hostile text, or an error that says what the target cannot represent."""

from collections.abc import Callable
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import pytest
from gpt2 import gpt2_tokenizer
from openai_ranks import cl100k
from test_hf_import import hostile
from texts import CORNER_TEXTS, chinese, english, mixed

import pybpe
from pybpe import Template
from pybpe.control_tokens import CONTROL_TOKENS
from pybpe.formats.export import FORMATS
from pybpe.formats.pretrained import chat_template
from pybpe.model import Model
from pybpe.model.matching import Matching

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]


@cache
def texts() -> list[str]:
    return [*CORNER_TEXTS, *hostile(SPECIALS, seed=7), english()[:5000], chinese()[:2000], mixed()[:5000]]


@cache
def trained(special_ids: str = "after_bytes") -> pybpe.Tokenizer:
    corpus = [english()[:60_000], chinese()[:10_000], mixed()[:20_000]]
    return pybpe.train(iter(corpus), vocab_size=1200, special_tokens=SPECIALS, special_ids=special_ids)


def json(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    tok.save(folder / "tokenizer.json")
    return pybpe.Tokenizer.from_file(folder / "tokenizer.json")


def bin2(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    tok.save(folder / "tokenizer.bin")
    return pybpe.Tokenizer.from_file(folder / "tokenizer.bin")


def bin1(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    with pytest.warns(UserWarning, match="50257"):
        tok.save(folder / "tokenizer.bin", "bin1")
    return pybpe.Tokenizer.from_file(folder / "tokenizer.bin")


def files(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    tok.save(folder / "gpt2", "files")
    return pybpe.Tokenizer.from_file(folder / "gpt2/vocab.json", special_tokens=SPECIALS)


def ranks(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    tok.save(folder / "t.tiktoken")
    return pybpe.Tokenizer.from_file(folder / "t.tiktoken", pattern=tok.pattern.name, special_tokens=tok.special_tokens)


def pretrained(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    tok.save(folder / "hub")
    return pybpe.Tokenizer.from_file(folder / "hub")


def hf(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    return pybpe.Tokenizer.from_hf(tok.to_hf())


def tiktoken(tok: pybpe.Tokenizer, folder: Path) -> pybpe.Tokenizer:
    return pybpe.Tokenizer.from_tiktoken(tok.to_tiktoken())


WAYS: list[Callable[[pybpe.Tokenizer, Path], pybpe.Tokenizer]]
WAYS = [json, bin2, bin1, files, ranks, pretrained, hf, tiktoken]


@pytest.mark.parametrize("special_ids", ["first", "after_bytes", "last"])
@pytest.mark.parametrize("way", WAYS)
def test_what_is_read_is_what_was_written(tmp_path: Path, way: Callable, special_ids: str) -> None:
    """So it can be written in any other format, too."""
    tok = trained(special_ids)
    copy = way(tok, tmp_path)
    assert copy == tok and copy.special_tokens == tok.special_tokens and copy.model.vocab == tok.model.vocab
    assert copy.merges == tok.merges and copy.pattern == tok.pattern
    assert copy.model.fingerprint == tok.model.fingerprint
    for text in texts():
        assert copy.encode(text) == tok.encode(text)


@pytest.mark.parametrize("pattern", ["gpt2", "cl100k", "o200k", "llama3", "qwen2", "nanochat"])
def test_other_libraries_give_these_ids(pattern: str) -> None:
    tok = pybpe.train(iter([english()[:60_000], chinese()[:5000]]), vocab_size=700, special_tokens=SPECIALS,
                      pattern=pattern)  # fmt: skip
    theirs, openai = tok.to_hf(), tok.to_tiktoken()
    for text in texts():
        expected = tok.encode(text)
        assert theirs.encode(text).ids == expected
        assert openai.encode(text, allowed_special="all") == expected
        assert openai.encode_ordinary(text) == tok.encode_ordinary(text)
        assert theirs.decode(expected, skip_special_tokens=False) == tok.decode(expected)
    assert openai.n_vocab == tok.vocab_size and theirs.get_vocab() == tok.get_vocab()


@pytest.mark.slow
def test_gpt2_and_cl100k(tmp_path: Path) -> None:
    gpt2 = gpt2_tokenizer()
    for way in (json, ranks, pretrained, hf, tiktoken):
        assert way(gpt2, tmp_path).model.fingerprint == gpt2.model.fingerprint
    large = pybpe.Tokenizer.from_tiktoken(cl100k())
    for way in (json, ranks, hf, tiktoken):
        copy = way(large, tmp_path)
        assert copy.model.fingerprint == large.model.fingerprint
    with pytest.raises(pybpe.errors.LimitError, match="unused"):
        large.save(tmp_path / "t.bin")


def test_whole_words_survive_where_they_can(tmp_path: Path) -> None:
    merges = [(b"a", b"b")]
    vocab = {i: bytes([i]) for i in range(256)} | {256: b"ab", 257: b"xyz"}
    plain = pybpe.Tokenizer(vocab, merges, ["<s>"])
    assert plain.encode("xyz") == [120, 121, 122]
    for target in (lambda: plain.to_tiktoken(), lambda: plain.save(tmp_path / "t.tiktoken")):
        with pytest.raises(pybpe.errors.UnsupportedError, match="token 257, b'xyz'"):
            target()
    whole = pybpe.Tokenizer.from_tiktoken(_whole_words(vocab))
    assert whole.encode("xyz xyz abxyz") == [257, 32, 120, 121, 122, 32, 256, 120, 121, 122]
    for way in (json, bin2, ranks, pretrained, hf, tiktoken):
        copy = way(whole, tmp_path)
        assert copy.model.whole_words, way
        for text in ("xyz", "xyz xyz abxyz", "aab xyz.xyz"):
            assert copy.encode(text) == whole.encode(text), way
    with pytest.raises(pybpe.errors.UnsupportedError, match="ignore_merges"):
        whole.save(tmp_path / "f", "files")


def _whole_words(vocab: dict[int, bytes]):
    import tiktoken as library

    ranks = {token: i for i, token in vocab.items()}
    regex = pybpe.Tokenizer(vocab, []).pattern.regex
    return library.Encoding("x", pat_str=regex, mergeable_ranks=ranks, special_tokens={"<s>": 258})


# ------------------------------------------------------------------------------------------------------
# Templates and chat templates


def test_a_template_is_applied_and_survives(tmp_path: Path) -> None:
    tok = trained().replace(
        template=Template.parse("<|im_start|> $A <|im_end|>", "<|im_start|> $A <|im_end|> $B:1 <|im_end|>:1")
    )
    start, end = tok.special_tokens["<|im_start|>"], tok.special_tokens["<|im_end|>"]
    assert tok.encode("a") == trained().encode("a")
    assert tok.encode("a", add_special_tokens=True) == [start, *tok.encode("a"), end]
    assert tok.encode_batch(["a", "b"], add_special_tokens=True)[1] == [start, *tok.encode("b"), end]
    pair = [start, *tok.encode("a"), end, *tok.encode("b"), end]
    assert tok.encode("a", "b", add_special_tokens=True) == pair
    assert tok.encode("a", "b") == tok.encode("a") + tok.encode("b")
    theirs = tok.to_hf()
    assert theirs.encode("a", "b").ids == pair and theirs.encode("a", "b").type_ids == [0] * 3 + [1] * 2
    for way in (json, pretrained, hf):
        assert way(tok, tmp_path).model.template == tok.model.template
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


HOLDING = [json, bin2, folder_of_files, ranks, pretrained, hf, tiktoken]
NOWHERE_ELSE = {"prefix_space", "dropout", "template"}
IN_CONFIG = {"chat_template", "visible", "eos"}
REFUSED: dict[Callable, set[str]] = {
    json: set(),
    pretrained: {"specials"},
    hf: {"specials"},
    bin2: {*NOWHERE_ELSE, "matching", "specials", "chat_template", "visible"},
    folder_of_files: {*NOWHERE_ELSE, "specials", "pattern", "normalizer", "whole_words"},
    ranks: {*NOWHERE_ELSE, *IN_CONFIG, "matching", "specials", "normalizer"},
    tiktoken: {*NOWHERE_ELSE, *IN_CONFIG, "matching", "normalizer", "specials"},
}


@pytest.mark.filterwarnings("ignore:only pybpe can load")
@pytest.mark.parametrize("way", HOLDING)
def test_each_feature_is_held_or_refused(tmp_path: Path, way: Callable) -> None:
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
        match="format must be one of json, bin, bin1, files, tiktoken, pretrained, gguf, byte_lengths, nanochat, not",
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
    vocab = {i: bytes([i]) for i in range(256)} | {256: b"ab", 257: b"bc"}
    with pytest.raises(pybpe.errors.UnsupportedError, match=message):
        pybpe.Tokenizer(vocab, merges).to_tiktoken()
