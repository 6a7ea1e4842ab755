"""Measures text that is encoded once, side by side with other libraries: CPU time, one thread, new processes.

    make bench-fresh CORPUS=file [vocabularies="gpt2 cl100k_base"] [BENCH_FLAGS="--runs 5"]

Each text is read once, in two ways. By amount, documents of 64 KiB follow one another: the first 100 kB, then up to 1,
3 and 10 MB. By document, as tokbench does it, the slices are 1 MB each and have no text in common: the first one as
documents of 10 kB, the next ones as documents of 1, 10 and 100 kB. Before any time is printed, the ids of each slice
are compared: a library whose ids differ from pybpe's gets no time. Libraries run in turn, and a cell is the median of
its runs. The rows in which pybpe is slowest, compared with the fastest other library, come first.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import tempfile
import time
from typing import Any

import numpy
from encode import tokenizer_file
from measure import ONE_BLAS_THREAD, Run, machine, median, run_in_turn, table

import pybpe

LIBRARIES = ("pybpe", "gigatoken", "tokenizers_1")
KB = 1000
# (where a slice ends in the text, in bytes; bytes of a document)
AMOUNTS = [(100 * KB, 64 << 10), (1000 * KB, 64 << 10), (3000 * KB, 64 << 10), (10_000 * KB, 64 << 10)]
DOCUMENTS = [(1000 * KB, 10 * KB), (2000 * KB, KB), (3000 * KB, 10 * KB), (4000 * KB, 100 * KB)]
WAYS = {"amounts": AMOUNTS, "documents": DOCUMENTS}
NAMES = {
    "amounts": ["first 100 kB", "to 1 MB", "to 3 MB", "to 10 MB"],
    "documents": ["first MB, 10 kB", "1 kB", "10 kB", "100 kB"],
}


def encode_once(library: str, way: str, name: str, tokenizer: str, corpus: str) -> None:
    """Encodes the slices, and prints the CPU seconds and a hash of the ids of each: the process that is measured."""
    import encode_one

    encode, _ = getattr(encode_one, f"load_{library}")(tokenizer)
    if library == "pybpe" and name.endswith("_base"):  # as most people load it: from OpenAI's file
        ours = pybpe.get_encoding(name)

        def encode(texts: list[str]) -> Any:
            return ours.encode_batch_to_numpy(texts, 1, allowed_special=())[0]

    encode(["a"])  # imports that wait for the first call
    start = 0
    with open(corpus, "rb") as stream:
        for end, size in WAYS[way]:
            data = stream.read(end - start)
            texts = [data[at : at + size].decode("utf-8", "ignore") for at in range(0, len(data), size)]
            before = time.process_time()
            ids = encode(texts)
            seconds = time.process_time() - before
            print(seconds, end - start, digest(ids))
            start = end


def digest(ids: Any) -> str:
    """A hash of all ids, which libraries return as one array or as an array or list for each text."""
    rows = [ids] if isinstance(ids, numpy.ndarray) else list(ids)
    found = hashlib.sha256()
    for row in rows:
        found.update(numpy.asarray(row, dtype=numpy.uint32).tobytes())
    return found.hexdigest()[:16]


Cells = list[tuple[float, list[str]]]


def measure(way: str, name: str, tokenizer: str, corpus: str, args: argparse.Namespace) -> Cells:
    """Returns the rows of one text and vocabulary, each with the ratio by which rows are sorted."""
    commands = {
        each: [sys.executable, __file__, "--one", each, way, name, tokenizer, corpus] for each in args.libraries
    }
    results = run_in_turn(commands, args.runs, args.timeout)
    speeds: dict[str, list[float]] = {}
    hashes: dict[str, list[str]] = {}
    for library, runs in results.items():
        outputs = [[line.split() for line in run.output.splitlines()] for run in runs if isinstance(run, Run)]
        if len(outputs) < len(runs):
            print(f"{library}, {name}, {os.path.basename(corpus)}: {next(r for r in runs if not isinstance(r, Run))}")
            continue
        hashes[library] = [line[2] for line in outputs[0]]
        columns = [
            [float(output[i][1]) / float(output[i][0]) / 1e6 for output in outputs] for i in range(len(outputs[0]))
        ]
        speeds[library] = [median(column) for column in columns]
    ours = hashes.get("pybpe")
    for library in [each for each in speeds if hashes[each] != ours]:
        print(f"{library}, {name}, {os.path.basename(corpus)}: other ids than pybpe's, so no times")
        del speeds[library]
    others = [each for each in speeds if each != "pybpe"]
    rows: Cells = []
    for i, slice_name in enumerate(NAMES[way]):
        if others and "pybpe" in speeds:
            best = max(others, key=lambda each: speeds[each][i])
            ratio = speeds["pybpe"][i] / speeds[best][i]
            cells = [f"{speeds[each][i]:.0f}" if each in speeds else "" for each in args.libraries]
            rows.append((ratio, [f"{ratio:.2f}", os.path.basename(corpus), name, slice_name, *cells]))
    return rows


def main() -> None:
    """Measures all texts and vocabularies, and prints a table for each way."""
    if sys.argv[1:2] == ["--one"]:
        encode_once(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("corpora", nargs="+")
    parser.add_argument("--vocabularies", nargs="+", default=["gpt2", "cl100k_base"])
    parser.add_argument("--libraries", nargs="+", default=LIBRARIES)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--timeout", type=float, default=120)
    args = parser.parse_args()
    os.environ.update(ONE_BLAS_THREAD)
    print(f"MB per CPU second, one thread, each text once, medians of {args.runs}. {machine()}")
    with tempfile.TemporaryDirectory() as folder:
        tokenizers = {name: tokenizer_file(name, folder, args.corpora) for name in args.vocabularies}
        for way in WAYS:
            rows: Cells = []
            for corpus in args.corpora:
                for name, path in tokenizers.items():
                    rows += measure(way, name, path, corpus, args)
            header = ["times as fast", "text", "vocabulary", "slice", *args.libraries]
            print(f"\nBy {way[:-1]}:\n\n{table(header, [row for _, row in sorted(rows)])}", flush=True)


if __name__ == "__main__":
    main()
