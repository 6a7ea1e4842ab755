"""Nothing finished is lost by a typo: what a command replaces, what it refuses to replace, and what is complete."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, content, documents, small_tokenizer

import pybpe
from llmc_compat.workspace import make_workspace
from pybpe.cli import main
from pybpe.tokens.pack import packing
from pybpe.tokens.verification import verify


@pytest.fixture
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two corpora, which is the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("a.txt", EOT.join(documents(60))), ("b.txt", EOT.join(documents(60)[::-1]))):
        Path(name).write_text(text, encoding="utf-8")
    return tmp_path


SMALL: Any = {"min_shard_tokens": 0, "progress": False}
SPLIT: Any = {"splits": (8, 2), **SMALL}
MODEL: Any = {"layers": 1, "heads": 1, "channels": 8, "sequence_length": 64, "vocab_size": 290, "progress": False}


def binarize(text: str, out: str, force: bool = False, **more: Any) -> str:
    pybpe.binarize(small_tokenizer(), text, out, force=force, **SPLIT, **more)
    return out


# What makes token files of a folder of them
OF_TOKENS: dict[str, Callable[..., Any]] = {
    "pack": lambda folder, out, **given: pybpe.pack(small_tokenizer(), folder, out, sequence_length=64, **given),
    "join": lambda folder, out, **given: pybpe.join(small_tokenizer(), [folder], out, **given),
    "mix": lambda folder, out, **given: pybpe.mix(
        small_tokenizer(), {"sources": {"x": {"data": folder, "epochs": 1}}}, out, min_shard_tokens=0, **given
    ),
}


# What fills a folder, given a text, the folder and force
CALLS: dict[str, Callable[..., Any]] = {
    "binarize": binarize,
    "binarize --pack": lambda text, out, force: binarize(text, out, force, pack=True, sequence_length=64),
    "prepare": lambda text, out, force: pybpe.prepare(text, out, vocab_size=290, force=force, **SPLIT),
    "pack": lambda text, out, force: OF_TOKENS["pack"](binarize(text, f"tokens-{text}"), out, force=force),
    "join": lambda text, out, force: OF_TOKENS["join"](binarize(text, f"tokens-{text}"), out, force=force),
    "mix": lambda text, out, force: OF_TOKENS["mix"](binarize(text, f"tokens-{text}"), out, force=force),
    "workspace": lambda text, out, force: make_workspace(text, out, force=force, **MODEL),
    "workspace --pack": lambda text, out, force: make_workspace(text, out, pack=True, force=force, **MODEL),
}


@pytest.mark.parametrize("name", CALLS)
def test_an_equal_call_finds_the_result_complete_and_another_replaces_it_only_if_forced(
    name: str, texts: Path, caplog: pytest.LogCaptureFixture
) -> None:
    call = CALLS[name]
    call("a.txt", "out", False)
    first = {path: (data, Path("out", path).stat().st_mtime_ns) for path, data in content("out").items()}
    caplog.set_level("INFO", "pybpe")
    call("a.txt", "out", False)
    assert "already complete (" in caplog.text
    with pytest.raises(pybpe.errors.ArgumentError, match="force=True"):
        call("b.txt", "out", False)
    assert {path: (data, Path("out", path).stat().st_mtime_ns) for path, data in content("out").items()} == first
    call("b.txt", "out", True)
    call("b.txt", "fresh", False)
    assert sorted(content("out").values()) == sorted(content("fresh").values())


def test_a_changed_input_is_noticed(tok: pybpe.Tokenizer, texts: Path) -> None:
    """By its size, its content, or the time of its last change."""
    text, before = Path("a.txt"), Path("a.txt").read_bytes()
    pybpe.binarize(tok, "a.txt", "out", **SMALL)
    old = os.stat("a.txt")
    for data in (before[:-1], b"x" + before[1:]):
        text.write_bytes(data)
        os.utime(text, ns=(old.st_atime_ns, old.st_mtime_ns))
        with pytest.raises(pybpe.errors.ArgumentError, match="other inputs"):
            pybpe.binarize(tok, "a.txt", "out", **SMALL)
    text.write_bytes(before)
    later = os.stat("out/manifest.json").st_mtime_ns + 1
    os.utime(text, ns=(later, later))
    with pytest.raises(pybpe.errors.ArgumentError, match="was written before a.txt changed"):
        pybpe.binarize(tok, "a.txt", "out", **SMALL)


def test_a_shard_that_is_gone_is_made_again(tok: pybpe.Tokenizer, texts: Path) -> None:
    pybpe.binarize(tok, "a.txt", "out", **SMALL)
    Path("out/a_train_000000.bin").unlink()
    pybpe.binarize(tok, "a.txt", "out", **SMALL)
    assert verify("out", tok)[1] == []


def test_a_tokenizer_never_stays_beside_tokens_of_another_one(tok: pybpe.Tokenizer, texts: Path) -> None:
    """D6: prepare, then binarize with another tokenizer; and a tokenizer, then binarize into its folder."""
    pybpe.prepare("a.txt", "out", vocab_size=290, **SMALL)
    tok.save("tok.json")
    pybpe.binarize(tok, "a.txt", "out", force=True, **SMALL)
    assert not Path("out/tokenizer.json").exists() and not Path("out/tokenizer.bin").exists()
    pybpe.train(iter(documents(5)), vocab_size=280).save("mine/tokenizer.json")
    with pytest.raises(pybpe.errors.ArgumentError, match="has another tokenizer, tokenizer.json"):
        pybpe.binarize(tok, "a.txt", "mine", **SMALL)
    tok.save("same/tokenizer.json")
    pybpe.binarize(tok, "a.txt", "same", **SMALL)  # the tokenizer of these tokens
    for command in (
        ["train", "a.txt", "--vocab-size", "280", "-o", "same/tokenizer.json"],
        ["export", "mine/tokenizer.json", "-o", "same", "--format", "files"],
    ):
        assert main(command) == 2
    assert main(["export", "tok.json", "-o", "same/tokenizer.bin"]) == 0


def test_token_files_of_another_program_are_not_replaced(tok: pybpe.Tokenizer, texts: Path) -> None:
    Path("out").mkdir()
    Path("out/fineweb_train_000001.bin").write_bytes(b"another program's")
    with pytest.raises(pybpe.errors.ArgumentError, match="without a manifest, such as fineweb_train_000001.bin"):
        pybpe.binarize(tok, "a.txt", "out", **SMALL)
    Path("out/manifest.json").write_text("{}")
    with pytest.raises(pybpe.errors.ArgumentError, match="a manifest that cannot be read"):
        pybpe.binarize(tok, "a.txt", "out", **SMALL)
    with pytest.warns(pybpe.errors.PybpeWarning, match="fineweb_train_000001.bin is in no manifest, so it stays"):
        pybpe.binarize(tok, "a.txt", "out", **SMALL, force=True)


@pytest.mark.parametrize("name", ["binarize", "join", "mix"])
def test_what_a_killed_call_left_to_pack_goes_when_another_call_takes_its_output(
    name: str, tok: pybpe.Tokenizer, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D12"""
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(packing, "pack", interrupted)
        pybpe.binarize(tok, "a.txt", "out", pack=True, progress=False)
    assert Path(".out.tokens.unfinished").exists()
    CALLS[name]("a.txt", "out", False)
    assert Path("out").exists() and not Path(".out.tokens.unfinished").exists()


def interrupted(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("name", OF_TOKENS)
def test_token_files_of_which_no_others_can_be_made_are_refused(name: str, tok: pybpe.Tokenizer, texts: Path) -> None:
    call = OF_TOKENS[name]
    binarize("a.txt", "data")
    pybpe.binarize(pybpe.train(iter(["other"]), vocab_size=300, special_tokens=[EOT]), "a.txt", "others", **SMALL)
    pybpe.binarize(tok, "a.txt", "bare", eot="none", **SMALL)
    for kind in ("pack", "mix"):
        OF_TOKENS[kind]("data", kind)
    wrong = {"others": "another tokenizer made these tokens", "pack": "has packed rows"}
    if name != "pack":  # which takes mixtures, and asks for marks at the beginning
        wrong |= {"bare": "no end of text between documents", "mix": "is a mixture"}
        with pytest.raises(pybpe.errors.ArgumentError, match="this is also the output folder"):
            call("data", "data")
    for folder, message in wrong.items():
        with pytest.raises(pybpe.errors.ArgumentError, match=message):
            call(folder, "out")
    with pytest.raises(pybpe.errors.FileError, match="nowhere"):
        call("nowhere", "out")
    (shard,) = Path("data").glob("*_train_*.bin")
    whole = shard.read_bytes()
    for damaged, message in (
        (whole[:-2], "bytes, but the manifest says"),
        (whole[:2000] + whole[2002:2004] + whole[2000:2002] + whole[2004:], "does not match its manifest"),
    ):  # truncated; two ids exchanged
        shard.write_bytes(damaged)
        with pytest.raises(pybpe.errors.FormatError, match=message):
            call("data", "out")
    assert not list(Path().glob("out/[!.]*"))


# ----------------------------------------------------------------------------------------------------
# Single files

FILES: dict[str, tuple[list[str], str]] = {  # command -> (words, what it writes there)
    "train": (["train", "a.txt", "--vocab-size", "280", "-o"], "a tokenizer"),
    "prune": (["prune", "tok.json", "--vocab-size", "290", "-o"], "a tokenizer"),
    "counts": (["count", "a.txt", "-o"], "a counts file"),
    "encode": (["encode", "-t", "tok.json", "a.txt", "-o"], "ids"),
    "viz": (["viz", "hello", "-t", "tok.json", "-o"], "a page"),
    "remap": (["prune", "tok.json", "--vocab-size", "290", "-o", "-", "--remap"], "a numpy array"),
    "corpus": (["corpus", "r.jsonl", "-o"], ""),
    "decode": (["decode", "-t", "tok.json", "65", "66", "-o"], ""),
}
ENDINGS = {"train": ".json", "prune": ".json", "corpus": ".jsonl", "counts": ".counts", "remap": ".npy"}


@pytest.mark.parametrize("name", FILES)
def test_a_single_file_is_replaced_if_the_command_writes_its_kind(
    name: str, tok: pybpe.Tokenizer, texts: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tok.save("tok.json")
    Path("r.jsonl").write_text(json.dumps({"text": "one"}) + "\n")
    words, kind = FILES[name]
    out = Path("out" + ENDINGS.get(name, ".x"))
    assert main([*words, str(out)]) == 0
    made = out.read_bytes()
    capsys.readouterr()
    if kind:
        assert main([*words, str(out)]) == 0
        assert f"{out}: replaced {kind}\n" in capsys.readouterr().err
    for other in (b"a text of mine\n", b'{"text": "a corpus"}\n', Path("a.txt").read_bytes()):
        out.write_bytes(other)
        assert main([*words, str(out), "--quiet"][: None if name not in ("encode", "decode") else -1]) == 2
        assert "choose another output, or pass --force" in capsys.readouterr().err
        assert out.read_bytes() == other
    assert main([*words, str(out), "--force"]) == 0
    assert out.read_bytes() == made
