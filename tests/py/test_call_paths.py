"""No two paths of one call may be one file: every command and every function compares them before it writes."""

import argparse
import os
import re
from pathlib import Path

import pytest
from commands import parsers
from corpora import standard_input

import pybpe
from pybpe import corpus
from pybpe.cli import main
from pybpe.cli.common import paths_of
from pybpe.support.call_paths import check_paths

# Flags and arguments with a text as value, but not the path of a file.
NO_PATHS = set(
    "--eot --name --splits --pattern --normalizer --special-token --end-of-text --encoding --text-key --dask"
    " --dtype --format --where --documents --split-by --packing --pad --on-error --special-ids --tie-break --parity-per"
    " --languages --max-score --depth --id-key"
    " --separator".split()
)


def flag(action: argparse.Action) -> str:
    return action.option_strings[-1] if action.option_strings else action.dest


def takes_text(action: argparse.Action) -> bool:
    return action.type in (None, str) and action.nargs != 0 and not action.choices and action.dest != "help"


COMMANDS = parsers()


def registered(parser: argparse.ArgumentParser) -> dict[str, list[argparse.Action]]:
    """Returns which arguments of a command name outputs, tokenizers and the like, and texts."""
    found: dict[str, list[argparse.Action]] = {"writes": [], "reads": [], "texts": []}
    for action in parser._actions:
        given = argparse.Namespace(parser=parser, **{action.dest: "a"})
        for role, paths in paths_of(given).items():
            found[role] += [action] * len(paths)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_every_argument_with_a_text_is_a_path_or_listed_here(name: str) -> None:
    known = {flag(action) for some in registered(COMMANDS[name]).values() for action in some}
    others = {flag(action) for action in COMMANDS[name]._actions if takes_text(action)} - known
    assert {other for other in others if other != "--text" or name not in ("encode", "count", "viz")} <= NO_PATHS


PAIRS = [
    (name, writes, other)
    for name, parser in COMMANDS.items()
    for roles in [registered(parser)]
    for number, writes in enumerate(roles["writes"])
    for other in (*roles["writes"][number + 1 :], *roles["reads"], *roles["texts"])
]


def words(name: str, given: dict[argparse.Action, str]) -> list[str]:
    """Returns a command with these values, and with some value for whatever else it requires."""
    found = name.split()
    for action in COMMANDS[name]._actions:
        required = action.required and action.nargs != "*"
        if action in given or required:
            value = given.get(action, "1" if action.type is not None else f"other-{action.dest}")
            found += [*action.option_strings[-1:], value]
    return found


@pytest.mark.parametrize(("name", "writes", "other"), PAIRS, ids=[f"{name}{flag(a)}{flag(b)}" for name, a, b in PAIRS])
def test_a_command_whose_output_is_another_of_its_files_leaves_it_alone(
    name: str,
    writes: argparse.Action,
    other: argparse.Action,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text('{"text": "a"}\n')
    Path("link").symlink_to("a.jsonl")
    prefix = "en=" if other.metavar == "NAME=FILE" else ""
    assert main(words(name, {writes: "./link", other: prefix + "a.jsonl"})) == 2
    assert "choose another output" in capsys.readouterr().err
    assert Path("a.jsonl").read_text() == '{"text": "a"}\n'
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "link"]


def test_an_output_may_have_an_equals_sign(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("a b a b")
    Path("tok.json").write_text("{}")
    for out in ("run=tok.json", "lr=1/tok.json"):
        assert main(["train", "a.txt", "--vocab-size", "257", "-o", out]) == 0
    assert Path("tok.json").read_text() == "{}"
    assert {path.name for path in tmp_path.iterdir()} == {"a.txt", "tok.json", "run=tok.json", "lr=1"}


def test_what_two_outputs_or_an_output_and_an_input_have_in_common(tmp_path: Path) -> None:
    folder, text = tmp_path / "f", tmp_path / "a.txt"
    folder.mkdir()
    (folder / "tokenizer.json").write_text("{}")
    text.write_text("text")
    tokenizer = [str(folder / "tokenizer.json")]
    for writes, reads, texts in [
        ({"o": [str(tmp_path / "new")], "p": [str(folder / ".." / "new")]}, {}, {}),  # neither exists yet
        ({"o": tokenizer}, {"t": [str(folder)]}, {}),  # a folder stands for the files in it
        ({"o": [str(text)]}, {}, {"t": [str(tmp_path / "*.txt")]}),
    ]:
        with pytest.raises(pybpe.errors.ArgumentError, match="choose another output"):
            check_paths(writes, reads, texts)
    for writes, reads, texts in [
        ({"o": ["-"]}, {}, {"t": ["-"]}),
        ({"o": ["/dev/null"], "p": ["/dev/null"]}, {}, {}),
        ({"o": tokenizer}, {}, {"t": [str(folder)]}),  # a corpus leaves out what the call writes
        ({"o": ["gpt2"]}, {"t": ["gpt2"]}, {}),  # a name, not a file
    ]:
        check_paths(writes, reads, texts)


def test_functions_compare_their_paths_too(tmp_path: Path) -> None:
    text = tmp_path / "a.jsonl"
    text.write_text('{"text": "a b a b"}\n')
    tok = pybpe.train(iter(["a b a b"]), vocab_size=257)
    counts = tmp_path / "a.counts"
    pybpe.count_words(iter(["a"])).save(counts)
    plain = tmp_path / "t.bin"
    plain.write_text("a b")
    out, skips = tmp_path / "o.jsonl", {"on_error": "skip"}
    for call in (
        lambda: corpus.clean(text, text),
        lambda: corpus.clean(text, out, skipped=out, **skips),
        lambda: corpus.clean(text, out, skipped=text, **skips),
        lambda: pybpe.train(text, vocab_size=257, skipped=text, **skips),
        lambda: pybpe.count_words(text, skipped=text, **skips),
        lambda: pybpe.encode_files(tok, plain, plain),
        lambda: tok.extend(inputs=text, vocab_size=258, remap=text),
        lambda: pybpe.Counts.merge_files([counts], counts),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match="choose another output"):
            call()
    assert text.read_text() == '{"text": "a b a b"}\n'
    assert pybpe.Counts.load(counts).to_dict() == {b"a": 1}


def test_an_input_is_given_once_under_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    for name in ("a.txt", "sub/b.txt", "sub/c.txt", "d.txt"):
        (folder / name).write_text(f"a b {name} " * 50)
        os.utime(folder / name, (0, 0))
    Path("link.txt").symlink_to("folder/a.txt")
    for name in ("linked", "hard"):
        Path(name).mkdir()
        Path(name, "x.txt").write_text("another")
    Path("linked/a.txt").symlink_to("x.txt")
    Path("hard/a.txt").hardlink_to("hard/x.txt")
    tok = pybpe.train(iter(["a b a b"]), vocab_size=258, special_tokens=["<|endoftext|>"])
    for inputs, message in (
        (["folder/a.txt", "./folder/a.txt"], "./folder/a.txt: the same file as folder/a.txt: give each input once"),
        (["folder/a.txt", "link.txt"], "link.txt: the same file as folder/a.txt"),
        (["folder", "folder"], "folder: given twice"),
        (["folder", "folder/"], "folder/a.txt (in folder/): the same file as folder/a.txt (in folder): give each"),
        (["folder", "folder/a.txt"], "folder/a.txt: the same file as folder/a.txt (in folder): give each"),
        (["folder", "folder/sub"], "folder/sub/b.txt (in folder/sub): the same file as folder/sub/b.txt (in folder)"),
        (["folder/*.txt", "folder/d.txt"], "folder/d.txt: the same file as folder/d.txt (in folder/*.txt)"),
        (["folder/**", "folder"], "folder/a.txt (in folder): the same file as folder/a.txt (in folder/**)"),
        (["linked"], "linked/x.txt: the same file as linked/a.txt, in the same input, linked: remove one of the two"),
        (["hard"], "hard/x.txt: the same file as hard/a.txt, in the same input, hard: remove one of the two"),
        (["-", "-"], "-: given twice"),
        (["-", "/dev/stdin"], "/dev/stdin: the same file as -"),
        (["folder", "-"], "-: the same file as folder/d.txt (in folder)"),
    ):
        for call in (
            lambda given: pybpe.train(given, vocab_size=300),
            lambda given: pybpe.prepare(given, "out", vocab_size=300),
            lambda given: pybpe.binarize(tok, given, "out", eot="none"),
            lambda given: pybpe.count_words(given),
            lambda given: corpus.clean(given, "out.jsonl"),
            lambda given: pybpe.loading.DocumentRows(tok, given, batch_size=1, sequence_length=8),
        ):
            with standard_input("folder/d.txt"), pytest.raises(pybpe.errors.ArgumentError, match=re.escape(message)):
                call(inputs)
    assert pybpe.count_words(["folder/sub", "folder/*.txt"]).to_dict()[b" b"] == 200
    pybpe.count_words("link.txt").save("n.counts")
    Path("n-link.counts").symlink_to("n.counts")
    for inputs, message in ((["n.counts"] * 2, "n.counts: given twice"), (["n.counts", "n-link.counts"], "same file")):
        for call in (pybpe.Counts.load_sum, lambda given: pybpe.Counts.merge_files(given, "out.counts")):
            with pytest.raises(pybpe.errors.ArgumentError, match=message):
                call(inputs)
