"""Moving a checkpoint to another tokenizer, compared with a reference that computes each row by its definition."""

import math
import os
from pathlib import Path

import numpy
import pytest
from gpt2 import gpt2_tokens_and_merges
from texts import english

import pybpe
from llmc_compat.bfloat16 import from_bfloat16, to_bfloat16
from llmc_compat.checkpoint import Checkpoint, read_checkpoint, write_checkpoint
from llmc_compat.gpt2_config import GPT2Config
from llmc_compat.resize import resize_checkpoint

SPECIALS = ["<|endoftext|>", "<|im_start|>", "é<|x|>"]


@pytest.fixture(scope="module")
def old() -> pybpe.Tokenizer:
    return pybpe.train(iter([english()[:60_000]]), vocab_size=500, special_tokens=SPECIALS, special_ids="last")


@pytest.fixture(scope="module")
def new() -> pybpe.Tokenizer:
    """Shares some tokens with `old` and two specials; one of its own is an ordinary token of `old`."""
    text = english()[60_000:120_000] + "Grüße aus Köln! " * 500
    return pybpe.train(iter([text]), vocab_size=700, special_tokens=["<|endoftext|>", "é<|x|>", "<|pad|>", " the"])


def model(tmp_path: Path, tok: pybpe.Tokenizer, dtype: str) -> dict[str, numpy.ndarray]:
    """Writes a model for the tokenizer as tmp_path/old.bin, with every weight unique, padding included."""
    config = GPT2Config(tok.vocab_size, tok.vocab_size + 20, 10, num_layers=2, num_heads=2, channels=6)
    rng = numpy.random.default_rng(5)
    tensors = {name: rng.normal(0.1, 1, shape).astype("f4") for name, shape in config.tensor_shapes().items()}
    write_checkpoint(tmp_path / "old.bin", config, tensors, dtype=dtype)
    return read_checkpoint(tmp_path / "old.bin")[1]


def reference_row(i: int, new: pybpe.Tokenizer, old: pybpe.Tokenizer, wte: numpy.ndarray) -> list[float]:
    """Returns row i of the new wte, by a search through all old tokens; the mean is summed exactly."""
    by_id = {j: text for text, j in old.special_tokens.items()}
    names = {j: text for text, j in new.special_tokens.items()}
    for j in range(old.vocab_size):
        if i in names or j in by_id:
            if names.get(i, "no special") == by_id.get(j):
                return wte[j].tolist()
        elif new.decode_single_token_bytes(i) == old.decode_single_token_bytes(j):
            return wte[j].tolist()
    return [math.fsum(column) / old.vocab_size for column in wte[: old.vocab_size].T.tolist()]


@pytest.mark.parametrize("dtype", ["fp32", "bf16"])
def test_rows_follow_their_tokens(
    tmp_path: Path, old: pybpe.Tokenizer, new: pybpe.Tokenizer, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("llmc_compat.resize._BLOCK_ROWS", 111)  # so that blocks end everywhere
    before = model(tmp_path, old, dtype)
    resized = resize_checkpoint(tmp_path / "old.bin", old, new, tmp_path / "new.bin")
    config, after = read_checkpoint(tmp_path / "new.bin")
    assert config == resized.config == GPT2Config(700, 768, 10, 2, 2, 6)
    with Checkpoint(tmp_path / "new.bin") as made:
        assert made.dtype == resized.dtype == dtype
    expected = numpy.zeros((768, 6), dtype=numpy.float32)
    for i in range(700):
        expected[i] = reference_row(i, new, old, before["wte"])
    if dtype == "bf16":
        expected = from_bfloat16(to_bfloat16(expected))
    assert numpy.array_equal(after.pop("wte"), expected)
    for name, tensor in after.items():
        assert numpy.array_equal(tensor, before[name]), name
    mean = (expected[:700] == expected[new.special_tokens["<|pad|>"]]).all(axis=1)
    assert (resized.copied, resized.averaged) == (700 - mean.sum(), mean.sum())
    assert resized.copied > 350 and resized.averaged > 100  # the case is not trivial
    assert mean[new.special_tokens[" the"]]  # a special token is not the ordinary token with the same text


def test_an_ordinary_token_is_not_the_special_of_the_same_text(
    tmp_path: Path, old: pybpe.Tokenizer, new: pybpe.Tokenizer
) -> None:
    before = model(tmp_path, new, "fp32")["wte"]
    resize_checkpoint(tmp_path / "old.bin", new, old, tmp_path / "new.bin")
    the = old.token_to_id(" the")
    assert the is not None and " the" in new.special_tokens
    row = read_checkpoint(tmp_path / "new.bin")[1]["wte"][the]
    assert numpy.array_equal(row, numpy.float32(reference_row(the, old, new, before)))
    assert not numpy.array_equal(row, before[new.special_tokens[" the"]])


def test_the_same_tokenizer_changes_only_the_padding(tmp_path: Path, old: pybpe.Tokenizer) -> None:
    before = model(tmp_path, old, "fp32")
    resized = resize_checkpoint(tmp_path / "old.bin", old, old, tmp_path / "new.bin", pad=64)
    _, after = read_checkpoint(tmp_path / "new.bin")
    assert (resized.copied, resized.averaged, len(after["wte"])) == (500, 0, 512)
    assert numpy.array_equal(after["wte"][:500], before["wte"][:500]) and not after["wte"][500:].any()


def test_there_and_back_keeps_shared_rows(tmp_path: Path, old: pybpe.Tokenizer, new: pybpe.Tokenizer) -> None:
    before = model(tmp_path, old, "bf16")
    resize_checkpoint(tmp_path / "old.bin", old, new, tmp_path / "x.bin")
    with pytest.raises(pybpe.errors.ArgumentError, match="choose another output"):
        resize_checkpoint(tmp_path / "x.bin", new, old, tmp_path / "x.bin")
    resize_checkpoint(tmp_path / "x.bin", new, old, tmp_path / "y.bin")
    _, after = read_checkpoint(tmp_path / "y.bin")
    ordinary = set(new.model.vocab.values()) - {b" the"}  # which is a special there
    shared = [i for i in range(256 + 20) if old.decode_single_token_bytes(i) in ordinary]
    assert len(shared) > 256 and numpy.array_equal(after["wte"][shared], before["wte"][shared])
    assert sorted(os.listdir(tmp_path)) == ["old.bin", "x.bin", "y.bin"]


def test_gpt2s_tokens_move_with_llmcs_own_tokenizer_file(tmp_path: Path) -> None:
    """A tokenizer.bin from llm.c contains only tokens, which is enough."""
    tokens, merges = gpt2_tokens_and_merges()
    body = b"".join(bytes([len(token)]) + token for token in tokens)
    head = numpy.zeros(256, dtype="<i4")
    head[:4] = 20240328, 2, 50257, 50256
    (tmp_path / "gpt2_tokenizer.bin").write_bytes(head.tobytes() + body)
    gpt2 = pybpe.Tokenizer.from_file(tmp_path / "gpt2_tokenizer.bin")
    small = pybpe.Tokenizer(
        dict(enumerate([b"<|endoftext|>", *tokens[:1000], b"<|pad|>"])), merges[:744], ["<|endoftext|>", "<|pad|>"]
    )
    config = GPT2Config(50257, 50304, 4, num_layers=1, num_heads=1, channels=2)
    rng = numpy.random.default_rng(3)
    tensors = {name: rng.random(shape, dtype="f4") for name, shape in config.tensor_shapes().items()}
    write_checkpoint(tmp_path / "gpt2.bin", config, tensors)
    resized = resize_checkpoint(tmp_path / "gpt2.bin", gpt2, small, tmp_path / "small.bin")
    assert (resized.copied, resized.averaged) == (1001, 1)
    wte = read_checkpoint(tmp_path / "small.bin")[1]["wte"]
    assert numpy.array_equal(wte[0], tensors["wte"][50256]) and numpy.array_equal(wte[1:1001], tensors["wte"][:1000])
    assert numpy.allclose(wte[1001], tensors["wte"][:50257].mean(axis=0, dtype=float), rtol=1e-6)


def test_another_old_tokenizer_is_refused(tmp_path: Path, old: pybpe.Tokenizer, new: pybpe.Tokenizer) -> None:
    model(tmp_path, old, "fp32")
    with pytest.raises(pybpe.errors.ArgumentError, match="V is 500, but the tokenizer has 700 tokens"):
        resize_checkpoint(tmp_path / "old.bin", new, old, tmp_path / "new.bin")
    with pytest.raises(pybpe.errors.ArgumentError, match="multiple"):
        resize_checkpoint(tmp_path / "old.bin", old, new, tmp_path / "new.bin", pad=0)
    assert os.listdir(tmp_path) == ["old.bin"]


def test_a_damaged_source_leaves_the_old_output(tmp_path: Path, old: pybpe.Tokenizer, new: pybpe.Tokenizer) -> None:
    model(tmp_path, old, "fp32")
    (tmp_path / "new.bin").write_bytes(b"precious")
    data = (tmp_path / "old.bin").read_bytes()
    (tmp_path / "old.bin").write_bytes(data[:-3])
    with pytest.raises(pybpe.errors.FormatError, match="bytes, but its header implies"):
        resize_checkpoint(tmp_path / "old.bin", old, new, tmp_path / "new.bin")
    assert (tmp_path / "new.bin").read_bytes() == b"precious" and len(os.listdir(tmp_path)) == 2
