"""Faults on a cluster raise errors with the worker's name, and never hang."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

distributed = pytest.importorskip("distributed")

from corpora import EOT, content, documents, jsonl, small_tokenizer  # noqa: E402

import pybpe  # noqa: E402
from pybpe.errors import PybpeWarning  # noqa: E402
from pybpe.support import remote  # noqa: E402

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
def process(code: str, *arguments: str, cwd: Path | None = None) -> Iterator[tuple[subprocess.Popen[str], str]]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=cwd, env=environment) as started:
        assert started.stdout is not None
        try:
            yield started, started.stdout.readline().strip()
        finally:
            started.kill()


@contextmanager
def cluster(first: str = "", cwd: Path | None = None) -> Iterator[tuple[Any, str, str]]:
    """Yields an executor and the addresses of worker and scheduler. The worker runs `first` before it starts."""
    with process(SCHEDULER) as (_, address), process(WORKER, address, first, cwd=cwd) as (_, worker):
        with distributed.Client(address, set_as_default=False) as client:
            yield client.get_executor(), worker, address


@pytest.fixture
def corpus(tmp_path: Path, small_tasks: None) -> Path:
    (tmp_path / "corpus").mkdir()
    (tmp_path / "corpus" / "a.txt").write_bytes(EOT.join(documents(100)).encode())
    (tmp_path / "corpus" / "b.jsonl").write_bytes(jsonl(documents(200)))
    return tmp_path / "corpus"


def binarize(corpus: Path, executor: Any, out: Path) -> object:
    return pybpe.binarize(small_tokenizer(), corpus, out / "o", executor=executor, progress=False)


def prepare(corpus: Path, executor: Any, out: Path) -> object:
    return pybpe.prepare(corpus, out / "o", vocab_size=400, executor=executor, force=True, progress=False)


def count(corpus: Path, executor: Any, out: Path) -> object:
    return pybpe.count_words(corpus, executor=executor, progress=False)


def clean(corpus: Path, executor: Any, out: Path) -> object:
    return pybpe.corpus.clean(corpus, out / "o.jsonl", executor=executor, progress=False)


CALLS: list[Callable[[Path, Any, Path], object]] = [binarize, prepare, count, clean]


def test_relative_paths_are_those_of_the_caller(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker runs in another folder. The files are the same as without Dask, including the names of sources."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    relative = Path("corpus")
    with cluster(cwd=tmp_path / "elsewhere") as (executor, _, _):
        for call in CALLS:
            call(relative, executor, tmp_path / "there")
            call(relative, None, tmp_path / "here")
        assert count(relative, executor, tmp_path) == count(relative, None, tmp_path)
    assert content(tmp_path / "here" / "o") == content(tmp_path / "there" / "o")
    assert (tmp_path / "here" / "o.jsonl").read_bytes() == (tmp_path / "there" / "o.jsonl").read_bytes()


def test_workers_with_another_version_or_other_tables_are_refused_by_name(corpus: Path, tmp_path: Path) -> None:
    for change, message in (
        ("remote.__version__ = '0.0.7'", "has pybpe 0.0.7 with Unicode .* and this run needs pybpe"),
        ("remote.unicodedata = type('U', (), {'unidata_version': '3.2'})", "Python's Unicode 3.2"),
        ("del remote._arrive", "a worker cannot run the tasks of pybpe"),
    ):
        with cluster(f"from pybpe.support import remote; {change}") as (executor, worker, _):
            for call in CALLS[: 4 if "version__" in change else 1]:
                with pytest.raises(pybpe.errors.WorkerError, match=message) as error:
                    call(corpus, executor, tmp_path)
                assert worker in str(error.value) or "cannot run" in message


def test_errors_name_the_worker(corpus: Path, tmp_path: Path) -> None:
    """One worker sees a different copy of a file, and another one does not see the file."""
    shorter = "import os; stat = os.fstat; os.fstat = lambda h: os.stat_result([*stat(h)[:6], 7, *stat(h)[7:]])"
    missing = (
        "from pybpe.reading import input_file as i;"
        " i.InputFile.location = property(lambda file: '/nowhere/' + file.path)"
    )
    for first, kind, message in (
        (shorter, pybpe.errors.FileError, "now has 7 bytes"),
        (missing, FileNotFoundError, "nowhere.*cannot be opened"),
    ):
        with cluster(first) as (executor, worker, _):
            for call in CALLS:
                with pytest.raises(kind, match=message) as error:
                    call(corpus, executor, tmp_path)
                assert f"(on the worker {worker})" in str(error.value)


@pytest.mark.parametrize("call", [binarize, count, clean], ids=lambda call: call.__name__)
def test_the_death_of_the_scheduler_ends_the_run(corpus: Path, tmp_path: Path, call: Any) -> None:
    slow = "import time, pybpe.support.remote; pybpe.support.remote._arrive = lambda *_: time.sleep(600)"
    with process(SCHEDULER) as (scheduler, address), process(WORKER, address, slow):
        with distributed.Client(address, set_as_default=False) as client:
            killer = threading.Timer(2, scheduler.kill)
            killer.start()
            with pytest.raises(
                pybpe.errors.WorkerError, match=f"the connection to the Dask scheduler {address} is lost"
            ):
                call(corpus, client.get_executor(), tmp_path)


def test_that_there_are_no_workers_is_said(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PATIENCE_SECONDS", 0.0)
    with process(SCHEDULER) as (_, address), distributed.Client(address, set_as_default=False) as client:
        workers: list[Any] = []

        def start() -> None:
            time.sleep(3)
            context = process(WORKER, address, "")
            workers.append((context, context.__enter__()))

        threading.Thread(target=start).start()
        with pytest.warns(PybpeWarning, match=f"the Dask scheduler {address} has no workers. Waiting for one"):
            binarize(corpus, client.get_executor(), tmp_path)
        workers[0][0].__exit__(None, None, None)
    pybpe.binarize(small_tokenizer(), corpus, tmp_path / "alone", progress=False)
    assert content(tmp_path / "o") == content(tmp_path / "alone")
