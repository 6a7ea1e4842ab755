r"""Translates regular expressions of Python's `regex` package to JavaScript (flag u), with the same matches.

The differences, and what is written in JavaScript:

    \s          White_Space; JavaScript's \s includes U+FEFF and lacks U+0085     \p{White_Space}
    \d \w       by Unicode properties; JavaScript's are ASCII                      \p{Nd} ...
    .           all but \n; JavaScript's also excludes \r, U+2028 and U+2029       [^\n]
    $           also matches before a newline that ends the text                   (?=\n?$)
    X++ (?>X)   possessive and atomic, which JavaScript lacks                      (?=(?<a1>X+))\k<a1>
    (?i:s)      new in JavaScript in 2024; some letters have a third form          [sS\u{17f}]

A lookahead never backtracks into itself, so what it has captured is atomic. A construct that is not known to mean the
same is refused, with the reason. So is a pattern that can match the empty string, because the two engines continue
differently after an empty match.
"""

from __future__ import annotations

import re
from typing import NamedTuple

GENERAL_CATEGORIES = frozenset(
    "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp".split()
)
SCRIPTS = frozenset(
    "Arabic Armenian Bengali Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul Hebrew Hiragana"
    " Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Sinhala Tamil Telugu Thai Tibetan".split()
)
_WORD = r"\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}"
_SETS = {"s": r"\p{White_Space}", "d": r"\p{Nd}", "w": _WORD}
_HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v", "a": "\a"}
# Third forms of ASCII letters: the long s, the Kelvin sign, and i with and without a dot, as in `regex`.
_MORE_CASES = {"s": "\u017f", "S": "\u017f", "k": "\u212a", "K": "\u212a", "i": "\u0130", "I": "\u0131"}


class UntranslatableError(Exception):
    """The pattern has a construct that is not known to mean the same in JavaScript. The message says what."""


class Part(NamedTuple):
    """A translated part, and whether it can match the empty string."""

    source: str
    empty: bool


def translate(pattern: str) -> str:
    """Returns the source of a JavaScript RegExp with the flag u.

    Raises:
        UntranslatableError: it cannot be translated, or it can match the empty string.
    """
    translator = _Translator(pattern)
    part = translator.alternatives(False)
    if translator.rest():
        raise UntranslatableError(f"it has an unpaired ')' at {translator.at}")
    if part.empty:
        raise UntranslatableError("it can match the empty string")
    return part.source


def _literal(char: str) -> str:
    """Returns the source of a literal character, inside or outside a class."""
    return char if char.isascii() and char.isalnum() else f"\\u{{{ord(char):x}}}"


def _cases(char: str) -> str:
    """Returns all characters that a character matches if case is ignored."""
    if not char.isascii():
        raise UntranslatableError(f"it ignores the case of {char!r}, which is not ASCII")
    return char.lower() + (char.upper() if char.isalpha() else "") + _MORE_CASES.get(char, "")


class _Translator:
    """One pass over a pattern, by recursive descent. `fold` says whether case is ignored."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self._atomic = 0

    def rest(self) -> str:
        return self.pattern[self.at :]

    def _take(self, start: str) -> bool:
        """Consumes `start` if it comes next. Returns whether it did."""
        if not self.pattern.startswith(start, self.at):
            return False
        self.at += len(start)
        return True

    def _next(self) -> str:
        if self.at >= len(self.pattern):
            raise UntranslatableError("it ends too early")
        self.at += 1
        return self.pattern[self.at - 1]

    def _match(self, expression: str) -> re.Match[str] | None:
        found = re.compile(expression).match(self.pattern, self.at)
        if found:
            self.at = found.end()
        return found

    def alternatives(self, fold: bool) -> Part:
        parts = [self._sequence(fold)]
        while self._take("|"):
            parts.append(self._sequence(fold))
        return Part("|".join(part.source for part in parts), any(part.empty for part in parts))

    def _sequence(self, fold: bool) -> Part:
        parts = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            parts.append(self._repeated(fold))
        return Part("".join(part.source for part in parts), all(part.empty for part in parts))

    def _repeated(self, fold: bool) -> Part:
        """Translates an atom with its quantifier."""
        begin = self.at
        atom, can_repeat = self._atom(fold)
        found = self._match(r"[*+?]|\{\d+(?:,\d*)?\}|\{,\d+\}")
        if found is None:
            if self.rest()[:1] == "{":
                raise UntranslatableError(f"it has a '{{' at {self.at} that is not a simple repetition")
            return atom
        if not can_repeat:
            raise UntranslatableError(f"it repeats {self.pattern[begin : found.start()]!r}, which matches no character")
        quantifier = found[0].replace("{,", "{0,")
        least = quantifier[0] in "*?" or re.match(r"\{0+[,}]", quantifier) is not None
        part = Part(atom.source + quantifier, atom.empty or least)
        if self._take("?"):
            return Part(part.source + "?", part.empty)
        part = self._atomized(part) if self._take("+") else part
        if self.rest()[:1] in ("*", "+", "?", "{"):
            raise UntranslatableError(f"it repeats a repetition at {self.at}")
        return part

    def _atomized(self, part: Part) -> Part:
        self._atomic += 1
        name = f"a{self._atomic}"
        return Part(f"(?:(?=(?<{name}>{part.source}))\\k<{name}>)", part.empty)

    def _atom(self, fold: bool) -> tuple[Part, bool]:
        """Translates one atom. Returns it, and whether a quantifier may follow."""
        char = self._next()
        if char == "(":
            return self._group(fold)
        if char == "[":
            return Part(self._class(fold), False), True
        if char == "\\":
            return self._escape(fold)
        if char == ".":
            return Part("[^\\n]", False), True
        if char in "^$":
            return Part("^" if char == "^" else "(?=\\n?$)", True), False
        if char in "*+?{":
            raise UntranslatableError(f"it has a {char!r} at {self.at - 1} with nothing to repeat")
        return Part(self._folded(char, fold), False), True

    def _folded(self, char: str, fold: bool) -> str:
        cases = _cases(char) if fold else char
        return _literal(char) if len(cases) == 1 else f"[{''.join(map(_literal, cases))}]"

    def _group(self, fold: bool) -> tuple[Part, bool]:
        start = self._match(r"\?(?:i?:|-i:|>|=|!|<=|<!)")
        if start is None and self.rest()[:1] in ("?", "*"):
            raise UntranslatableError(f"it has a kind of group that JavaScript lacks: ({self.rest()[:4]}")
        kind = start[0] if start else "?:"
        inner = self.alternatives({"?i:": True, "?-i:": False}.get(kind, fold))
        if not self._take(")"):
            raise UntranslatableError("it has a group that does not end")
        if kind in ("?=", "?!", "?<=", "?<!"):
            return Part(f"({kind}{inner.source})", True), False
        if kind == "?>":
            return self._atomized(inner), True
        return Part(f"(?:{inner.source})", inner.empty), True

    def _escape(self, fold: bool) -> tuple[Part, bool]:
        """Translates an escape outside a class."""
        char = self.rest()[:1]
        if char in ("A", "Z"):
            self.at += 1
            return Part("^" if char == "A" else "$", True), False
        item = self._class_escape(fold)
        if len(item) == 1:
            return Part(self._folded(item, fold), False), True
        return Part(f"[{item}]" if item[0] != "[" else item, False), True

    def _class_escape(self, fold: bool) -> str:
        r"""Returns what follows a backslash: one character, or the source of a set ("\p{L}", or "[^...]" for \W)."""
        char = self._next()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char.lower() in _SETS:
            members = _SETS[char.lower()]
            if char.islower():
                return members
            return members.replace("\\p", "\\P") if members.count("\\p") == 1 else f"[^{members}]"
        if char in "pP":
            return self._property(char, fold)
        number = self._match(f"[0-9a-fA-F]{{{_HEX_DIGITS[char]}}}") if char in _HEX_DIGITS else None
        if number:
            point = int(number[0], 16)
            if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
                raise UntranslatableError(f"it has \\{char}{number[0]}, which is not a character")
            return chr(point)
        if char.isalnum() or not char.isascii():
            raise UntranslatableError(f"it has \\{char}, which JavaScript does not have with the same meaning")
        return char

    def _property(self, letter: str, fold: bool) -> str:
        found = self._match(r"\{(?:(?:Script|sc)=)?(\w+)\}|([LMNPSZ])")
        name = (found[1] or found[2]) if found else ""
        if fold:
            raise UntranslatableError("it ignores the case of a \\p{...}")
        if name in GENERAL_CATEGORIES and found is not None and "=" not in found[0]:
            return f"\\{letter}{{{name}}}"
        if name in SCRIPTS:
            return f"\\{letter}{{Script={name}}}"
        raise UntranslatableError(f"it has \\{letter}{found[0] if found else ''}, which this page does not know")

    def _class(self, fold: bool) -> str:
        """Translates what follows a [."""
        items = ["^" if self._take("^") else ""]
        first = True
        while first or not self._take("]"):
            if self.rest()[:2] in ("--", "&&", "||", "~~", "[:"):
                raise UntranslatableError(f"it has {self.rest()[:2]!r} in a class")
            items.append(self._class_item(fold))
            first = False
        return f"[{''.join(items)}]"

    def _class_item(self, fold: bool) -> str:
        """Translates a character, a range, or a set."""
        low = self._class_member(fold)
        if not (self.rest()[:1] == "-" and self.rest()[1:2] != "]"):
            return low if len(low) > 1 else self._class_range(low, low, fold)
        self.at += 1
        high = self._class_member(fold)
        if len(low) > 1 or len(high) > 1 or ord(low) > ord(high):
            raise UntranslatableError("it has an invalid range in a class")
        return self._class_range(low, high, fold)

    def _class_member(self, fold: bool) -> str:
        char = self._next()
        member = self._class_escape(fold) if char == "\\" else char
        if member.startswith("[^"):
            raise UntranslatableError("it has \\W in a class")
        return member

    @staticmethod
    def _class_range(low: str, high: str, fold: bool) -> str:
        if fold:
            if not high.isascii():
                raise UntranslatableError(f"it ignores the case of {high!r}, which is not ASCII")
            chars = "".join(_cases(chr(point)) for point in range(ord(low), ord(high) + 1))
            return "".join(_literal(char) for char in dict.fromkeys(chars))
        return _literal(low) if low == high else f"{_literal(low)}-{_literal(high)}"
