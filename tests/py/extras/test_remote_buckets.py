"""Inputs from S3, against moto's server, and folders and globs against fsspec's file system in memory: the same files,
order and tokens as on a local disk."""

import gzip
import itertools
import json
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

fsspec = pytest.importorskip("fsspec")

from corpora import EOT, documents, jsonl, small_tokenizer  # noqa: E402
from texts import english  # noqa: E402

import pybpe  # noqa: E402
from pybpe.errors import FileChangedError, FileError  # noqa: E402
from pybpe.reading import planning  # noqa: E402
from pybpe.reading.files import corpus_files, input_files  # noqa: E402
from pybpe.reading.remote import stream, transfer  # noqa: E402

# ----------------------------------------------------------------------------------------------------
# Folders and globs


@pytest.fixture
def memory() -> Iterator[Any]:
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()


NAMES = ["a", "b", "ab", "a.txt", "b.txt", ".hidden", "c1.jsonl", "c2.jsonl.gz", "d[1].txt", "z"]
PATTERNS = [
    *("", "*", "*.txt", "a*", "?.txt", "[ab].txt", "d[[]1].txt", ".h*", "**", "**/*.txt", "a/**/*.txt", "*/*"),
    *("a/**", "b/*.jsonl", "*/", "nothing*", "**/a/*", "ab", "a.txt", "z/**/z/*"),
]


def tree(seed: int) -> set[str]:
    """Returns the paths of some files, none of which is also a folder."""
    rng = random.Random(seed)
    files: set[str] = set()
    for _ in range(25):
        path = "/".join(rng.choice(NAMES) for _ in range(rng.randint(1, 4)))
        folders = {path.rsplit("/", n)[0] for n in range(1, path.count("/") + 1)}
        if not files & folders and not any(file.startswith(path + "/") for file in files):
            files.add(path)
    return files


@pytest.mark.parametrize("seed", range(12))
def test_folders_and_globs_mean_the_same_as_on_a_disk(memory: Any, tmp_path: Path, seed: int) -> None:
    for name in tree(seed):
        path = tmp_path / "top" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
        memory.pipe(f"/top/{name}", b"x")

    def found(base: str, pattern: str) -> list[str] | str:
        try:
            paths = input_files(f"{base}/{pattern}" if pattern else base)
        except (pybpe.errors.ArgumentError, FileError) as error:
            return "nothing" if "no files found" in str(error) else type(error).__name__
        # Python's glob gives a file with a / after it for a/**, which no one can open.
        return [path.removeprefix(base) for path in paths if not path.endswith("/")] or "nothing"

    for pattern in PATTERNS:
        local, remote = found(str(tmp_path / "top"), pattern), found("memory://top", pattern)
        if local == ["/" + pattern] and not (tmp_path / "top" / pattern).exists():
            local = "FileMissingError"  # a local path is only looked at when it is opened
        assert remote == local, pattern


def test_own_files_in_a_bucket_are_left_out(memory: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(EOT.join(documents(50)).encode())
    tok = small_tokenizer()
    pybpe.binarize(tok, tmp_path / "a.txt", tmp_path, splits=(1,), min_shard_tokens=0, name="n")
    tok.save(tmp_path / "tokenizer.json")
    for path in tmp_path.iterdir():
        if path.is_file():
            memory.pipe(f"/top/{path.name}", path.read_bytes())
    memory.pipe("/top/.hidden/x.txt", b"x")
    assert len(memory.find("/top")) == 5
    assert input_files("memory://top") == ["memory://top/a.txt"]


# ----------------------------------------------------------------------------------------------------
# S3


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


_numbers = itertools.count()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns fsspec's S3 file system, whose `name` is an empty bucket."""
    for name, value in (("AWS_ACCESS_KEY_ID", "HUSH"), ("AWS_SECRET_ACCESS_KEY", "HUSH"), ("AWS_REGION", "us-east-1")):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setattr(transfer, "FIRST_WAIT", 0.001)
    system = fsspec.filesystem("s3")
    system.name = f"bucket{next(_numbers)}"
    system.mkdir(system.name)
    return system


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(planning, "TASK_BYTES", 50_000)
    monkeypatch.setattr(stream, "PART_BYTES", 30_000)
    folder = tmp_path / "corpus"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_bytes(EOT.join(documents(200)).encode())
    (folder / "sub" / "b.jsonl").write_bytes(jsonl(documents(300)))
    (folder / "c.txt").write_text(english()[:200_000], encoding="utf-8", newline="")
    (folder / "sub" / "d.jsonl.gz").write_bytes(gzip.compress(jsonl(documents(100))))
    return folder


def put(bucket: Any, folder: Path) -> str:
    """Copies a folder to the bucket. Returns its URL."""
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.pipe(f"{bucket.name}/corpus/{path.relative_to(folder)}", path.read_bytes())
    return f"s3://{bucket.name}/corpus"


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".bin"}


@pytest.mark.parametrize("split_by", ["hash", "token"])
def test_binarize(bucket: Any, corpus: Path, tmp_path: Path, split_by: str) -> None:
    tok, url = small_tokenizer(), put(bucket, corpus)
    pybpe.binarize(tok, corpus, tmp_path / "local", split_by=split_by)
    for workers in (1, 3):
        pybpe.binarize(tok, url, tmp_path / f"remote{workers}", split_by=split_by, workers=workers)
        assert shards(tmp_path / f"remote{workers}") == shards(tmp_path / "local")
    for path in (tmp_path / "remote1").rglob("*"):
        assert b"HUSH" not in path.read_bytes()


def test_workers_in_other_processes(bucket: Any, corpus: Path, tmp_path: Path) -> None:
    tok, url = small_tokenizer(), put(bucket, corpus)
    pybpe.binarize(tok, corpus, tmp_path / "local")
    pybpe.corpus.clean(corpus, tmp_path / "local.jsonl", workers=2)
    with ProcessPoolExecutor(2) as executor:
        pybpe.binarize(tok, url, tmp_path / "remote", executor=executor)
        counts = pybpe.count_words(url + "/**/*.jsonl*", executor=executor)
    pybpe.corpus.clean(url, tmp_path / "remote.jsonl", workers=2)  # its processes are forked
    assert shards(tmp_path / "remote") == shards(tmp_path / "local")
    assert counts.to_dict() == pybpe.count_words(corpus / "sub").to_dict()
    assert (tmp_path / "remote.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()


def test_parquet(bucket: Any, corpus: Path, tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = pyarrow.table({"text": documents(500), "number": list(range(500))})
    parquet.write_table(texts, corpus / "e.parquet", row_group_size=40)
    tok, url = small_tokenizer(), put(bucket, corpus)
    pybpe.binarize(tok, corpus, tmp_path / "local")
    pybpe.binarize(tok, url, tmp_path / "remote", workers=2)
    assert shards(tmp_path / "remote") == shards(tmp_path / "local")


@pytest.mark.parametrize("by_executor", [False, True])
def test_an_object_that_changes_is_an_error(
    bucket: Any, corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, by_executor: bool
) -> None:
    path, data = f"{bucket.name}/a.txt", english()[:400_000].encode()
    bucket.pipe(path, data)
    received, before = stream.fill, itertools.count()

    def fill(*args: Any) -> None:
        received(*args)
        if next(before) == 3:
            bucket.pipe(path, data.swapcase())

    monkeypatch.setattr(stream, "fill", fill)
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(FileChangedError, match=f"s3://{path}: this file changed after this run first looked at it"):
            pybpe.binarize(
                small_tokenizer(), f"s3://{path}", tmp_path / "out", executor=executor if by_executor else None
            )


def test_a_killed_run_resumes(bucket: Any, tmp_path: Path) -> None:
    data = b"".join(b'{"text": "some text, number %d"}\n' % i for i in range(40_000))
    bucket.pipe(f"{bucket.name}/a.jsonl", data)
    small_tokenizer().save(tmp_path / "tok.json")
    out, url = tmp_path / "out", f"s3://{bucket.name}/a.jsonl"
    code = (
        "import os, sys; from pybpe.reading import planning; planning.TASK_BYTES = 100_000\n"
        "from pybpe.tokens import parts, run; run.CHECKPOINT_SECONDS = 0.0\n"
        "from pybpe.cli import main; save = parts.PartsLog.save\n"
        "def saved(self):\n"
        "    save(self); self.last.tasks == int(os.environ['DIE']) and os.kill(os.getpid(), 9)\n"
        "parts.PartsLog.save = saved\n"
        "sys.exit(main(sys.argv[1:]))"
    )

    def run(folder: Path, die: str) -> int:
        command = [sys.executable, "-c", code, "binarize", "-t", tmp_path / "tok.json", "-o", folder, url, "--quiet"]
        return subprocess.run(command, env={**__import__("os").environ, "DIE": die}, check=False).returncode

    assert run(out, "5") == -signal.SIGKILL
    assert json.loads((out / ".pybpe-unfinished" / "parts.log").read_bytes().split(b"\n")[-2][9:])["tasks"] == 5
    assert run(out, "3") == 0  # it never saves task 3 again
    assert run(tmp_path / "whole", "-1") == 0
    assert shards(out) == shards(tmp_path / "whole") != {}


def test_errors(bucket: Any) -> None:
    for url in (f"s3://{bucket.name}/nothing", "s3://no-such-bucket/x"):
        with pytest.raises(FileNotFoundError, match=f"{url}: cannot be opened: there is no such file"):
            corpus_files(url)
    with pytest.raises(pybpe.errors.ArgumentError, match="no files found"):
        corpus_files(f"s3://{bucket.name}/*.zst")
