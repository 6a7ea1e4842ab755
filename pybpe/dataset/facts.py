"""What the manifest records about the tokens of a shard."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Facts:
    """Facts about the tokens of a shard, or of a future shard."""

    tokens: int = 0
    documents: int = 0
    text_bytes: int = 0
    sources: list[list[Any]] = field(default_factory=list)

    def add(self, tokens: int, documents: int, text_bytes: int, source: tuple[str, int, int]) -> None:
        """Adds tokens of one source, which becomes the last of `sources`."""
        self.tokens += tokens
        self.documents += documents
        self.text_bytes += text_bytes
        path, start, end = source
        if self.sources and self.sources[-1][0] == path and self.sources[-1][2] == start:
            self.sources[-1][2] = end
        elif not self.sources or self.sources[-1] != [path, start, end]:
            self.sources.append([path, start, end])
