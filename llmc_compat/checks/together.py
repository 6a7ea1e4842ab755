"""Checks all files against each other: ids, vocabularies, and shards that one pattern matches."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Mapping

from llmc_compat.batch import Batch

from .contents import Seen, ShardFacts, TokenizerFacts
from .files import UNKNOWN, Found, split_of
from .finding import WARNING, Finding, Run

_NUMBERED = re.compile(r"(.*?)(\d+)\.bin", re.DOTALL)
_GLOB_SIGNS = set("*?[\\")
_DEFAULT_BATCH = Batch(4, 1024)  # train_gpt2.cu's


# ----------------------------------------------------------------------------------------------------
# Vocabularies


def _distinct(tokenizers: Mapping[str, TokenizerFacts]) -> dict[str, TokenizerFacts]:
    """Yields one tokenizer per vocabulary size: the findings would be the same for the others."""
    by_size = {facts.vocab_size: (path, facts) for path, facts in reversed(list(tokenizers.items()))}
    return dict(reversed(list(by_size.values())))


def id_faults(seen: Seen) -> Iterator[Finding]:
    """Yields ids that the vocabulary lacks. Both trainers check each batch (gpt2_forward; tokenCheck in
    llmc/utils.h)."""
    highest = {path: shard.highest for path, shard in seen.shards.items()}
    highest |= {path: examples.highest_id for path, examples in seen.evals.items()}
    for path, found in highest.items():
        for other, tokenizer in _distinct(seen.tokenizers).items():
            if found >= tokenizer.vocab_size:
                fault = (
                    f"has the id {found}, but {other} has {tokenizer.vocab_size} tokens: they do not belong together"
                )
                yield Finding(path, fault, "cannot decode it", "encode the text with this tokenizer")
        for other, model in seen.models.items():
            if found >= model.sizes.vocab_size > 0:
                fault = f"has the id {found}, but {other} has V {model.sizes.vocab_size}"
                remedy = "pybpe llmc checkpoint new or resize, for the tokenizer of this file"
                yield Finding(path, fault, "aborts at the batch with this id", remedy)


def vocabulary_faults(seen: Seen) -> Iterator[Finding]:
    """Yields models whose vocabulary is not the tokenizer's."""
    for path, model in seen.models.items():
        for other, tokenizer in _distinct(seen.tokenizers).items():
            if model.sizes.vocab_size > 0 and model.sizes.vocab_size != tokenizer.vocab_size:
                effect = "aborts at the first id that the model lacks"
                if model.sizes.vocab_size > tokenizer.vocab_size:
                    effect = "samples ids that the tokenizer lacks: 'invalid token id'"
                fault = f"V is {model.sizes.vocab_size}, but {other} has {tokenizer.vocab_size} tokens"
                yield Finding(path, fault, effect, "pybpe llmc checkpoint new or resize, for this tokenizer")


def end_faults(seen: Seen) -> Iterator[Finding]:
    """Yields a train shard if no train shard has the token that starts each sample."""
    trained = {path: facts for path, facts in seen.shards.items() if split_of(path) == "train"}
    for path, tokenizer in seen.tokenizers.items():
        if (
            trained
            and 0 <= tokenizer.eot < tokenizer.vocab_size
            and not any(tokenizer.eot in facts.present for facts in trained.values())
        ):
            fault = f"the end-of-text id is {tokenizer.eot}, which no train shard contains"
            remedy = "encode the text with --eot prepend"
            yield Finding(path, fault, "starts its samples from a token that it never saw in training", remedy, WARNING)


# ----------------------------------------------------------------------------------------------------
# Shards that one pattern matches


def row_faults(seen: Seen) -> Iterator[Finding]:
    """Groups shards that have the same name and consecutive numbers, which llm.c reads by a pattern."""
    rows: dict[str, list[tuple[int, str]]] = {}
    for path in seen.shards:
        match = _NUMBERED.fullmatch(path)
        if match:
            rows.setdefault(match[1], []).append((int(match[2]), path))
    for prefix, numbered in rows.items():
        row = [path for _, path in sorted(numbered)]
        yield from _order_faults(row)
        yield from _guest_faults(prefix, row, seen.found)
        yield from _equal_faults(row, seen.shards, seen.run)
        yield from _pattern_faults(prefix, row, seen.found)


def _order_faults(row: list[str]) -> Iterator[Finding]:
    """Yields names that sort differently from their numbers: llm.c reads shards in glob order, which compares bytes."""
    for path, expected in zip(sorted(row, key=os.fsencode), row):
        if path != expected:
            fault = f"its name sorts before {os.path.basename(expected)}"
            effect = "reads shards in the order of their names"
            yield Finding(path, fault, effect, "give all numbers the same number of digits: 000002, 000010")
            return


def name_faults(seen: Seen) -> Iterator[Finding]:
    """Yields files of another kind, and folders, that are named like a train or val shard."""
    for path in [*seen.found.names, *seen.found.folders]:
        there = seen.found.names.get(path, "a folder")
        if _is_shard_name(path) and there not in ("a token shard", "a broken link", *UNKNOWN):
            yield Finding(
                path, f"is {there}, but has the name of a shard", "aborts if -i or -j matches it", "move it elsewhere"
            )


def _is_shard_name(path: str) -> bool:
    return bool(_NUMBERED.fullmatch(path)) and split_of(path) in ("train", "val")


def _guest_faults(prefix: str, row: list[str], found: Found) -> Iterator[Finding]:
    """Yields other files that the pattern of a row matches."""
    for path in sorted(glob.glob(f"{glob.escape(prefix)}*.bin")):
        there = found.what_is_at(path)
        if (
            path not in row
            and not _is_shard_name(path)
            and there is not None
            and there not in ("a token shard", "a broken link")
        ):
            pattern = f"{os.path.basename(prefix)}*.bin"
            fault = f"is {there}, but the shards' pattern {pattern} matches it"
            yield Finding(path, fault, f"aborts with -i or -j '{pattern}'", "move it elsewhere")


def _equal_faults(row: list[str], shards: Mapping[str, ShardFacts], run: Run) -> Iterator[Finding]:
    """Yields shards of unequal size: load_state (train_gpt2.cu) requires that the shard where a run stopped has as many
    samples as the first shard of the new run."""
    counts = sorted((shards[path].tokens, path) for path in row)
    (least, small), (most, large) = counts[0], counts[-1]
    batch = run.given or _DEFAULT_BATCH
    samples = [(count - 1) // (batch.min_tokens - 1) for count in (least, most)]
    unequal = samples[0] != samples[1] if run.given else most - least > least % 2
    if split_of(small) in ("val", "test") or not unequal:
        return
    fault = (
        f"{least} tokens, but {os.path.basename(large)} has {most}: {samples[0]} and {samples[1]} samples of"
        f" {batch.min_tokens - 1} tokens"
    )
    effect = "may abort when it resumes with -y 1, which needs the same number of samples in each shard"
    yield Finding(small, fault, effect, "write the shards again with pybpe binarize, which makes them equal", WARNING)


def _pattern_faults(prefix: str, row: list[str], found: Found) -> Iterator[Finding]:
    """Yields names with characters that have a meaning in a pattern."""
    inside = next((folder for folder in found.folders if prefix.startswith(os.path.join(folder, ""))), "")
    name = os.path.relpath(prefix, inside) if inside else prefix
    signs = sorted(_GLOB_SIGNS & set(name))
    if signs:
        fault = f"its name has {' '.join(signs)}, special characters in a pattern"
        yield Finding(row[0], fault, "may not find it with -i or -j, and then aborts", "rename it", WARNING)
