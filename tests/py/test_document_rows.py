"""Documents straight into training: the rows of a slow and plain version, from every kind of input, resumed at every
batch; and what is refused."""

import bz2
import json
import os
import pickle
import random
import warnings
from collections import Counter
from contextlib import nullcontext as nothing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
import pytest
from corpora import EOT, documents, jsonl, standard_input
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.document_rows import epoch_rows, filled, split

import pybpe
from pybpe import _binding
from pybpe.errors import ArgumentError, FileChangedError, FormatError, PybpeWarning, UnsupportedError
from pybpe.loading import DocumentRows, document_rows

TEXTS = [text[: len(text) * (i % 7 + 1) // 7] for i, text in enumerate(documents(70))]
TASK = 400  # bytes
SHORT: dict[str, Any] = {"batch_size": 3, "sequence_length": 50, "window": 20, "seed": 5, "workers": 1}


@pytest.fixture
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(document_rows, "PIECE_BYTES", TASK)


def written(path: Path, texts: list[str] = TEXTS) -> Path:
    path.write_bytes(jsonl(texts))
    return path


def tasks_of(tok: pybpe.Tokenizer, path: Path) -> list[list[list[int]]]:
    """The documents of each task: a line belongs to the task in whose bytes it begins."""
    data = path.read_bytes()
    tasks: list[list[list[int]]] = [[] for _ in range(0, len(data), TASK)]
    start = 0
    for line in data.split(b"\n"):
        tasks[start // TASK].append(tok.encode_ordinary(json.loads(line)["text"]))
        start += len(line) + 1
    return tasks


def rows_of(batches: Any) -> list[list[int]]:
    return [row for batch in batches for row in batch.tolist()]


@pytest.mark.parametrize("packing", ["fill", "cut"])
@pytest.mark.parametrize(("shuffle", "window"), [(True, 1), (True, 20), (False, 1024)])
def test_rows_are_those_of_the_plain_version(
    tok: pybpe.Tokenizer, tmp_path: Path, small_tasks: None, packing: str, shuffle: bool, window: int
) -> None:
    path = written(tmp_path / "a.jsonl")
    tasks, how = tasks_of(tok, path), {"packing": packing, "shuffle": shuffle, "window": window}
    for share in [(0, 1), (1, 2), (2, 3)]:
        how |= {"sequence_length": 50, "seed": 5}
        expected = [
            row
            for n in range(2)
            for row in epoch_rows(tasks, tok.eot_token, **how, epoch=n, share=share)  # type: ignore[arg-type]
        ]
        rows = DocumentRows(tok, path, rank=share[0], num_replicas=share[1], batch_size=4, **how)
        assert rows_of(islice(rows, len(expected) // 4)) == expected[: len(expected) // 4 * 4]
    assert 32 <= len(tasks) < 48 and rows.epoch == 1


def test_an_iteration_can_be_an_epoch(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    rows = DocumentRows(tok, written(tmp_path / "a.jsonl"), repeat=False, **SHORT)
    first, second = list(rows), list(rows)
    assert rows.epoch == 2 and rows_of(first) != rows_of(second)
    for batches in (first, second):
        assert [batch.shape for batch in batches[:-1]] == [(3, 51)] * (len(batches) - 1)
        assert batches[0].dtype == numpy.int64 and 0 < len(batches[-1]) <= 3
    rows.set_epoch(0)
    assert rows_of(rows) == rows_of(first)
    rows.set_epoch(0)
    assert [rows.epoch for _ in rows] == [0] * len(
        first
    ) and rows.epoch == 1  # also at the last batch, which is smaller
    rows.set_epoch(0)
    again = DocumentRows(tok, tmp_path / "a.jsonl", repeat=False, **SHORT)
    *_, state = [rows.state_dict() for _ in rows]
    again.load_state_dict(state)
    assert rows_of(again) == [] and rows_of(again) == rows_of(second)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 60), max_size=40), st.integers(2, 20), st.sampled_from(["u2", "u4"]))
def test_documents_fill_rows(lengths: list[int], width: int, dtype: str) -> None:
    numbers = iter(range(1, 10_000))
    texts = [[next(numbers) for _ in range(length)] for length in lengths]
    starts = numpy.cumsum([0, *(length + 1 for length in lengths)], dtype=numpy.uint64)
    ids = numpy.array([number for text in texts for number in (0, *text)], dtype=dtype)
    found = _binding.fill_rows(ids, starts[:-1], numpy.diff(starts), width)
    assert found.dtype == dtype and found.tolist() == filled(texts, width, 0)
    parts = [part for row in found.tolist() for part in split(row, 0)]
    kept = [number for part in parts for number in part]
    assert len(set(kept)) == len(kept) and all(row[0] == 0 for row in found.tolist())
    assert sum(map(len, texts)) - len(kept) < width


def test_every_kind_of_input_gives_the_same_rows(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    texts = [" ".join(text.split()) for text in TEXTS]
    data = jsonl(texts)
    files = {"a.jsonl": data, "b.jsonl.bz2": bz2.compress(data), "c.txt": EOT.join(texts).encode()}
    files |= {"blank.txt": "\n\n".join(texts).encode(), "line.txt": "\n".join(texts).encode()}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "file").mkdir()
    for number, text in enumerate(texts):
        (tmp_path / "file" / f"{number:03}.txt").write_text(text)
    expected = rows_of(DocumentRows(tok, tmp_path / "a.jsonl", repeat=False, **SHORT))
    for name in [*files, "file"]:
        kind = name.removesuffix(".txt") if name[1] != "." else "auto"
        for workers in (1, 3):
            how = {**SHORT, "documents": kind, "workers": workers, "repeat": False}
            assert rows_of(DocumentRows(tok, tmp_path / name, **how)) == expected, name


def test_texts_are_cut_at_marks_or_else_between_words(tok: pybpe.Tokenizer, tmp_path: Path, small_tasks: None) -> None:
    (tmp_path / "marks.txt").write_text(EOT.join(documents(60)))
    (tmp_path / "none.txt").write_text("".join(documents(60)))
    how: dict[str, Any] = {"batch_size": 1, "sequence_length": 1, "window": 1 << 16, "packing": "cut"}
    how |= {"repeat": False, "shuffle": False}
    ids = [[i for batch in DocumentRows(tok, tmp_path / name, **how) for i in batch[0].tolist()] for name in
           ("marks.txt", "none.txt")]  # fmt: skip
    assert [tok.decode(text) for text in split(ids[0], tok.eot_token)][:59] == documents(60)[:59]  # type: ignore[arg-type]
    parts = [tok.decode(text) for text in split(ids[1], tok.eot_token)]  # type: ignore[arg-type]
    assert "".join(documents(60)).startswith("".join(parts)) and all(len(part) < 2 * TASK for part in parts)
    assert len(parts) == -(-len("".join(documents(60)).encode()) // TASK)


@pytest.mark.parametrize("packing", ["fill", "cut"])
def test_training_resumes_at_any_batch(tok: pybpe.Tokenizer, tmp_path: Path, small_tasks: None, packing: str) -> None:
    path = written(tmp_path / "a.jsonl")
    how = {**SHORT, "packing": packing, "rank": 1, "num_replicas": 2, "window": 7}
    rows = DocumentRows(tok, path, **how)
    states, batches = [], []
    for batch in islice(rows, 50):
        states.append(json.loads(json.dumps(rows.state_dict())))
        batches.append(batch.tolist())
    assert rows.epoch >= 2
    for number, state in enumerate(states[:-4:2]):
        again = DocumentRows(tok, path, **how)
        again.load_state_dict(state)
        if number % 5 == 0:
            again = pickle.loads(pickle.dumps(again))
        assert [batch.tolist() for batch in islice(again, 3)] == batches[2 * number + 1 : 2 * number + 4]

    larger = DocumentRows(tok, path, **{**how, "batch_size": 6})
    larger.load_state_dict(states[1])
    assert next(iter(larger)).tolist() == batches[2] + batches[3]


@pytest.mark.parametrize("packing", ["fill", "cut"])
@pytest.mark.parametrize("counts", [pytest.param((3, 2, 5, 1), marks=pytest.mark.slow), (1, 4, 2), (2, 3, 2)])
def test_another_number_of_processes_reads_the_rest_exactly_once(
    tok: pybpe.Tokenizer, tmp_path: Path, small_tasks: None, packing: str, counts: tuple[int, ...]
) -> None:
    """With five, the processes share documents, and not tasks."""
    path, rng = written(tmp_path / "a.jsonl"), random.Random(repr(counts))
    options: dict[str, Any] = {**SHORT, "batch_size": 1, "packing": packing}
    seen: dict[int, Counter[bytes]] = {}

    def opened(count: int) -> list[DocumentRows]:
        return [DocumentRows(tok, path, **options, rank=rank, num_replicas=count) for rank in range(count)]

    def take(rows: DocumentRows, least: int, last: int | None = None) -> None:
        """Takes rows: at least so many, or all up to the end of an epoch."""
        for batch in rows:
            if last is not None and rows.epoch > last:
                return
            seen.setdefault(rows.epoch, Counter())[batch.tobytes()] += 1
            least -= 1
            if last is None and least <= 0:
                return

    def whole(epoch: int, count: int) -> Counter[bytes]:
        found = Counter[bytes]()
        for rows in opened(count):
            rows.set_epoch(epoch)
            for batch in rows:
                if rows.epoch > epoch:
                    break
                found[batch.tobytes()] += 1
        return found

    states: list[Any] = []
    for count in counts:
        processes = opened(count)
        for rows in processes:
            if states:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", PybpeWarning)  # that some begin the next epoch at once
                    rows.load_state_dict(states)
                assert rows.state_dict() == rows.state_dict() and rows._shared  # a look takes nothing
            take(rows, rng.randint(1, 70))
        states = json.loads(json.dumps([rows.state_dict() for rows in processes]))
        rng.shuffle(states)
    last = max(seen)
    with pytest.warns(PybpeWarning, match="of 99 processes begin epoch [0-9]+ at once, because the states are of"):
        opened(99)[0].load_state_dict(states)
    for rows in opened(2):
        rows.load_state_dict(states)
        take(rows, 0, last)
    assert last > 0
    for epoch, found in seen.items():
        assert found in [whole(epoch, count) for count in {*counts, 2}]
    with pytest.raises(ArgumentError, match="1 states are not one of each process: pass one of each of the"):
        opened(3)[0].load_state_dict([processes[0].state_dict()] if len(processes) > 1 else [opened(2)[1].state_dict()])


def test_states_of_others_are_refused(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl")
    state = DocumentRows(tok, path, **SHORT).state_dict()

    def refused(pattern: str, tok: pybpe.Tokenizer = tok, **other: Any) -> None:
        with pytest.raises(ArgumentError, match=pattern):
            DocumentRows(tok, path, **{**SHORT, **other}).load_state_dict(state)

    for name, value in {"seed": 6, "sequence_length": 51, "window": 21, "packing": "cut", "shuffle": False}.items():
        refused(f"it has {name} .*, not {value!r}", **{name: value})
    refused(r"it has inputs .*, not", text_key="id")
    refused("the state is of process 0 of 1, and this is 0 of 2: pass the states of all", rank=0, num_replicas=2)
    refused("it has tokenizer", tok.prune(vocab_size=900))
    refused("it has end_of_text", tok.replace(end_of_text=next(text for text in tok.special_tokens if text != EOT)))
    other = path.stat().st_mtime_ns + 10**9
    os.utime(path, ns=(other, other))
    refused("it has inputs")
    begun = [[0, 0, 1, 0, 0, 0]]
    for wrong in (
        {},
        {**state, "epoch": "1"},
        {**state, "epoch": -1},
        {**state, "share": [1, 1]},
        {**state, "parts": [1]},
    ):
        for broken in (wrong, [wrong], [state, state], []):
            with pytest.raises(ArgumentError):
                DocumentRows(tok, path, **SHORT).load_state_dict(broken)
    for broken in ({**state, "parts": begun, "epoch": -1}, {**state, "parts": [[0, 1, 1, 0, 0, 0]], "epoch": 1}):
        with pytest.raises(ArgumentError):
            DocumentRows(tok, path, **SHORT).load_state_dict(broken)  # type: ignore[arg-type]


def test_an_iteration_whose_place_is_lost_cannot_go_on(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    rows = DocumentRows(tok, written(tmp_path / "a.jsonl"), **SHORT)
    state = rows.state_dict()
    for move in (lambda: next(iter(rows)), lambda: rows.load_state_dict(state), lambda: rows.set_epoch(3)):
        batches = iter(rows)
        next(batches)
        move()
        moved = rows.state_dict()
        with pytest.raises(ArgumentError, match="this iteration cannot continue, because another one has begun, or"):
            next(batches)
        assert rows.state_dict() == moved and next(iter(rows)) is not None


def test_rows_go_on_after_an_error(tok: pybpe.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object) -> None:
        raise MemoryError

    path = written(tmp_path / "a.jsonl")
    rows = DocumentRows(tok, path, **{**SHORT, "batch_size": 7})
    expected = [batch.tolist() for batch in islice(rows, 10)]
    rows.load_state_dict(DocumentRows(tok, path, **SHORT).state_dict())
    found, batches = list[Any](), iter(rows)
    while len(found) < 10:
        found.append(next(batches).tolist())
        with monkeypatch.context() as patch:
            patch.setattr(_binding, "fill_rows", fail)
            try:
                found.append(next(batches).tolist())  # perhaps of a window that is packed
            except MemoryError:
                batches = iter(rows)
    assert found[:10] == expected


def test_what_cannot_be_rows_is_refused(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    path, few = written(tmp_path / "a.jsonl"), written(tmp_path / "few.jsonl", TEXTS[:2])
    (tmp_path / "empty.txt").write_text("")
    wrong: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (ArgumentError, "no end of text", {"tok": pybpe.train(path, vocab_size=300)}),
        (UnsupportedError, "dropout", {"tok": tok.replace(dropout=0.1)}),
        (ArgumentError, "packing must be one of fill, cut", {"packing": "best"}),
        (ArgumentError, "batch_size must be at least 1", {"batch_size": 0}),
        (ArgumentError, "sequence_length must be at least 1", {"sequence_length": 0}),
        (ArgumentError, "workers must be at least 1", {"workers": 0}),
        (ArgumentError, "rank must be from 0", {"rank": 2, "num_replicas": 2}),
        (ArgumentError, "pass both rank and num_replicas", {"rank": 0}),
        (ArgumentError, "repeat=False with 2 processes", {"repeat": False, "rank": 0, "num_replicas": 2}),
        (ArgumentError, "process 0 of 1 has too few documents for one row of 9001 ids", {"inputs": few, "sequence_length": 9000}),  # noqa: E501
        (ArgumentError, "process 2 of 3 has too few documents", {"inputs": few, "rank": 2, "num_replicas": 3}),
        (ArgumentError, "too few documents", {"inputs": tmp_path / "empty.txt"}),
        (FormatError, r"a.jsonl: the line at byte 0: .* its keys are 'id', 'text'", {"text_key": "body"}),
        (ArgumentError, r"70 of the first 70 records are not valid", {"text_key": "body", "on_error": "skip"}),
    ]  # fmt: skip
    for error, message, arguments in wrong:
        with pytest.raises(error, match=message), pytest.warns() if "empty" in str(arguments) else nothing():
            next(iter(DocumentRows(**{"tok": tok, "inputs": path, **SHORT, **arguments})))
    with standard_input(str(path)), pytest.raises(ArgumentError, match="can be read only once"):
        DocumentRows(tok, "-", **SHORT)


def test_a_file_that_changes_is_noticed(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl")
    rows = DocumentRows(tok, path, **SHORT)
    path.write_bytes(path.read_bytes() + b"\n")
    with pytest.raises(FileChangedError):
        next(iter(rows))


def test_bad_records_are_skipped_with_a_warning(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    path = written(tmp_path / "a.jsonl")
    expected = rows_of(DocumentRows(tok, path, repeat=False, **SHORT))
    path.write_bytes(path.read_bytes() + b'\n{"text": 5}\n')
    with pytest.warns(pybpe.errors.PybpeWarning, match="1 of 71 records are not valid"):
        assert rows_of(DocumentRows(tok, path, repeat=False, on_error="skip", **SHORT)) == expected


def test_the_order_never_changes(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    """Golden values: a run that resumes with a later version must see the same rows."""
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(f"{chr(97 + i)}" for i in range(12)))
    rows = DocumentRows(tok, path, batch_size=6, sequence_length=3, documents="line", seed=1)
    found = [["".join(map(tok.decode, split(row, rows._mark))) for row in batch.tolist()] for batch in islice(rows, 2)]
    assert found == [["dh", "af", "gl", "bj", "ik", "ec"], ["ic", "bh", "ed", "lj", "ga", "fk"]]
