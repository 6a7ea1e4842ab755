"""Training as the Rust library rustbpe does it, by its definition: slow, obvious, right."""

from collections import Counter
from collections.abc import Mapping

from .encode import Pair


def train(words: Mapping[bytes, int], merges: int) -> list[Pair]:
    """Returns up to `merges` merges, each of the most frequent pair, or of several the one with the lowest ids: of
    bytes 0 to 255, and of what a merge makes the next one."""
    corpus = [(list(word), count) for word, count in words.items()]
    tokens = [bytes([byte]) for byte in range(256)]
    made: list[Pair] = []
    for _ in range(merges):
        pairs: Counter[tuple[int, int]] = Counter()
        for ids, count in corpus:
            for pair in zip(ids, ids[1:]):
                pairs[pair] += count
        if not pairs:
            break
        left, right = min(pairs, key=lambda pair: (-pairs[pair], pair))
        for ids, _ in corpus:
            for i in range(len(ids) - 1):
                if ids[i : i + 2] == [left, right]:
                    ids[i : i + 2] = [len(tokens)]
        tokens.append(tokens[left] + tokens[right])
        made.append((tokens[left], tokens[right]))
    return made
