"""Tables of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class Table:
    """A table."""

    heading: str  # what the table shows
    titles: list[str]  # the titles of the columns
    left: bool = False  # whether all columns are aligned to the left; otherwise to the right
    rows: list[list[str]] = field(default_factory=list)  # the cells of each row, one per title

    def add(self, *cells: str) -> None:
        """Adds a row."""
        self.rows.append(list(cells))

    def __str__(self) -> str:
        rows = [self.titles, *self.rows]
        widths = [max(map(len, column)) for column in zip(*rows)]
        side = "<" if self.left else ">"
        return "\n".join("  ".join(f"{c:{side}{w}}" for c, w in zip(row, widths)).rstrip() for row in rows)


def as_text(tables: Iterable[Table], code: Iterable[Mapping[str, Sequence[str]]], notes: Iterable[str]) -> str:
    """Returns tables, samples of code (tokenizer -> tokens) and notes as text."""
    blocks = list(map(str, tables))
    for found in code:
        width = max(map(len, found), default=0)
        blocks.append("\n".join(f"{name:>{width}}  {cut(tokens)}" for name, tokens in found.items()))
    blocks.append("\n".join(f"note: {note}" for note in notes))
    return "\n\n".join(filter(None, blocks))


def cut(tokens: Sequence[str]) -> str:
    """Returns tokens with bars between them, and line ends and tabs as in Python."""
    return "|".join(repr(token)[1:-1] for token in tokens)
