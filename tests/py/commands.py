"""Runs each command of pybpe that writes, in a forked process, and reads what it wrote."""

import argparse
import contextlib
import io
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy  # noqa: F401  # in a child with little memory, its OpenBLAS would end the process
from corpora import EOT, documents, jsonl, small_tokenizer

import pybpe
from pybpe import __main__ as program
from pybpe import cli
from pybpe.cli.command import Command

# Every command that writes, with small inputs.
COMMANDS = {
    "train": "train in.txt --vocab-size 300 --memory-limit 20M --checkpoint out/x.checkpoint -o out/t.json",
    "counts": "count in.txt --memory-limit 20M -o out/x.counts",
    "encode": "encode -t tok.json in.txt -o out/ids.npy",
    "encode bin": "encode -t tok.json in.txt -o out/ids.bin",
    "decode": "decode -t tok.json ids.txt -o out/text.txt",
    "binarize": "binarize -t tok.json in.txt -o out/tokens --shard-tokens 4000",
    "prepare": "prepare in.txt --vocab-size 300 -o out/prepared",
    "corpus": "corpus in.txt --dedup --near-dedup 0.8 --workers 1 -o out/clean.jsonl --report out/report.json",
    "join": "join -t tok.json tokens -o out/joined",
    "mix": "mix recipe.toml -t tok.json -o out/mixed",
    "pack": "pack tokens -t tok.json --sequence-length 64 -o out/rows",
    "prune": "prune tok.json in.txt -o out/pruned.json --remap out/remap.json",
    "extend": "train in.txt --base tok.json --vocab-size 1100 -o out/more.json",
    "export": "export tok.json -o out/files --format files",
    "viz": "viz -t tok.json in.txt -o out/page.html",
    "eval": "llmc eval questions.jsonl -t tok.json -o out/e.bin",
}
RESUMING = ("unfinished", ".lock")  # what a run leaves from which the next resumes, or that it removes


def parsers(parser: Command | None = None, name: str = "") -> dict[str, Command]:
    """Returns the parser of each command, by its name, such as "llmc check"."""
    parser = parser or cli._parser()
    inner = [action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not inner:
        return {name: parser}
    each = [parsers(command, f"{name} {word}".strip()) for choices in inner for word, command in choices.items()]
    return {name: command for found in each for name, command in found.items()}


def make_inputs(folder: Path) -> None:
    """Writes the inputs of all commands."""
    tok = small_tokenizer()
    tok.save(folder / "tok.json")
    (folder / "in.txt").write_text(EOT.join(documents(30)))
    (folder / "in.jsonl").write_bytes(jsonl(documents(20)))
    (folder / "ids.txt").write_text(" ".join(map(str, tok.encode("some text " * 500))))
    keywords: dict[str, Any] = {"splits": (1,), "min_shard_tokens": 0, "progress": False, "name": "n"}
    pybpe.binarize(tok, folder / "in.txt", folder / "tokens", **keywords)
    (folder / "recipe.toml").write_text(f'[sources.all]\ndata = "{folder / "tokens"}"\nepochs = 1\n')
    question = {"context": "One and one", "completions": ["is one", "is two", "is 3", "is 4"], "label": 1}
    (folder / "questions.jsonl").write_text(json.dumps(question))


def link_inputs(inputs: Path, place: Path) -> None:
    """Makes a folder with links to the inputs, and the empty folders `out` and `tmp`."""
    for path in inputs.iterdir():
        (place / path.name).symlink_to(path)
    clear(place)


def clear(place: Path) -> None:
    for name in ("out", "tmp"):
        shutil.rmtree(place / name, ignore_errors=True)
        (place / name).mkdir()


def written(place: Path) -> dict[str, bytes]:
    """Returns the files in `out` and `tmp`, without the state of runs that resume."""
    files = {str(path.relative_to(place)): path for name in ("out", "tmp") for path in (place / name).rglob("*")}
    return {
        name: path.read_bytes()
        for name, path in files.items()
        if path.is_file() and not any(part in name for part in RESUMING)
    }


def arguments(command: str) -> list[str]:
    """Returns the arguments of a command that prints nothing but errors."""
    words = command.split()
    return [*words, *([] if words[0] in ("encode", "decode", "llmc") else ["--quiet"])]


def pybpe_program(
    *args: object, stdin: bytes | None = None, code: int = 0, cwd: Path | None = None
) -> subprocess.CompletedProcess[bytes]:
    """Runs `pybpe ARGS` in a forked process, which need not import modules again. Returns what it printed."""
    words = ["pybpe", *map(str, args)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            status = 98
            try:
                os.close(writing)
                for number, file in enumerate((reading, out.fileno(), err.fileno())):
                    os.dup2(file, number)
                sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w", errors="backslashreplace")
                sys.argv = words
                os.chdir(cwd or ".")
                status = program.main()
            except SystemExit as error:
                status = int(error.code or 0)
            except BaseException:
                traceback.print_exc()
            finally:
                with suppress(BaseException):
                    sys.stdout.flush()
                    sys.stderr.flush()
                os._exit(status)
        os.close(reading)
        with suppress(BrokenPipeError), os.fdopen(writing, "wb") as stream:
            stream.write(stdin or b"")
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        done = subprocess.CompletedProcess(words, status, out.read(), err.read())
    assert done.returncode == code, done.stdout.decode(errors="replace") + done.stderr.decode(errors="replace")
    return done


def pybpe_command(
    *args: object, stdin: str | None = None, code: int = 0, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Does the same with text instead of bytes."""
    done = pybpe_program(*args, stdin=None if stdin is None else stdin.encode(), code=code, cwd=cwd)
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def refusal(command: str) -> str:
    """Runs a command, without `pybpe`, in this process. Returns the line on standard error with which it refuses."""
    out = io.BytesIO()
    stream = io.TextIOWrapper(out)  # closed, it would close `out`
    with contextlib.redirect_stdout(stream), contextlib.redirect_stderr(io.StringIO()) as err:
        try:
            code: object = cli.main(shlex.split(command))
        except SystemExit as stopped:
            code = stopped.code
    said = err.getvalue()
    stream.flush()
    assert (code, out.getvalue()) == (2, b"") and said.startswith("pybpe: "), said
    assert said.count("\n") == 1 and said.endswith("\n"), said
    return said


def run(command: str, place: Path, prepare: Callable[[], None] = lambda: None) -> tuple[int, str]:
    """Runs a command in a forked process, after `prepare`. Returns the exit code, -N for signal N, and what it printed
    on standard error."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 98
        try:
            os.chdir(place)
            os.dup2(writing, 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            tempfile.tempdir = str(place / "tmp")
            for number in (signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
            sys.argv = ["pybpe", *arguments(command)]
            signal.alarm(60)  # the end of a process that hangs
            prepare()
            code = program.main()
        except SystemExit as error:
            code = int(error.code or 0)
        except BaseException:
            traceback.print_exc()
        finally:
            with suppress(BaseException):
                sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as stream:  # what it says fits into the pipe, even if a child of it lives on
        _, status = os.waitpid(child, 0)
        os.set_blocking(reading, False)
        said = stream.read() or b""
    return os.waitstatus_to_exitcode(status), said.decode(errors="replace")
