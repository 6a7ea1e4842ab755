"""Shards made of bundles: how a worker writes one."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict
from typing import NamedTuple

from ... import _binding
from ...errors import UnsupportedError
from ...reading.streams import open_input
from ..layout import Layout
from ..manifest import Facts, ShardRecord
from ..options import OutputOptions
from .area import Area
from .bundle_file import BundleFile
from .index import BundlePlace, Index, load_index

_HASH_DIGITS = 16  # of the hash in a name
RECORD = ".json"  # the ending of a record's name


def check_format(output: OutputOptions) -> None:
    """Raises UnsupportedError if workers cannot write the files of a format."""
    if not output.form.is_flat or output.form.companion is not None:
        raise UnsupportedError(
            f"workers can write llmc, npy and raw files, not {output.format}: leave out workers_write"
        )


class ShardOrder(NamedTuple):
    """The message with which a worker writes a shard.

    Attributes:
        number, split: the index of the split, and its name.
        shard: the number of the shard.
        first, tokens: the number of its first token in the split, and how many it has.
        places: the name of the split's Index in the area.
    """

    number: int
    split: str
    shard: int
    first: int
    tokens: int
    places: str

    @property
    def name(self) -> str:
        """The name of the shard in the area. It depends on the bundles of which the shard is made."""
        return f"shard-{self.split}-{self.shard:06d}-{self.places[-_HASH_DIGITS:]}"


def write_shard(area: Area, order: ShardOrder) -> int:
    """Writes a shard and its record into the area, on a worker. Returns the size of the shard."""
    layout = area.load().layout
    index = load_index(area, order.places)
    header = layout.header(order.tokens)
    digest = hashlib.sha256(header)
    with _binding.Output(area.path(order.name)) as output:
        output.write(header)
        size = len(header)
        for place, tokens in index.between(order.first, order.first + order.tokens):
            for block in _file(area, layout, place).blocks(order.number, *tokens):
                digest.update(block)
                output.write(block)
                size += len(block)
    facts = _facts(area, layout, index, order)
    path = layout.path(order.split, order.shard)
    record = ShardRecord(
        os.path.basename(path),
        facts.tokens,
        size,
        digest.hexdigest(),
        facts.documents,
        facts.text_bytes,
    )
    _binding.write_file(area.path(order.name + RECORD), json.dumps(asdict(record)).encode("utf-8", "surrogateescape"))
    return size


def _file(area: Area, layout: Layout, place: BundlePlace) -> BundleFile:
    return BundleFile(area.path(place.bundle), layout.spool("").typecode)


def _facts(area: Area, layout: Layout, index: Index, order: ShardOrder) -> Facts:
    """Returns the facts of a shard."""
    facts = Facts()
    for place, tokens in index.between(order.first, order.first + order.tokens):
        some = _file(area, layout, place).facts(order.number, tokens, place.documents, layout.text_length)
        facts.add(some.tokens, some.documents, some.text_bytes)
    return facts


def read_record(area: Area, order: ShardOrder) -> ShardRecord:
    """Returns the record of a shard that a worker has written."""
    with open_input(area.path(order.name + RECORD)) as stream:
        return ShardRecord(**json.loads(stream.read().decode("utf-8", "surrogateescape")))
