"""llm.c's DataLoader, slowly: the oracle for csrc/llmc/loader.c.

Follows llmc/dataloader.h and llmc/rand.h line by line, over lists of tokens instead of files. The generator is numpy's
mt19937.
"""

from collections.abc import Sequence

import numpy


def random_permutation(generator: numpy.random.RandomState, items: list[int]) -> None:
    """As in rand.h."""
    for i in range(len(items) - 1, 0, -1):
        j = int(generator.randint(1 << 32, dtype=numpy.uint32)) % (i + 1)
        items[i], items[j] = items[j], items[i]


class DataLoader:
    """dataloader_init, dataloader_next_batch and dataloader_reset."""

    def __init__(
        self, shards: Sequence[Sequence[int]], B: int, T: int, rank: int = 0, world: int = 1, shuffle: bool = False
    ) -> None:
        self.shards = shards
        self.batch = B * T
        self.rank = rank
        self.world = world
        self.shuffle = shuffle
        self.rng = numpy.random.RandomState(42 + rank)
        self.shard_indices = list(range(len(shards)))
        self.reset()

    def reset(self) -> None:
        if self.shuffle:
            random_permutation(self.rng, self.shard_indices)
        self._load(0)

    def _load(self, shard_at: int) -> None:
        self.shard_at = shard_at
        self.sample_at = 0
        self.tokens = self.shards[self.shard_indices[shard_at]]
        samples = (len(self.tokens) - 1) // (self.world * self.batch)
        self.sample_indices = list(range(samples))
        if self.shuffle:
            random_permutation(self.rng, self.sample_indices)

    def next(self) -> tuple[list[int], list[int]]:
        """Returns inputs and targets, each a flat list of B * T tokens."""
        if self.sample_at >= len(self.sample_indices):
            if self.shard_at == len(self.shards) - 1:
                self.reset()
            else:
                self._load(self.shard_at + 1)
        start = (self.sample_indices[self.sample_at] * self.world + self.rank) * self.batch
        self.sample_at += 1
        part = list(self.tokens[start : start + self.batch + 1])
        return part[:-1], part[1:]
