"""tokenizer.bin: GPT-2's there and back, and the merges of files of llm.c's, which have none. tests/c/test_vocab.c has
damaged files."""

import random
import struct
from pathlib import Path

import pytest
from gpt2 import EOT_ID, gpt2_tokenizer, gpt2_tokens_and_merges
from reference import encode as reference

import pybpe


def llmc_file(path: Path, tokens: list[bytes], version: int, eot: int) -> bytes:
    """Writes a tokenizer.bin like those of llm.c's train_gpt2.py."""
    header = struct.pack("<256i", 20240328, version, len(tokens), eot, *[0] * 252)
    path.write_bytes(header + b"".join(bytes([len(token)]) + token for token in tokens))
    return path.read_bytes()


@pytest.mark.parametrize("version", [1, 2])
def test_gpt2s_merges_from_the_order_of_ids(version: int, tmp_path: Path) -> None:
    tokens, merges = gpt2_tokens_and_merges()
    llmc_file(tmp_path / "t.bin", tokens, version, EOT_ID if version == 2 else 0)
    tok = pybpe.Tokenizer.from_file(tmp_path / "t.bin")
    assert list(tok.model.tokens) == tokens and tok.merges == merges
    assert tok.special_tokens == {"<|endoftext|>": EOT_ID} and tok.eot_token == EOT_ID
    assert tok.pattern.name == "gpt2" and tok == gpt2_tokenizer()


@pytest.mark.parametrize("seed", range(8))
def test_recovery_against_the_definition(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choices(["ab", "cab", "dé", "中文", " a"], k=80)).encode()
    tokens = [left + right for left, right in reference.train([text], 40)]
    tokens = list(dict.fromkeys(tokens + [rng.randbytes(rng.randint(2, 90)) for _ in range(10)]))
    if seed % 2:
        rng.shuffle(tokens)
    every = [bytes([byte]) for byte in range(256)] + tokens
    llmc_file(tmp_path / "t.bin", [*every, b"<|e|>"], 2, len(every))
    assert pybpe.Tokenizer.from_file(tmp_path / "t.bin").merges == reference.recover(every)


def test_gpt2_there_and_back(tmp_path: Path) -> None:
    tokens, merges = gpt2_tokens_and_merges()
    gpt2_tokenizer().save(tmp_path / "tokenizer.bin")
    data = (tmp_path / "tokenizer.bin").read_bytes()
    plain = llmc_file(tmp_path / "plain.bin", tokens, 2, EOT_ID)
    assert data[:16] == plain[:16] and data[1024 : len(plain)] == plain[1024:], "what llm.c reads"
    again = pybpe.Tokenizer.from_file(tmp_path / "tokenizer.bin")
    assert (list(again.model.tokens), again.merges) == (tokens, merges)
