"""Formats of binarize that need large packages: parquet in and out, and tars read by the webdataset package."""

import importlib.util
import io
import json
import random
from pathlib import Path

import numpy
import pytest
from corpora import EOT, SPLITS, documents, tokens_of
from reference.dataset import streams

import pybpe
from pybpe.dataset.verification import verify
from pybpe.reading import planning, row_file
from pybpe.reading.splits import hash_split


@pytest.fixture
def corpora(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(planning, "TASK_BYTES", 20_000)
    paths = []
    for i in range(4):
        paths.append(tmp_path / f"{i}.txt")
        paths[-1].write_bytes(EOT.join(documents(300)[i * 75 : (i + 1) * 75]).encode())
    return paths


def rows_by_definition(tok: pybpe.Tokenizer, paths: list[Path], length: int) -> list[tuple[list, list, list]]:
    """(input_ids, document_ids, source) of the rows of one split that is one shard."""
    stream = [
        (token, number, str(paths[number // 75]))
        for number, text in enumerate(documents(300))
        for token in [*tok.encode(text), tok.eot_token]
    ]
    rows = [stream[i : i + length] for i in range(0, len(stream), length)]
    return [([t for t, _, _ in row], [d for _, d, _ in row], list(dict.fromkeys(s for _, _, s in row))) for row in rows]


@pytest.mark.parametrize("length", [64, 1024, 10**6])
def test_parquet_rows(tok: pybpe.Tokenizer, corpora: list[Path], tmp_path: Path, length: int) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    expected = rows_by_definition(tok, corpora, length)
    pybpe.binarize(tok, corpora, tmp_path / "out", format="parquet", splits=(1,), sequence_length=length, name="x")
    table = parquet.read_table(tmp_path / "out" / "x_train_000000.parquet").to_pydict()
    assert list(zip(table["input_ids"], table["document_ids"], table["source"])) == expected


def test_parquet_shards_go_on_with_documents(tok: pybpe.Tokenizer, corpora: list[Path], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    pybpe.binarize(
        tok, corpora, tmp_path / "out", format="parquet", splits=(1,), shard_tokens=6400, sequence_length=64, name="x"
    )
    tables = [parquet.read_table(path).to_pydict() for path in sorted((tmp_path / "out").glob("*.parquet"))]
    rows = [row for t in tables for row in zip(t["input_ids"], t["document_ids"], t["source"])]
    assert len(tables) > 2 and rows == rows_by_definition(tok, corpora, 64)


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


def test_webdataset_reads_the_samples(tok: pybpe.Tokenizer, corpora: list[Path], tmp_path: Path) -> None:
    webdataset = pytest.importorskip("webdataset")
    out = tmp_path / "out"
    arguments = {"format": "webdataset", "splits": (1,), "shard_tokens": 6400, "sequence_length": 64, "name": "x"}
    pybpe.binarize(tok, corpora, out, **arguments)
    paths = [str(path) for path in sorted(out.glob("*.tar"))]
    samples = list(webdataset.WebDataset(paths, shardshuffle=False))
    found = [
        (
            numpy.load(io.BytesIO(sample["input_ids.npy"])).tolist(),
            numpy.load(io.BytesIO(sample["document_ids.npy"])).tolist(),
            json.loads(sample["json"])["source"],
        )
        for sample in samples
    ]
    assert len(paths) > 2 and found == rows_by_definition(tok, corpora, 64)
    assert len({sample["__key__"] for sample in samples}) == len(samples)
    pybpe.binarize(tok, corpora, tmp_path / "again", workers=1, **arguments)
    assert [path.read_bytes() for path in sorted(out.iterdir())] == [
        path.read_bytes() for path in sorted((tmp_path / "again").iterdir())
    ]


@pytest.mark.parametrize("split_by", ["hash", "document"])
@pytest.mark.parametrize("kind", ["string", "large_string", "binary"])
def test_parquet_is_read_by_row_group(
    tok: pybpe.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, split_by: str, kind: str
) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(planning, "TASK_BYTES", 20_000)
    monkeypatch.setattr(row_file, "PIECE_BYTES", 5000)
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
    assert manifest.shards["train"][0].sources[0][0] == str(tmp_path / "x.parquet")


def test_parquet_that_is_not_right(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.table({"content": ["a"], "n": [1]}), path)
    for key, message in (
        ("text", "no column 'text'; set text_key to one of content, n"),
        ("n", "holds int64, expected string"),
    ):
        with pytest.raises(pybpe.FormatError, match=message):
            pybpe.binarize(tok, path, tmp_path / "out", text_key=key)
    parquet.write_table(pyarrow.table({"text": ["a", None]}), path)
    with pytest.raises(pybpe.FormatError, match="row 1: the column 'text' is null"):
        pybpe.binarize(tok, path, tmp_path / "out", splits=(1,))
    for damaged in (b"", b"PAR1", path.read_bytes()[:-3], b"x" * 300):
        path.write_bytes(damaged)
        with pytest.raises(pybpe.FormatError, match="x.parquet: "):
            pybpe.binarize(tok, path, tmp_path / "out", splits=(1,))
    with pytest.raises(FileNotFoundError, match="gone.parquet"):
        pybpe.binarize(tok, tmp_path / "gone.parquet", tmp_path / "out", splits=(1,))


@pytest.mark.parametrize(("shard_tokens", "least"), [(5050, 0), (1000, 1550)])
@pytest.mark.parametrize("format", ["parquet", "webdataset"])
def test_only_the_last_row_of_a_split_is_short(
    tok: pybpe.Tokenizer, corpora: list[Path], tmp_path: Path, format: str, shard_tokens: int, least: int
) -> None:
    """Only the last row is shorter, so programs that stack rows of one length can read all others."""
    pytest.importorskip("pyarrow.parquet")
    given = {"format": format, "shard_tokens": shard_tokens, "sequence_length": 100, "min_shard_tokens": least}
    manifest = pybpe.binarize(tok, corpora, tmp_path / "out", name="x", **given)
    for records in manifest.shards.values():
        assert [record.tokens % 100 for record in records[:-1]] == [0] * (len(records) - 1)
        assert all(least <= record.tokens for record in records)


def test_a_folder_of_parquet_is_read_as_a_whole(tok: pybpe.Tokenizer, corpora: list[Path], tmp_path: Path) -> None:
    dataset = pytest.importorskip("pyarrow.dataset")
    out = tmp_path / "out"
    (out / "manifest.json").parent.mkdir()
    manifest = pybpe.binarize(tok, corpora, out, format="parquet", sequence_length=100, name="x")
    assert sum(map(len, dataset.dataset(out).to_table()["input_ids"])) == manifest.tokens
    assert verify(out, tok) == (pybpe.dataset.Manifest.load(out), [])
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
