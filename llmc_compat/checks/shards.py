"""Checks each token shard by itself. llm.c reads them in dataloader_load_shard_ (llmc/dataloader.h)."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from llmc_compat import chat
from pybpe import _binding
from pybpe.arguments import counted
from pybpe.errors import Error

from .finding import Finding, Run

REMEDY = "write it again with pybpe binarize"

_READ_TOKENS = 1 << 22
_SPLIT = re.compile(r".*(?:^|[_-])(train|val|test)(?:[_-].*)?\.bin", re.DOTALL)


@dataclass(frozen=True)
class ShardFacts:
    """What a shard holds.

    Attributes:
        tokens: the number of tokens.
        id_bytes: the bytes per token: 2 or 4.
        lowest, highest: the lowest and highest ids; -1 if there are none.
        present: the queried ids that occur in it.
    """

    tokens: int
    id_bytes: int
    lowest: int
    highest: int
    present: frozenset[int]


def read_shard_facts(path: str, wanted: Collection[int] = ()) -> ShardFacts:
    """Raises FileError, FormatError."""
    shard = _binding.Shard(path)
    lowest, highest = -1, -1
    present: set[int] = set()
    for start in range(0, len(shard), _READ_TOKENS):
        ids = shard.read(start, min(_READ_TOKENS, len(shard) - start))
        low, high = int(ids.min()), int(ids.max())
        lowest, highest = (low if lowest < 0 else min(lowest, low)), max(highest, high)
        present |= {i for i in wanted if i not in present and low <= i <= high and bool((ids == i).any())}
    return ShardFacts(len(shard), shard.id_bytes, lowest, highest, frozenset(present))


def split_of(path: str) -> str | None:
    """Returns the split in a shard's name (train, val, test), or None."""
    match = _SPLIT.fullmatch(os.path.basename(path))
    return match[1] if match else None


def shard_faults(path: str, facts: ShardFacts, run: Run) -> Iterator[Finding]:
    """Yields what is wrong with a shard."""
    yield from _type_fault(path, facts)
    yield from _bytes_fault(path)
    yield from _tokens_fault(path, facts, run)
    yield from _constant_fault(path, facts)


def _type_fault(path: str, facts: ShardFacts) -> Iterator[Finding]:
    if facts.id_bytes != 2:
        effect = "aborts with 'Bad magic' (only its train_llama3.py reads uint32)"
        yield Finding(path, "uint32 tokens", effect, "use a vocabulary of at most 65536 tokens, and dtype uint16")


def _bytes_fault(path: str) -> Iterator[Finding]:
    size = os.path.getsize(path)
    if size > _binding.SHARD_MAX_BYTES:
        effect = "aborts at the first batch beyond 2 GiB, because it seeks with a 32-bit int"
        yield Finding(path, f"{size} bytes", effect, "write smaller shards: --shard-tokens")


def _tokens_fault(path: str, facts: ShardFacts, run: Run) -> Iterator[Finding]:
    """Checks the size; llm.c never opens a test split by itself."""
    if facts.tokens < run.batch.min_tokens and (split_of(path) != "test" or not facts.tokens):
        fault = f"{counted(facts.tokens, 'token')}, but {run.batch.needs()} are needed"
        yield Finding(path, fault, "aborts", run.batch.largest_fit(facts.tokens))


def _constant_fault(path: str, facts: ShardFacts) -> Iterator[Finding]:
    if facts.tokens > 1 and facts.lowest == facts.highest:
        fault = f"all {facts.tokens} tokens are the id {facts.lowest}"
        yield Finding(path, fault, "trains on this id alone, which is nonsense", REMEDY)


_EFFECT = "does not read this file, but programs that read it fail"
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
            fault = f"has {count} values, but its shard has {counted(shard.tokens, 'token')}"
            yield Finding(path, fault, _EFFECT, _REMEDY)
