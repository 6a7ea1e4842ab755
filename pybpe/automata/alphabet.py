"""Classes of characters: two characters are in the same class if no set of the pattern contains only one of them."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from ..dialects.parse import REGEX
from ..dialects.tree import NEWLINE, Chars, CharSet, Either, chars
from ..dialects.write import write
from ..errors import UnsupportedError

_MOST_CLASSES = 250  # csrc/dfa.c


@lru_cache(maxsize=64)
def _ends(property_name: str) -> tuple[int, ...]:
    """Returns the ranges of code points with a property, as first, end, first, end, ... in one tuple: (5, 7, 9, 10)
    means the code points 5, 6 and 9."""
    import regex

    name = property_name.lstrip("^")
    runs = regex.finditer(f"(?:{write(chars((), (name,)), REGEX)})+", _all_characters())
    ends = [end for run in runs for end in run.span()]
    if property_name.startswith("^"):
        ends = ends[1:] if ends[:1] == [0] else [0, *ends]
    return tuple(ends)


@lru_cache(maxsize=1)
def _all_characters() -> str:
    return array("I", range(0x110000)).tobytes().decode(f"utf-32-{sys.byteorder[0]}e", "surrogatepass")


def _parts(members: CharSet) -> Iterator[str | tuple[int, int]]:
    """Yields the properties and ranges that a set is made of."""
    if isinstance(members, Chars):
        yield from members.ranges
        yield from members.properties
    else:
        for part in members.sets:
            yield from _parts(part)


class Alphabet:
    """The classes of characters that some sets distinguish, and the columns that the automaton reads.

    Attributes:
        ranges: (first code point, class), ascending, of all code points.
        size: the number of classes.
        columns: the number of columns: one for each class, one for a newline at the end of the text, and one for the
            end of the text.

    A set of columns is an integer with one bit per column.
    """

    def __init__(self, sets: Iterable[CharSet]) -> None:
        self.ranges: list[tuple[int, int]] = []
        self._holding = self._number(
            sorted({part for members in (*sets, NEWLINE) for part in _parts(members)}, key=repr)
        )
        self.size = len(self._holding)
        if self.size > _MOST_CLASSES:
            raise UnsupportedError(
                f"the pattern distinguishes {self.size} classes of characters; at most {_MOST_CLASSES} are supported"
            )
        self.columns = self.size + 2
        self.last_newline, self.end = 1 << self.size, 2 << self.size

    def _number(self, parts: Sequence[str | tuple[int, int]]) -> list[frozenset[str | tuple[int, int]]]:
        """Divides all code points into classes, whose members are in the same parts. Returns these parts per class."""
        ends = {part: _ends(part) if isinstance(part, str) else (part[0], part[1] + 1) for part in parts}
        numbers: dict[frozenset[str | tuple[int, int]], int] = {}
        for first in sorted({0, *(end for found in ends.values() for end in found if end < 0x110000)}):
            holding = frozenset(part for part in parts if bisect_right(ends[part], first) % 2)
            self.ranges.append((first, numbers.setdefault(holding, len(numbers))))
        return list(numbers)

    def _class_of(self, point: int) -> int:
        return self.ranges[bisect_right(self.ranges, (point, self.size)) - 1][1]

    def columns_of(self, members: CharSet) -> int:
        """Returns the columns of the characters of a set."""
        found = sum(1 << i for i, holding in enumerate(self._holding) if _holds(members, holding))
        is_newline = found >> self._class_of(ord("\n")) & 1
        return found | (self.last_newline if is_newline else 0)

    def others(self, columns: int) -> int:
        """Returns all other columns."""
        return ((1 << self.columns) - 1) & ~columns


def _holds(members: CharSet, holding: frozenset[str | tuple[int, int]]) -> bool:
    """Returns whether the characters that are in exactly these parts are in a set."""
    if isinstance(members, Chars):
        return members.negated != any(part in holding for part in (*members.ranges, *members.properties))
    test = any if isinstance(members, Either) else all
    return test(_holds(part, holding) for part in members.sets)
