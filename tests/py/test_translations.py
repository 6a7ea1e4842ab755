"""Translations between dialects of regular expressions, and errors: the same as those that were recorded when the
engines agreed with them (record_translations.py). Unlike test_dialects.py, these tests need no engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import pybpe
from pybpe.pattern.dialects import ONIGURUMA, REGEX, RUST, Dialect, translate
from pybpe.pattern.dialects.parse import parse
from pybpe.pattern.dialects.write import write

FILE = Path(__file__).parent / "translations.jsonl"
DIALECTS: dict[str, Dialect] = {"regex": REGEX, "rust": RUST, "onig": ONIGURUMA}


def outcome(pattern: str, source: str) -> list[str | None]:
    """Returns what a pattern means, as Python's regex package writes it, and the translations of the pattern to each
    dialect, or one for all if they are equal: None if the pattern stays as it is. An error follows a "!". A pattern
    that cannot be read is not translated."""
    read = _read(pattern, source)
    if read.startswith("!"):
        return [read]
    found = [_translated(pattern, source, target) for target in DIALECTS]
    return [read, *(found[:1] if len(set(found)) == 1 else found)]


def _read(pattern: str, source: str) -> str:
    try:
        return write(parse(pattern, DIALECTS[source]), REGEX)
    except pybpe.errors.UnsupportedError as error:
        return f"!{error}"


def _translated(pattern: str, source: str, target: str) -> str | None:
    try:
        found = translate(pattern, DIALECTS[source], DIALECTS[target])
    except pybpe.errors.UnsupportedError as error:
        return f"!{error}"
    return None if found == pattern else found


@pytest.mark.parametrize("source", DIALECTS)
def test_translations_and_errors_are_those_recorded(source: str) -> None:
    for line in FILE.read_text(encoding="ascii").splitlines():
        pattern, *of_sources = json.loads(line)
        assert outcome(pattern, source) == of_sources[list(DIALECTS).index(source)], pattern
