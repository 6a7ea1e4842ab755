"""Reads a corpus in ranges of files and in pieces, for counting.

Machines that know nothing of each other may read different ranges of a file. The text of a range begins at the first
safe cut at or after the start of the range, and ends at the first safe cut at or after its end. The few bytes around a
place decide whether it is a safe cut, so the readers of neighboring ranges agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .bad_records import Seen
from .input_file import InputFile
from .pieces import Cut, Cutting, find_cut, line_cut, stream_pieces, without_mark
from .rows import open_rows
from .sample import Rest, Sample

_SAMPLE_BYTES = 1 << 20  # size of the ranges that make up a sample of plain text


class Range(NamedTuple):
    """A part of a file. If `end` is None, it extends to the end of the file. In a file that can only be read from its
    start, `start` must be a safe cut, and `end` must be None."""

    file: InputFile
    start: int = 0
    end: int | None = None


class Piece(NamedTuple):
    """The data that a worker counts at once: plain text; JSON lines if `records`; or the texts of records."""

    data: memoryview
    path: str = ""
    offset: int = 0
    records: bool = False
    texts: Sequence[bytes] = ()


def file_pieces(file: InputFile, cut: Cut, text_key: str) -> Iterator[Piece]:
    """Yields the pieces of a file of any form. `cut` finds where plain text can be cut."""
    if not file.has_rows:
        yield from Source(Cutting(cut, 0, False)).pieces(Range(file))
        return
    rows = open_rows(file, text_key)
    for texts, seen in rows.texts(0, rows.rows, Seen(file.path, 0, False)):
        yield Piece(memoryview(b""), file.path, seen.start, True, list(texts))


class Source:
    """Reads files in ranges and pieces. `cutting` finds where plain text can be cut."""

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting

    def ranges(self, files: Iterable[InputFile], size: int, start: int = 0) -> Iterator[Range]:
        """Yields the files in ranges of about `size` bytes, or whole if they cannot be read in ranges. Skips the first
        `start` bytes of the first file."""
        for file in files:
            length = file.known_size
            if length is None or length - start <= size or (self._cutting.none and file.form != "jsonl"):
                yield Range(file, start)
            else:
                for begin in range(start, length, size):
                    yield Range(file, begin, min(begin + size, length))
            start = 0

    def pieces(self, part: Range) -> Iterator[Piece]:
        """Yields the pieces of a range."""
        path = part.file.path
        cut = line_cut if part.file.form == "jsonl" else self._cutting.cut
        offset, end, size = part.start, None, part.file.known_size
        if size is not None and (part.start > 0 or part.end is not None):
            with part.file.open() as stream:
                offset = find_cut(stream, part.start, cut, self._cutting.context)
                if part.end is not None:
                    end = max(offset, find_cut(stream, part.end, cut, self._cutting.context))
            size = (size if end is None else end) - offset
        with part.file.open_in_form(offset, end) as (stream, records):
            for data in stream_pieces(stream, line_cut if records else cut, size=size):
                yield Piece(data if records else without_mark(data, offset), path, offset, records)
                offset += len(data)

    def sample(self, files: Iterable[InputFile], sample: Sample) -> Iterator[Piece]:
        """Yields the pieces of a sample."""
        import random

        parts = list(self.ranges(files, _SAMPLE_BYTES))
        random.Random(sample.seed).shuffle(parts)
        left, cut = Rest(sample), self._cutting.cut
        for part in parts:
            if left.none:
                return
            counted = False
            for piece in self.pieces(part):
                left.documents -= not (piece.records or counted)
                counted = True
                taken = left.take_records(piece.data) if piece.records else left.take_text(piece.data, cut)
                yield piece._replace(data=taken)
                if left.bytes <= 0 or (piece.records and left.none):
                    break
