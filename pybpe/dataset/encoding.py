"""From blocks to segments: ids with the split that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..model import END_OF_TEXT
from ..normalize import normalize
from ..pretokenize import cutter
from ..tokenizer import Tokenizer
from .kinds import RECORDS, Kinds
from .planning import Task
from .reading import Block, blocks
from .splits import hash_split

if TYPE_CHECKING:
    import numpy

_MARK = END_OF_TEXT.encode()


class Segment(NamedTuple):
    """The ids of a block that belong to one split.

    Attributes:
        split: index into SPLIT_NAMES.
        ids: shape (tokens,). Documents have the mark, <|endoftext|>, between them.
        marks: where in `ids` marks are, ascending; shape (marks,).
        text_bytes: of the encoded text, without marks.
        ends_document: whether a document ends with it.
        source: file, start and end of the block.
    """

    split: int
    ids: numpy.ndarray[Any, Any]
    marks: numpy.ndarray[Any, Any]
    text_bytes: int
    ends_document: bool
    source: tuple[str, int, int]


@dataclass(frozen=True)
class TaskEncoder:
    """Encodes tasks and blocks. What an executor sends to its workers.

    Attributes:
        tok: the tokenizer.
        kinds: how documents are told apart.
        splits: the shares, for documents that are split by hash.
        dtype: "uint16" or "uint32", of the ids.
    """

    tok: Tokenizer
    kinds: Kinds
    splits: tuple[float, ...]
    dtype: str

    def task_blocks(self, task: Task) -> Iterator[Block]:
        """The blocks of a task, in order."""
        return blocks(task, self.kinds, cutter(self.tok.pattern, self.tok.specials_matcher))

    def task_segments(self, task: Task) -> list[Segment]:
        """A whole task, in this thread."""
        return [segment for block in self.task_blocks(task) for segment in self.segments(block)]

    def segments(self, block: Block) -> list[Segment]:
        """The segments of a block.

        Raises:
            FormatError: a record that is none.
        """
        if not block.divided:
            assert block.split is not None and not isinstance(block.data, list)
            text = normalize(block.data, self.tok.normalizer)
            ids = self.tok.encode_to_numpy(block.data)
            return [self._segment(block, block.split, ids, len(text))]
        found = []
        for split, documents in divide(block, self.kinds, self.splits):
            groups = [documents] if self.tok.eot_token is not None else [[document] for document in documents]
            for group in groups:
                found.append(self._segment(block, split, *self._encode(group, block.path)))
        return found

    def _encode(self, documents: Sequence[bytes], path: str) -> tuple[numpy.ndarray[Any, Any], int]:
        """The ids of documents with marks between, and the bytes of text with the marks'."""
        ordinary = self.kinds.kind(path) in RECORDS
        text = _MARK.join(documents)
        # One call for all, if the marks between are certain to be the only ones that it will find.
        if self.tok.normalizer is None and (not ordinary or text.count(_MARK) == len(documents) - 1):
            allowed = {END_OF_TEXT} & self.tok.special_tokens.keys() if ordinary else "all"
            return self.tok.encode_to_numpy(text, allowed_special=allowed), len(text)
        return self._encode_singly(documents, ordinary)

    def _encode_singly(self, documents: Iterable[bytes], ordinary: bool) -> tuple[numpy.ndarray[Any, Any], int]:
        import numpy

        size = -len(_MARK)
        parts: list[Any] = []
        for document in documents:
            text = normalize(document, self.tok.normalizer)
            size += len(_MARK) + len(text)
            parts.append(self.tok.encode_to_numpy(document, allowed_special=() if ordinary else "all"))
            parts.append(numpy.array([self.tok.eot_token or 0], dtype=self.tok.dtype))
        return numpy.concatenate([numpy.empty(0, dtype=self.tok.dtype), *parts[:-1]]), max(0, size)

    def _segment(self, block: Block, split: int, ids: numpy.ndarray[Any, Any], size: int) -> Segment:
        import numpy

        marks = numpy.flatnonzero(ids == self.tok.eot_token) if self.tok.eot_token is not None else ids[:0]
        source = (block.path, block.start, block.end)
        return Segment(
            split,
            ids.astype(self.dtype, copy=False),
            marks,
            size - len(marks) * len(_MARK),
            block.ends_document,
            source,
        )


def divide(block: Block, kinds: Kinds, splits: Sequence[float]) -> Iterator[tuple[int, list[bytes]]]:
    """The documents of a divided block by split, each split's in the order of the block."""
    data = block.data
    if block.split is not None:
        documents = data if isinstance(data, list) else kinds.divide(data, block.path, block.start)
        yield block.split, list(documents)
        return
    by_split: list[list[bytes]] = [[] for _ in splits]
    pairs = zip(data, data) if isinstance(data, list) else kinds.divide_with_clusters(data, block.path, block.start)
    for document, cluster in pairs:
        by_split[hash_split(cluster, splits)].append(document)
    yield from ((split, group) for split, group in enumerate(by_split) if group)
