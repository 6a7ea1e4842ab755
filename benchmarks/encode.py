"""Compares encoding: vocabularies x texts x document sizes, one thread, text in memory. Each library runs in its own
process.

    make bench-encode CORPUS="english.txt code.txt" [vocabularies="gpt2 cl100k_base llama3"] [documents="0 65536 4096"]

Prints a Markdown table for each text and size of documents, in characters (0: the text is one document): medians, in
MB per CPU second, cold (the first pass) / warm (the best later one), and, where the system counts them, the
instructions per byte of text: see instructions.py. Then it lists how many times as fast as the
fastest other library pybpe is, from the worst result to the best. encode_one.py shows how each library is called.

With --sizes, as in

    make bench-encode CORPUS=english.txt documents=65536 \\
        BENCH_FLAGS="--sizes 100M 1G 10G --threads 1 2 --runs 1 --timeout 200"

growing_corpus.py makes texts of these sizes from the given one. A library whose passes would take more than half of
--timeout, as its speed with the size before says, is left out of a size. With --threads, results are in MB per second,
so nothing else may run.

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

from measure import ONE_BLAS_THREAD, Run, machine, median, run_in_turn, table

import pybpe
from pybpe.cli.common import parse_amount
from pybpe.pattern import NAMES

LIBRARIES = (
    "pybpe", "gigatoken", "tokenizers_1", "fastokens", "snaptokens", "splintr", "iree", "kitoken", "tokie", "tiktoken",
    "tokenizers",
)  # fmt: skip
ONE_THREAD = ("kitoken", "tiktoken")
ONE = str(Path(__file__).with_name("encode_one.py"))
GROWING = str(Path(__file__).with_name("growing_corpus.py"))
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
    parser.add_argument("--sizes", nargs="+", type=parse_amount, default=[], help="of the text in bytes; see above")
    parser.add_argument("--threads", nargs="+", type=int, default=[], help="see above")
    parser.add_argument("--neighbor", action="store_true", help="run next to a process that copies memory all the time")
    args = parser.parse_args()
    os.environ.update(ONE_BLAS_THREAD)
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
    unit = "second" if args.threads else "CPU second, one thread"
    print(f"MB per {unit}, cold / warm, medians of {args.runs}. {machine()}")
    results: Results = []
    with tempfile.TemporaryDirectory() as folder:
        tokenizers = {name: tokenizer_file(name, folder, args.corpora) for name in args.vocabularies}
        for corpus in [grown(args.corpora[0], max(args.sizes), folder)] if args.sizes else args.corpora:
            for characters in args.documents:
                results += compare_sizes(corpus, characters, tokenizers, args)
    if rows := comparison(results):
        print(f"\npybpe and the fastest other library, MB per {unit}:\n")
        print(table(["times as fast", "text", "vocabulary", "pass", "pybpe", "fastest other"], rows))


def compare_sizes(corpus: str, characters: int, tokenizers: dict[str, str], args: argparse.Namespace) -> Results:
    """Measures one corpus and size of documents, and prints the tables."""
    results: Results = []
    columns: dict[str, dict[str, Speed]] = {}
    for size in sorted(args.sizes) or [os.path.getsize(corpus)]:
        for name, path in tokenizers.items():
            for threads in args.threads or [1]:
                head = f"{name}, threads: {threads}" if args.threads else name
                setting = Setting(corpus, size, characters, path, threads)
                columns[head] = measure(setting, args, columns.get(head, {}))
        what = f"documents of {characters} characters" if characters else "one document"
        what = f"{os.path.basename(corpus)}, {size / 1e6:,.1f} MB, {what}"
        rows = [[library, *(str(column[library]) for column in columns.values())] for library in args.libraries]
        print(f"\n{what}:\n\n{table(['library', *columns], rows)}", flush=True)
        results += [(what, head, dict(column)) for head, column in columns.items()]
    return results


def grown(text: str, size: int, folder: str) -> str:
    """Makes a corpus of some size from a text."""
    path = os.path.join(folder, "grown.txt")
    with open(path, "wb") as stream:
        subprocess.run([sys.executable, GROWING, text, "--bytes", str(size)], stdout=stream, check=True)
    return path


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


Results = list[tuple[str, str, dict[str, Speed]]]  # text, vocabulary, library -> speed


def comparison(results: Results) -> list[list[str]]:
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


@dataclass(frozen=True)
class Setting:
    """What each library encodes."""

    corpus: str
    size: int
    characters: int
    tokenizer: str
    threads: int


def measure(setting: Setting, args: argparse.Namespace, smaller: dict[str, Speed]) -> dict[str, Speed]:
    """Returns each library's speed. Libraries whose number of tokens differs from pybpe's are marked. The speeds with a
    smaller size say which libraries would take too long."""
    found: dict[str, Speed] = {}
    for library in args.libraries:
        speed = smaller.get(library)
        if setting.threads > 1 and library in ONE_THREAD:
            found[library] = Speed(remark="one thread only")
        elif speed is not None and not speed.cold:
            found[library] = speed
        elif speed is not None and setting.size / 1e6 * (1 / speed.cold + 1 / speed.warm) > args.timeout / 2:
            found[library] = Speed(remark="too slow")
    what = [setting.corpus, setting.tokenizer, str(setting.characters), str(setting.size), str(setting.threads)]
    commands = {each: [sys.executable, ONE, each, *what] for each in args.libraries if each not in found}
    results = run_in_turn(commands, args.runs, args.timeout)
    ours = next((run.output.split()[2] for run in results.get("pybpe", []) if isinstance(run, Run)), None)
    fields = (5, 6) if args.threads else (0, 1)
    return found | {library: cell(runs, setting.size, ours, fields) for library, runs in results.items()}


def cell(runs: list[Run | str], size: int, tokens: str | None, fields: tuple[int, int]) -> Speed:
    """Returns the medians of some runs. `fields` of their output are the seconds of the cold and of the warm pass."""
    failed = next((run for run in runs if isinstance(run, str)), None)
    if failed is not None:
        return Speed(remark=failed)
    good = [run.output.split() for run in runs if isinstance(run, Run)]
    cold, warm = (size / 1e6 / median([float(output[i]) for output in good]) for i in fields)
    remark = "" if tokens is None or good[0][2] == tokens else f" ({good[0][2]} tokens, not {tokens})"
    return Speed(cold, warm, remark, instructions_per_byte([output[3:5] for output in good], size))


def instructions_per_byte(counts: list[list[str]], size: int) -> str:
    """Returns the medians of cold and warm passes as text, or nothing if the system does not count instructions."""
    if any("-" in pair for pair in counts):
        return ""
    cold, warm = (median([float(pair[i]) for pair in counts]) / size for i in (0, 1))
    return f" ({cold:.1f} / {warm:.1f} instructions)"


if __name__ == "__main__":
    main()
