"""Finds exact duplicates: digests that occurred before.

Digests have 16 bytes: among 10^12 texts, the chance that any two different texts collide is 10^-15. They are sorted
with their positions, which tell the first of each group. That takes BYTES_PER_DIGEST bytes of memory per digest. With a
memory limit, digests are first divided on disk by their leading bits, and the parts are sorted one by one.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import regex

from ..arguments import Text, utf8, whole_number
from ..errors import file_error
from ..normalize import normalize_text

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

DIGEST_BYTES = 16
BYTES_PER_DIGEST = 64  # 16 for the digest, 8 for its position, and more than as much again while sorting
LEAST_MEMORY = 10**6
_PARTS = 256


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


class Repeats:
    """Digests in order, and which of them occurred before.

    Args:
        folder: a folder for temporary files; `find` removes them.
        memory_limit: bytes; None for no limit.
    """

    def __init__(self, folder: str, memory_limit: int | None) -> None:
        check_memory_limit(memory_limit)
        self._folder = folder
        self._most = None if memory_limit is None else memory_limit // BYTES_PER_DIGEST
        self._blocks: list[bytes] = []
        self._held = 0
        self._files = False
        self.size = 0

    def add(self, digests: bytes) -> None:
        """Adds concatenated digests."""
        self._blocks.append(digests)
        self._held += len(digests) // DIGEST_BYTES
        self.size += len(digests) // DIGEST_BYTES
        if self._most is not None and self._held > self._most:
            self._spill()

    def find(self) -> Array:
        """Returns whether each digest equals an earlier one: bool, shape (size,)."""
        import numpy

        repeated = numpy.zeros(self.size, dtype=bool)
        for records in self._parts():
            order = numpy.lexsort((records["place"], records["low"], records["high"]))
            ordered = records[order]
            same = (ordered["high"][1:] == ordered["high"][:-1]) & (ordered["low"][1:] == ordered["low"][:-1])
            repeated[ordered["place"][1:][same]] = True
        return repeated

    def _records(self) -> Array:
        """Returns the digests in memory, with their positions."""
        import numpy

        digests = numpy.frombuffer(b"".join(self._blocks), dtype=[("high", "<u8"), ("low", "<u8")])
        records = numpy.empty(len(digests), dtype=[("high", "<u8"), ("low", "<u8"), ("place", "<u8")])
        records["high"], records["low"] = digests["high"], digests["low"]
        records["place"] = numpy.arange(self.size - len(digests), self.size)
        self._blocks, self._held = [], 0
        return records

    def _parts(self) -> Iterator[Array]:
        import numpy

        if not self._files:
            yield self._records()
            return
        self._spill()
        for part in range(_PARTS):
            name = self._name(part)
            if os.path.exists(name):
                yield numpy.fromfile(name, dtype=[("high", "<u8"), ("low", "<u8"), ("place", "<u8")])
                os.unlink(name)

    def _spill(self) -> None:
        """Moves the digests in memory to files, by their leading bits."""
        import numpy

        self._files = True
        records = self._records()
        parts = (records["high"] >> numpy.uint64(56)).astype(numpy.int64)
        order = numpy.argsort(parts, kind="stable")
        bounds = numpy.searchsorted(parts[order], numpy.arange(_PARTS + 1))
        try:
            for part in range(_PARTS):
                chosen = records[order[bounds[part] : bounds[part + 1]]]
                if len(chosen):
                    with open(self._name(part), "ab") as stream:
                        stream.write(chosen.tobytes())
        except OSError as error:
            raise file_error(error.errno or 0, f"{self._folder}: cannot be written: {error.strerror}") from None

    def _name(self, part: int) -> str:
        return os.path.join(self._folder, f"digests-{part:03d}")
