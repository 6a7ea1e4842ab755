"""Cuts a split into shards of equal size, which llm.c needs to resume.

llm.c's load_state (train_gpt2.cu) requires that the shard where a run stopped has as many samples as the first shard of
the new run. A sample is B * T tokens per process, and a shard of c tokens has (c - 1) / sample of them, rounded down.
So a short last shard makes llm.c abort when it resumes there.

The size of a split is known only at its end. Until then its tokens are in one spool; then it is cut:

    spool    [header room][ shard 0 | shard 1 | shard 2 ]
    copied                                    [ shard 2 ]    then cut from the spool; then shard 1, ...
    left     [header room][ shard 0 ]                        becomes the first file

Shards are cut from the last to the first, so that the disk needs room for only one more shard and the first is not
copied. A split that fits in one shard is never copied.

If the tokens do not divide evenly, some shards have one token more. c and c + 1 tokens give the same number of samples
unless the sample size divides c. So c must then be odd: no even sample size divides it. Sample sizes are even in the
llm.c trainer that resumes, because softmax_forward_kernel5 asserts that T is a multiple of 4. With cuDNN's attention
instead, gelu_forward asserts that B * T * C is a multiple of 1024, so that only a model with such a C can have odd
samples, if B, T and the number of processes are all odd. No token is added or lost.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, chain, pairwise

from ..errors import FormatError, LimitError, ShardTooSmallError, file_errors
from ..reading.streams import open_input
from ..support.output_files import give_name
from .manifest import Facts
from .options import OutputOptions
from .spool import Spool

_BLOCK = 1 << 20


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
            " other splits, or allow it with min_shard_tokens=0",
            path,
            tokens,
        )


def checked_sizes(path: str, tokens: int, output: OutputOptions) -> list[int]:
    """Returns how many tokens each shard of a split gets: see `shard_sizes`.

    Args:
        path: the file of the first shard, for errors.
        tokens: the tokens of the split.
        output: the sizes to aim at.

    Raises:
        ShardTooSmallError: the split is too small for one shard. LimitError: a shard would be larger than its readers
            can read.
    """
    check_least(path, tokens, output.least_tokens)
    sizes = shard_sizes(tokens, output.shard_tokens, output.least_tokens)
    size, most = output.form.header_bytes + sizes[0] * output.id_bytes, output.form.max_bytes
    if most and size > most:
        raise LimitError(
            f"{path}: would have {size} bytes, but llm.c cannot seek beyond {most}: choose a smaller shard_tokens or"
            " min_shard_tokens"
        )
    return sizes


def cut_shards(
    path: Callable[[int], str], header: Callable[[int], bytes], id_bytes: int, sizes: Sequence[int]
) -> Iterator[int]:
    """Cuts the spool of a split into shards. If killed, it resumes when run again.

    Args:
        path: returns the file of a shard; shard 0's is the spool.
        header: returns the header of a shard of a given number of tokens. The spool has room for it.
        id_bytes: 2 or 4.
        sizes: the shards' sizes.

        Yields:
        The number of each shard as its file is completed, from the last to the first. The first shard's header is not
        written.
    """
    ends = [len(header(0)) + id_bytes * end for end in accumulate(sizes)]
    for index in range(len(sizes) - 1, 0, -1):
        if not os.path.exists(path(index)):
            _copy(path(0), ends[index - 1], ends[index], path(index), header(sizes[index]))
        with file_errors(path(0), "cannot be shortened"):
            if os.path.getsize(path(0)) > ends[index - 1]:
                os.truncate(path(0), ends[index - 1])
        yield index
    yield 0


def _copy(source: str, start: int, end: int, target: str, header: bytes) -> None:
    """Copies a range of a file into a new file, after a header."""
    temporary = target + ".copy"
    buffer = memoryview(bytearray(_BLOCK))
    with open_input(source) as stream, file_errors(temporary, "cannot be written"), open(temporary, "wb") as output:
        stream.seek(start)
        output.write(header)
        while start < end:
            got: int = stream.readinto(buffer[: end - start])
            if got == 0:
                raise FormatError(f"{source}: shorter than this run made it: another program has changed it")
            output.write(buffer[:got])
            start += got
    give_name(temporary, target)


def shard_facts(
    whole: Facts,
    sizes: Sequence[int],
    spool: Spool,
    marks: Sequence[Sequence[int]],
    text_length: Callable[[memoryview], int],
) -> list[Facts]:
    """Computes the facts of each shard.

    Args:
        whole: the facts of the split.
        sizes: the sizes of its shards.
        spool: that of the split, not cut yet.
        marks: some numbers of tokens, in order, each with the bytes of text of so many.
        text_length: returns the bytes of text that ids represent.
    """

    def text_before(end: int) -> int:
        number = bisect_right(marks, end, key=lambda mark: mark[0])
        at, size = marks[number - 1] if number else (0, 0)
        return size + text_length(memoryview(spool.read(at, end - at)))

    ends = list(accumulate(sizes))
    documents = [0, *map(spool.documents_before, ends)]
    texts = [0, *map(text_before, ends[:-1]), whole.text_bytes]
    return [Facts(size, b - a, d - c) for size, (a, b), (c, d) in zip(sizes, pairwise(documents), pairwise(texts))]
