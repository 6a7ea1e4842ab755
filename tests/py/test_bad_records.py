"""Records that are not valid: the run stops at the first one, or skips and lists them. What it writes is what it would
write without them, and the list is what a slow, obvious reader makes, for any number of workers and after any kill."""

import gzip
import json
import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from corpora import content, documents, jsonl
from killed import run_and_die

import pybpe
from pybpe.cli import main
from pybpe.corpus import clean
from pybpe.corpus.output import Target
from pybpe.errors import FormatError, PybpeWarning
from pybpe.reading.records import RecordNotes
from pybpe.support.output_files import FOLDER
from pybpe.support.task_results import headers_of

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


@pytest.mark.parametrize(
    ("split_by", "format"), [("hash", "llmc"), ("hash", "npy"), ("token", "npy"), ("token", "llmc")]
)
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
    given = {**GIVEN, "workers": 1, "split_by": "hash"}
    pybpe.binarize(tok, path, tmp_path / "whole", on_error="skip", **given)
    with pytest.raises(FormatError, match="not JSON.* Finished work is kept"):
        pybpe.binarize(tok, path, tmp_path / "out", **given)
    assert len(list((tmp_path / "out" / FOLDER / "tasks").glob("*/*"))) > 1
    pybpe.binarize(tok, path, tmp_path / "out", on_error="skip", **given)
    assert content(tmp_path / "out") == content(tmp_path / "whole")
    assert run_and_die(11, pybpe.binarize, tok, path, tmp_path / "other", **{**given, "on_error": "skip"})
    headers = [headers_of(str(path)) for path in (tmp_path / "other" / FOLDER / "tasks").glob("*/*")]
    assert any(RecordNotes.of(notes).bad for header in chain(*filter(None, headers)) for notes in header["notes"])
    with pytest.raises(FormatError, match="the line at byte"):
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
    monkeypatch.setattr("pybpe.reading.records.LEAST_RECORDS", 100)
    for write in writers[::3]:
        with pytest.raises(pybpe.errors.ArgumentError, match=r"5000 of the first \d+ records"):
            write()


def test_finished_work_survives_more_than_half(
    tok: pybpe.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad, out = tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "out"
    good.write_bytes(jsonl(documents(60)))
    bad.write_bytes(b"{\n" * 100)
    given = {**GIVEN, "workers": 1, "on_error": "skip"}
    with pytest.raises(pybpe.errors.ArgumentError, match="100 of .* Finished work is kept: fix the file instead"):
        pybpe.binarize(tok, [good, bad], out, **given)
    bad.write_bytes(jsonl(documents(60)[:9]))
    caplog.set_level("INFO")
    pybpe.binarize(tok, [good, bad], out, **given)
    assert "resuming after" in caplog.text


def test_a_refused_plan_leaves_the_work_of_another_call(tok: pybpe.Tokenizer, tmp_path: Path) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "out"
    path.write_bytes(jsonl(documents(60)))
    assert run_and_die(7, pybpe.binarize, tok, path, out, **GIVEN, workers=1)
    before = {name for name in content(out) if "tasks" in name}
    given = {key: value for key, value in GIVEN.items() if key != "splits"}
    with pytest.raises(pybpe.errors.ArgumentError, match="no more than 60 documents"):
        pybpe.binarize(tok, path, out, **given, val_documents=60)
    assert before and before <= {*content(out)}


def test_a_damaged_file_is_not_a_bad_record(tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path) -> None:
    corpus[1].write_bytes(corpus[1].read_bytes()[:-20])
    with pytest.raises(FormatError, match="b.jsonl.gz: damaged"):
        pybpe.binarize(tok, corpus, tmp_path / "out", on_error="skip", **GIVEN)


# ------------------------------------------------------------------------------------------------------
# Other calls


def counts(inputs: list[Path], out: Path, given: dict[str, Any]) -> object:
    found = pybpe.count_words(inputs, skipped=out if given else None, workers=2, **given)
    with ThreadPoolExecutor(3) as executor:
        assert pybpe.count_words(inputs, skipped=out if given else None, executor=executor, **given) == found
    return found.to_dict()


def prepared(inputs: list[Path], out: Path, given: dict[str, Any]) -> object:
    tok, manifest = pybpe.prepare(inputs, out.parent, vocab_size=400, **GIVEN, **given)
    assert bool(manifest.skipped) == bool(given)
    return tok.model.fingerprint


def cleaned(inputs: list[Path], out: Path, given: dict[str, Any], workers: int = 1) -> object:
    path = out.with_name("out.jsonl")
    report = clean(inputs, path, dedup="exact", workers=workers, progress=False, **given)
    if given:
        lines = listed(path.with_name("out.jsonl.skipped.jsonl"))
        file = str(path.with_name("out.jsonl.skipped.jsonl"))
        assert report.skipped == {"records": 200 + len(lines), "skipped": len(lines), "file": file}
        os.replace(file, out)
    return path.read_bytes()


@pytest.mark.parametrize("call", [counts, prepared, cleaned, partial(cleaned, workers=2)])
def test_a_call_makes_and_lists_what_it_would_without_the_bad_records(
    call: Callable[..., object], corpus: list[Path], tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with pytest.warns(PybpeWarning, match="records are not valid"):
        found = call(corpus, tmp_path / "one" / "skipped.jsonl", {"on_error": "skip"})
    assert found == call(good_of(corpus), tmp_path / "two" / "skipped.jsonl", {})
    assert listed(tmp_path / "one" / "skipped.jsonl") == expected_list(corpus)


def test_a_list_goes_with_the_output_that_it_belongs_to(
    corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(target: Target) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.warns(PybpeWarning), pytest.raises(KeyboardInterrupt):
        patched.setattr(Target, "publish", interrupted)
        clean(corpus, tmp_path / "out.jsonl", on_error="skip", progress=False)
    assert not list(tmp_path.glob("out.jsonl*"))
    clean(corpus, tmp_path / "out.jsonl", on_error="skip", progress=False)
    assert (tmp_path / "out.jsonl.skipped.jsonl").exists()
    clean(good_of(corpus), tmp_path / "out.jsonl", force=True, progress=False)
    assert not (tmp_path / "out.jsonl.skipped.jsonl").exists()


def test_training(corpus: list[Path], tmp_path: Path) -> None:
    train = partial(pybpe.train, vocab_size=400)
    with pytest.warns(PybpeWarning, match="records are not valid"):
        tok = train(corpus, on_error="skip", normalizer="NFC")
    assert tok.model.vocab == train(good_of(corpus), normalizer="NFC").model.vocab
    with pytest.raises(FormatError, match="a.jsonl: the line at byte"):
        train(corpus)
    texts, checkpoint = {"en": corpus, "zh": corpus}, tmp_path / "checkpoint"
    for call, message in (
        (lambda: train(corpus, on_error="ignore"), "on_error must be one of stop, skip"),
        (lambda: train(corpus, on_error="skip", checkpoint=checkpoint), "checkpoint cannot be used with on_error="),
        (lambda: train(texts, parity=texts, on_error="skip"), "cannot be used with parity"),
        (lambda: pybpe.count_words(corpus, skipped=tmp_path / "list"), "skipped needs on_error='skip'"),
    ):
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            call()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"text": "x"', "not JSON"),
        (b'{"text": 5}', "'text'"),
        (b'{"txt": "x"}', "'text'"),
        (b"[1]", "'text': if the file is a JSON array, convert it to JSON lines"),
        (b"[", "not JSON .*: if the file is a JSON array, convert it"),
        (b'{"text": "x", "n": ' + b"1" * 5000 + b"}", "not JSON .it has an integer of too many digits"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: bytes, message: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(b'{"text": "fine"}\n' + line + b"\n")
    with pytest.raises(FormatError, match=f"x.jsonl: the line at byte 17: .*{message}") as caught:
        pybpe.count_words(path)
    assert caught.value.offset == 17


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
        assert len(listed(out / "skipped.jsonl" if name == "out" else Path(f"{out}.skipped.jsonl"))) == count
        assert command[0] not in ("binarize", "corpus") or json.loads(printed.out)["skipped"]["skipped"] == count
    assert main(["count", *names, "-o", "-", "--on-error", "skip"]) == 2
    assert "needs --skipped FILE" in capsys.readouterr().err
    assert main(["count", *names, "-o", str(tmp_path / "x.counts"), "--skipped", "x"]) == 2
