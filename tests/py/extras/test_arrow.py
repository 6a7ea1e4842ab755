"""Arrow files, and folders that Hugging Face's `datasets` saved: the same documents as in JSON lines."""

import json
import random
import struct
from pathlib import Path
from typing import Any

import pytest

pyarrow = pytest.importorskip("pyarrow")

from corpora import documents, jsonl, small_tokenizer  # noqa: E402
from pyarrow import feather, ipc  # noqa: E402

import pybpe  # noqa: E402
from pybpe.errors import FormatError  # noqa: E402
from pybpe.reading import rows as row_reading  # noqa: E402
from pybpe.reading.files import corpus_files, input_files  # noqa: E402
from pybpe.reading.input_file import InputFile  # noqa: E402
from pybpe.reading.records import RecordNotes  # noqa: E402
from pybpe.reading.rows import ArrowStream  # noqa: E402

TEXTS = documents(300)


def table(texts: list[str], kind: Any = None, **more: Any) -> Any:
    return pyarrow.table({"n": list(range(len(texts))), "text": pyarrow.array(texts, kind or pyarrow.string()), **more})


def as_stream(path: Path, data: Any, rows: int = 40, **options: Any) -> Path:
    with ipc.new_stream(path, data.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(data, rows)
    return path


def as_file(path: Path, data: Any, rows: int = 40, **options: Any) -> Path:
    with ipc.new_file(path, data.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(data, rows)
    return path


def rows_of(path: Path, start: int = 0, end: int | None = None) -> list[bytes]:
    rows = ArrowStream(InputFile.of(str(path)), "text")
    batches = rows.texts(start, end, RecordNotes(str(path), start, False))
    return [text for texts, _ in batches for text in texts]


@pytest.mark.parametrize("write", [as_stream, as_file])
@pytest.mark.parametrize("options", [{}, {"compression": "lz4"}, {"compression": "zstd"}], ids=str)
@pytest.mark.parametrize("kind", ["string", "large_string", "binary", "string_view"])
def test_all_ranges_of_rows(tmp_path: Path, write: Any, options: dict[str, Any], kind: str) -> None:
    texts = [text.encode() for text in TEXTS]
    path = write(tmp_path / "a.arrow", table(texts, getattr(pyarrow, kind)()), **options)
    assert rows_of(path) == texts
    rng = random.Random(1)
    for _ in range(20):
        start = rng.randrange(300)
        end = rng.randrange(start, 301)
        assert rows_of(path, start, end) == texts[start:end]


@pytest.mark.parametrize("write", [as_stream, as_file])
def test_dictionaries_and_empty_files(tmp_path: Path, write: Any) -> None:
    words = pyarrow.array(["a", "b", "c"] * 100).dictionary_encode()
    path = write(tmp_path / "a.arrow", table(TEXTS, word=words))
    assert rows_of(path) == [text.encode() for text in TEXTS]
    assert rows_of(path, 70, 201) == [text.encode() for text in TEXTS[70:201]]
    assert rows_of(write(tmp_path / "b.arrow", table([]))) == []
    texts = ["long " * 500, "b", "", "b"] * 100
    categories = write(tmp_path / "c.arrow", pyarrow.table({"text": pyarrow.array(texts).dictionary_encode()}))
    assert rows_of(categories) == list(filter(None, (text.encode() for text in texts)))


@pytest.mark.parametrize("write", [as_stream, as_file])
def test_a_file_without_its_end_was_cut(tmp_path: Path, write: Any) -> None:
    """pyarrow would read the batches that are whole."""
    path = write(tmp_path / "a.arrow", table(TEXTS), 40)
    data = path.read_bytes()
    for size in (len(data) - 1, len(data) - 8, *range(len(data) // 8, len(data), len(data) // 8)):
        path.write_bytes(data[:size])
        with pytest.raises(FormatError, match=r"a\.arrow: (damaged|not an Arrow file)"):
            rows_of(path)


@pytest.mark.parametrize("split_by", ["hash", "token"])
def test_binarize(tmp_path: Path, small_tasks: None, monkeypatch: pytest.MonkeyPatch, split_by: str) -> None:
    """Groups, pieces and batches end at different rows; some rows are empty, and one is longer than a piece."""
    monkeypatch.setattr(row_reading, "PIECE_BYTES", 5000)
    tok, texts = small_tokenizer(), [*TEXTS[:100], "", "a long row " * 2000, *TEXTS[100:], ""]
    feather.write_feather(table(texts), tmp_path / "a.feather", chunksize=50)
    pyarrow_parquet = pytest.importorskip("pyarrow.parquet")
    pyarrow_parquet.write_table(table(texts), tmp_path / "a.parquet", row_group_size=50)
    as_stream(tmp_path / "a.arrow", table(texts), 50)
    found = {}
    for name in ("a.feather", "a.arrow", "a.parquet"):
        for workers in (1, 3):
            out = tmp_path / f"{name}{workers}"
            pybpe.binarize(tok, tmp_path / name, out, split_by=split_by, workers=workers)
            found[out] = [path.read_bytes() for path in sorted(out.glob("*.bin"))]
    if split_by == "hash":  # other splits depend on the sizes of the groups
        (tmp_path / "a.jsonl").write_bytes(jsonl(texts))
        pybpe.binarize(tok, tmp_path / "a.jsonl", tmp_path / "lines", split_by=split_by)
        found[tmp_path] = [path.read_bytes() for path in sorted((tmp_path / "lines").glob("*.bin"))]
        assert len(set(map(tuple, found.values()))) == 1
    else:
        assert found[tmp_path / "a.arrow1"] == found[tmp_path / "a.arrow3"]
        assert found[tmp_path / "a.feather1"] == found[tmp_path / "a.feather3"]


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ({"text": pyarrow.array([1]).dictionary_encode()}, "holds int64"),
        ({"text": ["x", None]}, "row 1: the column 'text' is null"),
    ],
)
def test_wrong_columns(tmp_path: Path, column: dict[str, Any], problem: str) -> None:
    with pytest.raises(FormatError, match=problem):
        rows_of(as_stream(tmp_path / "a.arrow", pyarrow.table(column)))


def test_damaged_files_are_errors(tmp_path: Path) -> None:
    rng, path = random.Random(1), tmp_path / "a.arrow"
    for write in (as_stream, as_file):
        whole = write(path, table(documents(20)), 7).read_bytes()
        expected = rows_of(path)
        wrong = 0
        for number in range(90):
            data = bytearray(whole)
            if number % 3 == 0:
                del data[rng.randrange(len(data)) :]
            elif number % 3 == 1:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            else:
                at = rng.randrange(len(data) - 8)
                data[at : at + 8] = struct.pack("<q", rng.choice([-1, 1 << 62, -(1 << 63), 1 << 31, 0, 7]))
            path.write_bytes(data)
            try:
                wrong += rows_of(path) != expected  # changed letters, which no reader can notice
            except (FormatError, pybpe.errors.FileError) as error:
                assert str(path) in str(error) and "\n" not in str(error)
        assert wrong < 60


def test_kinds_are_recognized(tmp_path: Path) -> None:
    as_stream(tmp_path / "a.txt", table(TEXTS))
    with pytest.raises(FormatError, match=r"a\.txt: not text, but an Arrow stream: give it a name that ends in"):
        pybpe.count_words(tmp_path / "a.txt")
    (tmp_path / "b.arrow").write_text("text, not Arrow")
    with pytest.raises(FormatError, match=r"b\.arrow: not an Arrow file, or damaged: no message at byte 0"):
        pybpe.binarize(small_tokenizer(), tmp_path / "b.arrow", tmp_path / "out")


# ----------------------------------------------------------------------------------------------------
# datasets.Dataset.save_to_disk


def saved(folder: Path, order: list[int], **state: Any) -> list[str]:
    """Saves TEXTS as `datasets` does, with files in some order. Returns the texts in the order of the dataset."""
    folder.mkdir(parents=True)
    files = []
    for number in order:
        name = f"data-{number:05d}-of-{len(order):05d}.arrow"
        as_stream(folder / name, table(TEXTS[number * 100 : number * 100 + 100]))
        files.append({"filename": name})
    as_stream(folder / "cache-0123.arrow", table(["not part of the dataset"]))
    (folder / "state.json").write_text(json.dumps({"_data_files": files, "_fingerprint": "x", **state}, indent=2))
    (folder / "dataset_info.json").write_text(json.dumps({"features": {}}, indent=2))
    return [text for number in order for text in TEXTS[number * 100 : number * 100 + 100]]


def texts_in(inputs: Any) -> list[str]:
    return [text.decode() for file in corpus_files(inputs) for text in rows_of(Path(file.path))]


@pytest.mark.parametrize("order", [[0, 1, 2], [2, 0, 1]])
def test_a_saved_dataset_has_its_own_order(tmp_path: Path, order: list[int]) -> None:
    expected = saved(tmp_path / "top" / "ds", order)
    assert texts_in(tmp_path / "top" / "ds") == expected
    assert texts_in(tmp_path / "top") == expected
    assert texts_in(str(tmp_path / "*" / "d*")) == expected


def test_what_is_not_read_as_a_dataset(tmp_path: Path) -> None:
    saved(tmp_path / "a", [0])
    with pytest.raises(FormatError, match=r"state\.json: not text, but a description of a Hugging Face dataset"):
        corpus_files(tmp_path / "a" / "state.json")
    saved(tmp_path / "b", [0], _indices_data_files=[{"filename": "indices.arrow"}])
    with pytest.raises(pybpe.errors.ArgumentError, match=r"save it again after flatten_indices\(\)"):
        corpus_files(tmp_path / "b")
    saved(tmp_path / "c" / "train", [0, 1])
    (tmp_path / "c" / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    with pytest.raises(
        pybpe.errors.ArgumentError, match=r"has the splits train, test of a dataset: .*such as .*/c/train"
    ):
        corpus_files(tmp_path / "c")
    (tmp_path / "c" / "dataset_dict.json").write_text('{"splits": ["train"]}')
    assert len(texts_in(tmp_path / "c")) == 200
    (tmp_path / "c" / "train" / "data-00001-of-00002.arrow").unlink()
    with pytest.raises(FormatError, match=r"c/train/data-00001-of-00002\.arrow: this file, which state\.json lists"):
        corpus_files(tmp_path / "c")
    (tmp_path / "a" / "state.json").write_text('{"_data_files": [{"filename": "../b/x"}]}')
    with pytest.raises(FormatError, match="is not in this folder"):
        corpus_files(tmp_path / "a")
    (tmp_path / "a" / "state.json").write_text("{")
    with pytest.raises(FormatError, match="not the state of a Hugging Face dataset, or damaged"):
        corpus_files(tmp_path / "a")


def test_a_saved_dataset_in_a_bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    obstore = pytest.importorskip("obstore")
    store = obstore.store.MemoryStore()
    monkeypatch.setattr("pybpe.reading.remote._opened", lambda scheme, bucket: store)
    saved(tmp_path / "top" / "ds", [2, 0, 1])
    for path in (tmp_path / "top").rglob("*"):
        if path.is_file():
            obstore.put(store, path.relative_to(tmp_path).as_posix(), path.read_bytes())
    local = [path.removeprefix(f"{tmp_path}/") for path in input_files(tmp_path / "top")]
    assert [path.removeprefix("s3://bucket/") for path in input_files("s3://bucket/top")] == local
    tok = small_tokenizer()
    pybpe.binarize(tok, tmp_path / "top", tmp_path / "local", name="n")
    pybpe.binarize(tok, "s3://bucket/top", tmp_path / "remote", name="n")
    assert [path.read_bytes() for path in sorted((tmp_path / "local").glob("*.bin"))] == [
        path.read_bytes() for path in sorted((tmp_path / "remote").glob("*.bin"))
    ]


def test_map_of_datasets_takes_what_encode_batch_returns() -> None:
    """As docs/migrating.md says."""
    datasets = pytest.importorskip("datasets")
    tok = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [])
    rows = datasets.Dataset.from_dict({"text": TEXTS}).map(
        lambda batch: {"input_ids": tok.encode_batch(batch["text"])}, batched=True
    )
    assert rows["input_ids"][:] == [tok.encode(text) for text in TEXTS]


def test_what_datasets_itself_saves(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    dataset = datasets.Dataset.from_dict({"text": TEXTS}).shuffle(seed=1)
    dataset.save_to_disk(tmp_path / "ds", num_shards=3)
    assert texts_in(tmp_path / "ds") == dataset["text"][:]
