"""Parity-aware training as it is defined (Foroutan et al. 2025, Algorithm 1): slow, obvious, right."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import NamedTuple

from .encode import Pair, apply, split

Rule = Callable[[bytes], bool]


class Language(NamedTuple):
    """The words to learn from, the words of the development text, and what its tokens are divided by."""

    words: Mapping[bytes, int]
    measured: Mapping[bytes, int]
    size: int


def _segmented(words: Mapping[bytes, int], merges: Sequence[Pair]) -> Counter[tuple[bytes, ...]]:
    found: Counter[tuple[bytes, ...]] = Counter()
    for word, count in words.items():
        found[tuple(split(word, merges))] += count
    return found


def _merged(words: Counter[tuple[bytes, ...]], pair: Pair) -> Counter[tuple[bytes, ...]]:
    found: Counter[tuple[bytes, ...]] = Counter()
    for word, count in words.items():
        found[tuple(apply(list(word), pair))] += count
    return found


def _pairs(words: Counter[tuple[bytes, ...]]) -> Counter[Pair]:
    found: Counter[Pair] = Counter()
    for word, count in words.items():
        for pair in zip(word, word[1:]):
            found[pair] += count
    return found


def train(
    languages: Sequence[Language],
    total: int,
    *,
    merges: Sequence[Pair] = (),
    rules: Iterable[Rule] = (),
) -> list[Pair]:
    """Up to `total` tokens besides bytes. Each step takes the language with the highest cost, of several the first,
    that has a pair that the rules allow; of its most frequent pairs, the greatest."""
    rules = list(rules)
    made = list(merges)
    learned = [_segmented(language.words, made) for language in languages]
    measured = [_segmented(language.measured, made) for language in languages]
    while len({left + right for left, right in made}) < total:
        costs = [
            Fraction(sum(len(word) * count for word, count in words.items()), language.size)
            for language, words in zip(languages, measured)
        ]
        best = None
        for i in sorted(range(len(languages)), key=lambda i: (-costs[i], i)):
            pairs = _pairs(learned[i])
            allowed = [p for p, n in pairs.items() if n > 0 and all(rule(p[0] + p[1]) for rule in rules)]
            if allowed:
                best = max(allowed, key=lambda pair: (pairs[pair], pair))
                break
        if best is None:
            break
        made.append(best)
        learned = [_merged(words, best) for words in learned]
        measured = [_merged(words, best) for words in measured]
    return made
