"""plan_mix: what a recipe asks of its sources, in seconds: from manifests, and from samples of texts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from ... import _binding
from ...arguments import counted, instance
from ...errors import ArgumentError, LimitError
from ...reading.documents import Kinds, check_mark
from ...reading.files import corpus_files
from ...reading.input_file import InputFile
from ...reading.pieces import Cutting
from ...reading.planning import Piece, Plan
from ...reading.splits import SplitOptions
from ...tokenizer import Tokenizer
from ..encoding import TaskEncoder
from ..manifest import passes
from .amounts import asked_tokens
from .recipe import Recipe, Source, load_recipe
from .sources import check_sources, open_folder

_FILES = 64  # most files from which pieces are encoded
_PIECES = 4  # least pieces, if the corpus has as many
_TASKS = 1000  # most tasks of a file from which pieces are taken
_DOUBT = 1.5  # a text has rarely more tokens than this times the estimate


_Item = TypeVar("_Item")


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
    check_sources(read.sources, tok)
    sizes = {}
    for source in read.sources:
        tokens = _train_tokens(source, tok)
        if tokens is None:
            raise ArgumentError(
                f"sources.{source.name}: has parquet, or texts that are compressed or not UTF-8, so its tokens are not"
                " known before it is read: binarize it, and use the folder as data"
            )
        sizes[source.name] = tokens
    asked = _asked_of_estimates(read, sizes)
    sources = {
        source.name: SourcePlan(
            sizes[source.name], source.data is None, sum(amounts.get(source.name, 0) for amounts in asked)
        )
        for source in read.sources
    }
    return MixPlan(sources, [(phase.name, amounts) for phase, amounts in zip(read.phases, asked)])


def refuse_impossible(recipe: Recipe, tok: Tokenizer) -> None:
    """Raises an error for a source that cannot be opened, and LimitError if a recipe is impossible although its texts
    may have more tokens than estimated."""
    sizes, most = {}, {}
    for source in recipe.sources:
        tokens = _train_tokens(source, tok)
        if tokens is None:
            return
        sizes[source.name], most[source.name] = tokens, int(tokens * (_DOUBT if source.data is None else 1))
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


# ----------------------------------------------------------------------------------------------------
# Sizes


def _train_tokens(source: Source, tok: Tokenizer) -> int | None:
    """Returns the tokens of a source's train split; of texts, an estimate, or None if they must be read first."""
    if source.data is not None:
        return open_folder(source, tok).split_tokens("train")
    kinds = Kinds.of(source.read, tok.model.eot)
    files = [file for file in corpus_files(source.inputs, source.read) if file.size]
    check_mark(kinds, tok.special_tokens, tok.model.matching, files)
    if any(file.is_sequential or kinds.kind(file) == "parquet" for file in files):
        return None
    shares = source.split.splits
    return round(sum(file.size or 0 for file in files) * _tokens_per_byte(files, kinds, tok) * shares[0] / sum(shares))


def _tokens_per_byte(files: Sequence[InputFile], kinds: Kinds, tok: Tokenizer) -> float:
    encoder = TaskEncoder(tok, kinds, (1.0,), "uint32")
    tokens = size = 0
    for piece in _sample(files, kinds, tok, encoder):
        segments = encoder.segments(piece)
        tokens += sum(len(segment.ids) for segment in segments) + len(segments)  # a mark for each
        size += piece.end - piece.start
    return tokens / max(1, size)


def _sample(files: Sequence[InputFile], kinds: Kinds, tok: Tokenizer, encoder: TaskEncoder) -> Iterator[Piece]:
    """Yields the first pieces of some tasks of some files, spread over the corpus."""
    cutting = Cutting.of_model(tok.model)
    some = _spread(files, _FILES)
    for file in some:
        tasks = list(islice(Plan([file], kinds, SplitOptions((1,)), cutting).tasks(), _TASKS))
        for task in _spread(tasks, max(1, _PIECES // len(some))):
            yield from islice(encoder.task_pieces(task), 1)


def _spread(items: Sequence[_Item], most: int) -> Sequence[_Item]:
    """Returns at most so many items, at equal distances."""
    return items[:: max(1, -(-len(items) // most))]
