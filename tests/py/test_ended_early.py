"""A command that ends early says how to resume, leaves no temporary files, and keeps the mode of files it replaces."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from corpora import EOT, documents, small_tokenizer

import pybpe
from pybpe.support.locking import FOLDER

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
    for name, extra in (("o", []), ("n", ["--no-resume"]), ("o" * 80, [])):
        arguments = ["binarize", "-t", "tok.json", "in.txt", "-o", name, *extra]
        run = [sys.executable, "-c", INTERRUPTED, *arguments]
        done = subprocess.run(run, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        assert (tmp_path / name / FOLDER / "train.tokens").exists()
        command = f"pybpe binarize -t tok.json in.txt -o {name}"
        expected = command if len(command) < 80 else "the same command again"
        assert (done.returncode, done.stderr) == (130, f"pybpe: interrupted; to resume, run {expected}\n")


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
