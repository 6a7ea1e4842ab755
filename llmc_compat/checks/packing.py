"""Checks rows that `pybpe pack` wrote. llm.c knows nothing of rows: dataloader_load_batch (llmc/dataloader.h) reads a
shard at multiples of B * T tokens, so its sequences are the rows if T is theirs."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator

from pybpe.errors import Error
from pybpe.tokens.pack.rows import row_fault
from pybpe.tokens.token_files import TokenFile

from .finding import Finding, Run
from .manifests import Described

_EFFECT = "trains on sequences that begin inside rows"


def packing_faults(manifests: Iterable[Described], shards: Collection[str], run: Run) -> Iterator[Finding]:
    """Yields rows of another length than the run's T, and shards in which rows are not where they must be.

    Args:
        manifests: those that were found.
        shards: the paths of all shards that can be read.
        run: with no batch given, another T is only a warning.
    """
    known = set(map(os.path.realpath, shards))
    for described in manifests:
        packing = described.manifest.packing
        if packing is None:
            continue
        size, mark = packing["sequence_length"], described.manifest.tokenizer["eot"]
        if size != run.batch.T:
            fault = f"rows of {size} tokens were packed, but T is {run.batch.T}"
            remedy = f"train with -t {size}, or pack again with --sequence-length {run.batch.T}"
            yield Finding(described.path, fault, _EFFECT, remedy).unless(run.given is None)
        for _, record in described.records:
            path = os.path.join(described.folder, record.file)
            if os.path.realpath(path) in known:
                fault_of_rows = _fault(path, size, mark)  # type: ignore[arg-type]
                if fault_of_rows is not None:
                    yield Finding(path, fault_of_rows, _EFFECT, "run pybpe pack again")


def _fault(path: str, size: int, mark: int) -> str | None:
    try:
        return row_fault(TokenFile(path).blocks(1 << 20), size, mark)
    except Error:
        return None  # reported already
