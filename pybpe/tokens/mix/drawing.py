"""Finds the documents of the sources, and decides which of them a mixture gets.

The lengths of documents go into a file without a name, since there may be more than fit in memory.

A document has a number in its split of its source. A key is a function of the seed, of the use of the key, and of
that number, so it depends neither on the number of workers nor on the memory. Documents are in random order if
they are sorted by their keys: "decorating" and sorting, as in shuf(1). A key is splitmix64's finalizer applied twice,
to a counter with a random start (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014). Starts
are BLAKE2b hashes, so that keys for different purposes are independent.

A source is read in passes, and only the last may be a part of one: the documents with the lowest keys. To find where
they end, the lengths are summed by the upper bits of the keys, and then only the documents with the same upper bits are
sorted. So memory does not grow with the number of documents.

In the output, the passes over a source share the range of keys by their numbers of tokens, so every document comes once
before any comes again, and a source has the same share of any part of the output:

    a, 2.5 passes   |  pass 0, shuffled   |  pass 1, shuffled   | half of pass 2 |
    b, 1 pass       |                      pass 0, shuffled                      |
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..._lazy import Array, numpy
from ...errors import FormatError, file_errors
from ...support.permutation import scrambled
from ..token_files import MarksFirst, TokenStream, with_marks_first
from .recipe import Recipe

_BLOCK = 1 << 20  # tokens or lengths processed at once
_BINS = 1 << 16
_END = 1 << 64  # greater than any key
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 divided by the golden ratio, made odd


class Documents:
    """The documents of one split of a source, numbered from 0.

    Args:
        stream: the tokens, with the documents' marks before them.
        lengths: the tokens of every document, its mark included: uint64.
    """

    def __init__(self, stream: TokenStream | MarksFirst, lengths: Array) -> None:
        self.stream, self.lengths = stream, lengths

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def tokens(self) -> int:
        """The number of tokens, marks included."""
        return len(self.stream)


def find_documents(stream: TokenStream, mark: int, eot: str, n_vocab: int, folder: str) -> Documents:
    """Finds the documents of a stream.

    Args:
        stream: the tokens.
        mark: the id of the mark.
        eot: where it is: "prepend" or "append".
        n_vocab: the number of tokens of the vocabulary.
        folder: where the file of their lengths is.

    Raises:
        FormatError: the stream does not begin or end with a mark, as it must, two marks are neighbors, or an id is
            not in the vocabulary.
    """
    with file_errors(folder, "cannot be written"), tempfile.TemporaryFile(dir=folder) as file:
        for lengths in _lengths(stream, mark, eot == "append", n_vocab):
            file.write(lengths.astype("u8").tobytes())
        file.flush()
        # An empty file cannot be mapped.
        found = numpy.memmap(file, dtype="u8", mode="r").view(numpy.ndarray) if file.tell() else numpy.empty(0, "u8")
    return Documents(with_marks_first(stream, mark, eot), found)


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


def drawing_keys(documents: Array, seed: int, source: str, number: int) -> Array:
    """Returns keys of documents. Sorted by them, documents are in the order of pass `number` over a source."""
    return _keys(documents, 0, "draw", seed, source, number)


def writing_keys(documents: Array, seed: int, split: str, source: str, number: int) -> tuple[Array, Array]:
    """Returns the keys that order the documents of pass `number` over a source in the output (see Drawn.spread), and
    independent keys, which break ties between documents of different passes."""
    purpose = "write", seed, split, source, number
    return _keys(documents, 0, *purpose), _keys(documents, 2, *purpose)


def _keys(documents: Array, at: int, *purpose: str | int) -> Array:
    """Returns the keys of documents for a purpose: uint64. Different documents have different keys."""
    words = struct.unpack("<4Q", hashlib.blake2b(json.dumps(purpose).encode(), digest_size=32).digest())
    start, change = map(numpy.uint64, words[at : at + 2])
    return scrambled(scrambled(documents.astype(numpy.uint64) * numpy.uint64(_GOLDEN) + start) ^ change)


# ----------------------------------------------------------------------------------------------------
# The amounts of a mixture


class Pass(NamedTuple):
    """A pass over a source, or the first documents of one."""

    tokens: int
    end: int = _END  # their drawing keys are less than this
    cut: tuple[int, int] | None = None  # a document's number, and how many of its tokens are used. Others are whole

    def chosen(self, keys: Array) -> Array:
        """Returns which of these drawing keys belong to the pass."""
        found: Array = keys < numpy.uint64(self.end) if self.end < _END else numpy.ones(len(keys), bool)
        return found


@dataclass(frozen=True)
class Drawn:
    """The part of a mixture from one source: passes, and how many tokens and documents they have."""

    passes: tuple[Pass, ...] = ()
    tokens: int = 0
    documents: int = 0

    def spread(self, number: int, keys: Array) -> Array:
        """Returns the writing keys of documents of pass `number`, moved into its part of the range of all keys."""
        before = sum(part.tokens for part in self.passes[:number])
        first, end = ((at << 32) // self.tokens for at in (before, before + self.passes[number].tokens))
        if end - first == 1 << 32:
            return keys
        width, half = numpy.uint64(end - first), numpy.uint64(32)
        low = keys & numpy.uint64(0xFFFFFFFF)
        moved: Array = numpy.uint64(first << 32) + (keys >> half) * width + (low * width >> half)
        return moved


def everything(documents: Documents) -> Drawn:
    """Returns all documents once."""
    return Drawn((Pass(documents.tokens),), documents.tokens, len(documents)) if len(documents) else Drawn()


def draw_all(recipe: Recipe, documents: Sequence[Documents], asked: Mapping[str, int], tolerance: int) -> list[Drawn]:
    """Returns the part of a mixture from every source. A source with a weight also gets what sources with a weight
    before it lack, so that the error of their sum does not grow with their number.

    Args:
        recipe: the recipe.
        documents: the documents of the sources' train splits.
        asked: the tokens that the recipe asks of its sources, by name.
        tolerance: see draw.
    """
    found: list[Drawn] = []
    lacking = 0
    for source, some in zip(recipe.sources, documents):
        is_share = source.kind == "weight"
        wanted = asked[source.name] + (lacking if is_share else 0)
        found.append(draw(some, wanted, tolerance, recipe.seed, source.name))
        lacking = wanted - found[-1].tokens if is_share else lacking
    return found


def draw(documents: Documents, tokens: int, tolerance: int, seed: int, source: str) -> Drawn:
    """Draws documents of a source: passes over all of them, and a random part of one more.

    Args:
        documents: the documents of its train split, at least one.
        tokens: how many tokens, marks included, are wanted.
        tolerance: if the next document does not fit, and fewer tokens than this are missing, it is left out. Otherwise
            it is cut.
        seed, source: choose the order of every pass.

    Returns:
        Documents with at most `tokens` tokens, and more than `tokens - tolerance`.
    """
    number, rest = divmod(tokens, documents.tokens)
    passes, count = [Pass(documents.tokens)] * number, number * len(documents)
    if rest:
        key, document, before, some = _border(documents, rest, seed, source, number)
        missing = rest - before
        part = Pass(before, key)
        if missing >= max(2, tolerance):
            part, some = Pass(rest, key + 1, (document, missing)), some + 1
        passes += [part] if some else []
        count += some
    return Drawn(tuple(passes), sum(part.tokens for part in passes), count)


def _border(documents: Documents, tokens: int, *of_pass: Any) -> tuple[int, int, int, int]:
    """Finds the first document, in the order of a pass, that ends after `tokens`, which are fewer than all. Returns
    its key and number, and how many tokens and documents are before it."""
    shift = numpy.uint64(64 - (_BINS - 1).bit_length())
    sums, counts = numpy.zeros(_BINS, dtype=numpy.int64), numpy.zeros(_BINS, dtype=numpy.int64)
    for _, found, lengths in _keyed(documents, *of_pass):
        bins = (found >> shift).astype(numpy.int64)
        sums += numpy.bincount(bins, lengths, _BINS).astype(numpy.int64)  # exact: a block has fewer than 2^53 tokens
        counts += numpy.bincount(bins, minlength=_BINS)
    ends = numpy.cumsum(sums)
    wanted = int(numpy.searchsorted(ends, tokens, side="right"))
    before = int(ends[wanted] - sums[wanted])
    parts = [numpy.empty((3, 0), dtype=numpy.uint64)]
    for at, found, lengths in _keyed(documents, *of_pass):
        places = numpy.flatnonzero(found >> shift == numpy.uint64(wanted))
        parts.append(numpy.stack([found[places], places.astype(numpy.uint64) + numpy.uint64(at), lengths[places]]))
    some = numpy.concatenate(parts, axis=1)
    some = some[:, numpy.argsort(some[0])]
    inside = before + numpy.cumsum(some[2].astype(numpy.int64))
    place = int(numpy.searchsorted(inside, tokens, side="right"))
    key, document, length = map(int, some[:, place])
    return key, document, int(inside[place]) - length, int(counts[:wanted].sum()) + place


def _keyed(documents: Documents, *of_pass: Any) -> Iterator[tuple[int, Array, Array]]:
    """Yields the number of a document, and the keys and lengths from it on."""
    for at in range(0, len(documents), _BLOCK):
        lengths = documents.lengths[at : at + _BLOCK]
        yield at, drawing_keys(numpy.arange(at, at + len(lengths)), *of_pass), lengths
