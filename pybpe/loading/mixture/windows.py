"""The windows of several sources, by one index: those of the first source, then those of the second, and so on."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from ..._numpy import Array, numpy
from ..windows import PackedSequences


class Windows:
    """The windows of several sources as one sequence.

    Args:
        parts: the sources, at least one. Their windows all have the same length.
    """

    def __init__(self, parts: Sequence[PackedSequences]) -> None:
        self._parts = parts
        self._starts = [0, *accumulate(map(len, parts))]
        self.length = parts[0].sequence_length

    def __len__(self) -> int:
        return self._starts[-1]

    def ids(self, index: int) -> Array:
        """Returns a window's inputs and its last target: shape (length + 1,): see PackedSequences.ids.

        Raises:
            IndexError: there is no such window. FormatError: see PackedSequences.
        """
        part, index = self._place(index)
        return part.ids(index)

    def _place(self, index: int) -> tuple[PackedSequences, int]:
        """Returns the source of a window, and the window's index in it."""
        if not -len(self) <= index < len(self):
            raise IndexError(f"window {index} is out of range: there are {len(self)}")
        index += len(self) if index < 0 else 0
        part = bisect_right(self._starts, index) - 1
        return self._parts[part], index - self._starts[part]

    def batch(self, indices: Sequence[int]) -> Array:
        """Returns the inputs and the targets of some windows: int64, shape (2, indices, length). See `ids`."""
        both = numpy.empty((2, len(indices), self.length), dtype=numpy.int64)
        if len(indices):
            places = map(self._place, indices)
            ids = numpy.concatenate([part.ids(index) for part, index in places]).reshape(len(indices), -1)
            both[0], both[1] = ids[:, :-1], ids[:, 1:]
        return both
