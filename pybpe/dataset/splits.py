"""Which text goes into which split."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from ..errors import ArgumentError
from ..inputs import open_text
from ..model import END_OF_TEXT
from ..pretokenize import BLOCK_BYTES
from .kinds import Kinds

SPLIT_NAMES = ("train", "val", "test")
SPLIT_BY = ("hash", "document", "token")

_MARK = END_OF_TEXT.encode()


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


def has_many_documents(paths: Sequence[str], kinds: Kinds) -> bool:
    """Whether there are at least two documents that are not empty. Holds none; reads on until it knows."""
    count = 0
    for path in paths:
        if kinds.is_divided(path):
            return True
        filled = False
        for chunk, ends in _chunks(path, kinds.kind(path) == "special"):
            filled = filled or bool(chunk)
            if ends:
                count += filled
                filled = False
            if count + filled > 1:
                return True
    return False


def _chunks(path: str, marked: bool) -> Iterator[tuple[bytes, bool]]:
    """The text of a file in chunks without marks, and whether a document ends behind each. A file without
    marks is known after one block."""
    with open_text(path) as stream:
        keep = len(_MARK) - 1  # so many bytes of a block may begin a mark that ends in the next
        tail = b""
        while block := stream.read(BLOCK_BYTES):
            if not marked:
                yield block, True
                return
            *ended, last = (tail + block).split(_MARK)
            for chunk in ended:
                yield chunk, True
            cut = max(0, len(last) - keep)
            yield last[:cut], False
            tail = last[cut:]
        yield tail, True
