"""Nothing finished is lost by a typo: what a command replaces, what it refuses to replace, and what is complete."""

import contextlib
import gzip
import io
import json
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from corpora import EOT, content, documents, small_tokenizer
from killed import run_and_die
from test_ulimits import small_disk as small_disk

import pybpe
from llmc_compat.workspace import make_workspace
from pybpe.cli import main
from pybpe.loading.mixture import folder_paths
from pybpe.support import platform
from pybpe.tokens import output_folder, run
from pybpe.tokens.pack import packing
from pybpe.tokens.verification import verify
from pybpe.training import counting


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
    "prepare": lambda text, out, force: pybpe.prepare(text, out, vocab_size=290, force=force, **SPLIT),
    "pack": lambda text, out, force: OF_TOKENS["pack"](binarize(text, f"tokens-{text}"), out, force=force),
    "join": lambda text, out, force: OF_TOKENS["join"](binarize(text, f"tokens-{text}"), out, force=force),
    "mix": lambda text, out, force: OF_TOKENS["mix"](binarize(text, f"tokens-{text}"), out, force=force),
    "workspace": lambda text, out, force: make_workspace(text, out, force=force, **MODEL),
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
        with pytest.raises(
            pybpe.errors.ArgumentError, match="in something else: the content|1 input that is changed, a.txt:"
        ):
            pybpe.binarize(tok, "a.txt", "out", **SMALL)
    text.write_bytes(before)
    later = os.stat("out/manifest.json").st_mtime_ns + 1
    os.utime(text, ns=(later, later))
    with pytest.raises(pybpe.errors.ArgumentError, match="was written before a.txt changed"):
        pybpe.binarize(tok, "a.txt", "out", **SMALL)


def test_a_refusal_says_how_the_calls_differ(inputs: Path) -> None:
    """The second of two commands is refused, with these words; `tokens` is a folder of token files."""
    Path("r.toml").write_text('[sources.x]\ndata = "tokens"\nepochs = 1\n')
    Path("r2.toml").write_text('[sources.x]\ndata = "tokens"\nepochs = 2\n')
    Path("one.txt").write_text(Path("a.txt").read_text())
    small = "--min-shard-tokens 0"
    cases = {
        f"binarize -t tok.json a.txt one.txt {small}": {
            f"binarize -t tok.json a.txt b.txt {small}": "1 input that is new, b.txt; 1 input that is gone, one.txt",
            f"binarize -t tok.json one.txt a.txt --name a {small}": "the inputs in another order",
            f"binarize -t tok.json a.txt one.txt {small} --splits 9,1": "--splits 9,1 instead of 8,1,1",
            f"binarize -t other.json a.txt one.txt {small}": "tokenizer.fingerprint ",
            f"binarize -t tok.json ./a.txt one.txt {small} --name a": "1 input that is named differently, ./a.txt",
            f"binarize -t tok.json a.txt one.txt {small} --name z": "something else: the content of an input",
        },
        f"prepare a.txt --vocab-size 290 {small}": {
            f"prepare a.txt --vocab-size 280 {small}": "--vocab-size 280 instead of 290:",
            f"prepare a.txt --vocab-size 290 {small} --pattern cl100k": "--pattern ",
            f"prepare a.txt --vocab-size 290 {small} --min-frequency 3": "--min-frequency 3 instead of 0:",
            f"prepare a.txt --vocab-size 290 {small} --tie-break rustbpe": "--tie-break rustbpe instead of ",
            f"prepare a.txt --vocab-size 290 {small} --whole-characters": "--whole-characters True instead of none:",
            f"prepare a.txt --vocab-size 290 {small} --special-token <|endoftext|>": "--special-token <|endoftext|> ",
            f"prepare a.txt --vocab-size 290 {small} --eot append": "--eot append instead of prepend:",
        },
        "mix r.toml -t tok.json": {
            "mix r2.toml -t tok.json": "recipe.sources.x.epochs 2 instead of 1:",
            "mix r.toml -t tok.json --seed 1": "recipe.seed 1 instead of 0:",
            "mix r.toml -t tok.json --sequence-length 64": "--sequence-length 64 instead of 1024:",
        },
        "join tokens -t tok.json": {"join more -t tok.json": "manifests of folders.more "},
        "pack tokens -t tok.json --sequence-length 64": {
            "pack tokens -t tok.json --sequence-length 64 --packing fill": "--packing fill instead of best-fit:",
        },
    }
    binarize("b.txt", "more")
    for number, (first, others) in enumerate(cases.items()):
        assert command(f"{first} -o made{number}")[0] == 0, first
        for other, told in others.items():
            code, said = command(f"{other} -o made{number}")
            assert code == 2 and told in said and "--force" in said, (other, said)


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
# Every command that writes, by what is there already

QUESTION = {"context": "One and one", "completions": ["is one", "is two", "is 3", "is 4"], "label": 1}
SHAPE = "--layers 1 --heads 1 --channels 8 --sequence-length 64"
# Command -> (words, what makes another result of this command, the ending of the output)
FILES: dict[str, tuple[str, str, str]] = {
    "train": ("train a.txt --vocab-size 280 -o", "train a.txt --vocab-size 270 -o", ".json"),
    "prune": ("prune tok.json --vocab-size 290 -o", "prune tok.json --vocab-size 280 -o", ".json"),
    "export": ("export tok.json -o", "export other.json -o", ".bin"),
    "export ranks": ("export tok.json --format tiktoken -o", "export other.json --format tiktoken -o", ".tiktoken"),
    "count": ("count a.txt -o", "count b.txt --pattern cl100k -o", ".counts"),
    "encode": ("encode -t tok.json a.txt -o", "encode -t tok.json b.txt -o", ".ids"),
    "encode bin": ("encode -t tok.json a.txt -o", "encode -t tok.json b.txt -o", ".bin"),
    "encode npy": ("encode -t tok.json a.txt -o", "encode -t tok.json b.txt -o", ".npy"),
    "decode": ("decode -t tok.json 65 66 -o", "decode -t tok.json 67 -o", ".txt"),
    "remap": ("prune tok.json --vocab-size 290 -o - --remap", "prune tok.json --vocab-size 280 -o - --remap", ".npy"),
    "viz": ("viz --text hello -t tok.json -o", "viz --text other -t tok.json -o", ".html"),
    "checkpoint new": (f"llmc checkpoint new -t tok.json {SHAPE} -o",
                       f"llmc checkpoint new -t tok.json {SHAPE} --seed 1 -o", ".bin"),
    "checkpoint convert": ("llmc checkpoint convert model.bin --from tok.json --to other.json -o",
                           "llmc checkpoint convert model.bin --from tok.json --to tok.json -o", ".bin"),
    "eval": ("llmc eval q.jsonl -t tok.json -o", "llmc eval q.jsonl --separator x -t tok.json -o", ".bin"),
}  # fmt: skip
PAGES = {"viz"}  # a page replaces an older one
OTHERS: dict[str, Callable[[], bytes]] = {
    "another tokenizer": lambda: Path("other.json").read_bytes(),
    "weights": lambda: Path("model.bin").read_bytes()[:-4] + b"\1\2\3\4",
    "safetensors": lambda: b"\x10\0\0\0\0\0\0\0" + b'{"w":{}}        ',
    "gzip": lambda: gzip.compress(b"a text of mine"),
    "zip": lambda: b"PK\3\4" + bytes(60),
    "parquet": lambda: b"PAR1\x15\4\x15\x10" + bytes(60) + b"PAR1",
    "sqlite": lambda: b"SQLite format 3\0" + bytes(100),
    "jpeg": lambda: b"\xff\xd8\xff\xe0\0\x10JFIF\0" + bytes(100),
    "png": lambda: b"\x89PNG\r\n\x1a\n" + bytes(100),
    "array": lambda: b"\x93NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" + bytes(70),
    "page": lambda: b'<!doctype html>\n<html lang="en">\n<head><title>Mine</title></head></html>',
    "manifest": lambda: Path("tokens/manifest.json").read_bytes(),
    "text": lambda: b"a text of mine\n",
    "records": lambda: b'{"file": "x", "text": "a corpus"}\n',
    "numbers": lambda: b"1 2 3\n",
}


@pytest.fixture
def inputs(tok: pybpe.Tokenizer, texts: Path) -> Path:
    """What the commands of the tables read, in the current folder."""
    tok.save("tok.json")
    pybpe.train(iter(documents(5)), vocab_size=290, special_tokens=[EOT]).save("other.json")
    pybpe.Tokenizer.from_file("other.json").save("other.bin")
    control = pybpe.model.CONTROL_TOKENS
    pybpe.train(iter(documents(5)), vocab_size=300, special_tokens=control).save("chat.json")
    Path("q.jsonl").write_text(json.dumps(QUESTION))
    for name, word in (("c.jsonl", "one"), ("d.jsonl", "two")):
        lines = (json.dumps([{"role": "user", "content": f"{word} {i} {'x y z ' * 30}"}]) for i in range(60))
        Path(name).write_text("\n".join(lines))
    binarize("a.txt", "tokens")
    assert command(f"llmc checkpoint new -t tok.json {SHAPE} -o model.bin")[0] == 0
    return texts


def command(line: str) -> tuple[int, str]:
    """Runs a command in this process. Returns its exit code and its standard error."""
    err = io.StringIO()
    with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO())):
        try:
            code = main(line.split())
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, err.getvalue()


def test_a_folder_that_lacked_files_was_not_complete(inputs: Path) -> None:
    line = "export tok.json -o folder"
    os.mkdir("folder")
    Path("folder/notes").write_text("mine")
    assert command(line) == (0, "")
    assert "folder: was complete already" in command(line)[1]
    os.remove("folder/tokenizer_config.json")
    assert command(line) == (0, "")
    assert os.path.exists("folder/tokenizer_config.json") and os.path.exists("folder/notes")


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_replaced_only_by_the_same_or_by_force(name: str, inputs: Path) -> None:
    words, others, ending = FILES[name]
    out = Path("out" + ending)
    assert command(f"{words} {out}")[0] == 0
    made, at = out.read_bytes(), out.stat().st_mtime_ns
    code, said = command(f"{words} {out}")
    if name in PAGES:
        assert (code, out.read_bytes()) == (0, made) and f"{out}: replaced a page" in said
    else:
        assert (code, out.stat().st_mtime_ns) == (0, at) and f"{out}: was complete already" in said
    assert command(f"{others} another{ending}")[0] == 0
    kinds = {"another result": Path(f"another{ending}").read_bytes(), **{kind: data() for kind, data in OTHERS.items()}}
    before = set(os.listdir())
    for kind, data in kinds.items():
        out.write_bytes(data)
        code, said = command(f"{words} {out}")
        if kind == "another result" and name in PAGES:
            assert (code, out.read_bytes()) == (0, made), kind
            continue
        assert (code, out.read_bytes(), "--force" in said) == (2, data, True), (kind, said)
        spare = Path(f"out.new1{ending}")
        if spare.exists():  # what took long is kept
            assert name in ("train", "count") and spare.name in said and spare.read_bytes() == made
            spare.unlink()
        assert set(os.listdir()) == before, kind  # nothing hidden is left
    assert command(f"{words} {out} --force")[0] == 0
    assert out.read_bytes() == made
    out.unlink()
    out.symlink_to(f"target{ending}")  # which does not exist
    assert command(f"{words} {out}")[0] == 0
    assert out.read_bytes() == made


# The same for folders
FOLDERS: dict[str, tuple[str, str]] = {
    "train": ("train a.txt --vocab-size 280 -o", "train a.txt --vocab-size 270 -o"),
    "prune": ("prune tok.json --vocab-size 290 -o", "prune tok.json --vocab-size 280 -o"),
    "export": ("export tok.json -o", "export other.json -o"),
    "export files": ("export tok.json --format files -o", "export other.json --format files -o"),
    "convert": ("llmc checkpoint convert model.bin -t tok.json -o", "export other.json -o"),
    "chat": ("llmc chat -t chat.json c.jsonl -o", "llmc chat -t chat.json d.jsonl -o"),
    "binarize": ("binarize -t tok.json a.txt -o", "binarize -t tok.json b.txt -o"),
    "prepare": ("prepare a.txt --vocab-size 290 -o", "prepare a.txt --vocab-size 280 -o"),
    "pack": ("pack tokens -t tok.json --sequence-length 64 -o", "pack tokens -t tok.json --sequence-length 128 -o"),
    "join": ("join tokens -t tok.json -o", "join tokens -t tok.json --name other -o"),
    "mix": ("mix r.toml -t tok.json -o", "mix r.toml -t tok.json --seed 1 -o"),
    "workspace": (f"llmc workspace a.txt --vocab-size 290 {SHAPE} -o",
                  f"llmc workspace a.txt --vocab-size 280 {SHAPE} -o"),
}  # fmt: skip
ROWS_ALONE = {"pack"}  # nothing else may be next to rows
OF_TOKENIZERS = {"train", "prune", "export", "export files", "convert"}
BESIDE: dict[str, Callable[[], dict[str, bytes]]] = {
    "another tokenizer": lambda: {"tokenizer.json": Path("other.json").read_bytes()},
    "a tokenizer.bin": lambda: {"tokenizer.bin": Path("other.bin").read_bytes()},
    "a chat template": lambda: {"chat_template.jinja": b"mine"},
    "added tokens": lambda: {"added_tokens.json": b"{}"},
    "a model": lambda: {"config.json": b'{"vocab_size": 77}', "model.safetensors": b"weights"},
    "token files": lambda: {path.name: path.read_bytes() for path in Path("foreign").iterdir() if path.is_file()},
    "bare token files": lambda: {"fineweb_train_000001.bin": b"tokens"},
    "llm.c's names": lambda: {"gpt2_124M.bin": b"trained", "gpt2_tokenizer.bin": b"mine", "README.md": b"mine"},
    "shards of chat": lambda: {"chat_train_000000.bin": b"tokens"},
    "texts": lambda: {"notes.txt": b"mine"},
}
# What a command may add its files to
FINE = {
    *((name, "texts") for name in FOLDERS if name not in ROWS_ALONE),
    *((name, "shards of chat") for name in OF_TOKENIZERS),
    *((name, "bare token files") for name in {*OF_TOKENIZERS, "chat"}),
    *((name, "llm.c's names") for name in FOLDERS if name not in {*ROWS_ALONE, "workspace"}),
    *((name, kind) for name in ("binarize", "join", "mix", "prepare", "workspace", "chat")
      for kind in ("a model", "a chat template", "added tokens")
      if (name, kind) != ("chat", "a chat template")),
    *(("chat", kind) for kind in ("another tokenizer", "a tokenizer.bin")),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_a_kill_leaves_the_old_file_or_the_new_one(name: str, inputs: Path) -> None:
    """At each access to the disk. The same command then ends as if it had not been killed."""
    words, others, ending = FILES[name]
    out = Path("out" + ending)
    contents = []
    for line in (words, others):
        assert command(f"{line} {out} --force")[0] == 0
        contents.append(out.read_bytes())
    new, old = contents
    for before, force in ((None, ""), (old, " --force")):
        for point in range(100):
            if before is not None:
                out.write_bytes(before)
            elif out.exists():
                out.unlink()
            if not run_and_die(point, command, f"{words} {out}{force}"):
                break
            assert (out.read_bytes() if out.exists() else None) in (before, new)
            assert command(f"{words} {out}{force}")[0] == 0
            assert out.read_bytes() == new
        assert point < 99 and (point > 0 or name == "export")  # which C writes in one call


@pytest.mark.parametrize("name", FOLDERS)
@pytest.mark.filterwarnings("ignore::pybpe.errors.PybpeWarning")
def test_a_folder_loses_nothing(name: str, inputs: Path) -> None:
    Path("r.toml").write_text('[sources.x]\ndata = "tokens"\nepochs = 1\n')
    pybpe.binarize(pybpe.Tokenizer.from_file("other.json"), "a.txt", "foreign", **SPLIT)
    words, others = FOLDERS[name]
    assert command(f"{words} out")[0] == 0
    made = content("out")
    assert command(f"{words} out")[0] == 0  # complete
    assert content("out") == made
    assert command(f"{others} another")[0] == 0
    kinds = {"another result": content("another"), **{kind: files() for kind, files in BESIDE.items()}}
    for number, (kind, files) in enumerate(kinds.items()):
        out = Path(f"out{number}")
        for file, data in files.items():
            path = out / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        before = set(os.listdir())
        code, said = command(f"{words} {out}")
        assert code == (0 if (name, kind) in FINE else 2), (kind, said)
        found = content(out)
        assert {file: data for file, data in found.items() if file in files} == files, (kind, said)
        if code == 0:
            assert found.items() >= made.items(), kind
        else:
            assert found.keys() == files.keys() and ("--force" in said or "another folder" in said), (kind, said)
            spares = [file for file in set(os.listdir()) - before if ".new1" not in file or name != "train"]
            assert spares == [], kind
    empty = Path("empty")
    empty.mkdir(mode=0o700)
    assert command(f"{words} empty")[0] == 0
    assert content("empty") == made and empty.stat().st_mode & 0o777 == 0o700
    Path("file").write_text("mine")
    code, said = command(f"{words} file")
    assert (code, Path("file").read_text()) == (2, "mine"), said
    Path("dangling").symlink_to("nowhere/at/all")
    code, said = command(f"{words} dangling")
    assert code == 0 or not os.path.exists("dangling"), said
    if name != "convert":
        code, said = command(f"{others} out --force")
        assert (code, name in OF_TOKENIZERS or content("out") == content("another")) == (0, True), said


# ----------------------------------------------------------------------------------------------------
# What a call reads, and what belongs to others


def test_packing_keeps_the_tokenizer_and_the_folder(inputs: Path) -> None:
    words = "pack tokens -t data/tokenizer.json -o data"
    Path("data").mkdir(mode=0o700)
    tok = Path("tok.json").read_bytes()
    Path("data/tokenizer.json").write_bytes(tok)
    at = os.stat("data").st_ino
    assert command(f"{words} --sequence-length 64")[0] == 0
    assert Path("data/tokenizer.json").read_bytes() == tok
    assert (os.stat("data").st_ino, os.stat("data").st_mode & 0o777) == (at, 0o700)
    assert command(f"{words} --sequence-length 128 --force")[0] == 0
    assert Path("data/tokenizer.json").read_bytes() == tok and verify("data")[1] == []
    Path("data/tokenizer.json").write_bytes(Path("other.json").read_bytes())
    for force in ("", " --force"):
        other = words.replace("data/tokenizer.json", "tok.json")
        code, said = command(f"{other} --sequence-length 32{force}")
        assert code == 2 and ("--force" in said or "data: has another tokenizer, tokenizer.json" in said)
    assert Path("data/tokenizer.json").read_bytes() == Path("other.json").read_bytes()


def test_a_tokenizer_that_the_call_reads_is_not_removed(inputs: Path) -> None:
    """Though the manifest of what it replaces lists it."""
    assert command("prepare a.txt --vocab-size 290 -o data")[0] == 0
    tok = Path("data/tokenizer.json").read_bytes()
    assert command("binarize -t data/tokenizer.json b.txt -o data --force")[0] == 0
    assert Path("data/tokenizer.json").read_bytes() == tok and verify("data")[1] == []
    with pytest.raises(pybpe.errors.ArgumentError, match="data: this is also the output folder"):
        pybpe.pack(pybpe.Tokenizer.from_file("data/tokenizer.json"), "data", "./data", sequence_length=64, force=True)


def test_a_mount_point_is_an_output_folder(small_disk: Path, inputs: Path) -> None:
    assert command(f"pack tokens -t tok.json --sequence-length 64 -o {small_disk}")[0] == 0
    assert command(f"pack tokens -t tok.json --sequence-length 128 -o {small_disk} --force")[0] == 0
    assert verify(small_disk)[1] == []
    for path in small_disk.iterdir():
        path.unlink()
    (small_disk / "notes.txt").write_text("mine")
    for _ in range(2):
        assert command(f"export tok.json -o {small_disk}")[0] == 0
    code, said = command(f"train a.txt --vocab-size 280 -o {small_disk}")
    assert code == 2 and f"the new result is in {small_disk}.new1" in said
    assert (small_disk.parent / "disk.new1" / "tokenizer.json").exists()


def test_what_a_forced_command_leaves_of_another_tokenizer_is_said(inputs: Path) -> None:
    assert command("export other.json -o out --format files")[0] == 0
    code, said = command("export tok.json -o out --force")
    assert (
        code == 0
        and "out: vocab.json, merges.txt were not removed: remove them if they belong to the old output" in said
    )


def test_packed_rows_have_the_tokenizer_of_their_data(texts: Path) -> None:
    tok, _ = pybpe.prepare("a.txt", "data", vocab_size=290, **SMALL)
    rows = pybpe.pack(tok, "data", "rows", sequence_length=64)
    for name in ("tokenizer.json", "tokenizer.bin"):
        assert name in rows.file_names and content("rows")[name] == content("data")[name]


@pytest.mark.parametrize("then", ["pack", "binarize"])
def test_packing_that_fails_or_is_killed_leaves_the_old_rows_or_a_run_that_goes_on(
    then: str, tok: pybpe.Tokenizer, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the rows that are replaced, whose files have other names, none stays."""
    for name in "ab":
        binarize(f"{name}.txt", f"data-{name}")

    def pack(name: str, out: str = "rows", **more: Any) -> None:
        pybpe.pack(tok, f"data-{name}", out, sequence_length=64, **more)

    pack("a")
    before = content("rows")
    with monkeypatch.context() as patch, pytest.raises(OSError, match="full"):
        patch.setattr(packing.TokenStream, "slice", failing)
        pack("b", force=True)
    assert content("rows") == before  # nor is there anything hidden, which could not resume
    for calls in range(1, 5):  # the old manifest is put aside, and three files get their names, in turn
        moves = iter([platform.replace_file] * calls)

        def kill(source: str, target: str) -> None:
            next(moves, interrupted)(source, target)  # noqa: B023

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(platform, "replace_file", kill)
            patch.setattr(output_folder, "remove_work", interrupted)
            pack("b", force=True)
        if calls == 1:
            with pytest.raises(pybpe.errors.ArgumentError, match="has not finished: run its command again"):
                verify("rows", tok)
            if then == "binarize":
                break
    call = CALLS[then] if then != "pack" else lambda text, out, force: pack(text[0], out, force=force)
    call("b.txt", "rows", True)
    call("b.txt", "fresh", True)
    assert content("rows") == content("fresh")


def failing(*_: object) -> None:
    raise OSError(28, "disk full")


def test_a_killed_call_that_would_replace_files_leaves_them_usable(
    tok: pybpe.Tokenizer, texts: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Until it removes the manifest. The call that made them finds its result complete."""
    binarize("a.txt", "data")
    before = content("data")
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(run, "publish", interrupted)
        binarize("b.txt", "data", force=True)
    caplog.set_level("INFO", "pybpe")
    assert verify("data", tok)[1] == [] and "the command that made these files" in caplog.text
    for name, call in OF_TOKENS.items():
        call("data", name)
    assert len(folder_paths("data")) == 1
    binarize("a.txt", "data")
    assert content("data") == before and not os.path.exists("data/.pybpe-unfinished")
    assert "data: gave up the unfinished run of another call" in caplog.text
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(output_folder, "remove_file", interrupted)
        binarize("b.txt", "data", force=True)
    for call in (lambda: verify("data", tok), lambda: folder_paths("data"), lambda: OF_TOKENS["pack"]("data", "no")):
        with pytest.raises(pybpe.errors.ArgumentError, match="has not finished: run its command again"):
            call()
    binarize("b.txt", "data", force=True)
    binarize("b.txt", "fresh")
    assert content("data") == content("fresh")


def test_files_with_equal_names_are_replaced_whole(texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed at any rename, the next call ends the replacing, and removes none of the new files."""
    binarize("a.txt", "fresh", eot="none")
    replace, number = output_folder.platform.replace_file, 0
    while True:
        number += 1
        left = iter(range(number))

        def limited(*paths: str, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise KeyboardInterrupt
            replace(*paths)

        binarize("a.txt", "data", force=True)
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            patch.setattr(output_folder.platform, "replace_file", limited)
            binarize("a.txt", "data", eot="none", force=True)
            break
        with suppress(pybpe.errors.ArgumentError):  # of another call, as soon as the manifest is put aside
            binarize("a.txt", "data")
            continue
        assert content("data") == content("fresh"), number
    assert number > 3


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer.bin", "a_val_000000.bin"])
def test_a_result_is_complete_if_all_files_are_the_listed_ones(
    name: str, texts: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def prepare(out: str = "out") -> None:
        pybpe.prepare("a.txt", out, vocab_size=290, **SMALL)

    prepare()
    before = content("out")
    caplog.set_level("INFO", "pybpe")
    Path("out", name).unlink()
    assert f"{name}: cannot be read" in "".join(map(str, verify("out")[1]))
    prepare()
    assert content("out") == before and "already complete" not in caplog.text
    changed = bytearray(before[name])
    changed[-3] ^= 1
    Path("out", name).write_bytes(changed)
    with pytest.raises(
        pybpe.errors.ArgumentError, match=f"out: {name} is not the file that this call wrote.*force=True"
    ):
        prepare()
    assert Path("out", name).read_bytes() == changed
    pybpe.prepare("a.txt", "out", vocab_size=290, force=True, **SMALL)
    assert content("out") == before


def test_a_tokenizer_is_not_put_beside_a_model_of_another_size(inputs: Path) -> None:
    Path("model").mkdir()
    Path("model/config.json").write_text('{"vocab_size": 1000}')
    assert command("export tok.json -o model")[0] == 0
    Path("model/config.json").write_text('{"vocab_size": 50257}')
    for words in (
        "export tok.json -o model",
        "train a.txt --vocab-size 280 -o model",
        "prune tok.json a.txt -o model/x.json",
    ):
        code, said = command(words)
        assert (code, "has a model for a tokenizer of 50257 tokens" in said, "--force" in said) == (2, True, True)


def test_trained_weights_are_not_replaced_by_random_ones(texts: Path) -> None:
    make_workspace("a.txt", "out", **MODEL)
    model = Path("out/gpt2_124M.bin")
    trained = model.read_bytes()[:-8] + b"\0\0\x80?\0\0\x80?"
    for name, data in (("gpt2_124M.bin", trained), ("gpt2_tokenizer.bin", b"mine")):
        made = Path("out", name).read_bytes()
        Path("out", name).write_bytes(data)
        Path("out/README.md").unlink()
        with pytest.raises(pybpe.errors.ArgumentError, match=f"{name}: is not what pybpe made.*force=True"):
            make_workspace("a.txt", "out", **MODEL)
        assert Path("out", name).read_bytes() == data
        Path("out", name).write_bytes(made)
        make_workspace("a.txt", "out", **MODEL)


@pytest.mark.parametrize(
    "words",
    ["train r.jsonl --vocab-size 280 -o out.json", "count r.jsonl -o out.counts", "corpus r.jsonl -o out.jsonl"],
)
def test_the_list_of_skipped_records_replaces_only_such_a_list(words: str, texts: Path) -> None:
    Path("r.jsonl").write_text('{"text": "one"}\n' * 9 + "not a record\n" + '{"text": "two"}\n' * 9)
    listed = Path(words.split()[-1] + ".skipped.jsonl")
    assert command(f"{words} --on-error skip")[0] == 0
    made = listed.read_bytes()
    assert made.startswith(b'{"file": ')
    for data in (b'{"text": "mine"}\n', b'{"file": "x", "text": "mine"}\n'):
        listed.write_bytes(data)
        code, said = command(
            f"{words} --on-error skip --force".replace(" --force", "" if "corpus" not in words else "")
        )
        assert (code, listed.read_bytes()) == (2, data), said
    assert command(f"{words} --on-error skip --force")[0] == 0
    assert listed.read_bytes() == made


def test_the_list_in_a_folder_replaces_only_such_a_list(tok: pybpe.Tokenizer, texts: Path) -> None:
    Path("r.jsonl").write_text('{"text": "one"}\n' * 9)
    Path("out").mkdir()
    Path("out/skipped.jsonl").write_text("mine")
    with pytest.raises(pybpe.errors.ArgumentError, match="skipped.jsonl: the list of skipped records would replace"):
        pybpe.binarize(tok, "r.jsonl", "out", on_error="skip", **SMALL)
    assert content("out") == {"skipped.jsonl": b"mine"}


@pytest.mark.parametrize(
    "words",
    [
        "train a.txt --vocab-size 280 -o",
        "count a.txt -o",
        "train a.txt --vocab-size 280 --on-error skip -o t.json --skipped",
    ],
)
def test_an_output_that_cannot_be_written_is_found_first(
    words: str, texts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "count_plan", failing)
    for place in ("/proc/nothing/x.json", "/proc/x.json"):
        code, said = command(f"{words} {place}")
        assert code == 2 and "cannot be" in said and "disk full" not in said
