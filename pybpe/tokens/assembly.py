"""Cuts the spool of a complete split into shards.

    spool    [header room][ shard 0 | shard 1 | shard 2 ]
    copied                                    [ shard 2 ]    then cut from the spool; then shard 1, ...
    left     [header room][ shard 0 ]                        becomes the first file

Shards are cut from the last to the first, a few at a time, so that the disk needs room for only these and the first is
not copied. A split that fits in one shard is never copied. Their SHA-256 is computed on the way.

When all splits are cut, the shards get their names, the first of a split before the others. So as long as the spool is
there, a file with the name of a shard is not this run's; and when it is gone, all shards have been cut.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import accumulate, pairwise

from ..errors import FormatError, file_errors
from ..reading.streams import file_sha256, open_input
from ..support.output_files import give_name
from ..support.parallel import end_if_unwanted, map_ordered, worker_count
from .equal_shards import sizes_of
from .formats import Finished
from .layout import Layout
from .manifest import Facts, ShardRecord
from .spool import SpoolFiles, has_bytes

_BLOCK = 1 << 20  # bytes
_COUNTED_TOKENS = 1 << 20  # at once
_MARK_TOKENS = 1 << 20
MOST_AT_ONCE = 4  # shards


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


def facts_before(layout: Layout, files: SpoolFiles, documents: int, marks: TextMarks, token: int) -> tuple[int, int]:
    """Returns how many documents of a spool, which has `documents`, begin before a token, and the bytes of text."""
    at, size = marks.before(token)
    for first in range(at, token, _COUNTED_TOKENS):
        size += layout.text_length(memoryview(files.read(first, min(_COUNTED_TOKENS, token - first))))
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


def can_assemble(layout: Layout, split: str, shards: Sequence[Facts]) -> bool:
    """Returns whether a split's files are still there: the spool, or what has been made of it."""
    sizes = [file_bytes(layout, facts) for facts in shards]
    last = len(shards)
    if not os.path.exists(layout.cut_path(split, 0)):
        return all(map(has_size, _published(layout, split, last), sizes))
    while last > 1 and has_size(layout.cut_path(split, last - 1), sizes[last - 1]):
        last -= 1
    tokens, documents = (sum(getattr(facts, name) for facts in shards[:last]) for name in ("tokens", "documents"))
    return layout.spool(split).hold(tokens, documents if layout.form.companion is not None else 0)


def file_bytes(layout: Layout, facts: Facts) -> int:
    """Returns the size of a shard's file."""
    return layout.form.header_bytes + facts.tokens * layout.output.id_bytes


def has_size(path: str, size: int) -> bool:
    """Returns whether a file is there, and has this size."""
    return has_bytes(path, size) and os.path.getsize(path) == size


def _published(layout: Layout, split: str, count: int) -> list[str]:
    """Returns where the shards of a split are whose first one has its name."""
    pairs = ((layout.cut_path(split, index), layout.path(split, index)) for index in range(count))
    return [hidden if os.path.exists(hidden) else path for hidden, path in pairs]


def cut(layout: Layout, split: str, shards: Sequence[Facts], done: Callable[[int], object]) -> list[ShardRecord]:
    """Makes the files of a split's shards. If killed, it resumes when run again. Returns their records. `done` is told
    how many more are made."""
    is_hashed, sizes = layout.output.HASHED, [facts.tokens for facts in shards]
    if os.path.exists(layout.cut_path(split, 0)):
        digests = cut_shards(
            partial(layout.cut_path, split), layout.header, layout.output.id_bytes, sizes, is_hashed, done
        )
    else:  # a killed run has begun to publish them
        digests = [file_sha256(path) if is_hashed else "" for path in _published(layout, split, len(shards))]
    return records_of(layout, split, shards, digests)


def records_of(layout: Layout, split: str, shards: Sequence[Facts], digests: Iterable[str]) -> list[ShardRecord]:
    """Returns the records of a split's shards, whose SHA-256 are `digests`."""
    names = (os.path.basename(layout.path(split, index)) for index in range(len(shards)))
    return [
        ShardRecord(name, facts.tokens, file_bytes(layout, facts), digest, facts.documents, facts.text_bytes)
        for name, facts, digest in zip(names, shards, digests)
    ]


def publish(layout: Layout, split: str, shards: Sequence[Facts]) -> None:
    """Gives a split's shards their names. If killed, it resumes when run again."""
    for index, facts in enumerate(shards):
        hidden, path = layout.cut_path(split, index), layout.path(split, index)
        if not os.path.exists(hidden):
            continue
        if layout.form.companion is not None:
            layout.form.companion(Finished(layout.spool(split), facts), path)
        give_name(hidden, path)


def cut_shards(
    path: Callable[[int], str],
    header: Callable[[int], bytes],
    id_bytes: int,
    sizes: Sequence[int],
    is_hashed: bool = True,
    done: Callable[[int], object] = lambda count: None,
) -> list[str]:
    """Cuts a file into shards. If killed, it resumes when run again.

    Args:
        path: returns the file of a shard; that of shard 0 has all tokens, after room for a header.
        header: returns the header of a shard of a given number of tokens.
        id_bytes: 2 or 4.
        sizes: the shards' sizes.
        is_hashed: whether the hashes are wanted.
        done: is told how many more shards are made.

    Returns:
        The SHA-256 of each shard, or "".
    """
    ends = [len(header(0)) + id_bytes * end for end in accumulate(sizes)]

    _fill_header(path(0), header(sizes[0]))

    def make(index: int) -> str:
        if index and not os.path.exists(path(index)):
            stretch = (path(0), ends[index - 1], ends[index])
            return copy_stretches([stretch], path(index) + ".copy", path(index), header(sizes[index]), is_hashed)
        return file_sha256(path(index), ends[0] if index == 0 else None) if is_hashed else ""

    digests: list[str] = []
    count = min(worker_count(None), MOST_AT_ONCE)
    for last in range(len(sizes), 0, -count):
        first = max(0, last - count)
        digests = [*map_ordered(make, range(first, last), count), *digests]
        _shorten(path(0), ends[max(first - 1, 0)])
        done(last - first)
    return digests


def _shorten(path: str, size: int) -> None:
    with file_errors(path, "cannot be shortened"):
        if os.path.getsize(path) > size:
            os.truncate(path, size)


def _fill_header(path: str, header: bytes) -> None:
    with file_errors(path, "cannot be written"), open(path, "r+b") as stream:
        stream.write(header)


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
