"""Checks the loss masks of conversations. llm.c does not read them, but a trainer that does would fail."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from llmc_compat import chat
from pybpe.errors import Error

from .finding import Finding
from .shards import ShardFacts

_EFFECT = "does not read it, but programs that do fail"
_REMEDY = "write both again with pybpe llmc chat"


def mask_faults(masks: Iterable[str], shards: Mapping[str, ShardFacts]) -> Iterator[Finding]:
    """Yields loss masks that cannot be read, or that do not match the shard next to them."""
    by_mask = {os.path.realpath(chat.mask_path(path)): facts for path, facts in shards.items()}
    for path in masks:
        try:
            count = len(chat.read_mask(path))
        except Error as error:
            yield Finding(path, str(error).removeprefix(f"{path}: "), _EFFECT, _REMEDY)
            continue
        shard = by_mask.get(os.path.realpath(path))
        if shard is not None and shard.tokens != count:
            fault = f"has {count} values, but its shard has {shard.tokens} tokens"
            yield Finding(path, fault, _EFFECT, _REMEDY)
