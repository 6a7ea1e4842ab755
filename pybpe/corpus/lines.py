"""Measures of the lines and paragraphs of texts. Blank lines do not count as lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

SHORT_COLUMNS = 30  # FineWeb's definition of a short line
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
    if len(line) >= SHORT_COLUMNS or line.isascii():
        return len(line) < SHORT_COLUMNS
    return sum(2 if c >= "\u1100" else 1 for c in line) < SHORT_COLUMNS


_OF_LINES: dict[str, Callable[[str], bool]] = {
    "bullet_lines": lambda line: line.startswith(_BULLETS),
    "ellipsis_lines": lambda line: line.endswith(_ELLIPSES),
    "short_lines": _columns_are_few,
    "terminal_lines": lambda line: line.endswith(_TERMINAL),
}
MEASURES = (*_OF_LINES, "repeated_lines", "repeated_line_chars", "repeated_paragraphs", "repeated_paragraph_chars")


class LineMeasures:
    """MEASURES of texts, computed on demand: shares, float64, one per text; NaN for a text without lines."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @cached_property
    def _lines(self) -> list[list[str]]:
        return [_filled(text.split("\n")) for text in self._texts]

    @cached_property
    def _paragraphs(self) -> list[list[str]]:
        return [_filled(_BLANK_LINES.split(text)) for text in self._texts]

    def value(self, name: str) -> Array:
        """Returns one of MEASURES."""
        import numpy

        if name in _OF_LINES:
            test = _OF_LINES[name]
            return numpy.array([sum(map(test, lines)) / len(lines) if lines else numpy.nan for lines in self._lines])
        texts = self._paragraphs if name.startswith("repeated_paragraph") else self._lines
        size = len if name.endswith("_chars") else _one
        return numpy.array([_repeated(parts, size) for parts in texts])


def _filled(parts: Sequence[str]) -> list[str]:
    return [part for part in map(str.strip, parts) if part]


def _one(part: str) -> int:
    return 1


def _repeated(parts: Sequence[str], size: Callable[[str], int]) -> float:
    """Returns the share of parts that repeat an earlier one, weighted by size."""
    if not parts:
        return float("nan")
    distinct = set(parts)
    return 0.0 if len(distinct) == len(parts) else 1 - sum(map(size, distinct)) / sum(map(size, parts))
