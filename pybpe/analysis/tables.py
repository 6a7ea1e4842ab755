"""Tables of text."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Table:
    """A table."""

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
