"""Inputs that change during a run: an error says so, and no run returns a result for a part of the text."""

import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, content, small_tokenizer
from texts import english

import pybpe
from pybpe.errors import FileChangedError
from pybpe.reading import cuts, planning
from pybpe.reading import pieces as pieces_module
from pybpe.reading.input_file import InputFile
from pybpe.reading.inputs import ReadOptions

TEXT = english()[:200_000]
# One kind of file for each way to find its documents
TEXTS = {
    "plain.txt": TEXT,
    "marked.txt": TEXT.replace(". ", EOT),
    "records.jsonl": '{"text": "some text here"}\n' * 8000,
}


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


def binarize(path: Path, **given: Any) -> object:
    return pybpe.binarize(small_tokenizer(), path, path.with_name("out"), min_shard_tokens=0, **given)


def binarize_by_executor(path: Path) -> object:
    with ThreadPoolExecutor(1) as executor:
        return binarize(path, executor=executor)


CALLS: list[Callable[[Path], object]] = [
    lambda path: pybpe.corpus.clean(path, path.with_name("out.jsonl"), workers=1),
    lambda path: pybpe.count_words(path, workers=2),
    lambda path: binarize(path, split_by="token", workers=1),
    binarize_by_executor,
]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", TEXTS)
def test_a_call_whose_input_changes_is_an_error(
    name: str, change: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After no piece of the input or some of them have been read."""
    path, read = tmp_path / name, cuts.stream_pieces
    monkeypatch.setattr(planning, "TASK_BYTES", 30_000)
    for pieces in (0, 2):

        def pieces_of(*args: object, pieces: int = pieces, **keywords: object) -> Iterator[memoryview]:
            for number, piece in enumerate(read(*args, **{**keywords, "piece_bytes": 8000})):
                if number == pieces:
                    change(path)
                yield piece

        monkeypatch.setattr(pieces_module, "stream_pieces", pieces_of)
        calls = CALLS[name == "plain.txt" :]  # to clean a text without marks is to read it at once
        for call in CALLS[2:] if change is replace else calls:  # the others read the open file, which is the old one
            path.write_text(TEXTS[name])
            with pytest.raises(FileChangedError, match=rf"{name}.*changed after this run first looked at it"):
                call(path)
            assert not {"out.jsonl", "out/manifest.json"} & content(tmp_path).keys()
            shutil.rmtree(tmp_path / "out", ignore_errors=True)


@pytest.mark.parametrize("change", CHANGES)
def test_a_small_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]) -> None:
    for number in range(9):
        (tmp_path / f"in{number}.txt").write_text(TEXT[:500])
    tok, tasks = small_tokenizer(), planning.Plan.tasks

    def tasks_of_changed(*args: Any) -> Any:
        monkeypatch.setattr(planning.Plan, "tasks", tasks)
        change(tmp_path / "in4.txt")
        return tasks(*args)

    monkeypatch.setattr(planning.Plan, "tasks", tasks_of_changed)
    with pytest.raises(FileChangedError, match=r"in4\.txt.*changed after this run first looked at it"):
        pybpe.binarize(tok, str(tmp_path / "in*"), tmp_path / "out", name="x", min_shard_tokens=0)


@pytest.mark.parametrize("kind", ["special", "file", "line", "blank"])
def test_planning_ends_when_a_file_has_been_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(planning, "TASK_BYTES", 1000)
    path = tmp_path / "in.txt"
    path.write_text(TEXT)
    kinds = planning.Kinds(ReadOptions(documents=kind), EOT)
    cutting = planning.Cutting.of(pybpe.pattern.Pattern("gpt2"), (), None, None, False)
    inputs = planning.Corpus([InputFile.of(str(path)), InputFile.of(str(path))])
    tasks = planning.Plan(inputs, kinds, planning.SplitOptions((8, 1)), cutting).tasks()
    next(tasks)
    os.truncate(path, 100)
    with pytest.raises(FileChangedError):
        list(tasks)


def test_the_error_of_a_worker_arrives_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text(TEXT)
    file = pickle.loads(pickle.dumps(InputFile.of(str(path))))
    cut(path)
    with pytest.raises(FileChangedError, match="now has 50000 bytes, but had 200") as error:
        file.open()
    again = pickle.loads(pickle.dumps(error.value))
    assert type(again) is FileChangedError and str(again) == str(error.value)
