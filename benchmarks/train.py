"""Compares training: whole processes, from start to exit, in turn, on the same file.

    make bench-train CORPUS=corpus.txt [vocab=32000]

Prints a Markdown table of medians, and ratios to pybpe, for benchmarks/RESULTS.md. With BENCH_FLAGS="--libraries pybpe
pybpe_superwords" it compares ordinary tokens with superwords, for docs/vocabularies.md.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from measure import Run, machine, median, run_in_turn, table

LIBRARIES = ("pybpe", "gigabpe", "gigatoken", "rustbpe", "bpeasy", "tokenizers")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--vocab-size", type=int, default=32000)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=300, help="seconds; a slower library is left out")
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES)
    args = parser.parse_args()
    script = str(Path(__file__).with_name("train_one.py"))
    commands = {
        library: [sys.executable, script, library, args.corpus, str(args.vocab_size)] for library in args.libraries
    }
    results = run_in_turn(commands, args.runs, args.timeout)
    size = os.path.getsize(args.corpus)
    print(f"Training {args.vocab_size} tokens on {size / 1e6:.1f} MB, whole process, median of {args.runs}.")
    print(f"{machine()}\n")
    print(summary(results))


def summary(results: dict[str, list[Run | str]]) -> str:
    """Returns the table, fastest first."""
    rows = []
    base = None
    for library, runs in results.items():
        good = [r for r in runs if isinstance(r, Run)]
        if len(good) < len(runs):
            rows.append((float("inf"), [library, next(r for r in runs if isinstance(r, str)), "", "", ""]))
            continue
        seconds = median([r.seconds for r in good])
        base = seconds if base is None else base
        cpu = median([r.cpu_seconds for r in good])
        memory = median([r.megabytes for r in good])
        rows.append((seconds, [library, f"{seconds:.2f}", f"{seconds / base:.1f}x", f"{cpu:.2f}", f"{memory:.0f}"]))
    header = ["library", "seconds", "to pybpe", "CPU seconds", "MB"]
    return table(header, [row for _, row in sorted(rows, key=lambda r: r[0])])


if __name__ == "__main__":
    main()
