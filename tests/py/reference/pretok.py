"""Cuts a text into words with the `regex` package: slow, and correct by definition."""

import importlib
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import regex


def load_generator(name: str = "unicode_generate") -> ModuleType:
    """Imports a program of csrc, which is not a package."""
    folder = str(Path(__file__).resolve().parents[3] / "csrc" / "generate")
    if folder not in sys.path:
        sys.path.append(folder)
    return importlib.import_module(name)


@cache
def compiled(pattern: str) -> "regex.Pattern[str]":
    return regex.compile(pattern)


def words(pattern: str, data: bytes) -> list[bytes]:
    """Returns the words of `data`. Each byte that is not UTF-8 becomes one lone surrogate, of class "other"."""
    text = data.decode("utf-8", "surrogateescape")
    return [word.encode("utf-8", "surrogateescape") for word in compiled(pattern).findall(text)]
