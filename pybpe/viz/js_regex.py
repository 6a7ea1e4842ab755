r"""Translates regular expressions of Python's `regex` package to JavaScript (flag u). Their matches stay the same.

pybpe/pattern/dialects parses the pattern into a tree, from which this module writes JavaScript. The differences:

    \s          White_Space; JavaScript's \s includes U+FEFF and lacks U+0085     \p{White_Space}
    \d \w       by Unicode properties; JavaScript's are ASCII                      \p{Nd} ...
    .           all but \n; JavaScript's also excludes \r, U+2028 and U+2029       [^\n]
    $           also matches before a newline that ends the text                   (?=\n?$)
    X++ (?>X)   possessive and atomic, which JavaScript lacks                      (?=(?<a1>X+))\k<a1>
    (?i:s)      new in JavaScript in 2024; some letters have a third form          [Ss\u{17f}]

JavaScript never backtracks into a lookahead, so the group that it captured is atomic. pybpe refuses a construct that is
not known to mean the same, and says why. It also refuses a pattern that can match the empty string, because the two
engines continue differently after an empty match.
"""

from __future__ import annotations

from ..errors import UnsupportedError
from ..pattern import THEN
from ..pattern.dialects import REGEX
from ..pattern.dialects.classes import SCRIPTS
from ..pattern.dialects.parse import parse
from ..pattern.dialects.tree import ANY, Chars, can_be_empty, without
from ..pattern.dialects.write import Writer

# Browsers have newer versions of Unicode, in which other characters are assigned.
_UNKNOWN = frozenset(["C", "Cn"])


def translate(pattern: str) -> str:
    """Returns the source of a JavaScript RegExp with the flag u. Raises UnsupportedError if the pattern cannot be
    translated, or can match the empty string."""
    if THEN in pattern:
        raise UnsupportedError("the pattern has several steps, each of which splits the pieces of the step before it")
    tree = parse(pattern, REGEX)
    if can_be_empty(tree):
        raise UnsupportedError("the pattern can match the empty string")
    return _JavaScript().alternatives(tree)


class _JavaScript(Writer):
    def __init__(self) -> None:
        super().__init__(REGEX)
        self._groups = 0

    def possessive(self, base: str, count: str) -> str:
        return self.atomic(base + count)

    def atomic(self, source: str) -> str:
        self._groups += 1
        name = f"a{self._groups}"
        return f"(?:(?=(?<{name}>{source}))\\k<{name}>)"

    def anchor(self, start: bool) -> str:
        return "^" if start else "$"

    def short(self, members: Chars) -> str | None:
        return {ANY: "[^]", without(ANY): "[]"}.get(members)

    def property(self, name: str, negated: bool) -> str:
        if name in _UNKNOWN:
            raise UnsupportedError(f"the pattern has \\p{{{name}}}, which depends on the version of Unicode")
        return f"\\{'P' if negated else 'p'}{{{'Script=' * (name in SCRIPTS)}{name}}}"

    def char(self, point: int) -> str:
        char = chr(point)
        return char if char.isascii() and char.isalnum() else f"\\u{{{point:x}}}"
