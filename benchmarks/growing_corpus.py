"""Writes a corpus of any size to standard output, in which new words appear as in real text, at more than 1 GB/s.

    python benchmarks/growing_corpus.py books.txt --bytes 20G | pybpe count - --memory-limit 1G -o x.counts
    python benchmarks/growing_corpus.py books.txt --bytes 150G --counts web.counts --exponent 0.6

The number of distinct words of n bytes of real text follows Heaps' law, V = K n^b. The script measures K and b on the
given text (from 5% of it to all of it) and prints them to standard error. It repeats this text, and adds new words at
the rate of the law, after every MiB: each consists of three of the text's 1,024 most frequent sequences of three
letters. With each new word it adds four earlier ones, drawn log-uniformly from all earlier ones, so that their counts
follow Zipf's law.

--counts writes no text, but a .counts file with as many words as the law predicts. --words and --exponent replace the
measured law by one through this number of words at --at bytes.
"""

from __future__ import annotations

import argparse
import math
import os
import re
import sys
from array import array
from collections import Counter
from typing import NamedTuple

import numpy as np

import pybpe
from pybpe import _binding
from pybpe.cli.common import parse_amount

BLOCK = 1 << 20
FRAGMENTS = 1024
REPEATS = 4
MIX = 0x2545F491  # odd: a permutation of the numbers below 2^30


class Law(NamedTuple):
    """V = factor * n^exponent."""

    factor: float
    exponent: float

    def words(self, size: int) -> int:
        """Returns the number of distinct words in `size` bytes."""
        return round(self.factor * size**self.exponent)


def measured_law(text: bytes) -> Law:
    """Returns the law of a text."""
    sizes = [len(text) * share // 100 for share in (5, 10, 20, 40, 70, 100)]
    found = [len(pybpe.count_words(iter([text[:size]]), progress=False)) for size in sizes]
    exponent, log_factor = np.polyfit(np.log(sizes), np.log(found), 1)
    return Law(math.exp(log_factor), float(exponent))


def fragments_of(text: bytes) -> np.ndarray:
    """Returns the most frequent sequences of three letters, shape (FRAGMENTS, 3), uint8."""
    found = Counter(re.findall(rb"(?=([a-z]{3}))", text[: 4 * BLOCK]))
    return np.frombuffer(b"".join(three for three, _ in found.most_common(FRAGMENTS)), np.uint8).reshape(-1, 3)


def words_of(numbers: np.ndarray, fragments: np.ndarray) -> np.ndarray:
    """Returns the made-up words with these numbers, each of 10 bytes, as uint8."""
    mixed = (numbers.astype(np.uint64) * np.uint64(MIX)) & np.uint64((1 << 30) - 1)
    words = np.full((len(numbers), 10), ord(" "), np.uint8)
    for i in range(3):
        part = (mixed >> np.uint64(10 * i)).astype(np.intp) % FRAGMENTS
        words[:, 1 + 3 * i : 4 + 3 * i] = fragments[part]
    return words


def blocks_of(text: bytes) -> list[memoryview]:
    """Returns a text in blocks of about a MiB, cut before spaces."""
    blocks, at = [], 0
    while at < len(text):
        end = text.find(b" ", at + BLOCK)
        end = len(text) if end < 0 else end
        blocks.append(memoryview(text)[at:end])
        at = end
    return blocks


def write_text(text: bytes, law: Law, size: int, out: int) -> int:
    """Writes `size` bytes of text. Returns the number of new words."""
    rng = np.random.default_rng(1)
    fragments, blocks = fragments_of(text), blocks_of(text)
    own, made, written, number = law.words(len(text)), 0, 0, 0
    while written < size:
        block = blocks[number % len(blocks)]
        new = max(0, law.words(written + len(block)) - own - made)
        numbers = np.arange(made, made + new)
        made += new
        if new:
            earlier = (made ** rng.random(REPEATS * new)).astype(np.int64)
            numbers = np.concatenate([numbers, earlier])
        data = bytes(block) + words_of(numbers, fragments).tobytes() if new else block
        for start in range(0, len(data), BLOCK):
            os.write(out, data[start : start + BLOCK])
        written += len(data)
        number += 1
    return made


def write_counts(text: bytes, law: Law, size: int, path: str) -> int:
    """Writes counts as of `size` bytes: the text's words, repeated, and made-up words. Returns the number of words."""
    real = pybpe.count_words(iter([text]), progress=False)
    made = law.words(size) - len(real)
    words = words_of(np.arange(made), fragments_of(text))
    ranks = np.arange(1, made + 1)
    counts = 1 + (REPEATS * made / math.log(made) / ranks).astype(np.uint64)  # log-uniform repeats, and the first
    block = _binding.WordBlock(words.tobytes(), array("I", [10]) * made, array("Q", counts.tobytes()))
    repeated = real.words.to_block()
    scaled = np.frombuffer(repeated.counts, np.uint64) * np.uint64(max(1, size // len(text)))
    repeated = repeated._replace(counts=array("Q", scaled.tobytes()))
    total = pybpe.Counts.merge(
        [pybpe.Counts(_binding.Words.from_blocks([part]), real.settings) for part in (block, repeated)]
    )
    total.save(path)
    return len(total)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--bytes", type=parse_amount, required=True)
    parser.add_argument("--counts", metavar="F")
    parser.add_argument("--words", type=parse_amount)
    parser.add_argument("--at", type=parse_amount)
    parser.add_argument("--exponent", type=float)
    args = parser.parse_args()
    with open(args.text, "rb") as stream:
        text = stream.read()
    law = measured_law(text)
    if args.words is not None:
        law = Law(args.words / args.at**args.exponent, args.exponent)
    print(f"V = {law.factor:.3f} n^{law.exponent:.3f}: {law.words(args.bytes)} words", file=sys.stderr)
    if args.counts is not None:
        made = write_counts(text, law, args.bytes, args.counts)
    else:
        made = write_text(text, law, args.bytes, sys.stdout.fileno())
    print(f"{made} {'words' if args.counts else 'new words'}", file=sys.stderr)


if __name__ == "__main__":
    main()
