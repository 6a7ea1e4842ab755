"""Checks whether llm.c would train on files: what is wrong, what llm.c would do, and how to fix it.

llm.c checks little; on other bad files it aborts, overflows or trains on nonsense. `check` reads tokenizers, shards,
checkpoints and eval files as llm.c would, each by itself and all against each other, and checks the file names that are
compiled into llm.c. The checks themselves are in checks/; docs/llmc-check.md lists them with llm.c's source lines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from pybpe import _binding
from pybpe.errors import ArgumentError, Error

from . import evals
from .batch import Batch
from .checks import eval_files, models, shards, states, tokenizers
from .checks.files import Files, Found, find_files
from .checks.finding import Finding, Run
from .checks.manifests import Described, known_splits, manifest_faults, read_manifests
from .checks.packing import packing_faults
from .checks.places import folder_faults, place_faults, split_faults, working_folders
from .checks.shards import mask_faults
from .checks.together import end_faults, id_faults, name_faults, row_faults, vocabulary_faults

Facts = TypeVar("Facts")


def check(paths: Iterable[_binding.PathLike], batch: Batch | None = None) -> tuple[Files, list[Finding]]:
    """Checks files, or all llm.c files in folders (links and subfolders included).

    Args:
        paths: files and folders.
        batch: B, T and processes of the run. None means those of llm.c's CPU trainer; eval files, which only the
            CUDA trainer reads, are then checked for the model's longest sequence. With a batch, what only CUDA
            refuses is an error for float32 models too.

    Returns:
        The files by kind, and the findings. If no finding is an error, llm.c can train on the files.

    Raises:
        FileError: a path does not exist. ArgumentError: none of the files is an llm.c file.
    """
    findings: list[Finding] = []
    found = find_files((os.fsdecode(path) for path in paths), findings)
    if not any(vars(found.files).values()) and not findings:
        raise ArgumentError("none of these is an llm.c file: expected tokenizer.bin, shards, evals or a checkpoint")
    facts = _read_all(found.files, findings)
    findings += _faults(found, facts, Run(batch))
    return found.files, findings


@dataclass(frozen=True)
class _Facts:
    """The contents of each file that can be read."""

    tokenizers: dict[str, tokenizers.TokenizerFacts]
    models: dict[str, models.ModelFacts]
    shards: dict[str, shards.ShardFacts]
    evals: dict[str, evals.EvalFacts]
    states: dict[str, states.StateFacts]

    def of(self, paths: Iterable[str]) -> _Facts:
        """The facts of some of the files."""
        wanted = set(paths)
        return _Facts(*({path: kind[path] for path in kind if path in wanted} for kind in vars(self).values()))


def _read_all(files: Files, findings: list[Finding]) -> _Facts:
    toks = _read(files.tokenizers, tokenizers.read_tokenizer, tokenizers.REMEDY, findings)
    ends = {facts.eot for facts in toks.values()}
    others = _read(files.others, states.read_state, states.REMEDY, findings)
    return _Facts(
        toks,
        _read(files.models, models.read_model, models.REMEDY, findings),
        _read(files.shards, lambda path: shards.read_shard_facts(path, ends), shards.REMEDY, findings),
        _read(files.evals, evals.eval_facts, eval_files.REMEDY, findings),
        {path: state for path, state in others.items() if state is not None},
    )


def _read(paths: Iterable[str], read: Callable[[str], Facts], remedy: str, findings: list[Finding]) -> dict[str, Facts]:
    """Calls read(path) for each path. Files that cannot be read become findings."""
    found = {}
    for path in paths:
        try:
            found[path] = read(path)
        except Error as error:
            findings.append(Finding.of_error(path, error, remedy))
    return found


def _faults(found: Found, facts: _Facts, run: Run) -> Iterator[Finding]:
    """Checks each file by itself, then all of them together."""
    for path, tokenizer in facts.tokenizers.items():
        yield from tokenizers.tokenizer_faults(path, tokenizer)
    for path, model in facts.models.items():
        yield from models.model_faults(path, model, run)
    for path, shard in facts.shards.items():
        yield from shards.shard_faults(path, shard, run)
    for path, examples in facts.evals.items():
        yield from eval_files.eval_faults(path, examples, run.given or _eval_batch(examples, facts.models))
    unreadable: list[Finding] = []
    manifests = read_manifests(found.files.manifests, facts.shards, unreadable)
    yield from unreadable
    for paths in _owners(found).values():
        yield from _group_faults(facts.of(paths), [each for each in manifests if each.path in paths])
    yield from packing_faults(manifests, facts.shards, run)
    yield from row_faults(found, facts.shards, run)
    yield from name_faults(found)
    yield from mask_faults(found.files.masks, facts.shards)
    yield from place_faults(found)
    yield from split_faults(found, facts.shards, known_splits(manifests, facts.shards))
    yield from folder_faults(found, facts.tokenizers, facts.models, run)
    yield from states.state_faults(facts.states, facts.models, found.folders, run)


def _group_faults(facts: _Facts, manifests: list[Described]) -> Iterator[Finding]:
    """Checks files that belong together."""
    highest = {path: shard.highest for path, shard in facts.shards.items()}
    highest |= {path: examples.highest_id for path, examples in facts.evals.items()}
    yield from id_faults(highest, facts.tokenizers, facts.models)
    yield from vocabulary_faults(facts.tokenizers, facts.models)
    yield from end_faults(facts.tokenizers, facts.shards)
    yield from manifest_faults(manifests, facts.tokenizers, facts.shards)


def _owners(found: Found) -> dict[str, list[str]]:
    """Groups files by the folder that llm.c is started in, since files of two folders need not belong together. Files
    outside any such folder are under ""."""
    roots = sorted(working_folders(found), key=len, reverse=True)
    owned: dict[str, list[str]] = {}
    for path in (path for paths in vars(found.files).values() for path in paths):
        inside = (root for root in roots if path.startswith(os.path.join(root, "")))
        owned.setdefault(next(inside, "") if len(roots) > 1 else "", []).append(path)
    return owned


def _eval_batch(facts: evals.EvalFacts, known: dict[str, models.ModelFacts]) -> Batch:
    """Returns the largest T that the models allow."""
    longest = max((model.maxT for model in known.values() if model.maxT > 0), default=facts.min_T)
    return Batch(evals.COMPLETIONS, longest)
