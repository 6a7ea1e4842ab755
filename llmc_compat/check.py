"""Would llm.c train on these files? What is wrong, what llm.c would do about it, and how to mend it.

llm.c checks little, and aborts, overflows or trains on nonsense where it does not. `check` reads tokenizers, shards,
checkpoints and eval files as llm.c would, each by itself and all against each other, and looks at what lies at the
names that are compiled into llm.c. The looks themselves are in checks/; docs/llmc-check.md lists them beside llm.c's
source.
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
from .checks.masks import mask_faults
from .checks.places import folder_faults, place_faults, split_faults, working_folders
from .checks.together import end_faults, id_faults, name_faults, row_faults, vocabulary_faults

Facts = TypeVar("Facts")


def check(paths: Iterable[_binding.PathLike], batch: Batch | None = None) -> tuple[Files, list[Finding]]:
    """Checks files, or all files of llm.c in folders (links and subfolders included).

    Args:
        paths: files and folders.
        batch: B, T and processes of the run. None stands for those of llm.c's CPU trainer; eval files, which only
            the CUDA trainer reads, are then checked for the longest sequence of the model. With a batch, what only
            CUDA refuses is an error for float32 models too.

    Returns:
        The files by kind, and the findings; no error among them means that llm.c can train on the files.

    Raises:
        FileError: a path does not exist. ArgumentError: there is no file of llm.c among them.
    """
    findings: list[Finding] = []
    found = find_files((os.fsdecode(path) for path in paths), findings)
    if not any(vars(found.files).values()) and not findings:
        raise ArgumentError("none of these is a file of llm.c: expected tokenizer.bin, shards, evals or a checkpoint")
    facts = _read_all(found.files, findings)
    findings += _faults(found, facts, Run(batch))
    return found.files, findings


@dataclass(frozen=True)
class _Facts:
    """What is in each file that can be read."""

    tokenizers: dict[str, tokenizers.TokenizerFacts]
    models: dict[str, models.ModelFacts]
    shards: dict[str, shards.ShardFacts]
    evals: dict[str, evals.EvalFacts]
    states: dict[str, states.StateFacts]

    def of(self, paths: Iterable[str]) -> _Facts:
        """Those of some files."""
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
    """read(path) for each path that can be read; the others become findings."""
    found = {}
    for path in paths:
        try:
            found[path] = read(path)
        except Error as error:
            findings.append(Finding.of_error(path, error, remedy))
    return found


def _faults(found: Found, facts: _Facts, run: Run) -> Iterator[Finding]:
    """Each file by itself, then all together."""
    for path, tokenizer in facts.tokenizers.items():
        yield from tokenizers.tokenizer_faults(path, tokenizer)
    for path, model in facts.models.items():
        yield from models.model_faults(path, model, run)
    for path, shard in facts.shards.items():
        yield from shards.shard_faults(path, shard, run)
    for path, examples in facts.evals.items():
        yield from eval_files.eval_faults(path, examples, run.given or _eval_batch(examples, facts.models))
    manifests = read_manifests(found.files.manifests)
    for paths in _owners(found).values():
        yield from _group_faults(facts.of(paths), [each for each in manifests if each.path in paths])
    yield from row_faults(found, facts.shards, run)
    yield from name_faults(found)
    yield from mask_faults(found.files.masks, facts.shards)
    yield from place_faults(found)
    yield from split_faults(found, facts.shards, known_splits(manifests, facts.shards))
    yield from folder_faults(found, facts.tokenizers, facts.models, run)
    yield from states.state_faults(facts.states, facts.models, found.folders, run)


def _group_faults(facts: _Facts, manifests: list[Described]) -> Iterator[Finding]:
    """Files that belong together."""
    highest = {path: shard.highest for path, shard in facts.shards.items()}
    highest |= {path: examples.highest_id for path, examples in facts.evals.items()}
    yield from id_faults(highest, facts.tokenizers, facts.models)
    yield from vocabulary_faults(facts.tokenizers, facts.models)
    yield from end_faults(facts.tokenizers, facts.shards)
    yield from manifest_faults(manifests, facts.tokenizers, facts.shards)


def _owners(found: Found) -> dict[str, list[str]]:
    """The files of each folder that llm.c is to be started in, since those of two need not belong together; under ""
    those of none."""
    roots = sorted(working_folders(found), key=len, reverse=True)
    owned: dict[str, list[str]] = {}
    for path in (path for paths in vars(found.files).values() for path in paths):
        inside = (root for root in roots if path.startswith(os.path.join(root, "")))
        owned.setdefault(next(inside, "") if len(roots) > 1 else "", []).append(path)
    return owned


def _eval_batch(facts: evals.EvalFacts, known: dict[str, models.ModelFacts]) -> Batch:
    """The most that the models can serve."""
    longest = max((model.maxT for model in known.values() if model.maxT > 0), default=facts.min_T)
    return Batch(evals.COMPLETIONS, longest)
