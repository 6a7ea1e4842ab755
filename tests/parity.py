"""Parity on a file of yours: `make parity CORPUS=file [vocab=32000]`.

Trains on it with Hugging Face's trainer and with ours (tie_break="huggingface"), and compares merges and
vocabularies; encodes it with tiktoken and with ours, GPT-2's vocabulary, and compares ids. Exit code 1 if
anything differs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "py"))

from gpt2 import gpt2_files, gpt2_tiktoken
from test_train_huggingface import SPECIALS, merges, ours, theirs

import pybpe


def timed(what: str, function: Callable[..., Any], *args: Any) -> Any:
    """function(*args), with a line of what took how long."""
    start = time.perf_counter()
    result = function(*args)
    print(f"{what}: {time.perf_counter() - start:.2f} s", flush=True)
    return result


def training_is_equal(text: str, vocab_size: int, min_frequency: int) -> bool:
    """Compares the two trainers."""
    found = timed("training, pybpe", ours, text, vocab_size, min_frequency, SPECIALS)
    expected = timed("training, Hugging Face", theirs, text, vocab_size, min_frequency, SPECIALS)
    a, b = merges(found), merges(expected)
    for rank, (x, y) in enumerate(zip(a, b)):
        if x != y:
            print(f"merge {rank} differs: {x!r}, Hugging Face {y!r}")
            return False
    print(f"{len(a)} merges, Hugging Face {len(b)}; vocabularies equal: {found['vocab'] == expected['vocab']}")
    return len(a) == len(b) and found["vocab"] == expected["vocab"]


def encoding_is_equal(text: str) -> bool:
    """Compares the two encoders."""
    tok = pybpe.Tokenizer.from_files(*gpt2_files())
    found = timed("encoding, pybpe", tok.encode_ordinary, text)
    expected = timed("encoding, tiktoken", gpt2_tiktoken().encode_ordinary, text)
    print(f"{len(found)} ids, tiktoken {len(expected)}; equal: {found == expected}")
    return bool(found == expected)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--vocab-size", type=int, default=32000)
    parser.add_argument("--min-frequency", type=int, default=0)
    args = parser.parse_args()
    text = Path(args.corpus).read_bytes().decode("utf-8", "replace")
    equal = [encoding_is_equal(text), training_is_equal(text, args.vocab_size, args.min_frequency)]
    print("all equal" if all(equal) else "NOT EQUAL")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
