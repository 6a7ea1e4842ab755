"""binarize with an executor, whose workers write the token files, writes what one machine writes."""

import os
import pickle
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, content, documents, jsonl, small_tokenizer, write_corpus
from texts import english

import pybpe
from pybpe.errors import ShardTooSmallError
from pybpe.reading import planning
from pybpe.support import remote
from pybpe.support.remote import SharedFolder
from pybpe.tokens import run, shared_store, store
from pybpe.tokens.verification import verify

HIDDEN = ".pybpe-unfinished"


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Documents in a text, in JSON lines, and one that is longer than a task."""
    monkeypatch.setattr(planning, "TASK_BYTES", 7000)
    monkeypatch.setattr(shared_store, "tasks_per_part", lambda *_: 2)
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
    monkeypatch.setattr(store, "_MARK_TOKENS", 1000)
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
def test_parts_that_begin_after_a_mark(
    eot: str, tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan says that they begin inside a document, so they are made twice."""
    monkeypatch.setattr(planning, "TASK_BYTES", 500)
    monkeypatch.setattr(shared_store, "tasks_per_part", lambda *_: 1)
    made, make_part = [], shared_store.make_part
    monkeypatch.setattr(shared_store, "make_part", lambda order: made.append(order.plan) or make_part(order))
    (tmp_path / "in.txt").write_text(EOT.join(" a b c"[: n % 7] for n in range(1000)), newline="")
    more: dict[str, Any] = {"split_by": "token", "splits": (1,), "eot": eot}
    pybpe.binarize(small_tokenizer(), tmp_path / "in.txt", tmp_path / "one", **more)
    pybpe.binarize(small_tokenizer(), tmp_path / "in.txt", tmp_path / "workers", **more, executor=threads)
    assert content(tmp_path / "workers") == content(tmp_path / "one")
    assert 15 < len(set(made)) < len(made) < 2 * len(set(made))


def test_encode_files(corpus: Path, tmp_path: Path, threads: Executor) -> None:
    for eot in ("keep", "prepend", "append", "none"):
        tokens = pybpe.encode_files(small_tokenizer(), corpus, tmp_path / "one.npy", eot=eot)
        assert pybpe.encode_files(small_tokenizer(), corpus, tmp_path / "many.npy", eot=eot, executor=threads) == tokens
        assert (tmp_path / "many.npy").read_bytes() == (tmp_path / "one.npy").read_bytes()


@pytest.mark.filterwarnings("ignore:.*these files are empty")
def test_empty_bundles_and_sources(tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small files, some empty, and a stream whose name is not that of the file on disk."""
    monkeypatch.setattr(planning, "TASK_BYTES", 9000)
    monkeypatch.setattr(shared_store, "tasks_per_part", lambda *_: 1)
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
    assert content(tmp_path / "out") == {}


def _in_a_folder_of_its_own() -> None:
    """Makes a worker see another folder under the name of the output folder, as on a machine that does not share it."""
    SharedFolder.is_seen = lambda self: False  # type: ignore[method-assign]


def _writing_elsewhere() -> None:
    """Makes a worker's files invisible to this process, as when it sees a copy of the folder."""
    new_file = SharedFolder.new_file
    SharedFolder.new_file = lambda self, name, ending="": (  # type: ignore[method-assign]
        new_file(self, name, ending).replace(HIDDEN, "elsewhere")
    )


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
    monkeypatch.setattr(shared_store, "_PATIENCE_SECONDS", 0.0)
    with ProcessPoolExecutor(1, mp_context=get_context("fork"), initializer=_writing_elsewhere) as executor:
        with pytest.raises(
            pybpe.errors.WorkerError, match="a worker wrote [0-9]+ bytes, but this machine does not see them"
        ):
            pybpe.binarize(small_tokenizer(), corpus, tmp_path / "out", executor=executor)
    assert not list((tmp_path / "out").glob("*.bin"))


def test_a_damaged_log_or_part(
    corpus: Path, tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows a damaged line is made again. If a part is damaged, so is everything."""
    tok, out = small_tokenizer(), tmp_path / "out"
    pybpe.binarize(tok, corpus, tmp_path / "one")
    with monkeypatch.context() as patch:
        patch.setattr(shared_store, "make_shard", None)
        with pytest.raises(pybpe.errors.WorkerError, match="TypeError"):
            pybpe.binarize(tok, corpus, out, executor=threads)
    (hidden,) = (out / HIDDEN).glob("workers-*")
    lines = (out / HIDDEN / "parts.log").read_bytes().splitlines(keepends=True)
    assert len(lines) - 2 == len(list(hidden.glob("part-*"))) > 8  # the first line and the last one are of the run

    def again(name: str, *log: bytes) -> Path:
        shutil.copytree(out, tmp_path / name)
        path = tmp_path / name / HIDDEN / "parts.log"
        path.write_bytes(b"".join(log))
        return path

    for number, damaged in enumerate((lines[4][:-5], b"[1, 2]\n", b"\0" * 50 + b"\n", lines[6])):
        log = again(f"{number}", *lines[:4], damaged, *lines[5:])
        assert len(run.PartsLog(str(log.parent)).parts) == 3
        pybpe.binarize(tok, corpus, tmp_path / f"{number}", executor=threads)
        assert content(tmp_path / f"{number}") == content(tmp_path / "one")

    for number, change in enumerate((lambda path: os.truncate(path, 9), os.unlink), 10):
        log = again(f"{number}", *lines)
        change(min(log.parent.glob("workers-*/part-*/train.tokens")))
        pybpe.binarize(tok, corpus, tmp_path / f"{number}", executor=threads)
        assert content(tmp_path / f"{number}") == content(tmp_path / "one")


def test_a_changed_context_is_refused(tmp_path: Path) -> None:
    """Its hash is in the message, so a worker does not unpickle a file that another program wrote."""
    shared = SharedFolder.begin(str(tmp_path))
    (tmp_path / "context").write_bytes(pickle.dumps("another"))
    with pytest.raises(pybpe.errors.WorkerError, match="has been changed"):
        shared_store.make_part(shared_store.Order((), shared, "0" * 64, "", ()))


def test_a_dead_worker(corpus: Path, tmp_path: Path) -> None:
    """A pool breaks when a worker dies. The next call resumes."""
    tok, out = small_tokenizer(), tmp_path / "out"
    pybpe.binarize(tok, corpus, tmp_path / "one")
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as executor:
        victim = executor.submit(os.getpid).result()
        seen, done = shared_store._await, []

        def check(path: str, size: int) -> None:
            seen(path, size)
            done.append(path)
            if len(done) == 13:  # two parts, each with two files of three splits
                os.kill(victim, signal.SIGKILL)
                while not executor._broken:  # until the pool notices, another worker could do all other tasks
                    time.sleep(0.01)

        shared_store._await = check
        try:
            with pytest.raises(
                pybpe.errors.WorkerError,
                match=r"a worker died, .*BrokenProcessPool: .* it resumes",
            ):
                pybpe.binarize(tok, corpus, out, executor=executor, workers=1)
        finally:
            shared_store._await = seen
    assert len((out / HIDDEN / "parts.log").read_bytes().splitlines()) > 3
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as executor:
        pybpe.binarize(tok, corpus, out, executor=executor, workers=2)
    assert content(out) == content(tmp_path / "one")


def test_the_disk_never_has_all_tokens_twice(
    corpus: Path, tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tokens of a part are removed when no shard needs them any longer."""
    left: list[tuple[int, int]] = []
    seen = shared_store._await

    def check(path: str, size: int) -> None:
        seen(path, size)
        folder = next(folder for folder in Path(path).parents if folder.name.startswith("workers-"))
        left.append((len(list(folder.glob("part-*/train.tokens"))), len(list(folder.glob("shard-*")))))

    monkeypatch.setattr(shared_store, "_await", check)
    monkeypatch.setattr(remote, "_PENDING", 2)
    pybpe.binarize(small_tokenizer(), corpus, tmp_path / "o", shard_tokens=6000, splits=(1,), executor=threads)
    most = max(count for count, _ in left)
    assert most > 8 and left[-1][0] <= 3 and max(parts + shards // 2 for parts, shards in left) <= most + 4


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
