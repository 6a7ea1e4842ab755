"""Compares files with pybpe's manifests: the shards, and the tokenizer that encoded them.

llm.c reads the shards that a pattern matches. It does not notice a missing shard, a changed one, or one that belongs to
another corpus.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress

from pybpe import Tokenizer
from pybpe.errors import Error
from pybpe.reading.streams import file_sha256
from pybpe.tokens.pack.rows import row_fault
from pybpe.tokens.token_files import TokenFile

from .contents import SHARDS_AGAIN, Described, Seen, ShardFacts, TokenizerFacts
from .files import TRAINED_ON, Finding


def known_splits(seen: Seen) -> dict[str, str]:
    """Returns the split of each shard that a manifest lists, and of copies of it, by real path."""
    by_path: dict[str, str] = {}
    by_size: dict[int, list[tuple[str, str]]] = {}
    for described in seen.manifests:
        for split, record in described.records:
            by_path[os.path.realpath(os.path.join(described.folder, record.file))] = split
            by_size.setdefault(record.bytes, []).append((record.sha256, split))
    for path in map(os.path.realpath, seen.shards):
        for sha256, split in by_size.get(os.path.getsize(path), []) if path not in by_path else []:
            if file_sha256(path) == sha256:
                by_path[path] = split
    return by_path


def manifest_faults(seen: Seen) -> Iterator[Finding]:
    """Yields what differs from a manifest."""
    for described in seen.manifests:
        yield from _tokenizer_faults(described, seen.tokenizers)
        yield from _record_faults(described, seen.shards)
        yield from _unlisted_faults(described)


# ----------------------------------------------------------------------------------------------------
# Tokenizers


def _tokenizer_faults(described: Described, tokenizers: Mapping[str, TokenizerFacts]) -> Iterator[Finding]:
    """Yields tokenizers that did not encode the shards."""
    expected = described.manifest.tokenizer.get("fingerprint")
    tokens = _tokens_beside(described)
    fault = f"is not the tokenizer that encoded the shards of {described.path}"
    remedy = "copy the tokenizer.bin that was written with the shards"
    for path, facts in tokenizers.items():
        found = None
        with suppress(Error):  # what pybpe cannot read is reported separately
            found = Tokenizer.from_file(path).model.fingerprint
        # Without merges and pattern after the tokens, the fingerprint is not the whole tokenizer's.
        is_other = found is not None if facts.is_complete else tokens not in (None, facts.tokens)
        if expected not in (None, found) and is_other:
            yield Finding(path, fault, "trains, but decodes its samples to wrong text", remedy)


def _tokens_beside(described: Described) -> list[bytes] | None:
    """Returns the tokens of the tokenizer.json or tokenizer.bin next to the manifest, if it is the one that encoded."""
    for name in ("tokenizer.json", "tokenizer.bin"):
        try:
            model = Tokenizer.from_file(os.path.join(described.folder, name)).model
        except Error:
            continue
        if model.fingerprint == described.manifest.tokenizer.get("fingerprint"):
            return list(model.tokens)
    return None


# ----------------------------------------------------------------------------------------------------
# Shards


def _record_faults(described: Described, shards: Mapping[str, ShardFacts]) -> Iterator[Finding]:
    """Yields shards of the train and val splits that are missing, or that have changed since they were written."""
    tokens = {os.path.realpath(path): facts.tokens for path, facts in shards.items()}
    for split, record in described.records:
        path = os.path.join(described.folder, record.file)
        found = tokens.get(os.path.realpath(path))
        if split not in TRAINED_ON:
            continue
        if not os.path.exists(path):
            effect = "trains on the others alone, or aborts if there is none"
            yield Finding(path, f"is missing, but {described.path} lists it", effect, SHARDS_AGAIN)
        elif found is not None and found != record.tokens:
            fault = f"{found} tokens, but {described.path} says {record.tokens}"
            yield Finding(path, fault, "trains on the file as it is", SHARDS_AGAIN)
        elif found is not None and file_sha256(path) != record.sha256:
            fault = f"its SHA-256 is not the one in {described.path}: its tokens have changed"
            yield Finding(path, fault, "trains on the file as it is", SHARDS_AGAIN)


def _unlisted_faults(described: Described) -> Iterator[Finding]:
    """Yields other files that the pattern of a split matches."""
    for split in TRAINED_ON:
        listed = [record.file for found, record in described.records if found == split]
        for prefix in {name.removesuffix("000000.bin") for name in listed[:1]}:
            for path in sorted(glob.glob(glob.escape(os.path.join(described.folder, prefix)) + "*.bin")):
                if os.path.basename(path) not in listed:
                    fault = f"is not one of the shards that {described.path} lists"
                    yield Finding(path, fault, "trains on it too", "move it elsewhere")


# ----------------------------------------------------------------------------------------------------
# Rows


_INSIDE = "trains on sequences that begin inside rows"


def packing_faults(seen: Seen) -> Iterator[Finding]:
    """Yields rows of another length than the run's T, and shards in which rows are not where they must be. llm.c knows
    nothing of rows: dataloader_load_batch (llmc/dataloader.h) reads a shard at multiples of B * T tokens, so its
    sequences are the rows if T is theirs. With no batch given, another T is only a warning."""
    known, T = set(map(os.path.realpath, seen.shards)), seen.run.batch.T
    for described in seen.manifests:
        packing = described.manifest.packing
        if packing is None:
            continue
        size, mark = packing["sequence_length"], described.manifest.tokenizer["eot"]
        if size != T:
            fault = f"rows of {size} tokens were packed, but T is {T}"
            remedy = f"train with -t {size}, or pack again with --sequence-length {T}"
            yield Finding(described.path, fault, _INSIDE, remedy).unless(seen.run.given is None)
        for _, record in described.records:
            path = os.path.join(described.folder, record.file)
            with suppress(Error):  # reported already
                fault_of_rows = None
                if os.path.realpath(path) in known:
                    fault_of_rows = row_fault(TokenFile(path).blocks(1 << 20), size, mark)  # type: ignore[arg-type]
                if fault_of_rows is not None:
                    yield Finding(path, fault_of_rows, _INSIDE, "run pybpe pack again")
