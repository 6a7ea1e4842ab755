"""Training that is killed while it counts resumes where it last saved, with the same counts."""

import gzip
import itertools
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from texts import chinese, english, mixed

import pybpe
from pybpe.reading import planning, sample
from pybpe.reading.pieces import stream_pieces
from pybpe.support.locking import FOLDER
from pybpe.training import counting, memory, saved_counting, word_counter

SPECIALS = ["<|endoftext|>"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of every kind: plain, compressed, in another encoding, records."""
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_text(english()[:24_000] + SPECIALS[0] + mixed()[:8_000], encoding="utf-8")
    (folder / "b.txt.gz").write_bytes(gzip.compress(chinese()[:8_000].encode()))
    lines = [json.dumps({"text": line}) for line in english()[60_000:80_000].splitlines()]
    (folder / "c.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "d.jsonl.gz").write_bytes(gzip.compress("\n".join(lines[::2]).encode()))
    (folder / "e.txt").write_text("", encoding="utf-8")
    (folder / "f.txt").write_text(english()[100_000:112_000], encoding="utf-8")
    return folder


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces and ranges are small, and every piece is a turn."""
    monkeypatch.setattr(planning, "stream_pieces", partial(stream_pieces, piece_bytes=3000))
    monkeypatch.setattr("pybpe.reading.pieces._CUT_WINDOW", 300)
    monkeypatch.setattr(sample, "_RANGE_BYTES", 5000)
    monkeypatch.setattr(counting, "LEAST_TASK", 7000)
    monkeypatch.setattr(saved_counting, "SECONDS", 0.0)
    monkeypatch.setattr(word_counter, "LEAST_MEMORY", 1)
    monkeypatch.setattr(memory.MergingMemory, "need", lambda *_: 0)


def interrupted(run: Callable[[], Any], step: int, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, int]:
    """Repeats a run, each time interrupted after `step` saves, until it succeeds. Returns its result, and the number of
    interruptions."""
    save = saved_counting.SavedCounting.save
    left = 0

    def last_save(saved: saved_counting.SavedCounting, place: saved_counting.Place) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise InterruptedError
        save(saved, place)

    monkeypatch.setattr(saved_counting.SavedCounting, "save", last_save)
    for tries in itertools.count():
        left = step
        try:
            return run(), tries
        except InterruptedError:
            assert tries < 100


OPTIONS: list[dict[str, Any]] = [
    {}, {"workers": 1}, {"memory_limit": 1000}, {"max_bytes": 40_000, "seed": 4}, {"max_documents": 300, "seed": 5},
    {"pattern": r"\s?\S+|\s"},
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:.*this file is empty")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_interrupted_counting_resumes(
    options: dict[str, Any], corpus: Path, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = partial(pybpe.train, corpus, vocab_size=600, special_tokens=SPECIALS, **options)
    expected = train()
    resumed, tries = interrupted(lambda: train(checkpoint=tmp_path / "x"), 3, monkeypatch)
    assert resumed.model == expected.model and tries >= 2
    assert os.listdir(tmp_path) == []


def test_text_in_another_encoding_resumes(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "t.txt").write_text(chinese()[:12_000], encoding="gb18030")
    train = partial(pybpe.train, tmp_path / "t.txt", vocab_size=500, encoding="gb18030")
    expected = train()
    resumed, tries = interrupted(lambda: train(checkpoint=tmp_path / "x"), 2, monkeypatch)
    assert resumed.model == expected.model and tries >= 2


@pytest.mark.filterwarnings("ignore:.*this file is empty")
def test_threads_and_executors_continue_for_one_another(
    corpus: Path, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = partial(pybpe.train, corpus, vocab_size=600, special_tokens=SPECIALS)
    expected = train()
    with ThreadPoolExecutor(2) as executor:
        ways = itertools.cycle([{"executor": executor}, {"workers": 1}])
        resumed, tries = interrupted(lambda: train(checkpoint=tmp_path / "x", **next(ways)), 2, monkeypatch)
    assert resumed.model == expected.model and tries >= 4


@pytest.mark.filterwarnings("ignore:.*this file is empty")
def test_counts_of_another_run_or_damaged_ones_are_refused(
    corpus: Path, small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = partial(pybpe.train, vocab_size=600, special_tokens=SPECIALS, checkpoint=tmp_path / "x")
    with monkeypatch.context() as patch, pytest.raises(InterruptedError):
        patch.setattr("pybpe.training.merging._merge", lambda *_: (_ for _ in ()).throw(InterruptedError))
        train(corpus)
    with pytest.raises(pybpe.errors.ArgumentError, match="another training run: its inputs differs"):
        train(corpus / "a.txt")
    folder = tmp_path / "x" / FOLDER
    run = sorted(folder.glob("run*"))[0]
    good = run.read_bytes()
    run.write_bytes(good[:-1])
    with pytest.raises(pybpe.errors.FormatError, match=r"run000000-.*not a complete"):
        train(corpus)
    run.unlink()
    with pytest.raises(pybpe.errors.FileError, match="run000000-"):
        train(corpus)
    run.write_bytes(good)
    state = (folder / "state.json").read_bytes()
    for damaged in (b"", b"{}", b"[]", state[:-5], b'{"place": [0], "runs": [], "settings": {}}'):
        (folder / "state.json").write_bytes(damaged)
        with pytest.raises(pybpe.errors.FormatError, match=r"state\.json: damaged; delete the folder"):
            train(corpus)
    (folder / "state.json").write_bytes(state)
    assert train(corpus).model == pybpe.train(corpus, vocab_size=600, special_tokens=SPECIALS).model
    assert os.listdir(tmp_path) == []


def test_standard_input_cannot_resume(tmp_path: Path) -> None:
    with pytest.raises(pybpe.errors.ArgumentError, match="standard input cannot be recognized later"):
        pybpe.train("-", vocab_size=300, checkpoint=tmp_path / "x")
    assert not (tmp_path / "x").exists()
