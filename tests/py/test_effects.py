"""Every argument has its effect or is refused: given twice, empty, or where it would have none."""

import argparse
import contextlib
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, content, documents, jsonl, small_tokenizer

import pybpe
from pybpe import corpus
from pybpe.cli import _parser, main
from pybpe.errors import Error


def commands(parser: argparse.ArgumentParser, name: str = "") -> dict[str, argparse.ArgumentParser]:
    inner = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return {
        word: command
        for choices in inner
        for key, each in choices.items()
        for word, command in (commands(each, f"{name} {key}".strip()) or {f"{name} {key}".strip(): each}).items()
    }


COMMANDS = commands(_parser())
ACCUMULATE = {"--special-token", "--max-score", "--parity", "--on", "--counts"}  # each adds a value
EMPTY = {"--text", "--separator"}  # flags for which an empty text is a value


@pytest.mark.parametrize("name", COMMANDS)
def test_a_flag_given_twice_accumulates_or_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for action in COMMANDS[name]._actions:
        if action.option_strings and action.nargs != 0:
            flag, value = action.option_strings[-1], "2=1" if "ngrams" in action.dest else "1"
            value = {"dedup": "exact", "scrub_pii": "all"}.get(action.dest, value)
            with contextlib.suppress(SystemExit):
                main([*name.split(), flag, value, flag, value])
            is_refused = f"{flag}: given twice" in capsys.readouterr().err
            accumulates = flag in ACCUMULATE or (name, flag) == ("viz", "--tokenizer")
            assert is_refused != accumulates, flag


@pytest.mark.parametrize("name", COMMANDS)
def test_no_text_is_empty(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = [action for action in COMMANDS[name]._actions if action.option_strings and action.nargs != 0]
    places = [action for action in COMMANDS[name]._actions if not action.option_strings and action.dest != "text"]
    needed = [word for action in flags if action.required for word in (action.option_strings[-1], "1")]
    for words in ([*needed, *("" for _ in places)], *([action.option_strings[-1], ""] for action in flags)):
        if "" in words and not EMPTY & set(words):
            with pytest.raises(SystemExit):
                main([*name.split(), *words])
            told = f"{words[0] if words[-2:] == [words[0], ''] else ''}: expected a value, not an empty one"
            assert told in capsys.readouterr().err, words


def test_no_name_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tok = small_tokenizer()
    Path("a.txt").write_text("a b")
    calls: list[Any] = [
        lambda: pybpe.binarize(tok, "a.txt", ""),
        lambda: pybpe.binarize(tok, "", "out"),
        lambda: pybpe.binarize(tok, "a.txt", "out", text_key=""),
        lambda: pybpe.binarize(tok, "a.txt", "out", name="a\nb"),
        lambda: pybpe.Manifest.load(""),
        lambda: tok.save(""),
    ]
    for call in calls:
        with pytest.raises(
            pybpe.errors.ArgumentError, match="empty|must be a file-name prefix without / or line breaks"
        ):
            call()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


OPTIONS = {
    "name": "other",
    "shard_tokens": 700,
    "sequence_length": 16,
    "min_shard_tokens": 10**7,
    "dtype": "uint32",
    "splits": (1,),
    "split_by": "document",
    "eot": "none",
}


@pytest.mark.parametrize("form", ["llmc", "raw", "npy", "megatron", "webdataset"])
def test_each_option_of_token_files_changes_them_or_is_refused(form: str, tmp_path: Path) -> None:
    tok = small_tokenizer()
    (tmp_path / "a.jsonl").write_bytes(jsonl(documents(40)))

    def made(folder: str, **options: Any) -> dict[str, bytes]:
        pybpe.binarize(tok, tmp_path / "a.jsonl", tmp_path / folder, format=form, **options)
        return content(tmp_path / folder)

    plain = made("plain", min_shard_tokens=0)
    for option, value in OPTIONS.items():
        try:
            assert made(option, **{"min_shard_tokens": 0, option: value}) != plain, option
        except Error as error:
            assert option in str(error), option


def test_arguments_without_effect_are_refused(tmp_path: Path) -> None:
    tok = small_tokenizer()
    for name, texts in (("a", documents(40)[:20]), ("b", documents(40)[20:])):
        (tmp_path / f"{name}.txt").write_text(EOT.join(texts), encoding="utf-8")
        pybpe.binarize(tok, tmp_path / f"{name}.txt", tmp_path / name, format="raw", min_shard_tokens=0)
    text, out, both = tmp_path / "a.txt", tmp_path / "out", [tmp_path / "a", tmp_path / "b"]
    recipe = {"sources": {"a": {"data": str(both[0]), "epochs": 1}}}
    calls: dict[str, Any] = {
        "name='x' has no effect: this format has fixed file names": lambda: pybpe.join(tok, both, out, name="x"),
        "name='y' has no effect": lambda: pybpe.mix(tok, recipe, out, format="raw", name="y"),
        "sequence_length=64 has no effect": lambda: pybpe.binarize(tok, text, out, sequence_length=64),
        "memory_limit=100000000 has no effect": lambda: corpus.clean(text, f"{out}.jsonl", memory_limit=10**8),
        "seed=3 has no effect": lambda: pybpe.train(text, vocab_size=300, seed=3),
        "seed=4 has no effect": lambda: pybpe.count_words(text, seed=4),
        "max_digit_ratio is a share": lambda: corpus.Filters(max_digit_ratio=5),
    }
    for message, call in calls.items():
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            call()
    assert not out.exists()
    pybpe.mix(tok, recipe, out, format="raw", sequence_length=64)  # it says which documents are cut
