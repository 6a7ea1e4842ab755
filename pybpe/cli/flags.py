"""Rewrites the library's messages, which name Python's arguments, for users who typed flags."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
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
