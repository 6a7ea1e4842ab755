"""Checks whether llm.c would train on files: what is wrong, what llm.c would do, and how to fix it.

llm.c checks little; on other bad files it aborts, overflows or trains on nonsense. `check` reads tokenizers, shards,
checkpoints and eval files as llm.c would, each by itself and all against each other, and checks the file names that are
compiled into llm.c. The checks themselves are in checks/; docs/llmc-check.md lists them with llm.c's source lines.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from pybpe import _binding
from pybpe.errors import ArgumentError

from .checks.contents import Seen, read_all
from .checks.data import data_faults, mask_faults
from .checks.files import Files, Finding, Found, Run, find_files
from .checks.manifests import manifest_faults, packing_faults
from .checks.models import model_faults, state_faults
from .checks.together import (
    end_faults,
    folder_faults,
    id_faults,
    name_faults,
    place_faults,
    row_faults,
    split_faults,
    vocabulary_faults,
    working_folders,
)
from .shards import Batch

Check = Callable[[Seen], Iterator[Finding]]
_TOGETHER: list[Check] = [id_faults, vocabulary_faults, end_faults, manifest_faults]
_OTHERS: list[Check] = [packing_faults, row_faults, name_faults, mask_faults, place_faults, split_faults, folder_faults]


def check(paths: Iterable[_binding.PathLike], batch: Batch | None = None) -> tuple[Files, list[Finding]]:
    """Checks files, or all llm.c files in folders (links and subfolders included).

    Args:
        paths: files and folders.
        batch: B, T and processes of the run. None means the values of llm.c's CPU trainer; eval files, which only the
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
    seen = read_all(found, Run(batch), findings)
    findings += [*model_faults(seen), *data_faults(seen)]
    for part in map(seen.part, _owners(found).values()):
        findings += (finding for look in _TOGETHER for finding in look(part))
    findings += (finding for look in (*_OTHERS, state_faults) for finding in look(seen))
    return found.files, findings


def _owners(found: Found) -> dict[str, list[str]]:
    """Groups files by the folder that llm.c is started in, since files of two folders need not belong together. Files
    outside any such folder are under ""."""
    roots = sorted(working_folders(found), key=len, reverse=True)
    owned: dict[str, list[str]] = {}
    for path in (path for paths in vars(found.files).values() for path in paths):
        inside = (root for root in roots if path.startswith(os.path.join(root, "")))
        owned.setdefault(next(inside, "") if len(roots) > 1 else "", []).append(path)
    return owned
