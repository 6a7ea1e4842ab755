"""Compares loaders of batches for PyTorch on the same tokens: each in a separate process, in turn.

    make bench-serve CORPUS=corpus.txt

Prints a Markdown table of medians: millions of tokens per second, and peak memory of the main process. Uses GPT-2's
vocabulary. nanoGPT's get_batch has no workers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import Run, machine, median, run_in_turn, table

import pybpe

LIBRARIES = ("pybpe", "pybpe_mixture", "nanogpt", "litdata", "streaming")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--batches", default="1500", help="that each process reads")
    parser.add_argument("--timeout", type=float, default=120, help="seconds; a slower library is left out")
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES)
    args = parser.parse_args()
    script = str(Path(__file__).with_name("serve_one.py"))
    with tempfile.TemporaryDirectory() as folder:
        tokenizer, ids = os.path.join(folder, "tokenizer.json"), os.path.join(folder, "ids.npy")
        pybpe.get_encoding("gpt2").save(tokenizer)
        pybpe.encode_files(pybpe.Tokenizer.from_file(tokenizer), args.corpus, ids)
        for library in args.libraries:
            if library != "pybpe":
                subprocess.run([sys.executable, script, f"write:{library}", "0", ids, folder], check=True)
        commands = {
            f"{library}, {workers}": [sys.executable, script, library, workers, ids, folder, args.batches]
            for workers in "02"
            for library in args.libraries
            if workers == "0" or library != "nanogpt"
        }
        results = run_in_turn(commands, args.runs, args.timeout)
    print(f"Batches of 16 x 1024 tokens, median of {args.runs}.\n{machine()}\n")
    print(summary(results))


def summary(results: dict[str, list[Run | str]]) -> str:
    """Returns the table, in the order of the commands."""
    rows = []
    for name, runs in results.items():
        good = [r for r in runs if isinstance(r, Run)]
        if len(good) < len(runs):
            rows.append([*name.split(", "), next(r for r in runs if isinstance(r, str)), ""])
            continue
        speeds = [float(r.output.split()[-1]) / 1e6 for r in good]
        rows.append([*name.split(", "), f"{median(speeds):.1f}", f"{median([r.megabytes for r in good]):.0f}"])
    return table(["loader", "workers", "million tokens/s", "peak MB"], rows)


if __name__ == "__main__":
    main()
