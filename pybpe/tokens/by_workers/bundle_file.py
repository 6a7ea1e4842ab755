"""The file of a bundle: the ids that a worker made of some tasks, by split, until shards are made of them.

    parts      for each: ids (uint16 or uint32); where documents begin in it (uint32)
    footer     JSON: for each split its parts: [offset, tokens, bytes of text, documents]
    trailer    uint64 offset of the footer; 8 bytes that mark the end

Everything is little-endian. A part is written as soon as a split has enough ids, so a worker needs little memory for a
bundle of any size. The file gets its name when it is complete and on disk.
"""

from __future__ import annotations

import json
import os
import struct
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..._binding import Output
from ...errors import FormatError
from ...reading.streams import open_input
from ..manifest import Facts
from ..spool import read_items, stored_bytes

PART_IDS = 1 << 21
_MAGIC = b"pybpebnd"
_TRAILER = struct.Struct("<Q8s")
_BLOCK_BYTES = 1 << 18  # fits in a CPU cache


class Part(NamedTuple):
    """Some ids of a split.

    Attributes:
        offset: where it begins in the file.
        tokens, text_bytes, documents: how many there are.
    """

    offset: int
    tokens: int
    text_bytes: int
    documents: int


class _Pending:
    """The ids of a split that are not written yet, with the bytes of their text and the starts of documents."""

    def __init__(self, typecode: str) -> None:
        self.ids, self.starts, self.text_bytes = array(typecode), array("I"), 0


class BundleWriter:
    """Writes the file of a bundle.

    Args:
        path: the file. A worker that dies leaves another one.
        splits: the number of splits.
        typecode: the type of ids, "H" or "I".
    """

    def __init__(self, path: str, splits: int, typecode: str) -> None:
        self._typecode = typecode
        self._pending = [_Pending(typecode) for _ in range(splits)]
        self._parts: list[list[Part]] = [[] for _ in range(splits)]
        self._output, self._size = Output(path), 0

    def add(
        self,
        split: int,
        ids: array[int] | memoryview,
        starts: array[int] | memoryview,
        text_bytes: int,
    ) -> None:
        """Appends a segment: ids, where documents begin in them, and the bytes of their text."""
        if not len(ids):
            return
        pending = self._pending[split]
        pending.starts.extend(len(pending.ids) + at for at in starts)
        pending.text_bytes += text_bytes
        pending.ids.frombytes(memoryview(ids).cast("B"))
        if len(pending.ids) >= PART_IDS:
            self._write_part(split)

    def _write_part(self, split: int) -> None:
        pending = self._pending[split]
        self._parts[split].append(Part(self._size, len(pending.ids), pending.text_bytes, len(pending.starts)))
        self._write(stored_bytes(pending.ids))
        self._write(stored_bytes(pending.starts))
        self._pending[split] = _Pending(self._typecode)

    def _write(self, data: bytes | memoryview) -> None:
        self._output.write(data)
        self._size += len(data)

    def finish(self) -> tuple[int, list[Facts]]:
        """Completes the file. Returns its size, and the facts of each split."""
        for split, pending in enumerate(self._pending):
            if pending.ids:
                self._write_part(split)
        footer, at = json.dumps(self._parts).encode(), self._size
        self._write(footer)
        self._write(_TRAILER.pack(at, _MAGIC))
        self._output.commit()
        facts = [Facts() for _ in self._parts]
        for whole, parts in zip(facts, self._parts):
            for part in parts:
                whole.add(part.tokens, part.documents, part.text_bytes)
        return self._size, facts

    def discard(self) -> None:
        """Removes the unfinished file."""
        self._output.discard()


class BundleFile:
    """Reads the file of a bundle.

    Args:
        path: the file.
        typecode: the type of ids, "H" or "I".

    Raises:
        FileError: it is missing. FormatError: it is damaged.
    """

    def __init__(self, path: str, typecode: str) -> None:
        self.path, self._typecode = path, typecode
        self._id_bytes = array(typecode).itemsize
        with open_input(path) as stream:
            size = stream.seek(0, os.SEEK_END)
            stream.seek(max(0, size - _TRAILER.size))
            trailer = stream.read(_TRAILER.size)
            at, magic = _TRAILER.unpack(trailer.rjust(_TRAILER.size))
            if magic != _MAGIC or at > size:
                raise FormatError(f"{path}: incomplete: another program has changed it")
            stream.seek(at)
            footer = json.loads(stream.read(size - _TRAILER.size - at))
        self._parts = [[Part(*part) for part in parts] for parts in footer]

    def _parts_between(self, split: int, first: int, last: int) -> Iterator[tuple[Part, int]]:
        """Yields the parts that have tokens from number `first` up to `last`, each with the number of its first."""
        at = 0
        for part in self._parts[split]:
            if at < last and at + part.tokens > first:
                yield part, at
            at += part.tokens

    def blocks(self, split: int, first: int, last: int) -> Iterator[memoryview]:
        """Yields the ids of a split from number `first` up to `last`, as they are stored. A block is valid until the
        next one."""
        buffer = memoryview(bytearray(_BLOCK_BYTES))
        with open_input(self.path) as stream:
            for part, at in self._parts_between(split, first, last):
                low, high = max(first, at) - at, min(last, at + part.tokens) - at
                stream.seek(part.offset + low * self._id_bytes)
                left = (high - low) * self._id_bytes
                while left:
                    got: int = stream.readinto(buffer[:left])
                    if not got:
                        raise FormatError(f"{self.path}: shorter than this run made it: another program has changed it")
                    yield buffer[:got]
                    left -= got

    def _ids(self, part: Part, low: int, high: int) -> array[int]:
        return read_items(self.path, self._typecode, part.offset + low * self._id_bytes, high - low)

    def facts(
        self, split: int, tokens: tuple[int, int], less_documents: int, text_length: Callable[[memoryview], int]
    ) -> Facts:
        """Returns facts of some ids of a split.

        Args:
            split: the index of the split.
            tokens: the first of them, and the one after the last.
            less_documents: how many documents at the start of the bundle do not begin there: see StartCases.
            text_length: returns the bytes of text that ids represent.
        """
        facts = Facts()
        first, last = tokens
        for part, at in self._parts_between(split, first, last):
            starts = self._starts(part)[less_documents if at == 0 else 0 :]
            documents = bisect_left(starts, last - at) - bisect_left(starts, first - at)
            low, high = max(first - at, 0), min(last - at, part.tokens)
            is_whole = (low, high) == (0, part.tokens)
            text_bytes = part.text_bytes if is_whole else text_length(memoryview(self._ids(part, low, high)))
            facts.add(high - low, documents, text_bytes)
        return facts

    def _starts(self, part: Part) -> array[int]:
        return read_items(self.path, "I", part.offset + part.tokens * self._id_bytes, part.documents)
