"""Reads and writes llm.c model checkpoints.

No llm.c flag sets the vocabulary: it comes from the header of the checkpoint that training starts from.
So a custom tokenizer needs its own checkpoint: a random one, one resized from another tokenizer's, or one from Hugging
Face (both in convert.py). The file is a header of 256 int32,

    [0] 20240326  [1] 3 (float32) or 5 (bfloat16)  [2] maxT  [3] V  [4] L  [5] NH  [6] C  [7] Vp

and 16 tensors, all of one type, in the order of `tensor_shapes`, with nothing after them. Source: llm.c,
train_gpt2.c and train_gpt2.cu (gpt2_build_from_checkpoint), train_gpt2.py (write_model).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import Any, BinaryIO, NamedTuple

from pybpe import _binding, padded_vocab_size
from pybpe._lazy import numpy
from pybpe.arguments import option, param, whole_number
from pybpe.errors import ArgumentError, FormatError, warn
from pybpe.reading.file_types import CHECKPOINT_MAGIC
from pybpe.reading.streams import open_unchanged, read_items

from .shards import HEADER_BYTES, header, header_numbers

# ----------------------------------------------------------------------------------------------------
# The shape of a GPT-2 as llm.c builds it: its sizes, and the tensors they imply.


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


# A model that two cores of a laptop train in about half an hour. There, llm.c's CPU code does 20 to 22 billion of these
# operations a second (measured with gcc -Ofast -march=native), and a token costs 6 operations a weight.
_LAPTOP_OPERATIONS = 4e13
_LAPTOP_SHAPES = ((2, 64), (2, 96), (4, 128), (4, 160), (4, 192), (6, 192), (6, 256), (6, 320), (6, 384))
_PASSES, _MOST_TOKENS = 4, 12_000_000  # more passes over a text, or more text for so small a model, help little
LAPTOP_HEAD, LAPTOP_SEQUENCE = 32, 256


def laptop_tokens(tokens: int) -> int:
    """Returns the tokens that a laptop trains a model on: a text of this many tokens, several times."""
    return min(_PASSES * tokens, _MOST_TOKENS)


def laptop_shape(padded_vocab_size: int, tokens: int) -> tuple[int, int]:
    """Returns the layers and channels of the largest model that two cores train in about half an hour on a text of
    this many tokens."""
    trained = laptop_tokens(tokens)
    fitting = [
        (layers, channels)
        for layers, channels in _LAPTOP_SHAPES
        if 6 * (12 * layers * channels * channels + padded_vocab_size * channels) * trained <= _LAPTOP_OPERATIONS
    ]
    return fitting[-1] if fitting else _LAPTOP_SHAPES[0]


def padded_rows(vocab_size: int, pad_vocab: int = 128) -> int:
    """Returns Vp, the number of rows of wte: the smallest multiple of `pad_vocab` above V, because CUDA needs Vp > V.

    Raises:
        ArgumentError: pad_vocab is not a multiple of 8, which CUDA requires of Vp.
    """
    if pad_vocab < 8 or pad_vocab % 8:
        raise ArgumentError(f"{param('pad_vocab')} must be a multiple of 8, as CUDA requires, not {pad_vocab}")
    return padded_vocab_size(vocab_size + 1, pad_vocab)


@dataclass(frozen=True)
class Sizes:
    """The sizes in the header of a checkpoint, which may be impossible.

    Attributes:
        vocab_size: V, the number of tokens of the tokenizer.
        padded_vocab_size: Vp, the number of rows of wte. CUDA needs a multiple of 8 above V.
        max_seq_len: maxT, the longest sequence.
        num_layers, num_heads, channels: L, NH, C.
    """

    vocab_size: int
    padded_vocab_size: int
    max_seq_len: int
    num_layers: int
    num_heads: int
    channels: int

    def by_letter(self) -> dict[str, int]:
        """Returns the sizes by llm.c's names, in the order of the header."""
        maxT, L, NH, C = self.max_seq_len, self.num_layers, self.num_heads, self.channels
        return {"maxT": maxT, "V": self.vocab_size, "L": L, "NH": NH, "C": C, "Vp": self.padded_vocab_size}

    def tensor_shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the tensors' names and shapes, in file order."""
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
        """The total number of weights, padding included. llm.c prints it as num_parameters."""
        return sum(prod(shape) for shape in self.tensor_shapes().values())


class StoredTensor(NamedTuple):
    """A tensor of another program, which stores every layer by itself: its name and shape there, and the tensor and
    rows of llm.c's file that hold it."""

    name: str
    shape: tuple[int, ...]
    source: str
    start: int
    stop: int


@dataclass(frozen=True)
class GPT2Config(Sizes):
    """The shape of a model: sizes that llm.c can use.

    Raises:
        ArgumentError: a size is impossible, or two do not fit together.
    """

    def __post_init__(self) -> None:
        for letter, size in self.by_letter().items():
            if not 1 <= size < 1 << 31:
                raise ArgumentError(f"{letter} is {size}; sizes of a model must be from 1 to {(1 << 31) - 1}")
        if self.channels % self.num_heads:
            raise ArgumentError(
                f"NH is {self.num_heads}, which does not divide C {self.channels}: the number of channels must be a"
                " multiple of the number of heads"
            )
        if self.padded_vocab_size < self.vocab_size:
            raise ArgumentError(f"Vp is {self.padded_vocab_size}, below V {self.vocab_size}")

    @classmethod
    def of_depth(
        cls,
        depth: int,
        vocab_size: int,
        max_seq_len: int = 1024,
        pad_vocab: int = 128,
        *,
        layers: int | None = None,
        heads: int | None = None,
        channels: int | None = None,
    ) -> GPT2Config:
        """Returns the model that llm.c calls "d12" and so on.

        Args:
            depth: 6, 12, 24, ...: a row of llm.c's table.
            vocab_size: V.
            max_seq_len: maxT.
            pad_vocab: Vp is the smallest multiple of this above V.
            layers, heads, channels: replace the table's values.

        Raises:
            ArgumentError: llm.c has no such depth, or the sizes do not fit together.
        """
        if depth not in DEPTHS:
            raise ArgumentError(f"{param('depth')} must be one of {', '.join(map(str, DEPTHS))}, not {depth}")
        return cls(
            vocab_size,
            padded_rows(vocab_size, pad_vocab),
            max_seq_len,
            depth if layers is None else layers,
            DEPTHS[depth][1] if heads is None else heads,
            DEPTHS[depth][0] if channels is None else channels,
        )

    def parts(self, of_model: Mapping[str, str], layer: str, of_layer: Mapping[str, str]) -> Iterator[StoredTensor]:
        """Yields the tensors of another program, in the order of llm.c's file. wte has no padding there.

        Args:
            of_model: llm.c's name -> the program's name, of tensors without layers.
            layer: the beginning of the names of tensors of layer {}.
            of_layer: llm.c's name without its last letter, w or b -> the rest of the program's name, without ".weight"
                or ".bias".
        """
        for source, shape in self.tensor_shapes().items():
            if source in of_model:
                rows = self.vocab_size if source == "wte" else shape[0]
                yield StoredTensor(of_model[source], (rows, *shape[1:]), source, 0, rows)
                continue
            name = f"{of_layer[source[:-1]]}.{'weight' if source[-1] == 'w' else 'bias'}"
            for i in range(self.num_layers):
                yield StoredTensor(layer.format(i) + name, shape[1:], source, i, i + 1)


# ----------------------------------------------------------------------------------------------------
# bfloat16, which numpy lacks: the upper half of a float32, stored as uint16


def to_bfloat16(values: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Rounds to nearest, ties to even, as PyTorch and CUDA do.

    Args:
        values: float32, any shape.

    Returns:
        The bits as uint16, in the same shape. Values beyond the largest bfloat16 become infinity. Every NaN becomes
        0x7FC0.
    """
    single = numpy.ascontiguousarray(values, dtype="<f4")
    bits = single.view("<u4")
    # Adding 0x7FFF, or 0x8000 if the last bit kept is 1, carries into that bit exactly when nearest-even rounds
    # up. A NaN could carry into infinity, so NaNs are handled separately.
    rounded: numpy.ndarray[Any, Any] = ((bits + (0x7FFF + ((bits >> 16) & 1))) >> 16).astype("<u2")
    rounded[numpy.isnan(single)] = 0x7FC0
    return rounded


def from_bfloat16(raw: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """Widens bfloat16 bits (uint16) to float32, exactly. The shape is kept."""
    wide: numpy.ndarray[Any, Any] = raw.view("<u2").astype("<u4") << 16
    return wide.view("<f4")


MAGIC = CHECKPOINT_MAGIC
VERSIONS = {"fp32": 3, "bf16": 5}
ITEM_BYTES = {"fp32": 4, "bf16": 2}

_BLOCK_ITEMS = 1 << 22  # weights that are read or made at once


# ----------------------------------------------------------------------------------------------------
# Types


def check_dtype(dtype: str) -> None:
    """Raises ArgumentError unless dtype is "fp32" or "bf16"."""
    if dtype not in VERSIONS:
        raise ArgumentError(f"{param('dtype')} must be fp32 or bf16, not {dtype!r}")


def to_file_type(values: numpy.ndarray[Any, Any], dtype: str) -> numpy.ndarray[Any, Any]:
    """Converts float32 of any shape to the file's type: little-endian float32, or bfloat16 as uint16, rounded to
    nearest even."""
    return numpy.ascontiguousarray(values, dtype="<f4") if dtype == "fp32" else to_bfloat16(values)


def from_file_type(raw: numpy.ndarray[Any, Any], dtype: str) -> numpy.ndarray[Any, Any]:
    """Converts the file's type back to float32."""
    return raw.view("<f4") if dtype == "fp32" else from_bfloat16(raw)


# ----------------------------------------------------------------------------------------------------
# Writing


def write_checkpoint(
    path: _binding.PathLike, config: GPT2Config, tensors: Mapping[str, numpy.ndarray[Any, Any]], *, dtype: str = "fp32"
) -> None:
    """Writes the given weights, atomically.

    Args:
        tensors: float32, with the names and shapes in `config.tensor_shapes()`.
        dtype: "fp32" or "bf16".

    Raises:
        ArgumentError: a tensor is missing or has a wrong shape. FileError.
    """
    check_dtype(dtype)
    shapes = config.tensor_shapes()
    for name, shape in shapes.items():
        if name not in tensors or tensors[name].shape != shape:
            found = tensors[name].shape if name in tensors else "missing"
            raise ArgumentError(f"tensor {name} must have the shape {shape}, not {found}")
    write_blocks(path, config, dtype, (to_file_type(tensors[name], dtype) for name in shapes))


def write_blocks(
    path: _binding.PathLike, config: GPT2Config, dtype: str, blocks: Iterable[numpy.ndarray[Any, Any]]
) -> None:
    """Writes the header and then blocks of weights, atomically, holding one block at a time. The blocks are in the type
    and order of the file. Together, they are all of its tensors."""
    with _binding.Output(path) as output:
        shape = (config.num_layers, config.num_heads, config.channels, config.padded_vocab_size)
        output.write(header(MAGIC, VERSIONS[dtype], config.max_seq_len, config.vocab_size, *shape))
        for block in blocks:
            output.write(block)


# ----------------------------------------------------------------------------------------------------
# Reading


class Checkpoint:
    """An open checkpoint: its shape, and its weights, read on demand. A context manager that closes the file.

    Args:
        path: the file.
        warns: whether to warn of weights that are infinite or NaN, when they are read.

    Attributes:
        path: the path as given.
        config: the shape of the model.
        dtype: "fp32" or "bf16", as in the file.

    Raises:
        FileError: the file cannot be read. FormatError: a header field is wrong, or bytes are missing or extra. The
            error tells you which, and the effect on llm.c. Nothing is allocated until the file's size matches the
            header.
    """

    def __init__(self, path: _binding.PathLike, warns: bool = False) -> None:
        self.path, self._warns = os.fsdecode(path), warns
        self._stream = open_unchanged(path)
        try:
            sizes, self.dtype, size = read_header(self._stream, self.path)
            try:
                self.config = GPT2Config(**vars(sizes))
            except ArgumentError as error:
                raise FormatError(f"{self.path}: header: {error}", 8) from None
            expected = file_bytes(self.config, self.dtype)
            if size != expected:
                raise FormatError(
                    f"{self.path}: {size} bytes, but its header implies {expected}; llm.c aborts if bytes are missing"
                    " and trains on shifted weights if the header is wrong",
                    min(size, expected),
                )
        except BaseException:
            self._stream.close()
            raise
        self._shapes = self.config.tensor_shapes()
        self._offsets = {}
        offset = HEADER_BYTES
        for name, shape in self._shapes.items():
            self._offsets[name] = offset
            offset += prod(shape) * ITEM_BYTES[self.dtype]

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(self, *error: Any) -> None:
        self._stream.__exit__(*error)

    def check_vocab_size(self, vocab_size: int) -> None:
        """Raises ArgumentError unless the model is for this number of tokens."""
        if vocab_size != self.config.vocab_size:
            raise ArgumentError(
                f"{self.path}: V is {self.config.vocab_size}, but the tokenizer has {vocab_size} tokens: pass the"
                " tokenizer that the model was trained with"
            )

    def tensor(self, name: str) -> numpy.ndarray[Any, Any]:
        """Returns a whole tensor as float32, with its shape in `config.tensor_shapes()`."""
        return self.rows(name, 0, self._shape(name)[0])

    def rows(self, name: str, start: int, stop: int) -> numpy.ndarray[Any, Any]:
        """Returns rows start..stop of a tensor (along its first dimension), as float32."""
        return from_file_type(self.raw_rows(name, start, stop), self.dtype)

    def raw_rows(self, name: str, start: int, stop: int) -> numpy.ndarray[Any, Any]:
        """Returns the same rows in the file's type: float32, or bfloat16 as uint16.

        Raises:
            ArgumentError: there is no such tensor or row. FormatError: the file was truncated in the meantime.
        """
        shape = self._shape(name)
        if not 0 <= start <= stop <= shape[0]:
            raise ArgumentError(f"rows {start}..{stop} are out of range: {name} has {shape[0]} rows")
        wanted = (stop - start, *shape[1:])
        row_bytes = prod(shape[1:]) * ITEM_BYTES[self.dtype]
        self._stream.seek(self._offsets[name] + start * row_bytes)
        raw = read_items(self._stream, "<f4" if self.dtype == "fp32" else "<u2", prod(wanted))
        if raw.size < prod(wanted):
            raise FormatError(
                f"{self.path}: the file ended inside the tensor {name}: it was truncated while being read"
            )
        if self._warns:
            self._warns = not tell_of_nan(self.path, name, raw)
        return raw.reshape(wanted)

    def raw_blocks(self, name: str, stop: int | None = None) -> Iterator[numpy.ndarray[Any, Any]]:
        """Yields rows 0..stop of a tensor (None: all rows) in blocks, in the file's type."""
        shape = self._shape(name)
        end = shape[0] if stop is None else stop
        step = max(1, _BLOCK_ITEMS // prod(shape[1:]))
        for start in range(0, end, step):
            yield self.raw_rows(name, start, min(start + step, end))

    def _shape(self, name: str) -> tuple[int, ...]:
        if name not in self._shapes:
            raise ArgumentError(f"a checkpoint has no tensor {name!r}; it has {', '.join(self._shapes)}")
        return self._shapes[name]


def tell_of_nan(path: str, name: str, weights: numpy.ndarray[Any, Any]) -> bool:
    """Warns if weights of a tensor are infinite or NaN, in the type of the file. Returns whether they are."""
    exponent = numpy.array(0x7F80, "<u2") if weights.itemsize == 2 else numpy.array(0x7F80 << 16, "<u4")
    found = bool(((weights.view(exponent.dtype) & exponent) == exponent).any())
    if found:
        warn(f"{path}: the tensor {name} has weights that are infinite or NaN: training diverged before it was saved")
    return found


def read_checkpoint(path: _binding.PathLike) -> tuple[GPT2Config, dict[str, numpy.ndarray[Any, Any]]]:
    """Returns the shape of a checkpoint of either version, and all its tensors by name, as float32 with the shapes in
    `GPT2Config.tensor_shapes()` (bfloat16 is widened exactly).

    Raises:
        FileError, FormatError: as for `Checkpoint`.
    """
    with Checkpoint(path) as checkpoint:
        return checkpoint.config, {name: checkpoint.tensor(name) for name in checkpoint.config.tensor_shapes()}


def read_header(stream: BinaryIO, name: str) -> tuple[Sizes, str, int]:
    """Returns the sizes in the header of a checkpoint, possible or not, its dtype, and the size of the file. Raises
    FormatError for any other header."""
    numbers = header_numbers(stream.read(HEADER_BYTES), name, "a checkpoint")
    magic, version, maxT, V, L, NH, C, Vp = numbers[:8]
    if magic != MAGIC:
        raise FormatError(f"{name}: magic {magic}, expected {MAGIC}: not an llm.c checkpoint; llm.c aborts")
    dtype = next((dtype for dtype, number in VERSIONS.items() if number == version), None)
    if dtype is None:
        raise FormatError(f"{name}: version {version}, expected 3 (fp32) or 5 (bf16); llm.c aborts", 4)
    return Sizes(V, Vp, maxT, L, NH, C), dtype, os.fstat(stream.fileno()).st_size


def file_bytes(sizes: Sizes, dtype: str) -> int:
    """Returns the size of a checkpoint's file that its header implies."""
    return HEADER_BYTES + sizes.num_parameters * ITEM_BYTES[dtype]


# ----------------------------------------------------------------------------------------------------
# Summaries of tensors


def summarize(model: Checkpoint, name: str) -> dict[str, Any]:
    """Summarizes a tensor, which it reads in blocks; of wte, without the padding.

    Returns:
        "shape": the shape in the file, padding included. "mean", "std", "min", "max": over the finite weights, or 0 if
        there are none. "nonfinite": the number of weights that are infinite or NaN, a sign that training diverged.

    Raises:
        FormatError: the file was truncated in the meantime.
    """
    shape = model.config.tensor_shapes()[name]
    count = nonfinite = 0
    total = squares = 0.0
    least, greatest = numpy.inf, -numpy.inf
    for raw in model.raw_blocks(name, model.config.vocab_size if name == "wte" else shape[0]):
        weights = from_file_type(raw, model.dtype).astype(numpy.float64)
        finite = weights[numpy.isfinite(weights)]
        nonfinite += weights.size - finite.size
        if finite.size:
            count += finite.size
            total += float(finite.sum())
            squares += float(numpy.square(finite).sum())
            least, greatest = min(least, float(finite.min())), max(greatest, float(finite.max()))
    mean = total / count if count else 0.0
    std = sqrt(max(0.0, squares / count - mean**2)) if count else 0.0
    least, greatest = (least, greatest) if count else (0.0, 0.0)
    return {"shape": shape, "mean": mean, "std": std, "min": least, "max": greatest, "nonfinite": nonfinite}


# ----------------------------------------------------------------------------------------------------
# A model to start training from


@dataclass(frozen=True)
class ModelOptions:
    """A model to make. The fields are keyword arguments of `make_workspace`, which errors name."""

    depth: int | None = option(
        None,
        "one of llm.c's model sizes: d6, d12, d24, ... (default: d12; for a workspace in fp32, a size that two cores"
        " train in half an hour, which is smaller for a longer text)",
        "D",
        unit="depth",
    )
    layers: int | None = option(None, "number of layers (default: from --depth)", "L")
    heads: int | None = option(None, "number of heads (default: from --depth)", "NH")
    channels: int | None = option(None, "number of channels (default: from --depth)", "C")
    sequence_length: int | None = option(
        None, "the longest sequence (default: 1024; 256 for a model without depth)", "T"
    )
    dtype: str = option("fp32", "fp32 (for the CPU) or bf16 (CUDA)", "D")
    pad_vocab: int = option(128, "pad the vocabulary to a multiple of N")
    seed: int = option(42, "random seed for the weights")

    def __post_init__(self) -> None:
        check_dtype(self.dtype)
        for name in ("layers", "heads", "channels", "sequence_length"):
            if (size := getattr(self, name)) is not None:
                object.__setattr__(self, name, whole_number(name, size, 1))

    def for_text(self, vocab_size: int, tokens: int) -> ModelOptions:
        """Returns the options of a model to train on a text of this many tokens: without a depth and a shape, one that
        two cores train in half an hour, unless its type is for GPUs."""
        if self.depth is not None or self.dtype != "fp32":
            return self
        layers, channels = laptop_shape(padded_rows(vocab_size, self.pad_vocab), tokens)
        channels = self.channels or channels
        return replace(
            self,
            layers=self.layers or layers,
            heads=self.heads or max(1, channels // LAPTOP_HEAD),
            channels=channels,
            sequence_length=self.sequence_length or LAPTOP_SEQUENCE,
        )

    def config(self, vocab_size: int) -> GPT2Config:
        """Returns the shape of the model for a vocabulary."""
        shape = {"layers": self.layers, "heads": self.heads, "channels": self.channels}
        depth = 12 if self.depth is None else self.depth
        return GPT2Config.of_depth(depth, vocab_size, self.sequence_length or 1024, self.pad_vocab, **shape)


def write_random_checkpoint(
    path: _binding.PathLike, config: GPT2Config, *, dtype: str = "fp32", seed: int = 42
) -> None:
    """Writes a model to start training from, atomically, with GPT-2's initialization.

    Weights are N(0, 0.02), except attproj and fcproj, which feed the residual stream: N(0, 0.02 / sqrt(2 L)). Layer
    norms are 1 and 0, biases 0. Rows V..Vp of wte are zero, because CUDA leaves raw logits as the gradient of the
    padding: with random rows the gradient's norm is 904 instead of 1.7.

    Args:
        dtype: "fp32" (version 3: CPU, and CUDA built with PRECISION=FP32) or "bf16" (version 5: CUDA).
        seed: an integer from 0. The same seed gives the same file.

    Raises:
        ArgumentError, FileError.
    """
    check_dtype(dtype)
    if seed < 0:
        raise ArgumentError(f"{param('seed')} must be at least 0, not {seed}")
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
            for start in range(0, drawn, _BLOCK_ITEMS):
                yield rng.standard_normal(min(_BLOCK_ITEMS, drawn - start), dtype=numpy.float32) * numpy.float32(std)
            yield numpy.zeros(size - drawn, dtype=numpy.float32)
