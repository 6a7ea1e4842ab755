"""Faults in llm.c's files: each is a change to a valid workspace, with what `pybpe llmc check` must say about it, and
what llm.c's CPU trainer does with it.

test_llmc_check.py compares `check` with this table. tests/llmc_verdicts.py compares the table with the real llm.c.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy
from texts import english

import pybpe
from llmc_compat import chat, evals
from llmc_compat.checkpoint import GPT2Config, write_random_checkpoint
from llmc_compat.shards import read_shard, write_shard
from llmc_compat.workspace import make_workspace

Damage = Callable[[Path], object]

TOKENIZER, MODEL = "gpt2_tokenizer.bin", "gpt2_124M.bin"
TRAIN, VAL, TEST = (f"data/corpus_{split}_000000.bin" for split in ("train", "val", "test"))
EVALS, MASK, TALKS = "evals.bin", "chat/chat_train_000000.mask", "chat/chat_train_000000.bin"
CPU_TRAIN, CPU_VAL = (f"dev/data/tinyshakespeare/tiny_shakespeare_{split}.bin" for split in ("train", "val"))
STORIES_TRAIN, STORIES_VAL = (f"dev/data/tinystories/TinyStories_{split}.bin" for split in ("train", "val"))
EVAL_PLACE = "dev/data/hellaswag/hellaswag_val.bin"
V, VP, C = 400, 512, 8
HEADER = 1024


def make_sound(folder: Path) -> Path:
    """Makes a workspace with evals and conversations, and without a fault."""
    (folder / "text.txt").write_text(english()[:60_000])
    work = folder / "work"
    made = make_workspace(
        folder / "text.txt", work, vocab_size=V, layers=1, heads=2, channels=C, sequence_length=64, progress=False
    )
    assert made.config == GPT2Config(V, VP, 64, 1, 2, C)
    example = evals.Example([300], [[301], [302], [303], [304]], 0)
    evals.write_eval(work / EVALS, [example] * 6)
    talk = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": english()[:3000]}]}
    (folder / "talks.jsonl").write_text(json.dumps(talk))
    chat.write_chat(made.tokenizer, [folder / "talks.jsonl"], work / "chat", splits=[1])
    return work


# ------------------------------------------------------------------------------------------------------
# Kinds of damage


def damage(function: Callable[..., object]) -> Callable[..., Damage]:
    """Makes a function of a workspace and more arguments one of these arguments, which returns the damage."""
    return lambda *given, **named: lambda work: function(work, *given, **named)


@damage
def patch(work: Path, name: str, offset: int, *values: int, size: int = 4) -> None:
    """Writes other integers at an offset."""
    with open(work / name, "r+b") as stream:
        stream.seek(offset)
        stream.write(b"".join(v.to_bytes(size, "little", signed=v < 0) for v in values))


def floats(name: str, offset: int, *values: float) -> Damage:
    """Writes other weights at an offset."""
    return patch(name, offset, *struct.unpack(f"<{len(values)}I", struct.pack(f"<{len(values)}f", *values)))


def resize(name: str, change: int) -> Damage:
    """Truncates a file, or appends zeros."""
    return lambda work: os.truncate(work / name, (work / name).stat().st_size + change)


def cut(name: str, size: int) -> Damage:
    """Resizes a file to this many bytes."""
    return lambda work: os.truncate(work / name, size)


@damage
def swap_bytes(work: Path, name: str, width: int = 4, start: int = 0, end: int | None = None) -> None:
    """Makes the numbers big-endian."""
    raw = bytearray((work / name).read_bytes())
    stop = len(raw) if end is None else end
    stop -= (stop - start) % width
    raw[start:stop] = numpy.frombuffer(raw[start:stop], f">u{width}").astype(f"<u{width}").tobytes()
    (work / name).write_bytes(raw)


@damage
def remove(work: Path, *names: str) -> None:
    """Removes files, links or folders."""
    for name in names:
        path = work / name
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()


def folder(name: str) -> Damage:
    """Replaces a file with a folder."""
    return steps(remove(name), lambda work: (work / name).mkdir())


def pipe(name: str) -> Damage:
    """Replaces a file with a named pipe."""
    return steps(remove(name), lambda work: os.mkfifo(work / name))


def empty_place(path: Path) -> Path:
    """Removes a file or link, and makes the folder where it would be."""
    if path.is_symlink() or path.exists():
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@damage
def link(work: Path, name: str, target: str) -> None:
    """Links to another file, or to none."""
    os.symlink(os.path.relpath(work / target, (work / name).parent), empty_place(work / name))


@damage
def move(work: Path, old: str, new: str) -> None:
    """Renames a file."""
    (work / old).rename(work / new)


@damage
def copy(work: Path, old: str, new: str) -> None:
    """Copies a file over another, which may be a link."""
    shutil.copy(work / old, empty_place(work / new))


@damage
def steps(work: Path, *damages: Damage) -> None:
    """Makes several changes in turn."""
    for each in damages:
        each(work)


def write(name: str, data: bytes) -> Damage:
    """Writes other bytes."""
    return lambda work: (work / name).write_bytes(data)


@damage
def tokens(work: Path, name: str, count: int, value: int | None = None) -> None:
    """Writes a shard with this many tokens."""
    ids = numpy.arange(count) % 300 if value is None else numpy.full(count, value)
    (work / name).parent.mkdir(exist_ok=True)
    write_shard(work / name, ids.astype(numpy.uint16))


def model(
    vocab_size: int = V,
    padded: int = VP,
    context: int = 64,
    dtype: str = "fp32",
    name: str = MODEL,
    layers: int = 1,
    heads: int = 2,
    channels: int = C,
) -> Damage:
    """Writes another checkpoint."""
    config = GPT2Config(vocab_size, padded, context, layers, heads, channels)
    return lambda work: write_random_checkpoint(work / name, config, dtype=dtype)


def field(index: int, value: int) -> Damage:
    """Changes a number in the model's header: 2 maxT, 3 V, 4 L, 5 NH, 6 C, 7 Vp."""
    return patch(MODEL, 4 * index, value)


def parameters(padded: int = VP, context: int = 64, layers: int = 1) -> int:
    """Returns the number of weights that llm.c reads for such a header."""
    return (padded + context + 2) * C + layers * (12 * C * C + 13 * C)


def fit(**sizes: int) -> Damage:
    """Resizes the file to the weights that llm.c reads for such a header."""
    return cut(MODEL, HEADER + 4 * parameters(**sizes))


def place_of(raw: bytearray, token: int) -> int:
    """Returns where a token begins in a tokenizer's bytes."""
    at = HEADER
    for _ in range(token):
        at += 1 + raw[at]
    return at


def without_trailer(work: Path) -> None:
    """Removes the merges after the tokens, as llm.c's own scripts write tokenizers."""
    for path in (work / TOKENIZER, work / "data" / "tokenizer.bin"):
        raw = bytearray(path.read_bytes())
        raw[16:28] = bytes(12)
        path.write_bytes(raw[: place_of(raw, V)])


def swap_tokens(work: Path) -> None:
    """Swaps two tokens of the same length."""
    raw = bytearray((work / TOKENIZER).read_bytes())
    a, b = place_of(raw, 20), place_of(raw, 21)
    raw[a : a + 2], raw[b : b + 2] = raw[b : b + 2], raw[a : a + 2]
    (work / TOKENIZER).write_bytes(raw)


def other_tokenizer(work: Path) -> None:
    """Replaces the tokenizer with one that was trained on another text."""
    pybpe.train(iter([english()[60_000:90_000]]), vocab_size=V, special_tokens=["<|endoftext|>"]).save(work / TOKENIZER)


def without_end(work: Path) -> None:
    """Writes a shard of the same length without <|endoftext|>."""
    ids = read_shard(work / TRAIN)
    write_shard(work / TRAIN, numpy.where(ids == 0, 20, ids).astype(numpy.uint16))


def no_weights(work: Path) -> None:
    """Sets all weights to zero."""
    os.truncate(work / MODEL, HEADER)
    os.truncate(work / MODEL, HEADER + 4 * parameters())


def long_example(work: Path) -> None:
    """Writes an example that is longer than the model's context."""
    evals.write_eval(work / EVALS, [evals.Example([1] * 60, [[1] * 4] * 4, 0)])


# ------------------------------------------------------------------------------------------------------
# The table

ABORTS, NONSENSE, SAME, HANGS, RUNS = "aborts", "nonsense", "same", "hangs", "runs"
LOST = "is missing"


class Row(NamedTuple):
    """One fault.

    Attributes:
        damage: makes it.
        file: the file that check names.
        fault, effect, remedy: regular expressions for what it says.
        cpu: what train_gpt2 does when it is started in the folder: "aborts", "hangs"; "nonsense": runs to the end with
            other losses than in the sound folder, or other samples; "same": with the same; "runs": with either.
        severity: "error", "warning", or "none" if check is to find nothing.
    """

    damage: Damage
    file: str
    fault: str
    effect: str
    remedy: str = ""
    cpu: str = ABORTS
    severity: str = "error"


KIND = ", but llm.c expects {} under this name"
A_TOKENIZER, A_MODEL, A_SHARD = (KIND.format(kind) for kind in ("a tokenizer", "a model checkpoint", "a token shard"))
LNFW = HEADER + 4 * (parameters() - 2 * C)
LN1W = HEADER + 4 * C * (VP + 64)
NAN = float("nan")

TOKENIZER_FAULTS = {
    "no tokenizer": Row(remove(TOKENIZER), TOKENIZER, LOST, "random id and prints ids", "copy", NONSENSE),
    "tokenizer is empty": Row(cut(TOKENIZER, 0), TOKENIZER, "is empty" + A_TOKENIZER, "^aborts", "write it again"),
    "tokenizer is a folder": Row(folder(TOKENIZER), TOKENIZER, "is a folder" + A_TOKENIZER, "^aborts", "put a tok"),
    "tokenizer is a pipe": Row(pipe(TOKENIZER), TOKENIZER, "is not a regular file", "^waits", "put a tokenizer", HANGS),
    "tokenizer is a model": Row(link(TOKENIZER, MODEL), TOKENIZER, "is a model checkpoint" + A_TOKENIZER, "^aborts",
        "put a tokenizer there"),
    "tokenizer is text": Row(copy("data/tokenizer.json", TOKENIZER), TOKENIZER, "magic 538970747 is not an llm.c magic",
        "^aborts"),
    "tokenizer leads nowhere": Row(link(TOKENIZER, "none"), TOKENIZER, LOST, "random id", "copy", NONSENSE),
    "tokenizer magic": Row(patch(TOKENIZER, 0, 0x0134C5D8), TOKENIZER, "magic 20235736 is", "^aborts", "write it"),
    "tokenizer big-endian": Row(swap_bytes(TOKENIZER, 4, 0, HEADER), TOKENIZER, "is not an llm.c magic", "^aborts"),
    "tokenizer version 0": Row(patch(TOKENIZER, 4, 0), TOKENIZER, "version 0 at offset 4", "^aborts", "Tokenizer.save"),
    "tokenizer version 1": Row(patch(TOKENIZER, 4, 1), TOKENIZER, "version 1 with 400", "^aborts", "version 2"),
    "tokenizer without tokens": Row(patch(TOKENIZER, 8, 0), TOKENIZER, "claims 0 tokens",
        "prints 'invalid token id'", "Tokenizer.save", NONSENSE),
    "tokenizer V too large": Row(patch(TOKENIZER, 8, 420), TOKENIZER, "token 401 at", "^aborts", "Tokenizer.save"),
    "tokenizer V one too large": Row(patch(TOKENIZER, 8, V + 1), MODEL, "V is 400, but .* has 401 tokens",
        "^aborts at the first id", cpu=SAME),
    "tokenizer V one too large, without trailer": Row(steps(without_trailer, patch(TOKENIZER, 8, V + 1)), TOKENIZER,
        "ends inside token 400 of 401", "^aborts"),
    "tokenizer V too small": Row(steps(without_trailer, patch(TOKENIZER, 8, V - 1)), MODEL,
        "V is 400, but .* has 399 tokens", "invalid token id", "for this tokenizer", SAME),
    "eot beyond V": Row(patch(TOKENIZER, 12, V), TOKENIZER, "end-of-text id is 400", "^aborts when it starts",
        "<.endoftext.>"),
    "eot is another token": Row(steps(without_trailer, patch(TOKENIZER, 12, 5)), TOKENIZER,
        r"id is 5, which is '<\|user\|>'", "from that token", "", SAME, "warning"),
    "empty token": Row(patch(TOKENIZER, HEADER, 0, size=1), TOKENIZER, "token 0 at .* has length 0", "^aborts"),
    "tokenizer in its header": Row(cut(TOKENIZER, 500), TOKENIZER, "too short for a tokenizer: 500 bytes", "^aborts"),
    "tokenizer cut off": Row(cut(TOKENIZER, 1500), TOKENIZER, "1500 bytes hold", "^aborts",
        "Tokenizer.save"),
    "tokens swapped": Row(swap_tokens, TOKENIZER, "checksum", "still reads its tokens", "again", NONSENSE),
    "trailer cut off": Row(resize(TOKENIZER, -5), TOKENIZER, "bytes after its tokens", "still reads its tokens",
        "save it again", SAME),
    "another tokenizer": Row(other_tokenizer, TOKENIZER, "is not the tokenizer that encoded", "samples to wrong text",
        "copy the", NONSENSE),
}  # fmt: skip

MODEL_FAULTS = {
    "no model": Row(remove(MODEL), "", "no checkpoint for the 400 tokens", "^aborts on the CPU", "new -t"),
    "no model or tokenizer": Row(remove(MODEL, TOKENIZER), MODEL, LOST, "^aborts, unless .* -e d12",
        "put a checkpoint"),
    "model elsewhere": Row(move(MODEL, "model.bin"), MODEL, LOST, "^aborts, unless .* -e model.bin", "link"),
    "model is empty": Row(cut(MODEL, 0), MODEL, "is empty" + A_MODEL, "^aborts: 'Bad magic'", "write it again"),
    "model is a folder": Row(folder(MODEL), MODEL, "is a folder" + A_MODEL, "^aborts", "put a model"),
    "model is a pipe": Row(pipe(MODEL), MODEL, "is not a regular file" + A_MODEL, "^waits", "put a model", HANGS),
    "model is a tokenizer": Row(link(MODEL, TOKENIZER), MODEL, "is a tokenizer" + A_MODEL, "^aborts"),
    "model in its header": Row(cut(MODEL, 100), MODEL, "too short for a checkpoint: 100 bytes", "^aborts",
        "write it again"),
    "model lacks a weight": Row(resize(MODEL, -4), MODEL, "23004 bytes, but its header implies 23008", "^aborts",
        "write it again"),
    "model has a weight more": Row(resize(MODEL, 4), MODEL, "23012 bytes, but its header implies 23008",
        "shifted weights", "write it again", SAME),
    "model magic": Row(field(0, 0), MODEL, "magic 0 is not an llm.c magic", "^aborts: 'Bad magic'", "write it again"),
    "model big-endian": Row(swap_bytes(MODEL, 4, 0, HEADER), MODEL, "is not an llm.c magic", "^aborts"),
    "Llama 3": Row(field(0, 20240803), MODEL, "is a checkpoint of train_llama3.py" + A_MODEL, "^aborts", "put a model"),
    **{
        f"model version {version}": Row(
            field(1, version), MODEL, f"version {version}, expected 3 .* or 5", "^aborts", "write it again"
        )
        for version in (2, 4, -1)
    },
    "model version 5 over fp32": Row(field(1, 5), MODEL, "its header implies", "^aborts"),
    "bf16 under the name of fp32": Row(model(dtype="bf16"), MODEL, "is bf16, but llm.c expects fp32 under this name",
        "^aborts: 'Bad version'", "--dtype fp32"),
    "maxT 0 in full": Row(steps(field(2, 0), fit(context=0)), MODEL, "maxT is 0", "trains on nonsense", "", NONSENSE),
    "maxT -1": Row(field(2, -1), MODEL, "maxT is -1", "trains on nonsense", "", NONSENSE),
    "maxT too small": Row(field(2, 63), MODEL, "23008 bytes, but its header implies 22976", "shifted weights", "",
        NONSENSE),
    "short context": Row(model(context=32), MODEL, "maxT is 32, but T is 64", "reads the wrong weights", "use -t 32",
        NONSENSE),
    "V 0": Row(field(3, 0), MODEL, "V is 0", "^aborts", "write it again"),
    "V above Vp": Row(field(3, VP + 1), MODEL, "Vp is 512, below V 513", "trains on nonsense", "", NONSENSE),
    "V below the tokenizer's": Row(model(V - 1), MODEL, "V is 399, but .*has 400 tokens", "^aborts",
        "for this tokenizer"),
    "V above the tokenizer's": Row(model(V + 1), MODEL, "V is 401, but .*has 400", "invalid token id", "this tokenizer",
        NONSENSE),
    "L 0 in full": Row(steps(field(4, 0), fit(layers=0)), MODEL, "L is 0", "nonsense", "", NONSENSE),
    "L -1": Row(field(4, -1), MODEL, "L is -1", "crashes"),
    "L too large": Row(field(4, 2), MODEL, "23008 bytes, but its header implies 26496", "^aborts if bytes"),
    "NH 0": Row(field(5, 0), MODEL, "NH is 0", "crashes"),
    "NH does not divide C": Row(field(5, 3), MODEL, "NH is 3, which does not divide C 8",
        "trains on nonsense", "", NONSENSE),
    "NH above C": Row(field(5, 16), MODEL, "NH is 16", "trains on nonsense", "", NONSENSE),
    "NH largest": Row(field(5, 2**31 - 1), MODEL, "NH is 2147483647", "runs out of memory"),
    "C 0": Row(field(6, 0), MODEL, "C is 0", "trains on nonsense", "", NONSENSE),
    "Vp 0": Row(field(7, 0), MODEL, "Vp is 0", "^aborts"),
    "Vp below V": Row(steps(field(7, V - 1), fit(padded=V - 1)), MODEL, "Vp is 399, below V 400",
        "or trains on nonsense", "", NONSENSE),
    "odd padding": Row(model(padded=V + 3), MODEL, "Vp is 403, not a multiple of 4", "on CUDA, and aborts",
        "--pad-vocab 128", SAME, "warning"),
    "odd channels": Row(model(heads=1, channels=6), MODEL, "C is 6, not a multiple of 4", "on CUDA, and aborts",
        "channels", RUNS, "warning"),
    "padding in use": Row(floats(MODEL, HEADER + 4 * C * V, *[1.0] * C), MODEL, "rows 400 to 512 of wte are not zero",
        "norm explodes", "checkpoint convert", SAME, "warning"),
    "NaN in wte": Row(floats(MODEL, HEADER, NAN), MODEL, "has Inf or NaN in wte", "aborts on the CPU, or trains",
        "use"),
    "NaN in the padding": Row(floats(MODEL, HEADER + 4 * C * V, NAN), MODEL, "has Inf or NaN in wte", "loss of nan"),
    "Inf in lnfw": Row(floats(MODEL, LNFW, float("inf")), MODEL, "has Inf or NaN in lnfw", "loss of nan or inf", "use"),
    "a weight of 1e30": Row(floats(MODEL, HEADER, 1e30), MODEL, r"up to 1e\+30 in wte", "nonsense or aborts", "use"),
    "a weight of 1e6": Row(floats(MODEL, LNFW, 1e6), MODEL, r"up to 1e\+06 in lnfw", "inf or nan", "use", NONSENSE),
    "weights big-endian": Row(swap_bytes(MODEL, 4, HEADER), MODEL, "has Inf or NaN in wte", "loss of nan"),
    "all weights zero": Row(no_weights, MODEL, "all weights are zero", "never changes", "use", NONSENSE),
}  # fmt: skip

DATA_FAULTS = {
    "no dev/": Row(remove("dev"), CPU_TRAIN, LOST, "^aborts on the CPU, and on CUDA unless -i", "link a shard"),
    "no validation data": Row(remove(CPU_VAL), CPU_VAL, LOST, "^aborts on the CPU", "link a shard"),
    "train data leads nowhere": Row(link(CPU_TRAIN, "none"), CPU_TRAIN, "does not exist", "cannot find the file",
        "link"),
    "train data is a folder": Row(folder(CPU_TRAIN), CPU_TRAIN, "is a folder" + A_SHARD, "^aborts", "put a token"),
    "train data is a pipe": Row(pipe(CPU_TRAIN), CPU_TRAIN, "is not a regular file" + A_SHARD, "^waits", "put", HANGS),
    "train data is a tokenizer": Row(link(CPU_TRAIN, TOKENIZER), CPU_TRAIN, "is a tokenizer" + A_SHARD, "^aborts"),
    "train data is an eval file": Row(link(CPU_TRAIN, EVALS), CPU_TRAIN, "is an eval file" + A_SHARD, "^aborts"),
    "train data is a mask": Row(link(CPU_TRAIN, MASK), CPU_TRAIN, "is a loss mask" + A_SHARD, "^aborts"),
    "train is val": Row(link(CPU_TRAIN, VAL), CPU_VAL, "is the same as .*train.bin", "validation loss means nothing",
        "", NONSENSE),
    "val is a copy of train": Row(copy(TRAIN, CPU_VAL), CPU_VAL, "is the same as", "validation loss means nothing", "",
        NONSENSE),
    "train and val swapped": Row(steps(link(CPU_TRAIN, VAL), link(CPU_VAL, TRAIN)), CPU_TRAIN, "shard of the val split",
        "set apart as val", "train split", NONSENSE),
    "train is a copy of the test split": Row(copy(TEST, CPU_TRAIN), CPU_TRAIN, "shard of the test split",
        "trains on text that was set apart", "", NONSENSE),
    "TinyStories for train alone": Row(steps(remove("dev"), link(STORIES_TRAIN, TRAIN)), CPU_VAL, LOST,
        "^aborts on the CPU", "link a shard"),
}  # fmt: skip

SHARD_FAULTS = {
    "shard magic": Row(patch(TRAIN, 0, 7), TRAIN, "magic 7 is not an llm.c magic", "'Bad magic'", "format llmc"),
    "shard big-endian": Row(swap_bytes(TRAIN, 4, 0, HEADER), TRAIN, "is not an llm.c magic", "^aborts"),
    "shard without header": Row(lambda work: (work / TRAIN).write_bytes((work / TRAIN).read_bytes()[HEADER:]), TRAIN,
        "is not an llm.c magic", "'Bad magic'", "headerless file for nanoGPT"),
    **{
        f"shard version {version}": Row(
            patch(TRAIN, 4, version), TRAIN, rf"version {version} at offset 4, expected 1", "^aborts", "binarize"
        )
        for version in (2, 7)
    },
    "negative count": Row(patch(TRAIN, 8, -5), TRAIN, "token count -5", "^aborts", "binarize"),
    "largest count": Row(patch(TRAIN, 8, 2**31 - 1), TRAIN, "for the 2147483647 tokens", "^aborts", "binarize"),
    "shard is empty": Row(cut(TRAIN, 0), TRAIN, "is empty", "^aborts", "write it again"),
    "shard in its header": Row(cut(TRAIN, 100), TRAIN, "100 bytes are not a token shard", "^aborts", "binarize"),
    "shard cut off": Row(resize(TRAIN, -2), TRAIN, "it was cut off or appended to", "^aborts", "binarize"),
    "small train shard": Row(tokens(TRAIN, 256), TRAIN, "256 tokens, but 1 x B 4 x T 64 . 1 = 257", "^aborts", "B 3"),
    "tiny shard": Row(tokens(VAL, 30), VAL, "30 tokens", "^aborts", "is B 1 x T 29"),
    "shard without tokens": Row(tokens(VAL, 0), VAL, "0 tokens", "^aborts", "no B and T fit"),
    "uint32 shard": Row(lambda work: write_shard(work / TRAIN, numpy.arange(300, dtype=numpy.uint32)), TRAIN,
        "uint32 tokens", "^aborts with 'Bad magic'", "at most 65536"),
    "id beyond V": Row(patch(VAL, HEADER, V, size=2), VAL, "has the id 400, but .*124M.bin has V 400", "^aborts",
        "new"),
    "target beyond V": Row(patch(VAL, HEADER + 512, V, size=2), VAL, "has the id 400, but .*124M.bin has V 400",
        "^aborts at the batch"),
    "id beyond the tokenizer": Row(patch(VAL, HEADER, V, size=2), VAL, "400 tokens: they do not belong together",
        "cannot decode", "encode"),
    "tokens big-endian": Row(swap_bytes(TRAIN, 2, HEADER), TRAIN, "has the id .*V 400", "^aborts at the batch"),
    "all tokens zero": Row(tokens(TRAIN, 5000, 0), TRAIN, "all 5000 tokens are the id 0", "nonsense", "", NONSENSE),
    "no end of text": Row(steps(remove("chat"), without_end), TOKENIZER,
        "the end-of-text id is 0, which no train shard contains", "never saw", "prepend", RUNS, "warning"),
    "a token changed": Row(patch(TRAIN, HEADER + 600, 300, size=2), TRAIN, "its SHA-256 is not", "the file as it is",
        "", NONSENSE),
    "manifest is an empty object": Row(write("data/manifest.json", b"{}"), "data/manifest.json", "not a manifest",
        "nobody can tell", "again", SAME),
    "manifest cut off": Row(cut("data/manifest.json", 900), "data/manifest.json", "not a manifest", "nobody can tell",
        "again", SAME),
    "a shard of the manifest is lost": Row(remove(VAL), VAL, "is missing, but .*manifest.json lists it", "or aborts",
        "again"),
    "a shard of another length": Row(tokens(TRAIN, 300), TRAIN, r"300 tokens, but .*manifest.json says \d+",
        "trains on the file as it is", "", NONSENSE),
    "test split too small": Row(tokens(TEST, 10), "", "", "", "", SAME, "none"),
}  # fmt: skip

# Files that llm.c reads only if -i, -j or -h 1 name them.
CUDA_FAULTS = {
    "a shard of another run": Row(tokens("data/corpus_train_000007.bin", 300), "data/corpus_train_000007.bin",
        "is not one of the shards that .*manifest.json lists", "too", "move it", SAME),
    "a tokenizer among shards": Row(copy(TOKENIZER, "data/corpus_train_x.bin"), "data/corpus_train_x.bin",
        r"is a tokenizer, but the shards' pattern corpus_train_\*.bin", "^aborts with -i", "move it", SAME),
    "a folder among shards": Row(lambda work: (work / "data/corpus_train_old.bin").mkdir(), "data/corpus_train_old.bin",
        r"is a folder, but the shards' pattern corpus_train_\*.bin", "^aborts with -i", "move it", SAME),
    "a .bin file of something else": Row(lambda work: (work / "other.bin").write_bytes(b"PK\3\4"), "other.bin",
        "is not an llm.c magic", "aborts if it reads", "", SAME, "warning"),
    "eval magic": Row(patch(EVALS, 0, 9), EVALS, "magic 9 is", "aborts if it reads", "write", SAME, "warning"),
    "eval version": Row(patch(EVALS, 4, 2), EVALS, "version 2; expected", "^aborts", "llmc eval", SAME),
    "eval without examples": Row(patch(EVALS, 8, 0), EVALS, "there are 0 examples", "^aborts", "llmc eval", SAME),
    "eval cut off": Row(resize(EVALS, -2), EVALS, "example 5 is cut off", "aborts or reads past", "llmc eval", SAME),
    "eval buffer 0": Row(patch(EVALS, 12, 0), EVALS, "longest example has 0 bytes", "^aborts", "llmc eval", SAME),
    "eval delimiter": Row(patch(EVALS, HEADER, 1, size=2), EVALS, "example 0 is cut off or damaged", "^aborts", "",
        SAME),
    "eval label": Row(patch(EVALS, HEADER + 6, 4, size=2), EVALS, "example 0 is cut off", "^aborts", "", SAME),
    "long examples": Row(long_example, EVALS, "needs T 65, but T is 64", "^aborts with -h 1", "-t 65 or more", SAME),
    "id of an eval": Row(patch(EVALS, HEADER + 12, V, size=2), EVALS, "has the id 400", "^aborts", "checkpoint", SAME),
    "HellaSwag's place": Row(link(EVAL_PLACE, TRAIN), EVAL_PLACE, "is a token shard, but llm.c expects an eval file",
        "^aborts with -h 1", "", SAME),
    "mask cut off": Row(resize(MASK, -1), MASK, "tokens need", "does not read this file", "llmc chat", SAME),
}  # fmt: skip

FAULTS = TOKENIZER_FAULTS | MODEL_FAULTS | DATA_FAULTS | SHARD_FAULTS | CUDA_FAULTS
