"""benchmarks/models: the stand-in for llm.c's model, bits per byte, and the division of a text."""

import math
import random
import sys
from itertools import pairwise
from pathlib import Path

import numpy
import pytest

torch = pytest.importorskip("torch")
sys.path.append(str(Path(__file__).resolve().parents[3] / "benchmarks/models"))

from division import COMMON, divide  # noqa: E402
from heldout import bits_per_byte, windows_of_bytes, windows_of_tokens  # noqa: E402
from model import GPT2, adamw  # noqa: E402
from reference import gpt2_forward  # noqa: E402
from texts import english  # noqa: E402

import pybpe  # noqa: E402
from llmc_compat.checkpoint import (  # noqa: E402
    GPT2Config,  # noqa: E402
    read_checkpoint,
    write_checkpoint,
    write_random_checkpoint,  # noqa: E402
)

SHAPE = GPT2Config(vocab_size=300, padded_vocab_size=384, max_seq_len=16, num_layers=2, num_heads=2, channels=32)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    path = tmp_path / "model.bin"
    write_random_checkpoint(path, SHAPE, seed=1)
    return path


def test_the_model_has_the_losses_of_the_reference(checkpoint: Path) -> None:
    _, tensors = read_checkpoint(checkpoint)
    write_checkpoint(checkpoint, SHAPE, {name: 4 * tensor for name, tensor in tensors.items()})  # far from linear
    ids = numpy.random.default_rng(2).integers(0, 300, (3, 17))
    inputs, targets = torch.from_numpy(ids[:, :-1].copy()), torch.from_numpy(ids[:, 1:].copy())
    found = GPT2(checkpoint).losses(inputs, targets).view(3, 16).detach().numpy()
    for row in range(3):
        expected = gpt2_forward.losses(checkpoint, ids[row, :-1].tolist(), ids[row, 1:].tolist())
        assert numpy.abs(found[row] - expected).max() < 1e-4


def test_only_matrices_decay(checkpoint: Path) -> None:
    model = GPT2(checkpoint)
    before = {name: tensor.detach().clone() for name, tensor in model.weights.items()}
    optimizer = adamw(model, beta2=0.95, weight_decay=0.1)
    for group in optimizer.param_groups:
        group["lr"] = 0.5
    for tensor in model.parameters():
        tensor.grad = torch.zeros_like(tensor)
    optimizer.step()
    for name, tensor in model.weights.items():
        is_matrix = name in ("wte", "wpe") or (name.endswith("w") and not name.startswith("ln"))
        assert torch.allclose(tensor, before[name] * (0.95 if is_matrix else 1.0)), name


@pytest.mark.parametrize("count", [1, 7, 8, 9, 12, 13, 100])
def test_windows_count_each_token_once(count: int) -> None:
    widths = numpy.random.default_rng(count).integers(1, 9, count)
    starts = numpy.concatenate([[0], numpy.cumsum(widths[:-1])])
    for windows in (list(windows_of_tokens(count, 8)), list(windows_of_bytes(starts, 8))):
        counted = [i for window in windows for i in range(window.counted, window.stop)]
        assert counted == list(range(count))
        assert all(0 <= w.start <= w.counted < w.stop <= w.start + 8 for w in windows)
    for window in windows_of_bytes(starts, 8):
        assert starts[window.counted] - starts[window.start] <= 8
    for before, window in pairwise(windows_of_tokens(count, 8)):
        assert window.counted - window.start >= 4 and window.counted == before.stop


def test_bits_per_byte_of_a_model_that_knows_nothing(checkpoint: Path) -> None:
    model = GPT2(checkpoint)
    for tensor in model.parameters():
        torch.nn.init.zeros_(tensor)  # all 300 tokens are equally likely
    text = english()[:3000]
    tok = pybpe.train(iter([text]), vocab_size=300, special_tokens=["<|endoftext|>"])
    documents = [text[:1000], text[1000:]]
    bits = math.log2(300) * sum(len(tok.encode_ordinary(each)) for each in documents) / len(text.encode())
    assert bits_per_byte(model, tok, documents, 16) == pytest.approx(bits, rel=1e-5)
    assert bits_per_byte(model, tok, documents, 16, context_bytes=16) == pytest.approx(bits, rel=1e-5)
    with pytest.raises(ValueError, match="more than 16"):
        bits_per_byte(model, tok, documents, 16, context_bytes=200)


def test_the_text_that_is_held_out_has_nothing_long_in_common_with_the_rest(tmp_path: Path) -> None:
    rng = random.Random(3)
    lines = ["".join(rng.choices("abcdé 中", k=rng.randrange(20, 300))) for _ in range(1500)]
    lines += [f"x{line}y" for line in rng.sample(lines, 500)]
    (tmp_path / "text").write_text("\n".join(lines), encoding="utf-8")
    train, held, removed = divide(tmp_path / "text", 50_000)
    assert sum(len(each.encode()) for each in (*train, *held)) + removed == (tmp_path / "text").stat().st_size
    data = "".join(held).encode()
    parts = {each[i : i + COMMON] for each in map(str.encode, held) for i in range(len(each) - COMMON + 1)}
    assert len(data) >= 50_000 and removed > 5_000
    for block in map(str.encode, train):
        for line in block.splitlines():
            assert not any(line[i : i + COMMON] in parts for i in range(len(line) - COMMON + 1))
    kept = sum(len(line) > COMMON for block in train for line in block.encode().splitlines())
    assert kept > 800
