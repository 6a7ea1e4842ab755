"""Rows of parquet and Arrow files without text: the run stops, or skips and lists them."""

import json
from pathlib import Path
from typing import Any

import pytest
from corpora import documents, small_tokenizer

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import feather, parquet  # noqa: E402

import pybpe  # noqa: E402
from pybpe.corpus import clean  # noqa: E402
from pybpe.errors import PybpeWarning  # noqa: E402


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
    nulls = [row for row, text in enumerate(_texts(bad)) if text is None]
    with pytest.raises(pybpe.errors.FormatError, match=r"bad\.\w+: row 0: the column 'text' is null"):
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
