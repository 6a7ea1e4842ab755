"""Measures the merge loop alone, on 6.6 million distinct words of mean length 8, as in OpenWebText, made from a seed.

    make bench-merge

Words are drawn syllable by syllable, so that pairs repeat as in natural language; counts fall with the rank (Zipf).
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time

from measure import machine

from pybpe import _binding

LETTERS = "etaoinshrdlcumwfgypbvkjxqz"


def make_words(count: int, seed: int) -> dict[bytes, int]:
    """Makes distinct words with counts."""
    rng = random.Random(seed)
    weights = [1 / (i + 2) for i in range(len(LETTERS))]
    syllables = ["".join(rng.choices(LETTERS, weights, k=rng.choice((2, 2, 3)))) for _ in range(2500)]
    syllable_weights = [1 / (i + 20) for i in range(len(syllables))]
    words: dict[bytes, int] = {}
    while len(words) < count:
        for drawn in zip(*(rng.choices(syllables, syllable_weights, k=1 << 16) for _ in range(4))):
            word = " " + "".join(drawn[: rng.choice((2, 3, 3, 4, 4))])
            if len(words) < count:
                words.setdefault(word.encode(), max(1, 30_000_000 // (len(words) + 10)))
    return words


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=6_600_000)
    parser.add_argument("--vocab-size", type=int, default=32000)
    args = parser.parse_args()
    table = make_words(args.words, seed=1)
    mean = sum(map(len, table)) / len(table)
    words = _binding.Words.from_dict(table)
    del table
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    start = time.perf_counter()
    trainer = _binding.Trainer(
        words, vocab_size=args.vocab_size, max_token_length=255, min_frequency=0, tie_break="lexicographic"
    )
    longest = 0.0
    done = False
    while not done:
        step = time.perf_counter()
        done = trainer.step(1 << 20)
        longest = max(longest, time.perf_counter() - step)
    seconds = time.perf_counter() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(machine())
    print(f"{len(words)} distinct words of mean length {mean:.1f}, {len(trainer.merges())} merges: {seconds:.2f} s,")
    print(f"longest step {1000 * longest:.0f} ms, peak memory {memory:.0f} MB ({before:.0f} MB to make the words)")


if __name__ == "__main__":
    sys.exit(main())
