"""Dask workers write what one machine writes, even if one is killed in the middle. Faults on a cluster raise errors
with the name of the worker, and never hang."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

distributed = pytest.importorskip("distributed")

from corpora import EOT, content, documents, jsonl, small_tokenizer  # noqa: E402
from texts import english  # noqa: E402

import pybpe  # noqa: E402
from pybpe.cli import main  # noqa: E402
from pybpe.errors import WorkerError, note  # noqa: E402
from pybpe.support import executors  # noqa: E402


@pytest.fixture
def corpus(small_tasks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Texts of several kinds, many of them near duplicates, in many tasks."""
    monkeypatch.setattr(executors, "tasks_per_message", lambda *_: 2)
    folder = tmp_path / "corpus"
    folder.mkdir()
    texts = documents(200)
    (folder / "a.jsonl").write_bytes(jsonl(texts))
    (folder / "b.jsonl").write_bytes(jsonl([*documents(300), *(f"{text} changed" for text in texts)]))
    (folder / "c.jsonl").write_bytes(jsonl([english()[:200_000]]))
    return folder


def binarize(corpus: Path, out: Path, executor: Executor | None = None) -> None:
    given: dict[str, Any] = {"shard_tokens": 20_000, "workers": 2, "progress": False}
    pybpe.binarize(small_tokenizer(), corpus, out / "o", executor=executor, **given)


def binarize_through_messages(corpus: Path, out: Path, executor: Executor | None = None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(executors, "is_shared", lambda *_: False)
        binarize(corpus, out, executor)


def prepare(corpus: Path, out: Path, executor: Executor | None = None) -> None:
    pybpe.prepare(corpus, out / "p", vocab_size=400, executor=executor, progress=False)


def count(corpus: Path, out: Path, executor: Executor | None = None) -> None:
    pybpe.count_words(corpus, special_tokens=[EOT], executor=executor, progress=False).save(out / "x.counts")


def clean(corpus: Path, out: Path, executor: Executor | None = None) -> None:
    given: dict[str, Any] = {"dedup": "exact", "near_dedup": 0.7, "progress": False}
    report = pybpe.corpus.clean(corpus, out / "x.jsonl", executor=executor, **given)
    assert report.dropped["near_duplicate"] > 20 and report.dropped["duplicate"] > 20


CALLS: list[Callable[..., None]] = [binarize, prepare, count, clean]

# ------------------------------------------------------------------------------------------------------
# A cluster of two processes


def new_cluster() -> Any:
    """Starts a Dask cluster of two processes on this machine."""
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with new_cluster() as cluster:
        yield cluster


@pytest.mark.parametrize("write", [binarize_through_messages, clean])
def test_a_killed_worker_changes_nothing(corpus: Path, tmp_path: Path, write: Callable[..., None]) -> None:
    """Dask gives its tasks to the other one. If it died just after its result arrived, Dask's executor raises."""
    write(corpus, tmp_path / "one")
    with new_cluster() as cluster, distributed.Client(cluster) as client:
        victim = next(iter(client.run(os.getpid).values()))
        executor = client.get_executor()
        submit, submitted = executor.submit, []

        def submit_and_kill(*args: Any) -> Any:
            submitted.append(args)
            if len(submitted) == 10:  # four tasks run at once: six results have arrived
                os.kill(victim, signal.SIGKILL)
            return submit(*args)

        executor.submit = submit_and_kill
        try:
            write(corpus, tmp_path / "cluster", executor)
        except WorkerError:
            write(corpus, tmp_path / "cluster", client.get_executor())
    assert len(submitted) > 12
    assert content(tmp_path / "cluster") == content(tmp_path / "one")


@pytest.mark.parametrize(
    ("command", "output"),
    [
        (["binarize", "-t", "tok.json"], "out"),
        (["count", "--special-token", EOT], "out/x.counts"),
        (["corpus", "--near-dedup", "0.7"], "out/x.jsonl"),
    ],
)
def test_the_command_finds_the_scheduler(
    cluster: Any, corpus: Path, tmp_path: Path, command: list[str], output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, more in (("one", ["--workers", "1"]), ("cluster", ["--dask", cluster.scheduler_address])):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        small_tokenizer().save("tok.json")
        assert main([*command, str(corpus), "-o", output, "--quiet", *more]) == 0
    assert content(tmp_path / "cluster") == content(tmp_path / "one")


def test_counts_are_not_counted_by_workers(cluster: Any, tmp_path: Path) -> None:
    pybpe.count_words(iter(["a"])).save(tmp_path / "x.counts")
    words = ["count", tmp_path / "x.counts", "-o", tmp_path / "y.counts", "--dask", cluster.scheduler_address]
    assert main([*map(str, words)]) == 2


def test_no_scheduler_is_one_line(corpus: Path, tmp_path: Path) -> None:
    """The process prints no traceback when it exits."""
    small_tokenizer().save(tmp_path / "tok.json")
    command = [sys.executable, "-m", "pybpe", "binarize", "-t", tmp_path / "tok.json", corpus, "-o", tmp_path / "out"]
    environment = {**os.environ, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "1s"}
    for address in ("tcp://127.0.0.1:1", "nonsense"):
        result = subprocess.run([*command, "--dask", address], capture_output=True, text=True, env=environment)
        assert result.returncode == 2
        assert result.stderr.startswith(f"pybpe: {address}: no Dask scheduler answers: ")
        assert result.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------------------------------------------
# Faults of a scheduler or a worker


SCHEDULER = """
import asyncio, sys
from distributed import Scheduler

async def serve():
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address=None, dashboard=False) as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()

asyncio.run(serve())
"""
WORKER = """
import asyncio, os, sys
from distributed import Worker

async def serve():
    async with Worker(sys.argv[1], nthreads=1, nanny=False, dashboard=False, death_timeout=60) as worker:
        print(worker.address, flush=True)
        await worker.finished()

exec(sys.argv[2])
asyncio.run(serve())
"""


@contextmanager
def process(code: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as started:
        assert started.stdout is not None
        try:
            yield started, started.stdout.readline().strip()
        finally:
            started.kill()


@pytest.fixture(scope="module")
def one_worker() -> Iterator[tuple[Any, str]]:
    """Yields a client of a cluster of one worker, and the worker's address."""
    with process(SCHEDULER) as (_, address), process(WORKER, address, "") as (_, worker):
        with distributed.Client(address, set_as_default=False) as client:
            yield client, worker


def test_relative_paths_are_those_of_the_caller(
    one_worker: tuple[Any, str], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker runs in another folder. The files are the same as without Dask, including the names of sources."""
    monkeypatch.chdir(tmp_path)
    client, _ = one_worker
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    for call in CALLS:
        call(Path("corpus"), tmp_path / "there", client.get_executor())
        call(Path("corpus"), tmp_path / "here")
    assert content(tmp_path / "here") == content(tmp_path / "there")


def test_a_worker_that_cannot_run_tasks_is_refused(corpus: Path, tmp_path: Path) -> None:
    without = "from pybpe.support import executors; del executors._run"
    with process(SCHEDULER) as (_, address), process(WORKER, address, without):
        with distributed.Client(address, set_as_default=False) as client:
            with pytest.raises(WorkerError, match="AttributeError: .*all workers need pybpe"):
                binarize(corpus, tmp_path, client.get_executor())


def test_the_death_of_the_scheduler_ends_the_run(corpus: Path, tmp_path: Path) -> None:
    slow = "import time, pybpe.support.executors; pybpe.support.executors._run = lambda *_: time.sleep(600)"
    with process(SCHEDULER) as (scheduler, address), process(WORKER, address, slow):
        with distributed.Client(address, set_as_default=False) as client:
            killer = threading.Timer(2, scheduler.kill)
            killer.start()
            with pytest.raises(WorkerError, match=r"a worker died, .* \(CancelledError\): .* it resumes"):
                binarize(corpus, tmp_path, client.get_executor())


def test_a_cluster_without_workers_waits_for_one(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with process(SCHEDULER) as (_, address), distributed.Client(address, set_as_default=False) as client:
        with ExitStack() as stack:

            def say_and_start(message: str) -> None:
                note(message)
                stack.enter_context(process(WORKER, address, ""))

            monkeypatch.setattr(executors, "_QUIET_SECONDS", 0.0)
            monkeypatch.setattr(executors, "note", say_and_start)
            caplog.set_level("INFO", "pybpe")
            binarize(corpus, tmp_path, client.get_executor())
    assert "a task has taken 0 seconds: waiting for a worker (Ctrl-C to stop)" in caplog.text
    binarize(corpus, tmp_path / "alone")
    assert content(tmp_path / "o") == content(tmp_path / "alone" / "o")
