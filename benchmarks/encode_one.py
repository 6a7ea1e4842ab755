"""Encodes a file with one library: the process that benchmarks/encode.py measures.

    python benchmarks/encode_one.py LIBRARY CORPUS TOKENIZER.json [CHARACTERS]

The text is one document, or is cut into documents of CHARACTERS characters. Each library is called in its fastest way
for this. Prints the CPU seconds of the first pass (caches empty), of the fastest later pass, the number of tokens, and
the instructions of the first pass and of the later pass that took the fewest, or -. One thread; text in memory; ids in
memory.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy  # noqa: F401  now, not in the first pass: several libraries import it when it is first needed
from instructions import InstructionCounter

os.environ.update(RAYON_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", GIGATOKEN_NUM_THREADS="1")


Encode = Callable[[list[str]], Any]
Count = Callable[[Any], int]


def count_rows(rows: Any) -> int:
    """The tokens of what most libraries return: the ids of each text."""
    return sum(map(len, rows))


def find_tokenizers_1() -> None:
    """Makes `import tokenizers` find the release candidate of 1.0, which bench.mk installs in a folder of its own."""
    folder = os.path.join(sys.prefix, "tokenizers-1")
    if not os.path.isdir(folder):
        raise FileNotFoundError(folder)
    sys.path.insert(0, folder)


def load_pybpe(path: str) -> tuple[Encode, Count]:
    import pybpe

    tokenizer = pybpe.Tokenizer.from_file(path)

    def encode(texts: list[str]) -> Any:
        if len(texts) == 1:
            return tokenizer.encode_to_numpy(texts[0], allowed_special=())
        return tokenizer.encode_batch_to_numpy(texts, 1, allowed_special=())[0]

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
    return lambda texts: tokenizer.encode_batch(texts, parallel=False), count_rows


def load_fastokens(path: str) -> tuple[Encode, Count]:
    from fastokens._native import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return lambda texts: [tokenizer.encode(text).ids for text in texts], count_rows


def load_snaptokens(path: str) -> tuple[Encode, Count]:
    from snaptokens._native import Tokenizer

    tokenizer = Tokenizer.from_file(path)
    return lambda texts: [tokenizer.encode(text).ids for text in texts], count_rows


def load_tokie(path: str) -> tuple[Encode, Count]:
    import tokie

    tokenizer = tokie.Tokenizer.from_json(path)
    return lambda texts: [tokenizer.encode(text).ids for text in texts], count_rows


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


def main() -> None:
    """Times the passes."""
    library, corpus, tokenizer, *rest = sys.argv[1:]
    text = Path(corpus).read_bytes().decode("utf-8")
    size = int(rest[0]) if rest else 0
    texts = [text[i : i + size] for i in range(0, len(text), size)] if size else [text]
    encode, count = globals()[f"load_{library}"](tokenizer)
    counter = InstructionCounter()
    seconds: list[float] = []
    instructions: list[int] = []
    ids: Any = None
    for _ in range(1 if library == "tokenizers" else 4):
        before = counter.read()
        start = time.process_time()
        ids = encode(texts)
        seconds.append(time.process_time() - start)
        after = counter.read()
        if before is not None and after is not None:
            instructions.append(after - before)
    counts = [instructions[0], min(instructions[1:], default=instructions[0])] if instructions else ["-", "-"]
    print(seconds[0], min(seconds[1:], default=seconds[0]), count(ids), *counts)


if __name__ == "__main__":
    main()
