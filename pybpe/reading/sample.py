"""Samples: how much of a corpus is used, and which part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..arguments import utf8, whole_number
from .pieces import Cut


def flat_texts(texts: Iterable[Any]) -> Iterator[Any]:
    """Yields the texts of an iterable, which may also hold lists of texts, like the batches that Hugging Face's
    trainers take."""
    for item in texts:
        if isinstance(item, (list, tuple)):
            yield from item
        else:
            yield item


class Sample(NamedTuple):
    """How much of a corpus is used, and the seed that decides which part.

    Files are divided into documents: a JSON record, a range of 1 MiB of plain text, or a smaller or compressed plain
    file. The ranges of 1 MiB, of JSON lines too, are shuffled with the seed and taken until there are max_documents, or
    max_bytes of file content. What exceeds max_bytes is dropped, starting at the next safe cut or record. The texts of
    an iterable are documents, taken in their own order.
    """

    max_documents: int | None = None
    max_bytes: int | None = None
    seed: int = 0

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return self.max_documents is None and self.max_bytes is None

    def checked(self) -> Sample:
        """Returns the sample with Python integers. Raises ArgumentError for a number below 1, or a non-integer."""
        return Sample(
            None if self.max_documents is None else whole_number("max_documents", self.max_documents, 1),
            None if self.max_bytes is None else whole_number("max_bytes", self.max_bytes, 1),
            whole_number("seed", self.seed, None),
        )

    def texts(self, texts: Iterable[Any], cut: Cut) -> Iterator[Any]:
        """Yields the texts of an iterable that belong to the sample."""
        left = Rest(self)
        for text in texts:
            left.documents -= 1
            yield text if self.max_bytes is None else left.take_text(memoryview(utf8(text)), cut)
            if left.none:
                return


class Rest:
    """How much a sample may still take."""

    def __init__(self, sample: Sample) -> None:
        self.documents: float = float("inf") if sample.max_documents is None else sample.max_documents
        self.bytes: float = float("inf") if sample.max_bytes is None else sample.max_bytes

    @property
    def none(self) -> bool:
        return self.documents <= 0 or self.bytes <= 0

    def take_text(self, data: memoryview, cut: Cut) -> memoryview:
        if len(data) > self.bytes:
            data = data[: cut(data, int(self.bytes))]
        self.bytes -= len(data)
        return data

    def take_records(self, data: memoryview) -> memoryview:
        taken = 0
        for line in bytes(data).split(b"\n"):
            if self.none:
                break
            taken += len(line) + 1
            if line and not line.isspace():
                self.documents -= 1
                self.bytes -= len(line) + 1
        return data[:taken]
