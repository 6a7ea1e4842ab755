"""A recipe: the sources of a mixture, and how much it gets of them. See docs/mixing.md.

seed = 1
tokens = 2_000_000_000

[sources.english]
data = "english"          # a folder that binarize wrote
weight = 0.9

[sources.code]
data = "code"
weight = 0.1
"""

from __future__ import annotations

import math
import os
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from ... import _binding
from ...arguments import number_of, shown
from ...errors import ArgumentError, LimitError
from ...reading.streams import read_toml

AMOUNTS = ("weight", "tokens", "epochs")
ALL = "all"
MAX_EPOCHS = 4.0  # Muennighoff et al., "Scaling Data-Constrained Language Models" (2023): up to 4 cost little
_SOURCE = ("data", "max_epochs", *AMOUNTS)
_RECIPE = ("seed", "tokens", "sources")


@dataclass(frozen=True)
class Source:
    """A source of documents.

    Attributes:
        name: its name.
        data: a folder that binarize wrote.
        kind, amount: how much the mixture gets: one of AMOUNTS, and a share, a number of tokens, or of passes over it.
        max_epochs: how often it may be repeated by a weight or a number of tokens.
        limits_epochs: whether the recipe gives max_epochs. Otherwise it does not limit `epochs`.
    """

    name: str
    data: str
    kind: str
    amount: Fraction
    max_epochs: Fraction
    limits_epochs: bool


@dataclass(frozen=True)
class Recipe:
    """A mixture.

    Attributes:
        seed: chooses the order of everything.
        tokens: how many the train split gets. None is the sum of the amounts.
        sources: see Source.
        content: the recipe as it was given, as JSON values, for the manifest.
    """

    seed: int
    tokens: int | None
    sources: tuple[Source, ...]
    content: Mapping[str, Any]

    def with_seed(self, seed: int | None) -> Recipe:
        """Returns the recipe with another seed, unless it is None."""
        if seed is None:
            return self
        return replace(self, seed=seed, content={**self.content, "seed": seed})


def load_recipe(recipe: _binding.PathLike | Mapping[str, Any]) -> Recipe:
    """Reads a recipe: a TOML file, or the same content as a mapping. Paths in a file are relative to its folder. Those
    in a mapping to the current folder.

    Raises:
        FileError: the file cannot be read. FormatError: it is not TOML. ArgumentError: it is not a recipe.
    """
    path = None if isinstance(recipe, Mapping) else _binding.path_text(recipe)
    try:
        return _recipe(recipe, "") if path is None else _recipe(read_toml(path), os.path.dirname(path))
    except ArgumentError as error:
        raise ArgumentError(f"{path or 'recipe'}: {error}") from None


def _recipe(content: Any, folder: str) -> Recipe:
    """Returns a recipe whose paths are relative to a folder. Raises ArgumentError, which says where the fault is."""
    table = _table(content, "", _RECIPE)
    sources = table.get("sources")
    if not isinstance(sources, Mapping) or not sources or not all(isinstance(name, str) for name in sources):
        raise ArgumentError("sources: must be a table with at least one source")
    found = tuple(_source(name, value, folder) for name, value in sources.items())
    tokens = _integer(table["tokens"], "tokens", 1) if "tokens" in table else None
    return Recipe(_integer(table.get("seed", 0), "seed", None), tokens, found, _plain(content))


def _source(name: str, content: Any, folder: str) -> Source:
    where = f"sources.{name}"
    table = _table(content, where, _SOURCE)
    if "data" not in table:
        raise ArgumentError(f"{where}: needs data, a folder that binarize wrote")
    if not isinstance(table["data"], (str, os.PathLike)):
        raise ArgumentError(f"{where}: data must be a path, not {shown(table['data'])}")
    data = os.path.join(folder, _binding.path_text(table["data"]))
    most = _number(table.get("max_epochs", MAX_EPOCHS), f"{where}.max_epochs")
    return Source(name, data, *_amount(table, where), most, "max_epochs" in table)


def _amount(table: Mapping[str, Any], where: str) -> tuple[str, Fraction]:
    kinds = [kind for kind in AMOUNTS if kind in table]
    if len(kinds) != 1:
        raise ArgumentError(f"{where}: needs one of weight, tokens or epochs, but has {' and '.join(kinds) or 'none'}")
    kind, value = kinds[0], table[kinds[0]]
    if value == ALL and kind != "weight":
        return "epochs", Fraction(1)
    if kind == "tokens":
        return kind, Fraction(_integer(value, f"{where}.tokens", 1))
    return kind, _number(value, f"{where}.{kind}")


def _table(content: Any, where: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(content, Mapping):
        raise ArgumentError(f"{where or 'its content'}: must be a table, not {shown(content)}")
    for key in content:
        if key not in known:
            told = f"is unknown here; known are {', '.join(known)}"
            raise ArgumentError(f"{f'{where}.{key}'.lstrip('.')}: {told}")
    return content


def _integer(value: Any, where: str, least: int | None) -> int:
    is_integer = isinstance(value, int) or (isinstance(value, float) and value.is_integer())  # such as 1e9
    if isinstance(value, bool) or not is_integer or (least is not None and value < least):
        raise ArgumentError(f"{where}: must be an integer{'' if least is None else ' above 0'}, not {shown(value)}")
    return int(value)


def _number(value: Any, where: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
        raise ArgumentError(f"{where}: must be a number above 0, not {shown(value)}")
    return Fraction(str(value))  # the decimal that was written, not the nearest float


def _plain(content: Any) -> Any:
    """Returns a recipe as JSON values, for the manifest."""
    if isinstance(content, Mapping):
        return {key: _plain(value) for key, value in content.items()}
    return os.fspath(content) if isinstance(content, os.PathLike) else content


# ----------------------------------------------------------------------------------------------------
# The tokens that a recipe asks of its sources, before anything is read


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
