"""Inputs that change during a run: an error says so, and no run returns a result for a part of the text."""

import os
import pickle
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, small_tokenizer
from texts import english

import pybpe
from pybpe.errors import FileChangedError
from pybpe.reading import files, planning
from pybpe.reading import pieces as pieces_module
from pybpe.reading.input_file import InputFile
from pybpe.reading.options import ReadOptions

TEXT = english()[:200_000]


def cut(path: Path) -> None:
    os.truncate(path, 50_000)


def grow(path: Path) -> None:
    with open(path, "ab") as stream:
        stream.write(b"more text")


def replace(path: Path) -> None:
    """Another file of the same size and name."""
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().swapcase())
    os.utime(other, ns=(1, 1))
    os.replace(other, path)


CHANGES = [cut, grow, replace] if os.name != "nt" else [cut, grow]  # Windows does not replace an open file


@pytest.fixture(params=["plain", "records", "marked"])
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "records":
        path = tmp_path / "in.jsonl"
        path.write_text('{"text": "some text here"}\n' * 8000)
        return path
    path = tmp_path / "in.txt"
    path.write_text(TEXT if request.param == "plain" else TEXT.replace(". ", EOT))
    return path


def change_after(patch: pytest.MonkeyPatch, module: object, pieces: int, change: Callable[[], None]) -> None:
    """Changes the input when some pieces of it have been read."""
    read = pieces_module.stream_pieces

    def pieces_of(*args: object, **kw: object) -> Iterator[memoryview]:
        for number, piece in enumerate(read(*args, **{**kw, "piece_bytes": 8000})):
            if number == pieces:
                change()
            yield piece

    patch.setattr(module, "stream_pieces", pieces_of)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("pieces", [0, 4])
def test_counting(corpus: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], pieces: int) -> None:
    change_after(monkeypatch, planning, pieces, lambda: change(corpus))
    if change is replace:  # the open file is the old one, read to its end: only a second reader could notice
        assert pybpe.count_words(corpus, workers=2)
        return
    with pytest.raises(FileChangedError, match=r"in\..*changed after this run first looked at it"):
        pybpe.count_words(corpus, workers=2)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("split_by", "by_executor"), [("hash", True), ("token", False)])
def test_binarize(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Any, split_by: str, by_executor: bool
) -> None:
    monkeypatch.setattr(planning, "TASK_BYTES", 30_000)
    change_after(monkeypatch, planning, 2, lambda: change(corpus))
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(FileChangedError, match="changed after this run first looked at it"):
            given: dict[str, Any] = {"executor": executor if by_executor else None, "workers": 1, "min_shard_tokens": 0}
            pybpe.binarize(small_tokenizer(), corpus, tmp_path / "out", split_by=split_by, **given)
    assert not (tmp_path / "out" / "manifest.json").exists()


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kept", [0, 1 << 20])
def test_a_small_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], kept: int
) -> None:
    """A file is read when the run looks at it. If its bytes were kept, that is all."""
    for number in range(9):
        (tmp_path / f"in{number}.txt").write_text(TEXT[:500])
    tok, tasks = small_tokenizer(), planning.Plan.tasks

    def binarize(name: str) -> dict[str, bytes]:
        pybpe.binarize(tok, str(tmp_path / "in*"), tmp_path / name, name="x", min_shard_tokens=0)
        return {file.name: file.read_bytes() for file in (tmp_path / name).glob("*.bin")}

    expected = binarize("unchanged")

    def tasks_of_changed(*args: Any) -> Any:
        monkeypatch.setattr(planning.Plan, "tasks", tasks)
        change(tmp_path / "in4.txt")
        return tasks(*args)

    monkeypatch.setattr(files, "_KEPT_BYTES", kept)
    monkeypatch.setattr(planning.Plan, "tasks", tasks_of_changed)
    if kept:
        assert binarize("out") == expected
    else:
        with pytest.raises(FileChangedError, match=r"in4\.txt.*changed after this run first looked at it"):
            binarize("out")


@pytest.mark.parametrize("kind", ["special", "file", "line", "blank"])
def test_planning_ends_when_a_file_has_been_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(planning, "TASK_BYTES", 1000)
    path = tmp_path / "in.txt"
    path.write_text(TEXT)
    kinds = planning.Kinds(ReadOptions(documents=kind), EOT)
    cutting = planning.Cutting.of(pybpe.pattern.Pattern("gpt2"), (), None, None, False)
    plan = planning.Plan(
        [InputFile.of(str(path)), InputFile.of(str(path))], kinds, planning.SplitOptions((8, 1)), cutting
    )
    tasks = plan.tasks()
    next(tasks)
    os.truncate(path, 100)
    with pytest.raises(FileChangedError):
        list(tasks)


def test_parquet_and_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "in.txt"
    path.write_text(TEXT.replace(". ", EOT))
    change_after(monkeypatch, planning, 2, lambda: cut(path))
    with pytest.raises(FileChangedError):
        pybpe.corpus.clean(path, tmp_path / "out.jsonl", workers=1)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_worker_with_another_copy_of_a_file(tmp_path: Path) -> None:
    """Simulates a machine on which the file is shorter than the range it reads."""
    path = tmp_path / "in.txt"
    path.write_text(TEXT)
    file = pickle.loads(pickle.dumps(InputFile.of(str(path))))
    cut(path)
    with pytest.raises(FileChangedError, match="now has 50000 bytes, but had 200") as error:
        file.open()
    again = pickle.loads(pickle.dumps(error.value))  # as a worker sends it back
    assert type(again) is FileChangedError and str(again) == str(error.value)
