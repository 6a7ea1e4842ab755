r"""A regular expression, compiled to the tables that C cuts text with (csrc/pretok/dfa.c).

    pattern --dialects.parse--> tree --> threads --> states
                                 |
                                 +--> classes of characters

Conditions on the next character, such as (?!\S), $ and possessive repeats, are part of the automaton. For a construct
that needs more, such as a look-behind, pybpe raises an error that names it. The installed `regex` package decides which
characters are in \p{L} and other properties, so the words are the ones that `regex` finds.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from .. import _binding
from .._lazy import regex
from ..errors import UnsupportedError
from .dialects import REGEX, parse, write
from .dialects.tree import (
    NEWLINE,
    Alt,
    Atomic,
    Both,
    Chars,
    CharSet,
    Either,
    End,
    Look,
    Node,
    Repeat,
    Seq,
    Start,
    alt,
    can_be_empty,
    chars,
    run_of,
    union,
    without,
)

# ----------------------------------------------------------------------------------------------------
# Classes of characters: two characters are in the same class if no set of the pattern contains only one of them.


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
    """The classes of characters that some sets distinguish, and the columns that the automaton reads: one per class,
    one for a newline at the end of the text, and one for the end of the text. A set of columns is an integer
    with one bit per column. `ranges` are (first code point, class), ascending, of all code points. `size` is the number
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


# ----------------------------------------------------------------------------------------------------
# Turns a tree into threads: the attempts of a backtracking engine, in its order.
#
# A thread is at one of these places, which are numbers:
#
#     Take(columns, to)        reads one character of these columns
#     Split(ways)              tries one way after the other
#     Guard(columns, to)       continues if the next column is one of these, and reads nothing
#     MATCH                    a match ends here
#
# A possessive repeat of a set matches as many characters as there are, so X*+ is X*(?!X), which is X* and a guard. The
# same is true of X{2,5}+, except that there is no guard after five characters. At the end of the pattern, possessive
# repeats and atomic groups match the same as others, because nothing that follows can fail.


_MOST_THREADS = 20_000
_LAST_NEWLINE = Seq((Repeat(NEWLINE, 0, 1), End()))  # the place that $ looks for

MATCH = 0


class Take(NamedTuple):
    """Reads a character."""

    columns: int
    to: int


class Split(NamedTuple):
    """Tries one way after the other."""

    ways: tuple[int, ...]


class Guard(NamedTuple):
    """Looks ahead."""

    columns: int
    to: int


Thread = Take | Split | Guard


def char_sets(node: Node) -> Iterator[CharSet]:
    """Yields all sets of characters in a tree."""
    if isinstance(node, (Chars, Either, Both)):
        yield node
    elif isinstance(node, (Seq, Alt)):
        for part in node.parts:
            yield from char_sets(part)
    elif isinstance(node, (Repeat, Atomic, Look)):
        yield from char_sets(node.part)


def _as_set(node: Node) -> CharSet | None:
    """Returns the set if a node matches one character of a set, or None if it is something else."""
    if isinstance(node, (Chars, Either, Both)):
        return node
    if isinstance(node, Atomic):
        return _as_set(node.part)
    if isinstance(node, Alt):
        sets = [members for part in node.parts if (members := _as_set(part)) is not None]
        return Either(tuple(sets)) if len(sets) == len(node.parts) else None
    return None


class Builder:
    """Makes the threads of trees, from their ends to their beginnings. `threads` has them by number. MATCH is
    Split(())."""

    def __init__(self, alphabet: Alphabet) -> None:
        self._alphabet = alphabet
        self.threads: list[Thread] = [Split(())]

    def build(self, node: Node, to: int = MATCH) -> int:
        """Returns where a thread begins that matches a node and continues at `to`."""
        if isinstance(node, (Chars, Either, Both)):
            return self._add(Take(self._alphabet.columns_of(node), to))
        if isinstance(node, Seq):
            for part in reversed(node.parts):
                to = self.build(part, to)
            return to
        if isinstance(node, Alt):
            return self._add(Split(tuple([self.build(part, to) for part in node.parts])))
        if isinstance(node, Repeat):
            return self._repeat(node, to)
        if isinstance(node, Atomic):
            if to == MATCH or _as_set(node.part) is not None or isinstance(node.part, (Look, Start, End)):
                return self.build(node.part, to)
            if isinstance(node.part, Repeat) and node.part.mode == "" and _as_set(node.part.part) is not None:
                return self._repeat(Repeat(node.part.part, node.part.least, node.part.most, "+"), to)
            raise UnsupportedError("the pattern has an atomic group of more than one repeated set of characters")
        return self._add(Guard(self._next_columns(node), to))

    def _add(self, thread: Thread) -> int:
        if len(self.threads) >= _MOST_THREADS:
            raise UnsupportedError("the pattern repeats too much: its automaton has too many states")
        self.threads.append(thread)
        return len(self.threads) - 1

    def _repeat(self, node: Repeat, to: int) -> int:
        leave = to
        if node.mode == "+" and to != MATCH:
            members = _as_set(node.part)
            if members is None:
                raise UnsupportedError("the pattern has a possessive repeat of more than a set of characters")
            leave = self._add(Guard(self._alphabet.others(self._alphabet.columns_of(members)), to))
        lazy = node.mode == "?"
        if node.most is None:
            entry = self._add(Split(()))
            self.threads[entry] = self._choice(self.build(node.part, entry), leave, lazy)
        else:
            entry = to  # no guard after the last repetition: it may be followed by more characters of the set
            for _ in range(node.most - node.least):
                entry = self._add(self._choice(self.build(node.part, entry), leave, lazy))
        for _ in range(node.least):
            entry = self.build(node.part, entry)
        return entry

    @staticmethod
    def _choice(more: int, leave: int, lazy: bool) -> Split:
        return Split((leave, more) if lazy else (more, leave))

    def _next_columns(self, node: Node) -> int:
        """Returns the columns that may come next, for a node that reads nothing."""
        if isinstance(node, Start):
            raise UnsupportedError("the pattern has ^ or \\A, which match at the start of the text")
        if isinstance(node, End):
            return self._alphabet.end
        assert isinstance(node, Look)
        if node.behind:
            raise UnsupportedError("the pattern has a look-behind, or a word boundary")
        columns = self._seen_columns(node.part)
        return self._alphabet.others(columns) if node.negated else columns

    def _seen_columns(self, node: Node) -> int:
        """Returns the columns that a match of the node of a lookahead begins with."""
        members = _as_set(node)
        if members is not None:
            return self._alphabet.columns_of(members)
        if isinstance(node, (End, Look)):
            return self._next_columns(node)
        if node == _LAST_NEWLINE:
            return self._alphabet.end | self._alphabet.last_newline
        if isinstance(node, Alt):
            columns = 0
            for part in node.parts:
                columns |= self._seen_columns(part)
            return columns
        raise UnsupportedError("the pattern has a lookahead at more than one character")


# ----------------------------------------------------------------------------------------------------
# Turns threads into states, by the subset construction with priorities.
#
# A state is the list of threads that a backtracking engine would still have to try before it reads the next character,
# in the order in which it would try them. For every column, the code follows the threads to where they read a character
# or match. It drops the threads after a match, since the engine would return that match before it tried them. Only
# threads before the match can replace it by another one. (RE2 and Rust's regex-automata do the same.)


ACCEPT = 0x8000
_MOST_STATES = 4096  # csrc/pretok/dfa.c
_MOST_WORK = 500_000  # steps from thread to thread, which take some tenths of a second

_TOO_MANY = "the automaton of the pattern has too many states"

_State = tuple[int, ...]


def states_of(threads: Sequence[Thread], first: int, columns: int) -> array[int]:
    """Returns the rows of all states, in the layout of pybpe_automaton in csrc/pybpe_train.h."""
    numbers: dict[_State, int] = {(): 0}
    pending: list[_State] = [(first,)]  # the first state, which differs from all others: nothing leads to it
    rows, done = array("H", [0] * columns), 0

    def work(steps: int) -> None:
        """Counts the steps of all states together: a few states of many threads take as long as many of a few."""
        nonlocal done
        done += steps
        if done > _MOST_WORK:
            raise UnsupportedError(_TOO_MANY)

    for state in pending:
        targets, accepting = _steps(threads, _leaves(threads, state, columns, work), columns, work)
        for column, target in enumerate(map(tuple, targets)):
            if target not in numbers:
                numbers[target] = len(pending) + 1
                pending.append(target)
            rows.append(numbers[target] | (ACCEPT if accepting >> column & 1 else 0))
        if len(pending) >= _MOST_STATES:
            raise UnsupportedError(_TOO_MANY)
    return rows


def _leaves(
    threads: Sequence[Thread], state: _State, columns: int, work: Callable[[int], None]
) -> list[tuple[int, int]]:
    """Returns (number of a Take or MATCH, columns) for all places that the threads reach without reading, in order."""
    seen: dict[int, int] = {}
    found = []
    stack = [(number, (1 << columns) - 1) for number in reversed(state)]
    while stack:
        number, allowed = stack.pop()
        work(1)
        allowed &= ~seen.get(number, 0)  # a thread that was here earlier, for these columns, has priority
        if not allowed:
            continue
        seen[number] = seen.get(number, 0) | allowed
        thread = threads[number]
        if isinstance(thread, Guard):
            stack.append((thread.to, allowed & thread.columns))
        elif isinstance(thread, Take) or number == MATCH:
            found.append((number, allowed))
        else:
            stack.extend((way, allowed) for way in reversed(thread.ways))
    return found


def _steps(
    threads: Sequence[Thread], leaves: list[tuple[int, int]], columns: int, work: Callable[[int], None]
) -> tuple[list[dict[int, None]], int]:
    """Returns the threads that the columns lead to, in order, and the columns before which a match ends."""
    targets: list[dict[int, None]] = [{} for _ in range(columns)]
    open_columns = (1 << columns) - 1
    for number, allowed in leaves:
        allowed &= open_columns
        thread = threads[number]
        if number == MATCH:
            open_columns &= ~allowed
        else:
            assert isinstance(thread, Take)
            allowed &= thread.columns
            work(allowed.bit_count())
            while allowed:
                column = allowed.bit_length() - 1
                allowed ^= 1 << column
                targets[column].setdefault(thread.to)
    return targets, ((1 << columns) - 1) & ~open_columns


# ----------------------------------------------------------------------------------------------------


__all__ = ["compiled"]


@lru_cache(maxsize=16)
def compiled(pattern: str, of_bytes: bool = False) -> _binding.Pretok:
    """Returns the splitter with exactly the words that `regex` finds. With `of_bytes`, it reads a byte as the
    character with that code point. UnsupportedError names the part of the pattern that does not compile."""
    tree = parse(pattern, REGEX)
    if can_be_empty(tree):
        raise UnsupportedError("the pattern can match the empty string")
    # The tree also matches the text between matches, if that is always a run of characters that begin no match.
    # The words are the same, and the automaton is faster: it never has to look for the next match.
    parts = tree.parts if isinstance(tree, Alt) else (tree,)
    sets = [run[0] for part in parts if (run := run_of(part)) is not None]
    tree = alt([tree, Repeat(without(union(sets)), 1, None)]) if len(sets) == len(parts) else tree
    alphabet = Alphabet(char_sets(tree))
    builder = Builder(alphabet)
    first = builder.build(tree)
    rows = states_of(builder.threads, first, alphabet.columns)
    return _binding.Pretok.from_automaton(alphabet.ranges, alphabet.size, rows, of_bytes)
