"""Formats of binarize that need large packages: parquet in and out, and tars read by the webdataset package."""

import importlib.util
import io
import json
import random
from itertools import product
from pathlib import Path

import numpy
import pytest
from corpora import EOT, SPLITS, documents, tokens_of
from reference.dataset import streams

import pybpe
from pybpe.reading import rows as row_reading
from pybpe.reading.splits import hash_split
from pybpe.tokens.verification import verify


@pytest.fixture
def corpora(tmp_path: Path, small_tasks: None) -> list[Path]:
    paths = []
    for i in range(4):
        paths.append(tmp_path / f"{i}.txt")
        paths[-1].write_bytes(EOT.join(documents(300)[i * 75 : (i + 1) * 75]).encode())
    return paths


def test_packed_rows_in_parquet_are_those_of_npy(tok: pybpe.Tokenizer, corpora: list[Path], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pybpe.binarize(tok, corpora, tmp_path / "data", splits=(1,), name="x")
    for form in ("npy", "parquet"):
        pybpe.pack(tok, tmp_path / "data", tmp_path / form, sequence_length=64, format=form, shard_tokens=6400)
    paths = sorted((tmp_path / "parquet").glob("x_train_*.parquet"))
    assert len(paths) > 2
    for path in paths:
        table = parquet.read_table(path)
        kinds = [str(kind.value_type) for kind in table.schema.types]
        assert dict(zip(table.column_names, kinds)) == {
            "input_ids": "uint16", "document_ids": "int32", "position_ids": "int32", "loss_mask": "uint8"
        }  # fmt: skip
        for column, rows in table.to_pydict().items():
            assert rows == numpy.load(tmp_path / "npy" / f"{path.stem}.{column}.npy").tolist()
    assert verify(tmp_path / "parquet", tok)[1] == []
    assert (tmp_path / "parquet" / "_manifest.json").exists()


def test_webdataset_reads_packed_rows(tok: pybpe.Tokenizer, corpora: list[Path], tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset")
    pybpe.binarize(tok, corpora, tmp_path / "data", splits=(1,), name="x")
    pybpe.pack(tok, tmp_path / "data", tmp_path / "rows", sequence_length=64, format="webdataset")
    pybpe.pack(tok, tmp_path / "data", tmp_path / "npy", sequence_length=64, format="npy")
    samples = list(webdataset.WebDataset(str(tmp_path / "rows" / "x_train_000000.tar"), shardshuffle=False))
    for column in ("input_ids", "document_ids", "position_ids", "loss_mask"):
        found = [numpy.load(io.BytesIO(sample[f"{column}.npy"])).tolist() for sample in samples]
        assert found == numpy.load(tmp_path / "npy" / f"x_train_000000.{column}.npy").tolist()


@pytest.mark.parametrize("split_by", ["hash", "document"])
@pytest.mark.parametrize("kind", ["string", "large_string", "binary"])
def test_parquet_is_read_by_row_group(
    tok: pybpe.Tokenizer, tmp_path: Path, small_tasks: None, monkeypatch: pytest.MonkeyPatch, split_by: str, kind: str
) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(row_reading, "PIECE_BYTES", 5000)
    texts = [f"forged {EOT} mark", "", *documents(300)]
    column = pyarrow.array([text.encode() for text in texts] if kind == "binary" else texts, getattr(pyarrow, kind)())
    table = pyarrow.table({"id": list(range(302)), "content": column})
    parquet.write_table(table, tmp_path / "x.parquet", row_group_size=77)
    manifest = pybpe.binarize(tok, tmp_path / "x.parquet", tmp_path / "out", text_key="content", split_by=split_by)
    borders = [0.8 * 302, 0.9 * 302]
    if split_by == "hash":
        expected = streams(tok, [(t, True) for t in texts if t], lambda data: hash_split(data, (8, 1, 1)), 3, "prepend")
    else:
        expected = [[], [], []]
        for row, text in enumerate(texts):
            if text:
                split = sum(row >= int(border) for border in borders)
                expected[split] += [tok.eot_token, *tok.encode_ordinary(text)]
    assert [tokens_of(tmp_path / "out", split) for split in SPLITS] == expected
    assert [name for name, _ in manifest.inputs] == [str(tmp_path / "x.parquet")]


@pytest.mark.filterwarnings("ignore:.*this file is empty")
def test_parquet_that_is_not_right(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.table({"content": ["a"], "n": [1]}), path)
    for key, message in (
        ("text", "no column 'text'; set text_key to one of content, n"),
        ("n", "holds int64, expected string"),
    ):
        with pytest.raises(pybpe.errors.FormatError, match=message):
            pybpe.binarize(tok, path, tmp_path / "out", text_key=key)
    parquet.write_table(pyarrow.table({"text": ["a", None]}), path)
    with pytest.raises(pybpe.errors.FormatError, match="row 1: the column 'text' is null"):
        pybpe.binarize(tok, path, tmp_path / "out", splits=(1,))
    for damaged in (b"", b"PAR1", path.read_bytes()[:-3], b"x" * 300):
        path.write_bytes(damaged)
        with pytest.raises(pybpe.errors.FormatError, match="x.parquet: "):
            pybpe.binarize(tok, path, tmp_path / "out", splits=(1,))
    with pytest.raises(FileNotFoundError, match="gone.parquet"):
        pybpe.binarize(tok, tmp_path / "gone.parquet", tmp_path / "out", splits=(1,))


def test_a_folder_of_parquet_is_read_as_a_whole(tok: pybpe.Tokenizer, corpora: list[Path], tmp_path: Path) -> None:
    dataset = pytest.importorskip("pyarrow.dataset")
    out = tmp_path / "out"
    (out / "manifest.json").parent.mkdir()
    manifest = pybpe.binarize(tok, corpora, out, format="parquet", sequence_length=100, name="x")
    assert sum(map(len, dataset.dataset(out).to_table()["input_ids"])) == manifest.tokens
    assert verify(out, tok) == (pybpe.tokens.manifest.Manifest.load(out), [])
    if importlib.util.find_spec("pandas"):
        import pandas

        assert sum(map(len, pandas.read_parquet(out)["input_ids"])) == manifest.tokens
    pybpe.binarize(
        tok, corpora, out, name="y", force=True
    )  # the files of an older run are removed, including its manifest
    assert not list(out.glob("*.parquet")) and not (out / "_manifest.json").exists()
    (out / "manifest.json").rename(out / "_manifest.json")  # `read_manifest` accepts either name
    assert verify(out, tok)[1] == []


def test_rows_give_the_tokens_of_lines(tmp_path: Path) -> None:
    """Row groups, pieces and batches end at different rows; some rows are empty, and one is longer than a piece."""
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng = random.Random(5)
    texts = ["red green blue " * rng.choice([0, 1, 2, 300]) + str(n) * (n % 7 > 0) for n in range(3000)]
    texts[1500] = "a long row " * 300_000
    parquet.write_table(pyarrow.table({"text": texts, "n": range(3000)}), tmp_path / "x.parquet", row_group_size=700)
    (tmp_path / "x.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in texts))
    tok = pybpe.train(iter(texts[:100]), vocab_size=300, special_tokens=["<|endoftext|>"])
    for name in ("x.parquet", "x.jsonl"):
        for split_by in ("hash", "document"):
            out = tmp_path / f"{name}-{split_by}"
            pybpe.binarize(tok, tmp_path / name, out, name="x", split_by=split_by, min_shard_tokens=0, progress=False)
    for file in sorted((tmp_path / "x.jsonl-hash").glob("*.bin")):
        assert file.read_bytes() == (tmp_path / "x.parquet-hash" / file.name).read_bytes()
    streams = [
        b"".join(
            file.read_bytes()[1024:] for split in ("train", "val", "test") for file in sorted(out.glob(f"*_{split}_*"))
        )
        for out in (tmp_path / "x.jsonl-document", tmp_path / "x.parquet-document")
    ]
    assert streams[0] == streams[1]


def test_the_first_rows_are_val(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    """Rows that are empty do not count."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = documents(40)
    table = arrow.table({"text": ["", *texts[:10], "", *texts[10:]]})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    with arrow.OSFile(str(tmp_path / "a.arrow"), "wb") as file, arrow.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    for name, count in product(("a.parquet", "a.arrow"), (10, 13, 39)):
        out = tmp_path / f"{name}{count}"
        pybpe.binarize(tok, tmp_path / name, out, val_documents=count, workers=2, min_shard_tokens=0)
        for split, wanted in (("val", texts[:count]), ("train", texts[count:])):
            assert tokens_of(out, split) == [i for text in wanted for i in [tok.eot_token, *tok.encode(text)]]
