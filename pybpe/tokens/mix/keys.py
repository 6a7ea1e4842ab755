"""The random numbers that decide which documents are drawn, and in what order they are written.

Each document has a number in its split of its source. A key is a function of the seed, of what the key is for, and of
that number, so it depends neither on the number of workers nor on what fits in memory. Documents are in random order if
they are sorted by their keys: "decorating" and sorting, as in shuf(1).

A key is splitmix64's finalizer applied twice, to a counter with a random start (Steele, Lea and Flood, "Fast Splittable
Pseudorandom Number Generators", 2014). Starts are BLAKE2b hashes, so that keys for different purposes are independent.
"""

from __future__ import annotations

import hashlib
import json
import struct

from ..._numpy import Array, numpy
from ...support.permutation import scrambled

_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, made odd


class Keys:
    """The keys of documents for one purpose, which names and numbers describe."""

    def __init__(self, *purpose: str | int) -> None:
        digest = hashlib.blake2b(json.dumps(purpose).encode(), digest_size=32).digest()
        self._words = struct.unpack("<4Q", digest)

    def first(self, documents: Array) -> Array:
        """Returns the keys of these documents: uint64. Different documents have different keys."""
        return self._word(documents, 0)

    def second(self, documents: Array) -> Array:
        """Returns independent keys, which break ties between documents of different purposes."""
        return self._word(documents, 2)

    def _word(self, documents: Array, at: int) -> Array:
        start, change = (numpy.uint64(word) for word in self._words[at : at + 2])
        return scrambled(scrambled(documents.astype(numpy.uint64) * numpy.uint64(_GOLDEN) + start) ^ change)


def drawing_keys(seed: int, source: str, number: int) -> Keys:
    """Returns the keys whose order is the order in which pass `number` over a source draws its documents."""
    return Keys("draw", seed, source, number)


def writing_keys(seed: int, split: str, phase: int, source: str, number: int) -> Keys:
    """Returns the keys by which the output orders the documents that a phase draws from pass `number` over a source."""
    return Keys("write", seed, split, phase, source, number)
