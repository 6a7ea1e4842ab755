"""Compares encoding: vocabularies x texts x document sizes, one thread, text in memory. Each library runs in its own
process.

    make bench-encode CORPUS="english.txt code.txt" [vocabularies="gpt2 cl100k_base llama3"] [documents="0 65536 4096"]

Prints a Markdown table for each text and size of documents, in characters (0: the text is one document): medians, in
MB per CPU second, cold (the first pass) / warm (the best later one), and, where the system counts them, the
instructions per byte of text: see instructions.py. Then it lists how many times as fast as the
fastest other library pybpe is, from the worst result to the best. encode_one.py shows how each library is called.

With --neighbor, another process copies memory meanwhile, which takes the processor's caches and the memory away.

A vocabulary is an encoding of OpenAI's, a tokenizer.json file, or a pattern: then 100,000 tokens are trained on the
corpora with it, and all libraries use them.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from measure import Run, machine, median, run_in_turn, table

import pybpe
from pybpe.pattern import NAMES

LIBRARIES = (
    "pybpe", "gigatoken", "tokenizers_1", "fastokens", "snaptokens", "splintr", "iree", "kitoken", "tokie", "tiktoken",
    "tokenizers",
)  # fmt: skip
ONE = str(Path(__file__).with_name("encode_one.py"))
STREAM = "import numpy; a, b = numpy.ones((2, 1 << 27), numpy.uint8)\nwhile True: a[:] = b"  # 128 MiB at a time


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument(
        "--vocabularies", nargs="+", default=["gpt2"], help="names of encodings or patterns, or tokenizer.json files"
    )
    parser.add_argument("--documents", nargs="+", type=int, default=[0], help="characters per document; 0: all")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=300, help="seconds; a slower library is left out")
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES)
    parser.add_argument("--neighbor", action="store_true", help="run next to a process that copies memory all the time")
    args = parser.parse_args()
    with neighbor(args.neighbor):
        compare(args)


@contextmanager
def neighbor(wanted: bool) -> Iterator[None]:
    """Runs a process that copies memory, if it is wanted."""
    process = subprocess.Popen([sys.executable, "-c", STREAM]) if wanted else None
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def compare(args: argparse.Namespace) -> None:
    """Measures everything and prints the tables."""
    print(f"One thread, MB per CPU second, cold / warm, medians of {args.runs}. {machine()}")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        tokenizers = {name: tokenizer_file(name, folder, args.corpora) for name in args.vocabularies}
        for corpus in args.corpora:
            for size in args.documents:
                columns = [measure(corpus, size, path, args) for path in tokenizers.values()]
                rows = [[library, *(str(column[library]) for column in columns)] for library in args.libraries]
                what = f"documents of {size} characters" if size else "one document"
                print(f"\n{corpus}, {os.path.getsize(corpus) / 1e6:.1f} MB, {what}:\n")
                print(table(["library", *tokenizers], rows), flush=True)
                results += [(f"{corpus}, {what}", name, column) for name, column in zip(tokenizers, columns)]
    if rows := comparison(results):
        print("\npybpe and the fastest other library, MB per CPU second:\n")
        print(table(["times as fast", "text", "vocabulary", "pass", "pybpe", "fastest other"], rows))


def tokenizer_file(name: str, folder: str, corpora: list[str]) -> str:
    """Returns a tokenizer.json: a file, an encoding from an installed package, or one that is trained here."""
    if os.path.exists(name):
        return name
    path = os.path.join(folder, f"{name}.json")
    if name in NAMES and name != "gpt2":
        pybpe.train(corpora, vocab_size=100_000, pattern=name).save(path)
    else:
        pybpe.get_encoding(name).save(path)
    return path


@dataclass(frozen=True)
class Speed:
    """MB per CPU second, or why there is no result."""

    cold: float = 0
    warm: float = 0
    remark: str = ""
    instructions: str = ""
    """Per byte of text, if they were counted."""

    def __str__(self) -> str:
        return f"{self.cold:.0f} / {self.warm:.0f}{self.instructions}{self.remark}" if self.cold else self.remark


def comparison(results: list[tuple[str, str, dict[str, Speed]]]) -> list[list[str]]:
    """Returns the rows of the last table."""
    rows = []
    for text, vocabulary, speeds in results:
        ours = speeds.pop("pybpe", Speed())
        for which in ("cold", "warm"):
            others = [(name, getattr(speed, which)) for name, speed in speeds.items()]
            name, best = max(others, key=lambda pair: pair[1], default=("", 0))
            if best and ours.cold:
                speed = getattr(ours, which)
                rows.append((speed / best, text, vocabulary, which, f"{speed:.0f}", f"{best:.0f} ({name})"))
    return [[f"{ratio:.2f}", *rest] for ratio, *rest in sorted(rows)]


def measure(corpus: str, size: int, tokenizer: str, args: argparse.Namespace) -> dict[str, Speed]:
    """Returns each library's speed. Libraries whose number of tokens differs from pybpe's are marked."""
    commands = {library: [sys.executable, ONE, library, corpus, tokenizer, str(size)] for library in args.libraries}
    results = run_in_turn(commands, args.runs, args.timeout)
    ours = next((run.output.split()[2] for run in results.get("pybpe", []) if isinstance(run, Run)), None)
    return {library: cell(runs, os.path.getsize(corpus), ours) for library, runs in results.items()}


def cell(runs: list[Run | str], size: int, tokens: str | None) -> Speed:
    """Returns the medians of some runs."""
    failed = next((run for run in runs if isinstance(run, str)), None)
    if failed is not None:
        return Speed(remark=failed)
    good = [run.output.split() for run in runs if isinstance(run, Run)]
    cold, warm = (size / 1e6 / median([float(fields[i]) for fields in good]) for i in (0, 1))
    remark = "" if tokens is None or good[0][2] == tokens else f" ({good[0][2]} tokens, not {tokens})"
    return Speed(cold, warm, remark, instructions_per_byte([fields[3:5] for fields in good], size))


def instructions_per_byte(counts: list[list[str]], size: int) -> str:
    """Returns the medians of cold and warm passes as text, or nothing if the system does not count instructions."""
    if any("-" in pair for pair in counts):
        return ""
    cold, warm = (median([float(pair[i]) for pair in counts]) / size for i in (0, 1))
    return f" ({cold:.1f} / {warm:.1f} instructions)"


if __name__ == "__main__":
    main()
