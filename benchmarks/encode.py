"""Compares encoding: vocabularies x texts x document sizes, one thread, text in memory. Each library runs in its own
process.

    make bench-encode CORPUS="english.txt code.txt" [vocabularies="gpt2 cl100k_base o200k_base"] [documents="0 4096"]

Prints a Markdown table for each text and size of documents, in characters (0: the text is one document): medians, in
MB per CPU second, cold (the first pass) / warm (the best later one). encode_one.py shows how each library is called.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from measure import Run, machine, median, run_in_turn, table

import pybpe

LIBRARIES = ("pybpe", "gigatoken", "fastokens", "snaptokens", "tokie", "tiktoken", "tokenizers")
ONE = str(Path(__file__).with_name("encode_one.py"))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpora", nargs="+")
    parser.add_argument(
        "--vocabularies", nargs="+", default=["gpt2"], help="names of encodings, or tokenizer.json files"
    )
    parser.add_argument("--documents", nargs="+", type=int, default=[0], help="characters per document; 0: all")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=300, help="seconds; a slower library is left out")
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES)
    args = parser.parse_args()
    print(f"One thread, MB per CPU second, cold / warm, medians of {args.runs}. {machine()}")
    with tempfile.TemporaryDirectory() as folder:
        tokenizers = {name: tokenizer_file(name, folder) for name in args.vocabularies}
        for corpus in args.corpora:
            for size in args.documents:
                columns = [measure(corpus, size, path, args) for path in tokenizers.values()]
                rows = [[library, *(column[library] for column in columns)] for library in args.libraries]
                what = f"documents of {size} characters" if size else "one document"
                print(f"\n{corpus}, {os.path.getsize(corpus) / 1e6:.1f} MB, {what}:\n")
                print(table(["library", *tokenizers], rows), flush=True)


def tokenizer_file(name: str, folder: str) -> str:
    """Returns a tokenizer.json: a file, or an encoding from an installed package."""
    if os.path.exists(name):
        return name
    path = os.path.join(folder, f"{name}.json")
    pybpe.get_encoding(name).save(path)
    return path


def measure(corpus: str, size: int, tokenizer: str, args: argparse.Namespace) -> dict[str, str]:
    """Returns each library's speed. Libraries whose number of tokens differs from pybpe's are marked."""
    commands = {library: [sys.executable, ONE, library, corpus, tokenizer, str(size)] for library in args.libraries}
    results = run_in_turn(commands, args.runs, args.timeout)
    ours = next((run.output.split()[2] for run in results.get("pybpe", []) if isinstance(run, Run)), None)
    return {library: cell(runs, os.path.getsize(corpus), ours) for library, runs in results.items()}


def cell(runs: list[Run | str], size: int, tokens: str | None) -> str:
    """Returns "cold / warm", or why there is no result."""
    failed = next((run for run in runs if isinstance(run, str)), None)
    if failed is not None:
        return failed
    good = [run.output.split() for run in runs if isinstance(run, Run)]
    cold, warm = (size / 1e6 / median([float(fields[i]) for fields in good]) for i in (0, 1))
    differs = "" if tokens is None or good[0][2] == tokens else f" ({good[0][2]} tokens, not {tokens})"
    return f"{cold:.0f} / {warm:.0f}{differs}"


if __name__ == "__main__":
    main()
