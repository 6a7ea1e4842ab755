"""The global shuffle: sorts all documents by their writing keys (drawing.py), in buckets that fit in memory.

Every split is shuffled by itself. A bucket has the documents of a split whose keys are in one of several equal ranges,
so the order does not depend on how many buckets there are:

    sources, in order           buckets, by key                 output
    a b c d e f g h      ->     [ c g a ] [ h b d ] [ e f ]  ->  g a c  b h d  f e

A bucket is two files: NUMBER.tokens has the ids of its documents, after their marks, and NUMBER.index one item per
document. First the documents are distributed among all buckets. If that is killed, it starts again: it takes as
long as copying the tokens. Then every task sorts a bucket. If everything fits in memory, there are no buckets: the
documents are read where they are.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import NamedTuple

from ... import _binding
from ..._lazy import Array, numpy
from ...errors import FileError, FormatError, file_errors
from ...reading.charset import Doubts
from ...reading.planning import SPLIT_NAMES
from ...reading.streams import open_input
from ...support import platform
from ...support.output_files import make_folder, remove_folder
from ...support.progress import Progress
from ...tokenizer import Tokenizer
from ..task_encoder import ID_BYTES, TYPECODES, Encoded, Segment, text_length
from .drawing import Documents, Drawn, drawing_keys, writing_keys

DEFAULT_MEMORY = 1 << 30
LEAST_MEMORY = 1 << 20
_DOCUMENT_BYTES = 128  # memory for a document while a bucket is sorted
_WRITE_BYTES = 1 << 16  # a block has about this much per bucket
_BLOCK_BYTES = 1 << 24  # the least size of a block
_PART_TOKENS = 1 << 20
# Both keys of a document, its tokens, and where it begins among the tokens of its split in all sources.
_INDEX = [("first", "u8"), ("second", "u8"), ("tokens", "i8"), ("start", "i8")]


class _Block(NamedTuple):
    """Consecutive documents of a split of a source."""

    source: int
    split: int
    first: int  # the number of its first document
    lengths: Array  # the tokens of the documents
    start: int  # the token where the first document begins


@dataclass(frozen=True)
class Shuffle:
    """Writes the documents of all splits. A task is a bucket, or a split if there are no buckets."""

    tok: Tokenizer  # the tokenizer that made the tokens
    folder: str  # where the buckets are
    names: Sequence[str]  # the names of the sources
    documents: Sequence[Sequence[Documents | None]]  # documents[source][split], or None if the source has no such split
    drawn: Sequence[Sequence[Drawn]]  # drawn[split][source]: the documents that the output has
    seed: int  # chooses the order
    dtype: str  # of the ids
    memory: int  # about how many bytes of memory may be used
    provenance: bool = False  # whether segments say where their documents came from

    @property
    def buckets(self) -> list[int]:
        """The number of buckets of every split."""
        most, width = max(1, self.memory // 4), ID_BYTES[self.dtype]
        sizes = [sum(each.tokens * width + each.documents * _DOCUMENT_BYTES for each in some) for some in self.drawn]
        return [max(1, -(-size // most)) for size in sizes]

    @property
    def is_direct(self) -> bool:
        """Whether no buckets are needed."""
        tokens = sum(found.tokens for splits in self.documents for found in splits if found is not None)
        return set(self.buckets) == {1} and tokens * ID_BYTES[self.dtype] <= self.memory // 4  # a copy of them follows

    def has_buckets(self) -> bool:
        """Returns whether the buckets are there, as far as their sizes tell."""
        try:
            for number in range(sum(self.buckets)):
                self._index(number)
            return True
        except (FileError, FormatError):
            return False

    def tasks(self) -> list[tuple[int, int]]:
        """Returns the tasks: a split and the number of one of its buckets."""
        return [(split, bucket) for split, numbers in enumerate(self._numbers()) for bucket in numbers]

    def encode(
        self, tasks: Iterable[tuple[int, int]], doubts: Doubts, progress: bool | None = None
    ) -> Iterator[Encoded]:
        """Yields the tokens of tasks. One thread does everything: it mostly copies memory."""
        for split, bucket in tasks:
            if not self.is_direct and not self.has_buckets():
                self._distribute(progress)
            ordered = self._of_sources(split) if self.is_direct else self._bucket(bucket)
            for at in range(0, ordered.tokens, _PART_TOKENS):
                end = min(at + _PART_TOKENS, ordered.tokens)
                found, documents, places = ordered.part(at, end)
                ids = array(TYPECODES[self.dtype])
                ids.frombytes(found.data.cast("B"))
                size = text_length(self.tok, ids)
                segment = Segment(split, ids, documents, size, end == ordered.tokens)
                yield Encoded([segment._replace(origins=(places.tolist() if self.provenance else (), ()))], len(ids))
            yield Encoded([], 0, True)
            del ordered  # two buckets at once may not fit

    def _numbers(self) -> list[range]:
        """Returns the numbers of the buckets of every split."""
        return [range(last - count, last) for last, count in zip(accumulate(self.buckets), self.buckets)]

    # ------------------------------------------------------------------------------------------------
    # Sources

    def _blocks(self, most_bytes: int) -> Iterator[_Block]:
        """Yields all documents in blocks of about this size, in order."""
        most_tokens, most_documents = most_bytes // ID_BYTES[self.dtype], max(1, most_bytes // _DOCUMENT_BYTES)
        for source, splits in enumerate(self.documents):
            for split, documents in enumerate(splits):
                start = at = 0
                while documents is not None and at < len(documents):
                    lengths = documents.lengths[at : at + most_documents].astype("i8")
                    count = max(1, int(lengths.cumsum().searchsorted(most_tokens, side="right")))
                    yield _Block(source, split, at, lengths[:count], start)
                    at, start = at + len(lengths[:count]), start + int(lengths[:count].sum())

    def _ids(self, block: _Block) -> Array:
        """Returns the ids of a block, with the documents' marks before them."""
        documents = self.documents[block.source][block.split]
        assert documents is not None
        ids = documents.stream.slice(block.start, block.start + int(block.lengths.sum()))
        return numpy.ascontiguousarray(ids, dtype=self.dtype)

    def _chosen(self, block: _Block) -> Iterator[tuple[Array, Array]]:
        """Yields the documents of a block that the output has, for every pass over the source: their places in the
        block, and their index."""
        name, numbers = self.names[block.source], numpy.arange(block.first, block.first + len(block.lengths))
        drawn = self.drawn[block.split][block.source]
        others = (some[block.split] for some in self.documents[: block.source])
        before = block.start + sum(some.tokens for some in others if some is not None)
        for number, part in enumerate(drawn.passes):
            places = part.chosen(drawing_keys(numbers, self.seed, name, number)).nonzero()[0]
            first, second = writing_keys(numbers[places], self.seed, SPLIT_NAMES[block.split], name, number)
            index = numpy.empty(len(places), dtype=_INDEX)
            index["first"] = drawn.spread(number, first)
            index["second"] = second
            index["tokens"] = block.lengths[places]
            index["start"] = before + _starts(block.lengths)[places]
            if part.cut is not None:
                index["tokens"][numbers[places] == part.cut[0]] = part.cut[1]
            yield places, index

    def _of_sources(self, split: int) -> _Ordered:
        """Reads the documents of a split where they are."""
        blocks, at = [numpy.empty(0, dtype=self.dtype)], 0
        found = [(numpy.empty(0, dtype=_INDEX), numpy.empty(0, dtype=numpy.int64))]
        for block in self._blocks(self.memory // 4):
            if block.split == split:
                starts = _starts(block.lengths)
                found += [(index, at + starts[places]) for places, index in self._chosen(block)]
                blocks.append(self._ids(block))
                at += len(blocks[-1])
        ids = blocks[-1] if len(blocks) <= 2 else numpy.concatenate(blocks)  # a copy of all
        return _Ordered(ids, *map(numpy.concatenate, zip(*found)))

    # ------------------------------------------------------------------------------------------------
    # Buckets

    def _paths(self, number: int) -> tuple[str, str]:
        """Returns the files of a bucket: its tokens, and its index."""
        base = os.path.join(self.folder, f"{number:06d}")
        return base + ".tokens", base + ".index"

    def _distribute(self, progress: bool | None) -> None:
        """Distributes all documents among the buckets, which appear when all are complete."""
        new = replace(self, folder=f"{self.folder}-new")
        for folder in (self.folder, new.folder):
            remove_folder(folder)
        make_folder(new.folder)
        paths = [path for number in range(sum(self.buckets)) for path in new._paths(number)]
        for path in paths:
            with file_errors(path, "cannot be written"):
                open(path, "wb").close()
        block_bytes = min(max(len(paths) // 2 * _WRITE_BYTES, _BLOCK_BYTES), max(self.memory // 4, 1))
        tokens = sum(each.tokens for some in self.drawn for each in some)
        with Progress("distributing", tokens, "token", progress) as bar:
            for block in self._blocks(block_bytes):
                bar.add(new._distribute_block(block))
        for path in paths:
            with file_errors(path, "cannot be written"):
                platform.sync_file(path)
        with file_errors(self.folder, "cannot be written"):
            os.rename(new.folder, self.folder)

    def _distribute_block(self, block: _Block) -> int:
        """Returns the number of tokens that were written."""
        ids, starts, numbers = self._ids(block), _starts(block.lengths), self._numbers()[block.split]
        written, count = 0, len(numbers)
        for places, index in self._chosen(block):
            buckets = ((index["first"] >> numpy.uint64(32)) * numpy.uint64(count) >> numpy.uint64(32)).astype("i8")
            order = numpy.argsort(buckets, kind="stable")
            ends = numpy.cumsum(numpy.bincount(buckets, minlength=count)).tolist()
            for bucket, begin, end in zip(numbers, [0, *ends], ends):
                if begin < end:
                    some = order[begin:end]
                    data = joined(ids, starts[places[some]], index["tokens"][some]), index[some]
                    for path, part in zip(self._paths(bucket), data):
                        with file_errors(path, "cannot be written"), open(path, "ab") as stream:
                            stream.write(part.data.cast("B"))
                    del data, part  # not next to the following ones
            written += int(index["tokens"].sum())
        return written

    def _index(self, number: int) -> Array:
        """Returns the index of a bucket, whose tokens have the size that it says."""
        tokens_path, path = self._paths(number)
        with open_input(path) as stream:
            data = stream.read()
        if len(data) % numpy.dtype(_INDEX).itemsize:
            raise FormatError(f"{path}: another program has changed it")
        index = numpy.frombuffer(data, _INDEX)
        with file_errors(tokens_path, "cannot be read"):
            if os.path.getsize(tokens_path) != int(index["tokens"].sum()) * ID_BYTES[self.dtype]:
                raise FormatError(f"{tokens_path}: another program has changed it")
        return index

    def _bucket(self, number: int) -> _Ordered:
        index, path = self._index(number), self._paths(number)[0]
        with file_errors(path, "cannot be read"):
            return _Ordered(numpy.fromfile(path, self.dtype), index, _starts(index["tokens"]))


class _Ordered:
    """Documents in the order of their keys.

    Args:
        ids: where their tokens are.
        index: an item per document.
        starts: where they begin in the ids.
    """

    def __init__(self, ids: Array, index: Array, starts: Array) -> None:
        order = order_of(index["first"], index["second"])
        self._ids, self._starts, self._ends = ids, starts[order], index["tokens"][order].cumsum()
        self._before, self._places = self._ends - index["tokens"][order], index["start"][order]
        self.tokens = int(self._ends[-1]) if len(order) else 0

    def part(self, first: int, last: int) -> tuple[Array, int, Array]:
        """Returns some of the tokens, in order, how many documents begin among them, and where the tokens of
        documents, without their marks, begin in the sources."""
        some = slice(int(self._ends.searchsorted(first, "right")), int(self._ends.searchsorted(last)) + 1)
        before = self._before[some]
        begins, ends = numpy.maximum(before, first), numpy.minimum(self._ends[some], last)
        ids = joined(self._ids, self._starts[some] + begins - before, ends - begins)
        texts = numpy.maximum(begins, before + 1)
        return ids, int((before >= first).sum()), (self._places[some] + texts - before)[texts < ends]


def joined(ids: Array, starts: Array, lengths: Array) -> Array:
    """Returns documents, or parts of them, one after another."""
    rows = numpy.zeros(len(starts), dtype=numpy.uint64)
    (found,) = _binding.gather_rows(ids, starts, lengths, rows, (1, int(lengths.sum())))
    return found.reshape(-1)


def _starts(lengths: Array) -> Array:
    starts: Array = lengths.cumsum() - lengths
    return starts


def order_of(first: Array, second: Array) -> Array:
    """Returns the order of pairs of keys."""
    order = numpy.argsort(first)
    ordered = first[order]
    return numpy.lexsort((second, first)) if (ordered[1:] == ordered[:-1]).any() else order
