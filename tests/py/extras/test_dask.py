"""Dask workers write what one machine writes, even if one is killed in the middle."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import pytest

distributed = pytest.importorskip("distributed")

from commands import pybpe_command  # noqa: E402
from corpora import EOT, content, documents, jsonl, small_tokenizer  # noqa: E402
from texts import english  # noqa: E402

import pybpe  # noqa: E402
from pybpe.cli import main  # noqa: E402
from pybpe.tokens import shared_store  # noqa: E402


def new_cluster() -> Any:
    """Starts a Dask cluster of two processes on this machine."""
    return distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with new_cluster() as cluster:
        yield cluster


@pytest.fixture
def corpus(small_tasks: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Texts of several kinds, many of them near duplicates, in many tasks."""
    monkeypatch.setattr(shared_store, "tasks_per_part", lambda *_: 2)
    folder = tmp_path / "corpus"
    folder.mkdir()
    texts = documents(200)
    (folder / "a.txt").write_bytes(EOT.join(texts).encode())
    (folder / "b.jsonl").write_bytes(jsonl([*documents(300), *(f"{text} changed" for text in texts)]))
    (folder / "c.txt").write_text(english()[:200_000], encoding="utf-8", newline="")
    return folder


def binarize(corpus: Path, out: Path, executor: Executor | None = None) -> None:
    given: dict[str, Any] = {"shard_tokens": 20_000, "workers": 2, "progress": False}
    pybpe.binarize(small_tokenizer(), corpus, out, executor=executor, **given)


def binarize_through_messages(corpus: Path, out: Path, executor: Executor | None = None) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared_store, "is_shared", lambda *_: False)
        binarize(corpus, out, executor)


def count(corpus: Path, out: Path, executor: Executor | None = None) -> None:
    pybpe.count_words(corpus, special_tokens=[EOT], executor=executor, progress=False).save(out / "x.counts")


def clean(corpus: Path, out: Path, executor: Executor | None = None) -> None:
    given: dict[str, Any] = {"dedup": "exact", "near_dedup": 0.7, "progress": False}
    report = pybpe.corpus.clean(corpus, out / "x.jsonl", executor=executor, **given)
    assert report.dropped["near_duplicate"] > 20 and report.dropped["duplicate"] > 20


@pytest.mark.parametrize("write", [binarize, binarize_through_messages, count, clean])
def test_a_killed_worker_changes_nothing(corpus: Path, tmp_path: Path, write: Callable[..., None]) -> None:
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
        write(corpus, tmp_path / "cluster", executor)
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
    command = ("count", tmp_path / "x.counts", "-o", tmp_path / "y.counts", "--dask", cluster.scheduler_address)
    pybpe_command(*command, code=2)


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
