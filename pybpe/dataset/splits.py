"""Which text goes into which split, and how documents are told apart.

A document is what lies between two end-of-text tokens, or a whole file. Texts are handed on as units:
pieces that are encoded separately, with the split they belong to.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .. import _binding
from ..errors import ArgumentError
from ..pretokenize import BLOCK_BYTES, Cut, file_pieces, open_input

SPLIT_NAMES = ("train", "val", "test")
SPLIT_BY = ("hash", "document", "token")


@dataclass(frozen=True)
class Unit:
    """A piece of text to encode.

    Attributes:
        split: index into SPLIT_NAMES.
        data: the text.
        ends_document: whether the document ends with it.
    """

    split: int
    data: _binding.Data
    ends_document: bool


def check_splits(splits: Sequence[float]) -> None:
    """ArgumentError unless splits are one to three shares, none negative, the first positive."""
    if not 1 <= len(splits) <= 3 or min(splits) < 0 or splits[0] <= 0:
        raise ArgumentError(f"splits must be 1 to 3 shares such as (8, 1, 1), the first above 0, not {splits}")


def hash_split(document: bytes, splits: Sequence[float]) -> int:
    """The split of a document by its content: the same in any corpus, in any order."""
    digest = hashlib.blake2b(document, digest_size=8).digest()
    place = int.from_bytes(digest, "little") / 2**64 * sum(splits)
    for split, share in enumerate(splits):
        place -= share
        if place < 0:
            return split
    return 0


def contiguous_units(path: str, cut: Cut, splits: Sequence[float], eot: bytes | None) -> Iterator[Unit]:
    """A file in consecutive parts of these shares, in bytes, each beginning at the first safe cut, or with
    `eot` at the first document, behind its exact place."""
    size = os.path.getsize(path) if os.path.exists(path) else 0
    bounds = [size * sum(splits[: i + 1]) / sum(splits) for i in range(len(splits) - 1)]
    split, offset = 0, 0
    for piece in file_pieces(path, cut):
        while split < len(bounds) and offset + len(piece) > bounds[split]:
            start = max(0, int(bounds[split]) - offset)
            at = cut(piece, start) if eot is None else _document_start(piece, start, eot)
            if at is None:
                break
            yield Unit(split, piece[:at], True)
            piece = piece[at:]
            offset += at
            split += 1
        yield Unit(split, piece, False)
        offset += len(piece)
    yield Unit(split, b"", True)


def _document_start(piece: memoryview, start: int, eot: bytes) -> int | None:
    found = bytes(piece).find(eot, max(0, start - len(eot)))
    return found + len(eot) if found >= 0 else None


def _chunks(path: str, eot: bytes | None) -> Iterator[tuple[bytes, bool]]:
    """The text of a file in chunks without marks, and whether a document ends behind each."""
    with open_input(path) as stream:
        keep = len(eot) - 1 if eot else 0  # so many bytes of a block may begin a mark that ends in the next
        tail = b""
        while block := stream.read(BLOCK_BYTES):
            *ended, last = (tail + block).split(eot) if eot else [block]
            for chunk in ended:
                yield chunk, True
            cut = max(0, len(last) - keep)
            yield last[:cut], False
            tail = last[cut:]
        yield tail, True


def documents(path: str, eot: bytes | None) -> Iterator[bytes]:
    """The documents of a file that are not empty; the whole file if eot is None."""
    chunks: list[bytes] = []
    for chunk, ends in _chunks(path, eot):
        chunks.append(chunk)
        if ends:
            if any(chunks):
                yield b"".join(chunks)
            chunks = []


def _has_many_documents(paths: Sequence[str], eot: bytes | None) -> bool:
    """Whether there are at least two documents that are not empty. Holds no document."""
    count = 0
    for path in paths:
        filled = False
        for chunk, ends in _chunks(path, eot):
            filled = filled or bool(chunk)
            if ends:
                count += filled
                filled = False
            if count + filled > 1:
                return True
    return False


def hashed_units(paths: Sequence[str], splits: Sequence[float], eot: bytes | None) -> Iterator[Unit]:
    """All documents, gathered by split into units of some size, in the order of the corpus within a split."""
    separator = eot or b""
    gathered: list[list[bytes]] = [[] for _ in splits]
    sizes = [0] * len(splits)
    for path in paths:
        for document in documents(path, eot):
            split = hash_split(document, splits)
            gathered[split].append(document)
            sizes[split] += len(document)
            if sizes[split] >= BLOCK_BYTES or eot is None:
                yield Unit(split, separator.join(gathered[split]), True)
                gathered[split], sizes[split] = [], 0
    for split, rest in enumerate(gathered):
        if rest:
            yield Unit(split, separator.join(rest), True)


def corpus_units(
    paths: Sequence[str], cut: Cut, splits: Sequence[float], split_by: str, eot: bytes | None
) -> Iterator[Unit]:
    """All text of a corpus, each piece with its split.

    Args:
        cut: how texts are cut (pretokenize.cutter).
        splits: the shares.
        split_by: one of SPLIT_BY; a single document is split as with "token", and one share needs no split.
        eot: what separates documents in a file; None if each file is one.
    """
    many = split_by != "token" and len(splits) > 1 and _has_many_documents(paths, eot)
    if many and split_by == "hash":
        yield from hashed_units(paths, splits, eot)
        return
    border = eot if many else None
    for path in paths:
        yield from contiguous_units(path, cut, splits, border)
