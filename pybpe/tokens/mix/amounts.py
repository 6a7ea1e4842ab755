"""Computes how many tokens each phase asks of each source, before anything is read, and refuses what is impossible."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from fractions import Fraction

from ...arguments import counted
from ...errors import ArgumentError, LimitError
from .recipe import Phase, Recipe, Source


def asked_tokens(recipe: Recipe, sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """Returns the tokens that each phase asks of its sources, by name.

    Args:
        recipe: the recipe.
        sizes: the tokens in the train split of each source.

    Raises:
        ArgumentError: a phase contradicts itself. LimitError: a source is too small; the error has the largest amount
            that would fit.
    """
    for name, size in sizes.items():
        if not size:
            raise LimitError(f"the source {name} has no tokens to train on")
    asked = [_of_phase(phase, sizes) for phase in recipe.phases]
    for source in recipe.sources:
        used = sum(amounts.get(source.name, 0) for amounts in asked)
        if _is_limited(recipe, source) and used > source.max_epochs * sizes[source.name]:
            raise _too_small(recipe, source, asked, sizes)
    return asked


def _of_phase(phase: Phase, sizes: Mapping[str, int]) -> dict[str, int]:
    asked = {name: _fixed(phase, name, sizes) for name in phase.amounts}
    fixed = sum(asked.values())
    weights = {name: amount.value for name, amount in phase.amounts.items() if amount.kind == "weight"}
    if not weights:
        if phase.tokens not in (None, fixed):
            raise ArgumentError(
                f"phase {phase.name}: its sources have {counted(fixed, 'token')} together, not {phase.tokens}: remove"
                " tokens, or give a source a weight"
            )
        return asked
    if phase.tokens is None:
        raise ArgumentError(f"phase {phase.name}: a weight is a share of its tokens: add tokens to the recipe")
    if phase.tokens <= fixed:
        raise ArgumentError(
            f"phase {phase.name}: the sources without weights already have {counted(fixed, 'token')}: tokens must"
            f" be more, not {phase.tokens}"
        )
    return asked | _shares(weights, phase.tokens - fixed)


def _fixed(phase: Phase, name: str, sizes: Mapping[str, int]) -> int:
    amount = phase.amounts[name]
    if amount.kind == "weight":
        return 0
    return round(amount.value * (sizes[name] if amount.kind == "epochs" else 1))


def _shares(weights: Mapping[str, Fraction], tokens: int) -> dict[str, int]:
    """Divides tokens by weight. The sum is exact, and each share is off by less than one token."""
    total, before, shares = sum(weights.values()), Fraction(0), {}
    for name, weight in weights.items():
        end = before + weight
        shares[name] = round(end * tokens / total) - round(before * tokens / total)
        before = end
    return shares


# ----------------------------------------------------------------------------------------------------
# What does not fit


def _is_limited(recipe: Recipe, source: Source) -> bool:
    kinds = {phase.amounts[source.name].kind for phase in recipe.phases if source.name in phase.amounts}
    return source.limits_epochs or kinds != {"epochs"}


def _too_small(recipe: Recipe, source: Source, asked: list[dict[str, int]], sizes: Mapping[str, int]) -> LimitError:
    """Returns the error for a source that would be repeated too often."""
    name, size = source.name, sizes[source.name]
    used = sum(amounts.get(name, 0) for amounts in asked)
    most = int(source.max_epochs * size)
    last = max(number for number, amounts in enumerate(asked) if amounts.get(name))
    phase = recipe.phases[last]
    left = most - (used - asked[last][name])
    advice = f"raise its max_epochs from {float(source.max_epochs):g}"
    largest = _largest(recipe, last, sizes)
    if largest is not None:
        advice = f"the largest tokens that fits is {largest}; or {advice}"
    elif left > 0 and phase.amounts[name].kind != "weight":
        advice = f"the largest amount of it that fits is {counted(left, 'token')}; or {advice}"
    return LimitError(
        f"phase {phase.name}: the source {name} has {size} tokens, and {used} are asked of it, {used / size:.2f} times"
        f" as many: {advice}"
    )


def _largest(recipe: Recipe, number: int, sizes: Mapping[str, int]) -> int | None:
    """Returns the largest `tokens` of a phase with which every source suffices, the other phases unchanged; None if
    there is none. Every amount grows with it, so bisection finds it."""
    phase = recipe.phases[number]
    others = [_of_phase(other, sizes) for other in recipe.phases[:number] + recipe.phases[number + 1 :]]

    def fits(tokens: int) -> bool:
        asked = _of_phase(Phase(phase.name, tokens, phase.amounts), sizes)
        return all(
            asked[source.name] + sum(other.get(source.name, 0) for other in others)
            <= source.max_epochs * sizes[source.name]
            for source in recipe.sources
            if source.name in asked and _is_limited(recipe, source)
        )

    least = sum(_fixed(phase, name, sizes) for name in phase.amounts)
    count = bisect_left(range(least + 1, phase.tokens or 0), True, key=lambda tokens: not fits(tokens))
    return least + count if count else None
