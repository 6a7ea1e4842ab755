"""Makes shards of the tokens of a complete split, which are in one file or in several.

The ids are copied, unless a file is a shard already, and hashed on the way.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, pairwise

from ..errors import FormatError, file_errors
from ..reading.streams import open_input
from ..support.output_files import give_name
from ..support.parallel import end_if_unwanted, map_ordered
from ..tokenizer import Tokenizer
from .encoding import text_length
from .equal_shards import sizes_of
from .manifest import Facts, ShardRecord
from .options import Layout
from .spool import SpoolFiles, has_bytes

_BLOCK = 1 << 20  # bytes
_COUNTED_TOKENS = 1 << 20  # at once
_MARK_TOKENS = 1 << 20


class TextMarks:
    """The bytes of text before some tokens of a split."""

    def __init__(self, tokens: Sequence[int] = (0,), texts: Sequence[int] = (0,)) -> None:
        self._tokens, self._texts = array("Q", tokens), array("Q", texts)

    def to_lists(self) -> tuple[list[int], list[int]]:
        """Returns the arguments that make equal marks."""
        return self._tokens.tolist(), self._texts.tolist()

    def add(self, tokens: int, text_bytes: int) -> None:
        """Notes how many bytes of text a number of tokens has, if this number is far enough from the one before."""
        if tokens >= self._tokens[-1] + _MARK_TOKENS:
            self._tokens.append(tokens)
            self._texts.append(text_bytes)

    def before(self, tokens: int) -> tuple[int, int]:
        """Returns the last noted number up to `tokens`, and its bytes of text."""
        number = bisect_right(self._tokens, tokens) - 1
        return self._tokens[number], self._texts[number]


def facts_before(tok: Tokenizer, files: SpoolFiles, documents: int, marks: TextMarks, token: int) -> tuple[int, int]:
    """Returns how many documents of a spool, which has `documents`, begin before a token, and the bytes of text."""
    at, size = marks.before(token)
    for first in range(at, token, _COUNTED_TOKENS):
        size += text_length(tok, files.read(first, min(_COUNTED_TOKENS, token - first)))
    return files.documents_before(token, documents), size


def shards_of(
    layout: Layout, split: str, whole: Facts, before: Callable[[int], tuple[int, int]], threads: int = 1
) -> list[Facts]:
    """Returns the facts of the shards of a split, which is not cut yet. `before` returns how many documents begin
    before a token, and the bytes of text.

    Raises:
        ShardTooSmallError, LimitError: see `sizes_of`.
    """
    sizes = sizes_of(layout, split, whole.tokens)
    inner = map_ordered(before, list(accumulate(sizes))[:-1], threads)
    pairs = pairwise([(0, 0), *inner, (whole.documents, whole.text_bytes)])
    return [Facts(size, b - a, d - c) for size, ((a, c), (b, d)) in zip(sizes, pairs)]


def file_bytes(layout: Layout, facts: Facts) -> int:
    """Returns the size of a shard's file."""
    return layout.form.header_bytes + facts.tokens * layout.output.id_bytes


def has_size(path: str, size: int) -> bool:
    """Returns whether a file is there, and has this size."""
    return has_bytes(path, size) and os.path.getsize(path) == size


def records_of(layout: Layout, split: str, shards: Sequence[Facts], digests: Iterable[str]) -> list[ShardRecord]:
    """Returns the records of a split's shards, whose SHA-256 are `digests`."""
    names = (os.path.basename(layout.path(split, index)) for index in range(len(shards)))
    return [
        ShardRecord(name, facts.tokens, file_bytes(layout, facts), digest, facts.documents, facts.text_bytes)
        for name, facts, digest in zip(names, shards, digests)
    ]


Stretch = tuple[str, int, int]
"""A range of bytes in a file: its path, start and end."""


def copy_stretches(
    stretches: Iterable[Stretch], temporary: str, target: str, header: bytes, is_hashed: bool = True
) -> str:
    """Copies ranges of files into a new file, after a header.

    Args:
        stretches: the ranges.
        temporary: where the file is until it is complete.
        target: its name.
        header: its first bytes.
        is_hashed: whether the hash is wanted.

    Returns:
        The SHA-256 of the new file, or "".
    """
    digest, buffer = hashlib.sha256(header), memoryview(bytearray(_BLOCK))
    with file_errors(temporary, "cannot be written"), open(temporary, "wb") as output:
        output.write(header)
        for source, start, end in stretches:
            with open_input(source) as stream:
                stream.seek(start)
                while start < end:
                    end_if_unwanted()
                    got: int = stream.readinto(buffer[: end - start])
                    if got == 0:
                        raise FormatError(f"{source}: shorter than this run made it: another program has changed it")
                    output.write(buffer[:got])
                    if is_hashed:
                        digest.update(buffer[:got])
                    start += got
    give_name(temporary, target)
    return digest.hexdigest() if is_hashed else ""
