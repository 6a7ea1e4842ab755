"""How large the shards of a split are. Those of llm.c have equal size, which it needs to resume.

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

from itertools import chain

from ..errors import LimitError, ShardTooSmallError
from .layout import Layout
from .options import OutputOptions


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


def sizes_of(layout: Layout, split: str, tokens: int) -> list[int]:
    """Returns how many tokens each shard of a split of so many tokens gets.

    Shards of equal size have at most `shard_tokens` tokens. Others have `shard_tokens`, and the last one the rest, but
    at least `min_shard_tokens`; it may be that much longer instead.

    Raises:
        ShardTooSmallError, LimitError: as `checked_sizes`.
    """
    output, path = layout.output, layout.path(split, 0)
    if output.form.equal_shards:
        return checked_sizes(path, tokens, output)
    if not output.form.has_shards:
        check_least(path, tokens, output.least_tokens)
        return [tokens]
    size = output.full_tokens
    full = max(0, (tokens - output.reserve_tokens) // size)
    check_least(layout.path(split, full), tokens - full * size, output.least_tokens)
    return [size] * full + [tokens - full * size]
