"""binarize(..., pack=True) and workspaces of packed rows: the same rows as in two steps, also after a kill."""

import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, content, documents
from killed import die_at

import pybpe
from llmc_compat.batch import Batch
from llmc_compat.check import check
from llmc_compat.workspace import make_workspace
from pybpe.cli import main
from pybpe.tokens.verification import verify

T = 64


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("at once") / "corpus.txt"
    path.write_text(EOT.join([*documents(150), "x", "Long. " * 400]), encoding="utf-8")
    return path


@pytest.mark.parametrize("form", ["llmc", "npy", "webdataset"])
def test_one_call_gives_the_rows_of_two(tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path, form: str) -> None:
    least = {} if form == "llmc" else {"min_shard_tokens": 0}
    pybpe.binarize(tok, corpus, tmp_path / "data", shard_tokens=9000, **least)
    pybpe.pack(
        tok, tmp_path / "data", tmp_path / "two", sequence_length=T, packing="fill", format=form, shard_tokens=9000
    )
    made = pybpe.binarize(
        tok,
        corpus,
        tmp_path / "one",
        pack=True,
        sequence_length=T,
        packing="fill",
        format=form,
        shard_tokens=9000,
        workers=2,
    )
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert sorted(os.listdir(tmp_path)) == ["data", "one", "two"]
    assert verify(tmp_path / "one", tok)[1] == [] and made.packing is not None
    again = pybpe.binarize(
        tok, corpus, tmp_path / "one", pack=True, sequence_length=T, packing="fill", format=form, shard_tokens=9000
    )
    assert again == made and sorted(os.listdir(tmp_path)) == ["data", "one", "two"]


def test_a_killed_run_resumes(tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path) -> None:
    def work(point: int) -> None:
        die_at(point)
        pybpe.binarize(tok, corpus, tmp_path / "out", pack=True, sequence_length=T, workers=1)

    pybpe.binarize(tok, corpus, tmp_path / "whole", pack=True, sequence_length=T)
    for point in (0, 2, 4, 6, 8, 10):
        process = multiprocessing.get_context("fork").Process(target=work, args=(point,))
        process.start()
        process.join()
        assert process.exitcode in (0, -signal.SIGKILL)
        assert not (tmp_path / "out").exists() or content(tmp_path / "out") == content(tmp_path / "whole")
    pybpe.binarize(tok, corpus, tmp_path / "out", pack=True, sequence_length=T)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert sorted(os.listdir(tmp_path)) == ["out", "whole"]


def test_what_cannot_be_is_refused_before_anything_is_encoded(
    tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path
) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("")
    pybpe.binarize(tok, corpus, tmp_path / "rows", pack=True, sequence_length=T)
    for out, wrong, message in (
        ("out", {"pack": True, "sequence_length": 1}, "sequence_length must be at least 2"),
        ("out", {"pack": True, "packing": "worst"}, "packing must be one of"),
        ("out", {"packing": "fill"}, "packing needs pack"),
        ("out", {"pack": True, "format": "raw"}, "format must be one of llmc, npy, parquet, webdataset"),
        ("out", {"pack": True, "eot": "append"}, "pass eot='prepend', not 'append'"),
        ("out", {"pack": 64}, "pack must be True or False, not int: 64"),
        ("full", {"pack": True}, "has something else, such as file"),
        ("rows", {"pack": True, "sequence_length": 2 * T}, "of other inputs, settings or another tokenizer"),
        (
            "rows",
            {"pack": True, "sequence_length": T, "packing": "concat"},
            "of other inputs, settings or another tokenizer",
        ),
    ):
        arguments: Any = wrong
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            pybpe.binarize(tok, corpus, tmp_path / out, **arguments)
    assert sorted(os.listdir(tmp_path)) == ["full", "rows"]


def test_the_command_line_packs_at_once(
    tok: pybpe.Tokenizer, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tok.save(tmp_path / "tok.json")
    args = ["-t", str(tmp_path / "tok.json"), str(corpus), "-o", str(tmp_path / "out"), "--pack"]
    args += ["--sequence-length", str(T)]
    assert main(["binarize", *args, "--packing", "fill"]) == 0
    assert f"rows of {T} tokens" in capsys.readouterr().out
    pybpe.binarize(tok, corpus, tmp_path / "same", pack=True, sequence_length=T, packing="fill")
    assert content(tmp_path / "out") == content(tmp_path / "same")


def test_a_workspace_of_packed_rows(corpus: Path, tmp_path: Path) -> None:
    options: Any = {"vocab_size": 400, "layers": 1, "heads": 2, "channels": 8, "sequence_length": 128, "workers": 1}
    made = make_workspace(corpus, tmp_path / "work", pack=True, **options)
    assert made.manifest.packing is not None and made.manifest.packing["sequence_length"] == 128
    assert verify(tmp_path / "work" / "data")[1] == []  # with the tokenizer there
    assert (tmp_path / "work" / "data" / "tokenizer.json").exists()
    assert [finding for finding in check([tmp_path / "work"], Batch(1, 128))[1] if finding.is_error] == []
    assert [finding for finding in check([tmp_path / "work"], Batch(1, 64))[1] if finding.is_error] != []
    readme = (tmp_path / "work" / "README.md").read_text()
    assert " -t 128 " in readme and "packed rows of 128 tokens: the CPU trainer" in readme
    assert sorted(os.listdir(tmp_path / "work")) == [
        "README.md", "data", "dev", "gpt2_124M.bin", "gpt2_tokenizer.bin"
    ]  # fmt: skip
    before = content(tmp_path / "work" / "data")
    make_workspace(corpus, tmp_path / "work", pack=True, **options)
    assert content(tmp_path / "work" / "data") == before
    with pytest.raises(pybpe.errors.ArgumentError, match="of other inputs, settings or another tokenizer"):
        make_workspace(corpus, tmp_path / "work", pack=True, **{**options, "sequence_length": 64})
