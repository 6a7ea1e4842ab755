"""Classes of characters: two characters are in the same class if no set of the pattern contains only one of them."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import lru_cache

from ..._lazy import regex
from ...errors import UnsupportedError
from ..dialects.parse import REGEX
from ..dialects.tree import NEWLINE, Chars, CharSet, Either, chars
from ..dialects.write import write

_MOST_CLASSES = 250  # csrc/pretok/dfa.c


@lru_cache(maxsize=64)
def _ends(property_name: str) -> tuple[int, ...]:
    """Returns the ranges of code points with a property, as first, end, first, end, ... in one tuple: (5, 7, 9, 10)
    means the code points 5, 6 and 9."""
    name = property_name.lstrip("^")
    runs = regex.finditer(f"(?:{write(chars((), (name,)), REGEX)})+", _all_characters())
    ends = [end for run in runs for end in run.span()]
    if property_name.startswith("^"):
        ends = ends[1:] if ends[:1] == [0] else [0, *ends]
    return tuple(ends)


@lru_cache(maxsize=1)
def _all_characters() -> str:
    return array("I", range(0x110000)).tobytes().decode(f"utf-32-{sys.byteorder[0]}e", "surrogatepass")


_Part = str | tuple[tuple[int, int], ...]  # a property, or all ranges of a class


def _parts(members: CharSet) -> Iterator[_Part]:
    """Yields the properties and ranges that a set is made of."""
    if isinstance(members, Chars):
        yield members.ranges
        yield from members.properties
    else:
        for part in members.sets:
            yield from _parts(part)


class Alphabet:
    """The classes of characters that some sets distinguish, and the columns that the automaton reads: one for each
    class, one for a newline at the end of the text, and one for the end of the text. A set of columns is an integer
    with one bit per column. `ranges` are (first code point, class), ascending, of all code points; `size` is the number
    of classes."""

    def __init__(self, sets: Iterable[CharSet]) -> None:
        self.ranges: list[tuple[int, int]] = []
        parts = dict.fromkeys(part for members in (*sets, NEWLINE) for part in _parts(members))
        self._bits = {part: 1 << i for i, part in enumerate(parts)}
        self._holding = self._number()
        self._known: dict[int, tuple[CharSet, int]] = {}
        self.size = len(self._holding)
        self.columns = self.size + 2
        self.last_newline, self.end = 1 << self.size, 2 << self.size

    def _number(self) -> list[int]:
        """Divides all code points into classes, whose members are in the same parts. Returns these parts per class, as
        the sum of their bits."""
        changes = {0: 0}
        for part, bit in self._bits.items():
            for end in _ends(part) if isinstance(part, str) else (end for a, b in part for end in (a, b + 1)):
                changes[end] = changes.get(end, 0) ^ bit
        numbers: dict[int, int] = {}
        holding = 0
        for first in sorted(end for end in changes if end < 0x110000):
            holding ^= changes[first]
            self.ranges.append((first, numbers.setdefault(holding, len(numbers))))
            if len(numbers) > _MOST_CLASSES:
                raise UnsupportedError(f"the pattern distinguishes more than {_MOST_CLASSES} classes of characters")
        return list(numbers)

    def columns_of(self, members: CharSet) -> int:
        """Returns the columns of the characters of a set."""
        if id(members) not in self._known:  # repeats ask for the same set many times
            found = sum(1 << i for i, holding in enumerate(self._holding) if self._holds(members, holding))
            is_newline = found >> self.ranges[bisect_right(self.ranges, (ord("\n"), self.size)) - 1][1] & 1
            self._known[id(members)] = members, found | (self.last_newline if is_newline else 0)
        return self._known[id(members)][1]

    def others(self, columns: int) -> int:
        """Returns all other columns."""
        return ((1 << self.columns) - 1) & ~columns

    def _holds(self, members: CharSet, holding: int) -> bool:
        """Returns whether the characters that are in exactly these parts are in a set."""
        if isinstance(members, Chars):
            return members.negated != any(holding & self._bits[part] for part in _parts(members))
        test = any if isinstance(members, Either) else all
        return test(self._holds(part, holding) for part in members.sets)
