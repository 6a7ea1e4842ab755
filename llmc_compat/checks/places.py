"""Checks the names that are compiled into llm.c's trainers (files.py): is the expected file there?"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from .contents import GPT2_TOKENS, Seen, ShardFacts
from .files import (
    CPU_DATA,
    EVAL_PLACE,
    MODEL_NAMES,
    PLACES,
    STORIES_DATA,
    TOKENIZER_NAME,
    TRAINED_ON,
    UNKNOWN,
    Found,
    place_of,
    split_of,
)
from .finding import Finding
from .manifests import known_splits


def place_faults(seen: Seen) -> Iterator[Finding]:
    """Yields names that hold something other than what llm.c expects. Files of unknown kind are reported already."""
    for name in [*seen.found.names, *seen.found.folders]:
        place = place_of(name)
        there = seen.found.names.get(name, "a folder")
        if place is None or there in (PLACES[place], "a broken link") or there in UNKNOWN and not os.path.islink(name):
            continue
        fault = f"is {there}, but llm.c expects {PLACES[place]} under this name"
        yield Finding(name, fault, _effect(name, place, there), f"put {PLACES[place]} there").unless(_is_spare(name))


def _effect(name: str, place: str, there: str) -> str:
    if _is_spare(name):
        return "reads the data of tiny Shakespeare instead"
    if there == "not a regular file":
        return "waits forever, or aborts"
    return "aborts with -h 1" if place == EVAL_PLACE else "aborts"


def _is_spare(name: str) -> bool:
    """Returns whether this is a TinyStories name next to tiny Shakespeare's, which llm.c prefers."""
    pairs = ((STORIES_DATA.format(split), CPU_DATA.format(split)) for split in TRAINED_ON)
    return any(name.endswith(spare) and os.path.exists(name.removesuffix(spare) + first) for spare, first in pairs)


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
    elif (
        facts is not None and facts.vocab_size != GPT2_TOKENS
    ):  # only for this one can llm.c make a model itself: -e d12
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
            if len(real) == 2 and _is_same(real["train"], real["val"], seen.shards):
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


def _is_same(a: str | None, b: str | None, shards: Mapping[str, ShardFacts]) -> bool:
    if a is None or b is None:
        return False
    return a == b or (shards[a] == shards[b] and filecmp.cmp(a, b, shallow=False))
