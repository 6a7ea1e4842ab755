"""Paragraphs of a text: separated by blank lines or, in a text without blank lines, its lines."""

from __future__ import annotations

import re
from collections.abc import Container

from ..arguments import utf8
from .duplicates import digest

LEAST_BYTES = 30  # shorter ones, such as "Yes." in a dialogue, may repeat
_BLANK_LINES = re.compile(r"(\n\s*\n)")
_LINES = re.compile(r"(\n)")


def _split(text: str) -> list[str]:
    """Returns the paragraphs at even positions, and the separators at odd ones."""
    parts = _BLANK_LINES.split(text)
    return parts if len(parts) > 1 else _LINES.split(text)


def paragraph_digests(text: str) -> bytes:
    """Returns the concatenated digests of all paragraphs of at least LEAST_BYTES; surrounding spaces do not count."""
    paragraphs = (part.strip() for part in _split(text)[::2])
    return b"".join(digest(paragraph) for paragraph in paragraphs if len(utf8(paragraph)) >= LEAST_BYTES)


def without_paragraphs(text: str, dropped: Container[int]) -> tuple[str, list[str]]:
    """Returns the text without the paragraphs whose positions in paragraph_digests are in `dropped`, and those
    paragraphs.

    >>> text = "A paragraph that is long enough to count.\\n\\nA second one, which is long enough too."
    >>> without_paragraphs(text, {0})[0]
    'A second one, which is long enough too.'
    """
    parts = _split(text)
    kept: list[str] = []
    removed: list[str] = []
    number = 0
    for i in range(0, len(parts), 2):
        counts = len(utf8(parts[i].strip())) >= LEAST_BYTES
        if counts and number in dropped:
            removed.append(parts[i])
        else:
            kept += [parts[i - 1], parts[i]] if kept else [parts[i]]
        number += counts
    return "".join(kept), removed
