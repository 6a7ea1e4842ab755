"""mix: makes one data set of several sources, shuffled as a whole; and plan_mix: the amounts that a recipe asks of
its sources."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ... import _binding
from ...arguments import chosen, instance, number_of, whole_number
from ...errors import FormatError, file_errors
from ...reading.planning import SPLIT_NAMES
from ...support.parallel import RunOptions, memory_left, process_memory
from ...support.task_results import hashed
from ...tokenizer import Tokenizer
from ..formats import Layout, OutputOptions
from ..manifest import Manifest, passes, tokenizer_entry
from ..output_folder import call_of, made_before, writing_to
from ..provenance import kept_provenance, provenance_of
from ..run import Job, write_token_files
from ..token_files import TokenStream
from ..token_folders import TokenFolder, check_copies, check_documents_apart, with_mark_of
from .drawing import Documents, Drawn, draw_all, everything, find_documents
from .recipe import Recipe, Source, asked_tokens, load_recipe
from .shuffling import DEFAULT_MEMORY, LEAST_MEMORY, Shuffle


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
    document_offsets: bool = False,
    memory_limit: int | None = None,
    force: bool = False,
    progress: bool | None = None,
) -> Manifest:
    """Mixes sources into one data set whose documents are in random order.

    The train split has the amounts that the recipe asks for, shuffled as a whole, over all sources. Every document of a
    source is used once before any repeats. The val and test splits have the held-out documents of all sources once,
    also shuffled. The same arguments and sources give the same bytes, whatever the memory. If a run is killed, make the
    same call again to resume it.

    Args:
        tok: the tokenizer. It must have made the token files that are sources.
        recipe: a TOML file, or its content as a mapping: see docs/mixing.md.
        out: the output folder, created if needed.
        seed: chooses the documents in a part of a source, and the order. None uses the recipe's, or 0.
        format, eot, dtype, shard_tokens, min_shard_tokens, document_offsets: see `binarize`.
        sequence_length: amounts are accurate to within this number of tokens. A document that does not fit is left out
            if fewer tokens are missing, and otherwise cut. So no document of up to this many tokens is cut.
        name: the name prefix of the files. None means "mix".
        memory_limit: the approximate number of bytes that the process may take. None is 1 GiB.
        force: as in `binarize`.
        progress: as in `pybpe.train`.

    Returns:
        The manifest. settings["mixture"] has the recipe, and the amounts that sources contributed.

    Raises:
        ArgumentError: an argument, the recipe or a source is invalid, or a source would train on a document that
            another one holds out. LimitError: a source is too small for the recipe. The error has the largest amount
            that would fit. FileError, FormatError: a file cannot be read, or is damaged.
    """
    arguments = locals()
    instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    output = chosen(OutputOptions, arguments)
    output.check_used()
    output.refuse_mark("the mark is the one that the sources have")
    length = whole_number("sequence_length", sequence_length, 2)
    if seed is not None:
        seed = whole_number("seed", seed, None)
    if memory_limit is not None:
        memory_limit = whole_number("memory_limit", memory_limit, LEAST_MEMORY)
    given, folder = load_recipe(recipe).with_seed(seed), _binding.path_text(out)
    sources = open_sources(given.sources, tok, folder)
    tok = with_mark_of(tok, *sources)
    output = replace(output, **kept_provenance(sources)).for_vocabulary(tok.vocab_size, tok.model.eot)
    process_memory(memory_limit, output.provenance)  # which pyarrow reads
    asked_tokens(given, _sizes(given, sources))  # refuses impossible amounts before anything is written
    with writing_to(folder):
        calls = [source.sha256 for source in sources]
        call = call_of((given.content, given.seed, tok.model.fingerprint, output, length, calls))
        manifests = {it.name: {"manifest": source.sha256} for it, source in zip(given.sources, sources)}
        mixture = {"seed": given.seed, "recipe": given.content, "sources": manifests}
        settings = {**output.settings(), "sequence_length": length, "mixture": mixture}
        known = Manifest(settings, tokenizer_entry(tok), call=call)
        if (made := made_before(folder, known, force)) is not None:
            return made
        check_documents_apart(named(given.sources, sources))
        layout = Layout(tok, output, folder, output.name or "mix", {})
        run = RunOptions(memory_limit=memory_limit, progress=progress)
        return _mixed(layout, given, sources, length, known, run)


def _mixed(
    layout: Layout, recipe: Recipe, sources: Sequence[TokenFolder], length: int, known: Manifest, run: RunOptions
) -> Manifest:
    """Does the work. The caller holds the folder's lock. `length` is the sequence_length."""
    hidden = layout.unfinished
    asked = asked_tokens(recipe, _sizes(recipe, sources))
    documents = [[_documents(source, split, hidden) for split in SPLIT_NAMES] for source in sources]
    splits = 1 + max(number for number, some in enumerate(zip(*documents)) if any(some))
    drawn = [draw_all(recipe, [some[0] for some in documents if some[0]], asked, length)]
    for split in range(1, splits):
        drawn.append([everything(found) if (found := some[split]) else Drawn() for some in documents])
    shuffle = Shuffle(
        layout.tok,
        os.path.join(hidden, "buckets"),
        [source.name for source in recipe.sources],
        documents,
        drawn,
        recipe.seed,
        layout.output.dtype,
        memory_left(run.memory_limit or DEFAULT_MEMORY),
        layout.output.provenance,
    )
    settings = {**known.settings, "mixture": _mixture(recipe, sources, asked, drawn[0])}
    fingerprint = hashed([state_of(source) for source in sources], drawn, shuffle.buckets, settings, layout.name)
    tasks = [(task, repr(task).encode(), b"") for task in shuffle.tasks()]
    encode = partial(shuffle.encode, progress=run.progress)
    provenance = partial(provenance_of, sources, hidden) if layout.output.provenance else None
    job = Job(fingerprint, splits, tasks, encode, provenance=provenance, doing=("shuffling", "token"))
    total = sum(each.tokens for some in drawn for each in some)
    return write_token_files(layout, job, run, total, replace(known, settings=settings))


def _sizes(recipe: Recipe, sources: Sequence[TokenFolder]) -> dict[str, int]:
    """Returns the numbers of tokens in the sources' train splits, by name."""
    return {given.name: source.manifest.split_tokens("train") for given, source in zip(recipe.sources, sources)}


def _mixture(
    recipe: Recipe, sources: Sequence[TokenFolder], asked: Mapping[str, int], drawn: Sequence[Drawn]
) -> dict[str, Any]:
    """Returns the manifest's entry about the recipe, its amounts, and the result: see docs/file-formats.md."""
    described = {}
    for given, source, some in zip(recipe.sources, sources, drawn):
        tokens = source.manifest.split_tokens("train")
        described[given.name] = {
            "manifest": source.sha256,
            "tokens": tokens,
            "documents": source.manifest.split_documents("train"),
            "held_out": {split: source.manifest.split_documents(split) for split in SPLIT_NAMES[1:]},
            "asked": asked[given.name],
            "used": some.tokens,
            "used_documents": some.documents,
            "cuts": sum(part.cut is not None for part in some.passes),
            "epochs": round(some.tokens / tokens, 6),
        }
    return {"seed": recipe.seed, "recipe": recipe.content, "sources": described}


# ----------------------------------------------------------------------------------------------------
# The sources


def open_sources(sources: Sequence[Source], tok: Tokenizer, out: str | None = None) -> list[TokenFolder]:
    """Opens all sources. `out` is the output folder, which cannot be a source.

    Raises:
        ArgumentError: two have the same token files. What TokenFolder.open and check_documents raise.
    """
    found = [TokenFolder.open(source.data, tok) for source in sources]
    for data in found:
        data.check_documents(out)
    check_copies(named(sources, found))
    return found


def named(sources: Sequence[Source], opened: Sequence[TokenFolder]) -> list[tuple[str, TokenFolder]]:
    """Returns opened sources with their names in errors."""
    return [(f"sources.{source.name}", data) for source, data in zip(sources, opened)]


def state_of(data: TokenFolder) -> list[object]:
    """Returns the fingerprint of the files of a source. Files that a killed run has made of them are used
    only if it is the same."""
    seen: list[object] = [data.sha256]
    for path in (os.path.join(data.path, name) for name in data.manifest.file_names):
        with file_errors(path, "cannot be examined"):
            status = os.stat(path)
        seen.append((status.st_size, status.st_mtime_ns, status.st_ino))
    return seen


def _documents(data: TokenFolder, split: str, folder: str) -> Documents | None:
    """Finds the documents of a split. A file without a name in `folder` holds their lengths.

    Raises:
        FormatError: the tokens do not match the manifest.
    """
    path, manifest, _ = data
    expected = (manifest.split_documents(split), manifest.split_tokens(split))
    if not expected[1]:
        return None
    eot, tokenizer = str(manifest.settings["eot"]), manifest.tokenizer
    mark, n_vocab = int(tokenizer["eot"]), int(tokenizer["n_vocab"])  # type: ignore[call-overload]
    stream = TokenStream(data.paths(split), str(manifest.settings.get("dtype")))
    found = find_documents(stream, mark, eot, n_vocab, folder)
    if (len(found), found.tokens) != expected:
        raise FormatError(
            f"{path}: its {split} split has {len(found)} documents in {found.tokens} tokens, but the manifest says"
            f" {expected[0]} in {expected[1]}: write the data again"
        )
    return found


# ----------------------------------------------------------------------------------------------------
# The amounts of a recipe


@dataclass(frozen=True)
class SourcePlan:
    """The amount that a recipe asks of a source.

    Attributes:
        tokens: the number in its train split.
        asked: the number that the recipe asks.
    """

    tokens: int
    asked: int

    @property
    def epochs(self) -> float:
        """How often the source is repeated."""
        return self.asked / self.tokens


@dataclass(frozen=True)
class MixPlan:
    """The amounts that a recipe asks of its sources, by name."""

    sources: Mapping[str, SourcePlan]

    @property
    def tokens(self) -> int:
        """The tokens of all sources together."""
        return sum(source.asked for source in self.sources.values())

    def __str__(self) -> str:
        lines = [
            f"source {name}: {number_of(source.asked, 'token')} ({100 * source.asked / self.tokens:.2f}%), its"
            f" {source.tokens} are used {passes(source.epochs)}"
            for name, source in self.sources.items()
        ]
        return "\n".join([f"{number_of(self.tokens, 'token')}:", *lines])


def plan_mix(tok: Tokenizer, recipe: _binding.PathLike | Mapping[str, object]) -> MixPlan:
    """Returns the amounts that a recipe asks of its sources, without writing anything. Reads only their manifests.

    Args:
        tok, recipe: as in `mix`.

    Raises:
        ArgumentError, FileError, FormatError, LimitError: as `mix`.
    """
    instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    read = load_recipe(recipe)
    sizes = _sizes(read, open_sources(read.sources, tok))
    asked = asked_tokens(read, sizes)
    return MixPlan({name: SourcePlan(size, asked[name]) for name, size in sizes.items()})
