"""Samples: the amount of a corpus that a run uses, and which part."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ..arguments import option, param, refuse_unused, utf8, whole_number
from .pieces import Cut
from .planning import Piece, Plan, pieces_of
from .rows import Texts

_RANGE_BYTES = 1 << 20


@dataclass(frozen=True)
class Sample:
    """The amount of a corpus that a run uses, and the seed that decides which part.

    The documents of files are records, ranges of 1 MiB of plain text, and smaller or compressed plain files. A
    sample shuffles the ranges of 1 MiB (of records too) with the seed, and takes them until it has max_documents, or
    max_bytes of file content. It stops at the first safe cut or record after max_bytes. The texts of an iterable are
    documents too. A sample takes them in the order of the iterable.

    Raises:
        ArgumentError: max_documents or max_bytes is below 1, or a value is not an integer, or there is a seed, but no
            sample.
    """

    max_documents: int | None = option(None, "use a sample of N documents")
    max_bytes: int | None = option(None, "use a sample of N bytes, e.g. 500M", unit="bytes")
    seed: int = option(0, "random seed of the sample")

    def __post_init__(self) -> None:
        for name in ("max_documents", "max_bytes"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, whole_number(name, value, 1))
        object.__setattr__(self, "seed", whole_number("seed", self.seed, None))
        if self.seed and self.is_all:
            refuse_unused(
                "seed",
                self.seed,
                f"it chooses a sample, which {param('max_documents')} or {param('max_bytes')} asks for",
            )

    @property
    def is_all(self) -> bool:
        """Whether the sample is the whole corpus."""
        return self.max_documents is None and self.max_bytes is None

    def texts(self, texts: Iterable[Any], cut: Cut) -> Iterator[Any]:
        """Yields the texts of an iterable that belong to the sample."""
        left = _Rest(self)
        for text in texts:
            left.documents -= 1
            yield text if self.max_bytes is None else left.take_text(memoryview(utf8(text)), cut)
            if left.none:
                return

    def pieces(self, plan: Plan, cut: Cut) -> Iterator[Piece]:
        """Yields the pieces of a corpus that belong to the sample."""
        left = _Rest(self)
        parts = [part for file in plan.files for part, _ in plan.ranges(file, size=_RANGE_BYTES)]
        random.Random(self.seed).shuffle(parts)
        for part in parts:
            if left.none:
                return
            for number, piece in enumerate(
                pieces_of(plan.fixed([part._replace(ends_document=False)]), plan.kinds, cut)
            ):
                left.documents -= piece.is_text and number == 0
                yield piece._replace(data=left.take(piece, cut))
                if left.bytes <= 0 or (left.none and not piece.is_text):
                    break


class _Rest:
    """The number of documents and bytes that a sample may still take."""

    def __init__(self, sample: Sample) -> None:
        self.documents: float = float("inf") if sample.max_documents is None else sample.max_documents
        self.bytes: float = float("inf") if sample.max_bytes is None else sample.max_bytes

    @property
    def none(self) -> bool:
        return self.documents <= 0 or self.bytes <= 0

    def take(self, piece: Piece, cut: Cut) -> memoryview | Texts:
        if not isinstance(piece.data, memoryview):
            return self._take_rows(piece.data)
        return self.take_text(piece.data, cut) if piece.is_text else self._take_records(piece.data)

    def take_text(self, data: memoryview, cut: Cut) -> memoryview:
        if len(data) > self.bytes:
            data = data[: cut(data, int(self.bytes))]
        self.bytes -= len(data)
        return data

    def _take_records(self, data: memoryview) -> memoryview:
        taken = 0
        for line in bytes(data).split(b"\n"):
            if self.none:
                break
            taken += len(line) + 1
            if line and not line.isspace():
                self.documents -= 1
                self.bytes -= len(line) + 1
        return data[:taken]

    def _take_rows(self, texts: Texts) -> Texts:
        parts = []
        for data, offsets in texts.parts:
            rows = int(min(len(offsets) - 1, self.documents))
            rows = bisect_left(offsets, offsets[0] + self.bytes, 0, rows)
            parts.append((data, offsets[: rows + 1]))
            self.documents -= rows
            self.bytes -= offsets[rows] - offsets[0]
        return Texts(parts)
