"""Training reads what `binarize` reads: every kind of input gives the merges of the same documents."""

import gzip
import json
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pyarrow = pytest.importorskip("pyarrow")
from pyarrow import feather, parquet  # noqa: E402
from texts import chinese, english  # noqa: E402

import pybpe  # noqa: E402
from pybpe.errors import FileError  # noqa: E402

MARK = "<|endoftext|>"
DOCUMENTS = [english()[i : i + 900] for i in range(0, 90_000, 900)] + [
    chinese()[i : i + 200] for i in range(0, 9000, 200)
]
DOCUMENTS += ["", f"a{MARK}b is plain text in a record", "  spaces  "]
OPTIONS: dict[str, Any] = {"vocab_size": 700, "special_tokens": [MARK], "progress": False}


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
    plain = [text for text in DOCUMENTS if MARK not in text]
    words = pybpe.count_words(iter(plain), special_tokens=[MARK], progress=False)
    forged = [text for text in DOCUMENTS if MARK in text]
    words += pybpe.Counts(pybpe.count_words(iter(forged), progress=False).words, words.settings)
    expected = pybpe.train(counts=words, **OPTIONS)
    assert b"endoftext" in words.to_dict()
    assert pybpe.train(corpus, **OPTIONS).merges == expected.merges
    assert pybpe.train(corpus, checkpoint=tmp_path / "x", workers=1, **OPTIONS).merges == expected.merges
    with ThreadPoolExecutor(2) as executor:
        assert pybpe.train(corpus, executor=executor, **OPTIONS).merges == expected.merges
    assert pybpe.count_words(corpus, special_tokens=[MARK], memory_limit=1 << 24) == words
    for options in ({"normalizer": "NFC"}, {"pattern": r"(?<=a)b|\s?\S+|\s"}):
        assert pybpe.count_words(corpus, **options) == pybpe.count_words(iter(DOCUMENTS), **options)
    command = [sys.executable, "-m", "pybpe", "train", str(corpus), "--vocab-size", "700", "--special-token", MARK]
    subprocess.run([*command, "-o", str(tmp_path / "tok.json"), "--quiet"], check=True)
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
