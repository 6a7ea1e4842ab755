"""inspect, export, diff, prune and extend."""

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
from texts import CORNER_TEXTS, chinese, english, mixed

import pybpe
from pybpe.analysis.usage import measure, script_of
from pybpe.cli import main
from pybpe.model import Model
from pybpe.pattern import Pattern

SPECIALS = ["<|endoftext|>", "<|im_start|>"]


@pytest.fixture(scope="module")
def tok() -> pybpe.Tokenizer:
    texts = [english()[:60_000], chinese()[:10_000], mixed()[:20_000]]
    return pybpe.train(iter(texts), vocab_size=1200, special_tokens=SPECIALS)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.txt"
    path.write_text(english()[60_000:90_000] + chinese()[:3000] + "<|endoftext|>")
    return path


def run(capsys: pytest.CaptureFixture[str], *argv: object, code: int = 0) -> dict[str, Any]:
    assert main([*map(str, argv), "--json"]) == code
    return json.loads(capsys.readouterr().out)


# ------------------------------------------------------------------------------------------------------
# prune and extend


@pytest.mark.parametrize("seed", range(2))
def test_prune(tok: pybpe.Tokenizer, seed: int, tmp_path: Path) -> None:
    keep = random.Random(seed).sample(range(tok.vocab_size), 150)
    small = tok.prune(keep, remap=tmp_path / "remap.npy")
    remap = numpy.load(tmp_path / "remap.npy")
    assert remap.dtype == numpy.int64 and remap.shape == (small.vocab_size,)
    assert [small.decode_single_token_bytes(i) for i in range(small.vocab_size)] == [
        tok.decode_single_token_bytes(i) for i in remap
    ]
    assert set(keep) <= set(remap.tolist()) and list(remap) == sorted(remap)
    assert set(small.special_tokens) == set(SPECIALS) and not small.model.unreached()
    assert 258 + 100 < small.vocab_size < tok.vocab_size
    for text in [*CORNER_TEXTS, mixed()[:5000], "a<|endoftext|>b"]:
        assert small.decode(small.encode(text)) == text
    for i in keep:
        token = tok.decode_single_token_bytes(i)
        if i not in tok.special_tokens.values() and len(tok.pattern.word_ends(token)) == 1:
            assert [remap[j] for j in small.encode(token)] == [i]


def test_prune_to_everything_and_nothing(tok: pybpe.Tokenizer) -> None:
    assert tok.prune(range(tok.vocab_size)).model.fingerprint == tok.model.fingerprint
    assert tok.prune([]).vocab_size == 256 + len(SPECIALS)
    with pytest.raises(pybpe.errors.ArgumentError, match="keep"):
        tok.prune([-1])


def test_extend_by_specials(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    new = tok.extend(["<|tool|>", "<|end|>"], remap=tmp_path / "remap.npy")
    assert numpy.load(tmp_path / "remap.npy").tolist() == [*range(tok.vocab_size), -1, -1]
    assert new.special_tokens["<|tool|>"] == tok.vocab_size and new.eot_token == tok.eot_token
    assert new.encode(mixed()[:5000]) == tok.encode(mixed()[:5000])
    with pytest.raises(pybpe.errors.ArgumentError, match="already"):
        tok.extend(["<|endoftext|>"])


def test_extend_by_merges(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    templated = tok.replace(template="<|endoftext|> $A")
    new = templated.extend(["<x>"], iter([chinese()]), vocab_size=1300, remap=tmp_path / "remap.npy")
    remap = numpy.load(tmp_path / "remap.npy")
    assert new.vocab_size == 1300 and remap[:1200].tolist() == list(range(1200)) and (remap[1200:] == -1).all()
    assert new.model.template == templated.model.template and new.special_tokens["<x>"] == 1200
    for half in ({"inputs": iter(["a"])}, {"vocab_size": 1300}):
        with pytest.raises(pybpe.errors.ArgumentError, match="go together"):
            tok.extend([], **half)
    for wrong in ({"base": tok}, {"documents": "line"}, {"min_freqency": 2}):  # known, unknown, misspelled
        with pytest.raises(TypeError, match=next(iter(wrong))):
            tok.extend([], iter(["a"]), vocab_size=1300, **wrong)


# ------------------------------------------------------------------------------------------------------
# usage and comparison


def test_usage_is_what_encoding_gives(tok: pybpe.Tokenizer) -> None:
    text = english()[:20_000] + mixed()[:5000]
    words = pybpe.count_words(iter([text]), progress=False).to_dict()
    usage = measure(tok, words)
    counts = numpy.bincount(tok.encode_ordinary(text), minlength=tok.vocab_size)
    assert usage.counts == counts.tolist()
    assert usage.total.tokens == counts.sum() and usage.total.bytes == len(text.encode())
    assert usage.total.characters == len(text)
    assert sum(a.bytes for a in usage.scripts.values()) == usage.total.bytes
    assert set(usage.unused) == set(numpy.flatnonzero(counts == 0))
    assert {"Latin", "Han", "Cyrillic", "Hangul", "numbers", "symbols", "white space"} <= usage.scripts.keys()


@pytest.mark.parametrize(
    ("word", "script"),
    [(" the", "Latin"), ("é", "Latin"), ("中", "Han"), ("й", "Cyrillic"), ("ひ", "Hiragana"), ("안", "Hangul"),
     ("７", "numbers"), ("½", "numbers"), (" \n", "white space"), ("?!", "symbols"), ("", "symbols"),
     ("\ufffd", "symbols"), ("א", "Hebrew")],
)  # fmt: skip
def test_scripts(word: str, script: str) -> None:
    assert script_of(word) == script


# ------------------------------------------------------------------------------------------------------
# the command line


def test_inspect_and_prune_read_records_with_another_key(
    tok: pybpe.Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tok.save(tmp_path / "t.json")
    (tmp_path / "a.jsonl").write_text('{"body": "the cat"}\n')
    for command in (
        ["inspect", tmp_path / "t.json", tmp_path / "a.jsonl"],
        ["prune", tmp_path / "t.json", tmp_path / "a.jsonl", "-o", tmp_path / "p.json"],
    ):
        assert main(list(map(str, command))) == 2
        assert "its keys are 'body': pass the key of the text in --text-key" in capsys.readouterr().err
        assert main([*map(str, command), "--text-key", "body"]) == 0


def test_inspect(tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tok.save(tmp_path / "t.json")
    facts = run(capsys, "inspect", tmp_path / "t.json", corpus, "--count", 3)
    counts = numpy.bincount(tok.encode(corpus.read_text()), minlength=tok.vocab_size)
    specials = set(tok.special_tokens.values())
    unused = [i for i in range(tok.vocab_size) if counts[i] == 0 and i not in specials]
    assert facts["never_used_count"] == len(unused)
    assert [token["id"] for token in facts["never_used"]] == unused[:3]
    assert facts["last"][-1]["id"] == 1199 and len(facts["last"]) == 3
    assert all(bytes.fromhex(token["hex"]) == tok.decode_single_token_bytes(token["id"]) for token in facts["last"])
    assert facts["not_utf8_count"] == sum(
        len(t) > 1 and t.decode("utf-8", "replace").encode() != t for t in tok.model.vocab.values()
    )
    assert facts["scripts"]["all"]["bytes_per_token"] > 0 and facts["scripts"]["Han"]["tokens_per_character"] > 0
    assert main(["inspect", str(tmp_path / "t.json"), str(corpus)]) == 0
    shown = capsys.readouterr().out
    assert "tokens that the files never use" in shown and "Han" in shown


def test_export(tok: pybpe.Tokenizer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tok.save(tmp_path / "t.json")
    for name, format in (("a.bin", "bin"), ("b.json", "json"), ("c.tiktoken", "tiktoken"), ("d", "pretrained")):
        assert run(capsys, "export", tmp_path / "t.json", "-o", tmp_path / name)["format"] == format
    run(capsys, "export", tmp_path / "t.json", "-o", tmp_path / "e", "--format", "files")
    assert (tmp_path / "e/merges.txt").exists() and (tmp_path / "d/tokenizer_config.json").exists()
    specials = [f"--special-token={text}={i}" for text, i in tok.special_tokens.items()]
    run(capsys, "export", tmp_path / "c.tiktoken", "-o", tmp_path / "f.json", "--pattern", "gpt2", *specials)
    for name in ("a.bin", "b.json", "d", "f.json"):
        assert pybpe.Tokenizer.from_file(tmp_path / name).model.fingerprint == tok.model.fingerprint
    tok.replace(template="<|endoftext|> $A").save(tmp_path / "t.json")
    assert main(["export", str(tmp_path / "t.json"), "-o", str(tmp_path / "g.bin")]) == 2
    assert "or pass --ids-only, which leaves this out" in capsys.readouterr().err and not (tmp_path / "g.bin").exists()
    run(capsys, "export", tmp_path / "t.json", "-o", tmp_path / "g.bin", "--ids-only")
    assert main(["export", str(tmp_path / "c.tiktoken"), "-o", str(tmp_path / "g.json")]) == 2
    assert "pattern" in capsys.readouterr().err


def test_compare_on_the_command_line(
    tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small, text = tok.prune(vocab_size=500), corpus.read_bytes()
    tok.save(tmp_path / "a.json")
    tok.save(tmp_path / "b.bin")
    small.save(tmp_path / "c.json")
    assert run(capsys, "compare", tmp_path / "a.json", tmp_path / "b.bin", "--file", corpus) == {
        "equal": True, "settings": {}, "only_in_a": [], "only_in_b": [], "other_ids": [], "first_merge": None,
        "text": {"tokens_a": tok.count(text), "tokens_b": tok.count(text), "different": []},
    }  # fmt: skip
    facts = run(capsys, "compare", tmp_path / "a.json", tmp_path / "c.json", "--file", corpus, code=1)
    assert not facts["equal"] and facts["settings"]["vocab_size"] == [1200, 500] and facts["first_merge"][0] == 242
    assert len(facts["only_in_a"]) == 700 and facts["only_in_b"] == facts["other_ids"] == []
    assert (facts["text"]["tokens_a"], facts["text"]["tokens_b"]) == (tok.count(text), small.count(text))
    for start, ours, theirs in facts["text"]["different"]:
        if not any("\ufffd" in piece for piece in ours + theirs):
            part = "".join(ours)
            assert part == "".join(theirs) and ours != theirs and text[start:].startswith(part.encode())
    assert main(["compare", str(tmp_path / "a.json"), str(tmp_path / "c.json"), "--count", "2"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("different\nvocab_size: 1200 in A, 500 in B\n") and "tokens only in A: 700\n" in shown
    assert main(["compare", str(tmp_path / "a.json"), str(tmp_path / "b.bin"), "--file", str(corpus)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("equal: the same ids for every text\n") and shown.endswith("split differently: 0\n")


def test_what_is_shown_can_be_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """inspect shows Chinese tokens as text, and only parts of characters as bytes, and a pattern by its given name. The
    replacement character is valid UTF-8, although it also stands for bytes that are not."""
    tokens = [*(bytes([i]) for i in range(256)), b"\xe4\xb8", "中".encode(), b"\xef\xbf", b"\xef\xbf\xbd"]
    model = Model(tokens, [(0xE4, 0xB8), (256, 0xAD), (0xEF, 0xBF), (258, 0xBD)], {}, Pattern("qwen2"))
    pybpe.tokenizer.of_model(model).save(tmp_path / "q.json")
    pybpe.tokenizer.of_model(replace(model, pattern=Pattern("gpt2"))).save(tmp_path / "g.json")
    assert [token["id"] for token in run(capsys, "inspect", tmp_path / "q.json")["not_utf8"]] == [256, 258]
    assert main(["inspect", str(tmp_path / "q.json"), "--count", "3"]) == 0
    shown = capsys.readouterr().out
    assert "pattern  qwen2\n" in shown and "257  '中'\n" in shown and "256  b'\\xe4\\xb8'\n" in shown
    assert main(["compare", str(tmp_path / "q.json"), str(tmp_path / "g.json")]) == 1
    assert "pattern: qwen2 in A, gpt2 in B\n" in capsys.readouterr().out


def test_prune_and_extend(
    tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, small, remap = tmp_path / "t.json", tmp_path / "small.json", tmp_path / "remap.npy"
    tok.save(path)
    run(capsys, "prune", path, corpus, "-o", small, "--remap", remap)
    pruned = pybpe.Tokenizer.from_file(small)
    text = corpus.read_text()
    assert numpy.load(remap)[pruned.encode(text)].tolist() == tok.encode(text)
    assert (
        run(capsys, "prune", path, "--vocab-size", "300", "-o", small, "--remap", remap, "--force")["vocab_size"] == 300
    )
    assert numpy.load(remap).shape == (300,)
    base = ["train", "--base", path]
    assert run(capsys, *base, "--special-token", "<x>", "-o", small, "--remap", remap, "--force")["vocab_size"] == 1201
    assert numpy.load(remap).tolist() == [*range(1200), -1]
    assert (
        run(capsys, *base, corpus, "--vocab-size", "1300", "-o", small, "--remap", remap, "--force")["vocab_size"]
        == 1300
    )
    assert numpy.load(remap).tolist() == [*range(1200), *[-1] * 100]
    for bad in (["prune", path, "-o", small], [*base, "-o", small], [*base, corpus, "-o", small]):
        assert main([*map(str, bad)]) == 2
        assert capsys.readouterr().err.count("\n") == 1
