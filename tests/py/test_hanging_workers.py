"""A worker process that is stopped (SIGSTOP) neither dies nor answers. With --task-timeout, each command with --dask
ends with an error, and leaves no output."""

import inspect
import os
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

import pytest
from corpora import small_tokenizer
from texts import english

import pybpe
from pybpe.cli import common, count, main

pytestmark = [
    pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs SIGSTOP"),
    # Python's thread of the pool cannot give a result to what was canceled when the worker was killed.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "counts": lambda folder: ["count", str(folder / "text.txt"), "-o", str(folder / "out.counts")],
    "corpus": lambda folder: ["corpus", str(folder / "text.txt"), "-o", str(folder / "out.jsonl"), "--min-chars", "1"],
    "binarize": lambda folder: [
        *("binarize", str(folder / "text.txt"), "-t", str(folder / "tok.json"), "-o", str(folder / "out"))
    ],
}


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replaces the Dask cluster with one process that is stopped."""
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    process = pool.submit(os.getpid).result()
    os.kill(process, signal.SIGSTOP)

    @contextmanager
    def executor(address: str | None) -> Iterator[ProcessPoolExecutor | None]:
        yield pool if address else None

    for module in (common, count):
        monkeypatch.setattr(module, "dask_executor", executor)
    yield
    os.kill(process, signal.SIGKILL)
    pool.shutdown()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_stopped_worker_is_given_up(
    command: str, stopped: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.txt").write_text(english()[:5000], encoding="utf-8")
    small_tokenizer().save(tmp_path / "tok.json")
    arguments = COMMANDS[command](tmp_path)
    assert main([*arguments, "--dask", "any", "--task-timeout", "0.3"]) != 0
    assert "took longer than task_timeout, 0.3 seconds" in capsys.readouterr().err
    for name in ("out.counts", "out.jsonl", "out/manifest.json"):
        assert not (tmp_path / name).exists()


def test_every_function_with_an_executor_has_a_time_limit() -> None:
    functions = [getattr(pybpe, name) for name in pybpe.__all__] + [pybpe.corpus.clean]
    found = [inspect.signature(f).parameters for f in functions if callable(f) and not inspect.isclass(f)]
    found = [parameters for parameters in found if "executor" in parameters]
    assert len(found) >= 6 and all("task_timeout" in parameters for parameters in found)


def test_encode_files_gives_up_a_stopped_worker(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text(english()[:5000], encoding="utf-8")
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    process = pool.submit(os.getpid).result()
    os.kill(process, signal.SIGSTOP)
    try:
        with pytest.raises(pybpe.errors.WorkerError, match="took longer than task_timeout, 0.3 seconds"):
            pybpe.encode_files(
                small_tokenizer(), tmp_path / "text.txt", tmp_path / "x.npy", executor=pool, task_timeout=0.3
            )
    finally:
        os.kill(process, signal.SIGKILL)
        pool.shutdown()
    assert not (tmp_path / "x.npy").exists()
