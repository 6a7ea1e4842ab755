"""Makes shards of the tokens of a complete split, which are in one file or in several: how large they are, what is in
them, and their files. The ids are copied, unless a file is a shard already, and hashed on the way.

The shards of llm.c have equal size, which it needs to resume.

llm.c's load_state (train_gpt2.cu) requires that the shard where a run stopped has as many samples as the first shard of
the new run. A sample is B * T tokens per process, and a shard of c tokens has (c - 1) / sample of them, rounded down.
So a short last shard makes llm.c abort when it resumes there.

If the tokens do not divide evenly, some shards have one token more. c and c + 1 tokens give the same number of samples
unless the sample size divides c. So c must then be odd: no even sample size divides it. Sample sizes are even in the
llm.c trainer that resumes, because softmax_forward_kernel5 asserts that T is a multiple of 4. With cuDNN's attention
instead, gelu_forward asserts that B * T * C is a multiple of 1024, so that only a model with such a C can have odd
samples, if B, T and the number of processes are all odd. No token is added or lost.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, chain, pairwise

from ..errors import FormatError, LimitError, ShardTooSmallError, file_errors
from ..reading.streams import open_input
from ..support.output_files import give_name
from ..support.parallel import end_if_unwanted, map_ordered
from ..tokenizer import Tokenizer
from .encoding import text_length
from .manifest import Facts, ShardRecord
from .options import Layout
from .spool import SpoolFiles

_BLOCK = 1 << 20  # bytes
_COUNTED_TOKENS = 1 << 20  # at once
_MARK_TOKENS = 1 << 20


def shard_sizes(tokens: int, most: int, least: int) -> list[int]:
    """Returns how many tokens each shard of a split gets.

    Args:
        tokens: the tokens of the split.
        most: the maximum per shard, exceeded only if shards would otherwise be smaller than `least`.
        least: the minimum per shard; the split has at least this many.

    Returns:
        Equal sizes, or first some of an odd number plus 1, then some of that odd number.
    """
    fewest = max(1, -(-tokens // most))
    largest_count = max(1, tokens // max(1, least))
    for count in chain(range(fewest, largest_count + 1), range(min(fewest, largest_count), 0, -1)):
        size, larger = divmod(tokens, count)
        if larger == 0 or size % 2 == 1:
            return [size + 1] * larger + [size] * (count - larger)
    raise AssertionError  # one shard is always possible


def check_least(path: str, tokens: int, least: int) -> None:
    """Raises ShardTooSmallError if the last or only shard of a split has fewer than `least` tokens."""
    if tokens < least:
        raise ShardTooSmallError(
            f"{path}: would have {tokens} tokens, but llm.c needs at least {least} in every shard; add more text, use"
            " other splits or split_by='token', or allow it with min_shard_tokens=0",
            path,
            tokens,
        )


def sizes_of(layout: Layout, split: str, tokens: int) -> list[int]:
    """Returns how many tokens each shard of a split of so many tokens gets.

    Shards of equal size have at most `shard_tokens` tokens. Others have `shard_tokens`, and the last one the rest, but
    at least `min_shard_tokens`; it may be that much longer instead.

    Raises:
        ShardTooSmallError: the split is too small for one shard. LimitError: a shard would be larger than its readers
            can read.
    """
    form, most, least = layout.form, layout.output.shard_tokens, layout.output.least_tokens
    if form.equal_shards:
        check_least(layout.path(split, 0), tokens, least)
        sizes = shard_sizes(tokens, most, least)
        size = form.header_bytes + sizes[0] * layout.output.id_bytes
        if form.max_bytes and size > form.max_bytes:
            raise LimitError(
                f"{layout.path(split, 0)}: would have {size} bytes, but llm.c cannot seek beyond {form.max_bytes}:"
                " choose a smaller shard_tokens or min_shard_tokens"
            )
        return sizes
    full_size = max(most, least)
    full = max(0, (tokens - max(1, least)) // full_size) if form.has_shards else 0
    last = tokens - full * full_size
    check_least(layout.path(split, full), last, least)
    return [full_size] * full + [last]


# ----------------------------------------------------------------------------------------------------
# What is in each shard


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


def records_of(layout: Layout, split: str, shards: Sequence[Facts], digests: Iterable[str]) -> list[ShardRecord]:
    """Returns the records of a split's shards, whose SHA-256 are `digests`."""
    names = (os.path.basename(layout.path(split, index)) for index in range(len(shards)))
    return [
        ShardRecord(name, facts.tokens, file_bytes(layout, facts), digest, facts.documents, facts.text_bytes)
        for name, facts, digest in zip(names, shards, digests)
    ]


# ----------------------------------------------------------------------------------------------------
# Files


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
