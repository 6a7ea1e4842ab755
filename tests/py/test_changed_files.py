"""Files that change while a loader reads them: somebody truncates, extends, overwrites or replaces a file in the middle
of any of its reads. The loader returns the complete old or the complete new content, or raises a typed error."""

import json
import os
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy
import pytest

import pybpe
from llmc_compat import chat, evals
from llmc_compat.check import read_model, read_tokenizer
from llmc_compat.checkpoint import GPT2Config, read_checkpoint, write_checkpoint
from llmc_compat.convert import SafetensorsFile
from llmc_compat.shards import header, write_shard
from pybpe.cli.coding import _read_ids
from pybpe.errors import Error, FileChangedError, FormatError
from pybpe.reading.streams import InputStream, Snapshot, open_unchanged
from pybpe.support import platform
from pybpe.tokens.formats import NPY
from pybpe.tokens.manifest import Manifest
from pybpe.tokens.mix.recipe import load_recipe
from pybpe.tokens.token_files import TokenFile, TokenStream

SOME = 300  # bytes that are read before the change


@dataclass
class Moment:
    """Calls `change` in the middle of read `number`, from 0, of a loader. `came` says whether there was such a read."""

    number: int
    change: Callable[[], None]
    came: bool = False

    def here(self) -> bool:
        self.number -= 1
        self.came = self.came or self.number == -1
        return self.number == -1


def divide_reads(patch: pytest.MonkeyPatch, moment: Moment) -> None:
    """Makes each read of a file come to the moment. The read at which it comes is divided in two."""
    read, readinto, read_at = InputStream.read, InputStream.readinto, platform.read_at

    def read_parts(self: InputStream, size: int | None = -1) -> bytes:
        if not moment.here():
            return read(self, size)
        is_all = size is None or size < 0
        start = read(self, SOME if is_all else min(SOME, size or 0))
        moment.change()
        return start + read(self, -1 if is_all else (size or 0) - len(start))

    def readinto_parts(self: InputStream, block: Any) -> int:
        if not moment.here():
            return readinto(self, block)
        view = memoryview(block).cast("B")
        got = readinto(self, view[:SOME])
        moment.change()
        return got + readinto(self, view[got:])

    def read_at_parts(handle: int, size: int, offset: int) -> bytes:
        if not moment.here():
            return read_at(handle, size, offset)
        start = read_at(handle, min(SOME, size), offset)
        moment.change()
        return start + read_at(handle, size - len(start), offset + len(start))

    patch.setattr(InputStream, "read", read_parts)
    patch.setattr(InputStream, "readinto", readinto_parts)
    patch.setattr(platform, "read_at", read_at_parts)


# ------------------------------------------------------------------------------------------------------
# Changes


def cut(path: Path, new: bytes) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path, new: bytes) -> None:
    os.truncate(path, 0)


def extend(path: Path, new: bytes) -> None:
    with open(path, "ab") as stream:
        stream.write(new[len(new) // 2 :])


def overwrite(path: Path, new: bytes) -> None:
    path.write_bytes(new)


def overwrite_end(path: Path, new: bytes) -> None:
    """Writes only the second half so far."""
    with open(path, "r+b") as stream:
        stream.seek(len(new) // 2)
        stream.write(new[len(new) // 2 :])


def replace(path: Path, new: bytes) -> None:
    other = path.with_name("other")
    other.write_bytes(new)
    os.replace(other, path)


CHANGES = [cut, empty, extend, overwrite, overwrite_end, replace]


# ------------------------------------------------------------------------------------------------------
# Files: each is written in an old and a new version, by its name in a folder


def tokenizer(turn: int) -> pybpe.Tokenizer:
    """Returns a tokenizer. Two of them have the same tokens, and different ids."""
    tokens = [bytes([a, b]) for a in b"abcdefghij" for b in b"klmnopqrst"]
    tokens = tokens[turn:] + tokens[:turn]
    vocab = {i: bytes([i]) for i in range(256)} | dict(enumerate(tokens, 256))
    return pybpe.Tokenizer(vocab, [(token[:1], token[1:]) for token in tokens])


def ids(turn: int) -> numpy.ndarray:
    return (numpy.arange(40_000) % 97 + 200 + turn * 100).astype("<u2")


CONFIG = GPT2Config(50, 64, 8, 1, 1, 8)


def write_model(path: Path, turn: int) -> None:
    tensors = {name: numpy.full(shape, turn, "f4") for name, shape in CONFIG.tensor_shapes().items()}
    write_checkpoint(path, CONFIG, tensors)


def write_safetensors(path: Path, turn: int) -> None:
    parts = {
        key: {"dtype": "F32", "shape": [500], "data_offsets": [at, at + 2000]} for key, at in (("a", 0), ("b", 2000))
    }
    header = json.dumps(parts).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + numpy.full(1000, turn, "<f4").tobytes())


def read_safetensors(path: Path) -> Any:
    with SafetensorsFile(path) as file:
        return file.tensor("a", (500,)).tolist() + file.tensor("b", (500,)).tolist()


def write_manifest(path: Path, turn: int) -> None:
    settings = {f"b{i}": turn for i in range(100)}
    content = {"version": 1, "settings": settings, "tokenizer": {}, "text_bytes": {"train": turn}, "shards": {}}
    path.write_text(json.dumps(content))


def write_examples(path: Path, turn: int) -> None:
    evals.write_eval(path, [evals.Example([5 + turn] * 30, [[7 + turn] * 20] * 4, 2)] * 20)


def decoded(path: Path) -> list[int]:
    """Returns the ids that `pybpe decode` reads."""
    return [int(i) for block in _read_ids(str(path), 2) for i in block]


class Kind(NamedTuple):
    """A kind of file: its name, how to write a version of it, and how to read it."""

    name: str
    write: Callable[[Path, int], object]
    read: Callable[[Path], Any]


def fingerprint(found: pybpe.Tokenizer) -> str:
    return found.model.fingerprint


def save(path: Path, turn: int) -> None:
    tokenizer(turn).save(path)


KINDS = {
    "tokenizer.json": Kind("tok.json", save, lambda path: fingerprint(pybpe.Tokenizer.from_file(path))),
    "tokenizer.bin": Kind("tok.bin", save, lambda path: fingerprint(pybpe.Tokenizer.from_file(path))),
    "folder": Kind(
        "tokenizer.json",
        lambda path, turn: tokenizer(turn).save_pretrained(path.parent),
        lambda path: fingerprint(pybpe.Tokenizer.from_file(path.parent)),
    ),
    "counts": Kind(
        "x.counts",
        lambda path, turn: pybpe.Counts.from_dict({f"w{i}": i + turn for i in range(9000)}).save(path),
        lambda path: pybpe.Counts.load(path).to_dict(),
    ),
    "recipe": Kind(
        "mix.toml",
        lambda path, turn: path.write_text(
            f"tokens = 1000\n[sources.a]\ndata = 'a{turn}'\nweight = 0.1\n#{turn:0600}\n"
            f"[sources.b]\ndata = 'b{turn}'\nweight = 0.9\n"
        ),
        lambda path: load_recipe(path).content,
    ),
    "manifest": Kind("manifest.json", write_manifest, lambda path: Manifest.load(path.parent).settings),
    "stream of a shard": Kind(
        "x.bin",
        lambda path, turn: write_shard(path, ids(turn)),
        lambda path: TokenStream(path).slice(0, 40_000).tolist(),
    ),
    "stream of an array": Kind(
        "x.npy",
        lambda path, turn: numpy.save(path, ids(turn)),
        lambda path: TokenStream(path).slice(0, 40_000).tolist(),
    ),
    "stream of ids": Kind(
        "x.bin",
        lambda path, turn: ids(turn).tofile(path),
        lambda path: [i for block in TokenFile(path, "uint16").blocks(9000) for i in block.tolist()],
    ),
    "rows of an array": Kind(
        "x.npy",
        lambda path, turn: numpy.save(path, ids(turn).reshape(-1, 100)),
        lambda path: [i for block in NPY.read(str(path), "uint16") for i in block.tolist()],
    ),
    "decode a shard": Kind("x.bin", lambda path, turn: write_shard(path, ids(turn)[:3000]), decoded),
    "model": Kind("m.bin", write_model, lambda path: {k: v.tolist() for k, v in read_checkpoint(path)[1].items()}),
    "check a model": Kind("m.bin", write_model, lambda path: read_model(str(path))),
    "check a tokenizer": Kind("tok.bin", save, lambda path: read_tokenizer(str(path))),
    "safetensors": Kind("m.safetensors", write_safetensors, read_safetensors),
    "eval": Kind("e.bin", write_examples, evals.read_eval),
    "mask": Kind(
        "x.mask",
        lambda path, turn: path.write_bytes(header(chat.MASK_MAGIC, chat.MASK_VERSION, 900) + bytes([turn]) * 900),
        lambda path: chat.read_mask(path).tolist(),
    ),
}


def outcome(kind: Kind, path: Path) -> Any:
    """Returns what a loader returns; None if it raises a typed error."""
    try:
        return kind.read(path)
    except Error:
        return None


@pytest.mark.filterwarnings("ignore::pybpe.errors.PybpeWarning")
@pytest.mark.parametrize("name", KINDS)
def test_old_or_new_or_an_error(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    versions = []
    for turn in (0, 1):
        folder = tmp_path / f"version{turn}"
        folder.mkdir()
        kind.write(folder / kind.name, turn)
        versions.append(folder / kind.name)
    new = versions[1].read_bytes()
    old_result = kind.read(versions[0])
    errors = 0
    for change in CHANGES:
        for number in range(100):
            folder = tmp_path / "here"
            shutil.copytree(versions[0].parent, folder)
            path = folder / kind.name
            os.utime(path, ns=(1, 1))  # so that the time of a write differs
            moment = Moment(number, lambda: change(path, new))  # noqa: B023
            with pytest.MonkeyPatch.context() as patch:
                divide_reads(patch, moment)
                found = outcome(kind, path)
            if moment.came:
                results = (None, old_result, outcome(kind, path))
                assert found in results, (change.__name__, number)
                errors += found is None
            shutil.rmtree(folder)
            if not moment.came:
                break
        assert number > 0, "the loader reads in another way than the test knows"
    assert errors > 0 and old_result is not None


# ------------------------------------------------------------------------------------------------------
# Several files


@pytest.mark.filterwarnings("ignore::pybpe.errors.PybpeWarning")
@pytest.mark.parametrize("changed", ["vocab.json", "merges.txt"])
def test_a_pair_of_files_is_of_one_moment(changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are replaced after one of them was read."""
    for turn, name in enumerate(("old", "new")):
        (tmp_path / name).mkdir()
        tokenizer(turn).save(tmp_path / name, "files")
    read = Snapshot.read

    def read_then_replace(self: Snapshot, path: Any) -> bytes:
        data = read(self, path)
        if os.path.basename(path) == changed:
            for file in ("vocab.json", "merges.txt"):
                replace(tmp_path / "old" / file, (tmp_path / "new" / file).read_bytes())
        return data

    monkeypatch.setattr(Snapshot, "read", read_then_replace)
    with pytest.raises(FileChangedError, match="changed while it was read: it was replaced"):
        pybpe.Tokenizer.from_file(tmp_path / "old" / "vocab.json", merges=tmp_path / "old" / "merges.txt")


def test_counts_that_are_replaced_by_counts_of_another_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The words of the second file must not get the settings of the first."""
    path, other = tmp_path / "x.counts", tmp_path / "other.counts"
    pybpe.count_words(iter(["some words"]), pattern="gpt2").save(path)
    pybpe.count_words(iter(["other words"]), pattern="cl100k").save(other)
    merged = pybpe.training.counts.merged

    def replace_first(*args: Any) -> Any:
        replace(path, other.read_bytes())
        return merged(*args)

    monkeypatch.setattr(pybpe.training.counts, "merged", replace_first)
    with pytest.raises(FileChangedError, match="was replaced while it was read"):
        pybpe.Counts.load(path)


def test_a_pipe_is_no_file_that_changes(tmp_path: Path) -> None:
    """Data that arrive change the times of a pipe."""
    reading, writing = os.pipe()
    os.write(writing, b"{}")
    with open_unchanged(f"/dev/fd/{reading}") as stream:
        os.close(writing)
        assert stream.read() == b"{}"
    os.close(reading)


# ------------------------------------------------------------------------------------------------------
# Streams of tokens, which stay open


@pytest.mark.parametrize("ending", ["bin", "npy"])
def test_a_stream_that_is_overwritten_says_so(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"x.{ending}"
    (numpy.save if ending == "npy" else write_shard)(path, ids(0))
    os.utime(path, ns=(1, 1))
    stream = TokenStream(path)
    assert stream.slice(0, 100).tolist() == ids(0)[:100].tolist()
    overwrite(path, path.read_bytes()[:-2] + b"xx")
    with pytest.raises(FormatError, match="was written to while it was open; open it again"):
        for at in range(0, 40_000, 100):  # it is noticed after at most 64 KiB
            stream.slice(at, at + 100)
