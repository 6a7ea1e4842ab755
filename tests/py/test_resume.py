"""Runs that ended early: the next call goes on, or begins anew where inputs or options changed, and always writes what
an undisturbed run writes. test_finished.py has calls after one that finished, test_executors.py several machines."""

import errno
import gzip
import io
import os
import random
import shutil
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy
import pytest
from corpora import EOT, content, documents, jsonl
from killed import run_and_die
from texts import english

import pybpe
from pybpe.errors import ArgumentError, FileError, FormatError, PybpeWarning
from pybpe.reading.pieces import Piece
from pybpe.support import executors, task_results
from pybpe.support.output_files import FOLDER, write_all
from pybpe.tokens import binarization, run, task_encoder
from pybpe.tokens.mix import mixing, shuffling
from pybpe.tokens.task_encoder import Segment
from pybpe.tokens.verification import verify

pytestmark = pytest.mark.filterwarnings("ignore::pybpe.errors.PybpeWarning")
ONE: dict[str, Any] = {"workers": 1, "progress": False}


def sizes(format: str, shard_tokens: int) -> dict[str, int]:
    """Returns the sizes that a format has."""
    return {} if format in ("raw", "megatron") else {"shard_tokens": shard_tokens}


# ------------------------------------------------------------------------------------------------------
# Killed


@pytest.fixture(scope="module")
def tokens(tok: pybpe.Tokenizer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes the token files "a", "b" and "c"."""
    folder = tmp_path_factory.mktemp("mixture")
    texts = documents(200)
    (folder / "a.txt").write_text(EOT.join(texts[:100]), encoding="utf-8")
    (folder / "b.jsonl").write_bytes(jsonl(texts[100:150]))
    (folder / "c.txt").write_text(EOT.join([*texts[150:], "x", "Long. " * 900, "yes"]), encoding="utf-8")
    pybpe.binarize(tok, folder / "a.txt", folder / "a", shard_tokens=9000)
    pybpe.binarize(tok, folder / "b.jsonl", folder / "b", format="raw", min_shard_tokens=0)
    pybpe.binarize(tok, folder / "c.txt", folder / "c", split_by="token", min_shard_tokens=0)
    return folder


def mix(tok: pybpe.Tokenizer, tokens: Path, out: Path, **keywords: Any) -> dict[str, bytes]:
    """Mixes these sources. Returns the files."""
    amounts: dict[str, dict[str, float]] = {"a": {"weight": 0.5}, "b": {"epochs": 2.5}, "c": {"epochs": 1}}
    recipe = {
        "tokens": 40_000,
        "sources": {name: {"data": str(tokens / name), **amount} for name, amount in amounts.items()},
    }
    pybpe.mix(tok, recipe, out, sequence_length=64, shard_tokens=10_000, progress=False, **keywords)
    return content(out)


def writer(command: str, tok: pybpe.Tokenizer, corpus: list[Path], tokens: Path) -> Callable[[Path], object]:
    name, _, form = command.partition(" ")
    if name == "mix":
        return partial(mix, tok, tokens, memory_limit=60_000)
    if name == "pack":
        return partial(pybpe.pack, tok, tokens / "a", sequence_length=256, format=form, shard_tokens=3000)
    return partial(pybpe.binarize, tok, corpus, format=form, **sizes(form, 7000), **ONE)


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("binarize llmc", 3),
        *((f"binarize {form}", 1) for form in ("raw", "npy", "megatron")),
        *((f"pack {form}", 1) for form in ("llmc", "npy", "webdataset")),
        ("mix", 2),
    ],
)
def test_killed_anywhere_it_goes_on(
    tok: pybpe.Tokenizer,
    corpus: list[Path],
    tokens: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    runs: int,
) -> None:
    monkeypatch.setattr(mixing, "LEAST_MEMORY", 1)
    monkeypatch.setattr(shuffling, "_PART_TOKENS", 6000)
    write = writer(command, tok, corpus, tokens)
    write(tmp_path / "undisturbed")
    expected = content(tmp_path / "undisturbed")
    rng = random.Random(command)
    most = {"mix": 40, "binarize": 30, "pack": 9}[command.split()[0]]
    deaths = 0
    for number in range(runs):
        out = tmp_path / "out"
        points = iter([most * number // runs + rng.randrange(most // runs), rng.randrange(most), rng.randrange(most)])
        while run_and_die(next(points, 10**6), write, out):
            deaths += 1
            shown = {name: data for name, data in content(out).items() if not name.startswith(FOLDER)}
            assert shown.items() <= expected.items()
            assert "manifest.json" not in shown or shown == expected
        assert content(out) == expected
        assert {path.name for path in tmp_path.iterdir()} == {"corpus", "undisturbed", "out"}
        assert not (out / FOLDER).exists()
        shutil.rmtree(out)
    assert deaths >= runs


def test_a_finished_bucket_of_a_mixture_is_not_sorted_again(
    tok: pybpe.Tokenizer, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixing, "LEAST_MEMORY", 1)
    expected = mix(tok, tokens, tmp_path / "whole", memory_limit=60_000)
    made: list[int] = []
    result = shuffling.Shuffle._bucket

    def counted(self: shuffling.Shuffle, number: int) -> Any:
        made.append(number)
        if len(made) == 5:
            raise KeyboardInterrupt
        return result(self, number)

    monkeypatch.setattr(shuffling.Shuffle, "_bucket", counted)
    with pytest.raises(KeyboardInterrupt):
        mix(tok, tokens, tmp_path / "out", memory_limit=60_000)
    assert mix(tok, tokens, tmp_path / "out", memory_limit=60_000) == expected
    assert made == [0, 1, 2, 3, 4, *range(4, made[-1] + 1)] and made[-1] > 5


def test_an_array_resumes_until_it_has_its_name(
    tok: pybpe.Tokenizer,
    corpus: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    total = pybpe.encode_files(tok, corpus, tmp_path / "whole.npy", progress=False)
    caplog.set_level("INFO", "pybpe")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(binarization, "give_name", interrupted)
        pybpe.encode_files(tok, corpus, tmp_path / "out.npy", progress=False)
    assert not (tmp_path / "out.npy").exists()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pybpe.encode_files(tok, corpus, tmp_path / "out.npy", progress=False) == total
    assert f"resuming after {total} tokens" in caplog.text
    assert (tmp_path / "out.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"corpus", "out.npy", "whole.npy"}


@pytest.mark.parametrize("format", ["llmc", "npy"])
def test_a_full_disk(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    keywords = {"format": format, **sizes(format, 7000), "workers": 2}
    texts = corpus[:2]  # of known size
    pybpe.binarize(tok, texts, tmp_path / "undisturbed", **keywords)
    left = [3]
    write = task_results.write_results

    def full(*given: Any) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(*given)

    with monkeypatch.context() as patch:
        patch.setattr(run, "write_results", full)
        with pytest.raises(FileError, match="the disk is full. Finished work is kept") as error:
            pybpe.binarize(tok, texts, tmp_path / "out", **keywords)
        assert error.value.errno == errno.ENOSPC
    assert [path.name for path in (tmp_path / "out").iterdir()] == [FOLDER]
    pybpe.binarize(tok, texts, tmp_path / "out", **keywords)
    assert content(tmp_path / "out") == content(tmp_path / "undisturbed")


def test_a_system_call_that_writes_a_part(tmp_path: Path) -> None:
    class Partly(io.FileIO):
        def write(self, data: Any) -> int:
            return super().write(memoryview(data)[:3])

    with Partly(tmp_path / "x", "wb") as stream:
        assert write_all(stream, b"0123456789") == 10 and write_all(stream, memoryview(b"")) == 0
        assert write_all(stream, numpy.array([65, 66], "<u2")) == 4 and write_all(stream, numpy.empty((3, 0))) == 0
    assert (tmp_path / "x").read_bytes() == b"0123456789A\0B\0"


# ------------------------------------------------------------------------------------------------------
# Inputs and options that change between two runs

Change = Callable[[list[Path], dict[str, Any]], object]
CHANGES: list[Change] = [
    lambda files, options: files[0].write_bytes(files[0].read_bytes() * 2),
    lambda files, options: files.pop(1),
    lambda files, options: files.insert(1, files[0].with_name("more.txt")),
    lambda files, options: files.reverse(),
    lambda files, options: files[0].write_bytes(files[0].read_bytes().replace(b"the", b"thy")),
    lambda files, options: options.update(splits=(1,)),
    lambda files, options: options.update(eot="append"),
    lambda files, options: options.update(dtype="uint32"),
    lambda files, options: options.update(executor=ThreadPoolExecutor(2)),
]


@pytest.mark.parametrize("format", ["llmc", "npy", "megatron"])
def test_what_changed_since_a_killed_run_is_done_again(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path, format: str
) -> None:
    """Programs find shards by a pattern, so none of before the change may stay; other files do."""
    rng = random.Random(format)
    original = [path.read_bytes() for path in corpus]
    corpus[0].with_name("more.txt").write_text(english()[:50_000])
    out, fresh, mine = tmp_path / "out", tmp_path / "fresh", tmp_path / "out" / "a_train_000077.bin.mine"
    for change in CHANGES if format == "llmc" else rng.sample(CHANGES, 2):
        files, options = list(corpus), {"format": format, "force": True, **sizes(format, 2500), **ONE}
        for path, data in zip(corpus, original):
            path.write_bytes(data)
        assert run_and_die(rng.randrange(4, 14), pybpe.binarize, tok, files, out, **options)
        mine.write_bytes(b"not ours")
        change(files, options)
        run_and_die(rng.randrange(5), pybpe.binarize, tok, files, out, **options)  # while it removes old shards
        pybpe.binarize(tok, files, out, **options)
        mine.unlink()
        pybpe.binarize(tok, files, fresh, **options)
        assert content(out) == content(fresh)
        shutil.rmtree(out)
        shutil.rmtree(fresh)


@pytest.mark.parametrize(
    ("format", "split_by", "by_executor"), [("llmc", "hash", False), ("npy", "token", False), ("llmc", "hash", True)]
)
def test_a_mended_file_is_done_again_and_the_files_before_it_are_kept(
    tok: pybpe.Tokenizer,
    corpus: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    format: str,
    split_by: str,
    by_executor: bool,
) -> None:
    given = {"format": format, "split_by": split_by, "executor": ThreadPoolExecutor(1) if by_executor else None, **ONE}
    monkeypatch.setattr(executors, "tasks_per_message", lambda *_: 1)
    seen: list[Any] = []
    pieces = task_encoder.pieces_of
    monkeypatch.setattr(task_encoder, "pieces_of", lambda task, *rest: seen.extend(task) or pieces(task, *rest))
    pybpe.binarize(tok, corpus, tmp_path / "fresh", **given)
    whole = sum(str(corpus[0]) in part.file.paths for part in seen)
    good = corpus[1].read_bytes()
    for number, place in enumerate((0, len(good))):
        at = good.rfind(b"\n", 0, place) + 1
        corpus[1].write_bytes(good[:at] + b'{"text": null}\n' + good[at:])
        out = tmp_path / f"out{number}"
        with pytest.raises(FormatError, match=f"b.jsonl: the line at byte {at}: "):
            pybpe.binarize(tok, corpus, out, **given)
        corpus[1].write_bytes(good)
        seen.clear()
        pybpe.binarize(tok, corpus, out, **given)
        assert sum(str(corpus[0]) in part.file.paths for part in seen) < whole  # it was encoded already
        assert content(out) == content(tmp_path / "fresh")


@pytest.mark.parametrize("by_executor", [False, True])
def test_shards_of_before_a_change_are_not_used(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_executor: bool
) -> None:
    given: dict[str, Any] = {"shard_tokens": 4000, "splits": (1,), **ONE}
    given["executor"] = ThreadPoolExecutor(1) if by_executor else None
    made: list[Any] = []

    def make(order: run.ShardOrder, real: Callable[[run.ShardOrder], str] = run.make_shard) -> str:
        if len(made) == 2:
            raise OSError(errno.EIO, "Input/output error")
        made.append(order)
        return real(order)

    with monkeypatch.context() as patch, pytest.raises((OSError, pybpe.errors.WorkerError), match="Input/output error"):
        patch.setattr(run, "make_shard", make)
        pybpe.binarize(tok, corpus, tmp_path / "out", **given)
    corpus[2].write_bytes(gzip.compress(english()[100_000:150_000].encode()))
    pybpe.binarize(tok, corpus, tmp_path / "out", **given)
    pybpe.binarize(tok, corpus, tmp_path / "fresh", **given)
    assert content(tmp_path / "out") == content(tmp_path / "fresh")


@pytest.mark.parametrize("by_executor", [False, True])
def test_of_a_file_that_grew_only_the_last_task_and_the_new_ones_are_done_again(
    tok: pybpe.Tokenizer, tmp_path: Path, small_tasks: None, monkeypatch: pytest.MonkeyPatch, by_executor: bool
) -> None:
    """So are those that read what was changed; what is before and after it, if its size stays, is kept."""
    given = {**ONE, "splits": (1,), "executor": ThreadPoolExecutor(1) if by_executor else None}
    seen: list[int] = []
    segments = task_encoder.TaskEncoder.segments

    def noted(self: task_encoder.TaskEncoder, piece: Piece) -> list[Segment]:
        if piece.size:
            seen.append(piece.start)
        return segments(self, piece)

    def changed(path: Path, data: bytes) -> list[int]:
        """Returns where the tasks begin that are done after a file has this content."""
        path.write_bytes(data)
        seen.clear()
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(run, "make_shards", interrupted)
            patch.setattr(task_encoder.TaskEncoder, "segments", noted)
            pybpe.binarize(tok, path, tmp_path / path.stem, **given)
        return seen.copy()

    text, records = english()[:165_000].encode(), jsonl(documents(150))
    for path, data, more in (
        (tmp_path / "a.txt", text, text[:40_000]),
        (tmp_path / "b.jsonl", records, b"\n" + records[: records.index(b"\n", 40_000)]),
    ):
        every = changed(path, data)
        assert len(every) > 4
        assert changed(path, data) == every[-1:]  # only touched; the checksums are those of inner parts
        grown = changed(path, data + more)
        assert grown[0] == every[-1] and 2 < len(grown) < 5
        at = data.index(b" the ", every[2]) + 1
        assert changed(path, data[:at] + b"f" + data[at + 1 :] + more) == [every[2], grown[-1]]
        pybpe.binarize(tok, path, tmp_path / path.stem, **given)
        pybpe.binarize(tok, path, tmp_path / "fresh", **ONE, splits=(1,))
        assert content(tmp_path / path.stem) == content(tmp_path / "fresh")
        shutil.rmtree(tmp_path / "fresh")


def test_what_is_replaced_is_said_and_stays_until_then(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    pybpe.binarize(tok, corpus, out, shard_tokens=7000, name="old")
    before = content(out)
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b'{"text": "x"}\n{')
    with pytest.raises(ArgumentError, match="force=True"):
        pybpe.binarize(tok, corpus[:1], out)
    with pytest.raises(FormatError):
        pybpe.binarize(tok, bad, out, force=True)
    assert content(out) == before and verify(out, tok)[1] == []
    for format in ("llmc", "npy"):  # and late: shards get their names when all of them are complete
        with pytest.raises(FormatError):
            options: dict[str, Any] = {"format": format, "shard_tokens": 7000, "splits": (1,), "name": "new"}
            pybpe.binarize(tok, [*corpus, bad], out, workers=1, force=True, **options)
        assert {name: data for name, data in content(out).items() if FOLDER not in name} == before
    with pytest.warns(PybpeWarning, match=rf"out: replacing {len(before)} files of an earlier run, such as old_"):
        pybpe.binarize(tok, corpus[:1], out, name="new", force=True)
    assert not list(out.glob("old*"))


# ------------------------------------------------------------------------------------------------------
# What a run left is damaged


def results_of(out: Path) -> list[Path]:
    return sorted((out / FOLDER / "tasks").glob("*/*"))


@pytest.mark.parametrize("by_executor", [False, True])
def test_damaged_results_are_made_again(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_executor: bool
) -> None:
    """At once if the header shows it; if it is seen later, the call is refused, and the next one makes them again."""
    given = {**ONE, "executor": ThreadPoolExecutor(1) if by_executor else None}
    pybpe.binarize(tok, corpus, tmp_path / "fresh", **ONE)
    rng = random.Random(5)
    refused = 0
    for number in range(12):
        out = tmp_path / f"out{number}"
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(run, "make_shards", interrupted)
            pybpe.binarize(tok, corpus, out, **given)
        path = rng.choice(results_of(out))
        data = bytearray(path.read_bytes())
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
        path.write_bytes(data if number % 2 else data[: rng.randrange(len(data))])
        try:
            pybpe.binarize(tok, corpus, out, **given)
        except FormatError as error:
            assert str(error) == f"{path}: damaged: run the same command again, which makes it again"
            assert not path.exists()
            refused += 1
            pybpe.binarize(tok, corpus, out, **given)
        assert content(out) == content(tmp_path / "fresh"), number
    assert 0 < refused <= 6  # a file that is cut is made again at once


def interrupted(*_: Any) -> None:
    raise KeyboardInterrupt


def buckets_of(out: Path, kind: str) -> list[Path]:
    return [path for path in sorted(out.rglob(f"buckets/*.{kind}")) if path.stat().st_size > 0]


@pytest.mark.parametrize("kind", ["tokens", "index"])
def test_a_mixture_without_some_of_its_buckets_starts_again(
    tok: pybpe.Tokenizer, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(mixing, "LEAST_MEMORY", 1)
    expected = mix(tok, tokens, tmp_path / "whole", memory_limit=60_000)
    for loss in (Path.unlink, lambda path: os.truncate(path, path.stat().st_size - 1)):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(shuffling._Ordered, "part", interrupted)
            mix(tok, tokens, tmp_path / "out", memory_limit=60_000)
        loss(buckets_of(tmp_path / "out", kind)[0])
        assert mix(tok, tokens, tmp_path / "out", memory_limit=60_000) == expected
        shutil.rmtree(tmp_path / "out")


@pytest.mark.parametrize("kind", ["tokens", "index"])
def test_buckets_that_another_program_has_changed_are_refused(
    tok: pybpe.Tokenizer, tokens: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    distribute = shuffling.Shuffle._distribute

    def changed(*args: Any) -> None:
        distribute(*args)
        for path in buckets_of(tmp_path / "out", kind):
            path.write_bytes(path.read_bytes() + b"x")

    monkeypatch.setattr(mixing, "LEAST_MEMORY", 1)
    monkeypatch.setattr(shuffling.Shuffle, "_distribute", changed)
    with pytest.raises(FormatError, match=rf"\.{kind}: another program has changed it"):
        mix(tok, tokens, tmp_path / "out", memory_limit=60_000)
