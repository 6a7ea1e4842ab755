"""Workers that write the token files themselves write what one machine writes."""

import os
import pickle
import random
import shutil
import signal
import subprocess
import sys
import time
import zlib
from array import array
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from corpora import EOT, documents, jsonl, small_tokenizer
from texts import english

import pybpe
from pybpe.cli import main
from pybpe.errors import ShardTooSmallError
from pybpe.reading import planning
from pybpe.reading.input_file import InputFile
from pybpe.reading.remote.address import Address
from pybpe.reading.remote.remote_file import RemoteFile
from pybpe.tokens import parts
from pybpe.tokens.by_workers import area, bundle_file, bundles, store
from pybpe.tokens.by_workers.unknown_start import UnknownStart
from pybpe.tokens.eot import EOT_MODES, EotPlacer
from pybpe.tokens.verification import verify
from pybpe.tokens.workers import Encoding

HIDDEN = ".pybpe-unfinished"


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Documents in a text, in JSON lines, and one that is longer than a task."""
    monkeypatch.setattr(planning, "TASK_BYTES", 7000)
    monkeypatch.setattr(bundle_file, "PART_IDS", 3000)
    monkeypatch.setattr(store, "tasks_per_bundle", lambda *_: 2)
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


def content(folder: Path) -> dict[str, bytes]:
    """Returns all files below a folder."""
    return {os.path.relpath(path, folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


SETTINGS: list[dict[str, Any]] = [
    {"shard_tokens": 20_000},
    {"shard_tokens": 8000, "eot": "append", "split_by": "token", "dtype": "uint32"},
    {"shard_tokens": 30_000, "eot": "none", "splits": (1,)},
    {"format": "npy", "shard_tokens": 9000, "min_shard_tokens": 700},
    {"format": "npy", "shard_tokens": 15_000, "eot": "none", "split_by": "token"},
    {"format": "npy", "shard_tokens": 11_000, "eot": "prepend", "splits": (9, 1)},
    {"format": "raw"},
    {"format": "raw", "eot": "prepend", "split_by": "token"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_same_files(settings: dict[str, Any], corpus: Path, tmp_path: Path, threads: Executor) -> None:
    tok = small_tokenizer()
    expected = pybpe.binarize(tok, corpus, tmp_path / "one", **settings)
    found = pybpe.binarize(tok, corpus, tmp_path / "workers", **settings, executor=threads, workers_write=True)
    assert content(tmp_path / "workers") == content(tmp_path / "one") and found == expected
    assert found.tokens > 50_000 and verify(tmp_path / "workers", tok)[1] == []


@pytest.mark.parametrize("mode", EOT_MODES)
def test_unknown_start_is_right_for_both_cases(mode: str) -> None:
    """Whether the tokens begin inside a document: random ids, marks, empty segments, and ends of documents."""
    rng = random.Random(3)
    for _ in range(1500):
        segments = [
            (array("H", [rng.choice([0, 0, 5, 6]) for _ in range(rng.choice([0, 0, 1, 2, 5]))]), rng.random() < 0.3)
            for _ in range(rng.randrange(5))
        ]
        both = UnknownStart(mode, 0)
        tokens: list[int] = []
        starts: list[int] = []
        for ids, ends in segments:
            placed, some = both.place(ids, ids.count(0))
            starts += [len(tokens) + start for start in some]
            tokens += placed
            tokens += both.end_document("H") if ends else []
        for is_open in (0, 1):
            placer = EotPlacer(mode, 0, bool(is_open))
            expected: list[int] = []
            begins: list[int] = []
            for ids, ends in segments:
                placed, some = placer.place(ids, ids.count(0))
                begins += [len(expected) + start for start in some]
                expected += placed
                expected += placer.end_document("H") if ends else []
            start = both.start
            dropped = start.dropped[is_open]
            assert tokens[dropped:] == expected and start.is_open[is_open] == placer.is_open
            assert [at - dropped for at in starts[start.documents if is_open else 0 :]] == begins


@pytest.mark.filterwarnings("ignore:.*these files are empty")
def test_empty_bundles_and_sources(tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many small files, some empty, and a stream whose name is not that of the file on disk."""
    monkeypatch.setattr(planning, "TASK_BYTES", 9000)
    monkeypatch.setattr(store, "tasks_per_bundle", lambda *_: 1)
    (tmp_path / "corpus").mkdir()
    for number, text in enumerate(documents(30)):
        (tmp_path / "corpus" / f"{number:02d}.txt").write_text(text if number % 3 else "")
    for name, more in (("one", {}), ("workers", {"executor": threads, "workers_write": True})):
        pipe = tmp_path / "pipe"
        os.mkfifo(pipe)
        writer = subprocess.Popen(["sh", "-c", f"echo Some text > '{pipe}'"])
        pybpe.binarize(
            small_tokenizer(), [tmp_path / "corpus", pipe], tmp_path / name, splits=(9, 1), min_shard_tokens=0, **more
        )
        writer.wait()
        pipe.unlink()
    assert content(tmp_path / "workers") == content(tmp_path / "one")


class Counting(ThreadPoolExecutor):
    """Counts the bytes of messages, as another machine would get and send them."""

    def __init__(self) -> None:
        super().__init__(1)
        self.sizes: list[tuple[int, int]] = []

    def submit(self, function: Any, /, *args: Any) -> Any:  # type: ignore[override]
        future = super().submit(function, *pickle.loads(sent := pickle.dumps(args)))
        future.add_done_callback(lambda done: self.sizes.append((len(sent), len(pickle.dumps(done.result())))))
        return future


def test_messages_are_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the tokenizer nor tokens are in them, nor the names of many small files."""
    monkeypatch.setattr(store, "tasks_per_bundle", lambda *_: 20)
    (tmp_path / "corpus").mkdir()
    for number in range(400):
        (tmp_path / "corpus" / f"{number:06d}-with-a-long-name.txt").write_text(f"Text {number}. " * 20)
    with Counting() as executor:
        pybpe.binarize(
            small_tokenizer(), tmp_path / "corpus", tmp_path / "small", executor=executor, workers_write=True
        )
        monkeypatch.setattr(planning, "TASK_BYTES", 10_000)
        (tmp_path / "large.txt").write_text(EOT.join(documents(900)))
        pybpe.binarize(
            small_tokenizer(), tmp_path / "large.txt", tmp_path / "out", executor=executor, workers_write=True
        )
    assert len(executor.sizes) > 8 and max(map(max, executor.sizes)) <= 1000


def test_refusals(corpus: Path, tmp_path: Path, threads: Executor, capsys: pytest.CaptureFixture[str]) -> None:
    tok, out = small_tokenizer(), tmp_path / "out"
    with pytest.raises(pybpe.errors.ArgumentError, match="workers_write needs an executor"):
        pybpe.binarize(tok, corpus, out, workers_write=True)
    with pytest.raises(pybpe.errors.UnsupportedError, match="workers can write llmc, npy and raw files, not megatron"):
        pybpe.binarize(tok, corpus, out, format="megatron", executor=threads, workers_write=True)
    with pytest.raises(ShardTooSmallError):
        pybpe.binarize(tok, corpus, out, min_shard_tokens=10**6, executor=threads, workers_write=True)
    assert content(tmp_path / "out") == {}
    tok.save(tmp_path / "tok.json")
    assert main(["binarize", "-t", str(tmp_path / "tok.json"), str(corpus), "-o", str(out), "--workers-write"]) == 2
    assert "--workers-write needs --dask" in capsys.readouterr().err


def _in_a_folder_of_its_own() -> None:
    """Makes a worker see another folder under the name of the output folder, as on a machine that does not share it."""
    area.Area.path = lambda self, name: os.path.join(self.folder + "-elsewhere", name)  # type: ignore[method-assign]


def _writing_elsewhere() -> None:
    """Makes a worker's files invisible to the client, as when it sees a copy of the folder."""
    bundle_file.Output = lambda path: OUTPUT(path + "-elsewhere")  # type: ignore[assignment, misc]


OUTPUT = bundle_file.Output


@pytest.mark.parametrize(
    "initializer, message",
    [
        (_in_a_folder_of_its_own, "this worker does not see the files of the run there"),
        (_writing_elsewhere, "a worker wrote [0-9]+ bytes, but this machine does not see it"),
    ],
)
def test_a_folder_that_is_not_shared(
    initializer: Any, message: str, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(area, "_PATIENCE_SECONDS", 0.0)
    with ProcessPoolExecutor(1, mp_context=get_context("fork"), initializer=initializer) as executor:
        with pytest.raises(pybpe.errors.WorkerError, match=message):
            pybpe.binarize(small_tokenizer(), corpus, tmp_path / "out", executor=executor, workers_write=True)
    assert not list((tmp_path / "out").glob("*.bin"))


# Kills itself and its workers in one of some places, when the output has a given number of files of a given name.
RUN = """
import os, sys, pybpe
from pathlib import Path
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pybpe.tokens import run
from pybpe.tokens.by_workers import area, bundle_file, store
from pybpe.reading import planning
from pybpe.reading.input_file import InputFile
from pybpe.reading.remote.address import Address
from pybpe.reading.remote.remote_file import RemoteFile
planning.TASK_BYTES, bundle_file.PART_IDS, run.CHECKPOINT_SECONDS = 7000, 3000, 0.0
store.tasks_per_bundle = lambda *_: 1 + int(sys.argv[4])
store._PUBLISHING = 1

def dying(function):
    def call(*given):
        if len(list(Path(sys.argv[3]).glob(sys.argv[5]))) >= int(sys.argv[6]):
            os.killpg(0, 9)
        return function(*given)
    return call

store.give_name, store.read_record = dying(store.give_name), dying(store.read_record)
area.Area.check_visible = dying(area.Area.check_visible)
if __name__ == "__main__":
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as executor:
        pybpe.binarize(
            pybpe.Tokenizer.from_file(sys.argv[1]), sys.argv[2], sys.argv[3], shard_tokens=6000, executor=executor,
            workers_write=True, force=True, progress=False,
        )
"""


def test_a_killed_client_resumes(corpus: Path, tmp_path: Path) -> None:
    """It is killed while bundles are made, while shards are written, and while they get their names; each time the
    next run makes bundles of a different size."""
    tok, out = small_tokenizer(), tmp_path / "out"
    pybpe.binarize(tok, corpus, tmp_path / "one", shard_tokens=6000)
    pybpe.binarize(tok, corpus, out, shard_tokens=50_000)  # an older result, which must not remain
    tok.save(tmp_path / "tok.json")

    def killed(number: int, pattern: str, least: int) -> list[str]:
        arguments = map(str, (tmp_path / "tok.json", corpus, out, number, pattern, least))
        client = subprocess.run([sys.executable, "-c", RUN, *arguments], start_new_session=True, check=False)
        assert client.returncode == -signal.SIGKILL
        return [path.name for path in out.glob("*.bin")]

    older = sorted(path.name for path in out.glob("*.bin"))
    for number, pattern in enumerate(
        ("bundle-[2-9]*", "bundle-1[2-9]*", "shard-train-000001-*", "shard-train-000004-*.json")
    ):
        assert sorted(killed(number, f"{HIDDEN}/workers-*/{pattern}", 1)) == older
    assert older[0] in killed(0, "*_train_*.bin", 5)
    with ThreadPoolExecutor(1) as executor:
        pybpe.binarize(tok, corpus, out, shard_tokens=6000, executor=executor, workers_write=True, force=True)
    assert content(out) == content(tmp_path / "one")


def test_another_mode_or_other_settings_start_over(corpus: Path, tmp_path: Path, threads: Executor) -> None:
    tok, out = small_tokenizer(), tmp_path / "out"

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    def interrupted(**settings: Any) -> None:
        publish, store.SharedStore.publish = store.SharedStore.publish, die  # type: ignore[assignment, method-assign]
        try:
            with pytest.raises(KeyboardInterrupt):
                pybpe.binarize(tok, corpus, out, executor=threads, workers_write=True, **settings)
        finally:
            store.SharedStore.publish = publish  # type: ignore[method-assign]

    interrupted(shard_tokens=20_000)
    interrupted(shard_tokens=30_000)
    assert len(list((out / HIDDEN).glob("workers-*"))) == 1
    pybpe.binarize(tok, corpus, out, shard_tokens=20_000)
    pybpe.binarize(tok, corpus, tmp_path / "one", shard_tokens=20_000)
    assert content(out) == content(tmp_path / "one")


def test_a_damaged_log_or_bundle(corpus: Path, tmp_path: Path, threads: Executor) -> None:
    """What follows a damaged line is made again. A damaged bundle is an error."""
    tok, out = small_tokenizer(), tmp_path / "out"
    pybpe.binarize(tok, corpus, tmp_path / "one")
    write, store.write_shard = store.write_shard, None  # type: ignore[assignment]
    try:
        with pytest.raises(TypeError):
            pybpe.binarize(tok, corpus, out, executor=threads, workers_write=True)
    finally:
        store.write_shard = write
    (hidden,) = (out / HIDDEN).glob("workers-*")
    lines = (out / HIDDEN / "parts.log").read_bytes().splitlines(keepends=True)
    assert len(lines) - 2 == len(list(hidden.glob("bundle-*"))) > 8  # the first line and the last one are of the run
    for damaged in (lines[4][:-5], b"[1, 2]\n", b"\0" * 50 + b"\n", lines[6]):
        shutil.rmtree(tmp_path / "again", ignore_errors=True)
        shutil.copytree(out, tmp_path / "again")
        log = tmp_path / "again" / HIDDEN / "parts.log"
        log.write_bytes(b"".join(lines[:4]) + damaged + b"".join(lines[5:]))
        assert len(parts._LogFile(str(log)).parts) == 3
        pybpe.binarize(tok, corpus, tmp_path / "again", executor=threads, workers_write=True)
        assert content(tmp_path / "again") == content(tmp_path / "one")

    first = min(hidden.glob("bundle-*"))
    whole = first.read_bytes()
    for wrong in (whole[:-1], whole[:100], b"", None):
        if wrong is None:
            first.unlink()
        else:
            first.write_bytes(wrong)
        with pytest.raises(pybpe.errors.FileError if wrong is None else pybpe.errors.FormatError, match=first.name):
            bundle_file.BundleFile(str(first), "H")


def test_a_bad_record_costs_no_finished_work(corpus: Path, tmp_path: Path, threads: Executor) -> None:
    """After the file was fixed, the run resumes with the bundles before it."""
    tok, out = small_tokenizer(), tmp_path / "out"
    (corpus / "d.jsonl").write_bytes(b'{"text": null}\n' + jsonl(documents(60)))
    with pytest.raises(
        pybpe.errors.FormatError, match=r"d.jsonl.*Finished work is kept: fix the file and run the same"
    ):
        pybpe.binarize(tok, corpus, out, executor=threads, workers_write=True)
    (hidden,) = (out / HIDDEN).glob("workers-*")
    times = {path.name: path.stat().st_mtime_ns for path in hidden.glob("bundle-*")}
    assert len(times) > 8
    (corpus / "d.jsonl").write_bytes(jsonl(documents(60)))
    seen: dict[str, int] = {}
    sizes_of = store.sizes_of

    def look(*given: Any) -> Any:
        seen.update({path.name: path.stat().st_mtime_ns for path in hidden.glob("bundle-*")})
        return sizes_of(*given)

    store.sizes_of = look
    try:
        pybpe.binarize(tok, corpus, out, executor=threads, workers_write=True)
    finally:
        store.sizes_of = sizes_of
    names = [name for name in times if seen.get(name) == times[name]]
    assert len(names) >= len(times) - 3 and len(seen) > len(times)
    pybpe.binarize(tok, corpus, tmp_path / "one")
    assert content(out) == content(tmp_path / "one")


def test_bad_records_are_skipped(corpus: Path, tmp_path: Path, threads: Executor) -> None:
    lines = jsonl(documents(150)).splitlines(keepends=True)
    bad = [line if number % 9 else b'{"text": 5}\n' for number, line in enumerate(lines)]
    (corpus / "b.jsonl").write_bytes(b"".join(bad))
    for name, more in (("one", {}), ("workers", {"executor": threads, "workers_write": True})):
        with pytest.warns(pybpe.errors.PybpeWarning, match="17 of 150 records are not valid"):
            pybpe.binarize(small_tokenizer(), corpus, tmp_path / name, on_error="skip", **more)
    assert content(tmp_path / "workers") == content(tmp_path / "one")
    assert len((tmp_path / "one" / "skipped.jsonl").read_bytes().splitlines()) == 17


def test_an_input_that_changes_while_shards_are_published(corpus: Path, tmp_path: Path, threads: Executor) -> None:
    """Its bundles are made again, and so are those before it that were removed; no shard of before remains."""
    tok, out = small_tokenizer(), tmp_path / "out"
    give_name, given = store.give_name, []

    def die(*names: str) -> None:
        give_name(*names)
        given.append(names)
        if len(given) == 6:
            raise KeyboardInterrupt

    store.give_name = die
    try:
        with pytest.raises(KeyboardInterrupt):
            pybpe.binarize(tok, corpus, out, executor=threads, workers_write=True, shard_tokens=4000)
    finally:
        store.give_name = give_name
    assert len(list(out.glob("*_train_*.bin"))) >= 6
    text = (corpus / "c.txt").read_text()
    for change in (text[:50_000], text[:20_000]):
        (corpus / "c.txt").write_text(change)
        with pytest.warns(pybpe.errors.PybpeWarning, match="replacing"):
            pybpe.binarize(tok, corpus, out, executor=threads, workers_write=True, shard_tokens=4000, force=True)
        shutil.rmtree(tmp_path / "one", ignore_errors=True)
        pybpe.binarize(tok, corpus, tmp_path / "one", shard_tokens=4000)
        assert content(out) == content(tmp_path / "one")


def test_a_changed_context_is_refused(tmp_path: Path) -> None:
    """Its hash is in the message, so a worker does not unpickle a file that another program wrote."""
    shared = area.make_area(str(tmp_path), area.Context(None, None))  # type: ignore[arg-type]
    (tmp_path / shared.context).write_bytes(pickle.dumps("another"))
    with pytest.raises(pybpe.errors.WorkerError, match="has been changed"):
        shared.load()


def test_a_dead_worker(corpus: Path, tmp_path: Path) -> None:
    """A pool breaks when a worker dies. The next call resumes."""
    tok, out = small_tokenizer(), tmp_path / "out"
    pybpe.binarize(tok, corpus, tmp_path / "one")
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as executor:
        victim = executor.submit(os.getpid).result()
        seen, done = area.Area.check_visible, []

        def check(self: area.Area, name: str, size: int) -> None:
            seen(self, name, size)
            done.append(name)
            if len(done) == 3:
                os.kill(victim, signal.SIGKILL)
                while not executor._broken:  # until the pool notices, another worker could do all other tasks
                    time.sleep(0.01)

        area.Area.check_visible = check  # type: ignore[method-assign]
        try:
            with pytest.raises(pybpe.errors.WorkerError, match="a worker process died"):
                pybpe.binarize(tok, corpus, out, executor=executor, workers_write=True, workers=1)
        finally:
            area.Area.check_visible = seen  # type: ignore[method-assign]
    assert len((out / HIDDEN / "parts.log").read_bytes().splitlines()) > 3
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as executor:
        pybpe.binarize(tok, corpus, out, executor=executor, workers_write=True, workers=2)
    assert content(out) == content(tmp_path / "one")


def test_the_disk_never_has_all_bundles_and_all_shards(
    corpus: Path, tmp_path: Path, threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bundle is removed when no shard needs it any longer."""
    left: list[tuple[int, int]] = []
    seen = area.Area.check_visible

    def check(self: area.Area, name: str, size: int) -> None:
        seen(self, name, size)
        names = os.listdir(self.folder)
        left.append((sum(n.startswith("bundle-") for n in names), sum(n.endswith(".json") for n in names)))

    monkeypatch.setattr(area.Area, "check_visible", check)
    monkeypatch.setattr(store, "most_pending", lambda _: 2)
    pybpe.binarize(
        small_tokenizer(), corpus, tmp_path / "o", shard_tokens=6000, splits=(1,), executor=threads, workers_write=True
    )
    bundles = max(count for count, _ in left)
    assert bundles > 8 and left[-1][0] <= 3 and max(a + b // 2 for a, b in left) <= bundles + 4


def test_the_secrets_of_urls_are_in_no_file(tmp_path: Path) -> None:
    """Long lists of ranges go through a file, but not those of URLs, since others could read a signature there."""

    def orders(remote: bool) -> list[bundles.BundleOrder]:
        names = [f"https://example.com/{random.Random(i).getrandbits(256):x}?signature=s3cr3t{i}" for i in range(100)]
        files = [InputFile(name, 10, remote=RemoteFile(Address.parse(name), 10) if remote else None) for name in names]
        plan = SimpleNamespace(tasks=lambda _: iter([[planning.PlannedRange(f, 0, 10, None, True)] for f in files]))
        work = Encoding(plan, None, {file.path: 0 for file in files})  # type: ignore[arg-type]
        (tmp_path / "area").mkdir(exist_ok=True)
        return list(bundles.bundle_orders(work, area.Area(str(tmp_path / "area"), "", ""), 0, 100))

    (order,) = orders(remote=True)
    assert order.ranges is not None and b"s3cr3t99" in zlib.decompress(order.ranges)
    assert os.listdir(tmp_path / "area") == []
    (order,) = orders(remote=False)
    assert order.ranges is None and os.listdir(tmp_path / "area") == [order.kept]
