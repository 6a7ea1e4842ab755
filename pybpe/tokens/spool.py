"""Stores the tokens of a split on disk until the split is complete, so that a killed run loses little.

Two files only grow, and are truncated to a known length when a run resumes:

    SPLIT.tokens    room for a header, then the ids
    SPLIT.starts    a uint64 for each document: its first token

At the end, the first one is cut into shards (store.py).

A writer also puts <|endoftext|> between documents. Input texts may have this mark before documents, after them, or at
both ends of a file. Whatever the input has, each non-empty document gets exactly one, before it ("prepend") or after it
("append"), or none at all ("none").
"""

from __future__ import annotations

import os
import sys
from array import array
from bisect import bisect_left
from typing import BinaryIO, NamedTuple

from .. import _binding
from ..errors import FormatError, file_errors
from ..reading.streams import open_input

EOT_MODES = ("prepend", "append", "none")
KEEP = "keep"  # encode_files only: the ids of the text as it is, marks included
START_BYTES = 8
TYPECODES = {"uint16": "H", "uint32": "I"}  # of the array module, by dtype
ID_BYTES = {"uint16": 2, "uint32": 4}  # bytes per id, by dtype
_BUFFER = 1 << 16  # bytes; segments of small files are shorter


class SpoolFiles:
    """The files of a spool.

    Args:
        base: path without ending.
        header_bytes: room for a header.
        dtype: "uint16" or "uint32".

    Attributes:
        tokens_path, starts_path: the files.
        typecode: the type of ids in an array.
    """

    def __init__(self, base: str, header_bytes: int, dtype: str) -> None:
        self.base, self.dtype, self._header_bytes = base, dtype, header_bytes
        self.tokens_path, self.starts_path = base + ".tokens", base + ".starts"
        self.typecode = TYPECODES[dtype]

    def end(self, tokens: int) -> int:
        """Returns where in the first file so many tokens end."""
        return self._header_bytes + tokens * ID_BYTES[self.dtype]

    def holds(self, reached: Reached) -> bool:
        """Returns whether the files on disk have at least so many tokens and documents."""
        has_tokens = not reached.tokens or size_of(self.tokens_path) >= self.end(reached.tokens)
        return has_tokens and self.holds_starts(reached)

    def holds_starts(self, reached: Reached) -> bool:
        """Returns whether the second file has at least so many documents."""
        return not reached.documents or size_of(self.starts_path) >= reached.documents * START_BYTES

    def read(self, first: int, count: int) -> array[int]:
        """Returns the ids from number `first`."""
        return read_items(self.tokens_path, self.typecode, self.end(first), count)

    def read_starts(self, first: int, last: int) -> array[int]:
        """Returns the first token of each of the documents first .. last."""
        return read_items(self.starts_path, "Q", first * START_BYTES, last - first)

    def documents_before(self, token: int, documents: int) -> int:
        """Returns how many of the first `documents` documents begin before a token."""
        return bisect_left(range(documents), token, key=lambda number: self.read_starts(number, number + 1)[0])


class Segment(NamedTuple):
    """The ids of a piece that go to one split."""

    split: int  # index into SPLIT_NAMES
    ids: array[int]  # an array of type H or I, with the mark, <|endoftext|>, between documents
    marks: int  # the number of marks in `ids`
    text_bytes: int  # the size of the encoded text, without marks
    ends_document: bool  # whether a document ends with it


class Reached(NamedTuple):
    """How far a split has come."""

    tokens: int = 0
    documents: int = 0
    text_bytes: int = 0
    in_document: bool = False  # see EotPlacer.is_open


class EotPlacer:
    """Places the marks of one split's stream.

    Args:
        mode: one of EOT_MODES, or KEEP.
        eot: the id of the mark; None only if the texts hold no marks.
        is_open: whether the stream is inside a document, for resuming where another placer stopped.
    """

    def __init__(self, mode: str, eot: int | None, is_open: bool = False) -> None:
        self._mode = "none" if eot is None else mode
        self._eot = _binding.NO_ID if eot is None else eot
        self.is_open = is_open  # whether the last token belongs to a document that has not ended

    def place(self, ids: array[int], marks: int) -> tuple[array[int] | memoryview, array[int] | memoryview]:
        """Returns the next tokens of the stream, with the marks where they belong.

        Args:
            ids: an array of type H or I.
            marks: the number of marks among them.

        Returns:
            The tokens, and where in them documents begin (at the mark, if it comes first), of type Q.
        """
        if self._mode == KEEP:
            self.is_open |= len(ids) > 0
            return ids, array("Q")
        if not marks and (self.is_open or not ids):  # nothing to do, as for most pieces of long documents
            return ids, array("Q")
        if not marks:  # one document begins
            self.is_open = True
            return (array(ids.typecode, (self._eot,)) + ids if self._mode == "prepend" else ids), array("Q", (0,))
        placed, starts, self.is_open = _binding.place_marks(ids, self._eot, marks, self._mode, self.is_open)
        return placed, starts

    def end_document(self, typecode: str) -> array[int]:
        """Returns the mark, if any, that the end of a document needs, as an array of the given type."""
        was_open, self.is_open = self.is_open, False
        return array(typecode, [self._eot] if was_open and self._mode == "append" else [])


class SplitWriter:
    """Appends segments to the files of a split, with marks where they belong.

    Args:
        files: the files. What they have beyond `reached` is dropped.
        mode, eot: as in EotPlacer.
        reached: how far the split has come.
    """

    def __init__(self, files: SpoolFiles, mode: str, eot: int | None, reached: Reached) -> None:
        self._files, self._placer = files, EotPlacer(mode, eot, reached.in_document)
        self._tokens, self._documents, self._text_bytes = reached[:3]
        self._tokens_file = _open(files.tokens_path, files.end(self._tokens))
        self._starts_file = _open(files.starts_path, self._documents * START_BYTES)

    def add(self, segment: Segment) -> None:
        """Appends a segment."""
        ids, starts = self._placer.place(segment.ids, segment.marks)
        _write(self._tokens_file, ids)
        if len(starts) == 1:  # as of each small file: a call to C would take longer
            _write(self._starts_file, array("Q", (self._tokens + starts[0],)))
        elif starts:
            _write(self._starts_file, _binding.shift_starts(starts, self._tokens))
        self._tokens += len(ids)
        self._documents += len(starts)
        self._text_bytes += segment.text_bytes
        if segment.ends_document and (mark := self._placer.end_document(self._files.typecode)):
            _write(self._tokens_file, mark)
            self._tokens += 1

    @property
    def reached(self) -> Reached:
        """How far the split has come."""
        return Reached(self._tokens, self._documents, self._text_bytes, self._placer.is_open)

    def sync(self) -> None:
        """Syncs both files to disk."""
        for stream in (self._tokens_file, self._starts_file):
            with file_errors(stream.name, "cannot be written"):
                stream.flush()
                os.fsync(stream.fileno())

    def close(self) -> None:
        """Closes the files."""
        for stream in (self._tokens_file, self._starts_file):
            with file_errors(stream.name, "cannot be written"):
                stream.close()


def read_items(path: str, typecode: str, offset: int, count: int) -> array[int]:
    """Returns integers that are stored in a file, little-endian, from a byte offset on.

    Raises:
        FormatError: the file is too short.
    """
    items = array(typecode)
    with open_input(path) as stream:
        stream.seek(offset)
        data = stream.read(count * items.itemsize)
    if len(data) < count * items.itemsize:
        raise FormatError(f"{path}: shorter than this run made it: another program has changed it")
    items.frombytes(data)
    if sys.byteorder == "big":  # pragma: no cover (other machines)
        items.byteswap()
    return items


def size_of(path: str) -> int:
    """Returns the size of a file; -1 if there is none. Another program may have removed it, or a part of it."""
    try:
        return os.path.getsize(path)
    except OSError:
        return -1


def _open(path: str, size: int) -> BinaryIO:
    with file_errors(path, "cannot be written"):
        stream = open(path, "ab", buffering=_BUFFER)
        try:
            os.ftruncate(stream.fileno(), size)
        except OSError:
            stream.close()
            raise
    return stream


def _write(stream: BinaryIO, items: array[int] | memoryview) -> None:
    """Writes integers as `read_items` reads them."""
    if sys.byteorder == "big":  # pragma: no cover (other machines)
        items = array(memoryview(items).format, items)
        items.byteswap()
    with file_errors(stream.name, "cannot be written"):
        stream.write(memoryview(items).cast("B"))  # a buffered stream writes everything
