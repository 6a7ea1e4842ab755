"""Parity-aware training against its definition, and what it refuses. Random languages: tests/c/test_train_random.c."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from reference import parity as reference
from reference.superwords import is_whole
from texts import chinese, english

import pybpe
from pybpe.analysis.measures import gini
from pybpe.cli import main


def counted(text: str) -> dict[bytes, int]:
    return pybpe.count_words(iter([text])).to_dict()


TRAIN = {"en": english()[:12_000], "zh": chinese()[:4_000]}
DEV = {"en": english()[40_000:45_000], "zh": chinese()[12_000:15_000]}
# For the definition, which is slow
FEW = {name: text[: len(text) // 8] for name, text in TRAIN.items()}
FEW_DEV = {name: text[: len(text) // 8] for name, text in DEV.items()}


def by_language(texts: dict[str, str]) -> dict:
    return {name: iter([text]) for name, text in texts.items()}


@pytest.mark.parametrize(("per", "whole"), [("character", False), ("byte", False), ("byte", True)])
def test_train_equals_the_definition(per: str, whole: bool) -> None:
    sizes = {name: len(text) if per == "character" else len(text.encode()) for name, text in FEW_DEV.items()}
    languages = [reference.Language(counted(FEW[n]), counted(FEW_DEV[n]), sizes[n]) for n in FEW]
    given = {"parity": by_language(FEW_DEV), "parity_per": per, "vocab_size": 330, "whole_characters": whole}
    tok = pybpe.train(by_language(FEW), **given)
    assert tok.merges == reference.train(languages, 330 - 256, rules=[is_whole] if whole else [])


def test_translations_are_compared_by_tokens() -> None:
    dev = {name: lines_of(text, 20) for name, text in FEW_DEV.items()}
    languages = [reference.Language(counted(FEW[n]), counted(dev[n]), 1) for n in FEW]
    tok = pybpe.train(by_language(FEW), parity=by_language(dev), vocab_size=330)
    assert tok.merges == reference.train(languages, 330 - 256)


def test_transition_begins_with_ordinary_training() -> None:
    both = pybpe.train(iter(FEW.values()), vocab_size=300)
    languages = [reference.Language(counted(FEW[n]), counted(FEW_DEV[n]), len(FEW_DEV[n])) for n in FEW]
    tok = pybpe.train(
        by_language(FEW), parity=by_language(FEW_DEV), parity_per="character", vocab_size=400, transition=0.75
    )
    assert tok.merges[: 300 - 256] == both.merges
    assert tok.merges == reference.train(languages, 400 - 256, merges=both.merges)


def test_a_base_becomes_fairer() -> None:
    base = pybpe.train(iter([TRAIN["en"]]), vocab_size=500, special_tokens=["<|endoftext|>"])
    tok = pybpe.train(by_language(TRAIN), parity=by_language(DEV), parity_per="byte", vocab_size=700, base=base)
    assert tok.merges[: len(base.merges)] == base.merges
    assert base.extend(inputs=by_language(TRAIN), vocab_size=700, parity=by_language(DEV), parity_per="byte") == tok

    def unfair(each: pybpe.Tokenizer) -> float:
        return gini([each.count(text) / len(text.encode()) for text in DEV.values()])

    assert unfair(tok) < unfair(base) / 5


@pytest.mark.parametrize(("whole_words", "first"), [(True, b"ef"), (False, b"ab")])
def test_whole_words_of_a_base_are_one_token(whole_words: bool, first: bytes) -> None:
    """If "xyz" is one token, b costs more than a; otherwise they cost the same, and a is first."""
    plain = pybpe.Tokenizer(dict(enumerate([*(bytes([i]) for i in range(256)), b"xyz"])), [])
    base = pybpe.tokenizer.of_model(replace(plain.model, whole_words=whole_words))
    tok = base.extend(
        inputs={"a": iter(["ab"]), "b": iter(["ef"])},
        vocab_size=258,
        parity={"a": iter(["xyz", "ab"]), "b": iter(["ef"])},
        parity_per="byte",
    )
    assert tok.model.vocab[257] == first


def files(tmp_path: Path, name: str, texts: dict[str, str]) -> dict[str, Path]:
    for language, text in texts.items():
        (tmp_path / f"{name}.{language}").write_text(text, encoding="utf-8", newline="")
    return {language: tmp_path / f"{name}.{language}" for language in texts}


def lines_of(text: str, count: int) -> str:
    return "".join(text.replace("\n", " ")[40 * i : 40 * i + 40] + "\n" for i in range(count))


def test_workers_executors_and_memory_limits_change_nothing(tmp_path: Path) -> None:
    train = files(tmp_path, "train", TRAIN)
    dev = files(tmp_path, "dev", {name: lines_of(text, 40) for name, text in DEV.items()})
    arguments: dict = {"vocab_size": 400, "parity": dev, "special_tokens": ["the"]}
    expected = pybpe.train(train, workers=1, **arguments)
    assert pybpe.train(train, workers=3, **arguments) == expected
    assert pybpe.train(train, memory_limit=1 << 24, **arguments) == expected
    with ThreadPoolExecutor(2) as pool:
        assert pybpe.train(train, executor=pool, **arguments) == expected
    texts = {name: iter([path.read_text(encoding="utf-8")]) for name, path in dev.items()}
    assert pybpe.train(train, **arguments | {"parity": texts}) == expected
    records = {}
    for name, path in dev.items():
        records[name] = tmp_path / f"dev-{name}.jsonl"
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        records[name].write_text("".join(json.dumps({"text": line}) + "\n" for line in lines), encoding="utf-8")
    again = pybpe.train(by_language(TRAIN), **arguments | {"parity": records, "special_tokens": []})
    assert again.merges == pybpe.train(train, **arguments | {"special_tokens": []}).merges


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    train = files(tmp_path, "train", TRAIN)
    dev = files(tmp_path, "dev", {name: lines_of(text, 40) for name, text in DEV.items()})
    out = tmp_path / "tok.json"
    given = [f"{name}={path}" for name, path in train.items()]
    given += [part for name, path in dev.items() for part in ("--parity", f"{name}={path}")]
    options = ["--vocab-size", "600", "--quiet", "-o", str(out)]
    assert main(["train", *given, "--transition", "0.6", *options]) == 0
    facts = json.loads(out.read_bytes())["model"]["pybpe"]
    assert (facts["parity"], facts["parity_per"], facts["transition"]) == (["en", "zh"], "text", 0.6)
    assert main(["train", *given, "--parity-per", "byte", "--force", *options]) == 0
    capsys.readouterr()
    for arguments, message in (
        ([str(train["en"]), *given[2:]], "expected NAME=FILE"),
        ([*given, "--sizes", "300,400"], "--sizes cannot be used with --parity"),
        ([*given, "--counts", "other.counts"], "use files to train on, or --counts"),
        ([*given, "--checkpoint", str(tmp_path / "c")], "checkpoint cannot be used with --parity"),
        ([*given[:2], "--parity-per", "byte"], "--parity-per needs --parity"),
        ([*given[:-1], f"zh={out}"], "--output would replace --parity"),
    ):
        assert main(["train", *arguments, *options]) != 0
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"parity": ["dev.en"]}, "parity must be a mapping"),
        ({"parity": {"en": "a"}}, "at least 2"),
        ({"parity": {"en": "a", "": "b"}}, "cannot be the name of a language"),
        ({"parity": {"en": "a", 2: "b"}}, "the name of a language"),
        ({"parity": {"en": "a", "zh": "b"}, "parity_per": "line"}, "parity_per must be one of"),
        ({"parity": {"en": "a", "de": "b"}}, "lacks the language"),
        ({"parity": {"en": "a", "zh": "b"}, "superwords": True}, "superwords"),
        ({"parity": {"en": "-", "zh": "b"}}, "read twice"),
        ({"parity": {"en": "absent", "zh": "absent"}}, "absent"),
        ({"parity": {"en": iter(["a\n"]), "zh": iter(["a\nb\n"])}}, "not translations"),
        ({"parity": {"en": iter([""]), "zh": iter([""])}}, "has no text"),
        ({"parity": {"en": {"a": 1}, "zh": {"b": 1}}}, "parity is a dict with the keys"),
        ({"parity": {"en": b"ab", "zh": b"ab"}}, "parity is one bytes object"),
        ({"parity": {"en": iter(["a"]), "zh": iter(["b"])}, "transition": 1.5}, "transition must be"),
        ({"parity": {"en": iter(["a"]), "zh": iter(["b"])}, "checkpoint": "c"}, "checkpoint cannot be used"),
        ({"parity_per": "byte"}, "parity_per needs parity"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict, message: str) -> None:
    with pytest.raises((pybpe.errors.ArgumentError, pybpe.errors.FileError), match=message):
        pybpe.train({"en": iter(["a b"]), "zh": iter(["c d"])}, vocab_size=300, **arguments)


def test_inputs_must_have_languages() -> None:
    dev = {"en": iter(["a"]), "zh": iter(["b"])}
    with pytest.raises(pybpe.errors.ArgumentError, match="with parity, inputs must be a mapping"):
        pybpe.train(iter(["a"]), parity=dev, vocab_size=300)
    with pytest.raises(pybpe.errors.ArgumentError, match="pass inputs, not counts"):
        pybpe.train(counts={"a": 1}, parity=dev, vocab_size=300)
    with pytest.raises(pybpe.errors.ArgumentError, match="'zh' has no text"):
        pybpe.train({"en": iter(["a"]), "zh": iter([""])}, parity=dev, vocab_size=300)
    with pytest.raises(pybpe.errors.ArgumentError, match="inputs is a dictionary"):
        pybpe.train(by_language(TRAIN), vocab_size=300)
    with pytest.raises(pybpe.errors.ArgumentError, match="only once"):
        pybpe.train({"en": "-", "zh": "-"}, parity=dev, vocab_size=300)
    with pytest.raises(pybpe.errors.ArgumentError, match="the same file as .*: give each input once"):
        pybpe.train({"en": __file__, "zh": os.path.relpath(__file__)}, parity=dev, vocab_size=300)
