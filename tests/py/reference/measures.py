"""Measures of tokenizers by their definitions: slow, obvious, correct."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from fractions import Fraction

import pybpe


def renyi_entropy(counts: Sequence[int], alpha: float) -> float | None:
    """Returns log2(sum(p^alpha)) / (1 - alpha)."""
    total = sum(counts)
    if not total:
        return None
    return math.log2(math.fsum((count / total) ** alpha for count in counts if count)) / (1 - alpha)


def zipf(counts: Sequence[int]) -> tuple[float | None, float | None]:
    """Returns the slope of the least-squares line through (log rank, log count), and its r^2."""
    seen = sorted((count for count in counts if count), reverse=True)
    points = [(math.log(rank), math.log(count)) for rank, count in enumerate(seen, 1)]
    if len(points) < 2:
        return None, None
    n = len(points)
    mean_x, mean_y = math.fsum(x for x, _ in points) / n, math.fsum(y for _, y in points) / n
    xy = math.fsum((x - mean_x) * (y - mean_y) for x, y in points)
    xx = math.fsum((x - mean_x) ** 2 for x, _ in points)
    yy = math.fsum((y - mean_y) ** 2 for _, y in points)
    return xy / xx, xy * xy / (xx * yy) if seen[0] != seen[-1] else None


def gini(costs: Sequence[Fraction]) -> Fraction:
    """Returns the coefficient from the area under the Lorenz curve: 1 - 2 * area."""
    ordered, total, n = sorted(costs), sum(costs), len(costs)
    shares = [sum(ordered[:i], Fraction(0)) / total for i in range(n + 1)]
    area = sum(((a + b) / 2 / n for a, b in zip(shares, shares[1:])), Fraction(0))
    return 1 - 2 * area


def parts(text: bytes, specials: Iterable[str]) -> list[bytes]:
    """Returns the texts between special tokens; longer special tokens match first."""
    found = sorted((special.encode() for special in specials), key=len, reverse=True)
    return re.split(b"|".join(map(re.escape, found)), text) if found else [text]


def size(texts: Iterable[bytes]) -> tuple[int, int, int]:
    """Returns the bytes, characters and words of separate texts; each byte that is not UTF-8 is a character."""
    decoded = [text.decode("utf-8", "surrogateescape") for text in texts]
    lengths = [len(text.encode("utf-8", "surrogateescape")) for text in decoded]
    return sum(lengths), sum(map(len, decoded)), sum(len(re.findall(r"\S+", text)) for text in decoded)


def token_counts(tok: pybpe.Tokenizer, texts: Iterable[bytes], visible: bool) -> Counter[int]:
    """Returns how often each id occurs in separate texts."""
    allowed = tok.model.visible if visible else frozenset()
    return Counter(i for text in texts for i in tok.encode(text, allowed_special=allowed))


def ordinary(tok: pybpe.Tokenizer) -> list[int]:
    """Returns the ids that can occur in a text."""
    hidden = {i for text, i in tok.special_tokens.items() if text not in tok.model.visible}
    return [i for i in range(tok.vocab_size) if i in tok.model.vocab and i not in hidden]
