"""From blocks to segments: ids with the split that they belong to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from ..model import END_OF_TEXT
from ..pretokenize import cutter
from ..tokenizer import Tokenizer
from .kinds import RECORDS, Kinds
from .planning import Task
from .reading import Block, blocks
from .splits import hash_split
from .token_lengths import token_lengths

if TYPE_CHECKING:
    import numpy

    Array = numpy.ndarray[Any, Any]

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
    ids: Array
    marks: Array
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

    def segments(self, block: Block) -> list[Segment]:
        """The segments of a block.

        Raises:
            FormatError: a record that is none.
        """
        if not block.divided:
            assert block.split is not None and not isinstance(block.data, list)
            ids = self.tok.encode_to_numpy(block.data)
            return [self._segment(block, block.split, ids, len(block.data))]
        found = []
        for split, documents in divide(block, self.kinds, self.splits):
            groups = [documents] if self.tok.eot_token is not None else [[document] for document in documents]
            for group in groups:
                size = sum(map(len, group)) + (len(group) - 1) * len(_MARK)
                found.append(self._segment(block, split, self._encode(group, block.path), size))
        return found

    def _encode(self, documents: Sequence[bytes], path: str) -> Array:
        """The ids of documents with marks between."""
        if self.kinds.kind(path) not in RECORDS:
            return self.tok.encode_to_numpy(_MARK.join(documents))
        text = _MARK.join(documents)
        if text.count(_MARK) == len(documents) - 1:  # one call for all: it will find no mark but those between
            allowed = {END_OF_TEXT} & self.tok.special_tokens.keys()
            return self.tok.encode_to_numpy(text, allowed_special=allowed)
        return self._encode_singly(documents)

    def _encode_singly(self, documents: Iterable[bytes]) -> Array:
        import numpy

        parts: list[Array] = []
        for document in documents:
            parts.append(self.tok.encode_to_numpy(document, allowed_special=()))
            parts.append(numpy.array([self.tok.eot_token or 0], dtype=self.tok.dtype))
        return numpy.concatenate(parts[:-1])

    def _segment(self, block: Block, split: int, ids: Array, size: int) -> Segment:
        """`size`: bytes of what was encoded, marks included."""
        import numpy

        marks = numpy.flatnonzero(ids == self.tok.eot_token) if self.tok.eot_token is not None else ids[:0]
        text_bytes = size - len(marks) * len(_MARK)
        if self.tok.normalizer is not None:  # the text is another then
            text_bytes = int(self._token_lengths[ids].sum())
        source = (block.path, block.start, block.end)
        return Segment(split, ids.astype(self.dtype, copy=False), marks, text_bytes, block.ends_document, source)

    @cached_property
    def _token_lengths(self) -> Array:
        return token_lengths(self.tok)


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
