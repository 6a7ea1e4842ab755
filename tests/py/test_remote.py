"""URLs as inputs: parsing, refusals, and the streams and retries, without a server or an optional package. The tests
against servers are in extras/."""

import io
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from corpora import small_tokenizer

import pybpe
from llmc_compat.workspace import make_workspace
from pybpe.cli import main
from pybpe.errors import ArgumentError, FileError, MissingExtraError
from pybpe.reading.files import corpus_files, input_files
from pybpe.reading.remote import stream as streams
from pybpe.reading.remote import transfer, web
from pybpe.reading.remote.address import Address
from pybpe.reading.remote.facts import Facts
from pybpe.reading.remote.stream import RangedStream
from pybpe.reading.remote.transfer import Unavailable, fill
from pybpe.tokens.verification import verify
from pybpe.urls import is_url, without_secrets


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("s3://bucket/key", True),
        ("memory://x", True),
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
        ("S3://bucket/x", "write s3://bucket/x"),
        ("s3a://bucket/x", "write s3://bucket/x"),
        ("gcs://bucket/x", "write gs://bucket/x"),
        ("file:///data/x", "pass the path itself: /data/x"),
        ("ftp://host/x", "pybpe cannot read ftp:// URLs, only s3, gs, hf, https and http"),
        ("s3://", "this URL names no file"),
        ("https:///", "this URL names no file"),
        ("s3://KEY:HUSH@bucket/x", "set AWS_ACCESS_KEY_ID"),
        ("simplecache::s3://bucket/x", "chained URLs"),
        ("s3://bucket/x::zip://y", "chained URLs"),
        ("s3://buck*/x", "the name of a bucket cannot contain"),
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
        ("gs://bucket/x", "pip install gcsfs"),
        ("hf://datasets/a/b", "pip install fsspec huggingface_hub"),
        ("https://host/x", r"pip install 'pybpe\[remote\]'"),
    ],
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, url: str, install: str) -> None:
    for name in ("fsspec", "urllib3"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=install):
        pybpe.count_words(url)


def test_no_package_is_imported_unless_a_url_is_given(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text")
    code = (
        "import sys, pybpe; pybpe.train(sys.argv[1], vocab_size=260);"
        " print([name for name in ('fsspec', 'urllib3', 's3fs', 'aiohttp', 'ssl') if name in sys.modules])"
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
        lambda: pybpe.binarize(tok, "a.txt", URL, pack=True),
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
        lambda: pybpe.mix(tok, {"sources": {"a": {"inputs": "a.txt", "tokens": 10}}}, URL),
    ]
    for call in calls:
        with pytest.raises(ArgumentError, match="pybpe writes only to local files"):
            call()
    assert sorted(os.listdir()) == before  # "s3:" would be a folder


@pytest.mark.parametrize(
    "command",
    [
        ["train", "a.txt", "--vocab-size", "300", "-o", URL + ".json"],
        ["counts", "a.txt", "-o", URL + ".counts"],
        ["encode", "-t", "gpt2", "a.txt", "-o", URL + ".npy"],
        ["binarize", "-t", "gpt2", "a.txt", "-o", URL],
    ],
)
def test_the_commands_refuse_a_url_as_an_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("some text here " * 1000)
    assert main(command) == 2
    error = capsys.readouterr().err
    assert "s3://bucket" in error and "pybpe writes only to local files" in error
    assert os.listdir() == ["a.txt"]


def test_only_text_is_read_from_a_url() -> None:
    for call in (pybpe.Tokenizer.from_file, verify):
        with pytest.raises(ArgumentError, match="https://host/x.*: only text can be read from a URL: copy this file"):
            call("https://host/x?sig=SECRET")


# ----------------------------------------------------------------------------------------------------
# Streams and retries


class FakeSource:
    """Bytes in memory, which fail at random; `requests` has the start and size of each request."""

    name = "https://host/x"

    def __init__(self, data: bytes, failures: float = 0.0, seed: int = 0) -> None:
        self.data, self.failures, self.random = data, failures, random.Random(seed)
        self.requests: list[tuple[int, int]] = []

    def receive(self, start: int, view: memoryview) -> int:
        self.requests.append((start, len(view)))
        assert 0 <= start and start + len(view) <= len(self.data)
        size = len(view)
        fails = self.random.random() < self.failures
        if fails:
            size = self.random.randrange(size)
        elif self.random.random() < 0.2:
            size = self.random.randint(1, size)  # a server may send fewer bytes than those asked for
        view[:size] = self.data[start : start + size]
        if fails:
            raise Unavailable("it broke", size)
        return size

    def check_now(self) -> None:
        raise AssertionError


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transfer, "FIRST_WAIT", 0.0)


DATA = random.Random(1).randbytes(50_000)


@pytest.mark.parametrize("failures", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(5))
def test_a_stream_is_like_a_file(quick: None, monkeypatch: pytest.MonkeyPatch, failures: float, seed: int) -> None:
    monkeypatch.setattr(streams, "PART_BYTES", 1000)
    monkeypatch.setattr(streams, "_FIRST_BYTES", 100)
    monkeypatch.setattr(transfer, "TRIES", 40)  # such small parts are never enough progress
    rng = random.Random(seed)
    for _ in range(20):
        start = rng.randrange(len(DATA))
        end = rng.choice([None, rng.randrange(start, len(DATA) + 1)])
        expected = io.BytesIO(DATA)
        expected.seek(start)
        head = DATA[:100] if rng.random() < 0.3 else b""
        source = FakeSource(DATA, failures, seed)
        with RangedStream(source, len(DATA), start, end, head=head, checks=False) as stream:
            for _ in range(rng.randint(1, 12)):
                if rng.random() < 0.3:
                    place = rng.choice([rng.randrange(len(DATA) + 10), expected.tell() + rng.randrange(50)])
                    assert stream.seek(place) == expected.seek(place)
                size = rng.choice([1, 10, 150, 5000, 20_000])
                assert stream.read(size) == expected.read(size)
                assert stream.tell() == expected.tell()
            assert stream.read() == expected.read()
            assert stream.seek(-7, io.SEEK_END) == len(DATA) - 7
            assert stream.read() == DATA[-7:]


def test_a_stream_transfers_no_more_than_is_read_until_it_reads_ahead() -> None:
    data = bytes(40 << 20)
    source = FakeSource(data)
    source.random.random = lambda: 1.0  # type: ignore[method-assign]
    with RangedStream(source, len(data), 0, None, checks=False) as stream:
        stream.seek(30 << 20)
        stream.read(1000)
        stream.seek(10 << 20)
        stream.read(1000)
        assert source.requests == [(30 << 20, 1 << 16), (10 << 20, 1 << 16)]
    source.requests.clear()
    with RangedStream(source, len(data), 1 << 20, 17 << 20, checks=False) as stream:
        stream.read(16 << 20)
    assert sorted(source.requests) == [((1 + 4 * i) << 20, 4 << 20) for i in range(4)]  # the range, and nothing else


class BrokenSource(FakeSource):
    def receive(self, start: int, view: memoryview) -> int:
        self.requests.append((start, len(view)))
        raise Unavailable("it broke", min(len(view), 10))


def test_a_read_that_always_fails_ends(quick: None) -> None:
    source = BrokenSource(DATA)
    with pytest.raises(FileError, match="https://host/x: cannot be read: it broke, after 8 tries"):
        fill(source, 0, memoryview(bytearray(50_000)))
    assert source.requests[:3] == [(0, 50_000), (10, 49_990), (20, 49_980)]  # it continues from the byte reached
    assert len(source.requests) == transfer.TRIES


def test_a_server_that_asks_to_wait_an_hour_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(transfer.time, "sleep", waits.append)
    patience = transfer.Patience("x")
    patience.failure(Unavailable("busy", 0, 7.0))
    patience.failure(Unavailable("busy", 0, 0.0))
    with pytest.raises(FileError, match=r"x: cannot be read: busy, and asks to wait 3600 s. Run again then"):
        patience.failure(Unavailable("busy", 0, 3600.0))
    assert waits[0] == 7.0 and 0.3 < waits[1] < 0.7


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (Facts(6, "a", "x"), "now has 6 bytes, but had 5"),
        (Facts(5, "b", "x"), "its ETag or version differs"),
        (Facts(5, "", "x"), "its ETag or version differs"),
        (Facts(5, "a", "y"), None),
        (Facts(None, "a", "x"), None),
    ],
)
def test_a_changed_file_is_recognized(found: Facts, what: str | None) -> None:
    first = Facts(5, "a", "x")
    if what is None:
        first.check("u", found)
        return
    with pytest.raises(pybpe.errors.FileChangedError, match=what):
        first.check("u", found)
    with pytest.raises(pybpe.errors.FileChangedError, match="modification time"):
        Facts(5, "", "x").check("u", Facts(5, "", "y"))


def test_an_address_does_not_print_its_url() -> None:
    assert "SECRET" not in repr(Address.parse("https://host/x?sig=SECRET"))


def test_local_paths_still_work(tmp_path: Path) -> None:
    folder = tmp_path / "http:" / "x"
    folder.mkdir(parents=True)
    (folder / "a.txt").write_text("text")
    assert input_files(str(folder)) == [str(folder / "a.txt")]
    assert corpus_files(folder / "a.txt")[0].remote is None


def test_an_answer_without_bytes_is_a_failure(quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server may answer a request for bytes with an empty range, again and again (D4)."""
    source = FakeSource(DATA)
    monkeypatch.setattr(source, "receive", lambda start, view: source.requests.append((start, len(view))) or 0)
    with pytest.raises(FileError, match="the server sent no bytes of the range, after 8 tries"):
        fill(source, 0, memoryview(bytearray(1000)))
    assert len(source.requests) == 8


@pytest.mark.parametrize("last", [999, 998, 0])
def test_an_empty_range_has_no_bytes(last: int) -> None:
    headers = {"Content-Range": f"bytes 1000-{last}/300000"}
    source = web.WebSource(Address.parse("https://host/x"), Facts(300_000))
    assert source._promised(SimpleNamespace(status=206, headers=headers), 1000, 50) == 0
