"""Commands that a signal ends leave their whole output or none, and no temporary file; work in Python whose result is
no longer needed stops midway."""

import gc
import itertools
import os
import pty
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy
import pytest
from commands import COMMANDS, clear, run, written
from corpora import EOT, documents, small_tokenizer
from selection import one_in

import pybpe
from llmc_compat.shards import write_shard
from pybpe import _binding
from pybpe._binding import Loader, Output, Shard
from pybpe.corpus.running import process_pool
from pybpe.support import parallel
from pybpe.support.executors import map_by_executor
from pybpe.support.output_files import FOLDER

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
        assert run(COMMANDS[name], place) == (0, "")
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
    by = "interrupted" if number == signal.SIGINT else f"ended by {number.name}"
    assert said.splitlines()[-1] == f"pybpe: {by}"
    assert list((tmp_path / "tmp").iterdir()) == []
    assert not (tmp_path / "tok.json").exists()


# A command that Ctrl-C interrupts after it has written its first tokens.
INTERRUPTED = """
import signal, sys
from pybpe.__main__ import main
from pybpe.tokens import run

def write_and_interrupt(*given, write=run.write_results):
    write(*given)
    signal.raise_signal(signal.SIGINT)

run.write_results = write_and_interrupt
sys.exit(main())
"""


def test_an_interrupted_command_says_how_to_resume(tmp_path: Path) -> None:
    small_tokenizer().save(tmp_path / "tok.json")
    (tmp_path / "in.txt").write_text(EOT.join(documents(100)))
    arguments = ["binarize", "-t", "tok.json", "in.txt", "-o", "o", "--split-by", "hash"]
    run = [sys.executable, "-c", INTERRUPTED, *arguments]
    done = subprocess.run(run, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert len(list((tmp_path / "o" / FOLDER / "tasks").glob("*/*"))) == 1
    started, ended, told = done.stderr.splitlines()
    assert (done.returncode, told) == (130, "pybpe: interrupted; to resume, run the same command again")
    assert started.startswith("pybpe: binarize in.txt: started at") and ": interrupted at" in ended


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


# ------------------------------------------------------------------------------------------------------
# Work in Python whose result is no longer needed stops midway. Otherwise each of these programs would run forever.


THREADS = """
import threading
from pybpe.support.parallel import end_if_unwanted, map_ordered

endless = threading.Event()

def work(item):
    while item > 0:
        endless.set()
        end_if_unwanted()

try:
    for _ in map_ordered(work, range(100), 2):
        endless.wait()
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("interrupted", threading.active_count())
"""

PROCESSES = """
import multiprocessing, os, signal, time
from pybpe.corpus.running import process_pool

try:
    with process_pool(2) as pool:
        pool.submit(int).result()
        futures = [pool.submit(time.sleep, 1e6) for _ in range(9)]
        STOP
        raise KeyboardInterrupt
except KeyboardInterrupt:
    print("interrupted", 1 + len(multiprocessing.active_children()))
"""


FORKING = """
import multiprocessing, os, signal
from pybpe.corpus.running import process_pool

multiprocessing.set_start_method("fork")
os.register_at_fork(after_in_parent=lambda: signal.raise_signal(signal.SIGINT))
try:
    with process_pool(2) as pool:
        print("lost")
except KeyboardInterrupt:
    print("interrupted", 1 + len(multiprocessing.active_children()))
"""

# A stopped process does not receive SIGTERM.
STOPPED = PROCESSES.replace("STOP", "os.kill(multiprocessing.active_children()[0].pid, signal.SIGSTOP)")


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [THREADS, PROCESSES.replace("STOP", ""), STOPPED, FORKING],
    ids=["threads", "processes", "stopped", "forking"],
)
def test_workers_end_with_the_call(program: str) -> None:
    """The workers end at once, and none remains."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (result.stdout, result.returncode) == ("interrupted 1\n", 0), result.stderr


BACKTRACKING = """
import signal, sys, threading
import pybpe
from pybpe import pattern

text, slow = "a" * 60 + "!b", r"(?<!z)(?:a|aa|b?a)+c|."  # a look-behind: not compiled
begun = threading.Semaphore(0)
inner = pattern.Pattern.word_ends

def word_ends(self, data):
    begun.release()
    return inner(self, data)

def interrupt():
    begun.acquire()
    # To this thread: it does not end a wait of the main thread, just as a signal that arrives before the wait begins.
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

threading.Thread(target=interrupt, daemon=True).start()
pattern.Pattern.word_ends = word_ends
try:
    if sys.argv[1] == "train":
        pybpe.train(iter([text] * 3), vocab_size=300, pattern=slow, workers=2, progress=False)
    else:
        tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], pattern=slow)
        tok.encode_batch([text] * 3, num_threads=2)
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.slow
@pytest.mark.parametrize("operation", ["train", "encode"])
def test_a_pattern_that_backtracks_for_ever_is_interrupted(operation: str) -> None:
    """A Python thread cannot be stopped during a match, so neither the call nor Python's exit waits for the thread."""
    command = [sys.executable, "-c", BACKTRACKING, operation]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (result.stdout, result.returncode) == ("interrupted\n", 0), result.stderr


@pytest.mark.slow
def test_ctrl_c_at_a_terminal(tmp_path: Path) -> None:
    """The command's worker processes receive Ctrl-C too: none of them prints an error, and no file remains."""
    lines = (" ".join(f"{i * k % 9973:x}" for k in range(1, 31)) for i in range(100_000))
    (tmp_path / "in.txt").write_text("\n".join(lines))
    command = [sys.executable, "-m", "pybpe", "corpus", str(tmp_path / "in.txt"), "-o", str(tmp_path / "out.jsonl")]
    command += ["--documents", "line", "--dedup", "--scrub-pii", "--workers", "2"]
    child, terminal = pty.fork()
    if child == 0:
        os.execve(command[0], command, ENVIRONMENT)
    while not (tmp_path / ".out.jsonl.unfinished").exists():
        assert os.waitpid(child, os.WNOHANG) == (0, 0)
        time.sleep(0.01)
    time.sleep(0.2)  # the processes are starting or working
    os.write(terminal, b"\x03")
    printed = b""
    with suppress(OSError):  # so Linux says that the terminal is closed
        while block := os.read(terminal, 4096):
            printed += block
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 130, printed
    assert b"Traceback" not in printed and b"pybpe: interrupted" in printed, printed
    assert not (tmp_path / "out.jsonl").exists() and not list(tmp_path.glob("*.tmp"))


@pytest.mark.filterwarnings("ignore:.*fork")
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_the_end_of_a_process_pool_prints_no_error(monkeypatch: pytest.MonkeyPatch, error: type[BaseException]) -> None:
    """The thread of a pool fails at tasks that are cancelled when the processes die, with a traceback."""
    failures = list[Any]()
    monkeypatch.setattr(threading, "excepthook", failures.append)
    with suppress(error), process_pool(1) as pool:
        done = map_by_executor(time.sleep, [0.0, *[9.0] * 9], parallel.RunOptions(8, pool))
        next(done)
        done.throw(error)  # type: ignore[attr-defined]
    assert failures == []
    with suppress(KeyboardInterrupt), ProcessPoolExecutor(1) as pool:  # of a caller, whose processes get Ctrl-C, too
        done = map_by_executor(time.sleep, [0.0, *[9.0] * 9], parallel.RunOptions(8, pool))
        next(done)
        try:
            done.throw(KeyboardInterrupt)  # type: ignore[attr-defined]
        finally:
            for process in pool._processes.values():
                process.kill()
    assert failures == []


def test_a_ctrl_c_while_a_thread_starts_leaves_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a thread once waited for tasks forever."""
    start = threading.Thread.start

    def start_and_interrupt(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    before = set(threading.enumerate())
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start_and_interrupt)
        with pytest.raises(KeyboardInterrupt):
            list(parallel.map_ordered(str, range(9), 2))
    for thread in set(threading.enumerate()) - before:
        thread.join(10)
        assert not thread.is_alive()


def test_threads_that_are_left_at_exit_need_no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = parallel._Threads(1)
    assert threads.submit(str, 1).result() == "1"
    with monkeypatch.context() as patch:
        patch.setattr(parallel, "time", None)  # as when Python empties modules, before it closes a generator
        threads.stop(lambda: True)
    threads.stop()


# ---------------------------------------------------------------------------------------------------
# Handles of the C library when Ctrl-C arrives while one is made. Python raises KeyboardInterrupt when a Python function
# starts, or after any call, also of C. These tests raise it at each such place: no handle is lost or freed twice.


def interrupted(make: Callable[[], object], number: int) -> bool:
    """Calls `make`, and raises KeyboardInterrupt at one of the places, from 0. Returns whether there is such a one. The
    garbage collector waits: what it calls, such as hypothesis, would swallow the exception."""
    left = number + 1

    def profile(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        left -= event in ("call", "c_return")
        if left == 0:
            left = -1  # only once
            sys.setprofile(None)
            raise KeyboardInterrupt

    gc.disable()
    sys.setprofile(profile)
    try:
        made = make()
        sys.setprofile(None)
        del made
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
        gc.enable()
    return left < 0


def places(make: Callable[[], object], after: Callable[[], object]) -> int:
    """Interrupts `make` at every place, and calls `after` each time. Returns the number of places."""
    gc.collect()
    gc.freeze()  # the collections below look only at what is made here
    number = 0
    while interrupted(make, number):
        gc.collect()
        after()
        number += 1
    gc.unfreeze()
    return number


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts open files")
@pytest.mark.parametrize("kind", ["shard", "loader", "output"])
def test_files_are_closed_and_temporary_files_removed(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    write_shard(path, numpy.arange(1000, dtype="u2"))
    makers: dict[str, Callable[[], object]] = {
        "shard": lambda: Shard(path),
        "loader": lambda: Loader(str(path), 2, 8, 0, 1, False),
        "output": lambda: Output(tmp_path / "y.bin"),
    }

    def nothing_is_left() -> None:
        open_files = (os.path.realpath(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd"))
        assert [path for path in open_files if path.startswith(str(tmp_path))] == []
        assert os.listdir(tmp_path) == ["x.bin"]

    assert places(makers[kind], nothing_is_left) > 3
