"""Cuts a text into words with the `regex` package: slow, and correct by definition."""

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

import regex


def load_generator() -> ModuleType:
    """Imports csrc/unicode_generate.py, which is a program, not part of a package."""
    path = Path(__file__).resolve().parents[3] / "csrc" / "unicode_generate.py"
    spec = importlib.util.spec_from_file_location("unicode_generate", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def compiled(pattern: str) -> "regex.Pattern[str]":
    return regex.compile(pattern)


def words(pattern: str, data: bytes) -> list[bytes]:
    """Returns the words of `data`. Each byte that is not UTF-8 becomes one lone surrogate, of class "other"."""
    text = data.decode("utf-8", "surrogateescape")
    return [word.encode("utf-8", "surrogateescape") for word in compiled(pattern).findall(text)]
