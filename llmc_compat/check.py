"""Checks whether llm.c would train on files: finds faults, their effect on llm.c, and the remedy.

llm.c checks little. On other bad files it aborts, overflows or trains on nonsense. `check` reads tokenizers, shards,
checkpoints and eval files as llm.c would, by themselves and against each other, and the names that are compiled into
llm.c. checks/rules.py has a table of all faults. docs/llmc-check.md lists them with llm.c's source lines.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

from pybpe import _binding
from pybpe.errors import ArgumentError

from .checks.files import Files, Finding, find_files
from .checks.rules import faults
from .checks.subjects import Facts, subjects
from .shards import Batch


def check(paths: Iterable[_binding.PathLike], batch: Batch | None = None) -> tuple[Files, list[Finding]]:
    """Checks files, or all llm.c files in folders (links and subfolders included).

    Args:
        paths: files and folders.
        batch: B, T and processes of the run. None means the values of llm.c's CPU trainer. Eval files, which only the
            CUDA trainer reads, are then checked for the model's longest sequence. With a batch, faults that only CUDA
            refuses are errors for float32 models too.

    Returns:
        The files by kind, and the findings. If no finding is an error, llm.c can train on the files.

    Raises:
        FileError: a path does not exist. ArgumentError: none of the files is an llm.c file.
    """
    findings: list[Finding] = []
    seen = Facts(find_files((os.fsdecode(path) for path in paths), findings), batch, findings)
    checked = (paths for kind, paths in vars(seen.files).items() if kind != "others")
    if not (any(checked) or findings):
        raise ArgumentError("none of these is an llm.c file: expected tokenizer.bin, shards, evals or a checkpoint")
    findings += (finding for kind, path, facts in subjects(seen) for finding in faults(kind, path, **facts))
    return seen.files, findings
