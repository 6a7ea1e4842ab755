"""Decides which documents and paragraphs of a corpus are repeated, over all tasks, in corpus order.

What was found is sorted by the number of the document or paragraph (sorting.py), and read again in this order, so that
memory does not grow with the corpus.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from .._numpy import Array, numpy
from ..support.remote import Workers
from ..support.run_options import RunOptions
from ..support.shared_folder import SharedFolder
from .clusters import connected
from .documents import Documents
from .duplicates import DIGEST_BYTES, digest_rows, repeated
from .minhash import Banding
from .sorting import DEFAULT_MEMORY, Cursor, SortedRows, Sorter
from .spool import Result, Spool
from .stages import LocalStages, SharedStages, Stages
from .steps import Steps
from .work import integers

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
        run: how to use the machine. With an executor, its workers find near duplicates, and share the spool's folder.
    """

    def __init__(self, steps: Steps, spool: Spool, run: RunOptions) -> None:
        self._steps, self._spool = steps, spool
        self._memory = DEFAULT_MEMORY if run.memory_limit is None else run.memory_limit
        self._local = LocalStages(self._path("rows"), self._memory)
        self._exact: SortedRows | None = None
        self._near: SortedRows | None = None  # rows (document, name of its cluster) of those that are not the first
        self._paragraphs: SortedRows | None = None
        if steps.dedup is not None or steps.near_dedup is not None:
            documents = Documents(spool, self._path("documents"))
            stages = self._stages(run)
            if steps.dedup is not None:
                digests = stages.first("digests", documents.digests, documents.sizes(1), 3)
                self._exact = stages.then("exact", repeated, digests, 1)
            if steps.near_dedup is not None:
                self._near = self._named(self._clusters(steps.near_dedup, stages, documents))
        if steps.dedup_paragraphs:
            self._paragraphs = self._local.then("paragraphs", repeated, self._paragraph_digests(), 1)

    def _path(self, name: str) -> str:
        return os.path.join(self._spool.folder, name)

    def _stages(self, run: RunOptions) -> Stages:
        """Returns what finds exact and near duplicates."""
        if run.executor is None or self._steps.near_dedup is None:
            return self._local
        return SharedStages(SharedFolder.begin(self._spool.folder), Workers.of(run), self._memory)

    def _clusters(self, threshold: float, stages: Stages, documents: Documents) -> SortedRows:
        """Returns rows (document, first document of its cluster), without the first ones."""
        banding = Banding.of(threshold)
        source = partial(documents.bands, banding, self._exact)
        bands = stages.first("bands", source, documents.sizes(banding.bands), 2)
        return connected(stages, bands, threshold, documents.signatures)

    def _named(self, clusters: SortedRows) -> SortedRows:
        """Returns rows (document, name of its cluster), a name being two numbers: the digest of the first document."""
        firsts = self._local.then("firsts", _reversed, clusters, 2)
        named = Sorter(self._path("named"), 3, self._memory // 2)
        cursor = Cursor(firsts.blocks(), 2)
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
        near = None if self._near is None else Cursor(self._near.blocks(), 3)
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

    def _paragraph_digests(self) -> SortedRows:
        """Returns the digests of the paragraphs of kept documents."""
        digests = Sorter(self._path("paragraphs"), 3, self._memory // 2)
        number = 0
        for result, fates in self.fates():
            data = result.section("paragraphs")
            ends = integers(result.section("paragraph_sizes")).cumsum().tolist()
            kept = (data[a:b] for a, b, fate in zip([0, *ends], ends, fates) if fate.reason is None)
            rows = digest_rows(b"".join(kept), number)
            digests.add(rows)
            number += len(rows)
        return digests

    def paragraphs(self) -> Cursor:
        """Returns the numbers of the paragraphs to remove, among those of kept documents, in order."""
        return _places(self._paragraphs)


def _places(rows: SortedRows | None) -> Cursor:
    """Returns a cursor over rows of one number; over none for None."""
    return Cursor(() if rows is None else rows.blocks(), 1)


def _reversed(blocks: Iterable[Array]) -> Iterator[Array]:
    return (rows[:, ::-1] for rows in blocks)


def _hex(digests: bytes) -> Iterator[str]:
    return (digests[at : at + DIGEST_BYTES].hex() for at in range(0, len(digests), DIGEST_BYTES))
