"""Decides which documents and paragraphs of a corpus are repeated, over all tasks, in corpus order.

What was found is sorted by the number of the document or paragraph (sorting.py), and read again in this order, so that
memory does not grow with the corpus.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from .clusters import Search
from .duplicates import DIGEST_BYTES, Repeats
from .minhash import PERMUTATIONS, Banding
from .sorting import DEFAULT_MEMORY, Cursor, Sorter
from .spool import Result, Spool
from .steps import Steps
from .work import integers

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

EXACT, NEAR = "duplicate", "near_duplicate"


class Fate(NamedTuple):
    """What happens to a document.

    Attributes:
        reason: why it is dropped, or None.
        cluster: the name of its cluster, if near duplicates were searched for.
    """

    reason: str | None
    cluster: str | None


class Decisions:
    """Decides what happens to each document.

    Args:
        steps: what `clean` does.
        spool: the results of all tasks.
        memory_limit: bytes, or None for DEFAULT_MEMORY.
    """

    def __init__(self, steps: Steps, spool: Spool, memory_limit: int | None) -> None:
        self._steps, self._spool = steps, spool
        self._memory = DEFAULT_MEMORY if memory_limit is None else memory_limit
        self._near: Sorter | None = None  # rows (document, name of its cluster) of those that are not the first
        self._paragraphs: Sorter | None = None
        self._exact = self._find_exact() if steps.dedup is not None else None
        if steps.near_dedup is not None:
            self._near = self._named(self._find_near(steps.near_dedup))
        if steps.dedup_paragraphs:
            self._paragraphs = self._find_paragraphs()

    def _path(self, name: str) -> str:
        return os.path.join(self._spool.folder, name)

    def _find_exact(self) -> Sorter:
        repeats = Repeats(self._path("exact"), self._memory)
        for result in self._spool.results():
            repeats.add(result.section("digests"))
        return repeats.find()

    def _find_near(self, threshold: float) -> Sorter:
        """Returns rows (document, first document of its cluster), without the first ones."""
        import numpy

        search = Search(self._path("near"), Banding.of(threshold), threshold, self._memory)
        exact = _places(self._exact)
        places = _Signatures()
        number = 0
        for result in self._spool.results():
            rows = places.add(result)
            stays = numpy.ones(len(rows), dtype=bool)
            stays[exact.take(number + len(rows))[:, 0].astype(numpy.int64) - number] = False
            search.add(number + numpy.flatnonzero(stays), rows[stays])
            number += len(rows)
        return search.find(places.of)

    def _named(self, clusters: Sorter) -> Sorter:
        """Returns rows (document, name of its cluster), a name being two numbers: the digest of the first document."""
        import numpy

        firsts = Sorter(self._path("firsts"), 2, self._memory // 2)
        for rows in clusters.blocks():
            firsts.add(rows[:, ::-1])
        clusters.close()
        named = Sorter(self._path("named"), 3, self._memory // 2)
        cursor = Cursor(firsts, 2)
        number = 0
        for result in self._spool.results():
            digests = numpy.frombuffer(result.section("digests"), dtype="<u8").reshape(-1, 2)
            rows = cursor.take(number + len(digests))
            named.add(numpy.concatenate([rows[:, 1:], digests[rows[:, 0].astype(numpy.int64) - number]], axis=1))
            number += len(digests)
        firsts.close()
        return named

    def fates(self) -> Iterator[tuple[Result, list[Fate]]]:
        """Yields the result of each task, with the fates of its documents."""
        exact = _places(self._exact)
        near = None if self._near is None else Cursor(self._near, 3)
        number = 0
        for result in self._spool.results():
            count = result.header["documents"]
            names: list[str | None] = [None] * count
            reasons: list[str | None] = [None] * count
            if near is not None:
                names = list(_hex(result.section("digests")))
                rows = near.take(number + count)
                for place, name in zip((rows[:, 0] - number).tolist(), _hex(rows[:, 1:].astype("<u8").tobytes())):
                    names[place] = name
                    reasons[place] = None if self._steps.keep_near else NEAR
            for place in (exact.take(number + count)[:, 0] - number).tolist():
                names[place], reasons[place] = None, EXACT
            yield result, list(map(Fate, reasons, names))
            number += count

    def _find_paragraphs(self) -> Sorter:
        """Returns the numbers of the paragraphs of kept documents that occurred in an earlier one."""
        repeats = Repeats(self._path("paragraphs"), self._memory)
        for result, fates in self.fates():
            data = result.section("paragraphs")
            ends = integers(result.section("paragraph_sizes")).cumsum().tolist()
            kept = (data[a:b] for a, b, fate in zip([0, *ends], ends, fates) if fate.reason is None)
            repeats.add(b"".join(kept))
        return repeats.find()

    def paragraphs(self) -> Cursor:
        """Returns the numbers of the paragraphs to remove, among those of kept documents, in order."""
        return _places(self._paragraphs)


def _places(sorter: Sorter | None) -> Cursor:
    """Returns a cursor over rows of one number; over none without a sorter."""
    return Cursor(Sorter("", 1, 0) if sorter is None else sorter, 1)


def _hex(digests: bytes) -> Iterator[str]:
    return (digests[at : at + DIGEST_BYTES].hex() for at in range(0, len(digests), DIGEST_BYTES))


class _Signatures:
    """The signatures in the results of tasks, by the numbers of documents."""

    def __init__(self) -> None:
        self._files: list[tuple[str, int]] = []  # with the place of the signatures
        self._starts = [0]  # the first document of each, and the total

    def add(self, result: Result) -> Array:
        """Adds the next task. Returns its signatures."""
        import numpy

        rows = numpy.frombuffer(result.section("signatures"), dtype=numpy.uint32).reshape(-1, PERMUTATIONS)
        self._files.append(result.place("signatures"))
        self._starts.append(self._starts[-1] + len(rows))
        return rows

    def of(self, numbers: Array) -> Array:
        """Returns the signatures of documents, whose numbers ascend."""
        import numpy

        found = numpy.empty((len(numbers), PERMUTATIONS), dtype=numpy.uint32)
        bounds = numpy.searchsorted(numbers, self._starts)
        for task in numpy.flatnonzero(numpy.diff(bounds)).tolist():
            first, last = bounds[task], bounds[task + 1]
            path, place = self._files[task]
            shape = (self._starts[task + 1] - self._starts[task], PERMUTATIONS)
            rows = numpy.memmap(path, numpy.uint32, "r", place, shape)  # closed again soon: it would count as memory
            found[first:last] = rows[numbers[first:last] - self._starts[task]]
        return found
