"""llm.c model checkpoints: written with random weights for any vocabulary, read back, checked.

No flag of llm.c sets the vocabulary: it comes from the header of the checkpoint that training starts from.
So a custom tokenizer needs a checkpoint of its own. The file is a header of 256 int32,

    [0] 20240326  [1] 3 (float32) or 5 (bfloat16)  [2] maxT  [3] V  [4] L  [5] NH  [6] C  [7] Vp

and 16 tensors, all in one type, in the order of `tensor_shapes`. Source: llm.c, train_gpt2.c and
train_gpt2.cu (gpt2_build_from_checkpoint), train_gpt2.py (write_model).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

from pybpe import _binding, padded_vocab_size
from pybpe.errors import ArgumentError, FormatError
from pybpe.pretokenize import open_input

if TYPE_CHECKING:
    import numpy

MAGIC = 20240326
HEADER_INTS = 256
HEADER_BYTES = 4 * HEADER_INTS
VERSIONS = {"fp32": 3, "bf16": 5}

# Depth -> (channels, heads): llm.c's own table (gpt2_set_hyperparameters in train_gpt2.cu).
DEPTHS = {
    6: (384, 6),
    12: (768, 12),
    24: (1024, 16),
    36: (1280, 20),
    48: (1600, 25),
    60: (1920, 30),
    72: (2880, 30),
    84: (3456, 36),
}

_BLOCK = 1 << 22  # weights made at once


@dataclass(frozen=True)
class GPT2Config:
    """The shape of a model.

    Attributes:
        vocab_size: V, the tokenizer's tokens.
        padded_vocab_size: Vp, the rows of wte. CUDA wants a multiple of 8 and more than V.
        max_seq_len: maxT, the longest context.
        num_layers, num_heads, channels: L, NH, C.
    """

    vocab_size: int
    padded_vocab_size: int
    max_seq_len: int
    num_layers: int
    num_heads: int
    channels: int

    def __post_init__(self) -> None:
        if min(vars(self).values()) < 1 or max(vars(self).values()) >= 1 << 31:
            raise ArgumentError(f"every size of a model must be at least 1 and fit an int32: {self}")
        if self.channels % self.num_heads:
            raise ArgumentError(f"channels ({self.channels}) must be a multiple of num_heads ({self.num_heads})")
        if self.padded_vocab_size < self.vocab_size:
            raise ArgumentError(f"Vp ({self.padded_vocab_size}) must be at least V ({self.vocab_size})")

    @classmethod
    def of_depth(cls, depth: int, vocab_size: int, max_seq_len: int = 1024, pad: int = 128) -> GPT2Config:
        """The model that llm.c calls "d12" and so on. Vp is the least multiple of `pad` above V.

        Raises:
            ArgumentError: llm.c has no such depth.
        """
        if depth not in DEPTHS:
            raise ArgumentError(f"depth must be one of {', '.join(map(str, DEPTHS))}, not {depth}")
        channels, heads = DEPTHS[depth]
        return cls(vocab_size, padded_vocab_size(vocab_size + 1, pad), max_seq_len, depth, heads, channels)

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """The tensors in the order of the file."""
        L, C = self.num_layers, self.channels
        return {
            "wte": (self.padded_vocab_size, C),
            "wpe": (self.max_seq_len, C),
            "ln1w": (L, C),
            "ln1b": (L, C),
            "qkvw": (L, 3 * C, C),
            "qkvb": (L, 3 * C),
            "attprojw": (L, C, C),
            "attprojb": (L, C),
            "ln2w": (L, C),
            "ln2b": (L, C),
            "fcw": (L, 4 * C, C),
            "fcb": (L, 4 * C),
            "fcprojw": (L, C, 4 * C),
            "fcprojb": (L, C),
            "lnfw": (C,),
            "lnfb": (C,),
        }

    @property
    def num_parameters(self) -> int:
        """Weights in all, padding included: what llm.c prints as num_parameters."""
        return sum(prod(shape) for shape in self.tensor_shapes().values())

    def header(self, dtype: str) -> numpy.ndarray[Any, Any]:
        """The 256 int32 at the start of the file."""
        import numpy

        header = numpy.zeros(HEADER_INTS, dtype="<i4")
        header[:8] = (
            MAGIC,
            VERSIONS[dtype],
            self.max_seq_len,
            self.vocab_size,
            self.num_layers,
            self.num_heads,
            self.channels,
            self.padded_vocab_size,
        )
        return header


# ----------------------------------------------------------------------------------------------------
# Writing


def write_random_checkpoint(
    path: _binding.PathLike, config: GPT2Config, *, dtype: str = "fp32", seed: int = 42
) -> None:
    """Writes a model to start training from, atomically, with GPT-2's initialisation.

    Weights are N(0, 0.02); those of attproj and fcproj, which end in the residual stream,
    N(0, 0.02 / sqrt(2 L)); layer norms are 1 and 0, biases 0. Rows V..Vp of wte are zero, because CUDA leaves
    raw logits as the gradient of the padding: with random rows the gradient's norm is 904 instead of 1.7.

    Args:
        dtype: "fp32" (version 3: CPU, and CUDA built with PRECISION=FP32) or "bf16" (version 5: CUDA).
        seed: the same seed gives the same file.
    """
    import numpy

    check_dtype(dtype)
    rng = numpy.random.default_rng(seed)
    with _binding.Output(path) as output:
        output.write(config.header(dtype).tobytes())
        for name, shape in config.tensor_shapes().items():
            for block in _random_tensor(rng, config, name, prod(shape)):
                output.write(to_file_type(block, dtype).tobytes())


def _random_tensor(rng: Any, config: GPT2Config, name: str, size: int) -> Iterator[numpy.ndarray[Any, Any]]:
    """The initial weights of one tensor, flat, in blocks: a model need not fit into memory."""
    import numpy

    if name in ("ln1w", "ln2w", "lnfw"):
        yield numpy.ones(size, dtype=numpy.float32)
    elif name.endswith("b"):
        yield numpy.zeros(size, dtype=numpy.float32)
    else:
        residual = name in ("attprojw", "fcprojw")
        std = 0.02 / sqrt(2 * config.num_layers) if residual else 0.02
        drawn = config.vocab_size * config.channels if name == "wte" else size
        for start in range(0, drawn, _BLOCK):
            yield rng.standard_normal(min(_BLOCK, drawn - start), dtype=numpy.float32) * numpy.float32(std)
        if drawn < size:
            yield numpy.zeros(size - drawn, dtype=numpy.float32)


def write_checkpoint(
    path: _binding.PathLike, config: GPT2Config, tensors: dict[str, numpy.ndarray[Any, Any]], *, dtype: str = "fp32"
) -> None:
    """Writes given weights (float32, of the shapes in `config.tensor_shapes()`), atomically."""
    check_dtype(dtype)
    shapes = config.tensor_shapes()
    for name, shape in shapes.items():
        if name not in tensors or tensors[name].shape != shape:
            found = tensors[name].shape if name in tensors else "missing"
            raise ArgumentError(f"tensor {name} must have the shape {shape}; it is {found}")
    with _binding.Output(path) as output:
        output.write(config.header(dtype).tobytes())
        for name in shapes:
            output.write(to_file_type(tensors[name], dtype).tobytes())


def check_dtype(dtype: str) -> None:
    """ArgumentError unless it is "fp32" or "bf16"."""
    if dtype not in VERSIONS:
        raise ArgumentError(f"dtype must be fp32 or bf16, not {dtype!r}")


def to_file_type(values: numpy.ndarray[Any, Any], dtype: str) -> numpy.ndarray[Any, Any]:
    """float32 as the file holds it: little-endian float32, or bfloat16 as uint16, rounded to nearest even."""
    import numpy

    flat = numpy.ascontiguousarray(values, dtype="<f4")
    if dtype == "fp32":
        return flat
    bits = flat.view("<u4")
    # bfloat16 is the upper half of a float32. Adding 0x7FFF, or 0x8000 if the last bit kept is 1, carries into
    # it exactly when nearest-even rounds up. A NaN could be carried into infinity, so it is set apart.
    rounded: numpy.ndarray[Any, Any] = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype("<u2")
    rounded[numpy.isnan(flat)] = 0x7FC0
    return rounded


def from_file_type(raw: numpy.ndarray[Any, Any], dtype: str) -> numpy.ndarray[Any, Any]:
    """The reverse, as float32."""

    if dtype == "fp32":
        return raw.view("<f4")
    wide: numpy.ndarray[Any, Any] = raw.view("<u2").astype("<u4") << 16
    return wide.view("<f4")


# ----------------------------------------------------------------------------------------------------
# Reading


def read_config(path: _binding.PathLike) -> tuple[GPT2Config, str]:
    """The shape of a checkpoint and its dtype, after a check of the header against the file's size.

    Raises:
        FileError, FormatError: it says which field is wrong and what llm.c would do.
    """
    import numpy

    name = os.fsdecode(path)
    with open_input(path) as stream:
        raw = stream.read(HEADER_BYTES)
        size = os.fstat(stream.fileno()).st_size
    if len(raw) < HEADER_BYTES:
        raise FormatError(f"{name}: {len(raw)} bytes are no checkpoint: its header alone has {HEADER_BYTES}", len(raw))
    header = [int(i) for i in numpy.frombuffer(raw, dtype="<i4", count=8)]
    if header[0] != MAGIC:
        raise FormatError(f"{name}: magic {header[0]}, expected {MAGIC}: not a llm.c checkpoint; llm.c aborts")
    dtypes = {version: dtype for dtype, version in VERSIONS.items()}
    if header[1] not in dtypes:
        raise FormatError(f"{name}: version {header[1]}, expected 3 (fp32) or 5 (bf16); llm.c aborts", 4)
    try:
        config = GPT2Config(header[3], header[7], header[2], header[4], header[5], header[6])
    except ArgumentError as error:
        raise FormatError(f"{name}: header: {error}", 8) from None
    dtype = dtypes[header[1]]
    expected = HEADER_BYTES + config.num_parameters * (4 if dtype == "fp32" else 2)
    if size != expected:
        raise FormatError(
            f"{name}: {size} bytes, expected {expected} for its header; llm.c aborts if bytes are missing and"
            " trains on shifted weights if the header is wrong",
            min(size, expected),
        )
    return config, dtype


def read_checkpoint(path: _binding.PathLike) -> tuple[GPT2Config, dict[str, numpy.ndarray[Any, Any]]]:
    """The shape and the tensors, as float32, of a checkpoint of either version."""
    import numpy

    config, dtype = read_config(path)
    tensors = {}
    with open_input(path) as stream:
        stream.seek(HEADER_BYTES)
        for name, shape in config.tensor_shapes().items():
            raw = numpy.fromfile(stream, dtype="<u4" if dtype == "fp32" else "<u2", count=prod(shape))
            if len(raw) < prod(shape):
                raise FormatError(f"{os.fsdecode(path)}: ended inside the tensor {name}: it was cut off while read")
            tensors[name] = from_file_type(raw, dtype).reshape(shape)
    return config, tensors
