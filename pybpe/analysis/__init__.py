"""Measures tokenizers, and finds their possible faults.

comparison.py, measures.py    `compare`: several tokenizers on documents of several languages, and how two differ
usage.py                      the tokens that a corpus uses, for `inspect` and `prune`; the compression curve
audit.py                      possible faults of a tokenizer or data
bits_per_byte.py              losses of models with different tokenizers
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(titles: Sequence[str], rows: Iterable[Sequence[str]], left: bool = False) -> str:
    """Returns a table with the titles of its columns. All columns are aligned to the right, or with `left` to the
    left."""
    lines = [titles, *rows]
    widths, side = [max(map(len, column)) for column in zip(*lines)], "<" if left else ">"
    return "\n".join("  ".join(f"{c:{side}{w}}" for c, w in zip(line, widths)).rstrip() for line in lines)
