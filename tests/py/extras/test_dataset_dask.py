"""binarize writes the same bytes with Dask workers, even if one is killed in the middle."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

distributed = pytest.importorskip("distributed")

from corpora import EOT, content, documents, jsonl, small_tokenizer  # noqa: E402
from texts import english  # noqa: E402

import pybpe  # noqa: E402
from pybpe.cli import main  # noqa: E402
from pybpe.reading import planning  # noqa: E402
from pybpe.tokens import binarization, shared_store  # noqa: E402


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(planning, "TASK_BYTES", 15_000)
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_bytes(EOT.join(documents(200)).encode())
    (folder / "b.jsonl").write_bytes(jsonl(documents(300)))
    (folder / "c.txt").write_text(english()[:200_000], encoding="utf-8", newline="")
    return folder


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_killed_worker_changes_nothing(
    cluster: Any, corpus: Path, tmp_path: Path, is_shared: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    tok = small_tokenizer()
    monkeypatch.setattr(shared_store, "tasks_per_part", lambda *_: 2)
    if not is_shared:
        monkeypatch.setattr(binarization, "is_shared", lambda *_: False)
    pybpe.binarize(tok, corpus, tmp_path / "local", shard_tokens=20_000)
    with distributed.Client(cluster) as client:
        victim = next(iter(client.run(os.getpid).values()))
        executor = client.get_executor()
        submit, submitted = executor.submit, []

        def submit_and_kill(*args: Any) -> Any:
            submitted.append(args)
            if len(submitted) == 10:  # four tasks run at once: six results have arrived
                os.kill(victim, signal.SIGKILL)
            return submit(*args)

        executor.submit = submit_and_kill
        pybpe.binarize(tok, corpus, tmp_path / "cluster", shard_tokens=20_000, executor=executor, workers=2)
    assert len(submitted) > 12
    assert content(tmp_path / "cluster") == content(tmp_path / "local")


def test_the_command_line_finds_the_scheduler(
    cluster: Any, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small_tokenizer().save(tmp_path / "tok.json")
    arguments = ["binarize", "-t", str(tmp_path / "tok.json"), str(corpus), "--json"]
    assert main([*arguments, "-o", str(tmp_path / "local")]) == 0
    assert main([*arguments, "-o", str(tmp_path / "cluster"), "--dask", cluster.scheduler_address]) == 0
    first, second = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert first["tokens"] == second["tokens"]
    assert content(tmp_path / "cluster") == content(tmp_path / "local")


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
