"""binarize with an executor, whose workers write the token files, writes what one machine writes."""

import os
import pickle
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, content, documents, jsonl, small_tokenizer, tokens_of, write_corpus
from texts import english

import pybpe
from pybpe.errors import ShardTooSmallError
from pybpe.reading import planning
from pybpe.support import executors
from pybpe.support.executors import SharedFolder
from pybpe.tokens import task_encoder
from pybpe.tokens.verification import verify

HIDDEN = ".pybpe-unfinished"


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Documents in a text, in JSON lines, and one that is longer than a task."""
    monkeypatch.setattr(planning, "TASK_BYTES", 7000)
    monkeypatch.setattr(executors, "tasks_per_message", lambda *_: 2)
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_bytes(EOT.join(documents(100)).encode())
    (folder / "b.jsonl").write_bytes(jsonl(documents(150)))
    (folder / "c.txt").write_text(english()[:90_000], encoding="utf-8", newline="")
    return folder / "*"


@pytest.fixture
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


class Shuffled(Executor):
    """Runs tasks in a different order from that in which they were submitted."""

    def __init__(self, seed: int) -> None:
        self._rng, self._thread = random.Random(seed), ThreadPoolExecutor(1)
        self._waiting: list[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]] = []

    def submit(self, function: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.append((future, function, args))
        self._thread.submit(self._run_one)
        return future

    def _run_one(self) -> None:
        future, work, arguments = self._waiting.pop(self._rng.randrange(len(self._waiting)))
        future.set_result(work(*arguments))


SETTINGS: list[dict[str, Any]] = [
    {"shard_tokens": 8000, "eot": "append", "split_by": "token", "dtype": "uint32"},
    {"shard_tokens": 8000, "split_by": "token", "min_shard_tokens": 0},
    {"shard_tokens": 30_000, "eot": "none", "splits": (1,)},
    {"format": "npy", "shard_tokens": 9000, "min_shard_tokens": 700},
    {"format": "npy", "shard_tokens": 15_000, "eot": "none", "split_by": "token"},
    {"format": "raw", "eot": "prepend", "split_by": "token"},
    {"format": "megatron"},
    {"format": "llmq", "shard_tokens": 9000},
    {"format": "megatron", "eot": "prepend", "split_by": "token"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_same_files(
    settings: dict[str, Any], corpus: Path, tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    tok = small_tokenizer()
    expected = pybpe.binarize(tok, corpus, tmp_path / "one", workers=1, **settings)
    monkeypatch.setattr(task_encoder, "_RESULT_TOKENS", 1000)
    how: dict[str, Any] = {"many": {"workers": 8}, "threads": {"executor": threads}}
    how["shuffled"] = {"executor": Shuffled(5), "workers": 4}
    for name, given in how.items():
        assert pybpe.binarize(tok, corpus, tmp_path / name, **settings, **given) == expected
        assert content(tmp_path / name) == content(tmp_path / "one")
    assert expected.tokens > 50_000 and verify(tmp_path / "one", tok)[1] == []


def test_another_process_imports_what_it_needs(tmp_path: Path, small_tasks: None) -> None:
    corpus = write_corpus(tmp_path / "corpus")
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as processes:
        pybpe.binarize(small_tokenizer(), corpus, tmp_path / "spawned", executor=processes)
    pybpe.binarize(small_tokenizer(), corpus, tmp_path / "one")
    assert content(tmp_path / "spawned") == content(tmp_path / "one")


@pytest.mark.parametrize("eot", ["prepend", "append", "none"])
def test_tasks_that_begin_and_end_at_marks(
    eot: str, tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A task cannot know whether it begins inside a document: the tokens of one piece without tasks are right."""
    (tmp_path / "in.txt").write_text(EOT.join(" a b c"[: n % 7] for n in range(1000)), newline="")
    more: dict[str, Any] = {"split_by": "token", "splits": (1,), "eot": eot, "min_shard_tokens": 0}
    whole = pybpe.binarize(small_tokenizer(), tmp_path / "in.txt", tmp_path / "whole", **more)
    for size in (1, 100, 500, 501, 502, 503):
        monkeypatch.setattr(planning, "TASK_BYTES", size)
        pybpe.binarize(small_tokenizer(), tmp_path / "in.txt", tmp_path / f"one{size}", **more)
        pybpe.binarize(small_tokenizer(), tmp_path / "in.txt", tmp_path / f"many{size}", **more, executor=threads)
        for name in ("one", "many"):
            assert tokens_of(tmp_path / f"{name}{size}", "train") == tokens_of(tmp_path / "whole", "train")
            assert pybpe.Manifest.load(tmp_path / f"{name}{size}").shards == whole.shards


def test_encode_files(corpus: Path, tmp_path: Path, threads: Executor) -> None:
    for eot in ("keep", "prepend", "append", "none"):
        tokens = pybpe.encode_files(small_tokenizer(), corpus, tmp_path / "one.npy", eot=eot)
        assert pybpe.encode_files(small_tokenizer(), corpus, tmp_path / "many.npy", eot=eot, executor=threads) == tokens
        assert (tmp_path / "many.npy").read_bytes() == (tmp_path / "one.npy").read_bytes()


@pytest.mark.filterwarnings("ignore:.*these files are empty")
def test_empty_bundles_and_sources(tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small files, some empty, and a stream whose name is not that of the file on disk."""
    monkeypatch.setattr(planning, "TASK_BYTES", 9000)
    monkeypatch.setattr(executors, "tasks_per_message", lambda *_: 1)
    (tmp_path / "corpus").mkdir()
    for number, text in enumerate(documents(30)):
        (tmp_path / "corpus" / f"{number:02d}.txt").write_text(text if number % 3 else "")
    for name, more in (("one", {}), ("workers", {"executor": threads})):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = subprocess.Popen(["sh", "-c", f"echo Some text > '{pipe}'"])
        pybpe.binarize(
            small_tokenizer(), [tmp_path / "corpus", pipe], tmp_path / name, splits=(9, 1), min_shard_tokens=0, **more
        )
        writer.wait()
        pipe.unlink()
    assert content(tmp_path / "workers") == content(tmp_path / "one")


def test_a_split_that_is_too_small(corpus: Path, tmp_path: Path, threads: Executor) -> None:
    with pytest.raises(ShardTooSmallError):
        pybpe.binarize(small_tokenizer(), corpus, tmp_path / "out", min_shard_tokens=10**6, executor=threads)
    assert list(tmp_path.glob("out/*.*")) == [tmp_path / "out" / ".pybpe-unfinished"]


def _in_a_folder_of_its_own() -> None:
    """Makes a worker see another folder under the name of the output folder, as on a machine that does not share it."""
    SharedFolder.is_seen = lambda self: False  # type: ignore[method-assign]


def _writing_elsewhere() -> None:
    """Makes a worker's files invisible to this process, as when it sees a copy of the folder."""
    write = executors.write_results
    executors.write_results = lambda path, parts: write(f"{path}-elsewhere", parts)


def test_a_folder_that_is_not_shared(corpus: Path, tmp_path: Path) -> None:
    """The workers send their tokens."""
    pybpe.binarize(small_tokenizer(), corpus, tmp_path / "one", shard_tokens=6000)
    with ProcessPoolExecutor(1, mp_context=get_context("fork"), initializer=_in_a_folder_of_its_own) as executor:
        pybpe.binarize(small_tokenizer(), corpus, tmp_path / "out", shard_tokens=6000, executor=executor)
    assert content(tmp_path / "out") == content(tmp_path / "one")


def test_a_worker_that_does_not_see_the_folder_of_the_others(
    corpus: Path, tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, asked = SharedFolder.is_seen, []
    monkeypatch.setattr(SharedFolder, "is_seen", lambda self: asked.append(self) or (len(asked) < 70 and seen(self)))
    with pytest.raises(pybpe.errors.WorkerError, match="all workers must see this folder of the run"):
        pybpe.binarize(small_tokenizer(), corpus, tmp_path / "out", executor=threads)
    assert len(asked) >= 70


def test_a_copy_of_the_folder(corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "_PATIENCE_SECONDS", 0.0)
    with ProcessPoolExecutor(1, mp_context=get_context("fork"), initializer=_writing_elsewhere) as executor:
        with pytest.raises(
            pybpe.errors.WorkerError, match="a worker wrote [0-9]+ bytes, but this machine does not see them"
        ):
            pybpe.binarize(small_tokenizer(), corpus, tmp_path / "out", executor=executor)
    assert not list((tmp_path / "out").glob("*.bin"))


def test_a_changed_work_is_refused(tmp_path: Path) -> None:
    """Its hash is in the message, so a worker does not unpickle a file that another program wrote."""
    shared = SharedFolder.begin(str(tmp_path))
    (tmp_path / "work").write_bytes(pickle.dumps("another"))
    with pytest.raises(pybpe.errors.WorkerError, match="has been changed"):
        executors._written(shared, "0" * 64, [])


def test_a_dead_worker(corpus: Path, tmp_path: Path) -> None:
    """A pool breaks when a worker dies. The next call resumes."""
    tok, out = small_tokenizer(), tmp_path / "out"
    pybpe.binarize(tok, corpus, tmp_path / "one")
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as executor:
        victim = executor.submit(os.getpid).result()
        seen, done = executors._await, []

        def check(path: str, size: int) -> None:
            seen(path, size)
            done.append(path)
            if len(done) == 5:
                os.kill(victim, signal.SIGKILL)
                while not executor._broken:  # until the pool notices, another worker could do all other tasks
                    time.sleep(0.01)

        executors._await = check
        try:
            with pytest.raises(
                pybpe.errors.WorkerError,
                match=r"a worker died, .*BrokenProcessPool: .* it resumes",
            ):
                pybpe.binarize(tok, corpus, out, executor=executor, workers=1)
        finally:
            executors._await = seen
    assert len(list((out / HIDDEN / "tasks").glob("*/*"))) >= 5
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as executor:
        pybpe.binarize(tok, corpus, out, executor=executor, workers=2)
    assert content(out) == content(tmp_path / "one")


class LostInTime(Executor):
    """Behaves like Dask's executor if workers die just after sending results: it mistakes each result for an error."""

    def submit(self, function: Callable[..., Any], /, *args: Any, **_: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            _, error, traceback = function(*args)
            raise error.with_traceback(traceback)
        except BaseException as error:
            future.set_exception(error)
        return future


def test_whatever_an_executor_raises_is_one_line(corpus: Path, tmp_path: Path) -> None:
    """The same call resumes."""
    pybpe.binarize(small_tokenizer(), corpus, tmp_path / "local")
    ended = ThreadPoolExecutor(1)
    ended.shutdown()
    for executor, told in ((LostInTime(), "Error: "), (ended, "RuntimeError: cannot schedule new futures")):
        for call in (pybpe.count_words, lambda *args, **more: pybpe.binarize(small_tokenizer(), *args, **more)):
            out = () if call is pybpe.count_words else (tmp_path / "out",)
            with pytest.raises(pybpe.errors.WorkerError, match=rf"a worker died, or .* \(.*{told}.*") as error:
                call(corpus, *out, executor=executor)
            assert "\n" not in str(error.value)
    pybpe.binarize(small_tokenizer(), corpus, tmp_path / "out")
    assert content(tmp_path / "out") == content(tmp_path / "local")
