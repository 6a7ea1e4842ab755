"""A newcomer's first minutes: a clone that is not compiled, first guesses at commands, messages that say what to do."""

import contextlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import pybpe_program
from texts import english

import pybpe
from pybpe.cli import main

# Modules that slow down startup, or that a command does not need for printing its help.
NOT_FOR_HELP = {"asyncio", "cffi", "_cffi_backend", "numpy", "regex", "tqdm", "concurrent", "logging"}


def run(*args: object, stdin: bytes | None = None, code: int = 0, cwd: Path | None = None) -> str:
    """Runs `pybpe ARGS`; returns its standard error (one line) if it failed, else its standard output."""
    result = pybpe_program(*args, stdin=stdin, code=code, cwd=cwd)
    if code == 2:
        assert result.stderr.count(b"\n") == 1 and result.stdout == b""
        return result.stderr.decode()
    return result.stdout.decode()


# ------------------------------------------------------------------------------------------------------
# The package


@pytest.fixture(scope="module")
def clone(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the packages as git has them, and a text."""
    folder = tmp_path_factory.mktemp("clone")
    for package in ("pybpe", "llmc_compat"):
        ignored = shutil.ignore_patterns("*.so", "pybpe.[ch]", "__pycache__")
        shutil.copytree(root / package, folder / package, ignore=ignored)
    (folder / "novel.txt").write_text("once upon a time")
    return folder


def in_clone(clone: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with -S, so that no installed package hides the folder."""
    return subprocess.run([sys.executable, "-S", *command], cwd=clone, capture_output=True, text=True)


@pytest.mark.parametrize("code", ["pybpe.train('novel.txt', vocab_size=300)", "pybpe.Tokenizer"])
def test_a_clone_that_is_not_compiled_says_what_to_do(clone: Path, code: str) -> None:
    result = in_clone(clone, "-c", f"import pybpe; {code}")
    last = result.stderr.splitlines()[-1]
    assert result.returncode != 0 and f"{clone}/pybpe is source code that is not compiled" in last
    assert f"run Python from a folder other than {clone}" in last and "`make`" in last


@pytest.mark.parametrize("words", ["train novel.txt --vocab-size 300 -o tok.json", "--version", "--include-dir"])
def test_so_do_its_commands_in_one_line(clone: Path, words: str) -> None:
    result = in_clone(clone, "-m", "pybpe", *words.split())
    assert (result.returncode, result.stdout, result.stderr.count("\n")) == (2, "", 1) and "`make`" in result.stderr
    assert words == "--include-dir" or f"{clone}/pybpe is source code that is not compiled" in result.stderr


def test_an_import_error_inside_the_compiled_part_is_not_hidden(clone: Path) -> None:
    (clone / "pybpe" / "_core.py").write_text("import no_such_module\n")
    assert "No module named 'no_such_module'" in in_clone(clone, "-c", "import pybpe._binding").stderr.splitlines()[-1]
    (clone / "pybpe" / "_core.py").unlink()


def test_help_loads_only_what_it_needs() -> None:
    code = "import sys; from pybpe.__main__ import main; sys.argv[1:] = ['--help']; main()"
    code = f"import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); {code}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(result.stderr.split())
    assert not NOT_FOR_HELP & {name.partition(".")[0] for name in loaded}
    commands = ("pybpe.cli.", "llmc_compat.cli.")
    ours = {name for name in loaded if name.startswith(("pybpe.", "llmc_compat.")) and not name.startswith(commands)}
    inner = "__main__ _lazy _version arguments cli control_tokens errors support support.platform"
    assert ours <= {"llmc_compat.cli", *(f"pybpe.{name}" for name in inner.split())}


@pytest.mark.parametrize(
    ("args", "not_needed"),
    [
        ("--version", "numpy regex tqdm dataclasses logging argcomplete pybpe.tokenizer"),
        (
            "count --text hi -t tok.json",
            "numpy regex tqdm pickle socket orjson hashlib tempfile logging concurrent"
            " pybpe.pattern.automata pybpe.pattern.dialects pybpe.reading.remote pybpe.training.merging",
        ),
        ("inspect tok.json", "numpy regex hashlib concurrent"),
        ("help corpus", "numpy regex pickle socket hashlib logging concurrent multiprocessing"),
    ],
)
def test_a_command_loads_only_what_it_needs(args: str, not_needed: str, folder: Path) -> None:
    words = args.replace("tok.json", str(folder / "tok.json")).split()
    code = f"sys.argv[1:] = {words!r}; from pybpe.__main__ import main; main()"
    code = f"import atexit, sys; atexit.register(lambda: print(*sys.modules)); {code}"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(not_needed.split()) & set(loaded)


# ------------------------------------------------------------------------------------------------------
# First guesses


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text and a tokenizer without special tokens, as `pybpe train` makes it by default."""
    folder = tmp_path_factory.mktemp("first")
    (folder / "a.txt").write_text(english()[:100_000], encoding="utf-8")
    run("train", "a.txt", "--vocab-size", 600, "-o", "tok.json", cwd=folder)
    return folder


@pytest.mark.slow
def test_help_and_version_are_commands_too() -> None:
    assert run("help") == run("--help") == run()
    assert run("help", "train") == run("train", "--help")
    assert run("help", "llmc", "check") == run("llmc", "check", "--help")
    assert run("version") == run("--version")


@pytest.mark.slow
def test_words_and_ids_as_arguments(folder: Path) -> None:
    tok = pybpe.Tokenizer.from_file(folder / "tok.json")
    ids = tok.encode("Hello, world")
    assert json.loads(run("encode", "-t", "tok.json", "--text", "Hello, world", "--json", cwd=folder)) == ids
    assert run("count", "-t", "tok.json", "--text", "", "--json", cwd=folder) == '{"tokens": 0, "bytes": 0}\n'
    words = [str(i) for i in ids]
    for given in (words, [" ".join(words)], [",".join(words)], [str(ids)], str(ids).split()):
        assert run("decode", "-t", "tok.json", *given, cwd=folder) == "Hello, world"
    (folder / str(ids[0])).write_text("10 20")
    assert run("decode", "-t", "tok.json", ids[0], cwd=folder) == tok.decode([10, 20])  # there is a file with this name
    assert run("decode", "-t", "tok.json", *ids, cwd=folder) == "Hello, world"


@pytest.mark.slow
def test_without_an_end_of_text_binarize_says_how_to_add_it(folder: Path) -> None:
    for args in (["-o", "out"], ["-o", "out", "--eot", "none", "--documents", "special"]):
        message = run("binarize", "-t", "tok.json", "a.txt", *args, cwd=folder, code=2)
        assert (
            "--special-token" in message and "pybpe train --base TOK --special-token '<|endoftext|>' -o NEW" in message
        )
    assert "--eot none" in run("binarize", "-t", "tok.json", "a.txt", "-o", "out", cwd=folder, code=2)
    run("train", "--base", "tok.json", "--special-token", "<|endoftext|>", "-o", "new.json", cwd=folder)
    run("binarize", "-t", "new.json", "a.txt", "-o", "out", cwd=folder)
    assert "<|endoftext|>, which llm.c and `pybpe binarize` need" in " ".join(run("train", "--help").split())


def test_a_large_corpus_is_told_what_val_and_test_set_aside(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    words = ["binarize", "-t", "tok.json", "a.txt", "--eot", "none", "--split-by", "token", "-o"]
    assert main([*words, "small"]) == 0 and "set aside" not in capsys.readouterr().err
    monkeypatch.setattr("pybpe.cli.token_files._LARGE", 1000)
    assert main([*words, "large"]) == 0
    tokens = pybpe.Manifest.load("large").split_tokens
    told = f"val {tokens('val'):,}, test {tokens('test'):,}; --splits 98,1,1 sets aside less\n"
    assert told in capsys.readouterr().err
    assert main([*words, "other", "--splits", "98,1,1"]) == 0 and "set aside" not in capsys.readouterr().err


# ------------------------------------------------------------------------------------------------------
# A terminal


def at_a_terminal(folder: Path, typed: list[bytes], *args: str) -> str:
    """Returns what `pybpe ARGS` shows at a terminal. Types each item after the one before has been shown."""
    import pty

    command = [sys.executable, "-m", "pybpe", *args]
    main, terminal = pty.openpty()
    process = subprocess.Popen(command, stdin=terminal, stdout=terminal, stderr=terminal, cwd=folder)
    os.close(terminal)
    shown = b""
    for line in (b"", *typed):
        os.write(main, line)
        while b"on a new line\r\n" not in shown and process.poll() is None:
            shown += os.read(main, 1 << 16)
    assert process.wait(60) == 0
    with contextlib.suppress(OSError):  # the input is at its end
        while more := os.read(main, 1 << 16):
            shown += more
    os.close(main)
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("command", ["encode", "count", "decode"])
def test_one_end_of_the_text_is_enough_and_a_prompt_says_what_is_awaited(folder: Path, command: str) -> None:
    typed = b"10 20 30\n\x04"
    shown = at_a_terminal(folder, [typed], command, "-t", "tok.json")
    prompt = "pybpe: reading from the terminal. To end, press Ctrl-D on a new line\n"
    assert shown.startswith(prompt)
    tok = pybpe.Tokenizer.from_file(folder / "tok.json")
    expected = {
        "encode": " ".join(map(str, tok.encode("10 20 30\n"))),
        "count": f"{tok.count('10 20 30' + chr(10))} tokens, 9 bytes",
        "decode": tok.decode([10, 20, 30]) + "\n",
    }
    assert expected[command] in shown.removeprefix(prompt)


# ------------------------------------------------------------------------------------------------------
# Messages that explain


@pytest.mark.slow
def test_inspect_says_what_prune_would_drop(folder: Path) -> None:
    (folder / "b.txt").write_text(english()[100_000:120_000], encoding="utf-8")
    for text in ("a.txt", "b.txt"):
        facts = json.loads(run("inspect", "tok.json", text, "--json", cwd=folder))
        pruned = json.loads(run("prune", "tok.json", text, "-o", "small.json", "--json", "--force", cwd=folder))
        assert facts["prunable"] == pruned["old"] - pruned["vocab_size"]
        assert f"`pybpe prune` drops {facts['prunable']}," in run("inspect", "tok.json", text, cwd=folder)
    assert facts["prunable"] > 0
    assert "every token is used, part of" in run("prune", "small.json", "b.txt", "-o", "same.json", cwd=folder)


def test_ranks_alone_say_how_they_become_a_tokenizer(folder: Path) -> None:
    run("export", "tok.json", "-o", "tok.tiktoken", cwd=folder)
    message = run("count", "-t", "tok.tiktoken", "a.txt", cwd=folder, code=2)
    assert "pybpe export FILE --pattern cl100k --special-token" in message
    assert "as in --pattern cl100k" in run("export", "tok.tiktoken", "-o", "x.json", cwd=folder, code=2)
