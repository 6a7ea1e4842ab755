"""Decides which documents and paragraphs of a corpus are repeated, over all tasks, in corpus order."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .. import _binding
from .clusters import find_clusters
from .duplicates import DIGEST_BYTES, Repeats
from .minhash import PERMUTATIONS
from .spool import Spool
from .steps import Steps
from .work import integers

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

EXACT, NEAR = "duplicate", "near_duplicate"


class Decisions:
    """Decides what happens to each document. Ask in corpus order.

    Args:
        steps: what `clean` does.
        spool: the results of all tasks.
        tasks: the number of tasks.
        memory_limit: bytes of memory for digests.
    """

    def __init__(self, steps: Steps, spool: Spool, tasks: int, memory_limit: int | None) -> None:
        self._spool, self._tasks, self._memory_limit = spool, tasks, memory_limit
        self._keep_near = steps.keep_near
        self._near: Array | None = None  # by number among documents that are not exact duplicates
        self._exact = self._find_exact() if steps.dedup is not None else None
        if steps.near_dedup is not None:
            self._find_near(steps.near_dedup)
        self._paragraphs = self._find_paragraphs() if steps.dedup_paragraphs else None

    def _find_exact(self) -> Array:
        repeats = Repeats(self._spool.folder, self._memory_limit)
        for result in self._spool.results(self._tasks):
            repeats.add(result.section("digests"))
        return repeats.find()

    def _find_near(self, threshold: float) -> None:
        import numpy

        path = os.path.join(self._spool.folder, "signatures")
        digests: list[bytes] = []
        with _binding.Output(path) as output:
            for rows, names in self._distinct_documents():
                output.write(rows.tobytes())
                digests.append(names.tobytes())
        self._digests = b"".join(digests)
        count = len(self._digests) // DIGEST_BYTES
        self._near = numpy.empty(0, dtype=numpy.int64)
        if count:
            rows = numpy.memmap(path, dtype=numpy.uint32, mode="r", shape=(count, PERMUTATIONS))
            self._near = find_clusters(rows, threshold)
        os.unlink(path)

    def _distinct_documents(self) -> Iterator[tuple[Array, Array]]:
        """Yields the signatures and digests of each task's documents that are not exact duplicates."""
        import numpy

        number = 0
        for result in self._spool.results(self._tasks):
            rows = numpy.frombuffer(result.section("signatures"), dtype=numpy.uint32).reshape(-1, PERMUTATIONS)
            names = numpy.frombuffer(result.section("digests"), dtype=f"V{DIGEST_BYTES}")
            if self._exact is not None:
                stays = ~self._exact[number : number + len(rows)]
                number += len(rows)
                rows, names = rows[stays], names[stays]
            yield rows, names

    def fate(self, number: int, place: int) -> tuple[str | None, str | None]:
        """Returns why a document is dropped, or None; and the name of its cluster, if near duplicates were searched
        for.

        Args:
            number: its number among all documents.
            place: its number among those that are not exact duplicates.
        """
        if self._exact is not None and self._exact[number]:
            return EXACT, None
        if self._near is None:
            return None, None
        root = int(self._near[place])
        name = self._digests[root * DIGEST_BYTES : (root + 1) * DIGEST_BYTES].hex()
        return (None if root == place or self._keep_near else NEAR), name

    def _find_paragraphs(self) -> Array:
        """Returns whether each paragraph of the kept documents occurred in an earlier one."""
        repeats = Repeats(self._spool.folder, self._memory_limit)
        number = place = 0
        for result in self._spool.results(self._tasks):
            data, at = result.section("paragraphs"), 0
            for size in integers(result.section("paragraph_sizes")).tolist():
                reason, _ = self.fate(number, place)
                if reason is None:
                    repeats.add(data[at : at + size])
                at += size
                number += 1
                place += reason != EXACT
        return repeats.find()

    def repeated_paragraphs(self, first: int, count: int) -> set[int]:
        """Returns which of `count` paragraphs to remove. `first` is the number of paragraphs in earlier kept
        documents."""
        if self._paragraphs is None:
            return set()
        return set(self._paragraphs[first : first + count].nonzero()[0].tolist())
