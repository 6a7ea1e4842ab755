"""Finds the documents of each source, and decides which of them each phase gets.

The lengths of documents go into a file without a name, since there may be more than fit in memory.

Each document has a number in its split of its source. A key is a function of the seed, of what the key is for, and of
that number, so it depends neither on the number of workers nor on what fits in memory. Documents are in random order if
they are sorted by their keys: "decorating" and sorting, as in shuf(1). A key is splitmix64's finalizer applied twice,
to a counter with a random start (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014). Starts
are BLAKE2b hashes, so that keys for different purposes are independent.

A source is read in passes. Each pass has every document once, in another random order. A phase takes the next
documents where the phase before it stopped, so no document comes a second time before all others came once:

    pass 0:  d b a e c       phase 1 takes 7 documents: all of pass 0, and c, a of pass 1
    pass 1:  c a d b e       phase 2 takes the next: d, b, ...

The documents of a phase that belong to one pass have consecutive keys. To find where they end, the lengths are summed
by the upper bits of the keys, and then only the documents with the same upper bits are sorted. So memory does not grow
with the number of documents.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..._lazy import Array, numpy
from ...errors import FormatError, file_errors
from ...support.permutation import scrambled
from ..token_files import TokenStream
from .recipe import Recipe

_BLOCK = 1 << 22  # tokens or lengths processed at once
_BINS = 1 << 16
_END = 1 << 64  # greater than any key
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, made odd


class Documents:
    """The documents of one split of a source, numbered from 0.

    Args:
        stream: the tokens.
        lengths: the tokens of each document, its mark included: uint64.
        eot: where the mark is: "prepend" or "append".
    """

    def __init__(self, stream: TokenStream, lengths: Array, eot: str) -> None:
        self.stream, self.lengths = stream, lengths
        self._shift = 1 if eot == "append" else 0

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def tokens(self) -> int:
        """The number of tokens, marks included."""
        return len(self.stream)

    def blocks(self) -> Iterator[tuple[int, Array]]:
        """Yields the number of a document, and the lengths of it and of those that follow."""
        for at in range(0, len(self.lengths), _BLOCK):
            yield at, self.lengths[at : at + _BLOCK]

    def tokens_of(self, start: int, stop: int, mark: int) -> Array:
        """Returns the tokens from `start`, where a document begins, to `stop`, as a view of the file if possible, but
        with the mark of each document before it: if files have it after documents, the mark of the document before."""
        if start or not self._shift:
            return self.stream.slice(start - self._shift, stop - self._shift)
        return numpy.append(numpy.array([mark], dtype=self.stream.dtype), self.stream.slice(0, stop - 1))


def find_documents(stream: TokenStream, mark: int, eot: str, n_vocab: int, folder: str) -> Documents:
    """Finds the documents of a stream.

    Args:
        stream: the tokens.
        mark: the id of the mark.
        eot: where it is: "prepend" or "append".
        n_vocab: the number of tokens of the vocabulary.
        folder: where the file of their lengths is.

    Raises:
        FormatError: the stream does not begin or end with a mark, as it must; two marks follow each other; or an id is
            not in the vocabulary.
    """
    with file_errors(folder, "cannot be written"), tempfile.TemporaryFile(dir=folder) as file:
        for lengths in _lengths(stream, mark, eot == "append", n_vocab):
            file.write(lengths.astype("u8").tobytes())
        file.flush()
        # An empty file cannot be mapped.
        found = numpy.memmap(file, dtype="u8", mode="r").view(numpy.ndarray) if file.tell() else numpy.empty(0, "u8")
    return Documents(stream, found, eot)


def _lengths(stream: TokenStream, mark: int, is_append: bool, n_vocab: int) -> Iterator[Array]:
    """Yields the lengths of documents, marks included, in blocks."""
    begin = 0  # where the last document began that has not been yielded
    for at in range(0, len(stream), _BLOCK):
        ids = stream.slice(at, min(at + _BLOCK, len(stream)))
        if int(ids.max()) >= n_vocab:
            fault = f"the id {int(ids.max())} is not in the vocabulary, which ends at {n_vocab - 1}"
            raise _fault(stream, at + int(ids.argmax()), fault)
        if at == 0 and not is_append and ids[0] != mark:
            raise _fault(stream, 0, "the first token is not the end of text that must begin each document")
        edges = numpy.flatnonzero(ids == mark) + at + is_append  # where documents begin or have ended
        borders = numpy.append(begin, edges[edges > begin])
        begin = int(borders[-1])
        yield _checked(stream, borders)
    if begin < len(stream):
        if is_append:
            raise _fault(stream, len(stream), "the last token is not the end of text that must end each document")
        yield _checked(stream, numpy.array([begin, len(stream)]))


def _checked(stream: TokenStream, borders: Array) -> Array:
    lengths = numpy.diff(borders)
    if len(lengths) and int(lengths.min()) < 2:
        raise _fault(stream, int(borders[int(lengths.argmin())]), "a document has no tokens except its end of text")
    return lengths


def _fault(stream: TokenStream, token: int, fault: str) -> FormatError:
    return FormatError(f"{os.path.dirname(stream.paths[0])}: token {token}: {fault}: write the data again")


# ----------------------------------------------------------------------------------------------------
# Random numbers


class Keys:
    """The keys of documents for one purpose, which names and numbers describe."""

    def __init__(self, *purpose: str | int) -> None:
        digest = hashlib.blake2b(json.dumps(purpose).encode(), digest_size=32).digest()
        self._words = struct.unpack("<4Q", digest)

    def first(self, documents: Array) -> Array:
        """Returns the keys of these documents: uint64. Different documents have different keys."""
        return self._word(documents, 0)

    def second(self, documents: Array) -> Array:
        """Returns independent keys, which break ties between documents of different purposes."""
        return self._word(documents, 2)

    def _word(self, documents: Array, at: int) -> Array:
        start, change = (numpy.uint64(word) for word in self._words[at : at + 2])
        return scrambled(scrambled(documents.astype(numpy.uint64) * numpy.uint64(_GOLDEN) + start) ^ change)


def drawing_keys(seed: int, source: str, number: int) -> Keys:
    """Returns the keys whose order is the order in which pass `number` over a source draws its documents."""
    return Keys("draw", seed, source, number)


def writing_keys(seed: int, split: str, phase: int, source: str, number: int) -> Keys:
    """Returns the keys by which the output orders the documents that a phase draws from pass `number` over a source."""
    return Keys("write", seed, split, phase, source, number)


# ----------------------------------------------------------------------------------------------------
# What phases get


class Stretch(NamedTuple):
    """Consecutive documents of one pass over a source."""

    number: int  # of the pass
    low: int  # their drawing keys are at least `low`, and less than `high`
    high: int
    cut: tuple[int, int] | None = None  # a document's number, and how many of its tokens are used; others are whole

    def chosen(self, keys: Array) -> Array:
        """Returns which of these drawing keys belong to the stretch."""
        found: Array = keys >= numpy.uint64(self.low)
        return found if self.high == _END else found & (keys < numpy.uint64(self.high))


@dataclass(frozen=True)
class Drawn:
    """What a phase gets from a source: its stretches, and how many tokens and documents they have."""

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
