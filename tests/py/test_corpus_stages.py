"""Near duplicates on an executor's workers, which share a folder: the same bytes as in one process."""

import gzip
import json
import os
import pickle
import random
import shutil
import signal
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

import pybpe
from pybpe.corpus import clean, decisions, stages, work
from pybpe.corpus.connecting import connect
from pybpe.corpus.documents import Documents
from pybpe.corpus.sorting import Sorter
from pybpe.corpus.stages import LocalStages, SharedStages
from pybpe.reading import planning
from pybpe.support.remote import Workers
from pybpe.support.shared_folder import SharedFolder

GIVEN: dict[str, Any] = {"dedup": "exact", "near_dedup": 0.7, "dedup_paragraphs": True, "progress": False}


@pytest.fixture
def web(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Returns 300 documents, 40 of which have near duplicates in chains, and 30 exact ones, in many small tasks."""
    monkeypatch.setattr(planning, "TASK_BYTES", 20_000)
    monkeypatch.setattr(stages, "_LEAST_ROWS", 100)
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


@pytest.mark.slow
@pytest.mark.parametrize("memory", [1 << 30, 20_000])
def test_any_number_of_processes_gives_the_same(web: Path, memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = cleaned(web, "one.jsonl", workers=1)
    assert expected[1]["dropped"]["near_duplicate"] > 40 and expected[1]["dropped"]["duplicate"] >= 30
    monkeypatch.setattr(decisions, "DEFAULT_MEMORY", memory)
    for workers in (1, 3):
        with ProcessPoolExecutor(workers, mp_context=get_context("fork")) as executor:
            assert cleaned(web, f"{workers}.jsonl", executor=executor, workers=workers) == expected
    assert sorted(os.listdir(web.parent)) == ["1.jsonl", "3.jsonl", "one.jsonl", "web.jsonl"]


@pytest.mark.filterwarnings("ignore:.*records are not valid")
@pytest.mark.parametrize("workers", [1, 2])
def test_how_the_results_of_a_task_are_divided_changes_nothing(
    web: Path, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compressed file is one task, however long its text is."""
    gz = web.with_name("web.jsonl.gz")
    gz.write_bytes(gzip.compress(web.read_bytes() + b"{}\n"))
    more: dict[str, Any] = {"on_error": "skip", "skipped": web.with_name("skipped.jsonl"), "workers": workers}
    inputs = [str(gz), str(web)]
    found = []
    for size in (work._RESULT_BYTES, 3000, 1):
        monkeypatch.setattr(work, "_RESULT_BYTES", size)
        report = clean(inputs, web.with_name("out.jsonl"), **GIVEN, **more).to_json()
        found.append((report, *(web.with_name(name).read_bytes() for name in ("out.jsonl", "skipped.jsonl"))))
    assert found[0] == found[1] == found[2] and found[0][0]["dropped"]["duplicate"] > 200


def test_a_worker_does_not_use_documents_of_an_earlier_run(tmp_path: Path) -> None:
    def documents(count: int) -> bytes:
        result = SimpleNamespace(place=lambda _: ("x", 8), start=0, header={"documents": count})
        return pickle.dumps(Documents(SimpleNamespace(results=lambda: [result]), str(tmp_path / "documents")))

    first = documents(3)
    assert pickle.loads(first).starts == [0, 3]
    assert pickle.loads(documents(5)).starts == [0, 5]
    first = documents(4)
    documents(6)
    with pytest.raises(pybpe.errors.WorkerError, match="not the file of this run"):
        pickle.loads(first)


class Each(Executor):
    """Runs tasks in one thread. Before each, calls `change` with the name of the task's function."""

    def __init__(self, change: Callable[[str], object]) -> None:
        self._change, self._pool = change, ThreadPoolExecutor(1)

    def submit(self, function: Any, /, *args: Any, **keywords: Any) -> Future[Any]:
        def call() -> Any:
            self._change(getattr(getattr(args[1], "func", None), "__name__", ""))
            return function(*args)

        return self._pool.submit(call)


def test_the_workers_do_all_steps_in_many_tasks(web: Path) -> None:
    done: list[str] = []
    assert cleaned(web, "out.jsonl", executor=Each(done.append)) == cleaned(web, "one.jsonl", workers=1)
    assert min(map(done.count, ("_first_task", "_step_task", "_test_task"))) > 3


class Twice(ThreadPoolExecutor):
    """Runs each task twice, as Dask may if a worker dies late, and returns the second result."""

    def submit(self, function: Any, *args: Any, **keywords: Any) -> Future[Any]:  # type: ignore[override]
        return super().submit(lambda: [function(*args, **keywords) for _ in range(2)][1])


def test_tasks_that_run_twice_count_once(web: Path) -> None:
    with Twice(2) as executor:
        assert cleaned(web, "out.jsonl", executor=executor) == cleaned(web, "one.jsonl", workers=1)
    assert sorted(os.listdir(web.parent)) == ["one.jsonl", "out.jsonl", "web.jsonl"]


class Dying(ProcessPoolExecutor):
    """Kills the worker that takes the `number`-th task of a step: the result of this task never arrives."""

    def __init__(self, number: int) -> None:
        super().__init__(2, mp_context=get_context("fork"))
        self._left = number

    def submit(self, function: Any, *args: Any, **keywords: Any) -> Future[Any]:  # type: ignore[override]
        if getattr(getattr(args[1], "func", None), "__name__", "") in ("_first_task", "_step_task", "_test_task"):
            self._left -= 1
            if self._left == 0:
                return super().submit(signal.raise_signal, signal.SIGKILL)
        return super().submit(function, *args, **keywords)


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 20, 60])
def test_after_a_worker_died_the_same_call_resumes(web: Path, number: int) -> None:
    expected = cleaned(web, "one.jsonl", workers=1)
    web.with_name("out.jsonl").write_bytes(b"old")
    with Dying(number) as executor, pytest.raises(pybpe.errors.WorkerError, match="it resumes|refused a task"):
        cleaned(web, "out.jsonl", executor=executor)
    assert web.with_name("out.jsonl").read_bytes() == b"old"
    assert sorted(os.listdir(web.parent)) == [".out.jsonl.unfinished", "one.jsonl", "out.jsonl", "web.jsonl"]
    done: list[str] = []
    assert cleaned(web, "out.jsonl", executor=Each(done.append)) == expected
    assert "run_task" not in done and "_step_task" in done
    assert sorted(os.listdir(web.parent)) == ["one.jsonl", "out.jsonl", "web.jsonl"]


@pytest.mark.parametrize("number", [None, b"0" * 32])
def test_workers_that_see_another_folder_are_refused(web: Path, number: bytes | None) -> None:
    folder = web.with_name(".out.jsonl.unfinished")

    def change(name: str) -> None:
        if name == "_first_task" and number is None:
            shutil.rmtree(folder, ignore_errors=True)
        elif name == "_first_task":
            (folder / "run").write_bytes(number)

    with pytest.raises(pybpe.errors.WorkerError, match="all workers must see this folder"):
        cleaned(web, "out.jsonl", executor=Each(change))
    assert not web.with_name("out.jsonl").exists()


def test_a_run_that_became_shorter_is_refused(web: Path) -> None:
    def change(name: str) -> None:
        for path in web.with_name(".out.jsonl.unfinished").glob("bands-*"):
            if name == "_step_task":
                os.truncate(path, 16)

    with pytest.raises(pybpe.errors.FormatError, match=r"bands-.*became shorter"):
        cleaned(web, "out.jsonl", executor=Each(change))


def rows_of(graph: list[list[int]]) -> Any:
    return numpy.array(graph, dtype=numpy.uint64).reshape(-1, 2)


@pytest.mark.slow
def test_components_by_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Graphs whose components have many edges, or a long path, in ranges of few rows."""
    monkeypatch.setattr(stages, "_LEAST_ROWS", 50)
    rng = random.Random(2)
    names = rng.sample(range(2**40), 400)
    graphs = [[[names[i], names[i + 1]] for i in range(399)], [[names[0], other] for other in names[1:]], []]
    graphs += [[rng.sample(names, 2) for _ in range(count)] for count in (100, 300, 900)]
    folder = SharedFolder.begin(str(tmp_path))
    with ThreadPoolExecutor(2) as executor:
        for number, graph in enumerate(graphs):
            shared = SharedStages(folder, Workers(executor), 1 << 20)
            edges = shared.first("edges", lambda first, last: [rows_of(graph[first:last])], [1] * len(graph), 2)  # noqa: B023
            sorter = Sorter(str(tmp_path / f"local-{number}"), 2, 1 << 20)
            sorter.add(rows_of(graph))
            found, expected = connect(shared, edges), connect(LocalStages(str(tmp_path / "l"), 1 << 20), sorter)
            rows = [numpy.concatenate([rows_of([]), *some.blocks()]).tolist() for some in (found, expected)]
            assert rows[0] == rows[1] and (len(rows[0]) > 0) == (len(graph) > 0)
            found.close()
    assert os.listdir(tmp_path) == ["run"]
