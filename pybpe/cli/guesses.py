"""Suggests the command or option that the user probably meant by one that does not exist."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

_COMMANDS = {
    "info": "inspect",
    "show": "inspect",
    "tokenize": "encode",
    "detokenize": "decode",
    "convert": "export",
    "save": "export",
    "compare": "diff",
    "visualize": "viz",
    "check": "llmc check",
    "workspace": "llmc workspace",
    "clean": "corpus",
    "dedup": "corpus --dedup",
    "shard": "binarize",
    "trim": "prune",
    "add": "extend",
}
_OPTIONS = {
    "--special-tokens": "--special-token S, once per token",
    "--specials": "--special-token S, once per token",
    "--input": "the name of the file without an option",
    "--file": "the name of the file without an option",
    "--model": "-t TOK",
    "--num-workers": "--workers",
    "--threads": "--workers",
    "--processes": "--workers",
    "--size": "--vocab-size",
    "--out": "-o OUT",
    "--output-dir": "-o DIR",
    "--verbose": "no option: progress is shown unless you give --quiet",
}


def unknown_command(word: str, commands: Collection[str]) -> str:
    """Returns the error message for a word that is not a command.

    >>> unknown_command("tokenize", ["encode", "decode"])
    "there is no command 'tokenize'; did you mean encode?"
    """
    near = _COMMANDS.get(word) or _nearest(word, commands)
    is_known = near and near.split()[0] in commands
    guess = f"did you mean {near}?" if is_known else f"the commands are {', '.join(commands)}"
    return f"there is no command {word[:40]!r}; {guess}"


def unknown_arguments(words: Collection[str], options: Collection[str]) -> str:
    """Returns the error message for words that a command does not accept.

    >>> unknown_arguments(["--vocab_size=3"], ["--vocab-size", "--json"])
    'unrecognized arguments: --vocab_size=3; did you mean --vocab-size?'
    """
    message = f"unrecognized arguments: {' '.join(words)}"
    for word in words:
        if word.startswith("-"):
            name = word.partition("=")[0]
            near = _OPTIONS.get(name) or _nearest(name, options)
            return message + (f"; did you mean {near}?" if near else "")
    return message


def _nearest(word: str, known: Collection[str]) -> str | None:
    return next(iter(get_close_matches(word, known, 1, 0.75)), None)
