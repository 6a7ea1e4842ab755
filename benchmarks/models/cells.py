"""The models to train: one cell of a table each, for one seed and learning rate."""

from __future__ import annotations

from typing import NamedTuple

BATCH, LENGTH = 4, 128  # tokens per step: BATCH x LENGTH


class Cell(NamedTuple):
    """A model.

    Attributes:
        text: name of the text.
        kind: "bpe", "superwords" or "whole" (whole characters).
        vocab_size: number of tokens.
        basis: "compute": as many tokens as the compute pays for. "text": so many that the model reads as much text as
            that with BPE of the same size.
        seed: sets the initial weights and the order of the text.
        rate: the learning rate.
    """

    text: str
    kind: str
    vocab_size: int
    basis: str
    seed: int
    rate: float

    @property
    def name(self) -> str:
        """A name for files."""
        return f"{self.text}-{self.kind}-{self.vocab_size}-{self.basis}-{self.rate:g}-{self.seed}"


class Study(NamedTuple):
    """What all models have in common: their shape, and the tokens that set the compute."""

    layers: int
    channels: int
    tokens: int

    @property
    def name(self) -> str:
        """A name for files."""
        return f"{self.layers}x{self.channels}-{self.tokens}"

    @property
    def parameters(self) -> int:
        """The parameters without embeddings."""
        return 12 * self.layers * self.channels**2

    @property
    def compute(self) -> float:
        """The floating-point operations of the training of each model."""
        return 6.0 * self.parameters * self.tokens

    def affordable(self, vocab_size: int) -> float:
        """Returns the number of tokens that the compute pays for."""
        return self.compute / (6 * (self.parameters + vocab_size * self.channels))
