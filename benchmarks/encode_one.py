"""Encodes a file with one library and GPT-2's vocabulary: the process that benchmarks/encode.py measures.

    python benchmarks/encode_one.py LIBRARY CORPUS VOCAB_FOLDER

Prints the seconds of the first pass (caches empty), of the fastest later pass, and the number of tokens. The
folder holds vocab.json, merges.txt and tokenizer.json. One thread; text in memory; ids in memory.
"""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy  # noqa: F401  now, not in the first pass: several libraries import it when it is first needed

os.environ.update(RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", GIGATOKEN_NUM_THREADS="1")


def load_pybpe(folder: Path, text: str) -> Callable[[], int]:
    import pybpe

    tokenizer = pybpe.Tokenizer.from_file(folder / "tokenizer.json")
    data = text.encode()
    return lambda: len(tokenizer.encode_to_numpy(data, allowed_special=()))


def load_tiktoken(folder: Path, text: str) -> Callable[[], int]:
    import tiktoken

    import pybpe

    tokenizer = pybpe.Tokenizer.from_file(folder / "tokenizer.json")
    specials = tokenizer.special_tokens
    ranks = {token: i for i, token in tokenizer.vocab.items() if i not in specials.values()}
    encoding = tiktoken.Encoding(
        "gpt2", pat_str=tokenizer.pattern.regex, mergeable_ranks=ranks, special_tokens=specials
    )
    return lambda: len(encoding.encode_to_numpy(text, disallowed_special=()))


def load_tokenizers(folder: Path, text: str) -> Callable[[], int]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda: len(tokenizer.encode(text).ids)


def load_gigatoken(folder: Path, text: str) -> Callable[[], int]:
    import gigatoken

    tokenizer = gigatoken.Tokenizer(str(folder / "tokenizer.json"))
    data = text.encode()
    return lambda: len(tokenizer.encode(data))


def load_fastokens(folder: Path, text: str) -> Callable[[], int]:
    from fastokens._native import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda: len(tokenizer.encode(text).ids)


def load_snaptokens(folder: Path, text: str) -> Callable[[], int]:
    from snaptokens._native import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return lambda: len(tokenizer.encode(text).ids)


def load_tokie(folder: Path, text: str) -> Callable[[], int]:
    import tokie

    tokenizer = tokie.Tokenizer.from_json(str(folder / "tokenizer.json"))
    return lambda: len(tokenizer.encode(text).ids)


def main() -> None:
    """Times the passes."""
    library, corpus, folder = sys.argv[1:]
    text = Path(corpus).read_bytes().decode("utf-8")
    encode = globals()[f"load_{library}"](Path(folder), text)
    seconds = []
    tokens = 0
    for _ in range(1 if library == "tokenizers" else 4):
        start = time.perf_counter()
        tokens = encode()
        seconds.append(time.perf_counter() - start)
    print(seconds[0], min(seconds[1:], default=seconds[0]), tokens)


if __name__ == "__main__":
    main()
