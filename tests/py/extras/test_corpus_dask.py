"""Dask workers clean a corpus, near duplicates included, to the same bytes, even if one is killed in the middle."""

import json
import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

distributed = pytest.importorskip("distributed")

from pybpe.cli import main  # noqa: E402
from pybpe.corpus import clean, running  # noqa: E402
from pybpe.reading import planning  # noqa: E402


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(planning, "TASK_BYTES", 20_000)
    rng = random.Random(5)
    words = [f"word{i}" for i in range(3000)]
    texts = [rng.choices(words, k=60) for _ in range(150)]
    texts += [[*text[:30], "changed", *text[31:]] for text in texts[::4]] + texts[::10]
    path = tmp_path / "web.jsonl"
    path.write_text("".join(json.dumps({"text": " ".join(text)}) + "\n" for text in texts), encoding="utf-8")
    return path


@pytest.mark.parametrize("number", [1, 3])
def test_a_killed_worker_changes_nothing(web: Path, cluster: Any, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker is killed when this many results have arrived."""
    given: dict[str, Any] = {"dedup": "exact", "near_dedup": 0.7, "progress": False}
    one, many = web.with_name("one.jsonl"), web.with_name("many.jsonl")
    expected = clean(str(web), one, workers=1, **given)
    assert expected.dropped["near_duplicate"] > 20
    real, results = running.map_by_executor, iter(range(1, 1 << 30))
    with distributed.Client(cluster) as client:
        victim = next(iter(client.run(os.getpid).values()))

        def map_and_kill(*args: Any) -> Iterator[Any]:
            for result in real(*args):
                if next(results) == number:
                    os.kill(victim, signal.SIGKILL)
                yield result

        monkeypatch.setattr(running, "map_by_executor", map_and_kill)
        found = clean(str(web), many, executor=client.get_executor(), **given)
    assert next(results) > number  # a worker was killed
    assert found.to_json() == expected.to_json() and many.read_bytes() == one.read_bytes()
    assert sorted(os.listdir(web.parent)) == ["many.jsonl", "one.jsonl", "web.jsonl"]


def test_the_command(web: Path, cluster: Any) -> None:
    one, many = web.with_name("one.jsonl"), web.with_name("many.jsonl")
    assert main(["corpus", str(web), "-o", str(one), "--near-dedup", "0.7", "--quiet", "--workers", "1"]) == 0
    dask = ["--dask", cluster.scheduler_address]
    assert main(["corpus", str(web), "-o", str(many), "--near-dedup", "0.7", "--quiet", *dask]) == 0
    assert many.read_bytes() == one.read_bytes()
