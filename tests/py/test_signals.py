"""Commands that a signal ends: every command that writes leaves its whole output or none, and no temporary file. Its
exit code is the signal's."""

import itertools
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import COMMANDS, clear, run, written
from corpora import EOT, documents, small_tokenizer
from selection import one_in

import pybpe
from pybpe import _binding
from pybpe.support.locking import FOLDER

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks and the limits are Linux's")


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


@pytest.mark.parametrize("name", one_in(3, COMMANDS))
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


# ---------------------------------------------------------------------------------------------------
# A command that ends early says how to resume, leaves no temporary files, and keeps the mode of files it replaces

# While coverage is measured, an interrupt inside coverage's own lock would leave it locked forever.
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}


def started(*arguments: object, folder: Path) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "pybpe", *map(str, arguments)]
    environment = {**ENVIRONMENT, "TMPDIR": str(folder)}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=folder, env=environment)


def wait_for(process: "subprocess.Popen[str]", folder: Path, pattern: str) -> None:
    while not list(folder.glob(pattern)):
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    """Makes a pipe whose reader waits for more."""
    path = tmp_path / "corpus.txt"
    os.mkfifo(path)
    return path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_temporary_files_go_when_the_command_is_ended(tmp_path: Path, corpus: Path, number: signal.Signals) -> None:
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip(f"{number.name} is ignored here, as under nohup, and pybpe leaves it so")
    (tmp_path / "tmp").mkdir()
    arguments = ["train", corpus, "--vocab-size", "300", "--memory-limit", "20M", "-o", tmp_path / "tok.json"]
    with started(*arguments, folder=tmp_path / "tmp") as process:
        writer = os.open(corpus, os.O_WRONLY)
        wait_for(process, tmp_path / "tmp", "pybpe-*")
        process.send_signal(number)
        _, said = process.communicate()
        os.close(writer)
    assert process.returncode == (130 if number == signal.SIGINT else -number), said
    assert list((tmp_path / "tmp").iterdir()) == [] and "Traceback" not in said
    assert not (tmp_path / "tok.json").exists()


# A command that Ctrl-C interrupts after it has written its first tokens.
INTERRUPTED = """
import signal, sys
from pybpe.__main__ import main
from pybpe.tokens import spool

def write_and_interrupt(*given, write=spool._write):
    spool._write = write
    write(*given)
    signal.raise_signal(signal.SIGINT)

spool._write = write_and_interrupt
sys.exit(main())
"""


def test_an_interrupted_command_says_how_to_resume(tmp_path: Path) -> None:
    small_tokenizer().save(tmp_path / "tok.json")
    (tmp_path / "in.txt").write_text(EOT.join(documents(100)))
    for name, extra in (("o", []), ("n", ["--no-resume"])):
        arguments = ["binarize", "-t", "tok.json", "in.txt", "-o", name, *extra]
        run = [sys.executable, "-c", INTERRUPTED, *arguments]
        done = subprocess.run(run, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert (tmp_path / name / FOLDER / "train.tokens").exists()
        said = "pybpe: interrupted; to resume, run the same command again\n"
        assert (done.returncode, done.stderr) == (130, said)


def test_what_is_replaced_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(EOT.join(documents(100)))
    tok = small_tokenizer()

    def write() -> None:
        tok.save(tmp_path / "tok.json")
        pybpe.binarize(tok, tmp_path / "in.txt", tmp_path / "out", progress=False)

    write()
    files = [tmp_path / "tok.json", *(tmp_path / "out").glob("*.bin")]
    for path in files:
        path.chmod(0o600)
    write()
    assert [path.stat().st_mode & 0o777 for path in files] == [0o600] * len(files)
    assert len(files) == 4


def test_a_manifest_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(EOT.join(documents(100)))
    manifest = pybpe.binarize(small_tokenizer(), tmp_path / "in.txt", tmp_path / "out", progress=False)
    tokens = manifest.split_tokens("val")
    assert f"; val: {tokens} tokens, " in repr(manifest) and len(repr(manifest)) < 200
