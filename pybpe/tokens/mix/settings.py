"""What the manifest says about a mixture: see docs/file-formats.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...reading.splits import SPLIT_NAMES
from .drawing import Drawn
from .recipe import Recipe
from .sources import Opened


def mixture_settings(
    recipe: Recipe,
    opened: Sequence[Opened],
    asked: Sequence[Mapping[str, int]],
    phases: Sequence[Sequence[Drawn]],
) -> dict[str, Any]:
    """Returns the recipe, what it asked, and what came of it.

    Args:
        recipe, opened: the recipe, and its sources.
        asked: the tokens that each phase asks of its sources, by name.
        phases: what each phase got from each source.
    """
    sources = {}
    for place, source in enumerate(opened):
        tokens, used = source.split_tokens("train"), sum(drawn[place].tokens for drawn in phases)
        sources[source.name] = {
            "manifest": source.sha256,
            "tokens": tokens,
            "documents": source.split_documents("train"),
            "used": used,
            "epochs": round(used / tokens, 6),
            "held_out": {split: source.split_documents(split) for split in SPLIT_NAMES[1:]},
        }
    described = [
        {"name": phase.name, "asked": sum(amounts.values()), "sources": _parts(opened, amounts, drawn)}
        for phase, amounts, drawn in zip(recipe.phases, asked, phases)
    ]
    return {"seed": recipe.seed, "recipe": recipe.content, "sources": sources, "phases": described}


def _parts(opened: Sequence[Opened], amounts: Mapping[str, int], drawn: Sequence[Drawn]) -> dict[str, Any]:
    return {
        source.name: {
            "asked": amounts[source.name],
            "tokens": some.tokens,
            "documents": some.documents,
            "cuts": some.cuts,
        }
        for source, some in zip(opened, drawn)
        if source.name in amounts
    }
