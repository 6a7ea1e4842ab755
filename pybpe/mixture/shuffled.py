"""The global shuffle, second half: sorts each bucket, and hands its documents to the writer of token files.

A task is up to about a million tokens of whole documents, or a part of one document that is longer.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dataset.encoding import Segment, token_lengths
from ..dataset.workers import Result
from ..dataset.writers.base import map_ids
from ..errors import FormatError
from ..reading.text_encoding import Doubts
from ..support.run_options import RunOptions
from ..tokenizer import Tokenizer
from .buckets import Section, Shuffle, bucket_index, bucket_paths

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

_TASK_TOKENS = 1 << 20
_TYPECODES = {"uint16": "H", "uint32": "I"}


class ShuffledDocuments:
    """The work of a run that writes the documents of all buckets in order: see dataset.workers.Work.

    Args:
        tok: the tokenizer that made the tokens.
        shuffle: what was distributed among buckets.
    """

    description, unit = "shuffling", "token"

    def __init__(self, tok: Tokenizer, shuffle: Shuffle) -> None:
        import numpy

        self._shuffle = shuffle
        lengths = token_lengths(tok)
        self._text_lengths = lengths.astype(numpy.min_scalar_type(int(lengths.max())))

    def results(self, first: int, options: RunOptions, doubts: Doubts) -> Iterator[Result]:
        """See Work. One thread does everything: it mostly copies memory."""
        number = bucket = 0
        for section in self._shuffle.sections:
            for _ in range(section.buckets):
                sorted_bucket = _SortedBucket(self._shuffle, bucket)
                for task in sorted_bucket.tasks():
                    if number >= first:
                        yield self._result(section, sorted_bucket, task)
                    number += 1
                bucket += 1

    def _result(self, section: Section, bucket: _SortedBucket, task: _Task) -> Result:
        ids = bucket.ids(task)
        text_bytes = int(self._text_lengths.take(ids, mode="clip").sum(dtype="i8"))  # all ids are in the vocabulary
        segment = Segment(section.split, ids, task.documents, text_bytes, task.ends_document, ("mixture", 0, 0))
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


class _SortedBucket:
    """The documents of a bucket, in the order of their keys."""

    def __init__(self, shuffle: Shuffle, number: int) -> None:
        import numpy

        tokens_path, index_path = bucket_paths(shuffle.folder, number)
        index = bucket_index(index_path)
        order = _order(index[:, 0], index[:, 1])
        lengths = index[:, 2].astype(numpy.int64)
        total = int(lengths.sum())
        self._data = map_ids(tokens_path, shuffle.dtype, 0, total).data.cast("B")
        self._lengths = lengths[order]
        self._starts = (numpy.cumsum(lengths) - lengths)[order]
        self._id_bytes, self._typecode = shuffle.id_bytes, _TYPECODES[shuffle.dtype]
        if len(self._data) != total * self._id_bytes:
            raise FormatError(f"{tokens_path}: another program has changed it")

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
        starts, lengths = self._starts[task.begin : task.end].copy(), self._lengths[task.begin : task.end].copy()
        lengths[-1] = task.stop
        starts[0] += task.start
        lengths[0] -= task.start
        begins, ends = starts * self._id_bytes, (starts + lengths) * self._id_bytes
        ids = array(self._typecode)
        ids.frombytes(b"".join([self._data[a:b] for a, b in zip(begins.tolist(), ends.tolist())]))
        if sys.byteorder == "big":
            ids.byteswap()
        return ids


def _order(first: Array, second: Array) -> Array:
    """Returns the order of pairs of keys."""
    import numpy

    order = numpy.argsort(first)
    ordered = first[order]
    return numpy.lexsort((second, first)) if (ordered[1:] == ordered[:-1]).any() else order
