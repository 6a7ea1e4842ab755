"""What the rules are about: each file, files together, names that llm.c opens, folders; with the facts of each."""

from __future__ import annotations

import filecmp
import glob
import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from copy import copy
from typing import TypeVar

from pybpe.errors import Error
from pybpe.reading.streams import file_sha256
from pybpe.tokens.manifest import FILE_NAME as MANIFEST_NAME
from pybpe.tokens.pack.rows import row_fault
from pybpe.tokens.token_files import TokenFile

from .. import chat
from ..evals import COMPLETIONS
from ..shards import CPU_BATCH, Batch
from . import contents, files, rules

Subjects = Iterator[tuple[str, str, contents.Facts]]
Read = TypeVar("Read")
_NUMBERED = re.compile(r"(.*?)\d+\.bin", re.DOTALL)


class Facts:
    """Everything that was found: for each kind of file, path -> facts. Files that cannot be read become findings."""

    def __init__(self, found: files.FoundFiles, given: Batch | None, findings: list[files.Finding]) -> None:
        def read(paths: Iterable[str], reader: Callable[[str], Read | None], *told: str) -> dict[str, Read]:
            known: dict[str, Read] = {}
            for path in paths:
                try:
                    known |= {} if (facts := reader(path)) is None else {path: facts}
                except Error as error:
                    findings.extend([files.Finding.of_error(path, error, *told)] if told else [])
            return known

        self.files, self.names, self.folders = found.files, found.names, found.folders
        self.given, self.batch = given, given or CPU_BATCH
        self.tokenizers = read(self.files.tokenizers, contents.read_tokenizer, *rules.TOKENIZER_DAMAGED)
        ends = {facts["eot"] for facts in self.tokenizers.values()}
        self.models = read(self.files.models, contents.read_model, *rules.MODEL_DAMAGED)
        self.shards = read(self.files.shards, lambda path: contents.read_shard(path, ends), *rules.SHARD_DAMAGED)
        self.evals = read(self.files.evals, contents.read_eval, *rules.EVAL_DAMAGED)
        read(self.files.masks, chat.read_mask, *rules.MASK_DAMAGED)
        beside = {os.path.dirname(os.path.realpath(path)) for path in self.files.shards}
        known = [path for path in self.files.manifests if os.path.dirname(os.path.realpath(path)) in beside]
        others = [path for path in self.files.manifests if path not in known]  # maybe another program's
        manifests = read(known, contents.read_manifest, *rules.MANIFEST_DAMAGED) | read(others, contents.read_manifest)
        self.manifests, self.files.manifests = list(manifests.values()), list(manifests)
        # The folders that llm.c is started in: those with something at one of its names
        has = (any(os.path.lexists(os.path.join(path, name)) for name in files.PLACES) for path in self.folders)
        self.roots = [path for path, is_root in zip(self.folders, has) if is_root]

    def parts(self) -> Iterator[Facts]:
        """Yields what belongs together: everything, or, if llm.c is started in several folders, the files of each."""

        def owner(path: str) -> str:
            return max((root for root in self.roots if path.startswith(os.path.join(root, ""))), key=len, default="")

        for root in [*self.roots, ""] if len(self.roots) > 1 else []:
            part = copy(self)
            for kind in ("tokenizers", "models", "shards", "evals"):
                setattr(part, kind, {path: facts for path, facts in vars(self)[kind].items() if owner(path) == root})
            part.manifests = [each for each in self.manifests if owner(each.path) == root]
            yield part
        if len(self.roots) < 2:
            yield self


def subjects(seen: Facts) -> Subjects:
    """Yields the kind, the path and the facts of each subject."""
    known = _known_splits(seen)
    yield from _files(seen)
    for part in seen.parts():
        yield from _together(part)
        yield from _encoders(part, known)
    yield from _packed(seen)
    yield from _patterns(seen)
    yield from _places(seen)
    yield from _splits(seen, known)
    for root in seen.roots:
        yield from _lacking(seen, root)


def _files(seen: Facts) -> Subjects:
    batch, given = seen.batch, seen.given
    run = {"B": batch.B, "T": batch.T, "batch": batch, "needs": batch.needs()}
    for path, facts in seen.models.items():
        step = {"fp32": 4, "bf16": 8}[facts["dtype"]]  # items that a CUDA kernel loads at once (16 bytes)
        for_cpu = facts["dtype"] == "fp32" and given is None  # the CPU accepts what only CUDA refuses
        yield "model", path, facts | run | {"step": step, "block": 512 * step, "for_cpu": for_cpu, "given": given}
    for path, facts in seen.tokenizers.items():
        yield "tokenizer", path, facts
    for path, facts in seen.shards.items():
        yield "shard", path, facts | run | {"fit": batch.largest_fit(facts["tokens"])}
    longest = max((model["maxT"] for model in seen.models.values()), default=None)  # the largest T that they allow
    for path, facts in seen.evals.items():
        asked = given or Batch(COMPLETIONS, longest or facts["min_T"])
        each = -(-facts["examples"] // asked.processes)
        yield "eval", path, facts | {"B": asked.B, "T": asked.T, "n": asked.processes, "each": each}


def _together(part: Facts) -> Subjects:
    by_V = {facts["V"]: path for path, facts in reversed(part.tokenizers.items())}  # one of each V says it all
    for path, facts in {**part.shards, **part.evals}.items():
        for V, other in reversed(by_V.items()):
            yield "ids and tokenizer", path, {"id": facts["highest"], "other": other, "V": V}
        for other, model in part.models.items():
            yield "ids and model", path, {"id": facts["highest"], "other": other, "V": model["V"]}
    for path, model in part.models.items():
        for V, other in reversed(by_V.items()):
            yield "model and tokenizer", path, {"V": model["V"], "other": other, "tokens": V}
    trained = [facts for facts in part.shards.values() if facts["split"] == "train"]
    for path, facts in part.tokenizers.items():
        yield "tokenizer and train shards", path, {**facts, "shards": trained}


def _encoders(part: Facts, known: dict[str, str]) -> Subjects:
    """Tokenizers and shards with the manifests that say what belongs together."""
    shards = {os.path.realpath(path): facts["tokens"] for path, facts in part.shards.items()}
    for each in part.manifests:
        wanted = each.manifest.tokenizer.get("fingerprint")
        for path, facts in part.tokenizers.items():
            yield "tokenizer and manifest", path, {**facts, "manifest": each.path, "wanted": wanted}
        for split, record, path in each.records:
            found = {"manifest": each.path, "found": shards.get(os.path.realpath(path)), "exists": os.path.exists(path)}
            if split in files.TRAINED_ON:
                yield "shard of a manifest", path, {**found, "tokens": record.tokens, "sha256": record.sha256}
    custom = [path for path, facts in part.tokenizers.items() if facts["V"] != contents.GPT2_TOKENS]
    unknown = [os.path.dirname(path) for path in shards if path not in known]
    unknown = [folder for folder in unknown if not os.path.exists(os.path.join(folder, MANIFEST_NAME))]
    if custom and unknown and len(unknown) == len(shards):
        yield "unknown tokenizer", max(unknown, key=unknown.count), {"tokenizer": custom[0]}


def _packed(seen: Facts) -> Subjects:
    known = {os.path.realpath(path) for path in seen.shards}
    for described in seen.manifests:
        if (packing := described.manifest.packing) is not None:
            size, mark = packing["sequence_length"], described.manifest.tokenizer["eot"]
            yield "rows and T", described.path, {"size": size, "T": seen.batch.T, "harmless": seen.given is None}
            for path in (path for _, _, path in described.records if os.path.realpath(path) in known):
                with suppress(Error):  # reported already
                    blocks = TokenFile(path).blocks(1 << 20)
                    yield "rows", path, {"wrong": row_fault(blocks, size, mark)}  # type: ignore[arg-type]


def _patterns(seen: Facts) -> Subjects:
    """What else the patterns match by which llm.c finds shards: those with the same name and another number."""
    manifests = [(each.path, {os.path.realpath(path) for _, _, path in each.records}) for each in seen.manifests]
    of_train = (path for path in seen.shards if files.split_of(path) != "test")
    for prefix in dict.fromkeys(match[1] for path in of_train if (match := _NUMBERED.fullmatch(path))):
        paths = sorted(glob.glob(f"{glob.escape(prefix)}*.bin"))
        real = set(map(os.path.realpath, paths))
        manifest, listed = next((each for each in manifests if each[1] & real), (None, set()))
        for path in paths:
            if os.path.realpath(path) not in listed:
                pattern = f"{os.path.basename(prefix)}*.bin"
                yield "beside shards", path, {"there": seen.names.get(path), "pattern": pattern, "manifest": manifest}


def _places(seen: Facts) -> Subjects:
    """Names that hold something other than what llm.c expects. Files of unknown kind are reported already."""
    for path, there in seen.names.items():
        expected = files.PLACES.get(files.place_of(path) or "", there)
        is_told = there in files.UNKNOWN and not os.path.islink(path)
        if there not in (expected, files.BROKEN_LINK) and not is_told:
            when = " with -h 1" if expected == "an eval file" else ""
            yield "place", path, {"there": there, "expected": expected, "when": when}


def _known_splits(seen: Facts) -> dict[str, str]:
    """Returns the split of each shard that a manifest lists, and of copies of it, by real path."""
    records = [(split, each, os.path.realpath(path)) for made in seen.manifests for split, each, path in made.records]
    found = {path: split for split, _, path in records}
    hashes, sizes = {each.sha256: split for split, each, _ in records}, {each.bytes for _, each, _ in records}
    for path in {os.path.realpath(path) for path in seen.shards} - found.keys():
        if os.path.getsize(path) in sizes and (sha256 := file_sha256(path)) in hashes:
            found[path] = hashes[sha256]
    return found


def _splits(seen: Facts, known: dict[str, str]) -> Subjects:
    """The names of the train and val data, which may lead to one shard, to copies, or to another split."""
    by_real = {os.path.realpath(path): path for path in seen.shards}
    for root, data in ((root, data) for root in seen.folders for data in (files.CPU_DATA, files.STORIES_DATA)):
        paths = {split: os.path.join(root, data.format(split)) for split in files.TRAINED_ON}
        real = {split: by_real.get(os.path.realpath(path)) for split, path in paths.items() if os.path.exists(path)}
        a, b = real.get("train"), real.get("val")
        if a and b and filecmp.cmp(a, b, shallow=False):
            yield "same data", paths["val"], {"train": paths["train"]}
            continue
        for split, shard in real.items():
            target = os.path.realpath(shard) if shard else ""
            facts = {"split": split, "of": known.get(target) or files.split_of(target)}
            yield "data of a split", paths[split], {**facts, "verb": "trains" if split == "train" else "validates"}


def _lacking(seen: Facts, root: str) -> Subjects:
    """What a folder lacks in which llm.c is started. On CUDA, -i and -j can name other data, and -e another model."""

    def has(*names: str) -> list[str]:
        return [name for name in names if os.path.lexists(os.path.join(root, name))]

    data = {split: [text.format(split) for text in (files.CPU_DATA, files.STORIES_DATA)] for split in files.TRAINED_ON}
    models, shards = has(*files.MODEL_NAMES.values()), has(*data["train"], *data["val"])
    tokenizer, cuda = os.path.join(root, files.TOKENIZER_NAME), seen.given is not None
    if not os.path.exists(tokenizer) and (models or shards):
        yield "no tokenizer", tokenizer, {}
    missing = [os.path.join(root, names[0]) for names in data.values() if not has(*names)]
    if missing and (shards or models):
        yield "no data", missing[0], {"harmless": cuda or not (shards or files.MODEL_NAMES["fp32"] in models)}
    inside = next((path for path in seen.models if path.startswith(os.path.join(root, ""))), None)
    facts, model = seen.tokenizers.get(tokenizer), os.path.join(root, files.MODEL_NAMES["fp32"])
    if models:
        return
    if inside is not None:
        dtype, shown = seen.models[inside]["dtype"], os.path.relpath(inside, root)
        more = {"other": shown, "remedy": f"link {inside} there", "harmless": cuda or dtype != "fp32" or not shards}
        yield "no model", os.path.join(root, files.MODEL_NAMES[dtype]), more
    elif facts is not None and facts["V"] != contents.GPT2_TOKENS:
        yield "no model for the tokenizer", root, {"V": facts["V"], "tokenizer": tokenizer, "model": model}
    elif shards:
        yield "no model", model, {"other": "d12 or similar", "remedy": "put a checkpoint there", "harmless": cuda}
