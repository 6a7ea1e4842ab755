"""Packed sequences: cuts a stream of tokens into windows of equal length, for training.

    stream, 8 ids                 a b c d e f g h
    context_length 3, stride 3    inputs a b c, d e f       targets b c d, e f g
    drop_last=False               and    g                  and     h
    stride 2                      inputs a b c, c d e, e f g

Documents follow one another with <|endoftext|> between them, and there is no padding.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from ..arguments import whole_number
from ..errors import ArgumentError
from . import documents
from .token_files import Paths, TokenStream, packed_length

if TYPE_CHECKING:
    import numpy


class Window(NamedTuple):
    """One sequence: `targets` are `inputs` shifted by one token; both have shape (length,) and the files' dtype."""

    inputs: numpy.ndarray[Any, Any]
    targets: numpy.ndarray[Any, Any]


class PackedSequences:
    """The windows of one or more token files, by index: `len(p)`, `p[i]`, iteration.

    Nothing is read until it is needed, and nothing is copied: windows are read-only views of the memory-mapped file
    (only a window that crosses into the next file is a copy). Files form one stream, in their order. The object can be
    pickled, and shared by threads.

    Args:
        path: a path, a glob pattern, several of them, or an array of ids: see TokenStream. llm.c's shards, .npy,
            and files without a header.
        context_length: tokens in `inputs`, and in `targets`.
        stride: tokens from the start of one window to the start of the next; None means context_length, so that
            each token is a target exactly once.
        drop_last: False adds one shorter window for targets at the end that are in no full window.
        dtype: the dtype of files without a header: see TokenStream.
        eot_id: the id of <|endoftext|>; only the methods about documents need it.
        eot: "append" if the mark ends documents, "prepend" if it begins them, as in llm.c's shards.

    Raises:
        FileError, FormatError, ArgumentError: see TokenStream; context_length or stride below 1; windows that would not
            be the rows of a file that `pack` made.

    >>> import numpy
    >>> packed = PackedSequences(numpy.arange(8), 3)
    >>> [(window.inputs.tolist(), window.targets.tolist()) for window in packed]
    [([0, 1, 2], [1, 2, 3]), ([3, 4, 5], [4, 5, 6])]
    """

    def __init__(
        self,
        path: Paths | numpy.ndarray[Any, Any],
        context_length: int,
        stride: int | None = None,
        drop_last: bool = True,
        *,
        dtype: str | None = None,
        eot_id: int | None = None,
        eot: str = "append",
    ) -> None:
        self.context_length = whole_number("context_length", context_length, 1)
        self.stride = self.context_length if stride is None else whole_number("stride", stride, 1)
        self.stream = TokenStream(path, dtype)
        self._eot_id, self._eot = eot_id, eot
        self._check_rows()
        self._count = self._windows(drop_last)

    def _check_rows(self) -> None:
        """Raises ArgumentError if rows that `pack` made would not be the windows. Each of its shards ends with a token
        more than its rows."""
        paths = self.stream.paths
        for path in {os.path.dirname(path): path for path in paths}.values():
            length = packed_length(path)
            if length is not None and (len(paths) > 1 or {self.context_length, self.stride} != {length}):
                raise ArgumentError(
                    f"{path}: has packed rows of {length} tokens: open each of its shards by itself, with the context"
                    f" length and stride {length}"
                )

    def _windows(self, drop_last: bool) -> int:
        last = len(self.stream) - 1  # the last target's position
        full = max(0, (last - self.context_length) // self.stride + 1)
        covered = (full - 1) * self.stride + self.context_length if full else 0
        has_rest = covered < last and full * self.stride < last
        return full + (not drop_last and has_rest)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"PackedSequences({len(self)} windows, context_length={self.context_length}, stride={self.stride})"

    def __getitem__(self, index: int) -> Window:
        """Returns window `index`; negative indexes count from the end. Raises IndexError if there is no such window,
        and FormatError if the file has become shorter since it was opened."""
        span = self.span(index)
        ids = self.stream.slice(span.start, span.stop + 1)
        return Window(ids[:-1], ids[1:])

    def __iter__(self) -> Iterator[Window]:
        return (self[i] for i in range(len(self)))

    def span(self, index: int) -> range:
        """Returns the positions of a window's inputs in the stream."""
        i = operator.index(index)
        if not -len(self) <= i < len(self):
            raise IndexError(f"window {i} is out of range: there are {len(self)}")
        start = (i + len(self) if i < 0 else i) * self.stride
        return range(start, min(start + self.context_length, len(self.stream) - 1))

    # ------------------------------------------------------------------------------------------------
    # Documents

    def document_ids(self, index: int) -> numpy.ndarray[Any, Any]:
        """Returns the document of each of a window's inputs, from 0: int32, shape (length,)."""
        if self._eot_id is None:
            raise ArgumentError("documents are found by <|endoftext|>: pass its id, such as eot_id=tok.eot_token")
        return documents.document_ids(self[index].inputs, self._eot_id, self._eot)

    def position_ids(self, index: int) -> numpy.ndarray[Any, Any]:
        """Returns the position of each input in its document: int32, shape (length,). See documents.position_ids."""
        return documents.position_ids(self.document_ids(index))

    def cu_seqlens(self, index: int) -> numpy.ndarray[Any, Any]:
        """Returns cumulative document lengths: int32, shape (documents + 1,). See documents.cu_seqlens."""
        return documents.cu_seqlens(self.document_ids(index))

    def attention_mask(self, index: int) -> numpy.ndarray[Any, Any]:
        """Returns the block-diagonal causal mask: bool, shape (length, length). See documents.causal_mask."""
        return documents.causal_mask(self.document_ids(index))
