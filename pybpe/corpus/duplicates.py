"""Finds duplicates of documents and paragraphs: digests that occurred before; and near duplicates, below.

Digests are BLAKE2b's, of 16 bytes: among 10^12 documents, the chance that any two different ones collide is 10^-15.
Blank lines separate paragraphs. In a document without blank lines, every line is a paragraph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import product
from typing import NamedTuple

import regex

from .. import _binding
from .._lazy import Array, numpy
from ..arguments import utf8
from ..normalize import normalize_text
from .filters import characters, check_texts

LEAST_BYTES = 30  # of a paragraph. Shorter ones, such as "Yes." in a dialogue, may repeat
_BLANK_LINES = re.compile(r"(\n\s*\n)")
_LINES = re.compile(r"(\n)")
_DIGEST_BYTES = 150  # of memory to sort a digest


def normalized(text: str) -> str:
    """Returns a text's letters, marks and digits, case-folded and in NFKC, without punctuation and spaces. If nothing
    is left, returns the text.

    NFKC has the C library's tables. Case folding has Python's, which Unicode never changes for a character that it has
    assigned: letters of Unicode 13, which Python 3.10 has, fold alike in every version of Python.
    """
    if text.isascii():
        return text.lower().encode().translate(None, _ASCII_REST).decode() or text
    folded = normalize_text(normalize_text(text, "NFKC").casefold(), "NFKC")
    return _REST.sub("", folded) or text


_REST = regex.compile(r"[^\p{L}\p{M}\p{N}]+")
_ASCII_REST = bytes(c for c in range(128) if not chr(c).isalnum())


def repeated(digests_of: Callable[[], Iterable[bytes]], count: int, memory: int) -> Array:
    """Returns which of `count` digests equal an earlier one: bool, shape (count,). `digests_of` returns the
    digests, several concatenated ones at a time.

    Digests may not all fit in `memory`, bytes besides the result. They are hashes, so they are spread evenly, and a
    pass over them takes one share."""
    found = numpy.zeros(count, dtype=bool)
    passes = -(-count * _DIGEST_BYTES // memory)
    for share in range(passes):
        blocks = []
        start = 0
        for each in digests_of():
            digests = numpy.frombuffer(each, "<u8").reshape(-1, 2)
            mine = numpy.flatnonzero(digests[:, 0] % passes == share)
            blocks.append((digests[mine], mine + start))
            start += len(digests)
        digests, numbers = (numpy.concatenate(column) for column in zip(*blocks))
        places = places_of_repeated(digests[:, 0])
        places = places[numpy.lexsort(digests[places].T)]  # it leaves equal ones in their order
        digests = digests[places]
        found[numbers[places[1:][(digests[1:] == digests[:-1]).all(axis=1)]]] = True
    return found


def places_of_repeated(keys: Array) -> Array:
    """Returns the places of keys that occur more than once: the places of one key together, and in ascending order.
    Some keys that occur once are among them: at first, only as many bits of a key are compared as fit into a number
    with its place, because numpy sorts numbers many times faster than it sorts places by their numbers."""
    bits = numpy.uint64(len(keys).bit_length())
    packed = keys >> bits << bits
    packed |= numpy.arange(len(keys), dtype=numpy.uint64)
    packed.sort()
    same = numpy.zeros(len(keys) + 1, dtype=bool)
    same[1:-1] = packed[1:] >> bits == packed[:-1] >> bits
    places = (packed[same[1:] | same[:-1]] & ((numpy.uint64(1) << bits) - numpy.uint64(1))).astype(numpy.int64)
    found: Array = places[numpy.argsort(keys[places], kind="stable")]
    return found


def _split(text: str) -> list[str]:
    """Returns the paragraphs at even positions, and the separators at odd ones."""
    parts = _BLANK_LINES.split(text)
    return parts if len(parts) > 1 else _LINES.split(text)


def counted_paragraphs(text: str) -> list[bytes]:
    """Returns all paragraphs of at least LEAST_BYTES, in UTF-8, without the spaces around them."""
    paragraphs = (bytes(utf8(part.strip())) for part in _split(text)[::2])
    return [paragraph for paragraph in paragraphs if len(paragraph) >= LEAST_BYTES]


def without_paragraphs(text: str, dropped: Container[int]) -> tuple[str, list[str]]:
    """Returns the text without the paragraphs whose positions in counted_paragraphs are in `dropped`, and those
    paragraphs.

    >>> text = "A paragraph that is long enough to count.\\n\\nA second one, which is long enough too."
    >>> without_paragraphs(text, {0})[0]
    'A second one, which is long enough too.'
    """
    parts = _split(text)
    kept: list[str] = []
    removed: list[str] = []
    number = 0
    for i in range(0, len(parts), 2):
        counts = len(utf8(parts[i].strip())) >= LEAST_BYTES
        if counts and number in dropped:
            removed.append(parts[i])
        else:
            kept += [parts[i - 1], parts[i]] if kept else [parts[i]]
        number += counts
    return "".join(kept), removed


# ----------------------------------------------------------------------------------------------------
# Near duplicates: MinHash signatures, the pairs of documents worth comparing, and clusters of similar ones.
#
# Documents are compared by their shingles, runs of five words. The Jaccard similarity of two sets of shingles is the
# size of the intersection divided by the size of the union. The share of equal positions in two signatures estimates it
# (Broder 1997), with a standard error of sqrt(J (1 - J) / PERMUTATIONS), 0.035 at 0.8. Signatures are cut into bands of
# several rows. Pairs that agree in all rows of a band are compared. See Leskovec, Rajaraman, Ullman, "Mining of Massive
# Datasets", chapter 3. The C library makes the signatures (csrc/shingles/shingles_minhash.c).
#
# A document with fewer words than a shingle matches only documents with identical words, so it needs no signature.
#
# Documents are numbered in the order of the corpus. In a band, documents with equal keys form a group. A document is
# compared with the one before it in the group and with the first one, unless they are linked already. Pairs whose
# signatures are similar enough are linked, and the documents that links connect are a cluster. So the clusters depend
# only on the documents and their order.


RowsOf = Callable[[int | None], Iterable[tuple["Array", "Array"]]]

PERMUTATIONS = _binding.MINHASH_SIZE
DEFAULT_MEMORY = 1 << 30
_RECALL = 0.99
_PAIR_BYTES = 4 * 4 * PERMUTATIONS  # of memory to compare two signatures
_LEAST_PAIRS = 64
_KEY_BYTES = 64  # of memory to group a key of a band
_BLOCK = 1 << 16


class Banding(NamedTuple):
    """How signatures are cut into bands."""

    bands: int
    rows: int  # the rows per band

    @classmethod
    def of(cls, threshold: float) -> Banding:
        """Returns the banding with the most rows, and so the fewest needless comparisons, that still compares a pair at
        the threshold in 99 of 100 cases.

        >>> Banding.of(0.8)
        Banding(bands=21, rows=6)
        """
        for rows in range(PERMUTATIONS, 1, -1):
            banding = cls(PERMUTATIONS // rows, rows)
            if banding.probability(threshold) >= _RECALL:
                return banding
        return cls(PERMUTATIONS, 1)

    def probability(self, similarity: float) -> float:
        """Returns the probability that a pair of this Jaccard similarity is compared: 1 - (1 - s^rows)^bands."""
        return float(1 - (1 - similarity**self.rows) ** self.bands)

    def curve(self) -> list[tuple[float, float]]:
        """Returns (similarity, probability) in steps of 0.1."""
        return [(i / 10, self.probability(i / 10)) for i in range(11)]


def signatures(texts: Sequence[str]) -> Array:
    """Returns the signatures of texts: uint32, shape (texts, PERMUTATIONS)."""
    return _binding.minhash_texts(check_texts(texts), characters())


def jaccard(first: str, second: str) -> float:
    """Returns the exact Jaccard similarity of two texts' sets of shingles.

    >>> round(jaccard("one two three four five six", "one two three four five seven"), 3)
    0.333
    """
    texts = check_texts([first, second]).list()
    a, b = (set(_binding.shingle_hashes(text, characters()).tolist()) for text in texts)
    return len(a & b) / len(a | b)


def find_clusters(signatures: Array, threshold: float) -> Array:
    """Returns the first member of each text's cluster: int64, shape (texts,). A text similar to no other is its own.

    Args:
        signatures: uint32, shape (texts, PERMUTATIONS), in the order of the corpus.
        threshold: the minimum estimated similarity of a pair.
    """
    keys = _binding.cut_signatures(signatures, *Banding.of(threshold))
    numbers = numpy.arange(len(signatures))

    def rows_of(band: int | None) -> list[tuple[Array, Array]]:
        return [(keys[0, :0], numbers[:0]) if band is None else (keys[band], numbers)]

    return clusters(len(signatures), threshold, rows_of, signatures.__getitem__, DEFAULT_MEMORY)


def clusters(
    texts: int, threshold: float, rows_of: RowsOf, signatures_of: Callable[[Array], Array], memory: int
) -> Array:
    """Returns the first member of each text's cluster: int64, shape (texts,). Pairs with an estimated similarity of at
    least `threshold` are linked. rows_of(band) yields the keys (uint64) and the numbers (int64) of the texts to
    compare, in their order, and rows_of(None) yields them for texts that are linked if their keys are equal,
    signatures_of(numbers) returns signatures. `memory` is in bytes, besides the result: if not all keys of a band fit,
    they are divided, and texts with the same key stay together."""
    firsts = numpy.arange(texts, dtype=numpy.int64)
    at_once = max(_LEAST_PAIRS, memory // _PAIR_BYTES)
    shares = -(-texts * _KEY_BYTES // memory)  # none without documents
    for band, share in product([None, *range(Banding.of(threshold).bands)], range(shares)):
        pairs = _pairs(rows_of(band), share, shares)
        pairs = pairs[firsts[pairs[:, 0]] != firsts[pairs[:, 1]]]
        for start in range(0, len(pairs), at_once):
            part = pairs[start : start + at_once]
            _link(firsts, part if band is None else part[_similarity(part, signatures_of) >= threshold])
        _shorten(firsts)
    return firsts


def _pairs(rows: Iterable[tuple[Array, Array]], share: int, shares: int) -> Array:
    """Returns the pairs to compare in a share of the keys of a band: shape (pairs, 2)."""
    blocks = list(rows)
    if shares > 1:
        blocks = [(keys[mine], numbers[mine]) for keys, numbers in blocks for mine in [keys % shares == share]]
    keys, numbers = (numpy.concatenate(column) for column in zip(*blocks))
    places = places_of_repeated(keys)
    begins = numpy.append(True, keys[places[1:]] != keys[places[:-1]])[: len(places)]
    later = numpy.flatnonzero(~begins)
    starts = numpy.flatnonzero(begins)
    firsts = starts[numpy.searchsorted(starts, later) - 1]
    third = later - 1 > firsts  # or further on: the one before is not the first
    earlier = numpy.concatenate([firsts, later[third] - 1])
    return numpy.stack([numbers[places[earlier]], numbers[places[numpy.concatenate([later, later[third]])]]], axis=1)


def _similarity(pairs: Array, signatures_of: Callable[[Array], Array]) -> Array:
    """Returns the share of positions where the two signatures of a pair are equal."""
    numbers, places = numpy.unique(pairs, return_inverse=True)
    rows = signatures_of(numbers)
    first, second = places.reshape(-1, 2).T
    shares: Array = numpy.count_nonzero(rows[first] == rows[second], axis=1) / PERMUTATIONS
    return shares


def _link(firsts: Array, pairs: Array) -> None:
    """Links pairs of texts. `firsts` is a forest: for every text it has an earlier text of the same cluster, or, for
    the first one of a cluster, the text itself."""
    parents = firsts.data
    for pair in pairs.tolist():
        low, high = sorted(_first(parents, text) for text in pair)
        parents[high] = low


def _first(parents: memoryview, text: int) -> int:
    """Returns the first text of a cluster, and halves the way to it."""
    while (parent := parents[text]) != text:
        parents[text] = parents[parent]
        text = parent
    return text


def _shorten(firsts: Array) -> None:
    """Replaces every text in the forest by the first one of its cluster."""
    for start in range(0, len(firsts), _BLOCK):
        block = firsts[start : start + _BLOCK]  # a view. Everything before it is done
        while ((parents := firsts[block]) != block).any():
            block[:] = parents
