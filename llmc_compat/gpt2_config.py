"""The shape of a GPT-2 as llm.c builds it: its sizes, and the tensors they imply."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from pybpe import padded_vocab_size
from pybpe.arguments import param
from pybpe.errors import ArgumentError

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
    seen = laptop_tokens(tokens)
    fitting = [
        (layers, channels)
        for layers, channels in _LAPTOP_SHAPES
        if 6 * (12 * layers * channels * channels + padded_vocab_size * channels) * seen <= _LAPTOP_OPERATIONS
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
        """The total number of weights, padding included: what llm.c prints as num_parameters."""
        return sum(prod(shape) for shape in self.tensor_shapes().values())


class StoredTensor(NamedTuple):
    """A tensor of another program, which stores each layer by itself: its name and shape there, and the tensor and rows
    of llm.c's file that hold it."""

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
            raise ArgumentError(f"NH is {self.num_heads}, which does not divide C {self.channels}")
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
            layer: how the name of a tensor of layer {} begins.
            of_layer: llm.c's name without its last letter, w or b -> how the program's name goes on, without ".weight"
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
