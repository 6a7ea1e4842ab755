"""Mixtures have the same bytes for any memory and workers, and when a run is killed and resumes."""

import os
import random
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, content, documents, jsonl
from killed import run_and_die

import pybpe
from pybpe.support.run_options import RunOptions
from pybpe.tokens import run
from pybpe.tokens.mix import mixing, shuffling
from pybpe.tokens.mix.recipe import load_recipe
from pybpe.tokens.mix.sources import TextSource, open_sources

T = 64


@pytest.fixture(scope="module")
def data(tok: pybpe.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mixture")
    texts = documents(200)
    (folder / "a.txt").write_text(EOT.join(texts[:100]), encoding="utf-8")
    (folder / "b.jsonl").write_bytes(jsonl(texts[100:150]))
    (folder / "c.txt").write_text(EOT.join([*texts[150:], "x", "Long. " * 900, "yes"]), encoding="utf-8")
    pybpe.binarize(tok, folder / "a.txt", folder / "a", shard_tokens=9000)
    pybpe.binarize(tok, folder / "c.txt", folder / "c", split_by="document", min_shard_tokens=0)
    return folder


def mixed_bytes(tok: pybpe.Tokenizer, data: Path, out: Path, **keywords: Any) -> dict[str, bytes]:
    pybpe.mix(tok, text_recipe(data), out, sequence_length=T, shard_tokens=10_000, progress=False, **keywords)
    return content(out)


def text_recipe(data: Path) -> Mapping[str, Any]:
    return {
        "phases": [
            {"tokens": 20_000, "sources": {"a": {"weight": 0.5}, "text": {"weight": 0.5}}},
            {"sources": {"text": {"epochs": 1.5}, "c": {"epochs": 1}}},
        ],
        "sources": {
            "a": {"data": str(data / "a")},
            "text": {"inputs": str(data / "b.jsonl")},
            "c": {"data": str(data / "c")},
        },
    }


def test_memory_and_workers_do_not_change_the_bytes(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = mixed_bytes(tok, data, tmp_path / "out", workers=1)
    assert mixed_bytes(tok, data, tmp_path / "workers", workers=3) == expected
    assert mixed_bytes(tok, data, tmp_path / "seed", seed=1) != expected
    monkeypatch.setattr(mixing, "LEAST_MEMORY", 1)
    for memory in (20_000, 300_000):
        assert mixed_bytes(tok, data, tmp_path / str(memory), memory_limit=memory) == expected
    monkeypatch.setattr(shuffling, "_TASK_TOKENS", 100)
    assert mixed_bytes(tok, data, tmp_path / "tasks", memory_limit=100_000) == expected


@pytest.mark.slow
def test_a_killed_run_resumes(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(mixing, "LEAST_MEMORY", 1)
    monkeypatch.setattr(shuffling, "_TASK_TOKENS", 6000)
    keywords = {"workers": 1, "memory_limit": 60_000}
    expected = mixed_bytes(tok, data, tmp_path / "whole", **keywords)
    rng = random.Random(0)

    deaths = 0
    for out in ("a", "b", "c"):
        points = [rng.randrange(200) for _ in range(4)]
        while run_and_die(points.pop() if points else 10**6, mixed_bytes, tok, data, tmp_path / out, **keywords):
            deaths += 1
        assert content(tmp_path / out) == expected
        assert sorted(os.listdir(tmp_path / out)) == sorted(expected)
    assert deaths > 5


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_a_run_that_ends_in_the_middle_of_the_buckets_resumes(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """The distribution starts again."""
    monkeypatch.setattr(run, "CHECKPOINT_SECONDS", seconds)
    monkeypatch.setattr(mixing, "LEAST_MEMORY", 1)
    expected = mixed_bytes(tok, data, tmp_path / "whole", memory_limit=60_000)
    append = shuffling.Shuffle._append
    for last in (3, 9, 14):
        left = iter(range(last, -1, -1))

        def counted(self: Any, *args: Any, left: Any = left) -> None:
            if next(left) == 0:
                raise KeyboardInterrupt
            append(self, *args)

        with monkeypatch.context() as patch:
            patch.setattr(shuffling.Shuffle, "_append", counted)
            with pytest.raises(KeyboardInterrupt):
                mixed_bytes(tok, data, tmp_path / "out", memory_limit=60_000)
    assert mixed_bytes(tok, data, tmp_path / "out", memory_limit=60_000) == expected


def test_a_run_that_resumes_does_not_start_again(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(shuffling, "_TASK_TOKENS", 6000)
    expected = mixed_bytes(tok, data, tmp_path / "whole")
    made: list[int] = []
    result = shuffling._Ordered.part

    def counted(self: Any, *args: Any) -> Any:
        made.append(1)
        if len(made) == 5:
            raise KeyboardInterrupt
        return result(self, *args)

    monkeypatch.setattr(shuffling._Ordered, "part", counted)
    with pytest.raises(KeyboardInterrupt):
        mixed_bytes(tok, data, tmp_path / "out")
    with monkeypatch.context() as patch:
        patch.setattr("pybpe.tokens.binarization.write_dataset", None)  # the texts are encoded already
        assert mixed_bytes(tok, data, tmp_path / "out") == expected
    whole = len(made)
    made[:] = [1] * 5
    mixed_bytes(tok, data, tmp_path / "again")
    assert whole - 5 == len(made) - 5 - 4


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def buckets_of(out: Path, kind: str) -> list[Path]:
    return [path for path in sorted(out.rglob(f"buckets/*.{kind}")) if path.stat().st_size > 0]


@pytest.mark.parametrize("kind", ["tokens", "index"])
def test_a_run_without_some_of_its_buckets_starts_again(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(run, "CHECKPOINT_SECONDS", 0.0)
    monkeypatch.setattr(mixing, "LEAST_MEMORY", 1)
    expected = mixed_bytes(tok, data, tmp_path / "whole", memory_limit=60_000)
    for loss in (Path.unlink, lambda path: os.truncate(path, path.stat().st_size - 1)):
        with monkeypatch.context() as patch:
            patch.setattr(shuffling._Ordered, "part", interrupted)
            with pytest.raises(KeyboardInterrupt):
                mixed_bytes(tok, data, tmp_path / "out", memory_limit=60_000)
        loss(buckets_of(tmp_path / "out", kind)[0])
        assert mixed_bytes(tok, data, tmp_path / "out", memory_limit=60_000) == expected
        shutil.rmtree(tmp_path / "out")


@pytest.mark.parametrize("kind", ["tokens", "index"])
def test_buckets_that_another_program_has_changed_are_refused(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    distribute = shuffling.Shuffle._distribute

    def changed(*args: Any) -> None:
        distribute(*args)
        for path in buckets_of(tmp_path / "out", kind):
            path.write_bytes(path.read_bytes() + b"x")

    monkeypatch.setattr(mixing, "LEAST_MEMORY", 1)
    monkeypatch.setattr(shuffling.Shuffle, "_distribute", changed)
    with pytest.raises(pybpe.errors.FormatError, match=rf"\.{kind}: another program has changed it"):
        mixed_bytes(tok, data, tmp_path / "out", memory_limit=60_000)


def test_texts_that_another_recipe_encoded_are_replaced(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    for name in ("a.txt", "b.jsonl", "b.jsonl", "a.txt"):
        sources = load_recipe({"sources": {"text": {"inputs": str(data / name), "epochs": 1}}}).sources
        run = RunOptions(1, None, None, False)
        (source,) = open_sources(sources, tok, str(tmp_path / "out"))
        assert isinstance(source, TextSource)
        opened = source.encoded(str(tmp_path / "source-0"), run)
        assert opened.data.inputs == [str(data / name)]
        assert [path.name for path in tmp_path.iterdir()] == ["source-0"]
