"""Checks all files against each other: ids, vocabularies, and shards that one pattern matches; and the names that are
compiled into llm.c's trainers (files.py): is the expected file there?"""

from __future__ import annotations

import filecmp
import glob
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ..shards import Batch
from .contents import GPT2_TOKENS, Seen, ShardFacts, TokenizerFacts
from .files import (
    CPU_DATA,
    EVAL_PLACE,
    MODEL_NAMES,
    PLACES,
    STORIES_DATA,
    TOKENIZER_NAME,
    TRAINED_ON,
    UNKNOWN,
    WARNING,
    Finding,
    Found,
    Run,
    place_of,
    split_of,
)
from .manifests import known_splits

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


# ----------------------------------------------------------------------------------------------------
# Names that are compiled into llm.c's trainers


def place_faults(seen: Seen) -> Iterator[Finding]:
    """Yields names that hold something other than what llm.c expects. Files of unknown kind are reported already."""
    for name in [*seen.found.names, *seen.found.folders]:
        place = place_of(name)
        there = seen.found.names.get(name, "a folder")
        if place is None or there in (PLACES[place], "a broken link") or there in UNKNOWN and not os.path.islink(name):
            continue
        fault = f"is {there}, but llm.c expects {PLACES[place]} under this name"
        # llm.c prefers tiny Shakespeare's names to those of TinyStories.
        pairs = ((STORIES_DATA.format(split), CPU_DATA.format(split)) for split in TRAINED_ON)
        spare = any(name.endswith(last) and os.path.exists(name.removesuffix(last) + first) for last, first in pairs)
        effect = "aborts with -h 1" if place == EVAL_PLACE else "aborts"
        if spare:
            effect = "reads the data of tiny Shakespeare instead"
        elif there == "not a regular file":
            effect = "waits forever, or aborts"
        yield Finding(name, fault, effect, f"put {PLACES[place]} there").unless(spare)


# ----------------------------------------------------------------------------------------------------
# What a folder lacks


@dataclass(frozen=True)
class _Folder:
    """A folder that llm.c is started in, and everything that was found."""

    path: str
    seen: Seen

    def at(self, place: str) -> str:
        return os.path.join(self.path, place)

    def has(self, place: str) -> bool:
        return os.path.lexists(self.at(place))

    def data(self, split: str) -> str | None:
        """Returns what llm.c reads for a split on the CPU: tiny Shakespeare if present, else TinyStories."""
        places = (CPU_DATA.format(split), STORIES_DATA.format(split))
        return next((self.at(place) for place in places if os.path.exists(self.at(place))), None)

    @property
    def has_data(self) -> bool:
        return any(self.has(data.format(split)) for data in (CPU_DATA, STORIES_DATA) for split in TRAINED_ON)

    @property
    def has_model(self) -> bool:
        return any(map(self.has, MODEL_NAMES.values()))


def working_folders(found: Found) -> list[str]:
    """Returns the folders that llm.c is started in: those with something at one of its compiled-in names."""
    return [folder for folder in found.folders if any(os.path.lexists(os.path.join(folder, name)) for name in PLACES)]


def folder_faults(seen: Seen) -> Iterator[Finding]:
    """Yields what is missing in these folders."""
    for path in working_folders(seen.found):
        folder = _Folder(path, seen)
        if not os.path.exists(folder.at(TOKENIZER_NAME)) and (folder.has_model or folder.has_data):
            effect = "starts its samples from a random id and prints ids instead of text, or aborts"
            remedy = "copy the tokenizer.bin that was written with the shards"
            yield Finding(folder.at(TOKENIZER_NAME), "is missing", effect, remedy)
        yield from _data_fault(folder)
        yield from _model_fault(folder)


def _data_fault(folder: _Folder) -> Iterator[Finding]:
    """Yields shards that are missing. With -i and -j, the CUDA trainer reads other shards."""
    is_for_cpu = folder.has(MODEL_NAMES["fp32"])
    missing = [folder.at(CPU_DATA.format(split)) for split in TRAINED_ON if folder.data(split) is None]
    missing = [path for path in missing if not os.path.islink(path)]  # a broken link is reported already
    if missing and (folder.has_data or folder.has_model):
        effect = "aborts on the CPU, and on CUDA unless -i and -j name other shards"
        finding = Finding(missing[0], "is missing", effect, "link a shard there")
        yield finding.unless(folder.seen.run.is_cuda or not (is_for_cpu or folder.has_data))


def _model_fault(folder: _Folder) -> Iterator[Finding]:
    """Yields models that are missing. With -e, the CUDA trainer reads another model."""
    if folder.has_model:
        return
    inside = [path for path in folder.seen.models if path.startswith(os.path.join(folder.path, ""))]
    facts = folder.seen.tokenizers.get(folder.at(TOKENIZER_NAME))
    if inside:
        dtype = folder.seen.models[inside[0]].dtype
        effect = f"aborts, unless it is the CUDA trainer with -e {os.path.relpath(inside[0], folder.path)}"
        finding = Finding(folder.at(MODEL_NAMES[dtype]), "is missing", effect, f"link {inside[0]} there")
        yield finding.unless(folder.seen.run.is_cuda or dtype != "fp32" or not folder.has_data)
    elif facts is not None and facts.vocab_size != GPT2_TOKENS:  # llm.c can make a model itself only for these: -e d12
        fault = f"there is no checkpoint for the {facts.vocab_size} tokens of {TOKENIZER_NAME}"
        remedy = f"pybpe llmc checkpoint new -t {folder.at(TOKENIZER_NAME)}"
        effect = "aborts on the CPU, and cannot learn V any other way on CUDA"
        yield Finding(folder.path, fault, effect, remedy)
    elif folder.has_data:
        effect = "aborts, unless it is the CUDA trainer with -e d12 or similar"
        finding = Finding(folder.at(MODEL_NAMES["fp32"]), "is missing", effect, "put a checkpoint there")
        yield finding.unless(folder.seen.run.is_cuda)


# ----------------------------------------------------------------------------------------------------
# Which split is where


def split_faults(seen: Seen) -> Iterator[Finding]:
    """Yields names of one split that lead to a shard of another, and shards used for both."""
    splits = known_splits(seen)
    by_real = {os.path.realpath(path): path for path in seen.shards}
    for root in seen.found.folders:
        for data in (CPU_DATA, STORIES_DATA):
            paths = {split: os.path.join(root, data.format(split)) for split in TRAINED_ON}
            real = {split: by_real.get(os.path.realpath(path)) for split, path in paths.items() if os.path.exists(path)}
            a, b = real.get("train"), real.get("val")
            if a and b and (a == b or seen.shards[a] == seen.shards[b] and filecmp.cmp(a, b, shallow=False)):
                fault = f"is the same as {paths['train']}"
                effect = "validates on its training data, so the validation loss means nothing"
                yield Finding(paths["val"], fault, effect, "put a shard of the val split there")
                continue
            for split, shard in real.items():
                target = None if shard is None else os.path.realpath(shard)
                other = None if target is None else splits.get(target) or split_of(target)
                if other not in (None, split):
                    fault = f"leads to a shard of the {other} split"
                    effect = f"{'trains' if split == 'train' else 'validates'} on text that was set apart as {other}"
                    yield Finding(paths[split], fault, effect, f"put a shard of the {split} split there")
