"""stats: measures a folder of token files, and the lengths of its documents."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from typing import Any

from .. import _binding
from .._numpy import numpy
from ..errors import FormatError
from .manifest import Manifest
from .verification import shard_blocks

PERCENTILES = (0, 10, 50, 90, 99, 100)


@dataclass(frozen=True)
class SplitStatistics:
    """The statistics of one split.

    Attributes:
        tokens, documents, text_bytes, shards: the numbers of each.
        bytes_per_token: bytes of text per token; 0 if there are no tokens.
        document_tokens: percentile -> document length in tokens, without marks; empty if no marks separate documents.
            In packed rows, the length of a part of a document.
    """

    tokens: int
    documents: int
    text_bytes: int
    shards: int
    bytes_per_token: float
    document_tokens: dict[int, int]

    def __str__(self) -> str:
        shares = ", ".join(f"{percent}%: {length}" for percent, length in self.document_tokens.items())
        lengths = f"; tokens per document, by percentile: {shares}" if shares else ""
        return f"{self.bytes_per_token:.3f} bytes per token{lengths}"


def dataset_statistics(folder: _binding.PathLike) -> dict[str, SplitStatistics]:
    """Computes the statistics of a folder with a manifest.json. Reads all tokens.

    Raises:
        FileError, FormatError: there is no manifest, or a file is damaged.
    """
    name = os.fsdecode(folder)
    manifest = Manifest.load(name)
    eot = manifest.settings.get("eot")
    mark = manifest.tokenizer.get("eot")
    if mark is not None and not isinstance(mark, int):
        raise FormatError(f"{name}: the manifest's tokenizer has the eot {mark!r}, expected an id")
    found = {}
    for split, shards in manifest.shards.items():
        tokens = manifest.split_tokens(split)
        lengths = _document_lengths(name, manifest, split, mark) if eot != "none" and mark is not None else Counter()
        text_bytes = manifest.text_bytes.get(split, 0)
        found[split] = SplitStatistics(
            tokens,
            manifest.split_documents(split),
            text_bytes,
            len(shards),
            round(text_bytes / tokens, 4) if tokens else 0.0,
            _percentiles(lengths),
        )
    return found


def _document_lengths(folder: str, manifest: Manifest, split: str, mark: int) -> Counter[int]:
    """Returns the number of documents of each length."""
    pad = manifest.packing["pad"] if manifest.packing is not None and manifest.packing["pad"] != mark else None
    lengths: Counter[int] = Counter()
    run = 0  # tokens since the last mark
    for shard in manifest.shards[split]:
        for block in shard_blocks(folder, shard, manifest):
            if pad is not None:
                block = block[block != pad]
            marks = numpy.flatnonzero(block == mark)
            if not len(marks):
                run += len(block)
                continue
            lengths[run + int(marks[0])] += 1
            values, counts = numpy.unique(numpy.diff(marks) - 1, return_counts=True)
            lengths.update(dict(zip(values.tolist(), counts.tolist())))
            run = len(block) - int(marks[-1]) - 1
    lengths[run] += 1
    del lengths[0]  # from before the first mark, or after the last: no document is empty
    return lengths


def _percentiles(lengths: Counter[int]) -> dict[int, int]:
    """Returns the smallest length that this percentage of the documents does not exceed."""
    total: Any = sum(lengths.values())
    found: dict[int, int] = {}
    seen = 0
    waiting = list(PERCENTILES) if total else []
    for length in sorted(lengths):
        seen += lengths[length]
        while waiting and seen * 100 >= max(waiting[0] * total, 1):
            found[waiting.pop(0)] = length
    return found
