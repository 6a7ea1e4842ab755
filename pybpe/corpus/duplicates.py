"""Finds exact duplicates of texts and paragraphs: digests that occurred before.

Digests have 16 bytes: among 10^12 texts, the chance that any two different texts collide is 10^-15. Paragraphs are
separated by blank lines. In a text without blank lines, each line is a paragraph.

Keys, such as digests, may not all fit in memory. They are hashes, so they are spread evenly. They are divided into
ranges, and each range is a pass over all keys, which sorts those in the range. If too many numbers have the same key,
the pass sorts them in several chunks. Of each group, only the first and the last number go from one chunk to the next.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container, Iterable, Iterator

import regex

from .._numpy import Array, numpy
from ..arguments import Text, utf8
from ..normalize import normalize_text

RowsOf = Callable[[int, int], Iterable["Array"]]

DIGEST_BYTES = 16
LEAST_BYTES = 30  # of a paragraph; shorter ones, such as "Yes." in a dialogue, may repeat
_BLANK_LINES = re.compile(r"(\n\s*\n)")
_LINES = re.compile(r"(\n)")
_COPIES = 4  # the rows, their order, and sorted columns, are in memory at once
_LEAST_ROWS = 256


def digest(text: Text) -> bytes:
    """Returns the BLAKE2b digest of a text."""
    return hashlib.blake2b(utf8(text), digest_size=DIGEST_BYTES).digest()


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
    """Returns whether each digest equals an earlier one: bool, shape (count,).

    Args:
        digests_of: returns the digests, several concatenated ones at a time.
        count: how many there are.
        memory: bytes, approximately, besides the result.
    """
    found = numpy.zeros(count, dtype=bool)

    def rows_of(low: int, high: int) -> Iterable[Array]:
        number = 0
        for digests in digests_of():
            words = numpy.frombuffer(digests, dtype="<u8").reshape(-1, 2)
            numbers = numpy.arange(number, number + len(words), dtype=numpy.uint64)
            yield numpy.concatenate([words, numbers[:, None]], axis=1)
            number += len(words)

    for numbers, begins in groups(rows_of, count, 3, range(1 << 64), memory):
        found[numbers[~begins]] = True
    return found


def groups(rows_of: RowsOf, count: int, columns: int, keys: range, memory: int) -> Iterator[tuple[Array, Array]]:
    """Yields the numbers whose keys occur more than once, in chunks, ordered by key and then ascending; and whether
    each begins a group. A group may continue in the next chunk, which then repeats its first and its last number.

    Args:
        rows_of: rows_of(low, high) yields arrays of rows of uint64: the columns of the key, then the number. All rows
            whose first column is from `low` to `high` are among them. Rows with the same key are in the order of their
            numbers.
        count: the number of rows.
        columns: the number of columns.
        keys: the first columns.
        memory: bytes, approximately.
    """
    most = max(_LEAST_ROWS, memory // (8 * columns * _COPIES))
    passes = -(-count * 5 // (4 * most))  # a fifth is left for what is not spread evenly
    bounds = [keys.start + (keys.stop - keys.start) * i // passes for i in range(passes + 1)] if passes else []
    for low, last in zip(bounds, (bound - 1 for bound in bounds[1:])):
        kept = numpy.empty((0, columns), dtype=numpy.uint64)
        for chunk in _chunks(rows_of(low, last), numpy.uint64(low), numpy.uint64(last), most):
            rows = numpy.concatenate([kept, *chunk])
            places = _repeated(rows[:, 0], low, last)
            alone = numpy.ones(len(rows), dtype=bool)
            alone[places] = False
            kept, rows = rows[alone], rows[places]
            rows = rows[numpy.lexsort(rows.T[-2::-1])]  # keeps the order of rows with the same key
            begins = numpy.ones(len(rows), dtype=bool)
            begins[1:] = (rows[1:, :-1] != rows[:-1, :-1]).any(axis=1)
            yield rows[:, -1].astype(numpy.int64), begins
            kept = numpy.concatenate([kept, rows[begins | numpy.append(begins[1:], True)[: len(rows)]]])


def _repeated(keys: Array, low: int, last: int) -> Array:
    """Returns the places of keys, from `low` to `last`, that occur more than once, those of a key in ascending order.
    Some that occur once are among them: only as many bits of a key are compared as fit into a number with its place,
    since numpy sorts numbers many times faster than it sorts places by their numbers."""
    bits = numpy.uint64(len(keys).bit_length())
    spare = numpy.uint64(64 - (last - low).bit_length())
    places = numpy.arange(len(keys), dtype=numpy.uint64)
    packed = numpy.sort((keys - numpy.uint64(low)) << spare >> bits << bits | places)
    same = packed[1:] >> bits == packed[:-1] >> bits
    packed = packed[numpy.append(same, False) | numpy.append(False, same)] if len(keys) else packed
    found: Array = (packed & ((numpy.uint64(1) << bits) - numpy.uint64(1))).astype(numpy.int64)
    return found


def _chunks(blocks: Iterable[Array], low: numpy.uint64, high: numpy.uint64, most: int) -> Iterator[list[Array]]:
    """Yields lists of blocks of the rows whose first column is from `low` to `high`, about `most` rows in each list."""
    chunk: list[Array] = []
    size = 0
    for rows in blocks:
        inside = rows[(rows[:, 0] >= low) & (rows[:, 0] <= high)]
        if size + len(inside) > most and chunk:
            yield chunk
            chunk, size = [], 0
        chunk.append(inside)
        size += len(inside)
    if chunk:
        yield chunk


def _split(text: str) -> list[str]:
    """Returns the paragraphs at even positions, and the separators at odd ones."""
    parts = _BLANK_LINES.split(text)
    return parts if len(parts) > 1 else _LINES.split(text)


def paragraph_digests(text: str) -> bytes:
    """Returns the concatenated digests of all paragraphs of at least LEAST_BYTES; surrounding spaces do not count."""
    paragraphs = (part.strip() for part in _split(text)[::2])
    return b"".join(digest(paragraph) for paragraph in paragraphs if len(utf8(paragraph)) >= LEAST_BYTES)


def without_paragraphs(text: str, dropped: Container[int]) -> tuple[str, list[str]]:
    """Returns the text without the paragraphs whose positions in paragraph_digests are in `dropped`, and those
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
