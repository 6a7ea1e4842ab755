"""Finds exact duplicates of texts and paragraphs: digests that occurred before.

Digests have 16 bytes: among 10^12 texts, the chance that any two different texts collide is 10^-15. Paragraphs are
separated by blank lines. In a text without blank lines, each line is a paragraph.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Container, Iterable

import regex

from .._numpy import Array, numpy
from ..arguments import Text, utf8
from ..normalize import normalize_text

DIGEST_BYTES = 16
LEAST_BYTES = 30  # of a paragraph; shorter ones, such as "Yes." in a dialogue, may repeat
_BLANK_LINES = re.compile(r"(\n\s*\n)")
_LINES = re.compile(r"(\n)")
_SEEN_BYTES = 150  # of memory for a digest in a set


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
    """Returns whether each of `count` digests equals an earlier one: bool, shape (count,). `digests_of` returns the
    digests, several concatenated ones at a time.

    Digests may not all fit in `memory`, bytes besides the result. They are hashes, so they are spread evenly: each pass
    over them takes one share."""
    found = numpy.zeros(count, dtype=bool)
    passes = -(-count * _SEEN_BYTES // memory)
    for share in range(passes):
        seen: set[bytes] = set()
        start = 0
        for digests in digests_of():
            places = numpy.flatnonzero(numpy.frombuffer(digests, "<u8")[::2] % passes == share)
            for place, one in zip(places.tolist(), numpy.frombuffer(digests, f"V{DIGEST_BYTES}")[places].tolist()):
                if one in seen:
                    found[start + place] = True
                else:
                    seen.add(one)
            start += len(digests) // DIGEST_BYTES
    return found


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
