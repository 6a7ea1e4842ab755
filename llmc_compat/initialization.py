"""Makes checkpoints to start training from: GPT-2's random initialization, for any vocabulary."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod, sqrt
from typing import Any

from pybpe import _binding
from pybpe._numpy import numpy
from pybpe.errors import ArgumentError

from .checkpoint import check_dtype, to_file_type, write_blocks
from .gpt2_config import GPT2Config

_BLOCK = 1 << 22  # weights generated at once


def write_random_checkpoint(
    path: _binding.PathLike, config: GPT2Config, *, dtype: str = "fp32", seed: int = 42
) -> None:
    """Writes a model to start training from, atomically, with GPT-2's initialization.

    Weights are N(0, 0.02). Those of attproj and fcproj, which feed the residual stream, are
    N(0, 0.02 / sqrt(2 L)). Layer norms are 1 and 0, biases 0. Rows V..Vp of wte are zero, because CUDA leaves
    raw logits as the gradient of the padding: with random rows the gradient's norm is 904 instead of 1.7.

    Args:
        dtype: "fp32" (version 3: CPU, and CUDA built with PRECISION=FP32) or "bf16" (version 5: CUDA).
        seed: at least 0; the same seed gives the same file.

    Raises:
        ArgumentError, FileError.
    """
    check_dtype(dtype)
    if seed < 0:
        raise ArgumentError(f"seed must be at least 0, not {seed}")
    blocks = (to_file_type(block, dtype) for block in _random_blocks(config, seed))
    write_blocks(path, config, dtype, blocks)


def _random_blocks(config: GPT2Config, seed: int) -> Iterator[numpy.ndarray[Any, Any]]:
    """Yields the initial weights as flat float32 blocks, so that the model need not fit in memory."""
    rng = numpy.random.default_rng(seed)
    for name, shape in config.tensor_shapes().items():
        size = prod(shape)
        if name in ("ln1w", "ln2w", "lnfw"):
            yield numpy.ones(size, dtype=numpy.float32)
        elif name.endswith("b"):
            yield numpy.zeros(size, dtype=numpy.float32)
        else:
            std = 0.02 / sqrt(2 * config.num_layers) if name in ("attprojw", "fcprojw") else 0.02
            drawn = config.vocab_size * config.channels if name == "wte" else size
            for start in range(0, drawn, _BLOCK):
                yield rng.standard_normal(min(_BLOCK, drawn - start), dtype=numpy.float32) * numpy.float32(std)
            yield numpy.zeros(size - drawn, dtype=numpy.float32)
