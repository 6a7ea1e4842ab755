"""Checks parity on your own file: `make parity CORPUS=file [vocab=32000] [only=encoding|training]`.

Encodes the file with tiktoken and pybpe, with the vocabularies of GPT-2, cl100k and o200k, as ordinary text and with
special tokens inserted, and compares ids. Trains on it with Hugging Face's trainer and pybpe's
(tie_break="huggingface"), and compares merges and vocabularies. Exit code 1 if anything differs.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "py"))

import numpy
import tiktoken
from gpt2 import gpt2_tiktoken
from openai_ranks import cl100k, o200k
from test_tie_breaks import SPECIALS, merges, ours, theirs

import pybpe


def timed(what: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Calls function(*args, **options), and prints how long it took."""
    start = time.perf_counter()
    result = function(*args, **options)
    print(f"{what}: {time.perf_counter() - start:.2f} s", flush=True)
    return result


def training_is_equal(text: str, vocab_size: int, min_frequency: int) -> bool:
    """Compares the two trainers."""
    options = {"vocab_size": vocab_size, "min_frequency": min_frequency, "special_tokens": SPECIALS}
    found = timed("training, pybpe", ours, text, **options)
    expected = timed("training, Hugging Face", theirs, text, **options)
    a, b = merges(found), merges(expected)
    for rank, (x, y) in enumerate(zip(a, b)):
        if x != y:
            print(f"merge {rank} differs: {x!r}, Hugging Face {y!r}")
            return False
    print(f"{len(a)} merges, Hugging Face {len(b)}; vocabularies equal: {found['vocab'] == expected['vocab']}")
    return len(a) == len(b) and found["vocab"] == expected["vocab"]


def strewn(text: str, specials: list[str], every: int = 5000) -> str:
    """Returns the text with special tokens, and beginnings of them, inserted at about this interval of characters."""
    rng = random.Random(1)
    parts = []
    at = 0
    while at < len(text):
        size = rng.randint(1, 2 * every)
        special = rng.choice(specials)
        parts += [text[at : at + size], special, special[: rng.randint(1, len(special))]]
        at += size
    return "".join(parts)


def ids_are_equal(what: str, found: numpy.ndarray[Any, Any], expected: numpy.ndarray[Any, Any]) -> bool:
    """Compares ids, and prints where the first difference is."""
    if numpy.array_equal(found, expected):
        print(f"{what}: {len(found)} ids, equal", flush=True)
        return True
    size = min(len(found), len(expected))
    differ = numpy.flatnonzero(found[:size] != expected[:size])
    at = int(differ[0]) if len(differ) else size
    print(f"{what}: {len(found)} ids, tiktoken {len(expected)}: they first differ at position {at}", flush=True)
    print(f"  pybpe {found[at : at + 10].tolist()}, tiktoken {expected[at : at + 10].tolist()}")
    return False


def encoding_is_equal(name: str, encoding: tiktoken.Encoding, text: str) -> bool:
    """Compares the two encoders, and decodes the ids."""
    tok = pybpe.Tokenizer.from_tiktoken(encoding)
    with_specials = strewn(text, sorted(encoding.special_tokens_set))
    equal = []
    for what, sample, allowed in ((name, text, set()), (f"{name} with specials", with_specials, "all")):
        found = timed(f"{what}, pybpe", lambda: tok.encode_to_numpy(sample, allowed_special=allowed))  # noqa: B023
        expected = timed(
            f"{what}, tiktoken",
            lambda: encoding.encode_to_numpy(sample, allowed_special=allowed, disallowed_special=()),  # noqa: B023
        )
        equal += [ids_are_equal(what, found, expected), tok.decode_bytes(found) == sample.encode()]
    if not all(equal[1::2]):
        print(f"{name}: decoding does not give the text back")
    return all(equal)


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("corpus")
    parser.add_argument("--vocab-size", type=int, default=32000)
    parser.add_argument("--min-frequency", type=int, default=0)
    parser.add_argument("--only", choices=["encoding", "training"])
    args = parser.parse_args()
    text = Path(args.corpus).read_bytes().decode("utf-8", "replace")
    equal = []
    if args.only != "training":
        encodings = {"gpt2": gpt2_tiktoken, "cl100k": cl100k, "o200k": o200k}
        equal += [encoding_is_equal(name, make(), text) for name, make in encodings.items()]
    if args.only != "encoding":
        equal.append(training_is_equal(text, args.vocab_size, args.min_frequency))
    print("all equal" if all(equal) else "NOT EQUAL")
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
