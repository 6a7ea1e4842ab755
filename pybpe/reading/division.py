"""Divides pieces of a corpus into documents in C, without a Python object for each document.

`Kinds.divide_with_clusters` defines the result. It also reads the few JSON lines that C leaves to a complete parser,
and raises the errors for lines that are not records.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import lru_cache

from .. import _binding
from .bad_records import Seen
from .documents import Kinds, mark_matcher
from .planned_pieces import PlannedPiece
from .splits import last_hashes


class Dividers:
    """The dividers of threads that divide pieces in the same way. A thread takes one and puts it back: `pop` and
    `append` are atomic.

    Args:
        separator: the bytes written after each document.
        mark: the text that separates documents of the kind "special", or None.
        text_key: the key of the text in a record.
        splits: the shares of the splits; with one, documents are not hashed.
    """

    def __init__(self, separator: bytes, mark: str | None, text_key: str, splits: Sequence[float]) -> None:
        self._separator, self._mark, self._key = separator, mark, text_key
        self._last = last_hashes(splits)
        self._free: list[_binding.Divider] = []

    def take(self) -> _binding.Divider:
        """Returns an empty divider that no other thread uses."""
        try:
            divider = self._free.pop()
        except IndexError:
            marks = mark_matcher(self._mark) if self._mark is not None else None
            return _binding.Divider(self._separator, marks, self._key, self._last)
        divider.clear()
        return divider

    def put_back(self, divider: _binding.Divider) -> None:
        """Takes a divider back. Its documents are no longer valid."""
        self._free.append(divider)


@lru_cache(maxsize=8)
def dividers(separator: bytes, mark: str | None, text_key: str, splits: Sequence[float]) -> Dividers:
    """Returns the dividers for these arguments, which are those of Dividers."""
    return Dividers(separator, mark, text_key, splits)


def add_documents(divider: _binding.Divider, piece: PlannedPiece, kinds: Kinds) -> bool:
    """Adds the documents of a divided piece to a divider. Returns False if Python must read the piece instead."""
    if not isinstance(piece.data, memoryview):
        for data, offsets in piece.data.parts:
            divider.add(data, offsets)
        return True
    kind = kinds.kind(piece.path)
    if kind == "file":
        divider.add(piece.data, array("Q", (0, len(piece.data))))
        return True
    if not divider.divide(kind, piece.data):
        return False
    if kind == "jsonl":
        note_records(piece.seen, piece.data, sum(divider.documents(split).count for split in range(divider.splits)))
    return True


def note_records(seen: Seen, lines: memoryview, documents: int) -> None:
    """Notes the records of a piece of JSON lines that C has divided, all of which are valid.

    Args:
        seen: notes them.
        lines: the piece.
        documents: the number of its documents, which are the records whose text is not empty.
    """
    data = bytes(lines)
    seen.end, seen.lines, seen.records = seen.start + len(data), data.count(b"\n"), documents
    if documents < seen.lines + (not data.endswith(b"\n")):  # there are blank lines, or records with an empty text
        seen.records = sum(not line.isspace() for line in data.split(b"\n") if line)
