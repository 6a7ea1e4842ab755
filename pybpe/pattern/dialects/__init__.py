"""Translates regular expressions between the dialects of three engines: Python's regex package, which pybpe uses,
fancy-regex (tiktoken) and Oniguruma (Hugging Face tokenizers).

parse.py reads a pattern into a tree (tree.py), whose nodes mean the same in every engine, and write.py writes a pattern
from it. A construct that one engine reads differently becomes one that all engines read in the same way:

    tiktoken    [\\p{L}&&[^\\p{Han}]]+    pybpe         (?:(?=\\p{L})\\P{Han})+
    pybpe       \\w                       Hugging Face  [\\p{Alphabetic}\\p{M}\\d\\p{Pc}\\x{200c}-\\x{200d}]

pybpe refuses a construct that is not known to mean the same, and the error says where it is. The engines use different
versions of Unicode, so an engine may not know the class of a recently assigned character and may split it differently.

Sources: the documentation of regex (PyPI), of the crates regex-syntax and fancy-regex, and doc/RE of Oniguruma; and
tests of what the engines match, character by character (tests/py/test_dialects.py).
"""

from __future__ import annotations

from ...errors import UnsupportedError
from .cover import first_uncovered
from .parse import ONIGURUMA, REGEX, RUST, Dialect, parse
from .tree import Node, can_be_empty, written_out
from .write import write

__all__ = ["ONIGURUMA", "REGEX", "RUST", "Dialect", "parse", "translate", "written", "written_out"]


def translate(pattern: str, source: Dialect, target: Dialect, *, whole: bool = False) -> str:
    """Translates a pattern to another dialect, with the same matches. Returns it unchanged if it means the same there.
    UnsupportedError says what construct, and where, is not known to mean the same. A pattern that can match the empty
    string is refused, and with `whole` one that may leave text unmatched."""
    tree = parse(pattern, source)
    if can_be_empty(tree):
        raise UnsupportedError("the pattern can match the empty string, after which engines continue differently")
    uncovered = first_uncovered(tree) if whole else None
    if uncovered is not None:
        raise UnsupportedError(
            f"the pattern may leave text unmatched, such as U+{uncovered:04X}, which the other library drops and pybpe"
            " keeps; let its last alternative match everything, as in ...|[\\s\\S]"
        )
    if _reads_the_same(pattern, tree, target):
        return pattern
    return written(tree, target)


def written(tree: Node, target: Dialect) -> str:
    """Returns the regular expression with the matches of a tree. Raises UnsupportedError for what the engine handles
    incorrectly."""
    spelled = write(tree, target)
    try:
        parse(spelled, target)
    except UnsupportedError:
        spelled = write(tree, target, apart=True)
        parse(spelled, target)
    return spelled


def _reads_the_same(pattern: str, tree: Node, target: Dialect) -> bool:
    try:
        return parse(pattern, target) == tree
    except UnsupportedError:
        return False
