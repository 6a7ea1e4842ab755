"""Decides which documents and paragraphs of a corpus are repeated, over all tasks, in corpus order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from .. import _binding
from .._lazy import Array, numpy
from ..arguments import param
from ..errors import ArgumentError
from ..support.parallel import memory_left
from ..support.task_results import Result
from .duplicates import repeated
from .near_duplicates import DEFAULT_MEMORY, PERMUTATIONS, clusters
from .steps import Steps

REASONS = ("", "duplicate", "near_duplicate", "paragraphs")  # by the numbers in Decisions.drops
_EXACT, _NEAR, NO_PARAGRAPHS = 1, 2, 3
_FLAG_BYTES, _CLUSTER_BYTES = 2, 16  # of memory for each paragraph or document: whether it is repeated, its cluster


class Part(NamedTuple):
    """What happens to the documents of a result."""

    result: Result  # the result
    start: int  # the number of its first document
    drops: Array  # uint8, shape (documents,): why each is dropped, as its place in REASONS, or 0 if it is kept
    repeated: Array  # bool, for each paragraph of the kept documents: whether it is removed


class Decisions:
    """Decides what happens to every document, from the results of all tasks, in order. `memory_limit` is in bytes,
    approximately. None means DEFAULT_MEMORY, or more for very many documents. Raises ArgumentError if the memory is too
    little for so many documents or paragraphs."""

    def __init__(self, steps: Steps, results: Sequence[Result], memory_limit: int | None) -> None:
        self._steps, self._results, self._limit = steps, results, memory_limit
        self._starts = list(accumulate((result.documents for result in results), initial=0))
        count = self._starts[-1]
        self._drops = numpy.zeros(count, dtype=numpy.uint8)
        self._repeated = numpy.zeros(0, dtype=bool)
        if steps.dedup is not None:
            memory = self._memory("documents", count, _FLAG_BYTES)
            self._drops[repeated(self._digests, count, memory)] = _EXACT
        if steps.near_dedup is not None:
            memory = self._memory("documents", count, _CLUSTER_BYTES)
            self._signed = numpy.concatenate([numpy.zeros(0, dtype=bool), *(hashes == 0 for hashes in self._only())])
            self._firsts = clusters(count, steps.near_dedup, self._band_rows, self._signatures, memory)
            if not steps.keep_near:
                self._drops[self._later()] = _NEAR
        if steps.dedup_paragraphs:
            paragraphs = sum(map(len, self._paragraphs())) // _binding.DIGEST_SIZE
            memory = self._memory("paragraphs", paragraphs, _FLAG_BYTES)
            self._repeated = repeated(self._paragraphs, paragraphs, memory)

    def _memory(self, what: str, count: int, each: int) -> int:
        """Returns the memory for sorting, which is at least half."""
        least = 2 * count * each
        limit = max(DEFAULT_MEMORY, least) if self._limit is None else self._limit
        if limit < least:
            raise ArgumentError(
                f"{param('memory_limit')} must be at least {least} to find duplicates among {count} {what}. Run the"
                " same again with this limit, and it resumes; or clean parts of the corpus"
            )
        return max(memory_left(limit), least) - count * each

    def parts(self) -> Iterator[Part]:
        """Yields what happens to the documents of every result."""
        at = 0
        for result, start in zip(self._results, self._starts):
            drops, paragraphs = self._drops[start : start + result.documents], 0
            if self._steps.dedup_paragraphs:
                paragraphs = int(result.array("paragraph_counts", "<i8")[drops == 0].sum())
            yield Part(result, start, drops, self._repeated[at : at + paragraphs])
            at += paragraphs

    def _digests(self) -> Iterator[bytes]:
        return (result.section("digests") for result in self._results)

    def _paragraphs(self) -> Iterator[bytes]:
        """Yields the digests of the paragraphs of kept documents."""
        for result, start in zip(self._results, self._starts):
            kept = self._drops[start : start + result.documents] == 0
            of_kept = numpy.repeat(kept, result.array("paragraph_counts", "<i8")[:, 0])
            yield result.array("paragraphs", "<u8", 2)[of_kept].tobytes()

    def _only(self) -> Iterator[Array]:
        """Yields the hashes of the only shingles of documents, or 0 for a document with a signature."""
        return (result.array("only", "<u8")[:, 0] for result in self._results)

    def _band_rows(self, band: int | None) -> Iterator[tuple[Array, Array]]:
        """Yields the keys in a band, and the numbers, of the documents that are not dropped yet. None is for those
        without a signature."""
        if band is None:
            for hashes, start in zip(self._only(), self._starts):
                numbers = numpy.flatnonzero(hashes)
                numbers = numbers[self._drops[numbers + start] == 0]
                yield hashes[numbers], numbers + start
            return
        for result, start in zip(self._results, self._starts):
            numbers = numpy.flatnonzero(self._signed[start : start + result.documents]) + start
            stay = self._drops[numbers] == 0
            yield result.row("bands", "<u8", len(numbers), band)[stay], numbers[stay]

    def _signatures(self, documents: Array) -> Array:
        """Returns the signatures of documents, whose numbers ascend."""
        found = numpy.empty((len(documents), PERMUTATIONS), dtype=numpy.uint32)
        bounds = numpy.searchsorted(documents, self._starts).tolist()
        for result, start, first, end in zip(self._results, self._starts, bounds, bounds[1:]):
            if first < end:  # a file is closed again soon: it would count as memory
                rows = numpy.cumsum(self._signed[start : start + result.documents])[documents[first:end] - start] - 1
                found[first:end] = result.mapped("signatures", "<u4", PERMUTATIONS)[rows]
        return found

    def cluster_names(self) -> Iterator[Array]:
        """Yields the names of the clusters of the results' documents: digests, shape (documents, 2). It is the digest
        of the first one of a cluster."""
        leaders = numpy.unique(self._firsts[self._later()])  # of clusters with several documents
        known = numpy.empty((len(leaders), 2), dtype="<u8")
        for result, start in zip(self._results, self._starts):
            digests, end = result.array("digests", "<u8", 2).copy(), start + result.documents
            first, last = numpy.searchsorted(leaders, [start, end])
            known[first:last] = digests[leaders[first:last] - start]
            later = self._later(start, end)
            digests[later] = known[numpy.searchsorted(leaders, self._firsts[start:end][later])]
            yield digests

    def _later(self, start: int = 0, end: int | None = None) -> Array:
        """Returns the places of documents that are not the first ones of their clusters, from `start` on."""
        firsts = self._firsts[start:end]
        return numpy.flatnonzero(firsts != numpy.arange(start, start + len(firsts)))
