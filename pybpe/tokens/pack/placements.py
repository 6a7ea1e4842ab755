"""Keeps the rows of all pieces of a split in a file, since the rows are counted before they are written.

The file has about 20 bytes per piece, so memory is that of one group of documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO

from ..._numpy import Array, numpy
from ..token_files import TokenStream
from .layout import Placed
from .pieces import Group, Pieces


class Placements:
    """The groups of a split with the rows of their pieces, in a file.

    Args:
        stream: the tokens of the split.
        file: an empty file, open for writing and reading.

    Attributes:
        rows: the number of rows in all groups.
    """

    def __init__(self, stream: TokenStream, file: IO[bytes]) -> None:
        self._stream, self._file = stream, file
        self._groups: list[tuple[int, int]] = []  # where the ids of each begin and end
        self.rows = 0

    def write(self, placed: Iterable[tuple[Group, Placed]]) -> None:
        """Writes all groups."""
        for group, each in placed:
            pieces = each.pieces
            table = numpy.stack([pieces.starts, pieces.texts, pieces.begins, pieces.ends, each.rows])
            numpy.save(self._file, table.astype(numpy.min_scalar_type(int(table.max(initial=0)))))
            self._groups.append((group.start, group.start + len(group.ids)))
            self.rows += each.count

    def read(self) -> Iterator[tuple[Array, Placed]]:
        """Yields the ids of each group, and the rows of its pieces."""
        self._file.seek(0)
        for start, end in self._groups:
            starts, texts, begins, ends, rows = numpy.load(self._file, allow_pickle=False).astype(numpy.int64)
            pieces = Pieces(starts, texts, begins.astype(bool), ends.astype(bool))
            yield self._stream.slice(start, end), Placed(pieces, rows)
