"""Measures texts that break tokenizers: how fast they are encoded, and how the work grows with their length.

    make bench-pathology

Prints a Markdown table: MB/s of 10 MB (one thread, GPT-2's vocabulary, cache empty, the median of a few runs), and
instructions per byte at 2^14 and at 2^23 bytes, with the exponent of growth between them: 1.00 is linear. Instructions
are counted by valgrind's callgrind; without valgrind that part is left out.
"""

from __future__ import annotations

import argparse
import math
import random
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import machine, median, table

import pybpe

SMALL, LARGE = 1 << 14, 1 << 23


def texts(size: int) -> dict[str, bytes]:
    """Returns the texts, each of `size` bytes."""
    rng = random.Random(1)
    letters = bytes(rng.choices(b"abcdefghijklmnopqrstuvwxyz", k=size))
    digits = bytes(rng.choices(b"0123456789", k=size))
    chinese = "".join(map(chr, rng.choices(range(0x4E00, 0x9FA6), k=size // 3 + 1))).encode()[:size]
    common = "的一是不了人我在有他这中大来上国个到说们为子和你地出道也时年得就那要下以生会自着去之过家学对可"
    units = {"`a`": b"a", "spaces": b" ", "newlines": b"\n", "`ab`": b"ab", "`!`": b"!"}
    made = {name: (unit * size)[:size] for name, unit in units.items()}
    return made | {
        "digits": digits,
        "random letters": letters,
        "Chinese without punctuation": chinese,
        "the same, common characters": "".join(rng.choices(common, k=size // 3 + 1)).encode()[:size],
        "invalid bytes": bytes(rng.choices(range(0x80, 0x100), k=size)),
        "any bytes": rng.randbytes(size),
    }


def seconds(command: list[str], runs: int) -> float:
    """Returns the median of what encode_file measures, at least 1e-6, the resolution of its clock."""
    every = [float(subprocess.run(command, capture_output=True, check=True).stdout.split()[2]) for _ in range(runs)]
    return max(1e-6, median(every))


def instructions(command: list[str]) -> int:
    """Returns how many instructions pybpe_encode executes, including the functions it calls."""
    callgrind = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=pybpe_encode"]
    done = subprocess.run([*callgrind, *command], capture_output=True, check=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if found is None:
        raise RuntimeError(done.stderr)
    return int(found[1])


def growth(program: str, tokenizer: str, folder: Path, name: str) -> list[str]:
    """Returns the instructions per byte of the small and the large text, and the exponent."""
    counts = []
    for size in (SMALL, LARGE):
        path = folder / f"{size}.txt"
        path.write_bytes(texts(size)[name])
        counts.append(instructions([program, tokenizer, str(path)]))
    exponent = math.log(counts[1] / counts[0]) / math.log(LARGE / SMALL)
    return [f"{counts[0] / SMALL:.1f}", f"{counts[1] / LARGE:.1f}", f"{exponent:.3f}"]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", help="build/benchmarks/encode_file")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--bytes", type=int, default=10_000_000, help="of each text whose speed is measured")
    args = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tokenizer = str(folder / "tokenizer.bin")
        pybpe.get_encoding("gpt2").save(tokenizer)
        for what, text in texts(args.bytes).items():
            print(f"\r{what}\033[K", end="", file=sys.stderr, flush=True)
            (folder / "text").write_bytes(text)
            speed = len(text) / 1e6 / seconds([args.program, tokenizer, str(folder / "text")], args.runs)
            counted = growth(args.program, tokenizer, folder, what) if shutil.which("valgrind") else ["", "", ""]
            rows.append([what, f"{speed:.0f}", *counted])
    print("\r\033[K", end="", file=sys.stderr)
    print(f"Encoding {args.bytes / 1e6:g} MB, GPT-2's vocabulary, one thread, cache empty, median of {args.runs}.")
    print(f"{machine()}\n")
    print(table(["text", "MB/s", "instructions per byte, 2^14", "2^23", "exponent"], rows))


if __name__ == "__main__":
    main()
