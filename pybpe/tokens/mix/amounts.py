"""Computes how many tokens a recipe asks of its sources, before anything is read, and refuses impossible amounts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction

from ...arguments import number_of
from ...errors import ArgumentError, LimitError
from .recipe import Recipe, Source


def asked_tokens(recipe: Recipe, sizes: Mapping[str, int]) -> dict[str, int]:
    """Returns the tokens that a recipe asks of its sources, by name.

    Args:
        recipe: the recipe.
        sizes: the tokens in the train split of every source.

    Raises:
        ArgumentError: the recipe contradicts itself. LimitError: a source is too small. The error has the largest
            amount that would fit.
    """
    for name, size in sizes.items():
        if not size:
            raise LimitError(f"the source {name} has no tokens to train on")
    asked = _fixed(recipe, sizes)
    fixed = sum(asked.values())
    is_weighted = any(source.kind == "weight" for source in recipe.sources)
    if is_weighted and recipe.tokens is None:
        raise ArgumentError("a weight is a share of the recipe's tokens: add tokens to the recipe")
    if is_weighted and (recipe.tokens or 0) <= fixed:
        raise ArgumentError(
            f"the sources without weights already have {number_of(fixed, 'token')}: tokens must be more, not"
            f" {recipe.tokens}"
        )
    if not is_weighted and recipe.tokens not in (None, fixed):
        raise ArgumentError(
            f"the sources have {number_of(fixed, 'token')} together, not {recipe.tokens}: remove tokens, or give a"
            " source a weight"
        )
    asked = _with_shares(recipe, asked, recipe.tokens or fixed)
    for source in recipe.sources:
        if not _suffices(source, asked, sizes):
            raise _too_small(recipe, source, asked, sizes)
    return asked


def _fixed(recipe: Recipe, sizes: Mapping[str, int]) -> dict[str, int]:
    """Returns the tokens that are asked of sources without weights; of others, 0."""
    factors = {source.name: {"weight": 0, "tokens": 1, "epochs": sizes[source.name]} for source in recipe.sources}
    return {source.name: round(source.amount * factors[source.name][source.kind]) for source in recipe.sources}


def _with_shares(recipe: Recipe, fixed: Mapping[str, int], tokens: int) -> dict[str, int]:
    """Returns these amounts, and divides the rest of the tokens by weight. The sum is exact, and no share is off by
    a token or more."""
    weights = {source.name: source.amount for source in recipe.sources if source.kind == "weight"}
    total, rest, before, shares = sum(weights.values()), tokens - sum(fixed.values()), Fraction(0), dict(fixed)
    for name, weight in weights.items():
        end = before + weight
        shares[name] = round(end * rest / total) - round(before * rest / total)
        before = end
    return shares


# ----------------------------------------------------------------------------------------------------
# What does not fit


def _suffices(source: Source, asked: Mapping[str, int], sizes: Mapping[str, int]) -> bool:
    is_limited = source.limits_epochs or source.kind != "epochs"
    return not is_limited or asked[source.name] <= source.max_epochs * sizes[source.name]


def _too_small(recipe: Recipe, source: Source, asked: Mapping[str, int], sizes: Mapping[str, int]) -> LimitError:
    """Returns the error for a source that would be repeated too often."""
    name, size = source.name, sizes[source.name]
    advice = f"raise its max_epochs from {float(source.max_epochs):g}"
    if source.kind != "weight":
        most = number_of(int(source.max_epochs * size), "token")
        advice = f"the largest amount of it that fits is {most}; or {advice}"
    elif (largest := _largest(recipe, sizes)) is not None:
        advice = f"the largest tokens that fits is {largest}; or {advice}"
    return LimitError(
        f"the source {name} has {size} tokens, and {asked[name]} are asked of it, {asked[name] / size:.2f} times as"
        f" many: {advice}"
    )


def _largest(recipe: Recipe, sizes: Mapping[str, int]) -> int | None:
    """Returns the largest `tokens` of a recipe with which every source suffices, or None if there is none. Every share
    grows with it, so bisection finds it."""
    fixed = _fixed(recipe, sizes)

    def fits(tokens: int) -> bool:
        asked = _with_shares(recipe, fixed, tokens)
        return all(_suffices(source, asked, sizes) for source in recipe.sources)

    least = sum(fixed.values())
    count = bisect_left(range(least + 1, recipe.tokens or 0), True, key=lambda tokens: not fits(tokens))
    return least + count if count else None
