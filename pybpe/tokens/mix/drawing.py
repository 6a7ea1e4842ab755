"""Decides which documents each phase gets from a source.

A source is read in passes. Each pass has every document once, in another random order (keys.py). A phase takes the next
documents where the phase before it stopped, so no document comes a second time before all others came once:

    pass 0:  d b a e c       phase 1 takes 7 documents: all of pass 0, and c, a of pass 1
    pass 1:  c a d b e       phase 2 takes the next: d, b, ...

The documents of a phase that belong to one pass have consecutive keys. To find where they end, the lengths are summed
by the upper bits of the keys, and then only the documents with the same upper bits are sorted. So memory does not grow
with the number of documents.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..._numpy import Array, numpy
from .documents import Documents
from .keys import Keys, drawing_keys
from .recipe import Recipe

_BINS = 1 << 16
_END = 1 << 64  # greater than any key


class Stretch(NamedTuple):
    """Consecutive documents of one pass over a source.

    Attributes:
        number: the pass's.
        low, high: their drawing keys are at least `low` and less than `high`.
        cut: the number of a document, and how many of its tokens are used; the others are whole.
    """

    number: int
    low: int
    high: int
    cut: tuple[int, int] | None = None

    def chosen(self, keys: Array) -> Array:
        """Returns which of these drawing keys belong to the stretch."""
        found: Array = keys >= numpy.uint64(self.low)
        return found if self.high == _END else found & (keys < numpy.uint64(self.high))


@dataclass(frozen=True)
class Drawn:
    """What a phase gets from a source.

    Attributes:
        stretches: the documents.
        tokens, documents: their numbers.
    """

    stretches: tuple[Stretch, ...] = ()
    tokens: int = 0
    documents: int = 0

    def facts(self) -> dict[str, int]:
        """Returns what the manifest says. The cuts are the number of documents that are cut."""
        cuts = sum(stretch.cut is not None for stretch in self.stretches)
        return {"tokens": self.tokens, "documents": self.documents, "cuts": cuts}


def everything(documents: Documents) -> Drawn:
    """Returns all documents, each once."""
    return Drawn((Stretch(0, 0, _END),), documents.tokens, len(documents)) if len(documents) else Drawn()


def draw(
    recipe: Recipe,
    documents: Sequence[Sequence[Documents | None]],
    asked: Sequence[Mapping[str, int]],
    tolerance: int,
) -> list[list[Drawn]]:
    """Returns what each phase gets from each source. A source with a weight also gets what those with a weight before
    it lack, so that the error of their sum does not grow with their number.

    Args:
        recipe: the recipe.
        documents: the number in each source, by split; each source has a train split.
        asked: the tokens that each phase asks of its sources, by name.
        tolerance: see Passes.take.
    """
    passes = []
    for source, splits in zip(recipe.sources, documents):
        assert splits[0] is not None  # asked_tokens refuses sources without tokens
        passes.append(Passes(splits[0], recipe.seed, source.name))
    found = []
    for phase, amounts in zip(recipe.phases, asked):
        drawn: list[Drawn] = []
        lacking = 0
        for source, some in zip(recipe.sources, passes):
            is_share = source.name in phase.amounts and phase.amounts[source.name].kind == "weight"
            wanted = amounts.get(source.name, 0) + (lacking if is_share else 0)
            drawn.append(some.take(wanted, tolerance))
            lacking = wanted - drawn[-1].tokens if is_share else lacking
        found.append(drawn)
    return found


class Passes:
    """The passes over a source, from the first.

    Args:
        documents: the number in its train split; at least one.
        seed, source: choose the order of each pass.
    """

    def __init__(self, documents: Documents, seed: int, source: str) -> None:
        self._documents, self._seed, self._source = documents, seed, source
        self._number = self._low = 0  # the current pass, and the key from which it has not been used
        self._used, self._used_documents = 0, 0  # how much of the current pass comes before that key

    def take(self, tokens: int, tolerance: int) -> Drawn:
        """Takes the next documents.

        Args:
            tokens: how many tokens, marks included, are wanted.
            tolerance: if the next document does not fit, and fewer tokens than this are missing, it is left for the
                next call. Otherwise it is cut, and what is cut off is not used in this pass.

        Returns:
            Documents with at most `tokens` tokens, and more than `tokens - tolerance`.
        """
        stretches: list[Stretch] = []
        found = documents = 0
        while found < tokens:
            left = self._documents.tokens - self._used
            if tokens - found >= left:
                if left:
                    stretches.append(Stretch(self._number, self._low, _END))
                found, documents = found + left, documents + len(self._documents) - self._used_documents
                self._number, self._low = self._number + 1, 0
                self._used = self._used_documents = 0
                continue
            stretch, some, count = self._part(tokens - found, tolerance)
            stretches += [stretch] if count else []
            found, documents = found + some, documents + count
            break
        return Drawn(tuple(stretches), found, documents)

    def _part(self, tokens: int, tolerance: int) -> tuple[Stretch, int, int]:
        """Takes a part of the current pass. Returns the stretch, and its tokens and documents."""
        keys = drawing_keys(self._seed, self._source, self._number)
        border = _border(self._documents, keys, self._used + tokens)
        low, some, count = self._low, border.tokens_before - self._used, border.documents_before - self._used_documents
        missing = tokens - some
        is_cut = missing >= max(2, tolerance)
        self._low, self._used, self._used_documents = border.key, border.tokens_before, border.documents_before
        if not is_cut:
            return Stretch(self._number, low, border.key), some, count
        self._low, self._used = border.key + 1, self._used + border.length
        self._used_documents += 1
        return Stretch(self._number, low, border.key + 1, (border.document, missing)), tokens, count + 1


class _Border(NamedTuple):
    """The first document of a pass that does not fit.

    Attributes:
        key, document, length: its key, number and tokens.
        tokens_before, documents_before: in the pass before it.
    """

    key: int
    document: int
    length: int
    tokens_before: int
    documents_before: int


def _border(documents: Documents, keys: Keys, tokens: int) -> _Border:
    """Returns the first document, in the order of the keys, that ends after `tokens`, which are fewer than all."""
    shift = numpy.uint64(64 - (_BINS - 1).bit_length())
    sums, counts = numpy.zeros(_BINS, dtype=numpy.int64), numpy.zeros(_BINS, dtype=numpy.int64)
    for _, found, lengths in _keyed(documents, keys):
        bins = (found >> shift).astype(numpy.int64)
        sums += numpy.bincount(bins, lengths, _BINS).astype(numpy.int64)  # exact: a block has fewer than 2^53 tokens
        counts += numpy.bincount(bins, minlength=_BINS)
    ends = numpy.cumsum(sums)
    wanted = int(numpy.searchsorted(ends, tokens, side="right"))
    before = int(ends[wanted] - sums[wanted])
    parts = [numpy.empty((3, 0), dtype=numpy.uint64)]
    for at, found, lengths in _keyed(documents, keys):
        places = numpy.flatnonzero(found >> shift == numpy.uint64(wanted))
        parts.append(numpy.stack([found[places], places.astype(numpy.uint64) + numpy.uint64(at), lengths[places]]))
    some = numpy.concatenate(parts, axis=1)
    some = some[:, numpy.argsort(some[0])]
    inside = before + numpy.cumsum(some[2].astype(numpy.int64))
    place = int(numpy.searchsorted(inside, tokens, side="right"))
    key, document, length = map(int, some[:, place])
    return _Border(key, document, length, int(inside[place]) - length, int(counts[:wanted].sum()) + place)


def _keyed(documents: Documents, keys: Keys) -> Iterator[tuple[int, Array, Array]]:
    """Yields the number of a document, and the keys and lengths of it and of those that follow."""
    for at, lengths in documents.blocks():
        yield at, keys.first(numpy.arange(at, at + len(lengths))), lengths
