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
from .options import Layout


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
