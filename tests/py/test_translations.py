"""Translations between dialects of regular expressions, and errors: the same as those that were recorded when the
engines agreed with them. Unlike test_dialects.py, these tests need no engine."""

from __future__ import annotations

import json

import pytest
from translations import DIALECTS, FILE, outcome

RECORDED = [json.loads(line) for line in FILE.read_text(encoding="ascii").splitlines()]


@pytest.mark.parametrize("source", DIALECTS)
def test_translations_and_errors_are_those_recorded(source: str) -> None:
    for pattern, *of_sources in RECORDED:
        assert outcome(pattern, source) == of_sources[list(DIALECTS).index(source)], pattern
