"""Encodes a file with one library: the process that benchmarks/encode.py measures.

    python benchmarks/encode_one.py LIBRARY CORPUS TOKENIZER.json

Prints the seconds of the first pass (caches empty), of the fastest later pass, and the number of tokens. One
thread; text in memory; ids in memory.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy  # noqa: F401  now, not in the first pass: several libraries import it when it is first needed

os.environ.update(RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", GIGATOKEN_NUM_THREADS="1")


def load_pybpe(path: str, text: str) -> Callable[[], int]:
    import pybpe

    tokenizer = pybpe.Tokenizer.from_file(path)
    data = text.encode()
    return lambda: len(tokenizer.encode_to_numpy(data, allowed_special=()))


def load_tiktoken(path: str, text: str) -> Callable[[], int]:
    encoding = load_tiktoken_encoding(path)
    return lambda: len(encoding.encode_to_numpy(text, disallowed_special=()))


def load_tiktoken_encoding(path: str) -> Any:
    """The tiktoken.Encoding of a tokenizer.json."""
    import tiktoken

    import pybpe

    tok = pybpe.Tokenizer.from_file(path)
    specials = tok.special_tokens
    ranks = {token: i for i, token in tok.vocab.items() if i not in specials.values()}
    return tiktoken.Encoding("ours", pat_str=tok.pattern.regex, mergeable_ranks=ranks, special_tokens=specials)


def load_tokenizers(path: str, text: str) -> Callable[[], int]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return lambda: len(tokenizer.encode(text).ids)


def load_gigatoken(path: str, text: str) -> Callable[[], int]:
    import gigatoken

    tokenizer = gigatoken.Tokenizer(path)
    data = text.encode()
    return lambda: len(tokenizer.encode(data))


def load_fastokens(path: str, text: str) -> Callable[[], int]:
    from fastokens._native import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return lambda: len(tokenizer.encode(text).ids)


def load_snaptokens(path: str, text: str) -> Callable[[], int]:
    from snaptokens._native import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return lambda: len(tokenizer.encode(text).ids)


def load_tokie(path: str, text: str) -> Callable[[], int]:
    import tokie

    tokenizer = tokie.Tokenizer.from_json(path)
    return lambda: len(tokenizer.encode(text).ids)


def main() -> None:
    """Times the passes."""
    library, corpus, tokenizer = sys.argv[1:]
    text = Path(corpus).read_bytes().decode("utf-8")
    encode = globals()[f"load_{library}"](tokenizer, text)
    seconds = []
    tokens = 0
    for _ in range(1 if library == "tokenizers" else 4):
        start = time.perf_counter()
        tokens = encode()
        seconds.append(time.perf_counter() - start)
    print(seconds[0], min(seconds[1:], default=seconds[0]), tokens)


if __name__ == "__main__":
    main()
