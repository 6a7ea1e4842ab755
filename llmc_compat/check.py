"""Would llm.c train on these files? What is wrong, what llm.c would do about it, and how to mend it.

llm.c checks little, and aborts, overflows or trains on nonsense where it does not. `check` reads tokenizers, shards,
checkpoints and eval files as llm.c would, each by itself (faults.py) and all against each other, and sees what a
folder lacks (folder_faults.py).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from pybpe import _binding
from pybpe.dataset.manifest import FILE_NAME as MANIFEST_NAME
from pybpe.errors import ArgumentError, Error
from pybpe.pretokenize import open_input

from . import chat, checkpoint, evals
from .batch import CPU_BATCH, Batch
from .faults import (
    TOKENIZER_MAGIC,
    Finding,
    ModelFacts,
    ShardFacts,
    TokenizerFacts,
    eval_faults,
    model_faults,
    read_model,
    read_shard_facts,
    read_tokenizer,
    shard_faults,
    tokenizer_faults,
)
from .folder_faults import manifest_faults, working_folder_faults

Facts = TypeVar("Facts")

_KINDS = {
    TOKENIZER_MAGIC: "tokenizers",
    20240520: "shards",
    20240801: "shards",
    checkpoint.MAGIC: "models",
    evals.MAGIC: "evals",
    chat.MASK_MAGIC: "masks",
    20240327: "others",  # activations that llm.c's tests compare
    20240527: "others",  # the optimizer's state, beside the checkpoints that llm.c writes
}
_NUMBERED = re.compile(rb"(.*?)(\d+)\.bin", re.DOTALL)


@dataclass
class Files:
    """What was found, by kind: paths."""

    tokenizers: list[str] = field(default_factory=list)
    shards: list[str] = field(default_factory=list)
    models: list[str] = field(default_factory=list)
    evals: list[str] = field(default_factory=list)
    masks: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    manifests: list[str] = field(default_factory=list)


def check(paths: Iterable[_binding.PathLike], batch: Batch | None = None) -> tuple[Files, list[Finding]]:
    """Checks files, or all files of llm.c in folders (links and subfolders included).

    Args:
        paths: files and folders.
        batch: B, T and processes of the run. None stands for those of llm.c's CPU trainer; eval files, which only
            the CUDA trainer reads, are then checked for the longest sequence of the model.

    Returns:
        The files by kind, and the faults; none means that llm.c can train on them.

    Raises:
        FileError: a path does not exist. ArgumentError: there is no file of llm.c among them.
    """
    findings: list[Finding] = []
    given = [os.fsdecode(path) for path in paths]
    folders = [path for path in given if os.path.isdir(path)]
    files = _sort_files(_walk(given, findings), findings)
    if not any(vars(files).values()) and not findings:
        raise ArgumentError("none of these is a file of llm.c: expected tokenizer.bin, shards, evals or a checkpoint")
    again = "write it again"
    tokenizers = _read(files.tokenizers, read_tokenizer, f"{again} with save_bin or pybpe export", findings)
    models = _read(files.models, read_model, f"{again} with pybpe llmc workspace or checkpoint", findings)
    shards = _read(files.shards, read_shard_facts, f"{again} with pybpe binarize", findings)
    examples = _read(files.evals, evals.eval_facts, f"{again} with pybpe llmc eval", findings)
    for path, tokenizer in tokenizers.items():
        findings += tokenizer_faults(path, tokenizer)
    for path, model in models.items():
        findings += model_faults(path, model, batch or CPU_BATCH)
    for path, shard in shards.items():
        findings += shard_faults(path, shard, batch or CPU_BATCH)
    for path, facts in examples.items():
        findings += eval_faults(path, facts, batch or _eval_batch(facts, models))
    highest = {path: facts.highest for path, facts in shards.items()}
    highest |= {path: facts.highest_id for path, facts in examples.items()}
    findings += _id_faults(highest, tokenizers, models)
    findings += _vocabulary_faults(tokenizers, models)
    findings += _order_faults(files.shards)
    findings += _mask_faults(files.masks, shards)
    findings += manifest_faults(files.manifests, tokenizers, shards)
    findings += working_folder_faults(folders, tokenizers, files.models)
    return files, findings


# ----------------------------------------------------------------------------------------------------
# Finding files


def _walk(paths: Iterable[str], findings: list[Finding]) -> Iterator[str]:
    """All regular files of the paths, each once, however many links lead to it."""
    seen = set()
    for path in paths:
        inside = [path]
        if os.path.isdir(path):
            inside = sorted(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        elif os.path.exists(path) and not os.path.isfile(path):
            raise ArgumentError(f"{path}: is neither a file nor a folder")
        for name in inside:
            real = os.path.realpath(name)
            if os.path.islink(name) and not os.path.exists(name):
                findings.append(
                    Finding(name, f"links to {real}, which does not exist", "finds no such file", "make the link anew")
                )
            elif real not in seen and (os.path.isfile(name) or name == path):
                seen.add(real)
                yield name


def _sort_files(paths: Iterable[str], findings: list[Finding]) -> Files:
    """By magic. A .bin file of no known kind is a fault; other files are not llm.c's."""
    files = Files()
    for path in paths:
        with open_input(path) as stream:
            first = stream.read(4)
        magic = int.from_bytes(first, "little")
        if magic in _KINDS:
            getattr(files, _KINDS[magic]).append(path)
        elif os.path.basename(path) == MANIFEST_NAME:
            files.manifests.append(path)
        elif path.endswith(".bin"):
            remedy = "if it is a headerless file for nanoGPT, write it again with format llmc"
            fault = f"magic {magic} is that of no file of llm.c" if first else "is empty"
            findings.append(Finding(path, fault, "aborts with 'Bad magic'", remedy if first else "write it again"))
    return files


def _read(paths: Iterable[str], read: Callable[[str], Facts], remedy: str, findings: list[Finding]) -> dict[str, Facts]:
    """read(path) for each path that can be read; the others become findings."""
    found = {}
    for path in paths:
        try:
            found[path] = read(path)
        except Error as error:
            findings.append(Finding.of_error(path, error, remedy))
    return found


def _eval_batch(facts: evals.EvalFacts, models: dict[str, ModelFacts]) -> Batch:
    """The most that the models can serve."""
    return Batch(evals.COMPLETIONS, max((m.config.max_seq_len for m in models.values()), default=facts.min_T))


# ----------------------------------------------------------------------------------------------------
# All against each other


def _id_faults(
    highest: dict[str, int], tokenizers: dict[str, TokenizerFacts], models: dict[str, ModelFacts]
) -> Iterator[Finding]:
    """Ids that the vocabulary lacks."""
    for path, found in highest.items():
        for other, tokenizer in tokenizers.items():
            if found >= tokenizer.vocab_size:
                fault = (
                    f"has the id {found}, and {other} has {tokenizer.vocab_size} tokens: they do not belong together"
                )
                yield Finding(path, fault, "cannot decode it", "encode the text with this tokenizer")
        for other, model in models.items():
            if found >= model.config.vocab_size:
                fault = f"has the id {found}, and {other} has V {model.config.vocab_size}"
                effect = "aborts at the batch that has it"
                yield Finding(
                    path, fault, effect, "pybpe llmc checkpoint new or resize, for the tokenizer of this file"
                )


def _vocabulary_faults(tokenizers: dict[str, TokenizerFacts], models: dict[str, ModelFacts]) -> Iterator[Finding]:
    """Models whose vocabulary is not the tokenizer's."""
    for path, model in models.items():
        for other, tokenizer in tokenizers.items():
            V = model.config.vocab_size
            if V != tokenizer.vocab_size:
                more = "samples ids that the tokenizer lacks: 'invalid token id'"
                effect = more if V > tokenizer.vocab_size else "aborts at the first id that the model lacks"
                fault = f"V is {V}, and {other} has {tokenizer.vocab_size} tokens"
                yield Finding(path, fault, effect, "pybpe llmc checkpoint new or resize, for this tokenizer")


def _order_faults(shards: Iterable[str]) -> Iterator[Finding]:
    """Shards whose names sort otherwise than their numbers: llm.c reads them in the order of glob, by bytes."""
    rows: dict[bytes, list[tuple[int, bytes]]] = {}
    for path in map(os.fsencode, shards):
        match = _NUMBERED.fullmatch(path)
        if match:
            rows.setdefault(match[1], []).append((int(match[2]), path))
    for row in rows.values():
        by_number = [path for _, path in sorted(row)]
        for path, expected in zip(sorted(by_number), by_number):
            if path != expected:
                fault = f"by its name it comes before {os.path.basename(os.fsdecode(expected))}"
                effect = "reads shards in the order of their names"
                yield Finding(os.fsdecode(path), fault, effect, "name them with as many digits each: 000002, 000010")
                break


def _mask_faults(masks: Iterable[str], shards: dict[str, ShardFacts]) -> Iterator[Finding]:
    """Loss masks that cannot be read, or that do not belong to the shard beside them."""
    remedy = "write both again with pybpe llmc chat"
    by_mask = {os.path.realpath(chat.mask_path(path)): facts for path, facts in shards.items()}
    for path in masks:
        try:
            count = len(chat.read_mask(path))
        except Error as error:
            yield Finding(path, str(error).removeprefix(f"{path}: "), "does not read it, but its readers fail", remedy)
            continue
        shard = by_mask.get(os.path.realpath(path))
        if shard is not None and shard.tokens != count:
            fault = f"has {count} values, and the shard beside it {shard.tokens} tokens"
            yield Finding(path, fault, "does not read it, but its readers fail", remedy)
