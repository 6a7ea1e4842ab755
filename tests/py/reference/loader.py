"""llm.c's DataLoader, slowly: the oracle for csrc/llmc/loader.c.

Follows llmc/dataloader.h and llmc/rand.h line by line, over lists of tokens instead of files. The generator is
written out from the definition of mt19937 (Matsumoto and Nishimura, 1998).
"""

from collections.abc import Sequence


class MersenneTwister:
    """mt19937: 32-bit numbers, as PyTorch and llm.c draw them."""

    def __init__(self, seed: int) -> None:
        self.state = [seed & 0xFFFFFFFF]
        for i in range(1, 624):
            previous = self.state[-1]
            self.state.append((1812433253 * (previous ^ (previous >> 30)) + i) & 0xFFFFFFFF)
        self.at = 624

    def _twist(self) -> None:
        for i in range(624):
            y = (self.state[i] & 0x80000000) | (self.state[(i + 1) % 624] & 0x7FFFFFFF)
            self.state[i] = self.state[(i + 397) % 624] ^ (y >> 1) ^ (0x9908B0DF if y & 1 else 0)
        self.at = 0

    def next(self) -> int:
        if self.at == 624:
            self._twist()
        y = self.state[self.at]
        self.at += 1
        y ^= y >> 11
        y ^= (y << 7) & 0x9D2C5680
        y ^= (y << 15) & 0xEFC60000
        return y ^ (y >> 18)

    def shuffle(self, items: list[int]) -> None:
        """Does the work of random_permutation in rand.h."""
        for i in range(len(items) - 1, 0, -1):
            j = self.next() % (i + 1)
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
        self.rng = MersenneTwister(42 + rank)
        self.shard_indices = list(range(len(shards)))
        self.reset()

    def reset(self) -> None:
        if self.shuffle:
            self.rng.shuffle(self.shard_indices)
        self._load(0)

    def _load(self, shard_at: int) -> None:
        self.shard_at = shard_at
        self.sample_at = 0
        self.tokens = self.shards[self.shard_indices[shard_at]]
        samples = (len(self.tokens) - 1) // (self.world * self.batch)
        self.sample_indices = list(range(samples))
        if self.shuffle:
            self.rng.shuffle(self.sample_indices)

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
