"""URLs as inputs: parsing, refusals, and streams, without a server or an optional package. The tests against servers
are in extras/."""

import io
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from corpora import small_tokenizer

import pybpe
from llmc_compat.workspace import make_workspace
from pybpe.arguments import is_url, without_secrets
from pybpe.errors import ArgumentError, FileChangedError, MissingExtraError
from pybpe.reading import remote
from pybpe.reading.files import corpus_files, input_files
from pybpe.reading.remote import NoRangeError, RemoteFile
from pybpe.tokens.verification import verify


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3://bucket/key", True),
        ("zip://x", True),
        ("s3a+x.y://b", True),
        ("C://windows", False),
        ("/data/a.txt", False),
        ("a:b", False),
        ("http:/x", False),
        ("see https://x.org", False),
        ("https://x.org\nis a text", False),
    ],
)
def test_a_url_is_recognized(path: str, expected: bool) -> None:
    assert is_url(path) == expected


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://host/a.txt?X-Amz-Signature=SECRET#part", "https://host/a.txt"),
        ("https://user:SECRET@host:81/a@b.txt?x=@", "https://host:81/a@b.txt"),
        ("http://SECRET@host", "http://host"),
        ("s3://bucket/what?.txt", "s3://bucket/what?.txt"),
        ("hf://datasets/user/repo@main/x.parquet", "hf://datasets/user/repo@main/x.parquet"),
        ("s3://KEY:SECRET@bucket/x", "s3://bucket/x"),
        ("/local/what?.txt#1", "/local/what?.txt#1"),
    ],
)
def test_messages_show_a_url_without_its_secrets(url: str, shown: str) -> None:
    assert without_secrets(url) == shown
    assert "SECRET" not in shown


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("S3://bucket/x", "pybpe reads only s3://, gs://, hf://, https:// and http:// URLs"),
        ("s3a://bucket/x", "pybpe reads only s3://"),
        ("file:///data/x", "pybpe reads only s3://"),
        ("s3://", "this URL names no file"),
        ("https:///", "this URL names no file"),
        ("s3://KEY:HUSH@bucket/x", "set AWS_ACCESS_KEY_ID"),
        ("simplecache::s3://bucket/x", "pybpe reads only s3://"),
        ("s3://bucket/x::zip://y", "pybpe reads only s3://"),
    ],
)
def test_a_url_that_cannot_be_read_is_refused(url: str, problem: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        pybpe.train(url, vocab_size=300)
    assert problem in str(caught.value) and "HUSH" not in str(caught.value)


def test_a_path_object_that_was_a_url_is_refused() -> None:
    with pytest.raises(ArgumentError, match="a Path drops a slash of a URL: pass the URL as a str"):
        pybpe.train(Path("s3://bucket/x"), vocab_size=300)


@pytest.mark.parametrize(
    ("url", "install"),
    [
        ("s3://bucket/x", r"pip install 'pybpe\[remote\]'"),
        ("gs://bucket/x", r"pip install 'pybpe\[remote\]'"),
        ("hf://datasets/a/b", "pip install huggingface_hub"),
        ("https://host/x", r"pip install 'pybpe\[remote\]'"),
    ],
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, url: str, install: str) -> None:
    monkeypatch.setattr(remote, "_started", [])
    for name in ("obstore", "huggingface_hub"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=install):
        pybpe.count_words(url)


def test_no_package_is_imported_unless_a_url_is_given(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text")
    code = (
        "import sys, pybpe; pybpe.train(sys.argv[1], vocab_size=260);"
        " print([name for name in ('obstore', 'boto3', 'huggingface_hub', 'fsspec', 'ssl') if name in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=True)
    assert run.stdout == "[]\n"


URL = "s3://bucket/out"


def test_a_url_as_an_output_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("some text here " * 1000)
    Path("data").mkdir()
    tok = small_tokenizer()
    pybpe.binarize(tok, "a.txt", "data", splits=(1,), min_shard_tokens=0)
    before = sorted(os.listdir())
    calls = [
        lambda: pybpe.binarize(tok, "a.txt", URL),
        lambda: pybpe.prepare("a.txt", URL, vocab_size=300),
        lambda: pybpe.pack(tok, "data", URL, sequence_length=16),
        lambda: pybpe.encode_files(tok, "a.txt", URL + ".npy"),
        lambda: pybpe.corpus.clean("a.txt", URL + ".jsonl"),
        lambda: pybpe.train("a.txt", vocab_size=300, checkpoint=URL),
        lambda: tok.save(URL + ".json"),
        lambda: tok.save_pretrained(URL),
        lambda: tok.save(URL + ".tiktoken"),
        lambda: pybpe.count_words("a.txt").save(URL + ".counts"),
        lambda: make_workspace("a.txt", URL, vocab_size=300),
        lambda: pybpe.mix(tok, {"sources": {"a": {"data": "data", "tokens": 10}}}, URL),
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match="pybpe writes only to local files"):
            call()
    assert sorted(os.listdir()) == before  # "s3:" would be a folder


def test_only_text_is_read_from_a_url() -> None:
    for call in (pybpe.Tokenizer.from_file, verify):
        with pytest.raises(ArgumentError, match="https://host/x.*: only text can be read from a URL: copy this file"):
            call("https://host/x?sig=SECRET")


# ----------------------------------------------------------------------------------------------------
# Streams

DATA = random.Random(1).randbytes(50_000)
URL_OF_DATA = "https://host/x?signature=HUSH"


class FakeServer:
    """Bytes in memory, in place of `ask`; `requests` has the start and end of each request."""

    def __init__(self, data: bytes, version: str = "a") -> None:
        self.data, self.version = data, version
        self.requests: list[tuple[int, int | None]] = []

    def __call__(self, url: str, start: int = 0, stop: int | None = None) -> tuple[RemoteFile, bytes]:
        self.requests.append((start, stop))
        if start >= len(self.data):
            raise NoRangeError
        return RemoteFile(url, len(self.data), self.version), self.data[start:stop]


def test_a_stream_is_like_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_PART_BYTES", 1000)
    monkeypatch.setattr(remote, "_LEAST_BYTES", 100)
    monkeypatch.setattr(remote, "ask", FakeServer(DATA))
    rng = random.Random(0)
    file = RemoteFile(URL_OF_DATA, len(DATA), "a")
    for _ in range(40):
        start = rng.randrange(len(DATA))
        end = rng.choice([None, rng.randrange(start, len(DATA) + 1)])
        expected = io.BytesIO(DATA)
        expected.seek(start)
        with file.open(start, end, head=DATA[:100] if rng.random() < 0.3 else b"") as stream:
            for _ in range(rng.randint(1, 12)):
                if rng.random() < 0.3:
                    place = rng.choice([rng.randrange(len(DATA) + 10), expected.tell() + rng.randrange(50)])
                    assert stream.seek(place) == expected.seek(place)
                size = rng.choice([1, 10, 150, 5000, 20_000])
                if rng.random() < 0.5:
                    assert stream.read(size) == expected.read(size)
                else:
                    block, other = bytearray(size), bytearray(size)
                    assert stream.readinto(block) == expected.readinto(other)  # type: ignore[attr-defined]
                    assert block == other
                assert stream.tell() == expected.tell()
            assert stream.read() == expected.read()
            assert stream.seek(-7, io.SEEK_END) == len(DATA) - 7
            assert stream.read() == DATA[-7:]


def test_a_stream_transfers_no_more_than_is_read_until_it_reads_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    server = FakeServer(bytes(40 << 20))
    monkeypatch.setattr(remote, "ask", server)
    file = RemoteFile(URL_OF_DATA, 40 << 20, "a")
    with file.open() as stream:
        stream.seek(30 << 20)
        stream.read(1000)
        stream.seek(10 << 20)
        stream.read(1000)
    assert server.requests == [(start, start + (1 << 16)) for start in (30 << 20, 10 << 20)]
    server.requests.clear()
    with file.open(1 << 20, 17 << 20) as stream:
        stream.read(16 << 20)
    spans = [((1 + 4 * i) << 20, (5 + 4 * i) << 20) for i in range(4)]
    assert sorted(server.requests) == spans  # the range, and nothing else


@pytest.mark.parametrize(
    ("size", "version", "what"),
    [
        (5001, "a", "now has 5001 bytes, but had 5000"),
        (4000, "a", "now has 4000 bytes, but had 5000"),
        (10, "a", "now ends before byte 1001, or can only be read as a whole"),
        (5000, "b", "now has another ETag, version or time of change"),
        (5000, "", "now has another ETag, version or time of change"),
    ],
)
def test_a_changed_file_is_recognized(monkeypatch: pytest.MonkeyPatch, size: int, version: str, what: str) -> None:
    monkeypatch.setattr(remote, "ask", FakeServer(DATA[:size], version))
    with RemoteFile(URL_OF_DATA, 5000, "a").open(1000) as stream:
        with pytest.raises(FileChangedError, match=rf"^https://host/x: this file changed .*: it {what}\. Run again"):
            stream.read()


def test_local_paths_still_work(tmp_path: Path) -> None:
    folder = tmp_path / "http:" / "x"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("text")
    assert input_files(str(folder)) == [str(folder / "a.txt")]
    assert [file.remote for file in corpus_files(folder / "a.txt")] == [None]
