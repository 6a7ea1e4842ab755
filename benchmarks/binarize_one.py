"""Turns a text file into a file of uint16 tokens with one library: the process that benchmarks/binarize.py measures.

    python benchmarks/binarize_one.py LIBRARY CORPUS TOKENIZER.json OUT.bin

Each library does it as its users would, with all CPUs if it can. The text is one document; no token is added. pybpe's
`binarize` writes an llm.c shard and a manifest with its SHA-256, and syncs both to disk; its `encode_files` writes one
array, in the same way. The others write the ids and leave syncing to the system.
"""

import sys


def run_pybpe_binarize(corpus: str, tokenizer: str, out: str, workers: int | None = None) -> None:
    import pybpe

    tok = pybpe.Tokenizer.from_file(tokenizer)
    pybpe.binarize(tok, corpus, out + ".shards", splits=(1,), eot="none", workers=workers, force=True, progress=False)


def run_pybpe_binarize_one_worker(corpus: str, tokenizer: str, out: str) -> None:
    run_pybpe_binarize(corpus, tokenizer, out, 1)


def run_pybpe_binarize_from_bin(corpus: str, tokenizer: str, out: str) -> None:
    run_pybpe_binarize(corpus, tokenizer.replace(".json", ".bin"), out)


def run_pybpe_command(corpus: str, tokenizer: str, out: str) -> None:
    from pybpe.cli import main

    flags = ["--splits", "1", "--eot", "none", "--force", "--quiet"]
    sys.exit(main(["binarize", corpus, "-t", tokenizer, "-o", out + ".shards", *flags]))


def run_pybpe_encode_files(corpus: str, tokenizer: str, out: str) -> None:
    import pybpe

    pybpe.encode_files(pybpe.Tokenizer.from_file(tokenizer), corpus, out + ".npy", progress=False)


def run_pybpe_in_memory_one_thread(corpus: str, tokenizer: str, out: str) -> None:
    import pybpe

    with open(corpus, "rb") as stream:
        pybpe.Tokenizer.from_file(tokenizer).encode_to_numpy(stream.read()).tofile(out)


def run_gigatoken_encode_files(corpus: str, tokenizer: str, out: str) -> None:
    import awkward
    import gigatoken
    import numpy

    ids = gigatoken.Tokenizer(tokenizer).encode_files(corpus)
    awkward.to_numpy(awkward.flatten(ids)).astype(numpy.uint16).tofile(out)


def run_gigatoken_in_memory_one_thread(corpus: str, tokenizer: str, out: str) -> None:
    import gigatoken
    import numpy

    with open(corpus, "rb") as stream:
        gigatoken.Tokenizer(tokenizer).encode(stream.read()).astype(numpy.uint16).tofile(out)


def run_tokenizers_1(corpus: str, tokenizer: str, out: str) -> None:
    import numpy
    from encode_one import find_tokenizers_1

    find_tokenizers_1()
    from tokenizers import Tokenizer

    with open(corpus, encoding="utf-8", newline="") as stream:
        ids = Tokenizer.from_file(tokenizer).encode(stream.read()).ids_array
    numpy.asarray(ids).astype(numpy.uint16).tofile(out)


def run_fastokens(corpus: str, tokenizer: str, out: str) -> None:
    import numpy
    from fastokens._native import Tokenizer

    with open(corpus, encoding="utf-8", newline="") as stream:
        numpy.array(Tokenizer.from_file(tokenizer).encode(stream.read()).ids, dtype=numpy.uint16).tofile(out)


def run_tiktoken(corpus: str, tokenizer: str, out: str) -> None:
    import numpy
    from encode_one import load_tiktoken_encoding

    with open(corpus, encoding="utf-8", newline="") as stream:
        ids = load_tiktoken_encoding(tokenizer).encode_to_numpy(stream.read(), disallowed_special=())
    ids.astype(numpy.uint16).tofile(out)


if __name__ == "__main__":
    globals()[f"run_{sys.argv[1]}"](*sys.argv[2:])
