"""Inputs from a web server that misbehaves in every way that servers do: the same tokens as from local files, or an
error."""

import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("obstore")

from corpora import documents, jsonl, small_tokenizer, write_corpus  # noqa: E402
from web_server import Server, web_server  # noqa: E402

import pybpe  # noqa: E402
from llmc_compat.workspace import make_workspace  # noqa: E402
from pybpe.cli import main  # noqa: E402
from pybpe.errors import FileChangedError, FileError, FormatError, PybpeWarning  # noqa: E402
from pybpe.reading import planning, remote  # noqa: E402
from pybpe.reading.files import corpus_files  # noqa: E402

DATA = b"".join(b"line %d of a text\n" % i for i in range(60_000))


@pytest.fixture(autouse=True)
def small_and_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "_FIRST_WAIT", timedelta(milliseconds=1))
    monkeypatch.setattr(remote, "_READ_TIMEOUT", timedelta(seconds=0.3))
    monkeypatch.setattr(remote, "_PART_BYTES", 100_000)


@pytest.fixture
def server() -> Iterator[Server]:
    with web_server() as server:
        yield server


def content(url: str, size: int = 70_000) -> tuple[bytes, int | None]:
    """Returns the text of a file, and the size that planning sees."""
    (file,) = corpus_files(url)
    data = b""
    with file.open() as opened:
        while block := opened.read(size):
            data += block
    return data, file.known_size


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"drop_after": 90_000},
        {"drop_after": 70_000, "drops": 5},
        {"busy": 3, "retry_after": "0"},
        {"busy": 2, "busy_status": 429, "retry_after": "Wed, 21 Oct 2015 07:28:00 GMT"},
        {"busy": 3, "busy_status": 500},
        {"validators": False},
        {"headers": {"Content-Encoding": "identity"}},
    ],
    ids=str,
)
def test_a_file_arrives_whole(server: Server, how: dict[str, Any]) -> None:
    assert content(server.put("/a.txt", DATA, **how)) == (DATA, len(DATA))


def test_redirects_are_followed(server: Server) -> None:
    server.put("/a.txt", DATA)
    assert content(server.put("/b.txt", b"", redirect="/a.txt")) == (DATA, len(DATA))
    assert content(server.put("/c.txt", b"", redirect=server.url("/b.txt"))) == (DATA, len(DATA))


def test_an_empty_file(server: Server) -> None:
    with pytest.warns(PybpeWarning, match="this file is empty"):
        assert content(server.put("/a.txt", b"")) == (b"", 0)


@pytest.mark.parametrize("data", [b"x", DATA[:65_535], DATA[:65_536], DATA[:65_537], DATA[:100_001]], ids=len)
def test_files_of_all_sizes(server: Server, data: bytes) -> None:
    assert content(server.put("/a.txt", data)) == (data, len(data))


@pytest.mark.parametrize(
    ("how", "error", "problem"),
    [
        ({"length": 0}, FileError, "Content-Length Header missing"),
        ({"chunked": True, "ranges": False}, FileError, "Content-Length Header missing"),
        ({"ranges": False}, FileError, "the server sends no ranges of it: download it first"),
        ({"length": 70_000, "shift": 3}, FileError, r"Requested 0\.\.65536, got 3\.\.65536"),
        ({"most": 30_000}, FileError, r"Requested 0\.\.65536, got 0\.\.30000"),
        ({"most": 0}, FileError, "Failed to parse value for CONTENT_RANGE"),
        ({"length": 70_000}, FileError, "request or response body error"),
        ({"length": 60_000}, FileError, "the server sent 60000 bytes of the range 0 to 65536"),
        ({"drop_after": 0}, FileError, "request or response body error"),
        ({"kind": "text/html; charset=utf-8"}, FormatError, r"not this file, but a web page \(text/html\)"),
        ({"headers": {"Content-Encoding": "br"}}, FormatError, "compressed with br: download it first"),
        ({"busy": 99}, FileError, "after 7 retries.*status code: 503"),
        ({"busy": 99, "busy_status": 404}, FileNotFoundError, "there is no such file"),
        ({"busy": 99, "busy_status": 403}, PermissionError, "the signature of this one may have expired"),
        ({"busy": 99, "busy_status": 401}, PermissionError, "may want a password or a signed URL"),
        ({"busy": 99, "busy_status": 418}, FileError, "status code: 418"),
        ({"redirect": "/a.txt"}, FileError, "error following redirect"),
        ({"redirect": "file:///etc/passwd"}, FileError, "status code: 302"),
    ],
    ids=str,
)
def test_a_file_that_cannot_arrive_whole_is_an_error(
    server: Server, how: dict[str, Any], error: type[Exception], problem: str
) -> None:
    url = server.put("/a.txt?signature=HUSH", DATA, **how)
    with pytest.raises(error, match=f"{server.url('/a.txt')}: .*{problem}") as caught:
        content(url)
    assert "HUSH" not in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("lie", [{"shift": 3}, {"ranges": False}, {"most": 10}, {"data": DATA.swapcase()}], ids=str)
def test_a_server_that_lies_when_an_answer_is_continued(server: Server, lie: dict[str, Any]) -> None:
    def at(number: int) -> None:
        if number == 2:
            vars(server.files["/a.txt"]).update(lie)

    with pytest.raises(FileError, match=r"/a\.txt: cannot be read"):
        content(server.put("/a.txt", DATA, drop_after=30_000, drops=1, on_request=at))


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send Ctrl-C to another")
def test_ctrl_c_ends_a_wait_for_a_server(server: Server) -> None:
    asked, ended = threading.Event(), threading.Event()

    def at(number: int) -> None:
        asked.set()
        ended.wait()

    url = server.put("/a.txt", DATA, on_request=at)
    process = subprocess.Popen([sys.executable, "-m", "pybpe", "count", url, "-o", os.devnull])
    assert asked.wait(100)
    process.send_signal(signal.SIGINT)
    try:
        assert process.wait(100) == 130  # pybpe would wait for the server for several minutes
    finally:
        process.kill()
        ended.set()


def test_an_unreachable_server_is_an_error() -> None:
    with web_server() as server:
        url = server.url("/a.txt?signature=HUSH")
    with pytest.raises(FileError, match=r"/a\.txt: cannot be read: .*after 7 retries.*Connection refused") as caught:
        content(url)
    assert "HUSH" not in str(caught.value)


def test_https_is_not_left_for_http(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    key, certificate = str(tmp_path / "key"), str(tmp_path / "certificate")
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=me -addext subjectAltName=IP:127.0.0.1"
    make = [*command.split(), "-addext", "basicConstraints=critical,CA:FALSE", "-keyout", key, "-out", certificate]
    subprocess.run(make, check=True, capture_output=True)
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    with web_server() as secure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        secure.socket = context.wrap_socket(secure.socket, server_side=True)
        assert content(secure.put("/a.txt", DATA).replace("http:", "https:"))[0] == DATA
        url = secure.put("/b.txt", b"", redirect=server.put("/a.txt", DATA)).replace("http:", "https:")
        with pytest.raises(FileError, match="error following redirect"):
            content(url)
    assert server.log == []


def test_a_password_goes_only_to_its_server(server: Server) -> None:
    with web_server() as other:
        other.put("/a.txt", DATA)
        url = server.put("/a.txt", b"", redirect=other.url("/a.txt")).replace("//", "//me:h%40sh@")
        assert content(url)[0] == DATA
        assert {entry[2] for entry in server.log} == {"Basic bWU6aEBzaA=="}  # me:h@sh
        assert {entry[2] for entry in other.log} == {None}


# ----------------------------------------------------------------------------------------------------
# The same tokens as from local files


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(planning, "TASK_BYTES", 30_000)
    write_corpus(tmp_path / "corpus")
    return tmp_path / "corpus"


def published(server: Server, corpus: Path, query: str = "", **how: Any) -> list[str]:
    return [server.put(f"/{path.name}{query}", path.read_bytes(), **how) for path in sorted(corpus.iterdir())]


def shards(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".bin"}


@pytest.mark.slow
def test_every_way_in(server: Server, corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tok, urls = small_tokenizer(), published(server, corpus, "?signature=HUSH")
    settings: dict[str, Any] = {"vocab_size": 400}
    assert pybpe.train(urls, **settings).get_vocab() == pybpe.train(corpus / "*", **settings).get_vocab()
    sample: dict[str, Any] = {"max_bytes": 40_000, "seed": 3}
    assert (
        pybpe.train(urls, **settings, **sample).get_vocab()
        == pybpe.train(corpus / "*", **settings, **sample).get_vocab()
    )
    results: list[list[Any]] = []
    for number, inputs in enumerate((f"{corpus}/*", urls)):
        folder = tmp_path / str(number)
        folder.mkdir()
        assert pybpe.encode_files(tok, inputs, folder / "ids.bin") > 10_000
        pybpe.corpus.clean(inputs, folder / "clean.jsonl", dedup="exact", workers=2)
        pybpe.prepare(inputs, folder / "prepared", vocab_size=400, name="n")
        make_workspace(inputs, folder / "workspace", vocab_size=400, layers=1, heads=1, channels=16)
        measured = pybpe.compare({"t": tok}, {"on": inputs}).to_dict()
        files = [folder / "ids.bin", folder / "clean.jsonl"]
        results.append([[file.read_bytes() for file in files], measured])
        results[-1] += [shards(folder / name) for name in ("prepared", "workspace/data")]
        for path in folder.rglob("*"):
            assert path.is_dir() or b"HUSH" not in path.read_bytes(), path
    assert results[0] == results[1]
    capsys.readouterr()
    outputs = []
    tok.save(tmp_path / "tok.json")
    for name in (str(corpus / "a.txt"), urls[0]):
        assert main(["count", "-t", str(tmp_path / "tok.json"), name]) == 0
        assert main(["encode", "-t", str(tmp_path / "tok.json"), name]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1]


def test_one_large_file_is_divided_among_workers(server: Server, tmp_path: Path, corpus: Path) -> None:
    url = server.put("/b.jsonl", jsonl(documents(900)))
    with ThreadPoolExecutor(3) as executor:
        pybpe.binarize(small_tokenizer(), url, tmp_path / "out", executor=executor, workers=3)
    ranges = {entry[1] for entry in server.log}
    assert len(ranges) > 5 and None not in ranges


# ----------------------------------------------------------------------------------------------------
# Changes and kills


@pytest.mark.parametrize("change", ["content", "size", "shorter", "no ranges", "gone"])
@pytest.mark.parametrize("by_executor", [False, True])
def test_a_file_that_changes_is_an_error(server: Server, tmp_path: Path, change: str, by_executor: bool) -> None:
    def at(number: int) -> None:
        file = server.files["/a.txt"]
        if number == 4:
            file.data = {"content": DATA[::-1], "size": DATA + b"x", "shorter": DATA[:1000]}.get(change, DATA)
            file.ranges = change != "no ranges"
            file.busy, file.busy_status = (1000, 404) if change == "gone" else (0, 0)

    url = server.put("/a.txt", DATA, on_request=at)
    error = FileNotFoundError if change == "gone" else FileChangedError
    with ThreadPoolExecutor(1) as executor:
        with pytest.raises(error, match=r"/a\.txt: (this file changed after this run first|cannot be opened)"):
            pybpe.binarize(small_tokenizer(), url, tmp_path / "out", executor=executor if by_executor else None)
    assert not (tmp_path / "out" / "manifest.json").exists()


def test_what_a_run_that_resumes_compares(server: Server) -> None:
    def identity(query: str = "", data: bytes = DATA, **how: Any) -> object:
        (file,) = corpus_files(server.put(f"/a.txt?{query}", data, **how))
        assert "HUSH" not in repr(file.fingerprint)
        return file.fingerprint

    assert identity("signature=HUSH") == identity("signature=HUSH2")
    assert identity() != identity(data=DATA.swapcase())
    assert identity("id=HUSH", validators=False) != identity("id=HUSH2", validators=False)  # perhaps another file


def test_a_proxy_is_used(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.put("http://nowhere.invalid/a.txt", DATA)
    monkeypatch.setenv("http_proxy", server.url(""))
    monkeypatch.delenv("no_proxy", raising=False)
    assert content("http://nowhere.invalid/a.txt")[0] == DATA
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    os.environ.pop("NO_PROXY", None)
    assert content(server.put("/b.txt", DATA))[0] == DATA
    assert server.log[-1][0] == "/b.txt"
