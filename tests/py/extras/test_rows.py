"""Files of rows: parquet and Arrow in, parquet and tars of webdataset out; rows without text, and large ones; training
from them."""

import gzip
import importlib.util
import io
import json
import os
import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from typing import Any

import numpy
import pytest

pyarrow = pytest.importorskip("pyarrow")
from corpora import EOT, SPLITS, documents, jsonl, records, small_tokenizer, tokens_of  # noqa: E402
from pyarrow import dataset, feather, parquet  # noqa: E402
from reference.dataset import streams  # noqa: E402
from test_bombs import limited  # noqa: E402
from test_memory import peak_megabytes  # noqa: E402
from texts import chinese, english  # noqa: E402

import pybpe  # noqa: E402
from pybpe.cli import main  # noqa: E402
from pybpe.corpus import clean  # noqa: E402
from pybpe.errors import Error, FileError, FormatError, PybpeWarning  # noqa: E402
from pybpe.loading import DocumentRows  # noqa: E402
from pybpe.reading import planning  # noqa: E402
from pybpe.reading import rows as row_reading  # noqa: E402
from pybpe.reading.files import corpus_files  # noqa: E402
from pybpe.reading.input_file import InputFile  # noqa: E402
from pybpe.reading.planning import hash_split  # noqa: E402
from pybpe.support.progress import About, Progress  # noqa: E402
from pybpe.tokens.verification import verify  # noqa: E402

# ------------------------------------------------------------------------------------------------------
# Token files


@pytest.fixture
def corpora(tmp_path: Path, small_tasks: None) -> list[Path]:
    paths = []
    for i in range(4):
        paths.append(tmp_path / f"{i}.txt")
        paths[-1].write_bytes(EOT.join(documents(300)[i * 75 : (i + 1) * 75]).encode())
    return paths


def test_packed_rows_of_other_formats_are_those_of_npy(
    tok: pybpe.Tokenizer, corpora: list[Path], tmp_path: Path
) -> None:
    webdataset = pytest.importorskip("webdataset")
    pybpe.binarize(tok, corpora, tmp_path / "data", splits=(1,), name="x")
    for form in ("npy", "parquet", "webdataset"):
        pybpe.pack(tok, tmp_path / "data", tmp_path / form, sequence_length=64, format=form, shard_tokens=6400)
        assert verify(tmp_path / form, tok)[1] == []
    paths = sorted((tmp_path / "parquet").glob("x_train_*.parquet"))
    assert len(paths) > 2 and (tmp_path / "parquet" / "_manifest.json").exists()
    for path in paths:
        table = parquet.read_table(path)
        kinds = [str(kind.value_type) for kind in table.schema.types]
        assert dict(zip(table.column_names, kinds)) == {
            "input_ids": "uint16", "document_ids": "int32", "position_ids": "int32", "loss_mask": "uint8"
        }  # fmt: skip
        samples = list(webdataset.WebDataset(f"{tmp_path}/webdataset/{path.stem}.tar", shardshuffle=False))
        for column, rows in table.to_pydict().items():
            assert rows == numpy.load(tmp_path / "npy" / f"{path.stem}.{column}.npy").tolist()
            assert rows == [numpy.load(io.BytesIO(sample[f"{column}.npy"])).tolist() for sample in samples]


def test_a_folder_of_parquet_is_read_as_a_whole(tok: pybpe.Tokenizer, corpora: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    pybpe.binarize(tok, corpora, tmp_path / "data", name="x")
    manifest = pybpe.pack(tok, tmp_path / "data", out, format="parquet", sequence_length=100)
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


# ------------------------------------------------------------------------------------------------------
# Rows as input


@pytest.mark.parametrize("split_by", ["hash", "token"])
@pytest.mark.parametrize("kind", ["string", "large_string", "binary"])
def test_parquet_is_read_by_row_group(
    tok: pybpe.Tokenizer, tmp_path: Path, small_tasks: None, monkeypatch: pytest.MonkeyPatch, split_by: str, kind: str
) -> None:
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
    path = tmp_path / "x.parquet"
    parquet.write_table(pyarrow.table({"content": ["a"], "n": [1]}), path)
    for key, message in (
        ("text", "no column 'text': set text_key to one of content, n"),
        ("n", "holds int64, expected string"),
    ):
        with pytest.raises(FormatError, match=message):
            pybpe.binarize(tok, path, tmp_path / "out", text_key=key)
    parquet.write_table(pyarrow.table({"text": ["a", None]}), path)
    with pytest.raises(FormatError, match="row 1: the column 'text' is null"):
        pybpe.binarize(tok, path, tmp_path / "out", splits=(1,))
    two = pyarrow.Table.from_arrays([pyarrow.array(["a"]), pyarrow.array(["b"])], names=["text", "text"])
    parquet.write_table(two, tmp_path / "two.parquet")
    with pytest.raises(FormatError, match="2 columns are named 'text'"):
        pybpe.binarize(tok, tmp_path / "two.parquet", tmp_path / "out")
    for damaged in (b"", b"PAR1", path.read_bytes()[:-3], b"x" * 300):
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match="x.parquet: "):
            pybpe.binarize(tok, path, tmp_path / "out", splits=(1,))
    with pytest.raises(FileNotFoundError, match="gone.parquet"):
        pybpe.binarize(tok, tmp_path / "gone.parquet", tmp_path / "out", splits=(1,))


def test_the_first_rows_are_val(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    """Rows that are empty do not count."""
    texts = documents(40)
    table = pyarrow.table({"text": ["", *texts[:10], "", *texts[10:]]})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    feather.write_feather(table, str(tmp_path / "a.arrow"))
    for name, count in product(("a.parquet", "a.arrow"), (10, 13, 39)):
        out = tmp_path / f"{name}{count}"
        pybpe.binarize(tok, tmp_path / name, out, val_documents=count, workers=2, min_shard_tokens=0)
        for split, wanted in (("val", texts[:count]), ("train", texts[count:])):
            assert tokens_of(out, split) == [i for text in wanted for i in [tok.eot_token, *tok.encode(text)]]


@pytest.fixture(params=["parquet", "arrow"])
def files(request: pytest.FixtureRequest, tmp_path: Path, small_tasks: None) -> tuple[Path, Path]:
    """Makes a file with null rows, and one without them."""
    texts: list[Any] = list(documents(100))
    bad = [text for number, text in enumerate(texts) for text in ([None] * (number % 7 == 0) + [text])] + [None, ""]
    paths = (tmp_path / f"bad.{request.param}", tmp_path / f"good.{request.param}")
    for path, some in zip(paths, (bad, texts)):
        table = pyarrow.table({"text": some})
        if request.param == "parquet":
            parquet.write_table(table, path, row_group_size=30)
        else:
            feather.write_feather(table, path, chunksize=30)
    return paths


def test_rows(files: tuple[Path, Path], tmp_path: Path) -> None:
    tok, bad, good = small_tokenizer(), *files
    given: dict[str, Any] = {"progress": False, "name": "x", "splits": (3, 1), "min_shard_tokens": 0}
    given["split_by"] = "hash"
    nulls = [row for row, text in enumerate(_texts(bad)) if text is None]
    with pytest.raises(FormatError, match=r"bad\.\w+: row 0: the column 'text' is null"):
        pybpe.binarize(tok, bad, tmp_path / "out", **given)
    with pytest.warns(
        PybpeWarning, match="16 of 117 records are not valid, such as .*: row 0: the column 'text' is null"
    ):
        pybpe.binarize(tok, bad, tmp_path / "out", on_error="skip", **given)
    pybpe.binarize(tok, good, tmp_path / "good", **given)
    for path in (tmp_path / "good").glob("*.bin"):
        assert path.read_bytes() == (tmp_path / "out" / path.name).read_bytes()
    wanted = [{"file": str(bad), "row": row, "reason": "the column 'text' is null"} for row in nulls]
    assert [json.loads(line) for line in (tmp_path / "out" / "skipped.jsonl").open()] == wanted
    with pytest.warns(PybpeWarning):
        clean(bad, tmp_path / "bad.jsonl", on_error="skip", progress=False)
    clean(good, tmp_path / "good.jsonl", progress=False)
    assert (tmp_path / "bad.jsonl").read_bytes() == (tmp_path / "good.jsonl").read_bytes()
    assert [json.loads(line) for line in (tmp_path / "bad.jsonl.skipped.jsonl").open()] == wanted


def _texts(path: Path) -> list[Any]:
    table = parquet.read_table(path) if path.suffix == ".parquet" else feather.read_table(path)
    return list(table["text"].to_pylist())


def write_rows(path: Path, rows: int, text: str) -> None:
    """Writes a parquet file that stores a text once for all of its rows."""
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows, pyarrow.int32()), [text])
    table = pyarrow.table({"text": texts.cast(pyarrow.large_string())})
    parquet.write_table(table, path, compression="zstd", dictionary_pagesize_limit=1 << 30)


@pytest.mark.parametrize("compression", ["none", "zstd"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_the_longest_text_of_a_dictionary(tmp_path: Path, compression: str, version: str) -> None:
    """The column has two groups, and another column is before it."""
    words = [f"word {number}" * number for number in range(300)]
    data = pyarrow.table({"id": range(600), "text": words * 2})
    for stored in (["text"], ["id"]):
        path = tmp_path / "x.parquet"
        options = {"compression": compression, "data_page_version": version, "use_dictionary": stored}
        parquet.write_table(data, path, row_group_size=300, **options)
        rows = row_reading.RowGroups(InputFile.of(str(path)), "text")
        expected = max(map(len, words)) if stored == ["text"] else 0
        assert [rows._longest_in_dictionary(group) for group in (0, 1)] == [expected] * 2


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units elsewhere")
def test_a_text_of_many_rows(tmp_path: Path) -> None:
    """A text of 1 MB that is stored once for 600 rows: not all of them are in memory at the same time."""
    path, out = tmp_path / "bomb.parquet", tmp_path / "out.jsonl"
    write_rows(path, 600, "word " * 200_000)
    assert path.stat().st_size < 10_000
    settings = ["--min-chars", 1, "--dedup", "exact", "--workers", 1, "--quiet"]
    assert peak_megabytes("corpus", path, "-o", out, *settings) < 600
    assert json.loads(out.read_text()) == {"text": "word " * 200_000}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits the address space")
def test_a_row_that_does_not_fit_in_memory(tmp_path: Path) -> None:
    """Arrow's message says nothing of the file."""
    path = tmp_path / "bomb.parquet"
    write_rows(path, 2, "word " * 60_000_000)
    assert path.stat().st_size < 100_000
    code, said = limited("corpus", path, "-o", tmp_path / "out.jsonl", "--min-chars", 1)
    assert code == 2 and "not enough memory" in said and "damaged" not in said
    assert os.listdir(tmp_path) == [path.name]


# ------------------------------------------------------------------------------------------------------
# Other columns

COLUMNS: dict[str, Any] = {
    "id": [1, None, 3],
    "cluster": ["mine", "", None],
    "language": ["xx", "yy", "zz"],
    "text": ["one two", "", "three\n"],
    "page.text": ["a", "b", "c"],
    "page": [{"text": "x", "tags": ["y"]}, None, {"text": None, "tags": []}],
    "score": [0.5, float("nan"), 1e300],
    "at": pyarrow.array([1, 2, 3], pyarrow.timestamp("ns")),
}


def written(path: Path, columns: dict[str, Any]) -> Path:
    table = pyarrow.table(columns)
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in table.to_pylist()))
    elif path.suffix == ".parquet":
        parquet.write_table(table, path, row_group_size=2)
    else:
        feather.write_feather(table, path, chunksize=2)
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.feather"])
def test_other_columns_survive_cleaning(tmp_path: Path, name: str) -> None:
    clean(written(tmp_path / name, COLUMNS), tmp_path / "out.jsonl", workers=1, near_dedup=0.8)
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    names = [*COLUMNS, "pybpe_cluster"]
    assert [list(record) for record in found] == [names, names]
    rows = pyarrow.table(COLUMNS).drop_columns("at").to_pylist()
    assert [{name: record[name] for name in rows[0]} for record in found] == [rows[0], rows[2]]
    assert found[0]["at"] == "1970-01-01 00:00:00.000000001"
    nan, inf = float("nan"), float("inf")
    odd = {"text": ["x", "y", "z", "w"], "a": [nan, inf, -inf, 1.5], "b": [[nan, 1.0], [], [inf], None]}
    plain = written(tmp_path / f"b{name}", {**odd, "c": [{"d": -inf}, {"d": 2.0}, None, {"d": nan}]})
    wanted = [
        {"text": "x", "a": None, "b": [None, 1.0], "c": {"d": None}},
        {"text": "y", "a": None, "b": [], "c": {"d": 2.0}},
        {"text": "z", "a": None, "b": [None], "c": None},
        {"text": "w", "a": 1.5, "b": None, "c": {"d": None}},
    ]
    table = parquet.read_table(plain) if name == "a.parquet" else feather.read_table(plain)
    for inputs, out in ((plain, "o.jsonl"), (plain, "o.parquet"), (iter(table.to_pylist()), "items.jsonl")):
        with pytest.warns(PybpeWarning, match="7 numbers that are NaN or infinite became null, because JSON"):
            clean(inputs, tmp_path / out, workers=1)
        made = tmp_path / out
        assert (parquet.read_table(made).to_pylist() if out == "o.parquet" else records(made)) == wanted
    report = clean(plain, tmp_path / "o.jsonl", workers=1)  # which is made already
    assert report.changes == {"null": 7} and "became null: 7" in str(report)
    nanoseconds = pyarrow.array([[1]], pyarrow.list_(pyarrow.timestamp("ns")))
    for values in (
        [b"\xff"],
        pyarrow.array([1], pyarrow.duration("us")),
        nanoseconds,
    ):
        odd = written(tmp_path / f"c{name}", {"text": ["x"], "odd": values})
        with pytest.raises(FormatError, match=rf"c{name}: the column 'odd' (has|holds) .*, which"):
            clean(odd, tmp_path / "odd.jsonl", workers=1)


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units elsewhere")
def test_a_large_group_of_rows_is_not_read_as_a_whole(tmp_path: Path) -> None:
    texts = [f"{number} " * 2000 for number in range(10_000)]
    used = []
    for name, rows in (("many", 100), ("one", 10_000)):
        table = pyarrow.table({"text": texts})
        parquet.write_table(table, tmp_path / f"{name}.parquet", rows, use_dictionary=False, compression="none")
        given = ["-o", tmp_path / "x.counts", "--memory-limit", "100M", "--workers", 1, "--quiet", "--force"]
        used.append(peak_megabytes("count", tmp_path / f"{name}.parquet", *given))
    assert used[1] < used[0] + 70  # the group has 119 MB


@pytest.mark.slow
@pytest.mark.parametrize("command", ["count", "train --vocab-size 300"])
def test_the_process_stays_below_the_memory_limit(tmp_path: Path, command: str) -> None:
    """With more distinct words than fit into it."""
    rng = random.Random(2)
    texts = [" ".join(f"{rng.getrandbits(32):x}" for _ in range(200)) for _ in range(30_000)]
    (tmp_path / "a.jsonl").write_bytes(jsonl(texts))
    parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "a.parquet", use_dictionary=False)
    for name, limit in (("a.jsonl", 200), ("a.parquet", 200)):
        given = ["-o", tmp_path / f"{name}.counts", "--memory-limit", f"{limit}M", "--workers", 2, "--quiet"]
        if command != "count":
            given[1] = tmp_path / f"{name}.json"
        assert peak_megabytes(*command.split(), tmp_path / name, *given) <= limit, name


def test_a_struct_whose_path_is_the_name_of_a_column(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", {"page": [{"more": 1, "text": "not this"}], "page.text": ["this"]})
    assert pybpe.count_words(path, text_key="page.text") == pybpe.count_words(iter(["this"]))
    groups = row_reading.RowGroups(InputFile.of(str(path)), "page.text")
    assert groups._chunk(0).statistics.max == "this"


def test_how_far_a_run_is_is_estimated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the footers of parquet, and the first bytes of compressed files."""
    texts = [english()[at : at + 900] for at in range(0, 200_000, 900)]
    lines = jsonl(texts)
    parquet.write_table(pyarrow.table({"text": texts}), tmp_path / "a.parquet")
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "c.jsonl").write_bytes(lines)
    paths, size = sorted(tmp_path.iterdir()), sum(len(text.encode()) for text in texts) + 2 * len(lines)
    assert planning.progress_total(corpus_files(paths), "text") is None  # it is little
    monkeypatch.setattr(planning, "_ESTIMATED", 1000)
    total = planning.progress_total(corpus_files(paths), "text")
    assert isinstance(total, About) and 0.9 < total / size < 1.1
    assert planning.progress_total(corpus_files(paths[2:]), "text") == len(lines)
    bar = Progress("reading", About(100), "B", shown=False)
    with bar:
        bar.add(150)
        assert bar._status.total == 150
        bar.set(160)
    assert str(bar._status).startswith("reading: 0.2 kB of about 0.2 kB (100%)")


def test_a_text_in_a_struct_or_a_dictionary_is_read_as_in_json_lines(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    texts = [*documents(30), "", documents(1)[0]]
    plain = {"doc": [{"n": i, "in": {"text": text}} for i, text in enumerate(texts)], "id": list(range(len(texts)))}
    inner = pyarrow.StructArray.from_arrays([pyarrow.array(texts).dictionary_encode()], ["text"])
    coded = {"doc": pyarrow.StructArray.from_arrays([pyarrow.array(range(len(texts))), inner], ["n", "in"])}
    found = []
    for number, (name, columns) in enumerate(product(("a.jsonl", "a.parquet", "a.feather"), (plain, coded))):
        path = written(tmp_path / f"{number}{name}", columns | {"id": plain["id"]})
        counts = pybpe.count_words(path, text_key="doc.in.text").to_dict()
        made = pybpe.binarize(tok, path, tmp_path / f"{number}", text_key="doc.in.text", name="x", split_by="hash")
        pybpe.corpus.clean(path, tmp_path / f"{number}.jsonl", text_key="doc.in.text")
        rows = DocumentRows(tok, path, text_key="doc.in.text", batch_size=1, sequence_length=64)
        first = next(iter(rows))[0].tolist()
        lines = (tmp_path / f"{number}.jsonl").read_text()
        found.append((counts, made.shards, lines, first))
    assert all(each == found[0] for each in found)
    with pytest.raises(FormatError, match="the column 'doc.in' holds fields, expected string"):
        pybpe.count_words(tmp_path / "2a.parquet", text_key="doc.in")


@pytest.mark.slow
def test_a_condition_selects_what_pyarrow_selects(tmp_path: Path) -> None:
    """In every kind of file, with any number of workers. NaN and null are no values."""
    pytest.importorskip("duckdb")
    rng = random.Random(5)
    count = 500
    table = {
        "text": [f"text {i} " * rng.randrange(1, 9) for i in range(count)],
        "score": [rng.choice([None, rng.random() * 6]) for _ in range(count)],
        "lang": pyarrow.array([rng.choice(["en", "zh", None]) for _ in range(count)]).dictionary_encode(),
        "meta": [{"n": i, "tags": ["a"] * (i % 2)} for i in range(count)],
    }
    conditions = {
        "score > 3 and lang == 'en'": lambda row: (row["score"] or 0) > 3 and row["lang"] == "en",
        "meta.n % 7 = 0 or score is null": lambda row: row["meta"]["n"] % 7 == 0 or row["score"] is None,
        "list_contains(meta.tags, 'a') and text like '%9%'": lambda row: row["meta"]["tags"] and "9" in row["text"],
    }
    for condition, right in conditions.items():
        wanted = [row for row in pyarrow.table(table).to_pylist() if right(row)]
        for number, name in enumerate(("a.jsonl", "a.parquet", "a.feather")):
            path = written(tmp_path / name, table)
            found = []
            for workers in (1, 2) if "score >" in condition else (1,):
                out = tmp_path / f"{number}-{workers}.parquet"
                report = clean(path, out, where=condition, workers=workers, force=True)
                assert (report.documents_in, report.documents_out) == (count, len(wanted))
                assert report.dropped == {"where": count - len(wanted)}
                found.append(out.read_bytes())
            assert found[0] == found[-1] and parquet.read_table(out).to_pylist() == wanted, (condition, name)
    nan = {"text": ["a", "b", "c"], "score": [float("nan"), 1.0, 5.0], "at": pyarrow.array([1, 2, 3], "timestamp[ns]")}
    written(tmp_path / "nan.parquet", nan)
    clean(tmp_path / "nan.parquet", tmp_path / "nan.jsonl", where="score > 3 and \"at\" > TIMESTAMP '1970-01-01'")
    assert [record["text"] for record in records(tmp_path / "nan.jsonl")] == ["c"]


@pytest.mark.parametrize(
    "condition, fields, others",
    [
        ("count >= 5 and rows = 1", {"count": 5, "rows": 1}, {"count": 4, "rows": 1}),
        ("a > 1 and A < 1", {"a": 5, "A": 0}, {"a": 0, "A": 5}),
        ("fields.a > 3 and a < 5 and f0 = 7", {"fields": {"a": 5}, "a": 1, "f0": 7}, {"fields": {"a": 1}, "a": 5}),
        ("a.b is not null and a.b.c > 1", {"a": {"b": {"c": 2}}}, {"a": {"b": {"c": 1}}}),
        ("s > 3 or m.s > 3", {"s": 5.0, "m": {"s": 1.0}}, {"s": float("nan"), "m": {"s": float("nan")}}),
        ('"x.y" = 1 and x.y = 2', {"x.y": 1, "x": {"y": 2}}, {"x.y": 2, "x": {"y": 1}}),
    ],
)
def test_fields_of_a_condition_have_their_names(
    tmp_path: Path, condition: str, fields: dict[str, Any], others: dict[str, Any]
) -> None:
    pytest.importorskip("duckdb")
    rows = [{"text": "yes", **fields}, {"text": "no", **others}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.parquet"):
        clean(tmp_path / name, tmp_path / "out.jsonl", where=condition, force=True)
        assert [record["text"] for record in records(tmp_path / "out.jsonl")] == ["yes"], name


@pytest.mark.parametrize(
    "condition, message",
    [
        ("score > ", 'syntax error.*double quotes, such as "when"'),
        ("isnan(score)", "isnan is never true"),
        ("x in (select 1)", "subquery is not about the fields of one record"),
        ("read_text('/etc/passwd') = 'x'", "read_text is not about"),
        ("random() > 0.5", "random is not about"),
        ("count(*) > 1", "count_star is not about"),
        ("scores > 3", "no record has the field 'scores'"),
        ("meta.b > 3", "no record has the field 'meta.b'"),
        ("score", "is not a condition, but has values of the kind"),
        ("text > 3", "Cannot compare values"),
        ("mixed = 'a'", "the field 'mixed' has values of different kinds"),
        ("score > 1) UNION (SELECT true", "is more than a condition"),
        ("score > 0) FROM x WHERE (true", "is more than a condition"),
        ("score > 0) LIMIT (1", "is more than a condition"),
        ("pybpe_cluster = 'x'", "a field that this call writes"),
    ],
)
def test_what_is_no_condition(tmp_path: Path, condition: str, message: str) -> None:
    pytest.importorskip("duckdb")
    (tmp_path / "a.jsonl").write_text(
        '{"text": "a", "score": 1, "mixed": 1, "meta": {"a": 4}}\n{"text": "b", "mixed": "a"}\n'
    )
    with pytest.raises(Error, match=message):
        clean(tmp_path / "a.jsonl", tmp_path / "out.jsonl", where=condition, near_dedup=0.8)
    assert not (tmp_path / "out.jsonl").exists()


def test_a_text_that_is_not_utf8_is_told(tmp_path: Path) -> None:
    written(tmp_path / "a.parquet", {"text": pyarrow.array([b"a good text", b"caf\xe9 noir"]), "n": [1, 2]})
    with pytest.warns(PybpeWarning, match="a.parquet: has a text that is not UTF-8 at its byte 3: such bytes become"):
        clean(tmp_path / "a.parquet", tmp_path / "out.jsonl")
    assert [record["text"] for record in records(tmp_path / "out.jsonl")] == ["a good text", "caf\ufffd noir"]


def test_records_become_columns_of_parquet(tmp_path: Path) -> None:
    """Without a loss, or the call is refused."""
    lines = [
        {"text": "a", "n": 1, "at": "2020-01-01 00:00:00", "big": 2**62 + 1, "x": {"y": [1]}},
        {"text": "b\n", "n": 0.5, "at": "soon", "x": {"z": None, "y": []}},
        {"text": "c", "n": None, "at": None, "only": True},
    ]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    clean(tmp_path / "a.jsonl", tmp_path / "out", format="parquet")
    full = [{"n": None, "at": None, "big": None, "x": None, "only": None} | line for line in lines]
    for line in full:
        line["x"] = line["x"] and {"y": line["x"]["y"], "z": None}
    assert parquet.read_table(tmp_path / "out").to_pylist() == full
    for other, number in (({"n": "x"}, 0), ({"n": 2**64}, 1), ({"n": 2**53 + 1}, 2), ({"x": 5}, 3), ({"x": {}}, 4)):
        (tmp_path / "b.jsonl").write_text(
            '{"text": "a", "n": 0.5, "x": {"y": 1}}\n' + json.dumps({"text": "b", **other})
        )
        if number == 4:
            clean(tmp_path / "b.jsonl", tmp_path / "4.parquet")
            continue
        with pytest.raises(FormatError, match="do not fit in columns of parquet .*: choose JSON lines"):
            clean(tmp_path / "b.jsonl", tmp_path / f"{number}.parquet")


@pytest.mark.parametrize("field", ["cluster", "pybpe_cluster"])
def test_every_kind_of_records_is_split_alike(tok: pybpe.Tokenizer, tmp_path: Path, field: str) -> None:
    """A field of the user's means nothing. pybpe's own keeps near duplicates together, after a conversion, too."""
    texts = documents(60)
    columns = {"text": texts, field: pyarrow.array([f"c{n % 7}" for n in range(60)]).dictionary_encode()}
    found, given = [], {"splits": (1, 1), "split_by": "hash", "format": "npy"}
    for name in ("a.jsonl", "a.parquet", "a.feather"):
        pybpe.binarize(tok, written(tmp_path / name, columns), tmp_path / f"{name}-out", **given)  # type: ignore[arg-type]
        found.append([numpy.load(path).tolist() for path in sorted((tmp_path / f"{name}-out").glob("*.npy"))])
    assert found[0] == found[1] == found[2] and len(found[0]) == 2
    names = texts if field == "cluster" else [f"c{n % 7}" for n in range(60)]
    train = [text for text, name in zip(texts, names) if hash_split(name.encode(), (1, 1)) == 0]
    assert tok.decode(found[0][0]).split(EOT)[:-1] == train


# ------------------------------------------------------------------------------------------------------
# Training: every kind of input gives the merges of the same documents

DOCUMENTS = [english()[i : i + 900] for i in range(0, 90_000, 900)] + [
    chinese()[i : i + 200] for i in range(0, 9000, 200)
]
DOCUMENTS += ["", f"a{EOT}b is plain text in a record", "  spaces  "]
OPTIONS: dict[str, Any] = {"vocab_size": 700, "special_tokens": [EOT], "progress": False}


def as_jsonl(path: Path) -> None:
    lines = (json.dumps({"text": text}) + "\n" for text in DOCUMENTS)
    path.with_suffix(".jsonl.gz").write_bytes(gzip.compress("".join(lines).encode()))


def table() -> Any:
    return pyarrow.table({"id": range(len(DOCUMENTS)), "text": DOCUMENTS})


def as_saved_dataset(path: Path) -> None:
    """A folder of Arrow streams, as Hugging Face's `datasets` saves it."""
    path.mkdir()
    with pyarrow.ipc.new_stream(path / "data-00000-of-00001.arrow", table().schema) as stream:
        stream.write_table(table(), max_chunksize=30)
    (path / "state.json").write_text(json.dumps({"_data_files": [{"filename": "data-00000-of-00001.arrow"}]}))
    (path / "dataset_info.json").write_text("{}")


KINDS: dict[str, Callable[[Path], object]] = {
    "jsonl.gz": as_jsonl,
    "parquet": lambda path: parquet.write_table(table(), path.with_suffix(".parquet"), row_group_size=40),
    "feather": lambda path: feather.write_feather(table(), str(path.with_suffix(".feather")), chunksize=40),
    "dataset": as_saved_dataset,
}


@pytest.fixture(params=KINDS)
def corpus(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    KINDS[request.param](tmp_path / "corpus")
    (path,) = tmp_path.iterdir()
    return path


@pytest.mark.filterwarnings("ignore:.*does not compile")
def test_records_are_separate_texts(corpus: Path, tmp_path: Path, small_tasks: None) -> None:
    """The texts of an iterable are too, but special tokens are found in them."""
    plain = [text for text in DOCUMENTS if EOT not in text]
    words = pybpe.count_words(iter(plain), special_tokens=[EOT], progress=False)
    forged = [text for text in DOCUMENTS if EOT in text]
    words += pybpe.Counts(pybpe.count_words(iter(forged), progress=False).words, words.settings)
    expected = pybpe.train(counts=words, **OPTIONS)
    assert b"endoftext" in words.to_dict()
    assert pybpe.train(corpus, **OPTIONS).merges == expected.merges
    assert pybpe.train(corpus, checkpoint=tmp_path / "x", workers=1, **OPTIONS).merges == expected.merges
    with ThreadPoolExecutor(2) as executor:
        assert pybpe.train(corpus, executor=executor, **OPTIONS).merges == expected.merges
    assert pybpe.count_words(corpus, special_tokens=[EOT], memory_limit=1 << 24) == words
    for options in ({"normalizer": "NFC"}, {"pattern": r"(?<=a)b|\s?\S+|\s"}):
        assert pybpe.count_words(corpus, **options) == pybpe.count_words(iter(DOCUMENTS), **options)
    command = ["train", str(corpus), "--vocab-size", "700", "--special-token", EOT]
    assert main([*command, "-o", str(tmp_path / "tok.json"), "--quiet"]) == 0
    assert pybpe.Tokenizer.from_file(tmp_path / "tok.json").merges == expected.merges


def test_a_sample_of_rows(tmp_path: Path) -> None:
    rows = pyarrow.table({"text": [f"word{i}" for i in range(100)]})
    parquet.write_table(rows, tmp_path / "x.parquet", row_group_size=1000)
    count = lambda **sample: pybpe.count_words(tmp_path / "x.parquet", pattern=r"\w+", **sample).to_dict()  # noqa: E731
    assert count(max_documents=10) == {b"word%d" % i: 1 for i in range(10)}
    assert count(max_bytes=11) == {b"word%d" % i: 1 for i in range(3)}  # 5 bytes each
    assert count(max_documents=2, max_bytes=1000) == {b"word0": 1, b"word1": 1}
    assert len(count(max_documents=1000)) == 100


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_rows_from_a_pipe_are_refused(tmp_path: Path) -> None:
    """They are not counted as text."""
    os.mkfifo(tmp_path / "x.parquet")
    with pytest.raises(FileError, match=r"x\.parquet: a parquet file cannot be read from a stream: copy it first"):
        pybpe.count_words(tmp_path / "x.parquet")
