"""Compares libraries turning a text file into uint16 tokens on disk: whole processes, from start to exit, in turn.

    make bench-binarize CORPUS=corpus.txt

Prints a Markdown table of medians: MB of text per second, CPU seconds, and peak memory. Uses GPT-2's vocabulary.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from measure import Run, machine, median, run_in_turn, table

import pybpe

LIBRARIES = (
    "pybpe_binarize",
    "pybpe_command",
    "pybpe_binarize_from_bin",
    "pybpe_binarize_one_worker",
    "pybpe_encode_files",
    "pybpe_in_memory_one_thread",
    "gigatoken_encode_files",
    "gigatoken_in_memory_one_thread",
    "tokenizers_1",
    "fastokens",
    "tiktoken",
)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=300, help="seconds; a slower library is left out")
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES)
    args = parser.parse_args()
    size = os.path.getsize(args.corpus)
    script = str(Path(__file__).with_name("binarize_one.py"))
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = os.path.join(folder, "tokenizer.json")
        pybpe.get_encoding("gpt2").save(tokenizer)
        pybpe.Tokenizer.from_file(tokenizer).save(tokenizer.replace(".json", ".bin"))
        commands = {
            library: [sys.executable, script, library, args.corpus, tokenizer, os.path.join(folder, "out.bin")]
            for library in args.libraries
        }
        results = run_in_turn(commands, args.runs, args.timeout)
    print(f"{size / 1e6:.1f} MB of text to uint16 tokens on disk, whole process, median of {args.runs}.")
    print(f"{machine()}\n")
    print(summary(results, size))


def summary(results: dict[str, list[Run | str]], size: int) -> str:
    """Returns the table, in the order of the libraries."""
    rows = []
    for library, runs in results.items():
        good = [r for r in runs if isinstance(r, Run)]
        if len(good) < len(runs):
            rows.append([library, next(r for r in runs if isinstance(r, str)), "", "", ""])
            continue
        seconds = median([r.seconds for r in good])
        cpu, megabytes = median([r.cpu_seconds for r in good]), median([r.megabytes for r in good])
        rows.append([library, f"{seconds:.3f}", f"{size / 1e6 / seconds:.0f}", f"{cpu:.3f}", f"{megabytes:.0f}"])
    return table(["library", "seconds", "MB/s", "CPU seconds", "peak MB"], rows)


if __name__ == "__main__":
    main()
