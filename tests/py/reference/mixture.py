"""The order of a mixture, slowly: the oracle for pybpe/loading/mixture.py."""

import hashlib
import itertools
import struct
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction


def permuted(value: int, n: int, seed: int, epoch: int) -> int:
    """Computes the permutation of pybpe/loading/sampling.py by its definition, one number at a time."""
    half = next(k for k in itertools.count(1) if 4**k >= n)
    digest = hashlib.blake2b(f"{seed} {epoch}".encode(), digest_size=64).digest()
    while True:
        left, right = divmod(value, 2**half)
        for key in struct.unpack("<8Q", digest):
            z = right ^ key
            z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
            z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
            left, right = right, left ^ (z ^ z >> 31) % 2**half
        value = left * 2**half + right
        if value < n:
            return value


def deck(windows: int, name: str, seed: int, shuffle: bool) -> Iterator[int]:
    """Yields the windows of a source for ever: all of them in one order, then all in another."""
    own = int.from_bytes(hashlib.blake2b(f"{seed} {name}".encode(), digest_size=8).digest(), "little")
    for number in itertools.count():
        yield from ((permuted(i, windows, own, number) if shuffle else i) for i in range(windows))


def counts(weights: Mapping[str, float], samples: int) -> dict[str, int]:
    """Gives each source the whole part of its share, and one more to those with the largest rests."""
    shares = {
        name: Fraction(weight) * samples / sum(map(Fraction, weights.values())) for name, weight in weights.items()
    }
    found = {name: int(share) for name, share in shares.items()}
    by_rest = sorted(shares, key=lambda name: found[name] - shares[name])  # sorted() keeps the order of equal rests
    for name in by_rest[: samples - sum(found.values())]:
        found[name] += 1
    return found


def epochs(
    windows: Mapping[str, int], schedule: Sequence[Mapping[str, float]], samples: int, seed: int, shuffle: bool
) -> list[list[tuple[str, int]]]:
    """Returns the order of each epoch: (source, window) of each step. `schedule` has the weights of each epoch."""
    names = sorted(windows)
    decks = {name: deck(windows[name], name, seed, shuffle) for name in names}
    found = []
    for epoch, weights in enumerate(schedule):
        share = counts({name: weights[name] for name in names}, samples)
        drawn = [(name, next(decks[name])) for name in names for _ in range(share[name])]
        order = [permuted(i, samples, seed, epoch) if shuffle else i for i in range(samples)]
        found.append([drawn[i] for i in order])
    return found
