"""Turns docstrings into Markdown: the sections Args, Returns and Raises into lists, the examples into blocks of code.

The parsers of griffe expect one name per entry. In pybpe's docstrings, an entry may name several arguments ("pattern,
digits: as in `train`"), or none ("The other arguments are the same as in `train`.").
"""

from __future__ import annotations

import inspect
import logging
import re
from typing import Any

from griffe import Class, Extension, Function, Object

LOG = logging.getLogger("mkdocs.plugins.docstrings")  # strict mode fails on its warnings
SECTION = re.compile(r"^(Args|Returns|Yields|Raises|Attributes):[ \t]*(.*\n(?:(?:[ \t]+.*)?\n)*)", re.MULTILINE)
TITLES = {"Args": "Arguments"}
EXAMPLES = re.compile(r"^>>> .*\n(?:.+\n)*(?:\n>>> .*\n(?:.+\n)*)*", re.MULTILINE)
ENTRY = re.compile(r"(?=^\S)", re.MULTILINE)
NAME = r"\*{0,2}[\w.]+"
NAMES = re.compile(rf"({NAME}(?:(?:, | and ){NAME})*): (.*)", re.DOTALL)


class Docstrings(Extension):
    """Rewrites each docstring before it is rendered."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value, obj)


def as_markdown(text: str, obj: Object) -> str:
    """Returns a docstring as Markdown."""
    text = EXAMPLES.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```\n", f"{text}\n")
    return SECTION.sub(lambda match: section(match[1], match[2], obj), text)


def section(name: str, body: str, obj: Object) -> str:
    """Returns a section as a heading and a list, one item per entry."""
    first, _, rest = body.partition("\n")
    entries = [first.strip()] * bool(first.strip()) + [entry.strip() for entry in ENTRY.split(inspect.cleandoc(rest))]
    if name == "Args":
        check_names(entries, obj)
    items = "".join(f"- {item(entry)}\n" for entry in entries if entry)
    return f"**{TITLES.get(name, name)}**\n\n{items}\n"


def item(entry: str) -> str:
    """Returns an entry with its names as code, on one line."""
    match = NAMES.fullmatch(entry)
    if match:
        names = re.sub(rf"{NAME}(?=, | and |$)", r"`\g<0>`", match[1])
        entry = f"{names}: {match[2]}"
    return re.sub(r"\n[ \t]*", "\n    ", entry)


def check_names(entries: list[str], obj: Object) -> None:
    """Warns if the docstring describes an argument that the function does not have."""
    if isinstance(obj, Class):
        known = {parameter.name for parameter in obj.parameters} | set(obj.members)
    else:
        known = {parameter.name for parameter in obj.parameters} if isinstance(obj, Function) else set()
    for entry in entries:
        match = NAMES.fullmatch(entry)
        for name in re.split(", | and ", match[1]) if match else []:
            if known and name.strip("*") not in known:
                LOG.warning("%s has no argument %r, which its docstring describes", obj.path, name)
