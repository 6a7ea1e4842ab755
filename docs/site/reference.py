"""The reference pages that are made from code other than Python modules: the headers of C and the command line."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from pathlib import Path

from links import code

from pybpe import cli

GENERATED = ("reference/c.md", "reference/cli.md")
WIDTH = "88"

C_INTRODUCTION = """\
# The C library

This page is made from `csrc/pybpe.h`, `csrc/pybpe_train.h` and `csrc/pybpe_corpus.h`, which document every public
function. To use the library, include the header that you need and link `libpybpe.a`, which `make install` installs, or
compile the files that `make amalgamation` writes.
"""
COMMENT = re.compile(r"^/\* ?(.*?)\s*\*/\n", re.DOTALL | re.MULTILINE)
DECLARED = re.compile(r"^(?:typedef struct|enum|.*?[ *](?=pybpe_\w+\()) ?(pybpe_\w+)", re.MULTILINE)

CLI_INTRODUCTION = """\
# The command line

This page shows what `pybpe --help` and `pybpe COMMAND --help` print. The file name `-` means standard input or
output, and `--json` prints machine-readable output. If `argcomplete` is installed,
`eval "$(register-python-argcomplete pybpe)"` makes the shell complete commands and options.
"""


def c_page(*headers: Path) -> str:
    """Returns the headers as a page: a chapter for each comment that begins with a line of dashes."""
    chapters: list[str] = []
    conventions = headers[0].read_text(encoding="utf-8").partition("Conventions, for every function:\n")[2]
    conventions = conventions.partition("*/")[0]
    for header in headers:
        text = header.read_text(encoding="utf-8").partition("/* pybpe: end cdef */")[0]
        chapters += re.split(r"^/\* -{50,}\n", text, flags=re.MULTILINE)[1:]
    return "\n".join([C_INTRODUCTION, f"## Conventions\n\n{as_text(conventions)}", *map(c_chapter, chapters)])


def c_chapter(chapter: str) -> str:
    """Returns a chapter: its comments as text, each after the declarations that it describes."""
    heading, _, body = chapter.partition("*/")
    title, _, more = heading.strip().partition(":")
    parts = [f"## {title.strip()}\n", as_text(more.strip()[:1].upper() + more.strip()[1:])]
    before, *rest = COMMENT.split(body)
    for comment, declarations in [("", before), *zip(rest[::2], rest[1::2])]:
        names = list(dict.fromkeys(DECLARED.findall(declarations)))
        parts += [f"### {', '.join(f'`{name}`' for name in names)}\n"] * bool(names)
        declarations = declarations.replace("PYBPE_API ", "")
        parts += [code(declarations.strip("\n"), "c")] * bool(declarations.strip())
        parts.append(as_text(comment))
    return "\n".join(parts)


def as_text(comment: str) -> str:
    """Returns a comment as Markdown that shows its asterisks and brackets, and keeps its lists."""
    lines = (re.sub(r"^ {2,3}(?=\S)", "", line) for line in comment.splitlines())
    parts = re.split(r"(`[^`]*`)", "\n".join(lines))
    return "".join(part if part[:1] == "`" else re.sub(r"([*_<\[\]])", r"\\\1", part) for part in parts) + "\n"


def cli_page() -> str:
    """Returns the help of each command, as a terminal of 88 columns shows it."""
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
