"""mix: makes one data set of several sources, shuffled as a whole; and plan_mix: what a recipe asks of its sources, in
seconds: from manifests, and from samples of texts."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ... import _binding
from ...arguments import counted, instance, whole_number
from ...errors import ArgumentError, LimitError
from ...reading.splits import SPLIT_NAMES
from ...support.locking import STAGED, only_writer
from ...support.parallel import RunOptions
from ...tokenizer import Tokenizer
from ..binarization import described
from ..finished import Goal, call_of, hashed
from ..manifest import Manifest, passes
from ..options import Layout, OutputOptions
from ..run import TokenRun
from ..store import AppendStore
from .amounts import asked_tokens
from .drawing import Drawn, draw, everything
from .recipe import Recipe, load_recipe
from .shuffling import DEFAULT_MEMORY, LEAST_MEMORY, Section, Shuffle
from .sources import TextSource, TokenSource, open_sources

_DOUBT = 1.5  # a text has rarely more tokens than this times the estimate


def mix(
    tok: Tokenizer,
    recipe: _binding.PathLike | Mapping[str, Any],
    out: _binding.PathLike,
    *,
    seed: int | None = None,
    format: str = "llmc",
    eot: str | None = None,
    dtype: str = "auto",
    shard_tokens: int = 10**8,
    min_shard_tokens: int | None = None,
    sequence_length: int = 1024,
    name: str | None = None,
    workers: int | None = None,
    memory_limit: int | None = None,
    force: bool = False,
    progress: bool | None = None,
) -> Manifest:
    """Mixes sources into one data set whose documents are in random order.

    The train split has the phases of the recipe, in order. Each phase has the amounts that the recipe asks for, and its
    documents are shuffled as a whole, over all sources: every order is possible. The val and test splits have the
    held-out documents of all sources, each once, also shuffled. The same arguments and sources give the same bytes,
    whatever the workers and the memory. A run that was killed resumes when called again with the same arguments.

    Args:
        tok: the tokenizer. It must have made the token files that are sources.
        recipe: a TOML file, or its content as a mapping: see docs/mixing.md.
        out: the output folder, created if needed.
        seed: chooses which documents a part of a source has, and the order; None uses the recipe's, or 0.
        format, eot, dtype, shard_tokens, min_shard_tokens: as in `binarize`.
        sequence_length: amounts are exact to less than this number of tokens: a document that does not fit is left out
            if fewer tokens are missing, and otherwise cut, so no document of up to this many tokens is cut. Also the
            tokens per row for "parquet" and "webdataset".
        name: the name prefix of the files; None means "mix".
        workers: the number of threads that encode texts; None uses all CPUs.
        memory_limit: about how many bytes the shuffle may use; None is 1 GiB.
        force: as in `binarize`.
        progress: as in `pybpe.train`.

    Returns:
        The manifest. settings["mixture"] has the recipe, and what each phase got from each source.

    Raises:
        ArgumentError: an argument, the recipe or a source is invalid. LimitError: a source is too small for what the
        recipe asks; the error has the largest amount that would fit. FileError, FormatError: a file cannot be read, or
        is damaged.
    """
    instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    output = OutputOptions(format, eot, dtype, shard_tokens, min_shard_tokens, name)
    output.check_used()
    output = output.for_vocabulary(tok.vocab_size, tok.model.eot)
    length = whole_number("sequence_length", sequence_length, 2)
    if seed is not None:
        seed = whole_number("seed", seed, None)
    if memory_limit is not None:
        whole_number("memory_limit", memory_limit, LEAST_MEMORY)
    if tok.eot_token is None:
        raise ArgumentError("the tokenizer has no end of text, which must separate documents")
    given, folder = load_recipe(recipe).with_seed(seed), _binding.path_text(out)
    sources = open_sources(given.sources, tok, folder)
    refuse_impossible(given, sources)
    with only_writer(folder):
        calls = [source.call for source in sources]
        call = call_of((given.content, given.seed, tok.model.fingerprint, output, calls))
        texts = [file for source in sources if isinstance(source, TextSource) for file in source.files]
        made = Goal(folder, force).made(call, tok, texts)
        layout = Layout(tok, output, folder, output.name or "mix", {}, call)
        return made or _mixed(layout, given, sources, length, RunOptions(workers, None, memory_limit, progress))


def _mixed(
    layout: Layout, recipe: Recipe, sources: Sequence[TokenSource | TextSource], length: int, run: RunOptions
) -> Manifest:
    """Does the work. The caller holds the folder's lock. `length` is the sequence_length."""
    hidden = layout.unfinished  # the log keeps what is staged there until the run ends
    opened = [
        source.encoded(os.path.join(hidden, f"{STAGED}source-{number}"), run) for number, source in enumerate(sources)
    ]
    asked = asked_tokens(recipe, {source.name: source.train_tokens() for source in opened})
    documents = [source.documents(hidden) for source in opened]
    phases = draw(recipe, documents, asked, length)
    splits = 1 + max(number for number, some in enumerate(zip(*documents)) if any(some))
    sections = [Section(0, number, drawn) for number, drawn in enumerate(phases)]
    for split in range(1, splits):
        found = [some[split] for some in documents]
        sections.append(Section(split, 0, [everything(some) if some else Drawn() for some in found]))
    shuffle = Shuffle(
        layout.tok,
        os.path.join(hidden, "buckets"),
        [source.name for source in opened],
        documents,
        sections,
        recipe.seed,
        layout.output.dtype,
        run.memory_limit or DEFAULT_MEMORY,
    )
    mixture = _mixture(recipe, opened, asked, phases)
    settings = {**layout.output.settings(), "sequence_length": length, "mixture": mixture}
    identity = hashed([source.state() for source in opened], sections, shuffle.buckets, settings, layout.name)
    resume = shuffle.is_direct or shuffle.has_buckets()
    store = AppendStore(layout, splits, shuffle.encoded)
    work = TokenRun(layout, store, identity, ("shuffling", "token"), resume=resume)
    return work.write(run, sum(section.tokens for section in sections), Manifest(settings, described(layout.tok)))


def _mixture(
    recipe: Recipe,
    opened: Sequence[TokenSource],
    asked: Sequence[Mapping[str, int]],
    phases: Sequence[Sequence[Drawn]],
) -> dict[str, Any]:
    """Returns what the manifest says about the recipe, what it asked, and what came of it: see docs/file-formats.md."""
    sources = {}
    for place, source in enumerate(opened):
        tokens, used = source.train_tokens(), sum(drawn[place].tokens for drawn in phases)
        sources[source.name] = {
            "manifest": source.call,
            "tokens": tokens,
            "documents": source.data.manifest.split_documents("train"),
            "used": used,
            "epochs": round(used / tokens, 6),
            "held_out": {split: source.data.manifest.split_documents(split) for split in SPLIT_NAMES[1:]},
        }
    described = [
        {
            "name": phase.name,
            "asked": sum(amounts.values()),
            "sources": {
                source.name: {"asked": amounts[source.name], **some.facts()}
                for source, some in zip(opened, drawn)
                if source.name in amounts
            },
        }
        for phase, amounts, drawn in zip(recipe.phases, asked, phases)
    ]
    return {"seed": recipe.seed, "recipe": recipe.content, "sources": sources, "phases": described}


# ----------------------------------------------------------------------------------------------------
# What a recipe asks


@dataclass(frozen=True)
class SourcePlan:
    """What a recipe asks of a source.

    Attributes:
        tokens: the number in its train split.
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
    most = {}
    for given, source in zip(recipe.sources, sources):
        tokens = source.train_tokens()
        if tokens is None:
            return
        most[given.name] = int(tokens * (_DOUBT if given.data is None else 1))
    with suppress(ArgumentError):  # it contradicts itself only for these estimates
        _asked_of_estimates(recipe, most)


def _asked_of_estimates(recipe: Recipe, sizes: Mapping[str, int]) -> list[dict[str, int]]:
    try:
        return asked_tokens(recipe, sizes)
    except LimitError as error:
        estimated = [source.name for source in recipe.sources if source.data is None]
        note = f" (estimated from samples: {', '.join(estimated)})" if estimated else ""
        raise LimitError(f"{error}{note}") from None
