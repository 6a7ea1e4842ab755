"""Records that are not valid: the run stops at the first one, or skips and lists them. What it writes is what it would
write without them, and the list is that of a slow, obvious reader, for any number of workers and after any kill."""

import gzip
import json
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from corpora import content, documents, jsonl
from killed import run_and_die

import pybpe
from pybpe.cli import main
from pybpe.corpus import clean
from pybpe.errors import PybpeWarning
from pybpe.reading import bad_records
from pybpe.support.locking import FOLDER

BAD = [
    b"{", b"[]", b"7", b'{"text": null}', b'{"id": 1}', b'{"text": 5}', b'{"text": "\xff"}', b"null",
    b'{"text": "x"} y',
]  # fmt: skip
GIVEN: dict[str, Any] = {"progress": False, "name": "x", "splits": (3, 1), "min_shard_tokens": 0}


pytestmark = pytest.mark.usefixtures("small_tasks")


@pytest.fixture
def corpus(tmp_path: Path) -> list[Path]:
    """Makes two files with bad lines, blank lines and line ends of Windows, and the same files without the bad lines in
    the folder "good"."""
    rng = random.Random(1)
    for folder in ("bad", "good"):
        (tmp_path / folder).mkdir()
    texts = documents(200)
    for name, some in (("a.jsonl", texts[:120]), ("b.jsonl.gz", texts[120:])):
        good = jsonl(some).split(b"\n")
        lines = []
        for line in good:
            lines += [rng.choice(BAD) for _ in range(rng.choice([0, 0, 0, 1, 2]))] + [b" "] * rng.randrange(2)
            lines.append(line + b"\r" * rng.randrange(2))
        for folder, data in (("bad", b"\n".join(lines)), ("good", b"\n".join(good))):
            (tmp_path / folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return sorted((tmp_path / "bad").iterdir())


def expected_list(paths: list[Path]) -> list[dict[str, Any]]:
    """Reads the files line by line, and returns what the list must say, without the reasons."""
    found = []
    for path in paths:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        offset = 0
        for number, line in enumerate(data.split(b"\n"), 1):
            try:
                good = not line.strip() or isinstance(json.loads(line.decode())["text"], str)
            except (ValueError, KeyError, TypeError):
                good = False
            if not good:
                found.append({"file": str(path), "line": number, "offset": offset})
            offset += len(line) + 1
    return found


def listed(path: Path) -> list[dict[str, Any]]:
    """Reads a list, and returns it without the reasons."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert all(line.pop("reason") for line in lines)
    return lines


def good_of(corpus: list[Path]) -> list[Path]:
    return [path.parents[1] / "good" / path.name for path in corpus]


# ------------------------------------------------------------------------------------------------------
# binarize and prepare


@pytest.mark.parametrize("split_by", ["hash", "document", "token"])
@pytest.mark.parametrize("format", ["llmc", "npy"])
def test_token_files_are_those_without_the_bad_records(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path, split_by: str, format: str
) -> None:
    given = {**GIVEN, "split_by": split_by, "format": format, "shard_tokens": 5000, "on_error": "skip"}
    with pytest.warns(
        PybpeWarning, match=r"records are not valid, such as .*a.jsonl: line \d+: .* They were skipped: "
    ):
        manifest = pybpe.binarize(tok, corpus, tmp_path / "out", workers=1, **given)
    wanted = expected_list(corpus)
    assert listed(tmp_path / "out" / "skipped.jsonl") == wanted
    assert manifest.skipped == {"records": 200 + len(wanted), "skipped": len(wanted), "file": "skipped.jsonl"}
    assert pybpe.Manifest.load(tmp_path / "out").skipped == manifest.skipped
    if split_by == "hash":
        pybpe.binarize(tok, good_of(corpus), tmp_path / "good-out", **{**given, "on_error": "stop"})
        ours, theirs = content(tmp_path / "out"), content(tmp_path / "good-out")
        assert ours.keys() - theirs.keys() == {"skipped.jsonl"}
        assert {name: data for name, data in theirs.items() if name != "manifest.json"}.items() <= ours.items()
    with pytest.warns(PybpeWarning), ThreadPoolExecutor(2) as executor:
        pybpe.binarize(tok, corpus, tmp_path / "two", workers=2, **given)
        pybpe.binarize(tok, corpus, tmp_path / "executor", executor=executor, **given)
    for name in ("two", "executor"):
        assert [*content(tmp_path / name)["skipped.jsonl"]] == [*content(tmp_path / "out")["skipped.jsonl"]]
        assert content(tmp_path / name) == content(tmp_path / "out")


@pytest.mark.filterwarnings("ignore::pybpe.errors.PybpeWarning")
def test_a_run_that_stopped_may_skip_and_the_other_way_round(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path
) -> None:
    text = documents(200)[:60]
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl(text) + b"\n" + jsonl(text) + b"\n{\n" + jsonl(text))
    given = {**GIVEN, "workers": 1}
    pybpe.binarize(tok, path, tmp_path / "whole", on_error="skip", **given)
    with pytest.raises(pybpe.errors.FormatError, match="not JSON.* Finished work is kept"):
        pybpe.binarize(tok, path, tmp_path / "out", **given)
    lines = (tmp_path / "out" / FOLDER / "parts.log").read_bytes().splitlines()
    assert json.loads(lines[-1][9:])["tasks"] > 1
    pybpe.binarize(tok, path, tmp_path / "out", on_error="skip", **given)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert run_and_die(45, pybpe.binarize, tok, path, tmp_path / "other", **{**given, "on_error": "skip"})
    lines = (tmp_path / "other" / FOLDER / "parts.log").read_bytes().splitlines()
    assert json.loads(lines[-1][9:])["skipped"]["skipped"] == 1
    with pytest.raises(pybpe.errors.FormatError, match="the line at byte"):
        pybpe.binarize(tok, path, tmp_path / "other", **given)


def test_more_than_half_stops_the_run(tok: pybpe.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl(documents(40)) + b"\n{" * 41)
    writers: list[Callable[[], object]] = [
        lambda: pybpe.binarize(tok, path, tmp_path / "out", on_error="skip", **GIVEN),
        lambda: pybpe.prepare(path, tmp_path / "out2", vocab_size=300, on_error="skip", progress=False),
        lambda: pybpe.count_words(path, on_error="skip"),
        lambda: clean(path, tmp_path / "out.jsonl", on_error="skip", progress=False),
    ]
    for write in writers:
        with pytest.raises(
            pybpe.errors.ArgumentError, match=r"41 of the first 81 records .*a.jsonl: line 41: .*text_key"
        ):
            write()
    assert not (tmp_path / "out.jsonl").exists() and not list(tmp_path.glob("out*/*.bin"))
    path.write_bytes(b"{\n" * 5000 + jsonl(documents(40)) * 200)  # and early, although fewer than half are bad in all
    monkeypatch.setattr(bad_records, "LEAST_RECORDS", 100)
    for write in writers[::3]:
        with pytest.raises(pybpe.errors.ArgumentError, match=r"5000 of the first \d+ records"):
            write()


def test_a_damaged_file_is_not_a_bad_record(tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path) -> None:
    corpus[1].write_bytes(corpus[1].read_bytes()[:-20])
    with pytest.raises(pybpe.errors.FormatError, match="b.jsonl.gz: damaged"):
        pybpe.binarize(tok, corpus, tmp_path / "out", on_error="skip", **GIVEN)


def test_prepare(corpus: list[Path], tmp_path: Path) -> None:
    given: dict[str, Any] = {"vocab_size": 400, "progress": False, "min_shard_tokens": 0, "splits": (3, 1)}
    with pytest.warns(PybpeWarning, match="records are not valid"):
        tok, manifest = pybpe.prepare(corpus, tmp_path / "out", on_error="skip", **given)
    good, _ = pybpe.prepare(good_of(corpus), tmp_path / "good-out", **given)
    assert tok.model.fingerprint == good.model.fingerprint and manifest.skipped is not None
    assert listed(tmp_path / "out" / "skipped.jsonl") == expected_list(corpus)


# ------------------------------------------------------------------------------------------------------
# train and counts


@pytest.mark.parametrize("executor", [False, True])
def test_counts_are_those_without_the_bad_records(corpus: list[Path], tmp_path: Path, executor: bool) -> None:
    given: dict[str, Any] = {"workers": 2, "progress": False}
    with pytest.warns(PybpeWarning, match="were skipped: .*list.jsonl lists them"), ThreadPoolExecutor(3) as pool:
        given["executor"] = pool if executor else None
        counts = pybpe.count_words(corpus, on_error="skip", skipped=tmp_path / "list.jsonl", **given)
    assert counts.to_dict() == pybpe.count_words(good_of(corpus)).to_dict()
    assert listed(tmp_path / "list.jsonl") == expected_list(corpus)
    with pytest.raises(pybpe.errors.FormatError, match="a.jsonl: the line at byte"):
        pybpe.count_words(corpus)
    with pytest.raises(pybpe.errors.ArgumentError, match="skipped needs on_error='skip'"):
        pybpe.count_words(corpus, skipped=tmp_path / "list.jsonl")


def test_training(corpus: list[Path], tmp_path: Path) -> None:
    with pytest.warns(PybpeWarning, match="records are not valid"):
        tok = pybpe.train(corpus, vocab_size=400, on_error="skip", normalizer="NFC")
    assert tok.model.vocab == pybpe.train(good_of(corpus), vocab_size=400, normalizer="NFC").model.vocab
    with pytest.raises(pybpe.errors.ArgumentError, match="on_error must be one of stop, skip"):
        pybpe.train(corpus, vocab_size=400, on_error="ignore")
    with pytest.raises(pybpe.errors.ArgumentError, match="checkpoint cannot be used with on_error='skip'"):
        pybpe.train(corpus, vocab_size=400, on_error="skip", checkpoint=tmp_path / "checkpoint")
    with pytest.raises(pybpe.errors.ArgumentError, match="cannot be used with parity"):
        texts = {"en": corpus, "zh": corpus}
        pybpe.train(texts, vocab_size=400, parity=texts, on_error="skip")


# ------------------------------------------------------------------------------------------------------
# corpus


def test_cleaning(corpus: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    with pytest.warns(PybpeWarning, match="records are not valid"):
        report = clean(corpus, out, dedup="exact", on_error="skip", workers=1, progress=False)
    clean(good_of(corpus), tmp_path / "good.jsonl", dedup="exact", workers=1, progress=False)
    assert out.read_bytes() == (tmp_path / "good.jsonl").read_bytes()
    list_path = tmp_path / "out.jsonl.skipped.jsonl"
    assert listed(list_path) == expected_list(corpus)
    assert report.skipped == {
        "records": 200 + len(listed(list_path)),
        "skipped": len(listed(list_path)),
        "file": str(list_path),
    }
    with pytest.warns(PybpeWarning):
        clean(corpus, tmp_path / "two.jsonl", dedup="exact", on_error="skip", workers=2, progress=False)
    assert listed(tmp_path / "two.jsonl.skipped.jsonl") == listed(list_path)
    clean(good_of(corpus), out, workers=1, progress=False)
    assert not list_path.exists()  # it would seem to belong to the new output


# ------------------------------------------------------------------------------------------------------
# The command line


def test_commands(corpus: list[Path], tmp_path: Path, tok: pybpe.Tokenizer, capsys: pytest.CaptureFixture[str]) -> None:
    tok.save(tmp_path / "tok.json")
    names = [str(path) for path in corpus]
    count = len(expected_list(corpus))
    told = f"{count} of {200 + count} records are not valid"
    for command, name in (
        (["binarize", "-t", str(tmp_path / "tok.json"), "--min-shard-tokens", "0"], "out"),
        (["train", "--vocab-size", "400"], "new.json"),
        (["count"], "new.counts"),
        (["corpus"], "new.jsonl"),
    ):
        out = tmp_path / name
        assert main([*command, *names, "-o", str(out), "--on-error", "skip", "--json"]) == 0
        printed = capsys.readouterr()
        assert told in printed.err
        path = out / "skipped.jsonl" if name == "out" else Path(f"{out}.skipped.jsonl")
        assert len(listed(path)) == count
        if command[0] in ("binarize", "corpus"):
            assert json.loads(printed.out)["skipped"]["skipped"] == count
    assert main(["count", *names, "-o", "-", "--on-error", "skip"]) == 2
    assert "needs --skipped FILE" in capsys.readouterr().err
    assert main(["count", *names, "-o", str(tmp_path / "x.counts"), "--skipped", "x"]) == 2
    good = [str(path) for path in good_of(corpus)]
    assert main(["count", *good, "-o", str(tmp_path / "new.counts")]) == 0
    assert not (tmp_path / "new.counts.skipped.jsonl").exists()
