"""Packed sequences: cuts a stream of tokens into windows of equal length, for training.

    stream, 8 ids                 a b c d e f g h
    sequence_length 3, stride 3    inputs a b c, d e f       targets b c d, e f g
    drop_last=False               and    g                  and     h
    stride 2                      inputs a b c, c d e, e f g

Documents follow one another with <|endoftext|> between them, and there is no padding.
"""

from __future__ import annotations

import operator
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import Any, NamedTuple

from .._lazy import numpy
from ..arguments import param, whole_number
from ..errors import ArgumentError, FormatError
from ..tokens.token_files import Paths, TokenStream, stated
from . import documents


class Window(NamedTuple):
    """One sequence: `targets` are `inputs` shifted by one token. Both are int64 arrays of shape (length,), as PyTorch
    needs them, and independent copies."""

    inputs: numpy.ndarray[Any, Any]
    targets: numpy.ndarray[Any, Any]


class PackedSequences:
    """The windows of one or more token files, by index: `len(p)`, `p[i]`, iteration.

    Nothing is read until it is needed. Files form one stream, in their order. The object can be pickled, and shared by
    threads. It is a map-style dataset for PyTorch's DataLoader.

    In files of packed rows, which `pack` writes, the windows are the rows. The last target of a row is the end-of-text
    token that begins the next row of the file, or ends the file.

    Args:
        path: a path, a glob pattern, several of them, or an array of ids: see TokenStream. llm.c's shards, .npy,
            and files without a header.
        sequence_length: tokens in `inputs`, and in `targets`.
        stride: tokens from the start of one window to the start of the next. None means sequence_length, so that every
            token is a target exactly once.
        drop_last: False adds one shorter window for targets at the end that are in no full window.
        dtype: the dtype of files without a header: see TokenStream.
        eot_id: the id of <|endoftext|>. Only the methods about documents need it. None means the id that the manifest
            next to the files says.
        eot: "append" if the mark ends documents, "prepend" if it begins them, as in llm.c's shards. None means what the
            manifest says, or "append".

    Raises:
        FileError, FormatError, ArgumentError: see TokenStream, or sequence_length or stride below 1, or windows that
            would not be the rows of files that `pack` made, or an eot_id or eot that is not the manifest's.

    >>> import numpy
    >>> packed = PackedSequences(numpy.arange(8), 3)
    >>> [(window.inputs.tolist(), window.targets.tolist()) for window in packed]
    [([0, 1, 2], [1, 2, 3]), ([3, 4, 5], [4, 5, 6])]
    """

    def __init__(
        self,
        path: Paths | numpy.ndarray[Any, Any],
        sequence_length: int,
        stride: int | None = None,
        drop_last: bool = True,
        *,
        dtype: str | None = None,
        eot_id: int | None = None,
        eot: str | None = None,
    ) -> None:
        self.sequence_length = whole_number("sequence_length", sequence_length, 1)
        self.stride = self.sequence_length if stride is None else whole_number("stride", stride, 1)
        self.stream = TokenStream(path, dtype)
        self._are_ids = self.stream.dtype.kind == "u" and self.stream.dtype.itemsize < 8
        files = self.stream.paths, self.stream.facts
        self._eot_id, self._eot = stated("eot_id", eot_id, *files), stated("eot", eot, *files) or "append"
        self._row_ends = self._rows_of_files()
        self._count = self._row_ends[-1] if self._row_ends else self._windows(drop_last)

    def _rows_of_files(self) -> list[int]:
        """Returns the number of rows in the first file, in the first two, and so on, or an empty list if the files do
        not have packed rows. A file has one more token after its rows."""
        paths, starts = self.stream.paths, self.stream.starts
        lengths = [facts and facts.row_tokens for facts in self.stream.facts]
        if not any(lengths):
            return []
        for path, length, start, end in zip(paths, lengths, starts, starts[1:]):
            if length is None:
                raise ArgumentError(f"{path}: has no packed rows, but another of the files does: open it by itself")
            if {self.sequence_length, self.stride} != {length}:
                raise ArgumentError(
                    f"{path}: has packed rows of {length} tokens: open it with the sequence length and stride {length}"
                )
            if (end - start) % length != 1:
                raise FormatError(f"{path}: {end - start} tokens are not rows of {length} and one more: pack again", 0)
        return list(accumulate((end - start) // self.stride for start, end in zip(starts, starts[1:])))

    def _windows(self, drop_last: bool) -> int:
        last = len(self.stream) - 1  # the last target's position
        full = max(0, (last - self.sequence_length) // self.stride + 1)
        covered = (full - 1) * self.stride + self.sequence_length if full else 0
        has_rest = covered < last and full * self.stride < last
        return full + (not drop_last and has_rest)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"PackedSequences({len(self)} windows, sequence_length={self.sequence_length}, stride={self.stride})"

    def __getitem__(self, index: int) -> Window:
        """Returns window `index`. Negative indexes count from the end. Raises IndexError if there is no such window,
        and FormatError if the file has become shorter since it was opened, or if an id is negative."""
        ids = self.ids(index)
        return Window(ids[:-1].astype(numpy.int64), ids[1:].astype(numpy.int64))

    def __iter__(self) -> Iterator[Window]:
        return (self[i] for i in range(len(self)))

    def ids(self, index: int) -> numpy.ndarray[Any, Any]:
        """Returns a window's inputs and its last target, without a copy if possible: shape (length + 1,), read-only, in
        the dtype of the files. Dtypes that hold more than ids (signed ones, uint64) become int64. See __getitem__."""
        span = self.span(index)
        ids = self.stream.slice(span.start, span.stop + 1)
        if self._are_ids:
            return ids
        ids = ids.astype(numpy.int64)
        if (ids < 0).any():
            place = span.start + int((ids < 0).argmax())
            raise FormatError(f"token {place} is negative or above 2^63 - 1: it is not an id")
        return ids

    def span(self, index: int) -> range:
        """Returns the positions of a window's inputs in the stream."""
        i = operator.index(index)
        if not -len(self) <= i < len(self):
            raise IndexError(f"window {i} is out of range: there are {len(self)}")
        i = i + len(self) if i < 0 else i
        start = i * self.stride
        if self._row_ends:
            start += bisect_right(self._row_ends, i)  # earlier files have one token after their rows
        return range(start, min(start + self.sequence_length, len(self.stream) - 1))

    # ------------------------------------------------------------------------------------------------
    # Documents

    def document_ids(self, index: int) -> numpy.ndarray[Any, Any]:
        """Returns the documents of a window's inputs, from 0: int32, shape (length,)."""
        if self._eot_id is None:
            raise ArgumentError(
                f"documents are found by <|endoftext|>: pass its id, such as tok.eot_token, as {param('eot_id')}"
            )
        return documents.document_ids(self[index].inputs, self._eot_id, self._eot)

    def position_ids(self, index: int) -> numpy.ndarray[Any, Any]:
        """Returns the positions of a window's inputs in their documents: int32, shape (length,). See
        documents.position_ids."""
        return documents.position_ids(self.document_ids(index))

    def cu_seqlens(self, index: int) -> numpy.ndarray[Any, Any]:
        """Returns cumulative document lengths: int32, shape (documents + 1,). See documents.cu_seqlens."""
        return documents.cu_seqlens(self.document_ids(index))

    def attention_mask(self, index: int) -> numpy.ndarray[Any, Any]:
        """Returns the block-diagonal causal mask: bool, shape (length, length). See documents.causal_mask."""
        return documents.causal_mask(self.document_ids(index))
