"""Turns threads into states, by the subset construction with priorities.

A state is the list of threads that a backtracking engine would still have to try before it reads the next character, in
the order in which it would try them. For each column, the code follows the threads to where they read a character or
match. It drops the threads after a match, since the engine would return that match before it tried them; only threads
before the match can replace it by another one. (RE2 and Rust's regex-automata do the same.)
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

from ...errors import UnsupportedError
from .nfa import MATCH, Guard, Take, Thread

ACCEPT = 0x8000
_MOST_STATES = 4096  # csrc/pretok/dfa.c
_MOST_WORK = 500_000  # steps from thread to thread, which take some tenths of a second

_TOO_MANY = "the automaton of the pattern has too many states"

_State = tuple[int, ...]


class _Work:
    """Counts the steps of all states together: a few states of many threads take as long as many states of a few."""

    def __init__(self) -> None:
        self._steps = 0

    def add(self, steps: int) -> None:
        self._steps += steps
        if self._steps > _MOST_WORK:
            raise UnsupportedError(_TOO_MANY)


def states_of(threads: Sequence[Thread], first: int, columns: int) -> array[int]:
    """Returns the rows of all states, in the layout of pybpe_automaton in csrc/pybpe_train.h."""
    numbers: dict[_State, int] = {(): 0}
    pending: list[_State] = [(first,)]  # the first state, which differs from all others: nothing leads to it
    rows = array("H", [0] * columns)
    work = _Work()
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


def _leaves(threads: Sequence[Thread], state: _State, columns: int, work: _Work) -> list[tuple[int, int]]:
    """Returns (number of a Take or MATCH, columns) for each place that the threads reach without reading, in order."""
    seen: dict[int, int] = {}
    found = []
    stack = [(number, (1 << columns) - 1) for number in reversed(state)]
    while stack:
        number, allowed = stack.pop()
        work.add(1)
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
    threads: Sequence[Thread], leaves: list[tuple[int, int]], columns: int, work: _Work
) -> tuple[list[dict[int, None]], int]:
    """Returns the threads that each column leads to, in order, and the columns before which a match ends."""
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
            work.add(allowed.bit_count())
            while allowed:
                column = allowed.bit_length() - 1
                allowed ^= 1 << column
                targets[column].setdefault(thread.to)
    return targets, ((1 << columns) - 1) & ~open_columns
