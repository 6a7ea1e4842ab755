"""BPE dropout by its definition: every outcome of a word with its probability."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

from .encode import Pair

Part = tuple[int, bytes]  # where it begins in the word, and its bytes
Entry = tuple[int, int]  # rank, and where the pair begins
Outcomes = dict[tuple[bytes, ...], Fraction]


def outcomes(word: bytes, merges: Sequence[Pair], rate: Fraction) -> Outcomes:
    """The queue of Hugging Face's tokenizers: its first entry that is not passed over leaves it, and merges if it is
    still a pair."""
    ranks = {pair: rank for rank, pair in reversed(list(enumerate(merges)))}

    def entries(parts: tuple[Part, ...]) -> set[Entry]:
        pairs = zip(parts, parts[1:])
        return {(ranks[a[1], b[1]], a[0]) for a, b in pairs if (a[1], b[1]) in ranks}

    def merged(parts: tuple[Part, ...], at: int) -> tuple[Part, ...]:
        i = next(i for i, part in enumerate(parts) if part[0] == at)
        return (*parts[:i], (at, parts[i][1] + parts[i + 1][1]), *parts[i + 2 :])

    @cache
    def continued(parts: tuple[Part, ...], queue: tuple[Entry, ...]) -> Outcomes:
        found: Counter[tuple[bytes, ...]] = Counter()
        for passed, entry in enumerate(queue):
            left, after = set(queue) - {entry}, parts
            if entry in entries(parts):
                after = merged(parts, entry[1])
                left |= entries(after) - entries(parts)
            for outcome, chance in continued(after, tuple(sorted(left))).items():
                found[outcome] += rate**passed * (1 - rate) * chance
        found[tuple(part for _, part in parts)] += rate ** len(queue)
        return dict(found)

    start = tuple((i, word[i : i + 1]) for i in range(len(word)))
    return continued(start, tuple(sorted(entries(start))))
