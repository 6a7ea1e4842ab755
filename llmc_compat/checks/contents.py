"""The contents of files, as llm.c reads them: facts, which rules.py names in its messages."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from math import inf
from typing import Any, NamedTuple

from pybpe import Tokenizer, _binding
from pybpe._lazy import numpy
from pybpe.errors import Error
from pybpe.reading.streams import Snapshot
from pybpe.tokens.manifest import Manifest, ShardRecord

from .. import evals
from ..checkpoint import ITEM_BYTES, Checkpoint, from_file_type
from ..header import HEADER_BYTES, header_numbers
from .files import MODEL_NAMES, split_of

Facts = dict[str, Any]

GPT2_TOKENS = 50257
HUGE = 1e4  # the weights of a trained GPT-2 are below 100
_TRAILER_MARK = 0x50425950  # in the header of a tokenizer: our merges and pattern follow the tokens
_BLOCK_ITEMS = 1 << 22


def read_tokenizer(path: str) -> Facts:
    """Raises FileError, FormatError. Only llm.c's part of the file must be right."""
    with Snapshot() as files:
        raw, fingerprint, damage = files.read(path), None, ""
        _, version, V, eot, mark = header_numbers(raw, path, "a tokenizer")[:5]
        tokens, at = list[bytes](), HEADER_BYTES
        while len(tokens) < V and at < len(raw) and 0 < raw[at] < len(raw) - at:
            tokens.append(raw[at + 1 : at + 1 + raw[at]])
            at += 1 + raw[at]
        try:
            fingerprint = Tokenizer.from_file(path).model.fingerprint
        except Error as error:
            if version not in (1, 2) or not 0 < V == len(tokens):
                raise
            damage = str(error).removeprefix(f"{path}: ")
    eot = GPT2_TOKENS - 1 if version == 1 else eot
    end = tokens[eot].decode("utf-8", "replace") if 0 <= eot < V else None
    facts = {"version": version, "V": V, "eot": eot, "end": end, "tokens": tokens}
    return {**facts, "is_ours": mark == _TRAILER_MARK, "fingerprint": fingerprint, "damage": damage}


def read_model(path: str) -> Facts:
    """Raises FileError, FormatError."""
    with Checkpoint(path) as model:
        V, Vp = model.config.vocab_size, model.config.padded_vocab_size
        names = model.config.tensor_shapes()
        largest = {name: _largest(model, model.raw_blocks(name, V if name == "wte" else None)) for name in names}
        padding = _largest(model, [model.raw_rows("wte", V, Vp)] if Vp > V else [])
        where = [name for name in names if largest[name] > HUGE or (name == "wte" and padding == inf)]
        most = inf if padding == inf else max(largest.values())
        types = {name: dtype for dtype, name in MODEL_NAMES.items()}
        facts = {"dtype": model.dtype, "expected": types.get(os.path.basename(path), model.dtype), "padding": padding}
        return {**model.config.by_letter(), **facts, "most": most, "where": ", ".join(where)}


def _largest(model: Checkpoint, blocks: Iterable[numpy.ndarray[Any, Any]]) -> float:
    """Returns the largest magnitude of weights, or inf if one is not finite: without their sign, floats compare like
    their bits as integers, and Inf and NaN above all others."""
    bits = numpy.dtype(f"<u{ITEM_BYTES[model.dtype]}")
    without_sign = bits.type((1 << (8 * bits.itemsize - 1)) - 1)
    found = max((int((block.view(bits) & without_sign).max()) for block in blocks), default=0)
    value = float(
        from_file_type(numpy.array([found], bits).view("<f4" if bits.itemsize == 4 else bits), model.dtype)[0]
    )
    return value if value < inf else inf


def read_shard(path: str, wanted: Collection[int]) -> Facts:
    """Returns which of the wanted ids are in the shard, too. Raises FileError, FormatError."""
    shard = _binding.Shard(path)
    low = high = -1
    present = set[int]()
    for start in range(0, len(shard), _BLOCK_ITEMS):
        ids = shard.read(start, min(_BLOCK_ITEMS, len(shard) - start))
        low, high = int(ids.min()) if low < 0 else min(low, int(ids.min())), max(high, int(ids.max()))
        present |= {i for i in wanted if i not in present and bool((ids == i).any())}
    facts = {"tokens": len(shard), "id_bytes": shard.id_bytes, "size": os.path.getsize(path), "split": split_of(path)}
    return {**facts, "lowest": low, "highest": high, "present": present}


def read_eval(path: str) -> Facts:
    """Raises FileError, FormatError."""
    facts = evals.eval_facts(path)
    return {**vars(facts), "highest": facts.highest_id, "min_T": facts.min_T}


class Described(NamedTuple):
    """A manifest of shards for llm.c, and its path."""

    path: str
    manifest: Manifest

    @property
    def records(self) -> Iterator[tuple[str, ShardRecord, str]]:
        """The splits, records and paths of shards."""
        for split, records in self.manifest.shards.items():
            yield from ((split, each, os.path.join(os.path.dirname(self.path), each.file)) for each in records)


def read_manifest(path: str) -> Described | None:
    """Returns None if its token files are not for llm.c. Raises FileError, FormatError."""
    manifest = Manifest.load(os.path.dirname(path) or ".")
    return Described(path, manifest) if manifest.settings.get("format") == "llmc" else None
