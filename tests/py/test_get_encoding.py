"""get_encoding: OpenAI's encodings from tiktoken's cache or from a server, but never from a file with other ranks."""

import base64
import gzip
import hashlib
import json
import multiprocessing
import os
import socket
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import tiktoken_ext.openai_public as openai_public
from gpt2 import gpt2_files, gpt2_tiktoken, gpt2_tokenizer, gpt2_tokens_and_merges
from openai_ranks import cl100k
from texts import chinese, english, mixed
from web_server import Server, web_server

import pybpe
from pybpe import cli, encodings
from pybpe.errors import FileError, PybpeWarning
from pybpe.formats.tiktoken import parse_ranks

TEXT = english()[:50_000] + chinese()[:5_000] + mixed()[:20_000]
ENCODER, RANKS = "/gpt-2/encodings/main/encoder.json", "/encodings/r50k_base.tiktoken"


def gpt2_rank_lines() -> bytes:
    tokens, _ = gpt2_tokens_and_merges()
    return b"".join(base64.b64encode(token) + b" %d\n" % i for i, token in enumerate(tokens[:50256]))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server in the place of OpenAI's."""
    with web_server() as server:
        monkeypatch.setattr(encodings, "_SERVER", server.url(""))
        yield server


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of an empty cache, which is not there yet."""
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "a" / "cache"))
    return tmp_path / "a" / "cache"


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No server answers."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        monkeypatch.setattr(encodings, "_SERVER", f"http://127.0.0.1:{free.getsockname()[1]}")


def put(cache: Path, path: str, data: bytes) -> Path:
    cache.mkdir(parents=True, exist_ok=True)
    (cache / encodings._key(path)).write_bytes(data)
    return cache / encodings._key(path)


# ----------------------------------------------------------------------------------------------------
# The cache


def test_from_tiktokens_cache(tiktoken_cache: Path) -> None:
    """The cache of the tests is from packages."""
    for name in ("gpt2", "r50k"):
        tok = pybpe.get_encoding(name)
        assert tok == gpt2_tokenizer()
    assert tok.encode(TEXT) == gpt2_tiktoken().encode(TEXT, allowed_special="all")
    assert tok.special_tokens == {"<|endoftext|>": 50256} and tok.eot_token == 50256
    assert pybpe.get_encoding("cl100k_base") == pybpe.Tokenizer.from_tiktoken(cl100k())


def test_either_file_of_gpt2_is_enough(cache: Path, offline: None) -> None:
    for path, data in ((ENCODER, gpt2_files()[0].read_bytes()), (RANKS, gpt2_rank_lines())):
        file = put(cache, path, data)
        assert pybpe.get_encoding("gpt2") == gpt2_tokenizer()
        file.unlink()
    with pytest.raises(FileError):
        pybpe.get_encoding("gpt2")


def test_the_folder_of_the_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As in tiktoken.load.read_file_cached."""
    monkeypatch.setenv("DATA_GYM_CACHE_DIR", "gym")
    for given, expected in (("mine", "mine"), ("", ""), (None, "gym")):
        monkeypatch.delenv("TIKTOKEN_CACHE_DIR", raising=False)
        if given is not None:
            monkeypatch.setenv("TIKTOKEN_CACHE_DIR", given)
        assert encodings._cache_folder() == expected
    monkeypatch.delenv("DATA_GYM_CACHE_DIR")
    assert encodings._cache_folder() == os.path.join(tempfile.gettempdir(), "data-gym-cache")


def other_files() -> dict[str, bytes]:
    """Files with a correct name that contain something else are not used."""
    ids = json.loads(gpt2_files()[0].read_bytes())
    swapped = {**ids, "Ġthe": ids["Ġof"], "Ġof": ids["Ġthe"]}
    lines = gpt2_rank_lines()
    return {
        "empty": b"",
        "two ids swapped": json.dumps(swapped).encode(),
        "cut": gpt2_files()[0].read_bytes()[:-1000],
        "ranks, one less": lines[: lines.rindex(b"\n", 0, -1) + 1],
        "a page of HTML": b"<!DOCTYPE html><p>Not found",
        "packed": gzip.compress(lines),
    }


def test_a_file_with_other_ranks_is_never_used(cache: Path, offline: None) -> None:
    for what, data in other_files().items():
        put(cache, ENCODER, data)
        bad = put(cache, RANKS, data)
        with pytest.raises(FileError, match="gpt2 is not in tiktoken's cache, and http"):
            pybpe.get_encoding("gpt2")
        assert bad.read_bytes() == data, what
    put(cache, ENCODER, gpt2_files()[0].read_bytes())
    assert pybpe.get_encoding("gpt2") == gpt2_tokenizer()


def test_a_pipe_in_the_place_of_a_file_is_not_read(cache: Path, offline: None) -> None:
    cache.mkdir(parents=True)
    os.mkfifo(cache / encodings._key(RANKS))
    with pytest.raises(FileError):
        pybpe.get_encoding("gpt2")


# ----------------------------------------------------------------------------------------------------
# The download


def test_a_download_is_kept(server: Server, cache: Path) -> None:
    server.put(RANKS, gpt2_rank_lines())
    assert pybpe.get_encoding("gpt2") == gpt2_tokenizer()
    key = hashlib.sha1(server.url(RANKS).encode()).hexdigest()
    assert {path.name: path.read_bytes() for path in cache.iterdir()} == {key: gpt2_rank_lines()}
    assert pybpe.get_encoding("r50k_base") == gpt2_tokenizer()
    assert len(server.log) == 1


def test_a_damaged_file_of_the_cache_is_replaced(server: Server, cache: Path) -> None:
    server.put(RANKS, gpt2_rank_lines())
    file = put(cache, RANKS, b"something else")
    assert pybpe.get_encoding("gpt2") == gpt2_tokenizer()
    assert file.read_bytes() == gpt2_rank_lines()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"drop_after": 100_000}, "SHA-256 is wrong"),
        ({"drop_after": 100_000, "chunked": True}, "IncompleteRead"),
        ({"drop_after": 0}, "SHA-256 is wrong"),
        ({"length": 100}, "SHA-256 is wrong"),
        ({"busy": 9}, "Service Unavailable"),
        ({"redirect": "/elsewhere"}, "Not Found"),
        ({"other": True}, "SHA-256 is wrong"),
    ],
    ids=str,
)
def test_a_bad_download_is_neither_used_nor_kept(
    server: Server, cache: Path, options: dict[str, Any], reason: str
) -> None:
    is_other = options.pop("other", False)
    server.put(RANKS, b"<!DOCTYPE html>" if is_other else gpt2_rank_lines(), **options)
    with pytest.raises(FileError, match=f"cannot be downloaded \\(.*{reason}.*\\): save that file as "):
        pybpe.get_encoding("gpt2")
    assert not cache.exists()


def test_an_endless_download_is_refused(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "_MOST_BYTES", 1000)
    server.put(RANKS, gpt2_rank_lines(), length=1 << 40)
    with pytest.raises(FileError, match="SHA-256 is wrong"):
        pybpe.get_encoding("gpt2")


def test_a_server_that_does_not_answer(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encodings, "_TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setattr(encodings, "_SERVER", f"http://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(FileError, match=r"cannot be downloaded \(timed out\)"):
            pybpe.get_encoding("gpt2")


def test_without_a_network_one_line_says_what_to_do(cache: Path, offline: None) -> None:
    for name, file in (("gpt2", "r50k_base"), ("p50k_edit", "p50k_base"), ("o200k_harmony", "o200k_base")):
        with pytest.raises(FileError) as caught:
            pybpe.get_encoding(name)
        message = str(caught.value)
        url = f"{encodings._SERVER}/encodings/{file}.tiktoken"
        assert message.startswith(f"{name} is not in tiktoken's cache, and {url} cannot be downloaded ([Errno ")
        assert (
            f"save that file as {hashlib.sha1(url.encode()).hexdigest()} in a folder, and set TIKTOKEN_CACHE_DIR"
            in message
        )
        assert "pass its tokenizer.json to Tokenizer.from_file" in message and "\n" not in message


@pytest.mark.parametrize("there", [True, False])
def test_a_cache_that_cannot_be_written(
    there: bool, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may write everywhere, so a file is where the folder should be."""
    server.put(RANKS, gpt2_rank_lines())
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "cache"
    if there:
        folder = tmp_path / "cache"
        (folder / encodings._key(RANKS)).mkdir(parents=True)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
    for requests in (1, 2):
        with pytest.warns(PybpeWarning, match="downloaded again next time, because .*: set TIKTOKEN_CACHE_DIR"):
            assert pybpe.get_encoding("gpt2") == gpt2_tokenizer()
        assert len(server.log) == requests
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")  # no cache
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert pybpe.get_encoding("gpt2") == gpt2_tokenizer()


def test_an_interrupted_download_leaves_nothing(server: Server, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither while it comes, nor while it is written."""
    server.put(RANKS, gpt2_rank_lines())
    for place, name in (("hashlib", "sha256"), ("_binding", "write_file")):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(getattr(encodings, place), name, interrupted)
            pybpe.get_encoding("gpt2")
        assert not cache.exists() or not [*cache.iterdir()]


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def get_gpt2(server: str, folder: str, barrier: Any) -> None:
    encodings._SERVER = server
    os.environ["TIKTOKEN_CACHE_DIR"] = folder
    barrier.wait()
    assert pybpe.get_encoding("gpt2").vocab_size == 50257


def test_two_processes_at_once(server: Server, cache: Path) -> None:
    server.put(RANKS, gpt2_rank_lines())
    fork = multiprocessing.get_context("spawn")
    barrier = fork.Barrier(2)
    both = [fork.Process(target=get_gpt2, args=(server.url(""), str(cache), barrier)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
        assert process.exitcode == 0
    assert [path.read_bytes() for path in cache.iterdir()] == [gpt2_rank_lines()]


# ----------------------------------------------------------------------------------------------------
# The table, and the names


def test_names() -> None:
    for given in ("gtp2", "gpt-5", "", "x" * 1000):
        with pytest.raises(
            pybpe.errors.ArgumentError, match="there is no encoding .*use one of gpt2, .*cl100k_base"
        ) as caught:
            pybpe.get_encoding(given)
        assert len(str(caught.value)) < 300
    with pytest.raises(pybpe.errors.ArgumentError, match="name must be a str such as 'gpt2'"):
        pybpe.get_encoding(None)  # type: ignore[arg-type]


def test_the_table_is_that_of_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses, hashes, special tokens and patterns equal those in tiktoken's source."""
    seen: list[Any] = []

    def ranks(url: str, expected_hash: str) -> dict[bytes, int]:
        seen.append((url, expected_hash))
        return {}

    def gpt2_ranks(encoder_json_file: str, encoder_json_hash: str, **_: str) -> dict[bytes, int]:
        return ranks(encoder_json_file, encoder_json_hash)

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", ranks)
    monkeypatch.setattr(openai_public, "data_gym_to_mergeable_bpe_ranks", gpt2_ranks)
    for name, known in encodings._ENCODINGS.items():
        theirs = openai_public.ENCODING_CONSTRUCTORS[name]()
        url, sha256 = seen.pop()
        assert known.files[url.removeprefix(encodings._SERVER)] == sha256, name
        assert theirs["special_tokens"] == known.specials
        assert pybpe.train(iter(()), vocab_size=256, pattern=theirs["pat_str"]).pattern.name in (None, known.pattern)
    assert hashlib.sha256(gpt2_rank_lines()).hexdigest() == encodings._ENCODINGS["gpt2"].files[RANKS]
    assert parse_ranks(gpt2_rank_lines(), "gpt2") == gpt2_tiktoken()._mergeable_ranks


def test_without_a_network_the_command_line_names_no_function(
    cache: Path, offline: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["encode", "-t", "gpt2", "--text", "a"]) == 2
    told = capsys.readouterr().err
    assert told.endswith("set TIKTOKEN_CACHE_DIR to this folder, or use its tokenizer.json\n") and told.count("\n") == 1


def test_names_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(TEXT, encoding="utf-8")
    assert cli.main(["count", "-t", "gpt2", "a.txt", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tokens"] == len(gpt2_tiktoken().encode(TEXT, allowed_special="all"))
    assert cli.main(["export", "gpt2", "-o", "gpt2.json"]) == 0
    capsys.readouterr()
    assert cli.main(["count", "-t", "gtp2", "a.txt"]) == 2
    assert "gtp2: there is no file or encoding with this name. The encodings are gpt2, " in capsys.readouterr().err
    pybpe.train(iter(["a"]), vocab_size=257, special_tokens=["<|end|>"]).save("gpt2")
    assert cli.main(["inspect", "--json", "gpt2"]) == 0  # a file with this name takes precedence
    assert list(json.loads(capsys.readouterr().out)["special_tokens"]) == ["<|end|>"]
