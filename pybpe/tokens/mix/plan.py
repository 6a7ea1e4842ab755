"""plan_mix: what a recipe asks of its sources, in seconds: from manifests, and from samples of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ... import _binding
from ...arguments import counted, instance
from ...errors import ArgumentError, LimitError
from ...tokenizer import Tokenizer
from ..manifest import passes
from .amounts import asked_tokens
from .recipe import Recipe, load_recipe
from .sources import TextSource, TokenSource, open_sources

_DOUBT = 1.5  # a text has rarely more tokens than this times the estimate


@dataclass(frozen=True)
class SourcePlan:
    """What a recipe asks of a source.

    Attributes:
        tokens: those of its train split.
        is_estimate: whether `tokens` is estimated from a sample, because the source is text.
        asked: the tokens that all phases ask together.
    """

    tokens: int
    is_estimate: bool
    asked: int

    @property
    def epochs(self) -> float:
        """How often the source is repeated."""
        return self.asked / self.tokens


@dataclass(frozen=True)
class MixPlan:
    """What a recipe asks.

    Attributes:
        sources: by name.
        phases: the name of each phase, and the tokens that it asks of its sources, by name.
    """

    sources: Mapping[str, SourcePlan]
    phases: Sequence[tuple[str, Mapping[str, int]]]

    @property
    def tokens(self) -> int:
        """The tokens of all phases."""
        return sum(source.asked for source in self.sources.values())

    def __str__(self) -> str:
        lines = []
        for name, amounts in self.phases:
            total = sum(amounts.values())
            lines.append(f"phase {name}, {counted(total, 'token')}:")
            lines += [f"    {source}: {tokens} ({100 * tokens / total:.2f}%)" for source, tokens in amounts.items()]
        for name, source in self.sources.items():
            about = "about " if source.is_estimate else ""
            there = f"{about}{counted(source.tokens, 'token')} to train on"
            lines.append(f"source {name}: {there}, used {about}{passes(source.epochs)}")
        return "\n".join(lines)


def plan_mix(tok: Tokenizer, recipe: _binding.PathLike | Mapping[str, object]) -> MixPlan:
    """Returns what a recipe asks of its sources, without writing anything. Takes seconds: the tokens of texts are
    estimated from samples.

    Args:
        tok, recipe: as in `mix`.

    Raises:
        ArgumentError, FileError, FormatError, LimitError: as `mix`. ArgumentError: a source has parquet, or texts that
        are compressed or not UTF-8: how much text these have is not known before they are read.
    """
    instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    read = load_recipe(recipe)
    opened = dict(zip((source.name for source in read.sources), open_sources(read.sources, tok)))
    sizes = {}
    for name, source in opened.items():
        tokens = source.train_tokens()
        if tokens is None:
            raise ArgumentError(
                f"sources.{name}: has parquet, or texts that are compressed or not UTF-8, so its tokens are not"
                " known before it is read: binarize it, and use the folder as data"
            )
        sizes[name] = tokens
    asked = _asked_of_estimates(read, sizes)
    sources = {
        name: SourcePlan(sizes[name], isinstance(source, TextSource), sum(some.get(name, 0) for some in asked))
        for name, source in opened.items()
    }
    return MixPlan(sources, [(phase.name, amounts) for phase, amounts in zip(read.phases, asked)])


def refuse_impossible(recipe: Recipe, sources: Sequence[TokenSource | TextSource]) -> None:
    """Raises LimitError if a recipe is impossible although its texts may have more tokens than estimated."""
    sizes, most = {}, {}
    for given, source in zip(recipe.sources, sources):
        tokens = source.train_tokens()
        if tokens is None:
            return
        sizes[given.name], most[given.name] = tokens, int(tokens * (_DOUBT if given.data is None else 1))
    try:
        asked_tokens(recipe, most)
    except LimitError:
        _asked_of_estimates(recipe, sizes)
    except ArgumentError:
        pass  # it contradicts itself only for these estimates


def _asked_of_estimates(recipe: Recipe, sizes: Mapping[str, int]) -> list[dict[str, int]]:
    try:
        return asked_tokens(recipe, sizes)
    except LimitError as error:
        estimated = [source.name for source in recipe.sources if source.data is None]
        note = f" (estimated from samples: {', '.join(estimated)})" if estimated else ""
        raise LimitError(f"{error}{note}") from None
