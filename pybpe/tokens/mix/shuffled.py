"""The global shuffle, second half: sorts each bucket, and hands its documents to the writer of token files.

If everything fits in memory, there are no buckets: the documents are read where they are.

A task is up to about a million tokens of whole documents, or a part of one document that is longer.
"""

from __future__ import annotations

import os
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..._numpy import Array, numpy
from ...errors import FormatError, file_errors
from ...reading.text_encoding import Doubts
from ...support.run_options import RunOptions
from ...tokenizer import Tokenizer
from ..encoding import Segment, text_length
from ..spool import TYPECODES
from ..workers import Result
from .buckets import Section, Shuffle, block_pieces, bucket_index, bucket_paths, instances, whole_blocks

_TASK_TOKENS = 1 << 20


class ShuffledDocuments:
    """The work of a run that writes the documents of all buckets in order: see dataset.workers.Work.

    Args:
        tok: the tokenizer that made the tokens.
        shuffle: what was distributed among buckets.
    """

    description, unit = "shuffling", "token"

    def __init__(self, tok: Tokenizer, shuffle: Shuffle) -> None:
        self._tok, self._shuffle = tok, shuffle

    def results(self, first: int, options: RunOptions, doubts: Doubts) -> Iterator[Result]:
        """See Work. One thread does everything: it mostly copies memory."""
        number = bucket = 0
        for section in self._shuffle.sections:
            for _ in range(section.buckets):
                is_direct = self._shuffle.is_direct
                ordered = _of_sources(self._shuffle, section) if is_direct else _of_bucket(self._shuffle, bucket)
                for task in ordered.tasks():
                    if number >= first:
                        yield self._result(section, ordered, task)
                    number += 1
                bucket += 1

    def _result(self, section: Section, ordered: _Ordered, task: _Task) -> Result:
        ids = ordered.ids(task)
        size = text_length(self._tok, memoryview(ids))
        segment = Segment(section.split, ids, task.documents, size, task.ends_document)
        return Result([segment], len(ids), True)


class _Task(NamedTuple):
    """What is written at once: documents by their place in the order, or a part of one.

    Attributes:
        begin, end: the first document, and the one after the last.
        start, stop: the first token of the first document, and the one after the last token of the last.
        documents: how many documents begin.
        ends_document: whether the last is complete.
    """

    begin: int
    end: int
    start: int
    stop: int
    documents: int
    ends_document: bool


class _Ordered:
    """Documents in the order of their keys, and where their tokens are.

    Args:
        data: buffers of ids.
        index: columns, an item per document: both keys, its tokens, the number of its buffer, and where it begins
            there, in bytes; -1 of an id, if the buffer lacks its mark.
        shuffle: has the mark, and the dtype of the ids.
    """

    def __init__(self, data: list[memoryview], index: Sequence[Array], shuffle: Shuffle) -> None:
        first, second, lengths, buffers, begins = index
        order = _order(first, second)
        self._data, self._lengths, self._buffers, self._begins = data, lengths[order], buffers[order], begins[order]
        self._mark = shuffle.mark_bytes
        self._typecode = TYPECODES[shuffle.dtype]

    def tasks(self) -> Iterator[_Task]:
        """Yields the tasks, in order."""
        ends = self._lengths.cumsum()
        at = 0
        while at < len(ends):
            before = int(ends[at - 1]) if at else 0
            end = max(at + 1, int(ends.searchsorted(before + _TASK_TOKENS, side="right")))
            last = int(self._lengths[end - 1])
            if end - at > 1 or last <= _TASK_TOKENS:
                yield _Task(at, end, 0, last, end - at, True)
            else:
                for start in range(0, last, _TASK_TOKENS):
                    stop = min(start + _TASK_TOKENS, last)
                    yield _Task(at, end, start, stop, int(start == 0), stop == last)
            at = end

    def ids(self, task: _Task) -> array[int]:
        """Returns the ids of a task."""
        some, id_bytes = slice(task.begin, task.end), len(self._mark)
        begins, ends = self._begins[some].copy(), self._begins[some] + self._lengths[some] * id_bytes
        ends[-1] = begins[-1] + task.stop * id_bytes
        begins[0] += task.start * id_bytes
        ids = array(self._typecode)
        ids.frombytes(b"".join(self._pieces(zip(self._buffers[some].tolist(), begins.tolist(), ends.tolist()))))
        if sys.byteorder == "big":  # pragma: no cover (other machines)
            ids.byteswap()
        return ids

    def _pieces(self, places: Iterable[tuple[int, int, int]]) -> Iterator[bytes | memoryview]:
        for buffer, begin, end in places:
            if begin < 0:
                yield self._mark
                begin = 0
            yield self._data[buffer][begin:end]


def _of_bucket(shuffle: Shuffle, number: int) -> _Ordered:
    """Opens a bucket."""
    tokens_path, index_path = bucket_paths(shuffle.folder, number)
    index = bucket_index(index_path)
    lengths = index[:, 2].astype(numpy.int64)
    total = int(lengths.sum())
    with file_errors(tokens_path, "cannot be read"):
        if os.path.getsize(tokens_path) != total * shuffle.id_bytes:
            raise FormatError(f"{tokens_path}: another program has changed it")
        # An empty file cannot be mapped.
        data = numpy.memmap(tokens_path, mode="r").view(numpy.ndarray).data if total else memoryview(b"")
    begins = (lengths.cumsum() - lengths) * shuffle.id_bytes
    return _Ordered(
        [data], (index[:, 0], index[:, 1], lengths, numpy.zeros(len(index), dtype=numpy.int64), begins), shuffle
    )


def _of_sources(shuffle: Shuffle, section: Section) -> _Ordered:
    """Opens the documents of a section where they are."""
    data: list[memoryview] = []
    columns = [[numpy.empty(0, dtype=kind)] for kind in ("u8", "u8", "i8", "i8", "i8")]
    for block in whole_blocks(shuffle, section.split):
        pieces = block_pieces(shuffle, block)
        for some in instances(shuffle, section, block):
            buffers = numpy.full(len(some.places), len(data))
            for column, found in zip(
                columns, (some.first, some.second, some.lengths, buffers, pieces.starts[some.places])
            ):
                column.append(found)
        data.append(pieces.data)
    return _Ordered(data, [numpy.concatenate(column) for column in columns], shuffle)


def _order(first: Array, second: Array) -> Array:
    """Returns the order of pairs of keys."""
    order = numpy.argsort(first)
    ordered = first[order]
    return numpy.lexsort((second, first)) if (ordered[1:] == ordered[:-1]).any() else order
