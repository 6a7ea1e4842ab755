"""Writes what the fuzzers start from: small valid files of each kind, made by pybpe itself.

    python tests/fuzz/seeds.py FOLDER      makes FOLDER/vocab, FOLDER/shard and so on

Findings are kept in tests/fuzz/findings/TARGET/, one file each; `make test` replays both.
"""

from __future__ import annotations

import base64
import random
import struct
import sys
from pathlib import Path

import pybpe
from pybpe import _binding

TEXT = "the cat sat on the mat; 他说：今天天气很好。 don't 123 \n\n\t déjà vu <|endoftext|>" * 8


def vocab_seeds() -> dict[str, bytes]:
    """tokenizer.bin: ours, with a pattern of the user's own, with everything, and llm.c's, which has no merges."""
    seeds = {}
    for name, settings in {
        "ours": {"special_tokens": ["<|endoftext|>"]},
        "plain": {},
        "custom": {"pattern": r"\w+|\W"},
        "nfc": {"normalizer": "NFC", "pattern": "o200k", "digits": 1, "special_tokens": ["<|endoftext|>"]},
    }.items():
        tok = pybpe.train(iter([TEXT]), vocab_size=330, progress=False, **settings)  # type: ignore[arg-type]
        path = Path("seed.bin")
        tok.save_bin(path)
        seeds[name] = path.read_bytes()
        path.unlink()
        size = 1024 + sum(1 + len(token) for token in tok.vocab.values())
        seeds[f"{name}_llmc"] = seeds[name][:size]
    seeds["version_1"] = struct.pack("<256i", 20240328, 1, 256, *[0] * 253) + b"".join(
        bytes([1, i]) for i in range(256)
    )
    return seeds


def shard_seeds() -> dict[str, bytes]:
    """Shards of both types."""
    return {
        "uint16": struct.pack("<256i3H", 20240520, 1, 3, *[0] * 253, 1, 2, 65535),
        "uint32": struct.pack("<256i2I", 20240801, 7, 2, *[0] * 253, 1, 1 << 31),
        "empty": struct.pack("<256i", 20240520, 1, 0, *[0] * 253),
    }


def text_seeds() -> dict[str, bytes]:
    """Choices, which are the first bytes of each input, and text behind them."""
    rng = random.Random(1)
    choices = [rng.randbytes(rng.randint(1, 60)) for _ in range(40)]
    samples = [TEXT.encode(), b"aaaa abab   \n\n 'll\xff\xfe 12", "𝄞é ً́ا한글".encode() * 5]
    return {f"{i}": choice + samples[i % 3][:400] for i, choice in enumerate(choices)}


def python_seeds() -> dict[str, bytes]:
    """Files for fuzz_python.py, behind the byte that chooses their reader."""
    tok = pybpe.train(iter([TEXT]), vocab_size=300, special_tokens=["<|endoftext|>"], progress=False)
    tok.save("seed.json")
    pybpe.count_words(iter([TEXT])).save("seed.counts")
    ranks = "".join(f"{base64.b64encode(token).decode()} {i}\n" for i, token in tok.vocab.items())
    seeds = {
        "tokenizer.json": b"\0" + Path("seed.json").read_bytes(),
        "ranks.tiktoken": b"\1" + ranks.encode(),
        "words.counts": b"\2" + Path("seed.counts").read_bytes(),
        "texts.jsonl": b'\4{"text": "a \\u00e9 \\ud83d\\ude00"}\n\n{"text": ""}\n',
        "words": b"\5" + TEXT.encode(),
    }
    for kind, more in (("vocab", vocab_seeds()), ("shard", shard_seeds())):
        seeds |= {f"{kind}_{name}": b"\3" + data for name, data in more.items()}
    Path("seed.json").unlink()
    Path("seed.counts").unlink()
    return seeds


def main() -> None:
    """Writes all seeds."""
    folder = Path(sys.argv[1])
    texts = text_seeds()
    every = {"vocab": vocab_seeds(), "shard": shard_seeds(), "python": python_seeds()}
    every |= dict.fromkeys(("encode", "pretok", "train"), texts)
    for target, seeds in every.items():
        (folder / target).mkdir(parents=True, exist_ok=True)
        for name, data in seeds.items():
            _binding.write_file(folder / target / name, data)


if __name__ == "__main__":
    main()
