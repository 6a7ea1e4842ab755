"""Commands that a signal ends: every command that writes leaves its whole output or none, and no temporary file. Its
exit code is the signal's."""

import itertools
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, documents, jsonl, small_tokenizer

import pybpe
from pybpe import __main__ as program
from pybpe import _binding

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the limits and /proc are Linux's")

# Every command that writes, with small inputs.
COMMANDS = {
    "train": "train in.txt --vocab-size 300 --memory-limit 20M --checkpoint out/x.checkpoint -o out/t.json",
    "counts": "counts in.txt --memory-limit 20M -o out/x.counts",
    "encode": "encode -t tok.json in.txt -o out/ids.npy",
    "encode bin": "encode -t tok.json in.txt -o out/ids.bin",
    "decode": "decode -t tok.json ids.txt -o out/text.txt",
    "binarize": "binarize -t tok.json in.txt -o out/tokens --shard-tokens 4000",
    "binarize webdataset": "binarize -t tok.json in.txt -o out/tokens --format webdataset --sequence-length 64",
    "binarize pack": "binarize -t tok.json in.txt -o out/rows --pack 64",
    "prepare": "prepare in.txt --vocab-size 300 -o out/prepared",
    "corpus": "corpus in.txt --dedup --near-dedup 0.8 --workers 1 -o out/clean.jsonl --report out/report.json",
    "join": "join -t tok.json tokens -o out/joined",
    "mix": "mix recipe.toml -t tok.json -o out/mixed",
    "pack": "pack tokens -t tok.json --sequence-length 64 -o out/rows",
    "prune": "prune tok.json in.txt -o out/pruned.json --remap out/remap.json",
    "extend": "extend tok.json in.txt --vocab-size 1100 -o out/more.json",
    "export": "export tok.json -o out/files --format files",
    "viz": "viz -t tok.json in.txt -o out/page.html",
    "eval": "llmc eval questions.jsonl -t tok.json -o out/e.bin",
}
RESUMING = ("unfinished", ".checkpoint", ".lock")  # what a run leaves from which the next resumes, or that it removes


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a folder with the inputs of all commands."""
    folder = tmp_path_factory.mktemp("inputs")
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
    return folder


@pytest.fixture
def place(inputs: Path, tmp_path: Path) -> Path:
    """Makes a folder with links to the inputs, and the empty folders `out` and `tmp`."""
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    clear(tmp_path)
    return tmp_path


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


def run(command: str, place: Path, prepare: Callable[[], None] = lambda: None) -> tuple[int, str]:
    """Runs a command in a forked process, after `prepare`. Returns the exit code, -N for signal N, and what it printed
    on standard error."""
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            code = 99
            try:
                os.chdir(place)
                os.dup2(said.fileno(), 2)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                tempfile.tempdir = str(place / "tmp")
                for number in (signal.SIGTERM, signal.SIGHUP):
                    signal.signal(number, signal.SIG_DFL)
                sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
                words = command.split()
                sys.argv = ["pybpe", *words, *([] if words[0] in ("encode", "decode", "llmc") else ["--quiet"])]
                prepare()
                code = program.main()
                sys.stderr.flush()
            except SystemExit as error:
                code = int(error.code or 0)
                sys.stderr.flush()
            except BaseException:
                code = 98
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        return os.waitstatus_to_exitcode(status), said.read().decode(errors="replace")


# ------------------------------------------------------------------------------------------------------
# Signals


def on_access(act: Callable[[], None]) -> Callable[[], None]:
    """Makes a process call `act` just before each time that it accesses the disk."""

    def prepare() -> None:
        def watched(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **keywords: Any) -> Any:
                act()
                return function(*args, **keywords)

            return call

        for name in ("replace", "unlink", "fsync", "truncate", "mkdir"):
            setattr(os, name, watched(getattr(os, name)))
        _binding.Output.commit = watched(_binding.Output.commit)  # type: ignore[method-assign]

    return prepare


def signal_at(point: int, number: int) -> Callable[[], None]:
    """Makes a process send itself a signal just before its access number `point`."""
    left = iter(range(point, -1, -1))

    def act() -> None:
        if next(left, None) == 0:
            signal.pthread_kill(threading.main_thread().ident or 0, number)

    return on_access(act)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_signal_at_any_moment_leaves_no_temporary_file(place: Path, name: str) -> None:
    with tempfile.TemporaryFile() as count:
        code, said = run(COMMANDS[name], place, on_access(lambda: os.write(count.fileno(), b".")))
        accesses = count.tell()
    assert (code, said, accesses > 0) == (0, "", True)
    complete = written(place)
    assert complete and not any(file.startswith("tmp") for file in complete)
    points = [accesses // 2, accesses - 1] if not os.environ.get("PYBPE_EVERY_SIGNAL") else range(accesses)
    for point, number in zip(points, itertools.cycle([signal.SIGTERM, signal.SIGHUP])):
        clear(place)
        code, said = run(COMMANDS[name], place, signal_at(point, number))
        assert {file for file, data in written(place).items() if complete.get(file) != data} == set(), (point, said)
        assert (code, "Traceback" in said) == (-number, False), (point, said)
    if name == "binarize":  # it resumes
        assert run(COMMANDS[name], place)[0] == 0
        assert written(place) == complete
