"""The batch that shards must serve."""

from __future__ import annotations

from dataclasses import dataclass

from pybpe.errors import ArgumentError


@dataclass(frozen=True)
class Batch:
    """B and T of each of `processes` processes; the defaults are compiled into llm.c's CPU trainer.

    Raises:
        ArgumentError: one is below 1.
    """

    B: int = 4
    T: int = 64
    processes: int = 1

    def __post_init__(self) -> None:
        if min(self.B, self.T, self.processes) < 1:
            raise ArgumentError(f"B, T and processes must be at least 1, not {self.B}, {self.T}, {self.processes}")

    @property
    def min_tokens(self) -> int:
        """What every shard must hold: one batch, and one token more for the last target."""
        return self.processes * self.B * self.T + 1

    def needs(self) -> str:
        """The same as a sum."""
        return f"{self.processes} x B {self.B} x T {self.T} + 1 = {self.min_tokens}"

    def largest_fit(self, tokens: int) -> str:
        """The largest B and T, for as many processes, that a shard with so many tokens can serve."""
        fit = (tokens - 1) // self.processes  # B * T may be at most this
        if fit < 1:
            return "no B and T fit: give more text" + (" or fewer processes" if self.processes > 1 else "")
        B, T = (fit // self.T, self.T) if fit >= self.T else (1, fit)
        return f"the largest that fit are B {B} with T {T}"


CPU_BATCH = Batch()
