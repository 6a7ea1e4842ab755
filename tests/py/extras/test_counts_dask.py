"""Dask workers give the same counts, even if one is killed in the middle."""

import os
import signal
from pathlib import Path

import pytest

distributed = pytest.importorskip("distributed")

from texts import english  # noqa: E402

import pybpe  # noqa: E402
from pybpe.cli import main  # noqa: E402
from pybpe.training import counting  # noqa: E402

SPECIALS = ["<|endoftext|>"]


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        yield client


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for i in range(4):
        (folder / f"{i}.txt").write_text(f"<|endoftext|>{i}" + english()[i * 1000 :], encoding="utf-8")
    return folder


def test_dask_gives_the_same_counts(corpus: Path, client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "LEAST_TASK", 100_000)
    expected = pybpe.count_words(corpus, special_tokens=SPECIALS)
    assert pybpe.count_words(corpus, special_tokens=SPECIALS, executor=client.get_executor()) == expected


def test_a_killed_worker_is_retried(corpus: Path, client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "LEAST_TASK", 5_000)
    expected = pybpe.count_words(corpus, special_tokens=SPECIALS)
    victim = next(iter(client.run(os.getpid).values()))
    executor = client.get_executor()
    submit, submitted = executor.submit, []

    def submit_and_kill(*args):
        submitted.append(args)
        if len(submitted) == 20:
            os.kill(victim, signal.SIGKILL)
        return submit(*args)

    executor.submit = submit_and_kill
    assert pybpe.count_words(corpus, special_tokens=SPECIALS, executor=executor) == expected
    assert len(submitted) > 20


def test_the_command_gives_the_same_counts(corpus: Path, client, tmp_path: Path) -> None:
    pybpe.count_words(corpus, special_tokens=SPECIALS).save(tmp_path / "expected")
    dask, one = ["--dask", client.scheduler.address, "--quiet"], str(tmp_path / "one.counts")
    assert main(["count", str(corpus), "--special-token", SPECIALS[0], "-o", one, *dask]) == 0
    assert (tmp_path / "one.counts").read_bytes() == (tmp_path / "expected").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["corpus", "expected", "one.counts"]
    assert main(["count", one, str(corpus), "-o", str(tmp_path / "both.counts"), *dask]) == 2
