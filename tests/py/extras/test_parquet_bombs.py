"""Small parquet files with large rows take little memory, or end with an error that names the file."""

import json
import os
import sys
from pathlib import Path

import pytest

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import parquet  # noqa: E402
from test_bombs import limited  # noqa: E402
from test_memory import peak_megabytes  # noqa: E402


def write_rows(path: Path, rows: int, text: str) -> None:
    """Writes a parquet file that stores a text once for all of its rows."""
    texts = pyarrow.DictionaryArray.from_arrays(pyarrow.array([0] * rows, pyarrow.int32()), [text])
    table = pyarrow.table({"text": texts.cast(pyarrow.large_string())})
    parquet.write_table(table, path, compression="zstd", dictionary_pagesize_limit=1 << 30)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ru_maxrss has other units elsewhere")
def test_a_text_of_many_rows(tmp_path: Path) -> None:
    """A text of 1 MB that is stored once for 900 rows: not all of them are in memory at the same time."""
    path, out = tmp_path / "bomb.parquet", tmp_path / "out.jsonl"
    write_rows(path, 900, "word " * 200_000)
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
