"""The package datasets: its objects as inputs. And it keeps the results of `map` under a hash of the function, for
which dill pickles it."""

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

datasets = pytest.importorskip("datasets")

import pandas  # noqa: E402
import pyarrow  # noqa: E402
from corpora import EOT, content, documents, jsonl, small_tokenizer  # noqa: E402

import pybpe  # noqa: E402
from pybpe.loading import DocumentRows  # noqa: E402
from pybpe.tokenizer import of_model  # noqa: E402

HASHES = """
import sys
from datasets.fingerprint import Hasher
import pybpe
from pybpe.like_tiktoken import Encoding
from pybpe.like_transformers import PreTrainedTokenizerFast

tok = pybpe.Tokenizer.from_file(sys.argv[1])
plain = pybpe.train(iter(["some text"]), vocab_size=266)
made = [tok, Encoding(plain), PreTrainedTokenizerFast.from_pybpe(tok), tok.encode, lambda text: tok.encode(text)]
hashes = [Hasher.hash(each) for each in made]
tok.encode("a b" * 100), tok.merges, tok.decode([1, 2]), hash(tok), made[1].encode("a b"), made[2]("a b")
assert [Hasher.hash(each) for each in made] == hashes
print(hashes)
"""


def test_hashes_are_stable(tmp_path: Path) -> None:
    specials = [f"<{name}>" for name in "abcdef"]
    tok = pybpe.train(iter(["some text"]), vocab_size=266, special_tokens=specials)
    of_model(replace(tok.model, visible=frozenset(specials))).save(tmp_path / "tok.json")
    command = [sys.executable, "-c", HASHES, str(tmp_path / "tok.json")]
    found = {
        subprocess.run(command, check=True, stdout=subprocess.PIPE, env={**os.environ, "PYTHONHASHSEED": seed}).stdout
        for seed in ("1", "2")
    }
    assert len(found) == 1


# ----------------------------------------------------------------------------------------------------
# Inputs

TEXTS = [*documents(60), f"a {EOT} b", ""]
WHOLE, COPIED = True, False  # read from the files of the dataset, or from a copy
UPPER = [text.upper() for text in TEXTS]
KINDS: dict[str, tuple[bool | None, Callable[[Any], Any]]] = {
    "saved": (WHOLE, lambda saved: saved),
    "other format": (WHOLE, lambda saved: saved.with_format("numpy")),
    "in memory": (COPIED, lambda saved: datasets.Dataset.from_dict({"id": range(62), "text": TEXTS})),
    "iterable": (COPIED, lambda saved: saved.to_iterable_dataset(num_shards=2)),
    "iterable of a column": (COPIED, lambda saved: saved.to_iterable_dataset().select_columns("text")),
    "column": (COPIED, lambda saved: saved["text"]),
    "rows in another order": (COPIED, lambda saved: saved.select(range(61, -1, -1)).select(range(61, -1, -1))),
    "two slices": (COPIED, lambda saved: datasets.concatenate_datasets([saved.take(9), saved.skip(9)])),
    "columns of two": (
        COPIED,
        lambda saved: datasets.concatenate_datasets([saved, datasets.Dataset.from_dict({"z": TEXTS})], axis=1),
    ),
    "other names": (
        COPIED,
        lambda saved: saved.rename_columns({"text": "upper", "upper": "text"}).map(
            lambda row: {"text": row["upper"]}, keep_in_memory=True
        ),
    ),
    "transformed": (
        COPIED,
        lambda saved: saved.remove_columns("text").with_transform(
            lambda rows: {"text": [TEXTS[i] for i in rows["id"]]}
        ),
    ),
    "pandas": (None, lambda saved: pandas.Series(TEXTS)),
    "pandas categories": (None, lambda saved: pandas.Series(TEXTS, dtype="category")),
    "arrow": (None, lambda saved: pyarrow.chunked_array([TEXTS[:7], TEXTS[7:]])),
}


@pytest.fixture
def saved(tmp_path: Path) -> Any:
    rows = datasets.Dataset.from_dict({"id": range(62), "text": TEXTS, "upper": UPPER})
    rows.save_to_disk(tmp_path / "saved", num_shards=3)
    return datasets.load_from_disk(str(tmp_path / "saved"))


@pytest.mark.parametrize("kind", KINDS)
def test_datasets_and_columns_are_read_as_their_json_lines(saved: Any, tmp_path: Path, kind: str) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    is_whole, made = KINDS[kind]
    given: dict[str, Any] = {"min_shard_tokens": 0, "split_by": "hash"}
    pybpe.binarize(small_tokenizer(), tmp_path / "a.jsonl", tmp_path / "file", name="data", **given)
    manifest = pybpe.binarize(small_tokenizer(), made(saved), tmp_path / "object", **given)
    ours, theirs = (
        {name: data for name, data in content(tmp_path / folder).items() if name.endswith(".bin")}
        for folder in ("object", "file")
    )
    assert ours == theirs and len(ours) == 3
    assert [name == "<documents>" for name, _ in manifest.inputs] == ([False] * 3 if is_whole else [True])
    if is_whole is not None:
        assert pybpe.train(made(saved), vocab_size=300) == pybpe.train(tmp_path / "a.jsonl", vocab_size=300)


def test_the_folder_of_a_dataset_is_read_as_its_json_lines(saved: Any, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(jsonl(TEXTS))
    given: dict[str, Any] = {"min_shard_tokens": 0, "split_by": "hash", "name": "data"}
    for name, inputs in (("file", tmp_path / "a.jsonl"), ("folder", tmp_path / "saved")):
        pybpe.binarize(small_tokenizer(), inputs, tmp_path / f"of {name}", **given)
    for name, data in content(tmp_path / "of file").items():
        assert name == "manifest.json" or content(tmp_path / "of folder")[name] == data


def test_other_rows_and_columns_of_a_dataset_are_other_documents(saved: Any, tmp_path: Path) -> None:
    given: dict[str, Any] = {"min_shard_tokens": 0, "splits": (1,)}
    for number, (rows, count) in enumerate(
        [(saved.select(range(10)), 10), (saved.filter(lambda row: row["id"] > 50), 10)]
    ):
        made = pybpe.binarize(small_tokenizer(), rows, tmp_path / f"{number}", **given)
        assert made.split_documents("train") == count and made.inputs[0][0] == "<documents>"
    swapped = saved.rename_columns({"text": "upper", "upper": "text"})
    made = pybpe.binarize(small_tokenizer(), swapped, tmp_path / "swapped", **given)
    assert made.text_bytes == {"train": sum(len(text.encode()) for text in UPPER)}
    for wrong, message in (
        (
            datasets.DatasetDict({"train": saved}),
            "inputs is a DatasetDict with the keys 'train': pass one of its values",
        ),
        (pandas.DataFrame({"text": TEXTS}), r"inputs is a DataFrame: pass the column .* such as inputs\['text'\]"),
        (pyarrow.table({"text": TEXTS}), "inputs is a Table: pass the column"),
        (
            saved.to_iterable_dataset().remove_columns("text"),
            "inputs: item 0: has no 'text': its keys are 'id', 'upper'",
        ),
        (saved.remove_columns("text").take(5), "inputs: item 0: has no 'text'"),
        (pandas.Series(["a", None], dtype="string"), "inputs: item 1: its text is None"),
    ):
        with pytest.raises(pybpe.errors.Error, match=message):
            pybpe.binarize(small_tokenizer(), wrong, tmp_path / "wrong", **given)


def test_a_dataset_of_one_file_and_one_that_is_twice(tmp_path: Path) -> None:
    datasets.Dataset.from_dict({"text": TEXTS}).save_to_disk(tmp_path / "one")
    one, given = datasets.load_from_disk(tmp_path / "one"), {"min_shard_tokens": 0, "splits": (1,)}
    made = pybpe.binarize(small_tokenizer(), one, tmp_path / "a", **given)
    assert made.inputs[0][0].endswith(".arrow")
    twice = pybpe.binarize(small_tokenizer(), datasets.concatenate_datasets([one, one]), tmp_path / "b", **given)
    assert twice.tokens == 2 * made.tokens
    with pytest.raises(pybpe.errors.ArgumentError, match="inputs has no documents$"):
        pybpe.binarize(small_tokenizer(), one.select([]), tmp_path / "c", **given)


def test_a_corpus_of_a_dataset_keeps_its_columns(saved: Any, tmp_path: Path) -> None:
    for name, rows in {"files": saved, "copy": saved.select(range(61, -1, -1)).select(range(61, -1, -1))}.items():
        pybpe.corpus.clean(rows, tmp_path / f"{name}.jsonl", dedup="exact")
    assert (tmp_path / "files.jsonl").read_bytes() == (tmp_path / "copy.jsonl").read_bytes()
    assert b'"upper"' in (tmp_path / "copy.jsonl").read_bytes()


def test_rows_of_documents_that_come_once_resume_if_they_come_again(saved: Any) -> None:
    def rows_of(inputs: Any) -> Any:
        return DocumentRows(small_tokenizer(), inputs, batch_size=2, sequence_length=50, repeat=False)

    (expected,) = [[batch.tolist() for batch in rows_of(iter(TEXTS))]]
    first = rows_of(saved.to_iterable_dataset())
    found = iter(first)
    assert next(found).tolist() == expected[0]
    state, (path,) = first.state_dict(), first._files.paths
    again = rows_of(row["text"] for row in saved)
    again.load_state_dict(state)
    assert [batch.tolist() for batch in again] == expected[1:]
    with pytest.raises(pybpe.errors.ArgumentError, match="does not belong to these documents"):
        rows_of(iter(UPPER)).load_state_dict(state)
    assert os.path.exists(path)
    del first, found
    assert not os.path.exists(path)
