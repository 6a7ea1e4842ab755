"""Executors: what happens if a worker hangs, runs another pybpe, lacks a file, or has another copy of it."""

import itertools
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from corpora import EOT, content, documents, small_tokenizer

import pybpe
from pybpe.cli import coding, common, main
from pybpe.corpus import clean
from pybpe.support import executors
from pybpe.support.output_files import FOLDER

GIVEN: dict[str, Any] = {"progress": False, "splits": (1,), "min_shard_tokens": 0}


class Changed(Executor):
    """Runs tasks in one thread; `change(number)` runs before each task."""

    def __init__(self, change: Callable[[int], object]) -> None:
        self._change, self._pool, self._number = change, ThreadPoolExecutor(1), iter(range(1 << 30))

    def submit(self, function: Any, /, *args: Any, **keywords: Any) -> Future[Any]:
        def call() -> Any:
            self._change(next(self._number))
            return function(*args)

        return self._pool.submit(call)


@pytest.fixture
def corpus(tmp_path: Path, small_tasks: None) -> list[Path]:
    (tmp_path / "text").mkdir()
    for name, some in (("a.txt", documents(160)[:80]), ("b.txt", documents(160)[80:])):
        (tmp_path / "text" / name).write_text(EOT.join(some))
    return sorted((tmp_path / "text").iterdir())


@pytest.fixture
def end() -> Iterator[threading.Event]:
    """An event that the test sets at its end, so that the worker that hangs ends too."""
    event = threading.Event()
    yield event
    event.set()


def test_a_worker_that_hangs_is_given_up(
    corpus: list[Path], tmp_path: Path, end: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    tok, out = small_tokenizer(), tmp_path / "out"
    hangs, ticks = threading.Event(), itertools.count()

    def hang(number: int) -> None:
        if number == 6:  # the first four ask whether the workers see the folder
            hangs.set()
            end.wait()

    told = r"the task that begins at \d+ of .*/[ab].txt took longer than task_timeout, 0.2 seconds.* it resumes"
    with monkeypatch.context() as patch, pytest.raises(pybpe.errors.WorkerError, match=told):
        # No time passes before the worker hangs, however slow this machine is.
        patch.setattr(executors, "time", SimpleNamespace(monotonic=lambda: next(ticks) if hangs.is_set() else 0))
        pybpe.binarize(tok, corpus, out, executor=Changed(hang), workers=2, task_timeout=0.2, **GIVEN)
    assert list((out / FOLDER / "tasks").glob("*/*"))
    started: list[int] = []
    pybpe.binarize(tok, corpus, out, executor=Changed(started.append), workers=2, task_timeout=60, **GIVEN)
    pybpe.binarize(tok, corpus, tmp_path / "local", **GIVEN)
    assert content(out) == content(tmp_path / "local")
    every: list[int] = []
    pybpe.binarize(tok, corpus, tmp_path / "all", executor=Changed(every.append), workers=2, **GIVEN)
    assert 0 < len(started) < len(every)  # the first ones were not done again


def test_every_call_has_the_timeout(
    corpus: list[Path],
    tmp_path: Path,
    end: threading.Event,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    calls: list[Callable[..., Any]] = [
        lambda **given: pybpe.count_words(corpus, **given),
        lambda **given: clean(corpus, tmp_path / "out.jsonl", progress=False, **given),
        lambda **given: pybpe.prepare(corpus, tmp_path / "p", vocab_size=400, progress=False, **given),
        lambda **given: pybpe.encode_files(small_tokenizer(), corpus, tmp_path / "out.npy", progress=False, **given),
    ]
    for call in calls:
        with pytest.raises(pybpe.errors.WorkerError, match="took longer than task_timeout, 0.1 seconds"):
            call(executor=Changed(lambda number: end.wait() if number == 1 else None), task_timeout=0.1)
        for wrong in (0, -1, float("inf"), float("nan")):
            with pytest.raises(pybpe.errors.ArgumentError, match="task_timeout must be a number of seconds above 0"):
                call(executor=Changed(lambda number: None), task_timeout=wrong)
        with pytest.raises(pybpe.errors.ArgumentError, match="task_timeout needs an executor"):
            call(task_timeout=5)

    hanging = nullcontext(Changed(lambda number: end.wait()))
    for module in (common, coding):
        monkeypatch.setattr(module, "dask_executor", lambda address: hanging if address else nullcontext())
    small_tokenizer().save(tmp_path / "tok.json")
    for command, out in (("count", "out.counts"), ("corpus", "out.jsonl"), (f"binarize -t {tmp_path}/tok.json", "out")):
        words = [*command.split(), str(corpus[0]), "-o", str(tmp_path / out), "--dask", "any", "--task-timeout", "0.1"]
        assert main(words) == 2
        assert "took longer than --task-timeout, 0.1 seconds" in capsys.readouterr().err
    assert not {"out.counts", "out.jsonl", "out.npy", "out/manifest.json"} & content(tmp_path).keys()


def test_a_worker_with_another_pybpe_or_other_tables_is_refused(
    corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, mine, wanted = executors._submit, executors.versions(), "pybpe 9.9.9 with Unicode 3.2"

    def submit(*args: Any) -> Any:
        with monkeypatch.context() as patch:
            patch.setattr(executors, "versions", lambda: wanted)  # this process has another version than the workers
            return real(*args)

    monkeypatch.setattr(executors, "_submit", submit)
    told = rf"the worker .*process {os.getpid()} has {re.escape(mine)}, and this run needs {wanted}: install"
    with pytest.raises(pybpe.errors.WorkerError, match=told):
        pybpe.binarize(small_tokenizer(), corpus, tmp_path / "out", executor=Changed(lambda number: None), **GIVEN)


def test_errors_name_another_machine(corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    main = threading.main_thread()
    name = SimpleNamespace(gethostname=lambda: "here" if threading.current_thread() is main else "there")
    monkeypatch.setattr(executors, "socket", name)
    change = Changed(lambda number: corpus[0].unlink(missing_ok=True))
    with pytest.raises(FileNotFoundError, match=rf"cannot be .* \(on the worker there, process {os.getpid()}\)"):
        pybpe.count_words(corpus, executor=change)


def test_a_line_says_that_no_result_arrives(
    corpus: list[Path], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(executors, "_QUIET_SECONDS", 0.0)
    monkeypatch.setattr(executors, "_LOOK_SECONDS", 0.01)
    caplog.set_level("INFO", "pybpe")
    pybpe.count_words(corpus, executor=Changed(lambda number: time.sleep(0.1) if number == 0 else None))
    assert re.search(r"the task that begins at 0 of .*a.txt has taken 0 seconds: waiting for a worker", caplog.text)


COPIES: list[tuple[Callable[[Path], object], str]] = [
    (lambda path: path.unlink(), "b.txt: cannot be opened"),
    (lambda path: path.write_bytes(path.read_bytes()[:-50]), "b.txt: this file changed .* now has"),
    (lambda path: os.utime(path, (1, 1)), "b.txt: this file changed .* modification time differs"),
]


@pytest.mark.parametrize(("change", "told"), COPIES, ids=["none", "shorter", "older"])
def test_a_worker_with_another_copy_of_a_file(
    corpus: list[Path], tmp_path: Path, change: Callable[[Path], object], told: str
) -> None:
    tok = small_tokenizer()
    for call in (
        lambda executor: pybpe.binarize(tok, corpus, tmp_path / "out", executor=executor, **GIVEN),
        lambda executor: pybpe.count_words(corpus, executor=executor),
        lambda executor: clean(corpus, tmp_path / "out.jsonl", executor=executor, progress=False),
    ):
        data = corpus[1].read_bytes()
        with pytest.raises(pybpe.errors.FileError, match=told):
            call(Changed(lambda number: change(corpus[1]) if number == 0 else None))
        corpus[1].write_bytes(data)
