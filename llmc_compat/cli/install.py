"""The command `pybpe llmc install`, and the option `pybpe --include-dir`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pybpe.cli.command import Command
from pybpe.cli.common import report
from pybpe.errors import ArgumentError

Result = TypeVar("Result")


def add_install(command: Command) -> None:
    """Replaces llmc/tokenizer.h, dataloader.h and rand.h with pybpe's, which read the same files, check them, and
    encode prompts. Keeps the originals as *.h.orig, and adds the C library and a GNUmakefile that links it. No
    other file changes, and llm.c builds by the same commands as before. --undo restores everything.

    examples:
      pybpe llmc install path/to/llm.c
      pybpe llmc install path/to/llm.c --undo
    """
    command.option("llmc LLMC", "the folder with train_gpt2.c and llmc/", Path)
    command.option("--undo", "restore llm.c's own files")
    command.runs(_run)


def _run(args: argparse.Namespace) -> None:
    from llmc_compat.install import install, uninstall

    done = _checked(uninstall if args.undo else install, args.llmc)
    report(args, {"llmc": str(args.llmc), "installed": not args.undo}, done)


def include_dir() -> str:
    """Returns the folder of pybpe.h and of the drop-in headers."""
    from llmc_compat.install import library

    return str(_checked(library))


def _checked(function: Callable[..., Result], *args: Path) -> Result:
    """Calls a function of install.py, which does not need pybpe's errors."""
    from llmc_compat.install import InstallError

    try:
        return function(*args)
    except InstallError as error:
        raise ArgumentError(str(error)) from None
