"""Regular expressions in the dialects of three engines: Python's regex package, which pybpe runs, fancy-regex
(tiktoken) and Oniguruma (Hugging Face tokenizers).

A pattern is read into a tree (parse.py, tree.py), whose nodes mean the same everywhere, and written from it (write.py).
What one engine reads differently becomes something that all read alike:

    tiktoken's  [\\p{L}&&[^\\p{Han}]]+    here  (?:(?=\\p{L})\\P{Han})+
    here        \\w                       Hugging Face's  [\\p{Alphabetic}\\p{M}\\d\\p{Pc}\\x{200c}-\\x{200d}]

What is not known to mean the same is refused, with its place. The engines' versions of Unicode differ, so characters
that were assigned lately may be of no class there, and be cut differently.

Sources: the documentation of regex (PyPI), of the crates regex-syntax and fancy-regex, doc/RE of Oniguruma; and what
they match, character by character (tests/py/test_dialects.py).
"""

from __future__ import annotations

from ..errors import UnsupportedError
from .cover import first_uncovered
from .parse import ONIGURUMA, REGEX, RUST, Dialect, parse
from .tree import Node, can_be_empty
from .write import write

__all__ = ["ONIGURUMA", "REGEX", "RUST", "Dialect", "translate"]


def translate(pattern: str, source: Dialect, target: Dialect, *, whole: bool = False) -> str:
    """The pattern of one dialect in another one, with the same matches. It is unchanged if it means the same there.

    Args:
        whole: refuse a pattern that may leave text unmatched.

    Raises:
        UnsupportedError: it has something that is not known to mean the same, can match nothing, or may leave text
            unmatched; the message says what, and where.
    """
    tree = parse(pattern, source)
    if can_be_empty(tree):
        raise UnsupportedError("the pattern can match nothing, after which engines continue differently")
    uncovered = first_uncovered(tree) if whole else None
    if uncovered is not None:
        raise UnsupportedError(
            f"the pattern may leave text unmatched, such as U+{uncovered:04X}, and what is unmatched is dropped there"
            " and kept here; let its last alternative match everything, as in ...|[\\s\\S]"
        )
    if _reads_the_same(pattern, tree, target):
        return pattern
    written = write(tree, target)
    parse(written, target)  # refuses what the engine gets wrong
    return written


def _reads_the_same(pattern: str, tree: Node, target: Dialect) -> bool:
    try:
        return parse(pattern, target) == tree
    except UnsupportedError:
        return False
