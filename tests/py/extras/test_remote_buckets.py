"""Inputs from S3, against moto's server, from a server that plays Hugging Face's hub, and folders and globs against a
store in memory: the same files, order and tokens as on a local disk."""

import itertools
import json
import multiprocessing
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

obstore = pytest.importorskip("obstore")
pyarrow = pytest.importorskip("pyarrow")

from corpora import EOT, documents, small_tokenizer, write_corpus  # noqa: E402
from pyarrow import parquet  # noqa: E402
from texts import english  # noqa: E402
from web_server import web_server  # noqa: E402

import pybpe  # noqa: E402
from pybpe.errors import ArgumentError, WorkerError  # noqa: E402
from pybpe.reading import planning, remote  # noqa: E402
from pybpe.reading.files import corpus_files, input_files  # noqa: E402

SPAWN = multiprocessing.get_context("spawn")

# ----------------------------------------------------------------------------------------------------
# Folders and globs


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Returns a store that all buckets are."""
    store = obstore.store.MemoryStore()
    monkeypatch.setattr(remote, "_opened", lambda scheme, bucket: store)
    return store


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
        obstore.put(memory, f"top/{name}", b"x")

    def found(base: str, pattern: str) -> list[str] | str:
        try:
            paths = input_files(f"{base}/{pattern}" if pattern else base)
        except ArgumentError as error:
            assert "no files found" in str(error)
            return "nothing"
        # Python's glob gives a file with a / after it for a/**, which no one can open.
        return [path.removeprefix(base) for path in paths if not path.endswith("/")] or "nothing"

    for pattern in PATTERNS:
        local, remote = found(str(tmp_path / "top"), pattern), found("s3://bucket/top", pattern)
        assert remote == local, pattern


def test_own_files_in_a_bucket_are_left_out(memory: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(EOT.join(documents(50)).encode())
    tok = small_tokenizer()
    pybpe.binarize(tok, tmp_path / "a.txt", tmp_path, splits=(1,), min_shard_tokens=0, name="n")
    tok.save(tmp_path / "tokenizer.json")
    for path in tmp_path.iterdir():
        if path.is_file():
            obstore.put(memory, f"top/{path.name}", path.read_bytes())
    obstore.put(memory, "top/.hidden/x.txt", b"x")
    assert len(remote.names("s3://bucket/top")) == 5
    assert input_files("s3://bucket/top") == ["s3://bucket/top/a.txt"]


def test_an_object_with_the_name_of_a_folder(memory: Any) -> None:
    """As a store shows a folder that its web page made, and as no disk can have it."""
    for path in ("top/a", "top/a/b.txt"):
        obstore.put(memory, path, b"x")
    assert input_files("s3://bucket/top/") == ["s3://bucket/top/a", "s3://bucket/top/a/b.txt"]
    assert input_files("s3://bucket/top/a") == ["s3://bucket/top/a/b.txt"]
    assert input_files("s3://bucket/top/a/") == ["s3://bucket/top/a/b.txt"]


# ----------------------------------------------------------------------------------------------------
# S3


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


_numbers = itertools.count()


class Bucket:
    """An empty bucket."""

    def __init__(self) -> None:
        self.name = f"bucket{next(_numbers)}"
        self.url = f"s3://{self.name}"
        pytest.importorskip("boto3").client("s3").create_bucket(Bucket=self.name)
        self._store = obstore.store.S3Store(self.name, client_options={"allow_http": True})

    def put(self, path: str, data: bytes) -> str:
        """Stores an object. Returns its URL."""
        obstore.put(self._store, path, data)
        return f"{self.url}/{path}"


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Bucket:
    for name, value in (("ACCESS_KEY_ID", "HUSH"), ("SECRET_ACCESS_KEY", "HUSH"), ("DEFAULT_REGION", "us-east-1")):
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setattr(remote, "_FIRST_WAIT", timedelta(milliseconds=1))
    return Bucket()


ALL = "/**/*"  # of a folder with records and texts


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(planning, "TASK_BYTES", 50_000)
    monkeypatch.setattr(remote, "_PART_BYTES", 30_000)
    folder = tmp_path / "corpus"
    write_corpus(folder)
    (folder / "sub").mkdir()
    (folder / "b.jsonl").rename(folder / "sub" / "b.jsonl")
    table = pyarrow.table({"text": documents(500), "number": list(range(500))})
    parquet.write_table(table, folder / "e.parquet", row_group_size=40)
    return folder


def put(bucket: Bucket, folder: Path) -> str:
    """Copies a folder to the bucket. Returns its URL."""
    for path in folder.rglob("*"):
        if path.is_file():
            bucket.put(f"corpus/{path.relative_to(folder).as_posix()}", path.read_bytes())
    return f"{bucket.url}/corpus"


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".bin"}


@pytest.mark.parametrize("split_by", ["hash", "token"])
def test_binarize(bucket: Bucket, corpus: Path, tmp_path: Path, split_by: str) -> None:
    tok, url = small_tokenizer(), put(bucket, corpus) + ALL
    pybpe.binarize(tok, f"{corpus}{ALL}", tmp_path / "local", split_by=split_by)
    for workers in (1, 3):
        pybpe.binarize(tok, url, tmp_path / f"remote{workers}", split_by=split_by, workers=workers)
        assert shards(tmp_path / f"remote{workers}") == shards(tmp_path / "local")
    for path in (tmp_path / "remote1").rglob("*"):
        assert b"HUSH" not in path.read_bytes()


def test_workers_in_other_processes(bucket: Bucket, corpus: Path, tmp_path: Path) -> None:
    tok, url = small_tokenizer(), put(bucket, corpus) + ALL
    pybpe.binarize(tok, f"{corpus}{ALL}", tmp_path / "local")
    pybpe.corpus.clean(f"{corpus}{ALL}", tmp_path / "local.jsonl", workers=2)
    with ProcessPoolExecutor(1, SPAWN) as executor:
        pybpe.binarize(tok, url, tmp_path / "remote", executor=executor)
        counts = pybpe.count_words(url + ".jsonl*", executor=executor)
    pybpe.corpus.clean(url, tmp_path / "remote.jsonl", workers=2)
    assert shards(tmp_path / "remote") == shards(tmp_path / "local")
    assert counts.to_dict() == pybpe.count_words(corpus / "sub").to_dict()
    assert (tmp_path / "remote.jsonl").read_bytes() == (tmp_path / "local.jsonl").read_bytes()


def test_errors(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for url, what in ((f"{bucket.url}/nothing", "file"), ("s3://no-such-bucket/x", "bucket")):
        with pytest.raises(FileNotFoundError, match=f"{url}: cannot be opened: there is no such {what}"):
            corpus_files(url)
    with pytest.raises(ArgumentError, match="no files found"):
        corpus_files(f"{bucket.url}/*.zst")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("HOME", "/nowhere")
    remote._opened.cache_clear()
    with pytest.raises(PermissionError, match="no credentials were found: for a public bucket, set AWS_SKIP_SIGNATURE"):
        corpus_files(f"{bucket.url}/x")


def test_keys_in_the_folder_of_aws_are_used(bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = bucket.put("a.txt", b"some text")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    (tmp_path / "keys").write_text("[mine]\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "keys"))
    monkeypatch.setenv("AWS_PROFILE", "mine")
    (file,) = corpus_files(url)
    assert file.open().read() == b"some text"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked")
def test_a_fork_does_not_hang(memory: Any) -> None:
    """obstore would wait for threads that a fork does not have."""
    obstore.put(memory, "a.txt", b"some text")
    assert corpus_files("s3://bucket/a.txt").size == 9
    with ProcessPoolExecutor(1, multiprocessing.get_context("fork")) as executor:
        with pytest.raises(WorkerError, match=r"s3://bucket/a.txt: .* a fork .*get_context\('spawn'\)"):
            executor.submit(corpus_files, "s3://bucket/a.txt").result()


# ----------------------------------------------------------------------------------------------------
# Hugging Face's hub


def test_the_hub(tmp_path: Path) -> None:
    """The hub sends large files from other servers, which must not get the token."""
    pytest.importorskip("huggingface_hub")
    data = english()[:200_000].encode()
    listed = [{"type": "file", "path": f"data/{name}", "size": 1, "oid": "1"} for name in ("b.txt", "a.txt", "c.bin")]
    code = (
        "import sys, pybpe; from pybpe.reading.files import input_files\n"
        "url = 'hf://datasets/user/repo/data'; print(input_files(url + '/*.txt'))\n"
        "counts = pybpe.count_words(url + '/a.txt')\n"
        "assert counts.to_dict() == pybpe.count_words(sys.argv[1]).to_dict()"
    )
    (tmp_path / "a.txt").write_bytes(data)
    with web_server() as hub, web_server() as other:
        hub.put("/api/datasets/user/repo", b'{"id": "user/repo", "sha": "1"}', kind="application/json")
        hub.put("/api/datasets/user/repo/tree/main/data", json.dumps(listed).encode(), kind="application/json")
        hub.put("/datasets/user/repo/resolve/main/data/a.txt", b"", redirect=other.put("/a.txt", data))
        environment = {**os.environ, "HF_ENDPOINT": hub.url(""), "HF_TOKEN": "HUSH", "HF_HOME": str(tmp_path)}
        command = [sys.executable, "-c", code, tmp_path / "a.txt"]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.stderr == ""
    assert run.stdout == "['hf://datasets/user/repo/data/a.txt', 'hf://datasets/user/repo/data/b.txt']\n"
    assert {entry[2] for entry in hub.log if "datasets" in entry[0]} == {"Bearer HUSH"} and {
        entry[2] for entry in other.log
    } == {None}
