"""Every argument has its effect or is refused: given twice, empty, or where it would have none."""

import argparse
import contextlib
import inspect
import io
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from commands import parsers
from corpora import EOT, content, documents, jsonl, small_tokenizer

import pybpe
from llmc_compat.chat import write_chat
from llmc_compat.workspace import make_workspace
from pybpe import corpus
from pybpe.cli import _parser, main
from pybpe.corpus.filters import VARIED
from pybpe.errors import Error
from pybpe.reading.inputs import ReadOptions
from pybpe.reading.planning import SplitOptions
from pybpe.support.parallel import RunOptions
from pybpe.tokens.formats import ArrayOptions, OutputOptions
from pybpe.tokens.joining import join
from pybpe.tokens.mix import mix

COMMANDS = parsers()
ACCUMULATE = {"--special-token", "--max-score", "--parity", "--on", "--counts"}  # each adds a value
EMPTY = {"--text", "--separator"}  # flags for which an empty text is a value


def _count(action: argparse.Action) -> int:
    """Returns how many values a flag has."""
    return action.nargs if isinstance(action.nargs, int) else 1


@pytest.mark.parametrize("name", COMMANDS)
def test_a_flag_given_twice_accumulates_or_is_refused(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for action in COMMANDS[name]._actions:
        if action.option_strings and action.nargs != 0 and action.dest != "print_filters":  # which ends the command
            flag, value = action.option_strings[-1], "1"
            value = {"dedup": "exact", "scrub_pii": "all", "progress": "none"}.get(action.dest, value)
            with contextlib.suppress(SystemExit):
                main([*name.split(), *[flag, *[value] * _count(action)] * 2])
            is_refused = f"{flag}: given twice" in capsys.readouterr().err
            accumulates = flag in ACCUMULATE or (name, flag) == ("viz", "--tokenizer")
            assert is_refused != accumulates, flag


@pytest.mark.parametrize("name", COMMANDS)
def test_no_text_is_empty(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    flags = [action for action in COMMANDS[name]._actions if action.option_strings and action.nargs != 0]
    places = [action for action in COMMANDS[name]._actions if not action.option_strings and action.dest != "text"]
    needed = [word for action in flags if action.required for word in (action.option_strings[-1], "1")]
    each = ([action.option_strings[-1], *[""] * _count(action)] for action in flags)
    for words in ([*needed, *("" for _ in places)], *each):
        if "" in words and not EMPTY & set(words):
            with pytest.raises(SystemExit):
                main([*name.split(), *words])
            told = f"{words[0] if {*words[1:]} == {''} else ''}: expected a value, not an empty one"
            assert told in capsys.readouterr().err, words


@pytest.mark.parametrize("name", COMMANDS)
def test_help_teaches_with_examples(name: str) -> None:
    """It begins with one, within ten lines, and fits a terminal of 80 columns."""
    shown = COMMANDS[name].format_help()
    assert re.search(f"^  (.* \\| )?pybpe {name}", "\n".join(shown.splitlines()[:10]), re.MULTILINE)
    assert shown.startswith(f"usage: pybpe {name} [OPTIONS]")
    assert [line for line in shown.splitlines() if len(line) > 80] == []
    assert "docs/" not in shown and ".py" not in shown  # files that only the source code has


def test_help_of_groups_fits_a_terminal() -> None:
    shown = _parser().format_help()
    for words in ([], ["llmc"], ["llmc", "checkpoint"]):
        with contextlib.redirect_stdout(io.StringIO()) as out, pytest.raises(SystemExit):
            main([*words, "--help"])
        assert [line for line in out.getvalue().splitlines() if len(line) > 80] == []
    assert all(f"\n  {name.split()[0]} " in shown for name in COMMANDS)


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
    "min_shard_tokens": 10**7,
    "dtype": "uint32",
    "splits": (1,),
    "split_by": "hash",
    "eot": "none",
    "document_offsets": True,
    "provenance": True,
}


@pytest.mark.parametrize("form", ["llmc", "raw", "npy", "megatron", "llmq"])
def test_each_option_of_token_files_changes_them_or_is_refused(form: str, tmp_path: Path) -> None:
    tok = small_tokenizer()
    (tmp_path / "a.jsonl").write_bytes(jsonl(documents(40)))

    def made(folder: str, **options: Any) -> dict[str, bytes]:
        pybpe.binarize(tok, tmp_path / "a.jsonl", tmp_path / folder, format=form, **options)
        return content(tmp_path / folder)

    plain = made("plain", min_shard_tokens=0)
    for option, value in OPTIONS.items():
        if (form, option) == ("llmq", "dtype"):
            value = "uint16"  # its ids have 32 bits anyway
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
        "memory_limit=100000000 has no effect": lambda: corpus.clean(text, f"{out}.jsonl", memory_limit=10**8),
        "seed=3 has no effect": lambda: pybpe.train(text, vocab_size=300, seed=3),
        "seed=4 has no effect": lambda: pybpe.count_words(text, seed=4),
    }
    for message, call in calls.items():
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            call()
    assert not out.exists()
    pybpe.mix(tok, recipe, out, format="raw", sequence_length=64)  # it says which documents are cut


# ---------------------------------------------------------------------------------------------------
# The options of the functions that write token files: one default and one rule for each, and the identity of a run

GROUPS = (ReadOptions, SplitOptions, OutputOptions, RunOptions)
DEFAULTS = {field.name: field.default for options in GROUPS for field in fields(options)}
OTHERS = {  # the defaults of one function
    pybpe.encode_files: {"eot": "keep"},
    write_chat: {"name": "chat", "min_shard_tokens": 257},
    make_workspace: {"dtype": "fp32"},
}


@pytest.mark.parametrize("function", [pybpe.binarize, pybpe.prepare, pybpe.encode_files, make_workspace, write_chat])
def test_functions_have_the_defaults_of_the_options(function: Callable[..., Any]) -> None:
    given = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    known = DEFAULTS | OTHERS.get(function, {})
    assert {name: value for name, value in given.items() if name in known} == {
        name: known[name] for name in given if name in known
    }


@pytest.mark.parametrize(
    "command", [["binarize", "-t", "tok"], ["prepare", "--vocab-size", "300"], ["llmc", "workspace"]]
)
def test_the_command_line_has_the_defaults_of_the_options(command: list[str]) -> None:
    given = vars(_parser().parse_args([*command, "corpus.txt", "-o", "out"]))
    known = DEFAULTS | ({"dtype": "fp32"} if command[0] == "llmc" else {})
    same = {name for name in given if name in known and name != "progress"}
    assert {name: given[name] for name in same} == {name: known[name] for name in same}
    needed = {field.name for options in GROUPS[:3] for field in fields(options)}
    needed -= {"skipped", "on_error"} if command[0] == "llmc" else {"skipped"}  # they list them in the output folder
    needed -= {
        "prepare": {"dtype"},
        "llmc": {"format", "eot", "min_shard_tokens", "name", "document_offsets", "provenance", "id_key"},
    }.get(command[0], set())
    assert needed <= same  # the command passes on the options that it has: a missing one would be lost


# Commands that pass their options on by name, the function that takes them, and the options that it does not have.
PASSED_ON: dict[str, tuple[Callable[..., Any], str]] = {
    "train": (pybpe.train, "sizes channels plot remap"),
    "compare": (pybpe.compare, "tokenizers file count"),
    "bpb": (pybpe.bits_per_byte, ""),
    "corpus": (corpus.clean, "report print_filters " + " ".join(VARIED)),
    "binarize": (pybpe.binarize, ""),
    "prepare": (pybpe.prepare, ""),
    "join": (join, ""),
    "mix": (mix, "dry_run"),
    "pack": (pybpe.pack, "folder"),
    "llmc workspace": (make_workspace, ""),
    "llmc chat": (write_chat, ""),
}
OF_COMMANDS = {
    "help", "json", "quiet", "force", "files", "output", "tokenizer", "dask", "status",
}  # used otherwise  # fmt: skip


@pytest.mark.parametrize("command", PASSED_ON)
def test_no_option_is_lost_on_the_way_to_the_function(command: str) -> None:
    """`call` leaves out an option that the function does not have, for example because of a misspelled name."""
    function, others = PASSED_ON[command]
    unknown = {action.dest for action in COMMANDS[command]._actions} - set(inspect.signature(function).parameters)
    assert unknown <= OF_COMMANDS | set(others.split())


def test_only_an_array_keeps_the_marks_of_the_text() -> None:
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], [EOT])
    told = "or one of the tokenizer's special tokens \\('<.endoftext.>'\\), not"
    with pytest.raises(pybpe.errors.ArgumentError, match=f"eot must be prepend, append, none {told} 'keep'"):
        OutputOptions(eot="keep").with_mark(tok)
    with pytest.raises(pybpe.errors.ArgumentError, match=f"eot must be keep, prepend, append, none {told} 'x'"):
        ArrayOptions(eot="x").with_mark(tok)
