"""Measures of a vocabulary on a text, computed from the counts of its tokens.

docs/comparing.md has the sources of the measures, and the evidence for their worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .._lazy import numpy

if TYPE_CHECKING:
    Counts = numpy.ndarray[Any, numpy.dtype[numpy.int64]]
    """The occurrences of every ordinary token, in any order: shape (tokens,)."""

ALPHA = 2.5  # the order of the Renyi entropy that Zouhar et al. (2023) found best
RARE = 100  # a token that occurs less often is rare: see Gowda and May (2020)


def renyi_entropy(counts: Counts, alpha: float = ALPHA) -> float | None:
    """Returns the Renyi entropy, in bits, of the distribution of the tokens of a text: log2(sum(p^alpha)) / (1 -
    alpha). None if there are no tokens."""
    seen = counts[counts > 0]
    if not len(seen):
        return None
    return abs(float(numpy.log2(((seen / seen.sum()) ** alpha).sum())) / (1 - alpha))  # of one token: 0, not -0


def efficiency(entropy: float | None, tokens: int) -> float | None:
    """Returns an entropy divided by the greatest entropy of this number of distinct tokens, or None if that is 0."""
    return None if entropy is None or tokens < 2 else entropy / math.log2(tokens)


def zipf(counts: Counts) -> tuple[float | None, float | None]:
    """Returns the straight line that fits a plot of log(count) over log(rank) best, for all tokens that occur. The most
    frequent one has rank 1.

    Returns:
        slope: about -1 if the tokens follow Zipf's law. None if fewer than two tokens occur.
        r2: how well the line fits: the share of the variance that it explains, 1 for a perfect fit. None if all tokens
            occur equally often.
    """
    seen = numpy.sort(counts[counts > 0])[::-1]
    if len(seen) < 2:
        return None, None
    x, y = numpy.log(numpy.arange(1, len(seen) + 1)), numpy.log(seen)
    x, y = x - x.mean(), y - y.mean()
    slope = float((x * y).sum() / (x * x).sum())
    if seen[0] == seen[-1]:
        return 0.0, None
    return slope, slope * float((x * y).sum() / (y * y).sum())


def gini(costs: Sequence[float]) -> float:
    """Returns the Gini coefficient of the costs of a text in several languages: the sum over all ordered pairs of |cost
    - cost|, divided by 2 n^2 mean(cost). 0 means equal costs.

    >>> gini([1.0, 1.0]), gini([1.0, 3.0])
    (0.0, 0.25)
    """
    differences = sum(abs(a - b) for a in costs for b in costs)
    return differences / (2 * len(costs) * sum(costs))
