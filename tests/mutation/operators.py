r"""The small faults that a mutation run puts into C source, one at a time.

    if (n > cap)      ->    if (n >= cap)      if (n <= cap)      if (true)       if (false)
    count += 1;       ->    count -= 1;        count = 1;         count += 2;      ;
    break;            ->    ;

Comments, strings, characters and preprocessor lines are left alone. Some faults do not compile.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

# The first two lines of this expression are code that no test can reach: see tests/coverage.py.
_HIDDEN = re.compile(
    r"""^[^\n]*LCOV_EXCL_START.*?LCOV_EXCL_STOP |
        ^[^\n]*LCOV_EXCL_LINE[^\n]* |
        /\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+' | ^[ \t]*\#(?:\\\n|[^\n])*""",
    re.DOTALL | re.MULTILINE | re.VERBOSE,
)
# What each operator becomes. All stand between spaces, as clang-format writes binary operators.
_SWAPS = {
    " < ": (" <= ", " >= "),
    " <= ": (" < ", " > "),
    " > ": (" >= ", " <= "),
    " >= ": (" > ", " < "),
    " == ": (" != ",),
    " != ": (" == ",),
    " && ": (" || ",),
    " || ": (" && ",),
    " + ": (" - ",),
    " - ": (" + ",),
    " % ": (" / ",),
    " << ": (" >> ",),
    " >> ": (" << ",),
    " | ": (" & ",),
    " ^ ": (" | ",),
    " += ": (" -= ", " = "),
    " -= ": (" += ",),
    " |= ": (" = ", " &= "),
    "++": ("--",),
    "--": ("++",),
}
_OPERATOR = re.compile("|".join(re.escape(text) for text in sorted(_SWAPS, key=len, reverse=True)))
_CONDITION = re.compile(r"\b(?:if|while) \((?P<inside>[^;{}]*)\) \{")
_NUMBER = re.compile(r"(?<![\w.'])(?P<digits>\d{1,4})(?![\w.'])")
_NO_STATEMENT = r"(?!(?:return|const|static|enum|typedef|struct|case)\b)"
_STATEMENT = re.compile(
    rf"^ +(?P<code>{_NO_STATEMENT}[\w.>\[\]*&-]+(?:\(| [-+|&^]?= |\+\+|--)[^{{}}\n]*;)$", re.MULTILINE
)
_JUMP = re.compile(r"^ +(?P<code>break;|continue;)$", re.MULTILINE)


@dataclass(frozen=True)
class Mutant:
    """One fault.

    Attributes:
        start, end: the part of the source that is replaced.
        text: what replaces it.
        line: its line, from 1.
    """

    start: int
    end: int
    text: str
    line: int

    def apply(self, source: str) -> str:
        """Returns the source with the fault."""
        return source[: self.start] + self.text + source[self.end :]

    def describe(self, source: str) -> str:
        """Returns the line, and what changes in it."""
        return f"{self.line}: {source[self.start : self.end].strip()!r} -> {self.text.strip()!r}"


def _code(source: str) -> str:
    """Returns the source with blanks for all that is not code. No other character moves."""
    return _HIDDEN.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)


def _replacements(code: str) -> Iterator[tuple[int, int, str]]:
    for found in _OPERATOR.finditer(code):
        yield from ((found.start(), found.end(), text) for text in _SWAPS[found[0]])
    for found in _CONDITION.finditer(code):
        yield from ((*found.span("inside"), text) for text in ("true", "false"))
    for found in _NUMBER.finditer(code):
        yield (*found.span("digits"), str(int(found["digits"]) + 1))
    for pattern in (_STATEMENT, _JUMP):
        yield from ((*found.span("code"), ";") for found in pattern.finditer(code))


def mutants(source: str) -> list[Mutant]:
    """Returns all faults for a C source, in a fixed order."""
    code = _code(source)
    found = sorted(set(_replacements(code)))
    return [Mutant(start, end, text, code.count("\n", 0, start) + 1) for start, end, text in found]
