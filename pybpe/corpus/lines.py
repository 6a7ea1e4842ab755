"""Measures of the lines and paragraphs of texts. Blank lines do not count as lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

SHORT_COLUMNS = 30  # FineWeb's short lines
_BULLETS = (
    "\u2022",
    "\u2023",
    "\u25b6",
    "\u25c0",
    "\u25e6",
    "\u25a0",
    "\u25a1",
    "\u25aa",
    "\u25ab",
    "\u2013",
    "-",
    "*",
)
_ELLIPSES = ("...", "\u2026")
_TERMINAL = tuple(".!?\"'\u201d\u2019\u2026;:\u3002\uff01\uff1f\u300d\u300f\uff1b\uff1a\u0964\u061f\u06d4")
_BLANK_LINES = re.compile(r"\n\s*\n")


def _columns_are_few(line: str) -> bool:
    if len(line) >= SHORT_COLUMNS:
        return False
    return sum(2 if c >= "\u1100" else 1 for c in line) < SHORT_COLUMNS


_OF_LINES: dict[str, Callable[[str], bool]] = {
    "bullet_lines": lambda line: line.startswith(_BULLETS),
    "ellipsis_lines": lambda line: line.endswith(_ELLIPSES),
    "short_lines": _columns_are_few,
    "terminal_lines": lambda line: line.endswith(_TERMINAL),
}
_OF_REPEATS = ("repeated_lines", "repeated_line_chars", "repeated_paragraphs", "repeated_paragraph_chars")
MEASURES = (*_OF_LINES, *_OF_REPEATS)


def measure(texts: Sequence[str]) -> dict[str, Array]:
    """MEASURES of texts: name -> shares, float64, one for each text; NaN for a text without lines."""
    import numpy

    rows = [_measure(text) for text in texts]
    table = numpy.array(rows, dtype=numpy.float64).reshape(len(texts), len(MEASURES))
    return {name: table[:, i] for i, name in enumerate(MEASURES)}


def _measure(text: str) -> list[float]:
    lines = [line for line in map(str.strip, text.split("\n")) if line]
    if not lines:
        return [float("nan")] * len(MEASURES)
    shares = [sum(map(test, lines)) / len(lines) for test in _OF_LINES.values()]
    paragraphs = [paragraph for paragraph in map(str.strip, _BLANK_LINES.split(text)) if paragraph]
    return [*shares, *_repeats(lines), *_repeats(paragraphs)]


def _repeats(parts: Sequence[str]) -> tuple[float, float]:
    """The share of parts that repeat an earlier one, and that of the characters in them."""
    distinct = set(parts)
    if len(distinct) == len(parts):
        return 0.0, 0.0
    total = sum(map(len, parts))
    return 1 - len(distinct) / len(parts), 1 - sum(map(len, distinct)) / total
