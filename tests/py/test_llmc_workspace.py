"""workspace: a corpus becomes a folder in which llm.c starts, with a README whose numbers are correct."""

import itertools
import json
import math
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy
import pytest
from commands import pybpe_command
from corpora import content
from texts import english

import pybpe
from llmc_compat.check import check
from llmc_compat.checkpoint import laptop_shape
from llmc_compat.shards import Batch, DataLoader, read_shard
from llmc_compat.workspace import Workspace, make_workspace
from pybpe.errors import ArgumentError, FileError, FileMissingError, LimitError, PybpeWarning
from pybpe.model import CONTROL_TOKENS
from pybpe.support.task_results import TASKS

SMALL: dict[str, Any] = {"vocab_size": 500, "layers": 1, "heads": 2, "channels": 8, "progress": False}

NAMES = {  # where llm.c's trainers look
    "README.md",
    "Makefile",
    "pybpe-workspace.json",
    *(f"programs/{name}" for name in ("train.c", "write.c", "generate.h")),
    *(f"programs/include/{name}" for name in ("pybpe.c", "pybpe.h", "pybpe_train.h", "pybpe_corpus.h")),
    *(f"programs/include/llmc/{name}.h" for name in ("dataloader", "fault", "rand", "tokenizer")),
    "gpt2_124M.bin",
    "gpt2_tokenizer.bin",
    "dev/data/tinyshakespeare/tiny_shakespeare_train.bin",
    "dev/data/tinyshakespeare/tiny_shakespeare_val.bin",
    *(f"data/corpus_{split}_000000.bin" for split in ("train", "val", "test")),
    *(f"data/{name}" for name in ("tokenizer.json", "tokenizer.bin", "manifest.json")),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "novel.txt"
    path.write_text(english()[:150_000], encoding="utf-8", newline="")
    return path


@pytest.fixture(scope="module")
def made(corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return make_workspace(corpus, tmp_path_factory.mktemp("workspace") / "work", **SMALL)


# ------------------------------------------------------------------------------------------------------
# The files


def test_everything_is_where_llm_c_looks(made: Workspace) -> None:
    folder = Path(made.folder)
    files = content(folder)
    assert set(files) == NAMES
    assert numpy.frombuffer(files["gpt2_tokenizer.bin"], "<i4", 4).tolist() == [20240328, 2, 500, 0]
    assert numpy.frombuffer(files["gpt2_124M.bin"], "<i4", 8).tolist() == [20240326, 3, 256, 500, 1, 2, 8, 512]
    for split in ("train", "val"):
        link = folder / f"dev/data/tinyshakespeare/tiny_shakespeare_{split}.bin"
        assert link.is_symlink() and link.resolve() == (folder / f"data/corpus_{split}_000000.bin").resolve()
        assert not os.path.isabs(os.readlink(link))
    assert check([folder])[1] == []


def test_the_tokenizer_has_seen_the_train_split_only(made: Workspace, corpus: Path) -> None:
    tok = made.tokenizer
    texts = {s: tok.decode(read_shard(Path(made.folder) / f"data/corpus_{s}_000000.bin")[1:]) for s in ("train", "val")}
    assert texts["train"] + texts["val"] == corpus.read_text(encoding="utf-8")[: len("".join(texts.values()))]
    again = pybpe.train(iter([texts["train"]]), vocab_size=500, special_tokens=CONTROL_TOKENS, min_frequency=2)
    everything = pybpe.train(corpus, vocab_size=500, special_tokens=CONTROL_TOKENS, min_frequency=2)
    assert again.merges == tok.merges != everything.merges
    assert tok.special_tokens == {text: i for i, text in enumerate(CONTROL_TOKENS)}


def test_the_same_again_gives_the_same_bytes(made: Workspace, corpus: Path, tmp_path: Path) -> None:
    expected = content(Path(made.folder))
    (tmp_path / "again").mkdir()
    for workers in (1, 3):
        make_workspace(corpus, tmp_path / "again", workers=workers, force=True, **SMALL)
        assert content(tmp_path / "again") == expected
    other = make_workspace(corpus, tmp_path / "again", seed=7, **SMALL)
    changed = {name for name, data in content(Path(other.folder)).items() if data != expected[name]}
    assert other.changed == ("gpt2_124M.bin",) and changed == {"gpt2_124M.bin", "pybpe-workspace.json"}


def test_shards_of_an_earlier_run_are_not_left_for_llm_c(corpus: Path, tmp_path: Path) -> None:
    make_workspace(corpus, tmp_path / "[work]", shard_tokens=5000, **SMALL)
    assert len(list((tmp_path / "[work]" / "data").glob("corpus_train_*.bin"))) > 5
    (tmp_path / "[work]" / "data" / "mine.bin.txt").write_text("kept")
    made = make_workspace(corpus, tmp_path / "[work]", shard_tokens=20_000, force=True, **SMALL)
    names = {p.name for p in (tmp_path / "[work]" / "data").iterdir()}
    shards = {record.file for records in made.manifest.shards.values() for record in records}
    assert names == shards | {"tokenizer.json", "tokenizer.bin", "manifest.json", "mine.bin.txt"}
    loader = DataLoader(f"{tmp_path}/[[]work]/data/corpus_train_*.bin", 4, 64)
    assert loader.num_tokens == made.manifest.split_tokens("train")


def test_bf16_and_the_rows_of_llm_cs_table(corpus: Path, tmp_path: Path) -> None:
    made = make_workspace(
        corpus,
        tmp_path / "work",
        vocab_size=300,
        depth=6,
        sequence_length=64,
        dtype="bf16",
        pad_vocab=64,
        progress=False,
    )
    shape = made.config
    assert (shape.num_layers, shape.num_heads, shape.channels, shape.padded_vocab_size) == (6, 6, 384, 320)
    raw = (tmp_path / "work" / "gpt2_124M_bf16.bin").read_bytes()
    assert numpy.frombuffer(raw, "<i4", 8).tolist() == [20240326, 5, 64, 300, 6, 6, 384, 320]
    text = (tmp_path / "work" / "README.md").read_text()
    assert "-e gpt2_124M_bf16.bin" in text and "PRECISION" not in text
    assert "OMP_NUM_THREADS" not in text and "--dtype fp32" in text


# ------------------------------------------------------------------------------------------------------
# The README


def command(text: str, heading: str) -> str:
    section = text[text.index(f"## {heading}\n") :]
    match = re.search(r"```sh\n(.*?)\n```", section, re.DOTALL)
    assert match
    return match[1]


@pytest.mark.parametrize(
    ("size", "context", "shard_tokens"), [(150_000, 1024, 10**8), (150_000, 100, 9000), (6000, 1024, 10**8)]
)
def test_the_commands_serve_batches(tmp_path: Path, size: int, context: int, shard_tokens: int) -> None:
    path = tmp_path / "text.txt"
    path.write_text(english()[:size])
    made = make_workspace(
        path, tmp_path / "work", sequence_length=context, shard_tokens=shard_tokens, splits=(5, 3), **SMALL
    )
    text = (tmp_path / "work" / "README.md").read_text()
    for heading, processes in (("One GPU", 1), ("Several GPUs", 2)):
        line = command(text, heading)
        assert ("mpirun -np 2" in line) == (processes == 2)
        flags = dict(re.findall(r" -(\w) '?([^ ']+)'?", line))
        assert (flags["e"], flags["h"]) == ("gpt2_124M.bin", "0") and "v" not in flags
        B, T = int(flags["b"]), int(flags["t"])
        assert 64 <= T <= context and T % 64 == 0 and 1 <= B <= 4
        for flag, split in (("i", "train"), ("j", "val")):
            loader = DataLoader(str(tmp_path / "work" / flags[flag]), B, T, processes - 1, processes)
            assert loader.num_tokens == made.manifest.split_tokens(split)
            loader.next_batch()
        steps = made.manifest.split_tokens("train") // (processes * B * T)
        assert f"\nOne epoch is {steps} steps" in text[text.index(heading) :]
        assert check([tmp_path / "work"], Batch(B, T, processes))[1] == []
    first = made.manifest.shards["train"][0].tokens
    assert f" takes {(first - 1) // 256} steps, but the trainer runs 41." in text
    assert ("over the first of" in text) == (shard_tokens == 9000)
    V = made.config.vocab_size
    assert f"ln({V}) = {math.log(V):.2f}" in text and f"{made.config.num_parameters} random parameters" in text
    assert "`-h 0`" in text and "`-v`" in text and "\ngit clone https://github.com/karpathy/llm.c ../llm.c\n" in text


def test_the_largest_batch_of_the_readme_is_the_largest(made: Workspace) -> None:
    match = re.search(r"With T = (\d+), the shards allow B up to (\d+)", (Path(made.folder) / "README.md").read_text())
    assert match
    T, B = map(int, match.groups())
    shards = [Path(made.folder) / f"data/corpus_{split}_000000.bin" for split in ("train", "val")]
    assert check(shards, Batch(B, T))[1] == [] != check(shards, Batch(B + 1, T))[1]


# ------------------------------------------------------------------------------------------------------
# Refused arguments


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"sequence_length": 63}, "sequence_length must be at least 64"),
        ({"dtype": "fp16"}, "fp32 or bf16"),
        ({"depth": 7}, "depth must be one of"),
        ({"heads": 3}, "does not divide C"),
        ({"pad_vocab": 4}, "pad_vocab must be a multiple of 8"),
        ({"vocab_size": 65537}, "at most 65536"),
        *(({"vocab_size": size}, f"vocab_size {size} is too small: the minimum is 265") for size in (-5, 0)),
        ({"special_tokens": ["<|user|>"]}, "no special token is the end of text"),
        ({"splits": (1,)}, "val split"),
        ({"splits": (1, 0, 1)}, "val split"),
    ],
)
def test_bad_arguments_leave_nothing(corpus: Path, tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make_workspace(corpus, tmp_path / "work", **{**SMALL, **settings})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:.*this file is empty")
def test_too_little_text_says_what_would_fit(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text(english()[:1500])
    with pytest.raises(LimitError) as caught:
        make_workspace(path, tmp_path / "work", **{**SMALL, "vocab_size": 300})
    match = re.fullmatch(
        r".*/corpus_val_000000.bin: (\d+) tokens, but 1 x B 4 x T 64 \+ 1 = 257 are needed; llm.c aborts;"
        r" the largest batch that fits is B (\d+) x T (\d+): use more text",
        str(caught.value),
    )
    assert match
    tokens, B, T = map(int, match.groups())
    assert (B, T) == (max(1, (tokens - 1) // 64), min(64, tokens - 1))
    assert not (tmp_path / "work").exists()
    path.write_text("")
    with pytest.warns(PybpeWarning, match="empty"), pytest.raises(ArgumentError, match="there is no text to train on"):
        make_workspace(path, tmp_path / "work", **SMALL)
    with pytest.raises(FileMissingError):
        make_workspace(tmp_path / "none.txt", tmp_path / "work", **SMALL)


# ------------------------------------------------------------------------------------------------------
# What is there: missing, damaged, foreign, of other options, of a kill

PARTS = (
    "gpt2_124M.bin", "gpt2_tokenizer.bin", "README.md", "Makefile", "pybpe-workspace.json", "programs/train.c",
    "programs/include/pybpe.c", "dev/data/tinyshakespeare/tiny_shakespeare_train.bin", "data/corpus_train_000000.bin",
    "data/corpus_test_000000.bin", "data/tokenizer.json", "data/tokenizer.bin", "data/manifest.json",
)  # fmt: skip
DAMAGE: dict[str, Any] = {
    "missing": lambda path: path.unlink(),
    "empty": lambda path: (path.unlink(), path.write_bytes(b"")),
    "truncated": lambda path: rewrite(path, lambda data: data[: len(data) // 2]),
    "flipped": lambda path: rewrite(path, lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:]),
    "foreign": lambda path: rewrite(path, lambda data: b"mine"),
}
OTHERS: dict[str, dict[str, Any]] = {
    "the same": {},
    "another model": {"layers": 2},
    "another type": {"dtype": "bf16"},
    "another vocabulary": {"vocab_size": 400},
    "forced": {"force": True},
    "forced, another vocabulary": {"vocab_size": 400, "force": True},
}


def rewrite(path: Path, change: Any) -> None:
    data = path.read_bytes()
    path.unlink()  # a link, not what it leads to
    path.write_bytes(change(data))


def is_right(work: Path, options: dict[str, Any], corpus: Path) -> None:
    """Asserts that a workspace is as a call with these options makes it, beside what another call may have left."""
    fresh = work.parent / "fresh"
    if not fresh.exists():
        make_workspace(corpus, fresh, **{**SMALL, **options, "force": False})
    expected, found = content(fresh), content(work)
    ours = {name for name in expected if name not in ("README.md", "Makefile", "pybpe-workspace.json")}
    assert {name: found.get(name) for name in ours} == {name: expected[name] for name in ours}
    assert [finding for finding in check([work])[1] if finding.is_error] == []


@pytest.mark.slow
@pytest.mark.parametrize("what", OTHERS)
@pytest.mark.filterwarnings("ignore::pybpe.errors.PybpeWarning")
def test_whatever_is_there_a_call_ends_right_or_names_the_flag(what: str, corpus: Path, tmp_path: Path) -> None:
    work, plain = tmp_path / "work", tmp_path / "plain"
    make_workspace(corpus, plain, **SMALL)
    for damage, part in itertools.product(DAMAGE, PARTS):
        if (damage, part) == ("flipped", "data/manifest.json"):
            continue  # the flipped byte is the size of an input, which nothing else depends on
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(plain, work, symlinks=True)
        DAMAGE[damage](work / part)
        left = content(work)
        try:
            made = make_workspace(corpus, work, **{**SMALL, **OTHERS[what]})
        except (ArgumentError, LimitError) as error:
            assert not OTHERS[what].get("force"), (damage, part)
            assert "force=True" in str(error), (damage, part)
            found = content(work)  # what was missing in data/ may have been made
            assert all(found.get(name) == data for name, data in left.items()), (damage, part)
        else:
            is_right(work, OTHERS[what], corpus)
            again = make_workspace(corpus, work, **{**SMALL, **OTHERS[what], "force": False})
            assert again.changed == () and made.folder == again.folder, (damage, part)


def test_it_makes_only_what_is_missing(made: Workspace, corpus: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    shutil.copytree(made.folder, work, symlinks=True)
    for part in PARTS:
        (work / part).unlink()
        if part == "data/manifest.json":  # nobody knows then whose token files these are
            with pytest.raises(ArgumentError, match="token files without a manifest.*force=True"):
                make_workspace(corpus, work, **SMALL)
            continue
        again = make_workspace(corpus, work, **SMALL)
        assert content(work) == content(Path(made.folder)), part
        told = "data" if part.startswith("data/") else part
        assert again.changed == (() if part.startswith(("dev/", "pybpe-")) else (told,)), part


def test_a_model_of_another_vocabulary_goes_with_it(corpus: Path, tmp_path: Path) -> None:
    make_workspace(corpus, tmp_path / "work", dtype="bf16", **SMALL)
    made = make_workspace(corpus, tmp_path / "work", force=True, **{**SMALL, "vocab_size": 400})
    assert "gpt2_124M_bf16.bin" in made.changed and not (tmp_path / "work" / "gpt2_124M_bf16.bin").exists()
    assert check([tmp_path / "work"])[1] == []


def test_the_folder_of_llm_c_itself(corpus: Path, tmp_path: Path) -> None:
    theirs = {"README.md": b"# llm.c", "Makefile": b"all:", "train_gpt2.c": b"int main", "dev/data/fineweb.py": b"#"}
    for name, data in theirs.items():
        (tmp_path / "llm.c" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "llm.c" / name).write_bytes(data)
    for force in (False, True):
        made = make_workspace(corpus, tmp_path / "llm.c", force=force, **SMALL)
        assert (made.readme, made.makefile) == ("README.pybpe.md", "pybpe.mk")
        assert content(tmp_path / "llm.c").items() >= theirs.items()
        text = (tmp_path / "llm.c" / "README.pybpe.md").read_text()
        assert "make -f pybpe.mk train" in text and "\nLLMC=.\n" in text and "git clone" not in text
    (tmp_path / "llm.c" / "gpt2_124M.bin").write_bytes(b"of llm.c's own script")
    with pytest.raises(ArgumentError, match="gpt2_124M.bin: is not what pybpe made"):
        make_workspace(corpus, tmp_path / "llm.c", **SMALL)
    assert not (tmp_path / "llm.c" / ".pybpe-unfinished").exists()


def test_a_laptop_gets_a_model_that_it_can_train(corpus: Path, tmp_path: Path) -> None:
    made = make_workspace(corpus, tmp_path / "work", vocab_size=500, progress=False)
    shape = made.config
    seen = 4 * made.manifest.split_tokens("train")
    assert (shape.num_layers, shape.channels, shape.num_heads, shape.max_seq_len) == (6, 384, 12, 256)
    assert 6 * shape.num_parameters * seen < 1.2 * 4e13
    assert f"STEPS ?= {max(200, seen // 1024)}\n" in (tmp_path / "work" / "Makefile").read_text()
    smaller = [laptop_shape(20096, tokens)[1] for tokens in (10**5, 10**6, 10**7, 10**9)]
    assert smaller == sorted(smaller, reverse=True) and smaller[0] > smaller[-1]
    gpu = make_workspace(corpus, tmp_path / "gpu", vocab_size=300, dtype="bf16", progress=False)
    assert (gpu.config.num_layers, gpu.config.max_seq_len, gpu.makefile) == (12, 1024, None)


def test_a_folder_in_the_place_of_a_link_is_an_error(corpus: Path, tmp_path: Path) -> None:
    place = tmp_path / "work" / "dev" / "data" / "tinyshakespeare"
    (place / "tiny_shakespeare_train.bin" / "folder").mkdir(parents=True)
    with pytest.raises(FileError, match="links cannot be made"):
        make_workspace(corpus, tmp_path / "work", force=True, **SMALL)
    assert [path.name for path in place.iterdir()] == ["tiny_shakespeare_train.bin"]  # no temporary link is left
    assert not (tmp_path / "work" / "README.md").exists()


# ------------------------------------------------------------------------------------------------------
# The command


def run(*args: object, code: int = 0) -> "subprocess.CompletedProcess[str]":
    return pybpe_command("llmc", "workspace", *args, code=code)


@pytest.mark.slow
def test_the_command_equals_the_function(made: Workspace, corpus: Path, tmp_path: Path) -> None:
    shape = ("--vocab-size", 500, "--layers", 1, "--heads", 2, "--channels", 8)
    result = run(corpus, "-o", tmp_path / "work", *shape, "--json")
    facts = json.loads(result.stdout)
    assert facts["parameters"] == made.config.num_parameters and facts["padded_vocab_size"] == 512
    assert content(tmp_path / "work") == content(Path(made.folder))
    text = run(
        corpus, "-o", tmp_path / "d6", "--vocab-size", 300, "--depth", "d6", "--sequence-length", 64, "--dtype", "bf16"
    )
    assert "d6: 300 tokens, padded to 384; " in text.stdout
    few = run(corpus, "-o", tmp_path / "few", "--min-frequency", 500, *shape[2:])
    assert "warning: the vocabulary has 299 tokens, fewer than 20000: no other pair" in few.stderr
    assert "README.md" in text.stdout and (tmp_path / "d6" / "gpt2_124M_bf16.bin").exists()
    for bad in (("--depth", "x"), ("--depth", "d7"), ("--splits", "1"), ("--sequence-length", "1")):
        result = run(corpus, "-o", tmp_path / "bad", *bad, code=2)
        assert result.stderr.count("\n") == 1 and not (tmp_path / "bad").exists()


def test_records_and_the_options_of_training(tmp_path: Path) -> None:
    """Accepts what `prepare` accepts: data other than plain text, and all tokenizer options."""
    texts = [english()[i : i + 300] for i in range(0, 60_000, 300)]
    path = tmp_path / "pages.data"
    path.write_text("".join(json.dumps({"body": text}) + "\n" for text in texts))
    records = ("--documents", "jsonl", "--text-key", "body", "--splits", "3,1", "--shard-tokens", "5k")
    tokenizer = ("--vocab-size", "0.5k", "--special-ids", "last", "--digits", 1, "--normalizer", "NFC")
    model = ("--layers", 1, "--heads", 2, "--channels", 8)
    run(path, "-o", tmp_path / "work", *records, *tokenizer, *model)
    tok = pybpe.Tokenizer.from_file(tmp_path / "work" / "gpt2_tokenizer.bin")
    assert (tok.vocab_size, tok.model.normalizer, tok.eot_token) == (500, "NFC", 491)
    assert len(tok.encode("1234")) == 4
    found = []
    for shard in sorted((tmp_path / "work" / "data").glob("corpus_*_*.bin")):
        found += read_shard(shard).tolist()
    documents = tok.decode(found).split("<|endoftext|>")
    assert sorted(filter(None, documents)) == sorted(texts)
    assert len(list((tmp_path / "work" / "data").glob("corpus_train_*.bin"))) > 2


def test_check_says_the_next_command(made: Workspace, tmp_path: Path) -> None:
    """Whatever state a workspace is in."""
    work = tmp_path / "a work"
    shutil.copytree(made.folder, work, symlinks=True)

    def said(path: object = work, code: int = 0) -> list[str]:
        result = pybpe_command("llmc", "check", path, code=code)
        return str(result.stdout + result.stderr).splitlines()

    found = "no fault: 2 tokenizers, 3 shards, 1 model, 1 manifest"
    assert said() == [found, f"next: cd '{work}' && make train LLMC=path/to/llm.c"]
    shutil.copy(work / "gpt2_124M.bin", work / "trained.bin")
    assert said()[-1].startswith(f"next: cd '{work}' && make write PROMPT=") and "make train)" in said()[-1]
    (work / "trained.bin").unlink()
    (work / "Makefile").rename(work / "pybpe.mk")
    assert said()[-1].endswith("make -f pybpe.mk train LLMC=path/to/llm.c")
    (work / "pybpe.mk").unlink()
    assert said()[-1] == f"next: the commands for a GPU in {work}/README.md"
    (work / "data" / "corpus_val_000000.bin").write_bytes(b"")
    assert "next:" not in str(said(code=1))
    assert "next:" not in str(said(work / "data" / "tokenizer.bin"))
    unfinished = tmp_path / "killed"
    (unfinished / "data" / ".pybpe-unfinished" / TASKS).mkdir(parents=True)
    (unfinished / "data" / ".pybpe-unfinished" / TASKS / "0").write_bytes(b"")
    told = f"pybpe: {unfinished}: not complete: run the same `pybpe llmc workspace` command again"
    assert said(unfinished, code=2) == [told]
