"""Encodes a file with one library: the process that benchmarks/encode.py measures.

    python benchmarks/encode_one.py LIBRARY CORPUS TOKENIZER.json [CHARACTERS [BYTES [THREADS]]]

The text is one document, or is cut into documents of CHARACTERS characters. Each library is called in its fastest way
for this. Prints the CPU seconds of the first pass (caches empty), of the fastest later pass, the number of tokens, the
instructions of the first pass and of the later pass that took the fewest, or -; and the seconds of both passes. Text
and ids are in memory; of a larger file, or of its first BYTES, one part of 128 MiB at a time.
"""

import codecs
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy  # noqa: F401  now, not in the first pass: several libraries import it when it is first needed
from instructions import InstructionCounter

PART = 1 << 27  # bytes


def use_threads(count: int) -> None:
    """Sets how many threads the libraries use; they ask when they are imported."""
    os.environ.update(dict.fromkeys(("RAYON_NUM_THREADS", "GIGATOKEN_NUM_THREADS"), str(count)))
    os.environ["TOKENIZERS_PARALLELISM"] = "true" if count > 1 else "false"


use_threads(1)

Encode = Callable[[list[str]], Any]
Count = Callable[[Any], int]


def count_rows(rows: Any) -> int:
    """The tokens of what most libraries return: the ids of each text."""
    return sum(map(len, rows))


def count_bytes(found: Any) -> int:
    """The tokens of what some libraries return: all ids as bytes, and where each text ends."""
    return len(found[0]) // 4


def find_tokenizers_1() -> None:
    """Makes `import tokenizers` find the release candidate of 1.0, which bench.mk installs in a folder of its own."""
    folder = os.path.join(sys.prefix, "tokenizers-1")
    if not os.path.isdir(folder):
        raise FileNotFoundError(folder)
    sys.path.insert(0, folder)


def load_pybpe(path: str) -> tuple[Encode, Count]:
    import pybpe

    tokenizer = pybpe.Tokenizer.from_file(path)
    threads = int(os.environ["RAYON_NUM_THREADS"])

    def encode(texts: list[str]) -> Any:
        if len(texts) == 1:
            return tokenizer.encode_to_numpy(texts[0], allowed_special=(), num_threads=threads)
        return tokenizer.encode_batch_to_numpy(texts, threads, allowed_special=())[0]

    return encode, len


def load_tiktoken(path: str) -> tuple[Encode, Count]:
    encoding = load_tiktoken_encoding(path)
    return lambda texts: [encoding.encode_to_numpy(text, disallowed_special=()) for text in texts], count_rows


def load_tiktoken_encoding(path: str) -> Any:
    """Returns the tiktoken.Encoding of a tokenizer.json."""
    import tiktoken

    import pybpe

    tok = pybpe.Tokenizer.from_file(path)
    specials = tok.special_tokens
    ranks = {token: i for i, token in tok.model.vocab.items() if i not in specials.values()}
    return tiktoken.Encoding("ours", pat_str=tok.pattern.regex, mergeable_ranks=ranks, special_tokens=specials)


def load_tokenizers(path: str) -> tuple[Encode, Count]:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return lambda texts: [row.ids for row in tokenizer.encode_batch_fast(texts)], count_rows


def load_tokenizers_1(path: str) -> tuple[Encode, Count]:
    find_tokenizers_1()
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return lambda texts: [row.ids_array for row in tokenizer.encode_batch(texts)], count_rows


def load_gigatoken(path: str) -> tuple[Encode, Count]:
    """Returns gigatoken's tokenizer; it takes cl100k only as a file of ranks."""
    import gigatoken

    import pybpe

    ours = pybpe.Tokenizer.from_file(path)
    if ours.pattern.name == "cl100k":
        with tempfile.NamedTemporaryFile(suffix=".tiktoken") as ranks:
            ours.save(ranks.name)
            tokenizer = gigatoken.Tokenizer.from_tiktoken(ranks.name, "cl100k", dict(ours.special_tokens))
    else:
        tokenizer = gigatoken.Tokenizer(path)
    parallel = os.environ["RAYON_NUM_THREADS"] != "1"
    return lambda texts: tokenizer.encode_batch(texts, parallel=parallel), count_rows


def load_fastokens(path: str) -> tuple[Encode, Count]:
    from fastokens._native import Tokenizer

    return Tokenizer.from_file(path).encode_batch_flat, count_bytes


def load_snaptokens(path: str) -> tuple[Encode, Count]:
    from snaptokens._native import Tokenizer

    return Tokenizer.from_file(path).encode_batch_flat, count_bytes


def load_tokie(path: str) -> tuple[Encode, Count]:
    import tokie

    return tokie.Tokenizer.from_json(path).encode_batch_flat, lambda found: len(found[0])


def load_kitoken(path: str) -> tuple[Encode, Count]:
    import kitoken

    tokenizer = kitoken.Kitoken.from_tokenizers_file(path)
    return lambda texts: [tokenizer.encode(text) for text in texts], count_rows


def load_iree(path: str) -> tuple[Encode, Count]:
    from iree.tokenizer import Tokenizer

    content = json.loads(Path(path).read_bytes())
    content["model"].pop("pybpe", None)  # it refuses members that it does not know
    tokenizer = Tokenizer.from_str(json.dumps(content))
    return lambda texts: [tokenizer.encode_to_array(text) for text in texts], count_rows


def load_splintr(path: str) -> tuple[Encode, Count]:
    import splintr

    tokenizer = splintr.from_json(path)
    return lambda texts: [tokenizer.encode_flat(text) for text in texts], lambda rows: sum(map(len, rows)) // 4


def parts(path: str, size: int, characters: int) -> Iterator[list[str]]:
    """Yields the documents of the first bytes of a file, in parts of PART bytes."""
    decoder = codecs.getincrementaldecoder("utf-8")("ignore")
    with open(path, "rb") as stream:
        for start in range(0, size, PART):
            text = decoder.decode(stream.read(min(PART, size - start)))
            yield [text[i : i + characters] for i in range(0, len(text), characters)] if characters else [text]


class Pass:
    """The CPU seconds, seconds, instructions and tokens of encoding a text once."""

    def __init__(self, encode: Encode, count: Count, some: Iterable[list[str]], counter: InstructionCounter) -> None:
        self.cpu = self.seconds = 0.0
        self.tokens = self.instructions = 0
        for texts in some:
            before, cpu, start = counter.read() or 0, time.process_time(), time.perf_counter()
            ids = encode(texts)
            self.seconds += time.perf_counter() - start
            self.cpu += time.process_time() - cpu
            self.instructions += (counter.read() or 0) - before
            self.tokens += count(ids)


def main() -> None:
    """Times the passes."""
    library, corpus, tokenizer, *rest = sys.argv[1:]
    characters = int(rest[0]) if rest else 0
    size = int(rest[1]) if len(rest) > 1 else os.path.getsize(corpus)
    use_threads(int(rest[2]) if len(rest) > 2 else 1)
    encode, count = globals()[f"load_{library}"](tokenizer)
    counter = InstructionCounter()
    is_small = size <= PART
    kept = list(parts(corpus, size, characters)) if is_small else []
    times = 1 if library == "tokenizers" else 4 if is_small else 2
    passes = [Pass(encode, count, kept or parts(corpus, size, characters), counter) for _ in range(times)]
    cold, later = passes[0], passes[1:] or passes
    counts = [cold.instructions or "-", min(each.instructions for each in later) or "-"]
    print(cold.cpu, min(each.cpu for each in later), cold.tokens, *counts, cold.seconds,
          min(each.seconds for each in later))  # fmt: skip


if __name__ == "__main__":
    main()
