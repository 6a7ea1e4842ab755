"""Packed rows with columns: numpy, WebDataset, and what the columns say. Parquet is in tests/py/extras."""

import hashlib
import io
import multiprocessing
import os
import random
import resource
import signal
import tarfile
from pathlib import Path
from typing import Any

import numpy
import pytest
from corpora import EOT, content, documents
from killed import die_at
from reference.packing import columns, pieces_of_rows

import pybpe
from llmc_compat.shards import read_shard
from pybpe.cli import main
from pybpe.tokens.pack import pieces as pieces_module
from pybpe.tokens.pack.options import METHODS
from pybpe.tokens.pack.pieces import chunks, groups, pieces_of, place, row_count, shuffled
from pybpe.tokens.pack.rows import COLUMNS, Rows
from pybpe.tokens.statistics import dataset_statistics
from pybpe.tokens.token_files import TokenStream
from pybpe.tokens.verification import verify

MARK, PAD = 0, 1
T = 64


@pytest.fixture(scope="module")
def data(tok: pybpe.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    (folder / "corpus.txt").write_text(EOT.join([*documents(100), "x", "Long. " * 400]), encoding="utf-8")
    pybpe.binarize(tok, folder / "corpus.txt", folder / "data", shard_tokens=9000)
    return folder / "data"


@pytest.mark.parametrize("method", METHODS)
def test_columns_are_as_in_the_slow_version(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_module, "_GROUP_ROWS", 3)
    monkeypatch.setattr(pieces_module, "_CHUNK_TOKENS", 50)
    rng = random.Random(8)
    for _ in range(60):
        monkeypatch.setattr(pieces_module, "_GROUP_TOKENS", rng.choice([1, 100, 1000]))
        size = rng.choice([2, 3, 5, 16, 40])
        lengths = [rng.choice([1, size - 1, size, 3 * size, rng.randint(1, 9)]) for _ in range(rng.randint(0, 40))]
        texts = [list(range(1000 * i + 2, 1000 * i + 2 + length)) for i, length in enumerate(lengths)]
        last = {text[-1] for text in texts}
        ids = numpy.array([i for text in texts for i in [MARK, *text]], dtype=numpy.uint32)
        per_shard, before, begins = rng.choice([1, 3, 10**9]), 0, 0
        for number, group in enumerate(groups(TokenStream(ids), MARK, size)):
            placed = shuffled(place(group.documents, size, method), 7, number)
            for shard, some in chunks(placed, size, before, per_shard):
                made = Rows(group.ids, some, size, MARK, PAD)
                begins += made.documents
                found = {name: getattr(made, name) for name in COLUMNS}
                assert [str(column.dtype) for column in found.values()] == ["uint32", "int32", "int32", "uint8"]
                assert made.padding == (found["document_ids"] == -1).sum()
                assert {row // per_shard for row in range(before, before + len(made.input_ids))} == {shard}
                before += len(made.input_ids)
                for i, row in enumerate(made.input_ids.tolist()):
                    parts = [(piece, piece[-1] in last) for piece in pieces_of_rows([row], MARK, PAD)]
                    assert {name: column[i].tolist() for name, column in found.items()} == columns(parts, size, PAD)
        assert begins == len(texts)


def test_a_spare_row_is_a_mark_and_padding() -> None:
    spare = pieces_of(numpy.zeros(2), numpy.zeros(2), False, False, numpy.arange(2))
    made = Rows(numpy.array([7], dtype=numpy.uint16), spare, 5, MARK, PAD)
    assert [str(getattr(made, name).dtype) for name in COLUMNS] == ["uint16", "int32", "int32", "uint8"]
    assert (made.documents, made.padding, row_count(spare)) == (0, 8, 2)
    expected = columns([([MARK], False)], 5, PAD)
    assert {name: getattr(made, name).tolist() for name in COLUMNS} == {
        name: [row] * 2 for name, row in expected.items()
    }


def rows_of(folder: Path, split: str, form: str) -> dict[str, list[list[int]]]:
    """Returns the columns of all rows of a split."""
    found: dict[str, list[list[int]]] = {column: [] for column in COLUMNS}
    if form == "npy":
        for column in COLUMNS:
            for path in sorted(folder.glob(f"*_{split}_*.{column}.npy")):
                found[column] += numpy.load(path).tolist()
        return found
    for path in sorted(folder.glob(f"*_{split}_*.tar")):
        with tarfile.open(path) as tar:
            for member in tar:
                column = member.name.split(".")[1]
                found[column].append(numpy.load(io.BytesIO(tar.extractfile(member).read())).tolist())
    return found


@pytest.mark.parametrize("form", ["npy", "webdataset"])
def test_rows_have_columns_in_other_formats(tok: pybpe.Tokenizer, data: Path, tmp_path: Path, form: str) -> None:
    llmc = pybpe.pack(tok, data, tmp_path / "llmc", sequence_length=T)
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, format=form, shard_tokens=9000)
    assert [len(shards) for shards in made.shards.values()][0] > 1
    for split, shards in made.shards.items():
        (shard,) = llmc.shards[split]
        expected = read_shard(tmp_path / "llmc" / shard.file)[:-1].reshape(-1, T).tolist()
        found = rows_of(tmp_path / "a", split, form)
        rows = found["input_ids"]
        assert rows == expected[: len(rows)] and len(expected) - len(rows) <= 1  # llm.c's shards may need a spare row
        assert made.packing["splits"][split]["rows"] == len(rows)
        assert sum(shard.tokens for shard in shards) == len(rows) * T
        for i, row in enumerate(rows):
            parts = pieces_of_rows([row], tok.eot_token, made.packing["pad"])
            slow = columns([(part, True) for part in parts], T, made.packing["pad"])
            mask = slow.pop("loss_mask")
            assert {name: found[name][i] for name in slow} == slow
            assert all(a == b or ids == tok.eot_token for a, b, ids in zip(found["loss_mask"][i], mask, row))
    assert verify(tmp_path / "a", tok)[1] == []
    assert dataset_statistics(tmp_path / "a")["train"].documents == made.split_documents("train")
    path = tmp_path / "a" / made.shards["train"][0].file
    before = path.read_bytes()
    path.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    assert [str(problem) for problem in verify(tmp_path / "a", tok)[1]] == [
        f"{path.name}: its SHA-256 is not the manifest's: its content has changed"
    ]


def test_rows_that_are_not_rows_are_found_in_other_formats(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    made = pybpe.pack(tok, data, tmp_path / "a", sequence_length=T, format="npy")
    path = tmp_path / "a" / made.shards["val"][0].file
    ids = numpy.load(path)
    old = made.shards["val"][0].sha256
    for changed, message in (
        (numpy.roll(ids, 1), "begins a row"),
        (ids.reshape(-1)[:-1], "a whole number of rows of 64"),
    ):
        numpy.save(path, changed)
        manifest = tmp_path / "a" / "manifest.json"
        text = manifest.read_text().replace(old, hashlib.sha256(path.read_bytes()).hexdigest())
        manifest.write_text(text.replace(f'"bytes": {made.shards["val"][0].bytes}', f'"bytes": {path.stat().st_size}'))
        assert message in str(verify(tmp_path / "a", tok)[1][0])
        manifest.write_bytes(made.to_json())


@pytest.mark.parametrize("form", ["npy", "webdataset"])
def test_a_killed_run_of_other_formats_starts_again(
    tok: pybpe.Tokenizer, data: Path, tmp_path: Path, form: str
) -> None:
    def work(point: int, out: str = "out") -> None:
        die_at(point)
        pybpe.pack(tok, data, tmp_path / out, sequence_length=T, shard_tokens=10_000, format=form)

    pybpe.pack(tok, data, tmp_path / "whole", sequence_length=T, shard_tokens=10_000, format=form)
    for point in (0, 1, 4):
        process = multiprocessing.get_context("fork").Process(target=work, args=(point,))
        process.start()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        assert not (tmp_path / "out").exists() or content(tmp_path / "out") == content(tmp_path / "whole")
    pybpe.pack(tok, data, tmp_path / "out", sequence_length=T, shard_tokens=10_000, format=form)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert sorted(os.listdir(tmp_path)) == ["out", "whole"]


@pytest.mark.parametrize("form", ["llmc", "npy", "webdataset"])
def test_a_file_that_cannot_be_written_is_named(tok: pybpe.Tokenizer, data: Path, tmp_path: Path, form: str) -> None:
    def work(results: Any) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, resource.RLIM_INFINITY))
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # the write fails instead
        try:
            pybpe.pack(tok, data, tmp_path / "out", sequence_length=T, format=form)
        except pybpe.errors.FileError as error:
            results.put(str(error))
        else:
            results.put("")

    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    process = context.Process(target=work, args=(results,))
    process.start()
    message = results.get()
    process.join()
    assert "corpus_train_000000" in message and "cannot be written" in message and "large" in message
    assert not (tmp_path / "out").exists()


def test_the_command_line_packs_into_other_formats(tok: pybpe.Tokenizer, data: Path, tmp_path: Path) -> None:
    tok.save(tmp_path / "tok.json")
    args = ["-t", str(tmp_path / "tok.json"), "-o", str(tmp_path / "out"), "--format", "npy", "--quiet"]
    assert main(["pack", str(data), "--sequence-length", str(T), *args]) == 0
    pybpe.pack(tok, data, tmp_path / "same", sequence_length=T, format="npy")
    assert content(tmp_path / "out") == content(tmp_path / "same")
