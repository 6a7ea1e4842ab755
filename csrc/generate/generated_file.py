"""The command line of the *_generate.py programs: writes a header of tables, or checks that it is current."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path


def tables(text: str) -> str:
    """Returns the file without its first line, which names the version of the package; only the tables matter."""
    return text.partition("\n")[2]


def main(target: Path, package: str, generate: Callable[[], str]) -> int:
    """Writes `target`, or compares it if the command line has --check.

    Args:
        target: the header.
        package: the Python package, with its version, that the tables come from.
        generate: returns the whole file.

    Returns:
        The exit code: 1 if --check finds a difference.
    """
    parser = argparse.ArgumentParser(description=f"Writes csrc/{target.name} from {package}, which is installed.")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    arguments = parser.parse_args()
    text = generate()
    if not arguments.check:
        target.write_text(text, encoding="ascii")
    elif not target.exists() or tables(target.read_text(encoding="ascii")) != tables(text):
        print(f"{target} differs from what {package} gives: run without --check", file=sys.stderr)
        return 1
    return 0
