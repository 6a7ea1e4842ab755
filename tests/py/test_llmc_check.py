"""check: every fault is made in a sound workspace, and found, with what llm.c does and how to mend it.

What llm.c does was seen by running its train_gpt2 on a workspace with each of these faults.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy
import pytest
from texts import english

import pybpe
from llmc_compat import chat, evals
from llmc_compat.batch import Batch
from llmc_compat.check import check
from llmc_compat.faults import Finding
from llmc_compat.gpt2_config import GPT2Config
from llmc_compat.initialization import write_random_checkpoint
from llmc_compat.shards import read_shard, write_shard
from llmc_compat.workspace import make_workspace
from pybpe.errors import ArgumentError, FileMissingError

TOKENIZER, MODEL = "gpt2_tokenizer.bin", "gpt2_124M.bin"
TRAIN, VAL = "data/corpus_train_000000.bin", "data/corpus_val_000000.bin"
EVALS, MASK, TALKS = "evals.bin", "chat/chat_train_000000.mask", "chat/chat_train_000000.bin"
LINK = "dev/data/tinyshakespeare/tiny_shakespeare_val.bin"
V, VP = 400, 512


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with evals and conversations, and without a fault."""
    folder = tmp_path_factory.mktemp("check")
    (folder / "text.txt").write_text(english()[:60_000])
    work = folder / "work"
    made = make_workspace(
        folder / "text.txt", work, vocab_size=V, layers=1, heads=2, channels=8, context=64, progress=False
    )
    assert made.config == GPT2Config(V, VP, 64, 1, 2, 8)
    example = evals.Example([300], [[301], [302], [303], [304]], 0)
    evals.write_eval(work / EVALS, [example] * 6)
    talk = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": english()[:3000]}]}
    (folder / "talks.jsonl").write_text(json.dumps(talk))
    chat.write_chat(made.tokenizer, [folder / "talks.jsonl"], work / "chat", splits=[1])
    return work


@pytest.fixture
def work(sound: Path, tmp_path: Path) -> Path:
    shutil.copytree(sound, tmp_path / "work", symlinks=True)
    return tmp_path / "work"


def test_a_sound_folder_has_no_fault(work: Path) -> None:
    files, findings = check([work])
    assert findings == []
    assert [len(paths) for paths in vars(files).values()] == [2, 4, 1, 1, 1, 0, 1]
    assert check([work / TRAIN])[1] == []  # alone, it is compared with nothing


# ------------------------------------------------------------------------------------------------------
# Each fault


def patch(name: str, offset: int, *values: int, size: int = 4) -> Callable[[Path], None]:
    def damage(work: Path) -> None:
        with open(work / name, "r+b") as stream:
            stream.seek(offset)
            stream.write(b"".join(v.to_bytes(size, "little", signed=v < 0) for v in values))

    return damage


def resize(name: str, change: int) -> Callable[[Path], None]:
    return lambda work: os.truncate(work / name, (work / name).stat().st_size + change)


def tokens(name: str, count: int) -> Callable[[Path], None]:
    return lambda work: write_shard(work / name, numpy.ones(count, dtype=numpy.uint16))


def model(vocab_size: int = V, padded: int = VP, context: int = 64, dtype: str = "fp32") -> Callable[[Path], None]:
    config = GPT2Config(vocab_size, padded, context, 1, 2, 8)
    return lambda work: write_random_checkpoint(work / MODEL, config, dtype=dtype)


def rename_shards(work: Path) -> None:
    for old, new in (("000000", "2"), ("000001", "10")):
        shutil.copy(work / TRAIN, work / f"data/row_{old}.bin")
        (work / f"data/row_{old}.bin").rename(work / f"data/row_{new}.bin")


def other_tokenizer(work: Path) -> None:
    pybpe.train(iter([english()[60_000:90_000]]), vocab_size=V, special_tokens=["<|endoftext|>"]).save_bin(
        work / TOKENIZER
    )


def long_example(work: Path) -> None:
    evals.write_eval(work / EVALS, [evals.Example([1] * 60, [[1] * 4] * 4, 0)])


ABORTS = "^aborts"

FAULTS: dict[str, tuple[Callable[[Path], None], str, str, str, str]] = {
    # The damage; the file that is named, the fault, what llm.c does, how to mend it.
    "tokenizer magic": (patch(TOKENIZER, 0, 0x0134C5D8), TOKENIZER, "magic 20235736", ABORTS, "write it again"),
    "tokenizer version 3": (patch(TOKENIZER, 4, 3), TOKENIZER, "version 3, expected 2", ABORTS, "save_bin"),
    "tokenizer version 1": (patch(TOKENIZER, 4, 1), TOKENIZER, "version 1 with 400 tokens", ABORTS, "version 2"),
    "eot beyond V": (patch(TOKENIZER, 12, V), TOKENIZER, "is the id 400", "aborts when it starts", "<.endoftext.>"),
    "no eot": (patch(TOKENIZER, 12, -1), TOKENIZER, "is the id -1", "aborts when it starts", "<.endoftext.>"),
    "empty token": (patch(TOKENIZER, 1024, 0, size=1), TOKENIZER, "token 0 at byte 1024 is empty", ABORTS, "save_bin"),
    "tokenizer cut off": (
        lambda work: os.truncate(work / TOKENIZER, 1500), TOKENIZER, "ends at byte 1500, in the token", ABORTS,
        "save_bin"),
    "tokenizer without tokens": (patch(TOKENIZER, 8, 0), TOKENIZER, "0 tokens in the header", ABORTS, "save_bin"),
    "another tokenizer": (
        other_tokenizer, TOKENIZER, "is not the tokenizer that encoded", "samples as other text", "copy the"),
    "shard magic": (patch(TRAIN, 0, 7), TRAIN, "magic 7 is that of no file", "'Bad magic'", "format llmc"),
    "shard version": (patch(TRAIN, 4, 2), TRAIN, "version 2 at offset 4, expected 1", ABORTS, "binarize"),
    "shard cut off": (resize(TRAIN, -2), TRAIN, "it was cut off or appended to", ABORTS, "binarize"),
    "shard longer": (resize(TRAIN, 2), TRAIN, "it was cut off or appended to", ABORTS, "binarize"),
    "negative count": (patch(TRAIN, 8, -5), TRAIN, "token count -5", ABORTS, "binarize"),
    "small shard": (tokens(VAL, 256), VAL, "256 tokens, and 1 x B 4 x T 64 . 1 = 257", ABORTS, "are B 3 with T 64"),
    "tiny shard": (tokens(VAL, 30), VAL, "30 tokens", ABORTS, "are B 1 with T 29"),
    "empty shard": (tokens(VAL, 0), VAL, "0 tokens", ABORTS, "no B and T fit"),
    "uint32 shard": (
        lambda work: write_shard(work / TRAIN, numpy.ones(300, dtype=numpy.uint32)), TRAIN, "uint32 tokens",
        "aborts with 'Bad magic'", "at most 65536"),
    "id beyond V": (patch(TRAIN, 1024, V, size=2), TRAIN, "has the id 400, and .*124M.bin has V 400", ABORTS, "new"),
    "id beyond the tokenizer": (
        patch(TRAIN, 1024, V, size=2), TRAIN, "400 tokens: they do not belong together", "cannot decode", "encode"),
    "names out of order": (
        rename_shards, "data/row_10.bin", "comes before row_2.bin", "order of their names", "digits"),
    "model version": (patch(MODEL, 4, 4), MODEL, "version 4, expected 3 .* or 5", ABORTS, "write it again"),
    "model cut off": (resize(MODEL, -4), MODEL, "bytes, expected", "aborts if bytes are missing", "write it again"),
    "heads": (patch(MODEL, 20, 3), MODEL, "multiple of num_heads", ABORTS, "write it again"),
    "bf16 under the name of fp32": (model(dtype="bf16"), MODEL, "is bf16, and .* fp32", "Bad version", "--dtype fp32"),
    "short context": (model(context=32), MODEL, "maxT is 32, and T 64", "takes other weights", "use -t 32"),
    "no padding": (model(padded=V), MODEL, "Vp is 400 for V 400", "CUDA", "--pad 128"),
    "odd padding": (model(padded=V + 3), MODEL, "Vp is 403 for V 400", "CUDA", "--pad 128"),
    "padding in use": (
        patch(MODEL, 1024 + 4 * 8 * V, 1), MODEL, "rows 400 to 512 of wte are not zero", "norm explodes", "resize"),
    "V below the tokenizer's": (model(V - 1), MODEL, "V is 399, and .*has 400 tokens", ABORTS, "for this tokenizer"),
    "V above the tokenizer's": (model(V + 1), MODEL, "V is 401, and .*has 400", "invalid token id", "this tokenizer"),
    "eval magic": (patch(EVALS, 0, 9), EVALS, "magic 9", "'Bad magic'", "write it again"),
    "eval cut off": (resize(EVALS, -2), EVALS, "example 5 is cut off", "aborts or reads past", "llmc eval"),
    "eval buffer": (patch(EVALS, 12, 8), EVALS, "the header says 8", "overflows its buffer", "llmc eval"),
    "long examples": (long_example, EVALS, "needs T 65, and T is 64", "aborts with -h 1", "use -t 65 or more"),
    "id of an eval": (patch(EVALS, 1036, V, size=2), EVALS, "has the id 400", ABORTS, "checkpoint"),
    "mask cut off": (resize(MASK, -1), MASK, "expected", "does not read it", "llmc chat"),
    "mask of another shard": (tokens(TALKS, 300), MASK, "shard beside it 300 tokens", "does not read", "llmc chat"),
    "lost shard": (
        lambda work: (work / TRAIN).unlink(), "dev/data/tinyshakespeare/tiny_shakespeare_train.bin",
        "which does not exist", "finds no such file", "link"),
    "a shard of the manifest is lost": (
        lambda work: (work / VAL).unlink(), VAL, "is missing, and .*manifest.json lists it", "or aborts", "again"),
    "a shard of another length": (
        tokens(TRAIN, 300), TRAIN, r"300 tokens, and .*manifest.json says \d+", "trains on what is there", "again"),
    "a shard of another run": (
        lambda work: write_shard(work / "data/corpus_train_000007.bin", numpy.ones(300, dtype=numpy.uint16)),
        "data/corpus_train_000007.bin", "is none of the shards that .*manifest.json lists", "as well", "move it"),
    "no tokenizer": (lambda work: (work / TOKENIZER).unlink(), TOKENIZER, "is missing", "prints ids", "copy"),
    "no model": (
        lambda work: (work / MODEL).unlink(), "", "no checkpoint for the 400 tokens", "aborts on the CPU", "new -t"),
    "no validation data": (
        lambda work: (work / LINK).unlink(), LINK, "is missing", "looks for TinyStories", "link a shard"),
    "empty file": (lambda work: os.truncate(work / MODEL, 0), MODEL, "is empty", "'Bad magic'", "write it again"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_found(work: Path, name: str) -> None:
    damage, file, fault, effect, remedy = FAULTS[name]
    damage(work)
    findings = check([work])[1]
    matching = [
        f
        for f in findings
        if f.file == str(work / file)
        and all(re.search(*pair) for pair in ((fault, f.fault), (effect, f.effect), (remedy, f.remedy)))
    ]
    assert matching, findings
    line = str(matching[0])
    assert "\n" not in line and line.startswith(f"{work / file}: ") and f"; llm.c {matching[0].effect}; " in line
    assert line.count("llm.c aborts") <= 1


def test_what_is_there_is_not_called_missing(work: Path) -> None:
    """The test split is not llm.c's, a damaged model is there, GPT-2's vocabulary needs no checkpoint."""
    (work / "data/corpus_test_000000.bin").unlink()
    assert check([work])[1] == []
    os.truncate(work / MODEL, 0)
    assert [finding.fault for finding in check([work])[1]] == ["is empty"]
    gpt2 = work / "gpt2"
    gpt2.mkdir()
    tokens = b"".join(bytes([2, i >> 8, i & 255]) for i in range(50257))
    header = numpy.zeros(256, dtype="<i4")
    header[:4] = 20240328, 2, 50257, 50256
    (gpt2 / TOKENIZER).write_bytes(header.tobytes() + tokens)
    assert check([gpt2])[1] == []


def test_a_shard_beyond_2_gib_is_found(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (work / TRAIN).stat().st_size
    monkeypatch.setattr("pybpe._binding.SHARD_MAX_BYTES", size)
    assert check([work / TRAIN])[1] == []
    monkeypatch.setattr("pybpe._binding.SHARD_MAX_BYTES", size - 1)
    (finding,) = check([work / TRAIN])[1]
    assert (finding.fault, finding.remedy) == (f"{size} bytes", "write smaller shards: --shard-tokens")
    assert "aborts at the first batch behind 2 GiB" in finding.effect


def test_the_batch_decides(work: Path) -> None:
    def faults(**batch: int) -> list[Finding]:
        return check([work / VAL, work / EVALS, work / MODEL], Batch(**batch))[1]

    count = len(read_shard(work / VAL))
    fit = (count - 1) // 64
    assert faults(B=fit) == []
    (fault,) = faults(B=fit + 1)
    assert fault.remedy == f"the largest that fit are B {fit} with T 64"
    assert faults(B=fit + 1)[0].fault == f"{count} tokens, and 1 x B {fit + 1} x T 64 + 1 = {64 * fit + 65} are needed"
    (fault,) = faults(B=fit // 2 + 1, processes=2)
    assert fault.remedy == f"the largest that fit are B {fit // 2} with T 64"
    assert [f.remedy for f in faults(B=1, T=64)] == ["use -b 4 or more, or -h 0"]
    assert [f.fault for f in faults(T=65)] == ["maxT is 64, and T 65"]
    assert [f.fault for f in faults(T=2)] == ["its longest example needs T 4, and T is 2"]
    assert faults(processes=3, T=64) == []
    assert faults(processes=4, T=32) == []  # the last has none of the 6
    assert ["reads past the end" in f.effect for f in faults(processes=5, T=32)] == [True]
    assert [f.remedy for f in check([work / VAL], Batch(4, 64, 10_000))[1]] == [
        "no B and T fit: give more text or fewer processes"
    ]
    with pytest.raises(ArgumentError, match="at least 1"):
        Batch(B=0)


def test_what_is_not_llm_cs_is_no_fault(work: Path) -> None:
    (work / "notes.txt").write_text("text")
    (work / "data" / "tokens.npy").write_bytes(b"\x93NUMPY")
    (work / "state_00000010_00000.bin").write_bytes((20240527).to_bytes(4, "little") + bytes(2000))
    (work / "manifest.json").write_text("[1]")
    os.mkfifo(work / "pipe")  # opening it would wait for ever
    assert check([work])[1] == []


def test_a_tokenizer_as_llm_cs_scripts_write_it_is_fine(work: Path) -> None:
    """Without merges behind the tokens nothing can be said about what encoded the shards."""
    raw = (work / TOKENIZER).read_bytes()
    end = 1024
    for _ in range(V):
        end += 1 + raw[end]
    for path in (work / TOKENIZER, work / "data" / "tokenizer.bin"):
        path.write_bytes(raw[:end])
    assert check([work])[1] == []


def test_nothing_to_check(work: Path, tmp_path: Path) -> None:
    with pytest.raises(FileMissingError):
        check([tmp_path / "none.bin"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(ArgumentError, match="none of these"):
        check([tmp_path / "empty"])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ArgumentError, match="neither a file nor a folder"):
        check([tmp_path / "pipe"])


# ------------------------------------------------------------------------------------------------------
# The command


def run(*args: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pybpe", "llmc", "check", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_exit_codes_and_output(work: Path) -> None:
    result = run(work)
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout == "no fault: 2 tokenizers, 4 shards, 1 models, 1 evals, 1 masks, 1 manifests\n"
    tokens(VAL, 100)(work)
    result = run(work / VAL)
    assert (result.returncode, result.stderr) == (1, "")
    assert result.stdout == (
        f"{work / VAL}: 100 tokens, and 1 x B 4 x T 64 + 1 = 257 are needed; llm.c aborts;"
        " the largest that fit are B 1 with T 64\n"
    )
    result = run(work, "--json", "-b", 1, "-t", 100)
    facts = json.loads(result.stdout)
    assert result.returncode == 1 and {f["file"] for f in facts["faults"]} >= {str(work / VAL), str(work / MODEL)}
    assert set(facts["faults"][0]) == {"file", "fault", "effect", "remedy"}
    assert facts["evals"] == [str(work / EVALS)]
    assert run(work / VAL, "-b", 1).returncode == 0
    for bad in (work / "none", work / "README.md"):
        result = run(bad)
        assert result.returncode == 2 and result.stderr.count("\n") == 1
