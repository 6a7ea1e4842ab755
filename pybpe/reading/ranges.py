"""Reads a corpus in ranges of files and in pieces, for counting.

Machines that know nothing of each other may read different ranges of a file. The text of a range begins at the first
safe cut at or after the start of the range, and ends at the first safe cut at or after its end. The few bytes around a
place decide whether it is a safe cut, so the readers of neighboring ranges agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .input_file import InputFile
from .pieces import Cutting, find_cut, line_cut, stream_pieces
from .records import has_records
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


class Source:
    """Reads files in ranges and pieces. `cutting` finds where plain text can be cut."""

    def __init__(self, cutting: Cutting) -> None:
        self._cutting = cutting

    def ranges(self, files: Iterable[InputFile], size: int, start: int = 0) -> Iterator[Range]:
        """Yields the files in ranges of about `size` bytes, or whole if they cannot be read in ranges. Skips the first
        `start` bytes of the first file."""
        for file in files:
            length = file.known_size
            if length is None or length - start <= size or (self._cutting.none and not has_records(file.path)):
                yield Range(file, start)
            else:
                for begin in range(start, length, size):
                    yield Range(file, begin, min(begin + size, length))
            start = 0

    def pieces(self, part: Range) -> Iterator[Piece]:
        """Yields the pieces of a range."""
        path = part.file.path
        records = has_records(path)
        cut = line_cut if records else self._cutting.cut
        offset, end, size = part.start, None, part.file.known_size
        if size is not None and (part.start > 0 or part.end is not None):
            with part.file.open() as stream:
                offset = find_cut(stream, part.start, cut, self._cutting.context)
                if part.end is not None:
                    end = max(offset, find_cut(stream, part.end, cut, self._cutting.context))
            size = (size if end is None else end) - offset
        with part.file.open(offset, end) as stream:
            for data in stream_pieces(stream, cut, size=size):
                yield Piece(data, path, offset, records)
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
            if not has_records(part.file.path):
                left.documents -= 1
            for piece in self.pieces(part):
                taken = left.take_records(piece.data) if piece.records else left.take_text(piece.data, cut)
                yield piece._replace(data=taken)
                if left.bytes <= 0 or (piece.records and left.none):
                    break
