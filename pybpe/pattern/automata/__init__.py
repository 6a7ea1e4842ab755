r"""A regular expression, compiled to the tables that C cuts text with (csrc/pretok/dfa.c).

    pattern --dialects.parse--> tree --nfa.py--> threads --dfa.py--> states
                                 |
                                 +--alphabet.py--> classes of characters

Conditions on the next character, such as (?!\S), $ and possessive repeats, are part of the automaton. For a construct
that needs more, such as a look-behind, pybpe raises an error that names it. The installed `regex` package decides which
characters are in \p{L} and other properties, so the words are the ones that `regex` finds.
"""

from __future__ import annotations

from functools import lru_cache

from ... import _binding
from ...errors import UnsupportedError
from ..dialects.parse import REGEX, parse
from ..dialects.tree import Alt, Node, Repeat, alt, can_be_empty, run_of, union, without
from .alphabet import Alphabet
from .dfa import states_of
from .nfa import Builder, char_sets

__all__ = ["compiled"]


@lru_cache(maxsize=16)
def compiled(pattern: str, of_bytes: bool = False) -> _binding.Pretok:
    """Returns the splitter with exactly the words that `regex` finds; with `of_bytes`, it reads each byte as the
    character with that code point. UnsupportedError says what in the pattern does not compile."""
    tree = parse(pattern, REGEX)
    if can_be_empty(tree):
        raise UnsupportedError("the pattern can match the empty string")
    tree = _with_gaps(tree)
    alphabet = Alphabet(char_sets(tree))
    builder = Builder(alphabet)
    first = builder.build(tree)
    rows = states_of(builder.threads, first, alphabet.columns)
    return _binding.Pretok.from_automaton(alphabet.ranges, alphabet.size, rows, of_bytes)


def _with_gaps(tree: Node) -> Node:
    """Returns a tree that also matches the text between matches, if that text is always a run of characters with which
    no match begins. The words are the same, and the automaton is faster: it never has to look for the next match."""
    parts = tree.parts if isinstance(tree, Alt) else (tree,)
    sets = [run.members for part in parts if (run := run_of(part)) is not None]
    return alt([tree, Repeat(without(union(sets)), 1, None)]) if len(sets) == len(parts) else tree
