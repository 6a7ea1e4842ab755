"""Writes what the fuzzers start from: small valid files of each kind, made by pybpe itself, and the inputs that earlier
runs found (tests/fuzz/corpus, see corpus.py).

    python tests/fuzz/seeds.py FOLDER      makes FOLDER/vocab, FOLDER/shard and so on

Findings are kept in tests/fuzz/findings/TARGET/, one file each; `make test-all` replays both.
"""

from __future__ import annotations

import json
import random
import struct
import sys
import tempfile
import zipfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "faults"))

import corrupt  # noqa: E402

import pybpe  # noqa: E402
from pybpe import _binding  # noqa: E402
from pybpe.formats import tokenizer_json  # noqa: E402

CORPUS = Path(__file__).resolve().parent / "corpus"
TEXT = "the cat sat on the mat; 他说：今天天气很好。 don't 123 \n\n\t déjà vu <|endoftext|>" * 8


def vocab_seeds() -> dict[str, bytes]:
    """Writes tokenizer.bin files: pybpe's, with a custom pattern, with every feature, and llm.c's, without merges."""
    seeds = {}
    for name, settings in {
        "ours": {"special_tokens": ["<|endoftext|>"]},
        "plain": {},
        "custom": {"pattern": r"\w+|\W"},
        "nfc": {"normalizer": "NFC", "pattern": "o200k", "digits": 1, "special_tokens": ["<|endoftext|>"]},
    }.items():
        tok = pybpe.train(iter([TEXT]), vocab_size=330, progress=False, **settings)  # type: ignore[arg-type]
        path = Path("seed.bin")
        tok.save(path)
        seeds[name] = path.read_bytes()
        path.unlink()
        size = 1024 + sum(1 + len(token) for token in tok.model.vocab.values())
        seeds[f"{name}_llmc"] = seeds[name][:size]
    seeds["version_1"] = struct.pack("<256i", 20240328, 1, 256, *[0] * 253) + b"".join(
        bytes([1, i]) for i in range(256)
    )
    return seeds


def json_seeds() -> dict[str, bytes]:
    """The id of the special, a byte, and then tokenizer.json: as pybpe writes it, and shorter, with pairs."""
    seeds = {}
    for name, special_ids, special in (("first", "first", 0), ("none", "last", 255)):
        tokens = ["<|endoftext|>"] if special != 255 else []
        tok = pybpe.train(iter([TEXT]), vocab_size=280, special_tokens=tokens, special_ids=special_ids, progress=False)
        whole = json.loads(tokenizer_json.dumps(tok.model))
        merges = [merge.split(" ") for merge in whole["model"]["merges"]]
        short = {"model": {"merges": merges, "vocab": whole["model"]["vocab"]}}
        for kind, data in {"whole": json.dumps(whole), "short": json.dumps(short, separators=(",", ":"))}.items():
            seeds[f"{name}_{kind}"] = bytes([special]) + data.encode()
        whole["added_tokens"] = [token | {"lstrip": True} for token in whole["added_tokens"]]
        digits = {"type": "Digits", "individual_digits": True}
        whole["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [digits, whole["pre_tokenizer"]]}
        whole["model"]["ignore_merges"] = True
        seeds[f"{name}_rich"] = bytes([special]) + json.dumps(whole | {"normalizer": {"type": "NFC"}}).encode()
    return seeds


def shard_seeds() -> dict[str, bytes]:
    """Writes shards of both dtypes."""
    return {
        "uint16": struct.pack("<256i3H", 20240520, 1, 3, *[0] * 253, 1, 2, 65535),
        "uint32": struct.pack("<256i2I", 20240801, 7, 2, *[0] * 253, 1, 1 << 31),
        "empty": struct.pack("<256i", 20240520, 1, 0, *[0] * 253),
    }


def text_seeds() -> dict[str, bytes]:
    """Writes inputs that begin with choices and continue with text."""
    rng = random.Random(1)
    choices = [rng.randbytes(rng.randint(1, 60)) for _ in range(40)]
    samples = [TEXT.encode(), b"aaaa abab   \n\n 'll\xff\xfe 12", "𝄞é ً́ا한글".encode() * 5]
    return {f"{i}": choice + samples[i % 3][:400] for i, choice in enumerate(choices)}


def eval_seeds() -> dict[str, bytes]:
    """B, T, number of processes and rank, one byte each, and then an eval file."""
    rng = random.Random(2)
    seeds = {}
    for examples in (1, 2, 9):
        body, longest = b"", 0
        for index in range(examples):
            parts = [[rng.randrange(65536) for _ in range(rng.randint(1, 12))] for _ in range(5)]
            fields = [index, rng.randrange(4), 4, *(field for part in parts for field in (len(part), *part))]
            longest = max(longest, 2 * len(fields) + 4)
            body += struct.pack(f"<{len(fields) + 2}H", 65535, 2 * len(fields) + 4, *fields)
        header = struct.pack("<4i", 20240522, 1, examples, longest).ljust(1024, b"\0")
        for name, choices in {"one": (4, 64, 1, 0), "more": (9, 48, 2, 1)}.items():
            seeds[f"{name}_{examples}"] = bytes(choices) + header + body
    return seeds


def python_seeds() -> dict[str, bytes]:
    """Writes texts, and a file of each format that fuzz_python.py knows, after the byte that chooses its reader."""
    with tempfile.TemporaryDirectory() as folder:
        samples = corrupt.make_samples(Path(folder))
    seeds = {name: bytes([i]) + samples[name] for i, name in enumerate(corrupt.FORMATS)}
    seeds["words"] = bytes([len(corrupt.FORMATS)]) + TEXT.encode()
    seeds["both"] = bytes([len(corrupt.FORMATS) + 1]) + samples["tokenizer.json"]
    check = bytes([len(corrupt.FORMATS) + 2])
    return seeds | {f"check {name}": check + samples[name] for name in ("tokenizer.bin", "shard", "eval", "model")}


def divide_seeds() -> dict[str, bytes]:
    """The kind of documents, a byte that says how often the corpus is repeated, and a corpus of that kind."""
    records = [{"text": TEXT}, {"id": [1, {"a": None}], "text": '\u4e2d\n"', "pybpe_cluster": "c"}, {"text": ""}]
    lines = "".join(json.dumps(record, ensure_ascii=i % 2 == 0) + "\n" for i, record in enumerate(records))
    texts = (TEXT, f"a\r\n\r\n{TEXT}\n\n\nb", f"{TEXT}<|x|>b<|x|><|x|>", lines)
    seeds = {f"kind_{kind}": bytes([kind, 0]) + text.encode() for kind, text in enumerate(texts)}
    return seeds | {f"many_{kind}": bytes([kind, 255]) + text.encode() for kind, text in enumerate(texts)}


def stages_seeds() -> dict[str, bytes]:
    """Writes the text "a a a ..." as one word whose only phrase takes several blocks."""
    merges = [1, 2, *(0, 1, 0, 1), *(0, 0, 0, 2), *(0, 2, 0, 0)]  # one merge in stage 1: bb; then "a " and " a"
    words = [126, 1, 0, 2] * 8
    return text_seeds() | {"long_phrase": bytes([*merges, *words, 3, 1])}


def main() -> None:
    """Writes all seeds."""
    folder = Path(sys.argv[1])
    texts = text_seeds()
    every = {"vocab": vocab_seeds(), "json": json_seeds(), "shard": shard_seeds(), "eval": eval_seeds()}
    every |= {"python": python_seeds(), "divide": divide_seeds(), "stages": stages_seeds()}
    described = ("automaton", "counts", "dropout", "encode", "flags", "normalize", "pretok", "shingles", "special")
    every |= dict.fromkeys((*described, "train"), texts)
    for target, seeds in every.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            _binding.write_file(folder / target / name, data)
        kept = CORPUS / f"{target}.zip"
        if kept.exists():
            zipfile.ZipFile(kept).extractall(folder / target / "kept")


if __name__ == "__main__":
    main()
