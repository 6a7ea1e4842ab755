"""The first documents as validation: exact for any kind of input, number of workers and executor, and after kills."""

import bz2
import gzip
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, content, documents, jsonl, tokens_of

import pybpe
from pybpe.cli import main
from pybpe.errors import ArgumentError, FormatError
from pybpe.reading import planning
from pybpe.tokens.verification import verify

pytestmark = pytest.mark.filterwarnings("ignore:.*this file is empty")
TEXTS = documents(60)


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sixty documents in files of all kinds, with empty documents among them, which do not count."""
    monkeypatch.setattr(planning, "TASK_BYTES", 2000)
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbf" + (EOT + EOT.join([*TEXTS[:15], "", TEXTS[15], ""])).encode())
    (folder / "b.jsonl").write_bytes(b'\n{"text": ""}\n' + jsonl(TEXTS[16:30]) + b'\n{"text": ""}')
    (folder / "c.jsonl.gz").write_bytes(gzip.compress(jsonl(TEXTS[30:45])))
    (folder / "d.txt").write_bytes(b"")
    (folder / "e.txt.bz2").write_bytes(bz2.compress(EOT.join([*TEXTS[45:58], ""]).encode()))
    (folder / "f.txt").write_bytes(TEXTS[58].encode())
    (folder / "g.txt").write_bytes(TEXTS[59].encode())
    return folder / "*"


def expected(tok: pybpe.Tokenizer, texts: list[str]) -> list[int]:
    assert tok.eot_token is not None
    return [i for text in texts for i in [tok.eot_token, *tok.encode(text)]]


def check(tok: pybpe.Tokenizer, folder: Path, count: int) -> None:
    manifest = pybpe.Manifest.load(folder)
    assert [manifest.split_documents(split) for split in ("train", "val")] == [60 - count, count]
    assert tokens_of(folder, "val") == expected(tok, TEXTS[:count])
    assert tokens_of(folder, "train") == expected(tok, TEXTS[count:])
    assert manifest.settings["split_by"] == "first" and manifest.settings["val_documents"] == count


@pytest.mark.parametrize("count", [1, 15, 16, 31, 59])
def test_the_first_documents_of_the_corpus_are_val(
    tok: pybpe.Tokenizer, inputs: Path, tmp_path: Path, count: int
) -> None:
    options: dict[str, Any] = {"val_documents": count, "shard_tokens": 3000, "min_shard_tokens": 0, "name": "x"}
    pybpe.binarize(tok, inputs, tmp_path / "one", workers=1, **options)
    check(tok, tmp_path / "one", count)
    assert verify(tmp_path / "one", tok)[1] == []
    pybpe.binarize(tok, inputs, tmp_path / "many", workers=3, **options)
    with ThreadPoolExecutor(2) as executor:
        pybpe.binarize(tok, inputs, tmp_path / "executor", executor=executor, workers=2, **options)
    assert content(tmp_path / "one") == content(tmp_path / "many") == content(tmp_path / "executor")


def test_records_that_are_skipped_do_not_count(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    lines = [json.dumps({"text": text}).encode() for text in TEXTS]
    lines[3:3] = [b"{", b'{"text": 1}']
    (tmp_path / "a.jsonl").write_bytes(b"\n".join(lines))
    with pytest.raises(FormatError, match="the line at byte"):
        pybpe.binarize(tok, tmp_path / "a.jsonl", tmp_path / "out", val_documents=10)
    with pytest.warns(pybpe.errors.PybpeWarning, match="skipped"):
        pybpe.binarize(tok, tmp_path / "a.jsonl", tmp_path / "out", val_documents=10, on_error="skip")
    check(tok, tmp_path / "out", 10)


@pytest.mark.parametrize(("kind", "between"), [("line", "\r\n"), ("blank", "\n\r\n\n")])
def test_kinds_of_texts(tok: pybpe.Tokenizer, tmp_path: Path, kind: str, between: str) -> None:
    texts = [text.replace("\n", " ") for text in TEXTS]
    (tmp_path / "a.txt").write_bytes((between.join(texts) + between).encode())
    pybpe.binarize(tok, tmp_path / "a.txt", tmp_path / "out", val_documents=20, documents=kind, workers=2)
    for split, some in (("val", texts[:20]), ("train", texts[20:])):
        assert tokens_of(tmp_path / "out", split) == expected(tok, some)


def test_the_tokenizer_is_trained_on_the_others(inputs: Path, tmp_path: Path) -> None:
    found, manifest = pybpe.prepare(inputs, tmp_path / "out", vocab_size=500, val_documents=50, min_shard_tokens=0)
    wanted = pybpe.train(iter(TEXTS[50:]), vocab_size=500, special_tokens=pybpe.model.CONTROL_TOKENS)
    assert found == wanted
    check(found, tmp_path / "out", 50)


def test_what_makes_no_sense_is_refused(tok: pybpe.Tokenizer, inputs: Path, tmp_path: Path) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"val_documents": 60}, "val_documents: the corpus has no more than 60 documents, so none is left to train on"),
        ({"val_documents": 10**9}, "no more than 1000000000 documents"),
        ({"val_documents": 0}, "val_documents must be at least 1"),
        ({"val_documents": 5, "splits": (9, 1)}, r"splits=\(9.0, 1.0\) has no effect: val_documents says"),
        ({"val_documents": 5, "split_by": "token"}, "split_by='token' has no effect"),
        ({"split_by": "first"}, "split_by must be one of auto, hash, token"),
    ]
    for options, message in cases:
        with pytest.raises(ArgumentError, match=message):
            pybpe.binarize(tok, inputs, tmp_path / "out", **options)


def test_the_command(tok: pybpe.Tokenizer, inputs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tok.save(tmp_path / "tok.json")
    out = tmp_path / "out"
    given = ["binarize", "-t", str(tmp_path / "tok.json"), str(inputs), "-o", str(out), "--min-shard-tokens", "0"]
    assert main([*given, "--val-documents", "7"]) == 0
    check(tok, out, 7)
    capsys.readouterr()
    assert main([*given, "--val-documents", "7", "--splits", "9,1", "--force"]) == 2
    assert "--splits" in capsys.readouterr().err
