"""The global shuffle, first half: distributes documents among buckets, each small enough to be sorted in memory.

The output consists of sections: a phase of the train split, or a whole other split. The documents of a section are
written in the order of their writing keys (keys.py). A bucket has the documents whose keys are in one of several equal
ranges, so the order does not depend on how many buckets there are:

    sources, in order           buckets, by key                 output
    a b c d e f g h      ->     [ c g a ] [ h b d ] [ e f ]  ->  g a c  b h d  f e

A bucket is two files that only grow:

    NUMBER.tokens    the ids of its documents, each after its mark
    NUMBER.index     three uint64 for each document: both keys, and its tokens

The state says how many blocks of the sources have been distributed, and how long each file was then. A run that resumes
truncates the files to these lengths.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ... import _binding
from ..._numpy import Array, numpy
from ...errors import FormatError, file_errors
from ...reading.splits import SPLIT_NAMES
from ...reading.streams import open_input
from ...support import platform
from ...support.output_files import make_folder, remove_others
from ...support.progress import Progress
from .. import run
from ..spool import has_bytes, id_bytes
from .documents import Documents
from .drawing import Drawn
from .keys import drawing_keys, writing_keys

DEFAULT_MEMORY = 1 << 30
LEAST_MEMORY = 1 << 20
_DOCUMENT_BYTES = 128  # memory for a document while a bucket is sorted
_WRITE_BYTES = 1 << 16  # a block has about this much for each bucket
_BLOCK_BYTES = 1 << 24  # the least size of a block
_STATE = "state.json"
_FIELDS = 3


@dataclass(frozen=True)
class Section:
    """Documents that are shuffled together.

    Attributes:
        split: index into SPLIT_NAMES.
        phase: the number of the phase.
        drawn: what each source gives.
        buckets: the number of its buckets.
    """

    split: int
    phase: int
    drawn: Sequence[Drawn]
    buckets: int = 1

    @property
    def tokens(self) -> int:
        """The number of tokens."""
        return sum(drawn.tokens for drawn in self.drawn)

    def size(self, id_bytes: int) -> int:
        """Returns how much memory it would take to sort it at once."""
        return self.tokens * id_bytes + sum(drawn.documents for drawn in self.drawn) * _DOCUMENT_BYTES


@dataclass(frozen=True)
class Shuffle:
    """What is shuffled, and how.

    Attributes:
        folder: where the buckets are.
        names: the names of the sources.
        documents: documents[source][split] are those of a source's split, or None.
        sections: in the order of the output.
        seed: chooses the order.
        mark: the id of the mark.
        dtype: that of the ids.
        memory: about how many bytes of memory may be used.
        identity: describes everything that the documents depend on.
    """

    folder: str
    names: Sequence[str]
    documents: Sequence[Sequence[Documents | None]]
    sections: Sequence[Section]
    seed: int
    mark: int
    dtype: str
    memory: int
    identity: str

    @property
    def id_bytes(self) -> int:
        """The bytes per id."""
        return id_bytes(self.dtype)

    @property
    def mark_bytes(self) -> bytes:
        """The mark, as it is in a file."""
        return self.mark.to_bytes(self.id_bytes, "little")

    @property
    def is_direct(self) -> bool:
        """Whether no buckets are needed."""
        found = (documents for splits in self.documents for documents in splits if documents is not None)
        return set(self.layout) == {1} and sum(map(len, (d.stream for d in found))) * self.id_bytes <= self.memory // 2

    @property
    def buckets(self) -> int:
        """The number of buckets of all sections."""
        return sum(section.buckets for section in self.sections)

    @property
    def layout(self) -> list[int]:
        """The number of buckets of each section."""
        return [section.buckets for section in self.sections]

    @property
    def block_bytes(self) -> int:
        """The size of the blocks of the sources, each of which is distributed at once."""
        return min(max(self.buckets * _WRITE_BYTES, _BLOCK_BYTES), max(self.memory // 4, 1))


class _Block(NamedTuple):
    """Consecutive documents of a split of a source.

    Attributes:
        source, split: whose they are.
        first: the number of the first.
        lengths: their tokens.
        start: the token where the first begins.
    """

    source: int
    split: int
    first: int
    lengths: Array
    start: int


def sections_of(sections: Sequence[Section], id_bytes: int, memory: int) -> list[Section]:
    """Returns the sections, each with as many buckets as the memory requires."""
    return [
        Section(section.split, section.phase, section.drawn, max(1, -(-section.size(id_bytes) // max(1, memory // 4))))
        for section in sections
    ]


def distribute(shuffle: Shuffle, progress: bool | None) -> None:
    """Distributes all documents among the buckets. Resumes where a run with the same identity was killed. Does nothing
    if no buckets are needed."""
    if shuffle.is_direct:
        return
    buckets = _Buckets(shuffle)
    total = sum(section.tokens for section in shuffle.sections)
    with Progress("distributing", total, "token", progress) as bar:
        for number, block in enumerate(_blocks(shuffle)):
            if number >= buckets.done:
                bar.add(_distribute_block(shuffle, block, buckets))
                buckets.finish_block()
    buckets.save()


def _blocks(shuffle: Shuffle) -> Iterator[_Block]:
    """Yields the blocks of all sources, in order."""
    most_tokens, most_documents = shuffle.block_bytes // shuffle.id_bytes, shuffle.block_bytes // _DOCUMENT_BYTES
    for source, splits in enumerate(shuffle.documents):
        for split, documents in enumerate(splits):
            start = at = 0
            while documents is not None and at < len(documents):
                lengths = documents.lengths[at : at + max(1, most_documents)].astype("i8")
                count = max(1, int(lengths.cumsum().searchsorted(most_tokens, side="right")))
                block = _Block(source, split, at, lengths[:count], start)
                yield block
                at, start = at + len(block.lengths), start + int(block.lengths.sum())


def whole_blocks(shuffle: Shuffle, split: int) -> Iterator[_Block]:
    """Yields a block for each source: all its documents of a split."""
    for source, splits in enumerate(shuffle.documents):
        documents = splits[split]
        if documents is not None:
            yield _Block(source, split, 0, documents.lengths.astype("i8"), 0)


def block_pieces(shuffle: Shuffle, block: _Block) -> _Pieces:
    """Opens the documents of a block."""
    documents = shuffle.documents[block.source][block.split]
    assert documents is not None
    ends = block.lengths.cumsum()
    ids, lacks_mark = documents.tokens_of(block.start, block.start + int(ends[-1]))
    data = numpy.ascontiguousarray(ids, dtype=f"<u{shuffle.id_bytes}").data.cast("B")
    head = shuffle.mark_bytes if lacks_mark else b""
    return _Pieces(data, head, (ends - block.lengths) * shuffle.id_bytes - len(head), shuffle.id_bytes)


def _distribute_block(shuffle: Shuffle, block: _Block, buckets: _Buckets) -> int:
    """Returns the number of tokens that were written."""
    pieces = block_pieces(shuffle, block)
    written = before = 0
    for section in shuffle.sections:
        if section.split == block.split:
            for some in instances(shuffle, section, block):
                buckets.add(before, section.buckets, some, pieces)
                written += int(some.lengths.sum())
        before += section.buckets
    return written


class _Instances(NamedTuple):
    """Documents of a block that a section has: their places in the block, both writing keys, and how many of their
    tokens are used."""

    places: Array
    first: Array
    second: Array
    lengths: Array


def instances(shuffle: Shuffle, section: Section, block: _Block) -> Iterator[_Instances]:
    """Yields the documents of a block that a section has, for each pass over the source."""
    name, numbers = shuffle.names[block.source], numpy.arange(block.first, block.first + len(block.lengths))
    for stretch in section.drawn[block.source].stretches:
        places = stretch.chosen(drawing_keys(shuffle.seed, name, stretch.number).first(numbers)).nonzero()[0]
        keys = writing_keys(shuffle.seed, SPLIT_NAMES[section.split], section.phase, name, stretch.number)
        lengths = block.lengths[places]
        if stretch.cut is not None:
            lengths[numbers[places] == stretch.cut[0]] = stretch.cut[1]
        yield _Instances(places, keys.first(numbers[places]), keys.second(numbers[places]), lengths)


class _Pieces(NamedTuple):
    """The documents of a block as bytes: where each begins in `data`, or before it, if it lacks its mark, `head`."""

    data: memoryview
    head: bytes
    starts: Array
    id_bytes: int

    def joined(self, places: Array, lengths: Array) -> bytes:
        """Returns the bytes of documents, one after another."""
        begins = self.starts[places]
        parts: list[bytes | memoryview] = []
        for begin, end in zip(begins.tolist(), (begins + lengths * self.id_bytes).tolist()):
            if begin < 0:
                parts.append(self.head)
                begin = 0
            parts.append(self.data[begin:end])
        return b"".join(parts)


class _Buckets:
    """The files of the buckets, and how far the distribution is."""

    def __init__(self, shuffle: Shuffle) -> None:
        self._folder = make_folder(shuffle.folder)
        described = [shuffle.identity, shuffle.layout, shuffle.block_bytes]
        self._identity = hashlib.sha256(json.dumps(described).encode()).hexdigest()
        self._sizes = [[0, 0] for _ in range(shuffle.buckets)]
        self._changed: set[int] = set()
        self._saved = time.monotonic()
        self.done = 0
        self._resume()

    def _resume(self) -> None:
        found: dict[str, Any] = {}
        try:
            with open(os.path.join(self._folder, _STATE), "rb") as stream:
                found = json.load(stream)
        except (OSError, ValueError):
            pass
        if found.get("identity") == self._identity and self._hold(found["sizes"]):
            self.done, self._sizes = found["done"], found["sizes"]
        else:
            remove_others(os.path.join(self._folder, "*"), ())
        for number, sizes in enumerate(self._sizes):
            for path, size in zip(bucket_paths(self._folder, number), sizes):
                with file_errors(path, "cannot be written"), open(path, "ab") as stream:
                    stream.truncate(size)

    def _hold(self, sizes: Sequence[Sequence[int]]) -> bool:
        """Returns whether the files have all bytes that a saved state counts."""
        paths = [path for number in range(len(sizes)) for path in bucket_paths(self._folder, number)]
        return all(map(has_bytes, paths, [size for both in sizes for size in both]))

    def add(self, before: int, count: int, some: _Instances, pieces: _Pieces) -> None:
        """Appends documents to the buckets of a section, which has `count` of them, from number `before`."""
        buckets = ((some.first >> numpy.uint64(32)) * numpy.uint64(count) >> numpy.uint64(32)).astype(numpy.int64)
        order = numpy.argsort(buckets, kind="stable")
        ends = numpy.cumsum(numpy.bincount(buckets, minlength=count)).tolist()
        for bucket, (begin, end) in enumerate(zip([0, *ends], ends)):
            if begin < end:
                of = order[begin:end]
                columns = (some.first[of], some.second[of], some.lengths[of].astype(numpy.uint64))
                index = numpy.stack(columns, axis=1).astype("<u8").tobytes()
                self._append(before + bucket, (pieces.joined(some.places[of], some.lengths[of]), index))

    def _append(self, number: int, contents: tuple[bytes, bytes]) -> None:
        for which, (path, data) in enumerate(zip(bucket_paths(self._folder, number), contents)):
            with file_errors(path, "cannot be written"), open(path, "ab") as stream:
                stream.write(data)
            self._sizes[number][which] += len(data)
        self._changed.add(number)

    def finish_block(self) -> None:
        """Counts a block, and saves the state from time to time."""
        self.done += 1
        if time.monotonic() - self._saved >= run.CHECKPOINT_SECONDS:
            self.save()

    def save(self) -> None:
        """Writes the state, after everything that it counts."""
        for number in sorted(self._changed):
            for path in bucket_paths(self._folder, number):
                with file_errors(path, "cannot be written"):
                    platform.sync_file(path)
        state = {"identity": self._identity, "done": self.done, "sizes": self._sizes}
        _binding.write_file(os.path.join(self._folder, _STATE), json.dumps(state).encode())
        self._changed.clear()
        self._saved = time.monotonic()


def bucket_paths(folder: str, number: int) -> tuple[str, str]:
    """Returns the files of a bucket: its tokens, and its index."""
    base = os.path.join(folder, f"{number:06d}")
    return base + ".tokens", base + ".index"


def bucket_index(path: str) -> Array:
    """Returns the index of a bucket: uint64, shape (documents, 3): both writing keys, and the tokens."""
    with open_input(path) as stream:
        data = stream.read()
    if len(data) % (8 * _FIELDS):
        raise FormatError(f"{path}: another program has changed it")
    return numpy.frombuffer(data, "<u8").reshape(-1, _FIELDS)
