"""Byte-level BPE by its definition: slow, obvious, correct."""

from collections import Counter
from collections.abc import Iterable, Sequence

Pair = tuple[bytes, bytes]


def train(words: Iterable[bytes], merges: int) -> list[Pair]:
    """Returns up to `merges` merges, each of the most frequent pair, or of the greatest of equally frequent pairs."""
    corpus = Counter(tuple(bytes([byte]) for byte in word) for word in words)
    made: list[Pair] = []
    for _ in range(merges):
        pairs: Counter[Pair] = Counter()
        for word, count in corpus.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += count
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        made.append(best)
        corpus = Counter({tuple(apply(list(word), best)): count for word, count in corpus.items()})
    return made


def apply(parts: list[bytes], pair: Pair) -> list[bytes]:
    """Merges a pair wherever it occurs, from left to right."""
    out: list[bytes] = []
    i = 0
    while i < len(parts):
        if tuple(parts[i : i + 2]) == pair:
            out.append(pair[0] + pair[1])
            i += 2
        else:
            out.append(parts[i])
            i += 1
    return out


def split(word: bytes, merges: Sequence[Pair]) -> list[bytes]:
    """Returns the tokens of one word: merges the leftmost pair with the lowest rank until no pair can be merged."""
    ranks = {pair: rank for rank, pair in reversed(list(enumerate(merges)))}
    parts = [bytes([byte]) for byte in word]
    while True:
        found = [(ranks[pair], i) for i, pair in enumerate(zip(parts, parts[1:])) if pair in ranks]
        if not found:
            return parts
        _, i = min(found)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


def recover(tokens: Sequence[bytes]) -> list[Pair]:
    """Returns the merges that the order of tokens implies: the merges of lower tokens leave two parts of each token."""
    made: list[Pair] = []
    for token in tokens:
        parts = split(token, made) if len(token) > 1 else []
        if len(parts) == 2:
            made.append((parts[0], parts[1]))
    return made
