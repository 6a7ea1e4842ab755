"""Makes every allocation of the C library fail in turn, once and permanently, in every public operation.

Runs under the shim: memory.py [OPERATION...]. Each failure must be an OutOfMemoryError, nothing may leak, the objects
that were used must be unchanged, and the same operation must give the identical result afterward.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import warnings
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import shim
from operations import OPERATIONS, content, documents, make_inputs, plain

import pybpe
from llmc_compat.shards import DataLoader, read_shard, write_shard
from pybpe import _binding, corpus

TEXT = "".join(documents(6)) + "word" * 3000 + "<|endoftext|>\u4f60\u597d " * 40


def operations(folder: Path) -> dict[str, Callable[[], Any]]:
    """The operations to try: each returns a comparable result, and makes everything that it uses, or uses `tok`."""
    import numpy

    inputs, out = folder / "inputs", folder / "out"
    make_inputs(inputs)
    out.mkdir()
    tok = plain()
    tok.save(folder / "tok.json")
    tok.save(folder / "tok.bin")
    tok.save(folder / "tok.tiktoken")
    write_shard(folder / "x.bin", numpy.arange(3000, dtype=numpy.uint16))
    counts = pybpe.count_words(inputs / "text.txt", workers=1)
    ids = tok.encode(TEXT)
    vocab = tok.model.to_vocab()

    def fresh() -> pybpe.Tokenizer:
        return pybpe.Tokenizer.from_file(folder / "tok.bin")

    def clean() -> bytes:
        given = {"dedup": "exact", "on_error": "skip", "workers": 1, "force": True, "progress": False}
        corpus.clean(inputs / "web.jsonl", out / "x.jsonl", **given)  # type: ignore[arg-type]
        return (out / "x.jsonl").read_bytes()

    found: dict[str, Callable[[], Any]] = {
        "tokenizer": lambda: pybpe.Tokenizer(tok.model.vocab, tok.merges, ["<|endoftext|>"]).model,
        "from json": lambda: pybpe.Tokenizer.from_file(folder / "tok.json").model,
        "from bin": lambda: fresh().model,
        "from tiktoken": lambda: pybpe.Tokenizer.from_file(folder / "tok.tiktoken", pattern="gpt2").model,
        "encode": lambda: fresh().encode(TEXT),
        "encode again": lambda: tok.encode(TEXT),
        "encode with offsets": lambda: fresh().encode_with_offsets(TEXT[:5000]),
        "encode to numpy": lambda: fresh().encode_to_numpy(TEXT).tolist(),
        "encode batch": lambda: fresh().encode_batch([TEXT, TEXT[:100]], num_threads=1),
        "count": lambda: fresh().count(TEXT),
        "decode": lambda: tok.decode(ids),
        "stream": lambda: "".join(map(tok.decode_stream().push, ids)),
        "count words": lambda: pybpe.count_words(inputs / "text.txt", workers=1).to_dict(),
        "train": lambda: pybpe.train(counts=counts, vocab_size=600).merges,
        "train huggingface": lambda: pybpe.train(counts=counts, vocab_size=400, tie_break="huggingface").merges,
        "read shard": lambda: read_shard(folder / "x.bin").tolist(),
        "loader": lambda: [DataLoader(str(folder / "x.bin"), 2, 16, should_shuffle=True).next_batch()[0].tolist()],
        "normalize": lambda: _binding.normalize(("e\u0301" + "\u0301\u0323" * 500 + "\ufdfa" * 900).encode(), "NFKC"),
        "specials": lambda: _binding.Specials({"<a>": 1, "<ab>": 2}) and 1,
        "pattern": lambda: _binding.Pretok(1).split(TEXT.encode()),
        "vocabulary": lambda: vocab.tokens(),
        "signatures": lambda: corpus.signatures([TEXT, "a b c"]).tolist(),
        "filters": lambda: corpus.Filters.gopher().reasons([TEXT, "a b c"]),
        "clean": clean,  # without the steps in which numpy's cumsum keeps some bytes of each call
    }
    for operation in OPERATIONS:
        if operation.name in ("save", "save bin", "write_shard", "counts", "binarize llmc", "chat"):

            def write(run: Callable[[Path, Path], Any] = operation.run) -> dict[str, bytes]:
                run(inputs, out)
                return content(out)

            found[operation.name] = write
    return found


def try_one(name: str, operation: Callable[[], Any]) -> tuple[int, list[str]]:
    """Makes all allocations fail in turn. Returns the number of failures, and what went wrong."""
    expected = operation()
    assert operation() == expected
    wrong: list[str] = []
    failures = 0
    for for_good in (False, True):
        granted = 0
        while True:
            result: Any = None
            caught: BaseException | None = None
            with shim.scarce_memory(granted, for_good):
                try:
                    result = operation()
                except BaseException as error:
                    caught = error.with_traceback(None)
            if not shim.refused():
                break
            failures += 1
            where = f"{name}, allocation {granted + 1}{' and all later ones' if for_good else ''}"
            if caught is None and result != expected:
                wrong.append(f"{where}: another result, and no error")
            if caught is not None and not isinstance(caught, pybpe.errors.OutOfMemoryError):
                wrong.append(f"{where}: {type(caught).__name__}: {caught}")
            caught = result = None
            if operation() != expected:
                wrong.append(f"{where}: another result afterwards")
            granted += 1
    return failures, wrong + leaks(name, operation)


def leaks(name: str, operation: Callable[[], Any]) -> list[str]:
    """Tests whether a failure leaks memory, at each allocation."""
    wrong = []
    granted = 0
    while True:
        leaked = 1
        for _ in range(8):  # Python itself sometimes keeps memory for later
            leaked = _growth(operation, granted) if leaked else 0
        if not shim.refused():
            return wrong
        if leaked:
            wrong.append(f"{name}, allocation {granted + 1}: leaks {leaked} bytes per failure")
        granted += 1


def _growth(operation: Callable[[], Any], granted: int) -> int:
    """Returns the bytes by which the heap grows per failure if it always grows; otherwise 0."""
    levels = array("q", bytes(8 * 5))  # which takes no memory of its own while it is filled
    for level in range(len(levels)):
        for _ in range(4):
            with shim.scarce_memory(granted, False):
                try:
                    operation()
                except pybpe.Error:
                    pass
        gc.collect()
        levels[level] = shim.memory_now()
    grows = all(after > before for before, after in zip(levels, levels[1:]))
    return (levels[-1] - levels[0]) // 16 if grows else 0


def main() -> int:
    """See above."""
    warnings.simplefilter("ignore")
    wrong: list[str] = []
    total = 0
    with tempfile.TemporaryDirectory(prefix="pybpe-memory-", dir=shim.fast_folder()) as folder:
        found = operations(Path(folder))
        gc.freeze()
        for name in sys.argv[1:] or found:
            failures, problems = try_one(name, found[name])
            total += failures
            wrong += problems
            print(f"{name}: {failures}", *problems[:10], sep="\n  ", flush=True)
    print(f"memory: {total} failures, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
