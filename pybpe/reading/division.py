"""Divides pieces of a corpus into documents in C, without a Python object for each document.

The bytes of a document decide its split; or the name of its cluster of near duplicates, if its record has a string
at CLUSTER (see pybpe.corpus). Python reads the few JSON lines that C leaves to a complete parser, and raises the errors
for lines that are not records.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache

from .. import _binding
from ..arguments import utf8
from .documents import CLUSTER, Kinds, mark_matcher, records
from .planning import Piece
from .splits import hash_split, last_hashes


@contextmanager
def lent_divider(kinds: Kinds, separator: bytes, splits: Sequence[float]) -> Iterator[_binding.Divider]:
    """Yields an empty divider that no other thread uses. After the block its documents are no longer valid.

    Args:
        kinds: how documents are separated.
        separator: the bytes written after each document.
        splits: the shares of the splits; with one, documents are not hashed.
    """
    mark, key = kinds.mark, kinds.read.text_key
    free = _free_dividers(separator, mark, key, splits)
    try:
        divider = free.pop()
    except IndexError:
        marks = mark_matcher(mark) if mark is not None else None
        divider = _binding.Divider(separator, marks, key, last_hashes(splits))
    divider.clear()
    try:
        yield divider
    finally:
        free.append(divider)


@lru_cache(maxsize=8)
def _free_dividers(*how: object) -> list[_binding.Divider]:
    """Returns the dividers that no thread uses. `pop` and `append` are atomic."""
    return []


def add_documents(divider: _binding.Divider, piece: Piece) -> bool:
    """Adds the documents of a divided piece to a divider. Returns False if Python must read the piece instead."""
    if not isinstance(piece.data, memoryview):
        if piece.data.fields and divider.splits > 1:
            return False
        for data, offsets in piece.data.parts:
            divider.add(data, offsets)
        return True
    kind = piece.kind
    if kind == "file":
        divider.add(piece.data, array("Q", (0, len(piece.data))))
        return True
    if not divider.divide(kind, piece.data):
        return False
    if kind == "jsonl":
        piece.seen.end = piece.seen.start + len(piece.data)
        piece.seen.records, piece.seen.lines = divider.records()
    return True


def divide(piece: Piece, kinds: Kinds, splits: Sequence[float]) -> Iterator[tuple[int, list[bytes]]]:
    """Yields the documents of a divided piece by split, each split's in piece order. This is slow; it also reads what
    `add_documents` does not. Raises FormatError if a line is not a record."""
    key, shares = kinds.read.text_key, shares_of(piece, splits)
    with lent_divider(kinds, b"", shares) as divider:
        if add_documents(divider, piece):
            found = [divider.texts(place).list() for place in range(len(shares))]
        else:
            found = [[] for _ in shares]
            pairs: Iterable[tuple[bytes, Mapping[str, object]]]
            if isinstance(piece.data, memoryview):
                pairs = ((utf8(record[key]), record) for record, _ in records(piece.data, key, piece.seen))
            else:
                pairs = piece.data.records()
            for document, record in pairs:
                if document:
                    cluster = record.get(CLUSTER)
                    name = utf8(cluster) if isinstance(cluster, str) else document
                    found[hash_split(name, shares)].append(document)
    yield from ((place if piece.split is None else piece.split, some) for place, some in enumerate(found) if some)


def shares_of(piece: Piece, splits: Sequence[float]) -> Sequence[float]:
    """Returns the shares among which a divider divides a piece: one if the split of the piece is known."""
    return tuple(splits) if piece.split is None else (1.0,)
