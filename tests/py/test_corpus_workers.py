"""A corpus that an executor's workers clean: the same bytes as in one process, whatever happens to them."""

import json
import os
import random
import signal
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from corpora import Twice

import pybpe
from pybpe.corpus import clean, cleaning, decisions

GIVEN: dict[str, Any] = {"dedup": "exact", "near_dedup": 0.7, "dedup_paragraphs": True, "progress": False}


@pytest.fixture
def web(tmp_path: Path, small_tasks: None) -> Path:
    """Returns 300 documents, 40 of which have near duplicates in chains, and 30 exact ones, in many small tasks."""
    rng = random.Random(4)
    words = [f"word{i}" for i in range(3000)]
    texts = [rng.choices(words, k=60) for _ in range(200)]
    for number in range(40):
        for _ in range(rng.randrange(1, 4)):
            texts.append(list(texts[-1] if rng.random() < 0.5 else texts[number]))
            texts[-1][rng.randrange(60)] = "changed"
    texts += texts[:30]
    rng.shuffle(texts)
    lines = (json.dumps({"id": i, "text": " ".join(text)}) + "\n" for i, text in enumerate(texts))
    (tmp_path / "web.jsonl").write_text("".join(lines), encoding="utf-8")
    return tmp_path / "web.jsonl"


def cleaned(web: Path, name: str, **more: Any) -> tuple[bytes, Any]:
    """Returns the output file and the report of `clean`."""
    report = clean(str(web), web.with_name(name), **GIVEN, **more)
    return web.with_name(name).read_bytes(), report.to_json()


def test_any_number_of_processes_gives_the_same(web: Path) -> None:
    expected = cleaned(web, "one.jsonl", workers=1)
    assert expected[1]["dropped"]["near_duplicate"] > 40 and expected[1]["dropped"]["duplicate"] >= 30
    for workers in (1, 3):
        with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as executor:
            assert cleaned(web, f"{workers}.jsonl", executor=executor, workers=workers) == expected
    assert sorted(os.listdir(web.parent)) == ["1.jsonl", "3.jsonl", "one.jsonl", "web.jsonl"]


def test_tasks_that_run_twice_count_once(web: Path) -> None:
    with Twice(2) as executor:
        assert cleaned(web, "out.jsonl", executor=executor) == cleaned(web, "one.jsonl", workers=1)
    assert sorted(os.listdir(web.parent)) == ["one.jsonl", "out.jsonl", "web.jsonl"]


class Dying(ProcessPoolExecutor):
    """Kills the worker that takes the `number`-th task: the result of this task never arrives."""

    def __init__(self, number: int) -> None:
        super().__init__(2, mp_context=get_context("fork"))
        self._left = number

    def submit(self, function: Any, *args: Any, **keywords: Any) -> Future[Any]:  # type: ignore[override]
        self._left -= 1
        if self._left == 0:
            return super().submit(signal.raise_signal, signal.SIGKILL)
        return super().submit(function, *args, **keywords)


def test_after_a_worker_died_the_same_call_resumes(web: Path) -> None:
    expected = cleaned(web, "one.jsonl", workers=1)
    web.with_name("out.jsonl").write_bytes(b"old")
    with Dying(4) as executor, pytest.raises(pybpe.errors.WorkerError, match="it resumes|refused a task"):
        cleaned(web, "out.jsonl", executor=executor, workers=1)
    assert web.with_name("out.jsonl").read_bytes() == b"old"
    assert sorted(os.listdir(web.parent)) == [".out.jsonl.unfinished", "one.jsonl", "out.jsonl", "web.jsonl"]
    assert cleaned(web, "out.jsonl", executor=ThreadPoolExecutor(1)) == expected
    assert sorted(os.listdir(web.parent)) == ["one.jsonl", "out.jsonl", "web.jsonl"]


def test_a_result_that_became_shorter_is_refused(web: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the duplicates are searched for."""

    def shortened(*args: Any) -> Any:
        for path in web.with_name(".out.jsonl.unfinished").glob("task-*"):
            os.truncate(path, path.stat().st_size // 2)
        return decisions.Decisions(*args)

    monkeypatch.setattr(cleaning, "Decisions", shortened)
    with pytest.raises(pybpe.errors.FormatError, match=r"task-.*became shorter"):
        cleaned(web, "out.jsonl", workers=1)
    assert not web.with_name("out.jsonl").exists()
