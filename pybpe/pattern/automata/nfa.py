r"""Turns a tree into threads: what a backtracking engine tries, in its order.

A thread is at one of these places. Each place has a number:

    Take(columns, to)        reads one character of these columns
    Split(ways)              tries one way after the other
    Guard(columns, to)       continues if the next column is one of these, and reads nothing
    MATCH                    a match ends here

A possessive repeat of a set matches as many characters as there are, so X*+ is X*(?!X), which is X* and a guard. The
same is true of X{2,5}+, except that there is no guard after five characters. At the end of the pattern, possessive
repeats and atomic groups match the same as others, because nothing that follows can fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ...errors import UnsupportedError
from ..dialects.tree import NEWLINE, Alt, Atomic, Both, Chars, CharSet, Either, End, Look, Node, Repeat, Seq, Start
from .alphabet import Alphabet

_MOST_THREADS = 20_000
_LAST_NEWLINE = Seq((Repeat(NEWLINE, 0, 1), End()))  # what $ looks for

MATCH = 0


class Take(NamedTuple):
    """Reads a character."""

    columns: int
    to: int


class Split(NamedTuple):
    """Tries one way after the other."""

    ways: tuple[int, ...]


class Guard(NamedTuple):
    """Looks at what comes next."""

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
    """Returns the set if a node matches one character of a set; None if it is something else."""
    if isinstance(node, (Chars, Either, Both)):
        return node
    if isinstance(node, Atomic):
        return _as_set(node.part)
    if isinstance(node, Alt):
        sets = [members for part in node.parts if (members := _as_set(part)) is not None]
        return Either(tuple(sets)) if len(sets) == len(node.parts) else None
    return None


class Builder:
    """Makes the threads of trees, from their ends to their beginnings. `threads` has them by number; MATCH is
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
            return self._atomic(node.part, to)
        return self._add(Guard(self._next_columns(node), to))

    def _add(self, thread: Thread) -> int:
        if len(self.threads) >= _MOST_THREADS:
            raise UnsupportedError("the pattern repeats too much: its automaton has too many states")
        self.threads.append(thread)
        return len(self.threads) - 1

    def _atomic(self, part: Node, to: int) -> int:
        if to == MATCH or _as_set(part) is not None or isinstance(part, (Look, Start, End)):
            return self.build(part, to)
        if isinstance(part, Repeat) and part.mode == "" and _as_set(part.part) is not None:
            return self._repeat(Repeat(part.part, part.least, part.most, "+"), to)
        raise UnsupportedError("the pattern has an atomic group of more than one repeated set of characters")

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
        """Returns the columns with which a match of the node of a lookahead begins."""
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
