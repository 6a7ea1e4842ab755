"""A run of binarize that is killed at any point resumes, writes identical bytes, and keeps its finished work."""

import errno
import multiprocessing
import pickle
import random
from collections.abc import Callable
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from corpora import content
from killed import run_and_die

import pybpe
from pybpe.errors import PybpeWarning
from pybpe.support.locking import FOLDER
from pybpe.tokens import spool
from pybpe.tokens.verification import verify

# ------------------------------------------------------------------------------------------------------
# Killed


def sizes(format: str, shard_tokens: int) -> dict[str, int]:
    """Returns the sizes that a format has."""
    rows = {"sequence_length": 200} if format == "webdataset" else {}
    return rows | ({} if format in ("raw", "megatron") else {"shard_tokens": shard_tokens})


@pytest.mark.parametrize("format", ["llmc", "raw", "npy", "megatron", "webdataset"])
def test_killed_anywhere_it_goes_on(tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path, format: str) -> None:
    keywords = {"format": format, **sizes(format, 7000), "workers": 1, "progress": False}
    pybpe.binarize(tok, corpus, tmp_path / "undisturbed", **keywords)
    expected = content(tmp_path / "undisturbed")
    rng = random.Random(format)
    deaths = 0
    for first in range(rng.randrange(20), 140, 15 if format == "llmc" else 40):  # a run has some 100 points
        out = tmp_path / f"out{first}"
        finished: dict[str, int] = {}
        points = iter([first, rng.randrange(100), rng.randrange(100)])
        while run_and_die(next(points, 10**6), pybpe.binarize, tok, corpus, out, **keywords):
            deaths += 1
            now = {path.name: path.stat().st_ino for path in out.glob("corpus_*") if path.is_file()}
            kept = {name: inode for name, inode in finished.items() if not name.endswith(".idx")}
            assert kept.items() <= now.items()  # a finished shard is not made again
            finished = {} if (out / "manifest.json").exists() else now
        assert content(out) == expected
        assert not (out / FOLDER).exists()
    assert deaths > 3


def test_what_changed_begins_anew(tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path) -> None:
    def die(text: list[Path], **keywords: Any) -> None:
        assert run_and_die(
            40, pybpe.binarize, tok, text, tmp_path / "out", **{"workers": 1, "progress": False, **keywords}
        )
        assert (tmp_path / "out" / FOLDER).exists()

    for change in ({"splits": (1,)}, {"eot": "append"}, {"resume": False}, {}):
        die(corpus)
        pybpe.binarize(tok, corpus, tmp_path / "out", force=True, **change)
        pybpe.binarize(tok, corpus, tmp_path / f"fresh{len(change)}", **change)
        assert content(tmp_path / "out") == content(tmp_path / f"fresh{len(change)}")
        for path in (*(tmp_path / f"fresh{len(change)}").iterdir(), *(tmp_path / "out").iterdir()):
            path.unlink()
    die(corpus)
    corpus[0].write_bytes(corpus[0].read_bytes().replace(b"the", b"thy"))
    pybpe.binarize(tok, corpus, tmp_path / "out")
    pybpe.binarize(tok, corpus, tmp_path / "fresh")
    assert content(tmp_path / "out") == content(tmp_path / "fresh")


@pytest.mark.slow
@pytest.mark.parametrize("format", ["llmc", "megatron", "raw", "npy"])
def test_shards_of_a_killed_run_with_other_options_do_not_stay(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path, format: str
) -> None:
    """Programs find shards by a pattern: an old one would be trained on with the new ones."""
    given: dict[str, Any] = {"format": format, "workers": 1, "progress": False, "force": True}
    name = {} if format == "raw" else {"name": "a"}
    small, large = (
        {**sizes(format, 2500), "dtype": "uint32", **name, **given},
        {**sizes(format, 50_000), **name, **given},
    )
    pybpe.binarize(tok, corpus, tmp_path / "expected", **large)
    out = tmp_path / "out"
    for points in ([60], [60, 3], [90, 2, 30], [90, 0, 1, 2, 3]):
        deaths = [run_and_die(points[0], pybpe.binarize, tok, corpus, out, **small)]
        for point in points[1:]:  # the next run is killed at its beginning, while it removes them
            deaths.append(run_and_die(point, pybpe.binarize, tok, corpus, out, **{**small, "eot": "append"}))
        (out / "a_train_000077.bin.mine").write_bytes(b"not ours")
        pybpe.binarize(tok, corpus, out, **large)
        assert deaths.count(True) > 0 and (out / "a_train_000077.bin.mine").exists()
        (out / "a_train_000077.bin.mine").unlink()
        assert content(out) == content(tmp_path / "expected")


def test_what_is_replaced_is_said_and_stays_until_then(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    pybpe.binarize(tok, corpus, out, shard_tokens=7000, name="old")
    before = content(out)
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b'{"text": "x"}\n{')
    with pytest.raises(pybpe.errors.ArgumentError, match="force=True"):
        pybpe.binarize(tok, corpus[:1], out)
    with pytest.raises(pybpe.errors.FormatError):
        pybpe.binarize(tok, bad, out, force=True)
    assert content(out) == before and verify(out, tok)[1] == []
    for format in ("llmc", "npy"):  # and late: shards get their names when all of them are complete
        with pytest.raises(pybpe.errors.FormatError):
            options: dict[str, Any] = {"format": format, "shard_tokens": 7000, "splits": (1,), "name": "new"}
            pybpe.binarize(tok, [*corpus, bad], out, workers=1, force=True, **options)
        assert {name: data for name, data in content(out).items() if FOLDER not in name} == before
    with pytest.warns(PybpeWarning, match=rf"out: replacing {len(before)} files of an earlier run, such as old_"):
        pybpe.binarize(tok, corpus[:1], out, name="new", force=True)
    assert not list(out.glob("old*"))


def test_verify_names_shards_that_the_manifest_does_not_list(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    pybpe.binarize(tok, corpus, out, name="corpus")
    (out / "corpus_train_000007.bin").write_bytes((out / "corpus_train_000000.bin").read_bytes())
    (out / "notes.txt").write_text("mine")
    assert [problem.file for problem in verify(out, tok)[1]] == ["corpus_train_000007.bin"]
    (out / "corpus_train_000007.bin").unlink()
    (out / FOLDER).mkdir()
    (out / FOLDER / "parts.log").write_text("{}")
    assert [problem.file for problem in verify(out, tok)[1]] == [FOLDER]


# ------------------------------------------------------------------------------------------------------
# Disk full


@pytest.mark.parametrize("format", ["llmc", "npy"])
def test_a_full_disk(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    keywords = {"format": format, **sizes(format, 7000), "workers": 2}
    texts = corpus[:2]  # of known size
    pybpe.binarize(tok, texts, tmp_path / "undisturbed", **keywords)
    left = [20]
    write = spool._write

    def full(stream: Any, data: Any) -> None:
        left[0] -= 1
        if left[0] < 0:
            stream.write(bytes(100))  # a part of it finds room
            raise OSError(errno.ENOSPC, "No space left on device")
        write(stream, data)

    with monkeypatch.context() as patch:
        patch.setattr(spool, "_write", full)
        with pytest.raises(pybpe.errors.FileError, match="the disk is full. Finished work is kept") as error:
            pybpe.binarize(tok, texts, tmp_path / "out", **keywords)
        assert error.value.errno == errno.ENOSPC
    assert [path.name for path in (tmp_path / "out").iterdir()] == [FOLDER]
    pybpe.binarize(tok, texts, tmp_path / "out", **keywords)
    assert content(tmp_path / "out") == content(tmp_path / "undisturbed")


# ------------------------------------------------------------------------------------------------------
# Executors


class Shuffled(Executor):
    """Runs tasks in a different order from that in which they were submitted."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)
        self._waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        executor = self

        class Lazy(Future[Any]):
            def result(self, timeout: float | None = None) -> Any:
                while not self.done():
                    waiting = executor._waiting
                    future, work, arguments = waiting.pop(executor._rng.randrange(len(waiting)))
                    future.set_result(work(*arguments))
                return super().result(timeout)

        future = Lazy()
        self._waiting.append((future, function, args))
        return future


@pytest.mark.parametrize("split_by", ["hash", "document", "token"])
def test_any_executor_gives_the_same_bytes(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path, split_by: str
) -> None:
    keywords = {"shard_tokens": 7000, "split_by": split_by}
    corpus = corpus[::-1]  # so that val and test do not get only one long document
    pybpe.binarize(tok, corpus, tmp_path / "local", **keywords)
    expected = content(tmp_path / "local")
    with ThreadPoolExecutor(3) as threads:
        pybpe.binarize(tok, corpus, tmp_path / "threads", executor=threads, **keywords)
    pybpe.binarize(tok, corpus, tmp_path / "shuffled", executor=Shuffled(5), workers=4, **keywords)
    assert content(tmp_path / "threads") == content(tmp_path / "shuffled") == expected
    if split_by == "hash":
        with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as processes:
            pybpe.binarize(tok, corpus, tmp_path / "processes", executor=processes, **keywords)
        assert content(tmp_path / "processes") == expected


class LostInTime(Executor):
    """Behaves like Dask's executor if workers die just after sending results: each result unpickles as an error."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        result = pickle.loads(pickle.dumps(function(*args)))
        try:
            _, error, traceback = result
            raise error.with_traceback(traceback)
        except BaseException as error:
            future.set_exception(error)
        return future


def test_a_result_that_came_is_used_although_its_dask_worker_died(
    tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path
) -> None:
    pybpe.binarize(tok, corpus, tmp_path / "local")
    pybpe.binarize(tok, corpus, tmp_path / "out", executor=LostInTime(), workers=2)
    assert content(tmp_path / "out") == content(tmp_path / "local")
    assert pybpe.count_words(corpus, executor=LostInTime()) == pybpe.count_words(corpus)


def test_errors_of_workers_come_through(tok: pybpe.Tokenizer, corpus: list[Path], tmp_path: Path) -> None:
    corpus[1].write_bytes(corpus[1].read_bytes() + b"\n{\n")
    with ProcessPoolExecutor(1) as executor, pytest.raises(pybpe.errors.FormatError, match="b.jsonl: the line at byte"):
        pybpe.binarize(tok, corpus, tmp_path / "out", executor=executor)
