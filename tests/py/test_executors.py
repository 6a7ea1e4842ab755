"""binarize with an executor, whose workers write the token files, writes what one machine writes."""

import os
import pickle
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, content, documents, jsonl, small_tokenizer
from texts import english

import pybpe
from pybpe.errors import ShardTooSmallError
from pybpe.reading import planning
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
    return folder


@pytest.fixture
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


SETTINGS: list[dict[str, Any]] = [
    {"shard_tokens": 20_000},
    {"shard_tokens": 8000, "eot": "append", "split_by": "token", "dtype": "uint32"},
    {"shard_tokens": 30_000, "eot": "none", "splits": (1,)},
    {"format": "npy", "shard_tokens": 9000, "min_shard_tokens": 700},
    {"format": "npy", "shard_tokens": 15_000, "eot": "none", "split_by": "token"},
    {"format": "npy", "shard_tokens": 11_000, "eot": "prepend", "splits": (9, 1)},
    {"format": "raw"},
    {"format": "raw", "eot": "prepend", "split_by": "token"},
    {"format": "megatron"},
    {"format": "megatron", "eot": "prepend", "split_by": "token"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_same_files(
    settings: dict[str, Any], corpus: Path, tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    tok = small_tokenizer()
    expected = pybpe.binarize(tok, corpus, tmp_path / "one", **settings)
    monkeypatch.setattr(store, "_MARK_TOKENS", 1000)
    found = pybpe.binarize(tok, corpus, tmp_path / "workers", **settings, executor=threads)
    assert content(tmp_path / "workers") == content(tmp_path / "one") and found == expected
    assert found.tokens > 50_000 and verify(tmp_path / "workers", tok)[1] == []


@pytest.mark.parametrize("eot", ["prepend", "append", "none"])
def test_parts_that_begin_after_a_mark(
    eot: str, tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plan says that they begin inside a document, so they are made twice."""
    monkeypatch.setattr(planning, "TASK_BYTES", 500)
    monkeypatch.setattr(shared_store, "tasks_per_part", lambda *_: 1)
    made, make_part = [], shared_store.make_part
    monkeypatch.setattr(shared_store, "make_part", lambda order: made.append(order.plan) or make_part(order))
    (tmp_path / "in.txt").write_text(EOT.join(" a b c"[: n % 7] for n in range(3000)), newline="")
    more: dict[str, Any] = {"split_by": "token", "splits": (1,), "eot": eot}
    pybpe.binarize(small_tokenizer(), tmp_path / "in.txt", tmp_path / "one", **more)
    pybpe.binarize(small_tokenizer(), tmp_path / "in.txt", tmp_path / "workers", **more, executor=threads)
    assert content(tmp_path / "workers") == content(tmp_path / "one")
    assert 50 < len(set(made)) < len(made) < 2 * len(set(made))


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


def test_another_mode_or_other_settings_start_over(corpus: Path, tmp_path: Path, threads: Executor) -> None:
    tok, out = small_tokenizer(), tmp_path / "out"

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    def interrupted(**settings: Any) -> None:
        publish, shared_store.SharedStore.publish = shared_store.SharedStore.publish, die  # type: ignore[assignment, method-assign]
        try:
            with pytest.raises(KeyboardInterrupt):
                pybpe.binarize(tok, corpus, out, executor=threads, **settings)
        finally:
            shared_store.SharedStore.publish = publish  # type: ignore[method-assign]

    interrupted(shard_tokens=20_000)
    interrupted(shard_tokens=30_000)
    assert len(list((out / HIDDEN).glob("workers-*"))) == 1
    pybpe.binarize(tok, corpus, out, shard_tokens=20_000)
    pybpe.binarize(tok, corpus, tmp_path / "one", shard_tokens=20_000)
    assert content(out) == content(tmp_path / "one")


def test_a_damaged_log_or_part(
    corpus: Path, tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What follows a damaged line is made again. If a part is damaged, so is everything."""
    tok, out = small_tokenizer(), tmp_path / "out"
    pybpe.binarize(tok, corpus, tmp_path / "one")
    with monkeypatch.context() as patch:
        patch.setattr(shared_store, "make_shard", None)
        with pytest.raises(TypeError):
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


def test_a_bad_record_costs_no_finished_work(corpus: Path, tmp_path: Path, threads: Executor) -> None:
    """After the file was fixed, the run resumes with the parts before it."""
    tok, out = small_tokenizer(), tmp_path / "out"
    (corpus / "d.jsonl").write_bytes(b'{"text": null}\n' + jsonl(documents(60)))
    with pytest.raises(
        pybpe.errors.FormatError, match=r"d.jsonl.*Finished work is kept: fix the file and run the same"
    ):
        pybpe.binarize(tok, corpus, out, executor=threads)
    (hidden,) = (out / HIDDEN).glob("workers-*")
    times = {path.name: path.stat().st_mtime_ns for path in hidden.glob("part-*")}
    assert len(times) > 8
    (corpus / "d.jsonl").write_bytes(jsonl(documents(60)))
    seen: dict[str, int] = {}
    sizes_of = store.sizes_of

    def look(*given: Any) -> Any:
        seen.update({path.name: path.stat().st_mtime_ns for path in hidden.glob("part-*")})
        return sizes_of(*given)

    store.sizes_of = look
    try:
        pybpe.binarize(tok, corpus, out, executor=threads)
    finally:
        store.sizes_of = sizes_of
    names = [name for name in times if seen.get(name) == times[name]]
    assert len(names) >= len(times) - 3 and len(seen) > len(names)
    pybpe.binarize(tok, corpus, tmp_path / "one")
    assert content(out) == content(tmp_path / "one")


def test_bad_records_are_skipped(corpus: Path, tmp_path: Path, threads: Executor) -> None:
    lines = jsonl(documents(150)).splitlines(keepends=True)
    bad = [line if number % 9 else b'{"text": 5}\n' for number, line in enumerate(lines)]
    (corpus / "b.jsonl").write_bytes(b"".join(bad))
    for name, more in (("one", {}), ("workers", {"executor": threads})):
        with pytest.warns(pybpe.errors.PybpeWarning, match="17 of 150 records are not valid"):
            pybpe.binarize(small_tokenizer(), corpus, tmp_path / name, on_error="skip", **more)
    assert content(tmp_path / "workers") == content(tmp_path / "one")
    assert len((tmp_path / "one" / "skipped.jsonl").read_bytes().splitlines()) == 17


def test_an_input_that_changes_while_shards_are_published(corpus: Path, tmp_path: Path, threads: Executor) -> None:
    """Its parts are made again, and so are those before it that were removed; no shard of before remains."""
    tok, out = small_tokenizer(), tmp_path / "out"
    give_name, given = store.give_name, list[bool]()

    def die(*names: str) -> None:
        give_name(*names)
        given.append(Path(names[1]).parent == out)
        if sum(given) == 6:
            raise KeyboardInterrupt

    store.give_name = die
    try:
        with pytest.raises(KeyboardInterrupt):
            pybpe.binarize(tok, corpus, out, executor=threads, shard_tokens=4000)
    finally:
        store.give_name = give_name
    assert len(list(out.glob("*_train_*.bin"))) >= 6
    text = (corpus / "c.txt").read_text()
    for change in (text[:50_000], text[:20_000]):
        (corpus / "c.txt").write_text(change)
        with pytest.warns(pybpe.errors.PybpeWarning, match="replacing"):
            pybpe.binarize(tok, corpus, out, executor=threads, shard_tokens=4000, force=True)
        shutil.rmtree(tmp_path / "one", ignore_errors=True)
        pybpe.binarize(tok, corpus, tmp_path / "one", shard_tokens=4000)
        assert content(out) == content(tmp_path / "one")


def test_a_changed_context_is_refused(tmp_path: Path) -> None:
    """Its hash is in the message, so a worker does not unpickle a file that another program wrote."""
    shared = SharedFolder.begin(str(tmp_path))
    (tmp_path / "context").write_bytes(pickle.dumps("another"))
    with pytest.raises(pybpe.errors.WorkerError, match="has been changed"):
        shared_store.make_part(shared_store.Order(shared, "0" * 64, (), "", ()))


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
            with pytest.raises(pybpe.errors.WorkerError, match="a worker process died"):
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
    monkeypatch.setattr(shared_store, "most_pending", lambda _: 2)
    pybpe.binarize(small_tokenizer(), corpus, tmp_path / "o", shard_tokens=6000, splits=(1,), executor=threads)
    most = max(count for count, _ in left)
    assert most > 8 and left[-1][0] <= 3 and max(parts + shards // 2 for parts, shards in left) <= most + 4
