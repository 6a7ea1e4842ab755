"""How the command line words errors: Python arguments as flags, and guesses at misspelled commands and flags."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import partial

# Python arguments whose flag has another name: argument -> argparse's name of the flag, and the flag.
_OTHERS = {"special_tokens": ("special_token", "--special-token"), "resume": ("no_resume", "--no-resume")}
_VALUE = r"(?:'(?P<text>[^']*)'|(?P<number>-?\d[\w.]*|True|False|None)(?![\w.]))?"


def in_flags(message: str, options: Iterable[str]) -> str:
    """Returns the message with arguments such as `min_shard_tokens=0` written as `--min-shard-tokens 0`. `options` are
    those of the command.

    An option of one word, such as name, may also be an English word: it is replaced only before "=", or if the message
    begins with "name must".

    >>> in_flags("there is no mark: pass eot='none'", ["eot"])
    'there is no mark: pass --eot none'
    >>> in_flags("vocab_size 3 is too small", ["vocab_size"])
    '--vocab-size 3 is too small'
    """
    known = set(options)
    flags = {name: "--" + name.replace("_", "-") for name in known}
    flags |= {name: flag for name, (kept, flag) in _OTHERS.items() if kept in known}
    for name, flag in flags.items():
        message = re.sub(rf"(?<![\w/.-]){name}={_VALUE}", partial(_typed, flag), message)
        message = re.sub(rf"^{name} (?=must )", f"{flag} ", message)
        if "_" in name:
            message = re.sub(rf"(?<![\w/.-]){name}(?![\w/.(-])", flag, message)
    message = re.sub(r"(--[\w-]+(?: [\w.]+)?) \(\1\)", r"\1", message)  # the message also named the flag
    return message.replace("must be None, ", "must be ").replace(" or None, not ", ", not ")


def _typed(flag: str, found: re.Match[str]) -> str:
    text, number = found["text"], found["number"]
    if text is not None:
        return f"{flag} {shlex.quote(text)}"
    return flag if number in (None, "True", "False", "None") else f"{flag} {number}"


_COMMANDS = {
    "info": "inspect",
    "show": "inspect",
    "tokenize": "encode",
    "detokenize": "decode",
    "convert": "export",
    "save": "export",
    "measure": "compare",
    "recommend": "advise",
    "suggest": "advise",
    "visualize": "viz",
    "check": "llmc check",
    "workspace": "llmc workspace",
    "clean": "corpus",
    "dedup": "corpus --dedup",
    "shard": "binarize",
    "shuffle": "mix",
    "blend": "mix",
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
}
_SAID = {"--verbose": "; commands show progress unless you give --quiet"}


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
            return message + (f"; did you mean {near}?" if near else _SAID.get(name, ""))
    return message


def _nearest(word: str, known: Collection[str]) -> str | None:
    return next(iter(get_close_matches(word, known, 1, 0.75)), None)
