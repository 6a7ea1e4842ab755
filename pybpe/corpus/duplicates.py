"""Finds exact duplicates: digests that occurred before.

Digests have 16 bytes: among 10^12 texts, the chance that any two different texts collide is 10^-15. They are sorted
with their positions, which tell the first of each group.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import regex

from .._numpy import Array, numpy
from ..arguments import Text, utf8, whole_number
from ..normalize import normalize_text
from .sorting import LEAST_MEMORY

DIGEST_BYTES = 16


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


def check_memory_limit(memory_limit: int | None) -> None:
    """Raises ArgumentError if the limit is too low to be useful."""
    if memory_limit is not None:
        whole_number("memory_limit", memory_limit, LEAST_MEMORY)


def digest_rows(digests: bytes, first: int) -> Array:
    """Returns rows (two halves of a digest, its number) of concatenated digests, which are numbered from `first`."""
    words = numpy.frombuffer(digests, dtype="<u8").reshape(-1, 2)
    places = numpy.arange(first, first + len(words), dtype=numpy.uint64)
    return numpy.concatenate([words, places[:, None]], axis=1)


def repeated(blocks: Iterable[Array]) -> Iterator[Array]:
    """Yields the numbers of digests that equal an earlier one, in rows of one number, from sorted rows of
    `digest_rows`."""
    last = numpy.empty((0, 3), dtype=numpy.uint64)
    for block in blocks:
        rows = numpy.concatenate([last, block])
        same = (rows[1:, :2] == rows[:-1, :2]).all(axis=1)
        yield rows[1:][same, 2:]
        last = rows[-1:]
