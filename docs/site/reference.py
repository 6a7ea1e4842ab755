"""The reference pages that are made from code other than Python modules: pybpe.h and the command line."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path

from links import code

from pybpe import cli

GENERATED = ("reference/c.md", "reference/cli.md")
WIDTH = "100"

C_INTRODUCTION = """\
# The C library

This page is `csrc/pybpe.h`, which documents every public function. To use the library, include it and link
`build/libpybpe.a`, or use the two files that `make amalgamation` writes.
"""

CLI_INTRODUCTION = """\
# The command line

This page shows what `pybpe --help` and `pybpe COMMAND --help` print.
"""


def c_page(header: Path) -> str:
    """Returns the header as a page: a chapter for each comment that begins with a line of dashes."""
    text = header.read_text(encoding="utf-8")
    conventions, _, rest = text.partition("*/")
    first, *chapters = re.split(r"^/\* -{50,}\n", rest, flags=re.MULTILINE)
    parts = [C_INTRODUCTION, "## Conventions\n", code(f"{conventions}*/{first}", "c")]
    for chapter in chapters:
        heading, _, body = chapter.partition("*/")
        title, _, more = heading.strip().partition("\n")
        title, _, subtitle = title.partition(": ")
        comment = " ".join(f"{subtitle} {more}".split())
        parts += [f"## {title}\n", f"/* {comment} */\n{body}" if comment else body]
        parts[-1] = code(parts[-1].strip("\n"), "c")
    return "\n".join(parts)


def cli_page() -> str:
    """Returns the help of each command, as a terminal of 100 columns shows it."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    try:
        helps = "\n".join(f"## {name}\n\n{code(text, 'text')}" for name, text in help_of(cli._parser()))
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before
    return f"{CLI_INTRODUCTION}\n{helps}"


def help_of(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yields the name and the help of a command and of the commands below it."""
    yield parser.prog, parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in dict.fromkeys(action.choices.values()):
                yield from help_of(below)
