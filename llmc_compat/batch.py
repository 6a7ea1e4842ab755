"""The batch size for which every shard must be large enough."""

from __future__ import annotations

from dataclasses import dataclass

from pybpe.errors import ArgumentError


@dataclass(frozen=True)
class Batch:
    """Batch size B and sequence length T per process. The defaults are compiled into llm.c's CPU trainer.

    Raises:
        ArgumentError: a value is below 1.
    """

    B: int = 4
    T: int = 64
    processes: int = 1

    def __post_init__(self) -> None:
        if min(self.B, self.T, self.processes) < 1:
            raise ArgumentError(f"B, T and processes must be at least 1, not {self.B}, {self.T}, {self.processes}")

    @property
    def min_tokens(self) -> int:
        """The fewest tokens a shard may hold: one batch, plus one token for the last target."""
        return self.processes * self.B * self.T + 1

    def needs(self) -> str:
        """`min_tokens` written as a formula."""
        return f"{self.processes} x B {self.B} x T {self.T} + 1 = {self.min_tokens}"

    def largest_fit(self, tokens: int) -> str:
        """Describes the largest B and T that a shard of `tokens` tokens allows with this many processes."""
        fit = (tokens - 1) // self.processes  # B * T may be at most this
        if fit < 1:
            return "no B and T fit: add more text" + (" or use fewer processes" if self.processes > 1 else "")
        B, T = (fit // self.T, self.T) if fit >= self.T else (1, fit)
        return f"the largest batch that fits is B {B} x T {T}"


CPU_BATCH = Batch()
