"""Damages files of every input format, in every way listed here, and reads them.

Runs under the shim, which measures memory:

    corrupt.py [--each N] [--keep FOLDER] [FORMAT...]

A damaged file must raise a pybpe error that names it, or give a valid result: the result is used, saved and loaded
again. No file may take more than 1.25 MiB plus four times its size in memory, or (with --times) 50 ms of CPU time.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shim
from operations import CONFIG, OPERATIONS, make_inputs

import pybpe
from llmc_compat import chat, checkpoint, convert, evals
from llmc_compat.shards import DataLoader, read_shard, write_shard
from pybpe.tokens.manifest import Manifest
from pybpe.tokens.token_files import TokenFile

EXTREMES = (0, 1, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1)
SAMPLE = "Hello, world! 1234 \u4f60\u597d\n\n  the end<|endoftext|>".encode()


@dataclass(frozen=True)
class Format:
    """A format.

    Attributes:
        ending: of file names.
        read: reads and proves; raises AssertionError if what it read is not valid.
        header: the number of bytes of a file in which each bit is flipped.
        memory: bytes that reading may take in addition to four times the file's size: 1.25 MiB, most of it for the
            encoder, or more for words and their counts, and for text, which are read in blocks.
    """

    ending: str
    read: Callable[[Path], Any]
    header: int
    memory: int = 5 << 18


# ------------------------------------------------------------------------------------------------------
# Reading, with proof


def _prove_tokenizer(tok: pybpe.Tokenizer) -> None:
    assert tok.decode_bytes(tok.encode(SAMPLE)) == SAMPLE
    assert tok.decode_bytes(tok.encode_ordinary(SAMPLE)) == SAMPLE
    assert all(0 <= i < tok.vocab_size for i in tok.encode(SAMPLE))


def _read_tokenizer(path: Path) -> None:
    pattern = "gpt2" if path.suffix == ".tiktoken" else None
    _prove_tokenizer(pybpe.Tokenizer.from_file(path, pattern=pattern))


def _read_shard(path: Path) -> None:
    ids = read_shard(path)
    assert path.stat().st_size == 1024 + ids.nbytes
    assert (TokenFile(path).read() == ids).all()
    DataLoader(str(path), 1, 4).next_batch()


def _read_eval(path: Path) -> None:
    examples = evals.read_eval(path)
    again = path.with_suffix(".again")
    evals.write_eval(again, examples)
    assert again.read_bytes()[1024:] == path.read_bytes()[1024:]


def _read_model(path: Path) -> None:
    with checkpoint.Checkpoint(path) as model:
        weights = sum(model.tensor(name).size for name in model.config.tensor_shapes())
        assert 1024 + weights * checkpoint.ITEM_BYTES[model.dtype] == path.stat().st_size


def _read_counts(path: Path) -> None:
    counts = pybpe.Counts.load(path)
    again = path.with_suffix(".again")
    counts.save(again)
    assert pybpe.Counts.load(again).to_dict() == counts.to_dict()


def _read_npy(path: Path) -> None:
    ids = TokenFile(path).read()
    assert ids.ndim == 1 and int(ids.astype("u8").sum()) >= 0


def _read_safetensors(path: Path) -> None:
    with convert.SafetensorsFile(path) as file:
        for name, (_, shape, _) in file.entries.items():
            assert file.tensor(name, shape).shape == shape


def _read_files(path: Path) -> None:
    other = path.with_name("merges.txt" if path.name == "vocab.json" else "vocab.json")
    other.write_bytes(_SOUND[other.name])
    vocab, merges = sorted((path, other), key=lambda file: file.suffix)
    _prove_tokenizer(pybpe.Tokenizer.from_file(vocab, merges=merges))


def _read_folder(path: Path) -> None:
    (path.parent / "tokenizer.json").write_bytes(_SOUND["tokenizer.json"])
    _prove_tokenizer(pybpe.Tokenizer.from_file(path.parent))


def _read_text(path: Path) -> None:
    counts = pybpe.count_words(path, workers=1, progress=False)
    assert all(counts.to_dict().values())


_SOUND: dict[str, bytes] = {}  # files that are read together with a damaged one

FORMATS = {
    "tokenizer.bin": Format(".bin", _read_tokenizer, 64),
    "tokenizer.json": Format(".json", _read_tokenizer, 400),
    "tiktoken": Format(".tiktoken", _read_tokenizer, 100),
    "shard": Format(".bin", _read_shard, 16),
    "eval": Format(".bin", _read_eval, 16),
    "model": Format(".bin", _read_model, 32),
    "counts": Format(".counts", _read_counts, 200, 1 << 21),
    "manifest": Format("/manifest.json", lambda path: Manifest.load(path.parent), 400),
    "npy": Format(".npy", _read_npy, 128),
    "mask": Format(".mask", chat.read_mask, 16),
    "safetensors": Format(".safetensors", _read_safetensors, 400),
    "vocab.json": Format("/vocab.json", _read_files, 100),
    "merges.txt": Format("/merges.txt", _read_files, 100),
    "tokenizer_config.json": Format("/tokenizer_config.json", _read_folder, 400),
    "jsonl": Format(".jsonl", _read_text, 100, 1 << 24),
    "gz": Format(".txt.gz", _read_text, 20, 1 << 24),
}


def make_samples(folder: Path) -> dict[str, bytes]:
    """Makes a small valid file of each format."""
    inputs, out = folder / "inputs", folder / "out"
    make_inputs(inputs)
    operations = {operation.name: operation for operation in OPERATIONS}
    for name in ("save", "save bin", "export tiktoken", "binarize npy", "eval", "chat", "checkpoint to-hf",
                 "export files", "save_pretrained"):  # fmt: skip
        out.mkdir(exist_ok=True)
        operations[name].run(inputs, out)
    pybpe.Counts.from_dict({"a": 1, " word": 2**40, "\u4f60": 3, "other": 7}).save(out / "x.counts")
    import numpy

    write_shard(out / "x.bin", numpy.arange(40, dtype="u2"))
    numpy.save(out / "small.npy", numpy.arange(40, dtype="<u2"))
    names = {
        "tokenizer.bin": "tok.bin", "tokenizer.json": "tok.json", "tiktoken": "tok.tiktoken", "shard": "x.bin",
        "eval": "e.bin", "counts": "x.counts", "manifest": "manifest.json",
        "npy": "small.npy", "safetensors": "hf/model.safetensors",
    }  # fmt: skip
    samples = {name: (out / file).read_bytes() for name, file in names.items()}
    samples["mask"] = sorted(out.glob("*.mask"))[0].read_bytes()
    for name, file in (("vocab.json", "files/vocab.json"), ("merges.txt", "files/merges.txt"),
                       ("tokenizer_config.json", "hf/tokenizer_config.json")):  # fmt: skip
        samples[name] = (out / file).read_bytes()
    _SOUND.update({name: samples[name] for name in ("vocab.json", "merges.txt", "tokenizer.json")})
    samples["jsonl"] = b"".join((inputs / "docs.jsonl").read_bytes().splitlines(True)[:5])
    samples["gz"] = gzip.compress((inputs / "text.txt").read_bytes()[:3000], mtime=0)
    samples["model"] = (inputs / "model.bin").read_bytes()
    assert CONFIG.vocab_size == 300
    return samples


# ------------------------------------------------------------------------------------------------------
# Damage


def damaged(data: bytes, header: int, rng: random.Random) -> Iterator[tuple[str, bytes]]:
    """Yields (description, damaged file): first systematically, then at random, forever."""
    size = len(data)
    for n in _spread(size, 1500):
        yield f"cut to {n} bytes", data[:n]
    for n in (1, 2, 3, 4, 8, 1024, size):
        yield f"{n} bytes 0 appended", data + bytes(n)
        yield f"{n} bytes 255 appended", data + b"\xff" * n
    for bit in range(8 * min(header, size)):
        yield f"bit {bit} turned", data[: bit // 8] + bytes([data[bit // 8] ^ 1 << bit % 8]) + data[bit // 8 + 1 :]
    for at in range(0, min(header, size - 4), 4):
        for value in EXTREMES:
            yield f"int {at // 4} is {value}", data[:at] + value.to_bytes(4, "little") + data[at + 4 :]
    while True:
        a, b = sorted(rng.randrange(size + 1) for _ in range(2))
        kind = rng.randrange(6)
        if kind == 0:
            yield f"{a}..{b} left out", data[:a] + data[b:]
        elif kind == 1:
            yield f"{a}..{b} twice", data[:b] + data[a:]
        elif kind == 2:
            yield f"{a}..{b} zero", data[:a] + bytes(b - a) + data[b:]
        elif kind == 3:
            n = rng.choice((1, 2, 4, 8))
            yield f"{n} bytes 255 at {a}", data[:a] + b"\xff" * n + data[a + n :]
        elif kind == 4:
            changed = bytearray(data)
            for _ in range(rng.randrange(1, 8)):
                changed[rng.randrange(size)] = rng.randrange(256)
            yield "some bytes by chance", bytes(changed)
        else:
            word = rng.choice((b"9" * 30, b"-1", b"null", b"{}", b"[]", b'"', b"1e999", b"\\ud800", b"[" * 5000))
            yield f"{word[:8]!r} at {a}", data[:a] + word + data[a + rng.randrange(8) :]


def _spread(size: int, count: int) -> Iterator[int]:
    """Returns all lengths below `size`, or a sample of them: the first ones, and some throughout."""
    if size <= count:
        yield from range(size)
    else:
        yield from range(count // 2)
        yield from (size - 1 - i * (size - count // 2) // (count // 2) for i in range(count // 2))


# ------------------------------------------------------------------------------------------------------
# Trying


@dataclass
class Tally:
    """The measurements for one format."""

    files: int = 0
    refused: int = 0
    seconds: float = 0.0
    memory: int = 0  # above four times the file


def try_format(
    name: str, data: bytes, files: Iterator[tuple[str, bytes]], folder: Path, times: bool, keep: Path | None
) -> tuple[Tally, list[str]]:
    """Reads damaged files of one format. Returns what was measured, and what went wrong."""
    form, tally, wrong = FORMATS[name], Tally(), []
    path = folder / f"damaged{form.ending}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    for _ in range(2):
        form.read(path)  # sound; and everything is imported
    for what, content in files:
        path.write_bytes(content)
        problem, seconds, memory = _try(form, path)
        if times and seconds > 0.05:
            seconds = min(seconds, *(_try(form, path)[1] for _ in range(3)))
        tally.files += 1
        tally.refused += problem == "refused"
        tally.seconds = max(tally.seconds, seconds)
        tally.memory = max(tally.memory, memory - 4 * len(content))
        if memory > 4 * len(content) + form.memory:
            problem = f"takes {memory} bytes of memory for {len(content)}"
        elif times and seconds > 0.05:
            problem = f"takes {1000 * seconds:.0f} ms"
        if problem not in ("", "refused"):
            wrong.append(f"{name}, {what}: {problem}")
            if keep is not None:
                keep.mkdir(parents=True, exist_ok=True)
                (keep / f"{name}-{len(wrong)}{Path(form.ending).suffix}").write_bytes(content)
    return tally, wrong


def _thinned(source: Iterator[tuple[str, bytes]], each: int, size: int, header: int) -> Iterator[tuple[str, bytes]]:
    """Returns `each` files. At most three quarters are systematic, taken at even intervals."""
    systematic = min(size, 1500) + 14 + 8 * min(header, size) + 7 * (min(header, size) // 4)
    step = max(1, -(-systematic // (each * 3 // 4)))
    taken = 0
    for number, item in enumerate(source):
        if number >= systematic or number % step == 0:
            taken += 1
            yield item
        if taken == each:
            return


def _try(form: Format, path: Path) -> tuple[str, float, int]:
    """Returns ("", "refused" or the problem; seconds of processor time; bytes at the peak)."""
    gc.collect()
    gc.disable()
    problem = ""
    start = time.process_time()
    with shim.memory_peak():
        try:
            form.read(path)
        except pybpe.Error as error:
            problem = "refused"
            if path.name not in str(error) and str(path.parent) not in str(error):
                problem = f"the message does not name the file: {error}"
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            problem = f"{type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
    seconds = time.process_time() - start
    gc.enable()
    return problem, seconds, shim.peak()


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=2000, help="files of each format")
    parser.add_argument("--times", action="store_true", help="more than 50 ms are an error")
    parser.add_argument("--keep", type=Path, help="a folder for files that reveal a problem")
    parser.add_argument(
        "--found", type=Path, help="try the files in this folder, which has a subfolder for each format"
    )
    parser.add_argument("formats", nargs="*")
    arguments = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    total: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="pybpe-corrupt-", dir=shim.fast_folder()) as scratch:
        folder = Path(scratch)
        samples = make_samples(folder)
        gc.freeze()
        for name in arguments.formats or FORMATS:
            source = damaged(samples[name], FORMATS[name].header, random.Random(name))
            files = _thinned(source, arguments.each, len(samples[name]), FORMATS[name].header)
            if arguments.found is not None:
                files = ((path.name, path.read_bytes()) for path in sorted((arguments.found / name).glob("*")))
            place = folder / "damaged"
            tally, found = try_format(name, samples[name], files, place, arguments.times, arguments.keep)
            total["files"] += tally.files
            total["refused"] += tally.refused
            wrong += found
            print(
                f"{name}: {tally.files} files, {tally.refused} refused, at most {1000 * tally.seconds:.1f} ms,"
                f" {tally.memory} bytes above four times the file",
                *found[:20],
                sep="\n  ",
                flush=True,
            )
    print(f"corrupt: {dict(total)}, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
