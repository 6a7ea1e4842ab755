"""Measures memory, CPU time and GIL time of the commands that read a corpus, by the shape of the corpus.

    make bench-shapes CORPUS=file

Makes inputs of several shapes from the text of a file: one document, many documents, small files, short lines, JSON
lines, compressed files, parquet, Arrow. Runs each command on each shape in its own process, with one worker, and prints
a Markdown table: peak memory in MB, CPU seconds per GB of text, and the seconds per GB in which a thread held Python's
GIL (see gil.c): no two threads hold it at once, so more cores cannot make that part faster. The memory includes that of
Python and the tokenizer. The times do not include the start: it is measured with a tiny input, and subtracted.
"""

from __future__ import annotations

import argparse
import ctypes
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from measure import machine, median, run, table

MARK = "<|endoftext|>"
COMMANDS = ("binarize", "counts", "train", "prepare", "corpus", "count", "verify", "inspect", "pack", "mix")
RECIPE = "recipe.toml"
_TICK = 1000  # microseconds between two samples
_TINY = 20_000  # bytes of the input that shows how long the start takes


class Corpus:
    """A text, repeated as often as needed, in documents of any size."""

    def __init__(self, path: str) -> None:
        self._text = Path(path).read_bytes().decode("utf-8", "ignore").replace("\r", "").replace(MARK, "")

    def documents(self, size: int, total: int) -> Iterator[str]:
        """Yields documents of about `size` characters without line ends, `total` bytes or somewhat more in all."""
        made = at = 0
        while made < total:
            text = self._text[at : at + size].replace("\n", " ")
            at += size
            if len(text) < size:
                at = 0
                continue
            made += len(text.encode())
            yield text

    def text(self, total: int) -> Iterator[str]:
        """Yields the text as it is, `total` bytes or somewhat more in all."""
        made = 0
        while made < total:
            part = self._text[: total - made]
            made += len(part.encode())
            yield part


def one_document(corpus: Corpus, path: Path, total: int) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(corpus.text(total))


def marked(corpus: Corpus, path: Path, total: int) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(text + MARK for text in corpus.documents(3000, total))


def small_files(corpus: Corpus, path: Path, total: int) -> None:
    path.mkdir()
    for number, text in enumerate(corpus.documents(100, total)):
        if number % 1000 == 0:
            folder = path / f"{number // 1000:05d}"
            folder.mkdir()
        (folder / f"{number % 1000:03d}.txt").write_text(text)


def lines(corpus: Corpus, path: Path, total: int) -> None:
    with path.open("w", encoding="utf-8") as stream:
        stream.writelines(text + "\n" for text in corpus.documents(20, total))


def records(size: int, open_it: Callable[..., object] = open) -> Callable[[Corpus, Path, int], None]:
    """Returns a function that makes JSON lines with texts of `size` characters."""

    def make(corpus: Corpus, path: Path, total: int) -> None:
        with open_it(path, "wt", encoding="utf-8") as stream:  # type: ignore[attr-defined]
            for number, text in enumerate(corpus.documents(size, total)):
                stream.write(json.dumps({"id": number, "text": text, "url": f"https://example.org/{number}"}) + "\n")

    return make


def _open_zstd(*args: object, **options: object) -> object:
    from pybpe.reading.streams import zstd_module

    return zstd_module("the corpus").open(*args, **options)


def rows(size: int) -> Callable[[Corpus, Path, int], None]:
    """Returns a function that makes a parquet or Arrow file with texts of `size` characters."""

    def make(corpus: Corpus, path: Path, total: int) -> None:
        import pyarrow
        from pyarrow import ipc, parquet

        texts = pyarrow.table({"text": list(corpus.documents(size, total))})
        if path.suffix == ".parquet":
            parquet.write_table(texts, path, compression="zstd", row_group_size=10_000)
            return
        with ipc.new_stream(path, texts.schema) as stream:
            stream.write_table(texts, max_chunksize=1000)  # as Hugging Face's datasets does

    return make


SHAPES: dict[str, tuple[str, Callable[[Corpus, Path, int], None], float, list[str]]] = {
    # name: (file, what makes it, its share of --megabytes, options)
    "documents of 3 kB": ("marked.txt", marked, 1, []),
    "one document": ("book.txt", one_document, 5, []),
    "files of 100 bytes": ("small", small_files, 0.05, []),
    "lines of 20 bytes": ("lines.txt", lines, 1, ["--documents", "line"]),
    "JSON lines of 3 kB": ("long.jsonl", records(3000), 1, []),
    "JSON lines of 20 bytes": ("short.jsonl", records(20), 0.2, []),
    "JSON lines of 3 kB, .zst": ("long.jsonl.zst", records(3000, _open_zstd), 1, []),
    "JSON lines of 3 kB, .gz": ("long.jsonl.gz", records(3000, gzip.open), 1, []),
    "rows of 3 kB, parquet": ("long.parquet", rows(3000), 1, []),
    "rows of 20 bytes, parquet": ("short.parquet", rows(20), 0.2, []),
    "rows of 3 kB, Arrow": ("long.arrow", rows(3000), 1, []),
    "rows of 20 bytes, Arrow": ("short.arrow", rows(20), 0.2, []),
}


def arguments(command: str, shape: str, folder: Path, tokenizer: Path, workers: int) -> list[str]:
    """Returns the arguments of `pybpe` for a shape."""
    name, _, _, how = SHAPES[shape]
    corpus, out, binarized = (str(folder / path) for path in (name, f"made/{command}/out", "made/binarize/out"))
    many = ["--workers", str(workers), "--quiet"]
    return {
        "binarize": ["binarize", "-t", str(tokenizer), corpus, "-o", out, "--min-shard-tokens", "0", *how, *many],
        "prepare": ["prepare", corpus, "-o", out, "--vocab-size", "1000", "--min-shard-tokens", "0", *how, *many],
        "corpus": ["corpus", corpus, "-o", f"{out}.jsonl", "--min-chars", "1", *how, *many],
        "counts": ["count", corpus, "-o", f"{out}.counts", *many],
        "train": ["train", corpus, "--vocab-size", "1000", "-o", f"{out}.json", *many],
        "count": ["count", "-t", str(tokenizer), corpus, *many],
        "verify": ["verify", "-t", str(tokenizer), binarized, "--quiet"],
        "inspect": ["inspect", binarized, "--quiet"],
        "pack": ["pack", "-t", str(tokenizer), binarized, "-o", out, "--sequence-length", "1024", "--quiet"],
        "mix": ["mix", "-t", str(tokenizer), str(folder / RECIPE), "-o", out, "--min-shard-tokens", "0", "--quiet"],
    }[command]


def fits(command: str, shape: str) -> bool:
    """Returns whether a command reads inputs of a shape as documents of that shape."""
    name = SHAPES[shape][0]
    if command == "count":
        return name in ("marked.txt", "book.txt")
    if command in ("counts", "train"):
        return not name.endswith((".parquet", ".arrow")) and name != "lines.txt"
    return True


def child(library: str, args: list[str]) -> int:
    """Runs a command of pybpe in this process. Prints the CPU seconds, and those in which a thread held the GIL."""
    from pybpe import cli
    from pybpe.tokens import binarization  # noqa: F401  the import is not to be measured

    sampler = ctypes.PyDLL(library)
    before = time.process_time()
    sampler.gil_start(ctypes.c_long(_TICK))
    status = cli.main(args)
    seconds = time.process_time() - before
    share = sampler.gil_held() / max(1, sampler.gil_ticks())
    print(f"\n{seconds} {seconds * share}")
    return status


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="a text file of a few megabytes or more")
    parser.add_argument("--gil", required=True, metavar="LIBRARY", help="gil.c as a shared library")
    parser.add_argument("--megabytes", type=float, default=200, help="the size of the larger inputs (default: 200)")
    parser.add_argument("--shapes", help="only those whose names contain one of these, separated by commas")
    parser.add_argument("--commands", default=",".join(COMMANDS), help="some of these, in this order (default: all)")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=1800)
    args = parser.parse_args()
    shapes = [name for name in SHAPES if not args.shapes or any(part in name for part in args.shapes.split(","))]
    print(machine(), flush=True)
    found = []
    with tempfile.TemporaryDirectory(prefix="pybpe-shapes-") as folder:
        bench = Bench(args, Path(folder))
        write_tokenizer(args.corpus, Path(folder) / "tok.json", Path(folder) / "tokenizer.bin")
        (Path(folder) / RECIPE).write_text('[sources.all]\ndata = "made/binarize/out"\nepochs = 1.0\n')
        for shape in shapes:
            for row in bench.rows(shape):
                print(*row, sep="\t", file=sys.stderr, flush=True)
                found.append(row)
    print(table(["input", "command", "MB", "peak MB", "CPU s per GB", "GIL s per GB"], found))
    return 0


def write_tokenizer(corpus: str, trained: Path, path: Path) -> None:
    """Trains a tokenizer of GPT-2's size on the text, which most words of the inputs are then tokens of."""
    command = ["train", corpus, "--vocab-size", "50257", "--special-token", MARK, "--min-frequency", "1", "--quiet"]
    subprocess.run([sys.executable, "-m", "pybpe", *command, "-o", str(trained)], check=True)
    subprocess.run(
        [sys.executable, "-m", "pybpe", "export", str(trained), "--format", "bin", "-o", str(path)],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


class Bench:
    """Measures shapes in a temporary folder."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self._args, self._folder, self._tokenizer = args, folder, folder / "tokenizer.bin"

    def rows(self, shape: str) -> Iterator[list[str]]:
        """Yields the cells of a shape's rows."""
        commands = [command for command in self._args.commands.split(",") if fits(command, shape)]
        starts = self._measured(shape, _TINY, commands)
        size = int(self._args.megabytes * SHAPES[shape][2] * 1e6)
        for command, result in self._measured(shape, size, commands).items():
            start = starts[command]
            if isinstance(result, str) or isinstance(start, str):
                yield [shape, command, f"{size / 1e6:.0f}", str(result if isinstance(result, str) else start), "", ""]
                continue
            cpu, gil = ((result[i] - start[i]) / (size - _TINY) * 1e9 for i in (1, 2))
            yield [shape, command, f"{size / 1e6:.0f}", f"{result[0]:.0f}", f"{cpu:.1f}", f"{gil:.2f}"]

    def _measured(self, shape: str, size: int, commands: list[str]) -> dict[str, list[float] | str]:
        """Measures commands on an input of some size."""
        path = self._folder / SHAPES[shape][0]
        # In another process: Linux counts the memory of this process for each process that it starts.
        command = [sys.executable, __file__, "--make", shape, self._args.corpus, str(path), str(size)]
        made = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        if made.returncode:  # a package is missing
            print(made.stderr.splitlines()[-1], file=sys.stderr)
            return dict.fromkeys(commands, "not made")
        found = {command: self._median(command, shape) for command in commands}
        shutil.rmtree(path) if path.is_dir() else os.unlink(path)
        return found

    def _median(self, command: str, shape: str) -> list[float] | str:
        """Returns the peak memory in MB, the CPU seconds, and those with the GIL: medians of some runs."""
        args = arguments(command, shape, self._folder, self._tokenizer, self._args.workers)
        found = []
        for _ in range(self._args.runs):
            made = self._folder / "made" / command
            shutil.rmtree(made, ignore_errors=True)
            made.mkdir(parents=True)
            result = run([sys.executable, __file__, "--child", self._args.gil, *args], self._args.timeout)
            if isinstance(result, str):
                return result
            found.append([result.megabytes, *map(float, result.output.splitlines()[-1].split())])
        return [median(list(values)) for values in zip(*found)]


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        sys.exit(child(sys.argv[2], sys.argv[3:]))
    if sys.argv[1:2] == ["--make"]:
        SHAPES[sys.argv[2]][1](Corpus(sys.argv[3]), Path(sys.argv[4]), int(sys.argv[5]))
        sys.exit()
    sys.exit(main())
