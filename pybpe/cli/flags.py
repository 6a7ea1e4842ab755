"""Messages of the library, which name Python's arguments, for somebody who typed flags."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from functools import partial

# Arguments of Python whose flag has another name: argument -> where argparse keeps the flag, and the flag.
_OTHERS = {"special_tokens": ("special_token", "--special-token"), "resume": ("no_resume", "--no-resume")}
_VALUE = r"(?:'(?P<text>[^']*)'|(?P<number>-?\d[\w.]*|True|False|None)(?![\w.]))?"


def in_flags(message: str, options: Iterable[str]) -> str:
    """The message with `min_shard_tokens=0` as `--min-shard-tokens 0`, for the options of a command.

    An option of one word, such as eot, is also a word of plain English: it is replaced only before "=", or where the
    message begins with "eot must".

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
    message = re.sub(r"(--[\w-]+(?: [\w.]+)?) \(\1\)", r"\1", message)  # a message that named the flag too
    return message.replace("must be None, ", "must be ").replace(" or None, not ", ", not ")


def _typed(flag: str, found: re.Match[str]) -> str:
    text, number = found["text"], found["number"]
    if text is not None:
        return f"{flag} {shlex.quote(text)}"
    return flag if number in (None, "True", "False", "None") else f"{flag} {number}"
