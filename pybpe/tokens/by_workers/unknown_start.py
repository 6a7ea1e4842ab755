"""Places marks in tokens of which nobody knows yet whether they begin inside a document.

That matters only until the first id, mark, or end of a document. So the tokens of both cases differ by at most one at
the start:

    prepend    begins inside: 5 6 E 7      otherwise: E 5 6 E 7
    append     begins inside: E 5 6        otherwise: 5 6          (the text begins with a mark)

`UnknownStart` returns the longer ones. The shorter ones are the same without the first token.
"""

from __future__ import annotations

from array import array
from typing import NamedTuple

from ..eot import EotPlacer

Placed = tuple["array[int] | memoryview", "array[int] | memoryview"]


class StartCases(NamedTuple):
    """How the tokens depend on whether they begin inside a document. Each field holds plain integers, for messages.

    Attributes:
        dropped: the number of tokens to drop if they do not, and if they do.
        documents: the number of documents less if they do.
        is_open: whether they end inside a document if they do not begin in one, and if they do.
    """

    dropped: tuple[int, int]
    documents: int
    is_open: tuple[int, int]


class UnknownStart:
    """As EotPlacer, for both cases at once.

    Args:
        mode, eot: as in EotPlacer.
    """

    def __init__(self, mode: str, eot: int | None) -> None:
        self._placers = EotPlacer(mode, eot, False), EotPlacer(mode, eot, True)
        self._dropped, self._documents = (0, 0), 0

    @property
    def start(self) -> StartCases:
        """The differences so far."""
        outside, inside = self._placers
        return StartCases(self._dropped, self._documents, (int(outside.is_open), int(inside.is_open)))

    @property
    def _is_known(self) -> bool:
        outside, inside = self._placers
        return outside.is_open == inside.is_open

    def place(self, ids: array[int], marks: int) -> Placed:
        """Returns the longer tokens, and where in them documents begin if they do not begin inside one."""
        outside, inside = self._placers
        if self._is_known:
            placed = outside.place(ids, marks)
            inside.is_open = outside.is_open
            return placed
        return self._longer(outside.place(ids, marks), inside.place(ids, marks))

    def end_document(self, typecode: str) -> array[int] | memoryview:
        """Returns the mark, if any, that the end of a document needs."""
        outside, inside = self._placers
        if self._is_known:
            inside.is_open = False
            return outside.end_document(typecode)
        none = array("Q")
        return self._longer((outside.end_document(typecode), none), (inside.end_document(typecode), none))[0]

    def _longer(self, outside: Placed, inside: Placed) -> Placed:
        size = max(len(outside[0]), len(inside[0]))
        self._dropped = size - len(outside[0]), size - len(inside[0])
        self._documents = len(outside[1]) - len(inside[1])
        tokens = outside[0] if len(outside[0]) == size else inside[0]
        return tokens, array("Q", [start + self._dropped[0] for start in outside[1]])
