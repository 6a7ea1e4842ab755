"""Counting on an executor's workers: the same files as on one machine."""

import gzip
import json
import os
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from texts import chinese, english

import pybpe
from pybpe.reading.options import ReadOptions
from pybpe.reading.sample import Sample
from pybpe.support.run_options import RunOptions
from pybpe.training import counting, word_counter

SPECIALS = ["<|endoftext|>"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_text(english()[:40_000] + SPECIALS[0] + chinese()[:5000], encoding="utf-8")
    (folder / "b.txt.gz").write_bytes(gzip.compress(chinese()[5000:9000].encode()))
    lines = [json.dumps({"text": line}) for line in english()[40_000:60_000].splitlines()]
    (folder / "c.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "LEAST_TASK", 5000)


def count_by(executor: Executor, corpus: Path, output: Path, limit: int | None = None) -> tuple[int, pybpe.Counts]:
    """Counts with an executor. Returns the number of words, and the counts that one process makes."""
    expected = pybpe.count_words(corpus, special_tokens=SPECIALS)
    run = RunOptions(None, executor, limit, False)
    return counting.count_to_file(str(corpus), expected.settings, Sample(), run, output), expected


@pytest.mark.parametrize("limit", [None, 1000])
def test_workers_give_the_same_file(
    limit: int | None, corpus: Path, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_counter, "LEAST_MEMORY", 1)  # with the limit, each task is a run on the disk
    (tmp_path / "out").mkdir()
    with ThreadPoolExecutor(3) as executor:
        words, expected = count_by(executor, corpus, tmp_path / "out" / "x.counts", limit)
    expected.save(tmp_path / "expected")
    assert (tmp_path / "out" / "x.counts").read_bytes() == (tmp_path / "expected").read_bytes()
    assert words == len(expected) and os.listdir(tmp_path / "out") == ["x.counts"]


class Counting(ThreadPoolExecutor):
    """Counts the tasks that count."""

    tasks = 0

    def submit(self, function: Any, *args: Any, **keywords: Any) -> Future[Any]:  # type: ignore[override]
        self.tasks += args[1].func is counting.count_task
        return super().submit(function, *args, **keywords)


def test_a_corpus_of_any_size_keeps_many_workers_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.txt").write_bytes(english().encode()[:100_000])
    for least, most, expected in ((1 << 26, 1 << 30, 1), (10_000, 1 << 30, 10), (1, 1 << 30, 256), (1, 250, 400)):
        monkeypatch.setattr(counting, "LEAST_TASK", least)
        monkeypatch.setattr(counting, "MOST_TASK", most)
        with Counting(2) as executor:
            count_by(executor, tmp_path / "a.txt", tmp_path / "x.counts")
        assert 0.95 * expected <= executor.tasks <= expected + 1


def test_processes_do_too(corpus: Path, tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        words, expected = count_by(executor, corpus, tmp_path / "x.counts")
    assert pybpe.Counts.load(tmp_path / "x.counts") == expected and words == len(expected)


class Twice(ThreadPoolExecutor):
    """Runs each task twice, as Dask may if a worker dies late, and returns the second result."""

    def submit(self, function: Any, *args: Any, **keywords: Any) -> Future[Any]:  # type: ignore[override]
        return super().submit(lambda: [function(*args, **keywords) for _ in range(2)][1])


def test_tasks_that_run_twice_count_once(corpus: Path, small: None, tmp_path: Path) -> None:
    with Twice(2) as executor:
        _, expected = count_by(executor, corpus, tmp_path / "x.counts")
    assert pybpe.Counts.load(tmp_path / "x.counts") == expected


@pytest.mark.filterwarnings("ignore:.*records are not valid")
def test_records_that_are_not_valid_are_skipped_and_listed(small: None, tmp_path: Path) -> None:
    lines = [json.dumps({"text": f"line {i}"}) if i % 50 else '{"text": nonsense' for i in range(1000)]
    (tmp_path / "x.jsonl").write_text("\n".join(lines), encoding="utf-8")
    one, many = tmp_path / "one.jsonl", tmp_path / "many.jsonl"
    expected = pybpe.count_words(tmp_path / "x.jsonl", on_error="skip", skipped=one)
    read = ReadOptions(on_error="skip", skipped=str(many))
    settings = replace(expected.settings, read=read)
    with ThreadPoolExecutor(2) as executor:
        run = RunOptions(None, executor, None, False)
        counting.count_to_file(str(tmp_path / "x.jsonl"), settings, Sample(), run, tmp_path / "x.counts")
    assert pybpe.Counts.load(tmp_path / "x.counts") == expected
    assert many.read_bytes() == one.read_bytes() and one.read_bytes().count(b"\n") >= 20


def test_what_workers_cannot_count_is_refused(corpus: Path, tmp_path: Path) -> None:
    settings = pybpe.Counts.from_dict({}).settings
    with ThreadPoolExecutor(1) as executor:
        run = RunOptions(None, executor, None, False)
        for inputs, sample, message in (
            ("-", Sample(), "standard input"),
            (iter(["text"]), Sample(), "pass paths"),
            (str(corpus), Sample(max_bytes=100), "max_bytes"),
        ):
            with pytest.raises(pybpe.errors.ArgumentError, match=message):
                counting.count_to_file(inputs, settings, sample, run, tmp_path / "x.counts")
    assert os.listdir(tmp_path) == []
