"""Measures tokenizers on a corpus: the tokens that they use, the differences between them, the compression curve."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], left: bool = False) -> str:
    """Returns a table with the titles of its columns. All columns are aligned to the right, or with `left` to the
    left."""
    lines = [titles, *rows]
    widths, side = [max(map(len, column)) for column in zip(*lines)], "<" if left else ">"
    return "\n".join("  ".join(f"{c:{side}{w}}" for c, w in zip(line, widths)).rstrip() for line in lines)
