"""Compares pybpe with tiktoken on much text: `make parity-all [bytes=1000000000] [folders="path ..."]`.

Texts of this machine come first: files of Python, of the packages of the tests, and of the system's documentation, or
of the folders that are given. When all are read, they come again with random edits, and every fourth block consists of
random characters. Each block of a megabyte is encoded as ordinary text with five tokenizers:

    gpt2, cl100k, o200k    with their own ranks
    llama3, qwen2          with their own patterns, and with the ranks of cl100k: their own cannot be installed with pip

Prints the sources, then one line per tokenizer. A difference is printed with the text around it. Exit code 1 if there
is any.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "py"))

import numpy
import tiktoken
from gpt2 import gpt2_tiktoken
from openai_ranks import cl100k, o200k

import pybpe

BLOCK = 1 << 20
MOST_OF_A_FILE = 8 << 20
FOLDERS = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), "/usr/share", "/usr/include")
# Published with Llama 3; Qwen 2's differs only in \p{N} for \p{N}{1,3}.
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
    r"|\s+(?!\S)|\s+"
)
# One character or more for each class that the patterns distinguish, and for each special case in them.
ALPHABET = (
    *"aszASZ'.,/_-0123456789 \t\n\r\x0b\x0c\x00",
    *"中文日本語한국어あア้ัअ्िåßñÅÑǅʰªⅧ½٣൧\u0301\u200d\u00a0\u2028\u3000\u0085\ufeff",
    *(
        "'s",
        "'S",
        "'ll",
        "'RE",
        "\r\n",
        "  ",
        "   ",
        "\n\n",
        "😀",
        "👩\u200d👧",
        "e\u0301",
        "ſ",
        "İ",
        "K",
        "\U000e0041",
        "𝟘",
        "𐐀",
    ),
)


def encodings() -> dict[str, tiktoken.Encoding]:
    """Returns tiktoken's side of each comparison."""
    found = {"gpt2": gpt2_tiktoken(), "cl100k": cl100k(), "o200k": o200k()}
    ranks = found["cl100k"]._mergeable_ranks
    for name, numbers in (("llama3", r"\p{N}{1,3}"), ("qwen2", r"\p{N}")):
        expression = LLAMA3.replace(r"\p{N}{1,3}", numbers)
        found[name] = tiktoken.Encoding(name, pat_str=expression, mergeable_ranks=ranks, special_tokens={})
    return found


# ----------------------------------------------------------------------------------------------------
# Texts


def read_text(path: Path) -> str | None:
    """Returns the text of a file; None if it has none: it cannot be read, or contains a NUL."""
    try:
        data = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (OSError, EOFError, ValueError):
        return None
    data = data[:MOST_OF_A_FILE]
    return None if b"\0" in data or not data else data.decode("utf-8", "replace")


def files(folders: list[str]) -> Iterator[tuple[str, Path]]:
    """Yields (folder, file), in a fixed order."""
    for folder in folders:
        for where, names, found in os.walk(folder):
            names.sort()
            yield from ((folder, Path(where, name)) for name in sorted(found))


def edited(text: str, rng: random.Random) -> str:
    """Returns the text with an edit every 100 characters or so: insertions, removals, repeats, and changes of case."""
    parts, at = [], 0
    while at < len(text):
        size = rng.randint(1, 200)
        part, kind = text[at : at + size], rng.randrange(6)
        parts.append(part)
        if kind == 0:
            parts.append("".join(rng.choices(ALPHABET, k=rng.randint(1, 4))))
        elif kind == 1:
            parts[-1] = part[: -rng.randint(1, 3)]
        elif kind == 2:
            parts[-1] = part.swapcase()
        elif kind == 3:
            parts.append(part[-3:] * rng.randint(1, 5))
        at += size
    return "".join(parts)


@dataclass
class Texts:
    """Blocks of text, and how many bytes came from where.

    Attributes:
        folders: where the files are.
        sources: bytes by source.
    """

    folders: list[str]
    sources: Counter[str] = field(default_factory=Counter)

    def _files(self) -> Iterator[str]:
        rng = random.Random(1)
        for again in range(sys.maxsize):
            for folder, path in files(self.folders):
                text = read_text(path)
                if text is not None:
                    what = f"{folder}, edited" if again else folder
                    text = edited(text, rng) if again else text
                    self.sources[what] += len(text.encode())
                    yield text
            if not self.sources:
                raise SystemExit(f"there is no text in {', '.join(self.folders)}")

    def blocks(self, total: int) -> Iterator[str]:
        """Yields blocks of text, `total` bytes or a few more."""
        rng = random.Random(2)
        texts, done, number = self._files(), 0, 0
        while done < total:
            number += 1
            parts, size = [], 0
            while size < BLOCK:
                if number % 4 == 0:
                    part = "".join(rng.choices(ALPHABET, k=1 << 16))
                    self.sources["random characters"] += len(part.encode())
                else:
                    part = next(texts)
                parts.append(part)
                size += len(part.encode())
            done += size
            yield "".join(parts)


# ----------------------------------------------------------------------------------------------------
# Comparing


@dataclass
class Comparison:
    """One tokenizer of both libraries.

    Attributes:
        name: its name.
        theirs, ours: tiktoken's and pybpe's.
        bytes, tokens, differences: what was compared.
    """

    name: str
    theirs: tiktoken.Encoding
    ours: pybpe.Tokenizer
    bytes: int = 0
    tokens: int = 0
    differences: int = 0

    def compare(self, text: str) -> tuple[int, int]:
        """Returns the number of tokens, and the place of the first difference; -1 if there is none."""
        want = self.theirs.encode_to_numpy(text, allowed_special=set(), disallowed_special=())
        found = self.ours.encode_to_numpy(text, allowed_special=())
        if numpy.array_equal(want, found):
            return len(want), -1
        size = min(len(want), len(found))
        differ = numpy.flatnonzero(found[:size] != want[:size])
        return len(want), int(differ[0]) if len(differ) else size

    def add(self, text: str, tokens: int, at: int) -> None:
        """Counts a block, and shows where it differs."""
        self.bytes += len(text.encode())
        self.tokens += tokens
        if at >= 0:
            self.differences += 1
            before = self.theirs.decode_bytes(self.theirs.encode(text, disallowed_special=())[:at])
            around = text.encode()[max(len(before) - 40, 0) : len(before) + 40]
            print(f"{self.name}: differs at token {at}, near {around!r}", flush=True)


def run(total: int, folders: list[str], workers: int) -> int:
    """Compares `total` bytes with each tokenizer. Returns the number of differences."""
    both = [Comparison(name, their, pybpe.Tokenizer.from_tiktoken(their)) for name, their in encodings().items()]
    for one in both:
        if str(one.ours.pattern) != one.name:
            raise SystemExit(f"{one.name}: pybpe does not recognize the pattern")
    texts, start = Texts(folders), time.monotonic()
    with ThreadPoolExecutor(workers) as pool:
        for number, text in enumerate(texts.blocks(total), 1):
            for one, (tokens, at) in zip(both, pool.map(lambda one: one.compare(text), both)):  # noqa: B023
                one.add(text, tokens, at)
            if number % 50 == 0:
                print(f"{both[0].bytes:,} bytes, {time.monotonic() - start:.0f} s", flush=True)
    for what, size in texts.sources.items():
        print(f"source {what}: {size:,} bytes")
    for one in both:
        print(f"{one.name}: {one.bytes:,} bytes, {one.tokens:,} tokens, {one.differences} differences")
    return sum(one.differences for one in both)


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=10**9, help="of text for each tokenizer (default 10^9)")
    parser.add_argument("--folders", nargs="+", help=f"default: {' '.join(FOLDERS)}")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    return 1 if run(args.bytes, args.folders or list(FOLDERS), args.workers) else 0


if __name__ == "__main__":
    sys.exit(main())
