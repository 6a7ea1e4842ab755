"""Finds exact duplicates of documents and paragraphs: digests that occurred before.

Digests are BLAKE2b's, of 16 bytes: among 10^12 documents, the chance that any two different ones collide is 10^-15.
Blank lines separate paragraphs. In a document without blank lines, every line is a paragraph.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterable

import regex

from .._lazy import Array, numpy
from ..arguments import utf8
from ..normalize import normalize_text

LEAST_BYTES = 30  # of a paragraph. Shorter ones, such as "Yes." in a dialogue, may repeat
_BLANK_LINES = re.compile(r"(\n\s*\n)")
_LINES = re.compile(r"(\n)")
_ROW_BYTES = 150  # of memory to sort a digest


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
    passes = -(-count * _ROW_BYTES // memory)
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
