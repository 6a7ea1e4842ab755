"""The standard streams, which may be closed, full, or a pipe whose reader has exited."""

from __future__ import annotations

import io
import os
import sys

# The direction in which /dev/null replaces a closed stream. Using it in the other direction is an error.
_STAND_INS = (("stdin", os.O_WRONLY, "r"), ("stdout", os.O_RDONLY, "w"), ("stderr", os.O_WRONLY, "w"))


def open_streams() -> None:
    """Gives closed streams (`>&-`) a file. Otherwise the first files to be opened would get their numbers and be
    mistaken for them. Using standard input or output then fails like any bad file, and messages on standard error are
    lost."""
    for name, flags, mode in _STAND_INS:
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.open(os.devnull, flags), mode, encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # file names may contain bytes that are not text
            stream.reconfigure(errors="backslashreplace")


def discard_output() -> None:
    """Discards what standard output did not accept, because Python tries to write it again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
