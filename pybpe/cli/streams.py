"""The standard streams of a program: they may be closed, full, or a pipe that nobody reads any more."""

from __future__ import annotations

import io
import os
import sys

# The direction in which /dev/null stands for a closed stream. To use it in the other one is an error.
_STAND_INS = (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))


def open_streams() -> None:
    """Gives closed streams (`>&-`) a file, or the first files to be opened would get their numbers and be taken for
    them. Using standard input or output then fails as any bad file does; what is said on standard error is lost."""
    for name, flags, mode in _STAND_INS:
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file's name may hold bytes that are no text
            stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Lets what standard output did not take go nowhere, when Python ends and tries again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
