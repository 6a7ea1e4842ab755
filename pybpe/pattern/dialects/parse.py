"""Reads a regular expression of one engine. Refuses a construct unless its meaning is known to be its tree's."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import NoReturn

from ...errors import UnsupportedError
from .tree import (
    ANY,
    NEWLINE,
    NOT_NEWLINE,
    Alt,
    Atomic,
    Chars,
    CharSet,
    End,
    Look,
    Node,
    Repeat,
    Seq,
    Start,
    alt,
    boundary,
    can_be_empty,
    chars,
    intersection,
    seq,
    union,
    width,
    without,
)

# ----------------------------------------------------------------------------------------------------
# Named sets of characters, and the meaning of case, as far as three engines are known to agree or to differ. Their
# tables come from different versions of Unicode. A name means the same for every character that is assigned in all of
# these versions (tests/py/test_dialects.py checks all).


CATEGORIES = frozenset(
    "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Co Cn".split()
)
SCRIPTS = frozenset(
    "Arabic Armenian Bengali Bopomofo Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul Hebrew"
    " Hiragana Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Oriya Sinhala Tamil Telugu Thai"
    " Tibetan".split()
)
# Names that are neither categories nor scripts.
OTHERS = frozenset(["Alphabetic", "White_Space", "Uppercase", "Lowercase"])
PROPERTIES = CATEGORIES | SCRIPTS | OTHERS

# If case is ignored, these names may match more than their own characters. The engines differ in which letters have
# case.
CASED = frozenset("L Lu Ll Lt M Mn Latin Greek Cyrillic Armenian Georgian Uppercase Lowercase Cn C".split())

SPACE = chars(properties=["White_Space"])
DIGIT = chars(properties=["Nd"])
WORD = chars([(0x200C, 0x200D)], ["Alphabetic", "M", "Nd", "Pc"])
# Oniguruma's \w has no joiners, and outside a class it includes the superscript digits and fractions of Latin-1.
ONIGURUMA_CLASS_WORD = chars([], ["Alphabetic", "M", "Nd", "Pc"])
ONIGURUMA_WORD = chars([(0xB2, 0xB3), (0xB9, 0xB9), (0xBC, 0xBE)], ["Alphabetic", "M", "Nd", "Pc"])
HEX_DIGIT = chars([(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)])

# [[:alpha:]] and so on in Rust: ASCII only.
_POSIX = {
    "alnum": "09AZaz",
    "alpha": "AZaz",
    "ascii": "\x00\x7f",
    "blank": "\t\t  ",
    "cntrl": "\x00\x1f\x7f\x7f",
    "digit": "09",
    "graph": "!~",
    "lower": "az",
    "print": " ~",
    "punct": "!/:@[`{~",
    "space": "\t\r  ",
    "upper": "AZ",
    "word": "09AZaz__",
    "xdigit": "09AFaf",
}


def posix(name: str) -> Chars | None:
    """Returns the ASCII set with this name, or None."""
    ends = _POSIX.get(name)
    return None if ends is None else chars((ord(a), ord(b)) for a, b in zip(ends[::2], ends[1::2]))


def cases(point: int, more: dict[str, str]) -> list[int] | None:
    """Returns the code points that a character matches if case is ignored, or None for a cased letter beyond ASCII, for
    which the engines' tables may differ. `more` has the forms of ASCII letters that are beyond ASCII."""
    char = chr(point)
    if point < 128:
        return [ord(form) for form in {char.lower(), char.upper(), *more.get(char.lower(), "")}]
    if 0xD800 <= point <= 0xDFFF:
        return None
    return [point] if char == char.lower() == char.upper() == char.casefold() else None


# ----------------------------------------------------------------------------------------------------
# Reading


_CONTROLS = {"n": 10, "r": 13, "t": 9, "f": 12, "v": 11, "a": 7}
_SHORT_HEX = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})")
_LONG_HEX = re.compile(r"[xu]\{([0-9A-Fa-f]{1,8})\}")
_PROPERTY = re.compile(r"\{(\^?)(?:(?:Script|sc)=)?(\w+)\}|()([LMNPSZC])")
_INTERVAL = re.compile(r"\{(\d{1,4})(,?)(\d{0,4})\}|\{,(\d{1,4})\}")
_FLAGS = re.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]+))?(:|\))")
_POSIX_NAME = re.compile(r":(\^?)(\w+):\]")
_GROUP = re.compile(r"\?(?::|=|!|<=|<!|>|P?<[A-Za-z_]\w*>)")
# Pairs of letters that also match one character in Oniguruma if case is ignored, such as the German sharp s.
_LIGATURES = ("ss", "st", "ff", "fi", "fl")


@dataclass(frozen=True)
class Flags:
    """The flags that apply at a place in a pattern."""

    fold: bool = False
    dot_all: bool = False
    lines: bool = False


@dataclass(frozen=True)
class Dialect:
    """How one engine reads the constructs that the engines read differently."""

    engine: str  # its name in errors
    flags: dict[str, str]  # letter -> field of Flags
    sets: dict[str, CharSet]  # letter of an escape -> the set. The capital letter is the complement
    anchors: dict[str, Node]  # letter of an escape -> its node
    # start, end: ^ and $. The argument says whether they match at lines.
    start: Callable[[bool], Node]
    end: Callable[[bool], Node]
    operators: tuple[str, ...] = ()  # operators in a class, such as "&&"
    class_word: CharSet = WORD  # \w in a class
    nested: bool = False  # whether a class may contain another
    posix: bool = False  # whether [:alpha:] and so on are known to mean ASCII
    # Whether {n,m}+ is possessive, otherwise it repeats {n,m}, and {n}? may match nothing.
    possessive_intervals: bool = True
    open_intervals: bool = True  # whether {,m} is {0,m}
    # The forms of ASCII letters that are beyond ASCII, if case is ignored.
    more_cases: dict[str, str] = field(default_factory=lambda: {"s": "\u017f", "k": "\u212a"})
    # Properties that match, or may match, more characters if case is ignored.
    cased_names: frozenset[str] = CASED
    ligatures: bool = False  # whether two letters may match one character if case is ignored
    joins_lone: bool = False  # whether [^a]|[^b] may miss a and b: regex 2026.11 turns the two into one class
    long_hex: str = "xu"  # which of the letters x and u take digits in braces
    short_hex: str = "xuU"  # which of the letters x, u and U take digits without braces
    other_spellings: bool = True  # whether \pL and \p{Script=Han} are supported
    no_escape: str = ""  # characters that have a special meaning if escaped
    named_group: str = "?P<"  # the beginning of the longest spelling of a named group


_LINE_START = Look(NOT_NEWLINE, behind=True, negated=True)
_LINE_END = Look(NOT_NEWLINE, negated=True)
_LAST_NEWLINE = Look(seq([Repeat(NEWLINE, 0, 1), End()]))


def _boundaries(word: CharSet) -> dict[str, Node]:
    return {"b": boundary(word, False), "B": boundary(word, True)}


REGEX = Dialect(
    engine="Python's regex package",
    flags={"i": "fold", "s": "dot_all", "m": "lines"},
    sets={"s": SPACE, "d": DIGIT, "w": WORD},
    anchors={"A": Start(), "Z": End(), **_boundaries(WORD)},
    start=lambda lines: _LINE_START if lines else Start(),
    end=lambda lines: _LINE_END if lines else _LAST_NEWLINE,
    more_cases={"s": "\u017f", "k": "\u212a", "i": "\u0130"},
    # L, M, Mn and Greek match more in a class with other members, and regex joins alternatives into such
    cased_names=frozenset(["Lu", "Ll", "Lt", "Uppercase", "Lowercase", "L", "M", "Mn", "Greek"]),
    joins_lone=True,
    long_hex="",
)
RUST = Dialect(
    engine="tiktoken's engine (fancy-regex)",
    flags={"i": "fold", "s": "dot_all", "m": "lines"},
    sets={"s": SPACE, "d": DIGIT, "w": WORD, "h": HEX_DIGIT},
    anchors={"A": Start(), "z": End(), **_boundaries(WORD)},
    start=lambda lines: _LINE_START if lines else Start(),
    end=lambda lines: _LINE_END if lines else End(),
    operators=("&&", "--", "~~"),
    nested=True,
    posix=True,
    open_intervals=False,
    no_escape="<>",
)
ONIGURUMA = Dialect(
    engine="Hugging Face's engine (Oniguruma)",
    flags={"i": "fold", "m": "dot_all"},
    sets={"s": SPACE, "d": DIGIT, "w": ONIGURUMA_WORD, "h": HEX_DIGIT},
    anchors={"A": Start(), "z": End(), "Z": _LAST_NEWLINE, **_boundaries(ONIGURUMA_WORD)},
    start=lambda lines: alt([Start(), seq([Look(NEWLINE, behind=True), Look(End(), negated=True)])]),
    end=lambda lines: Look(alt([NEWLINE, End()])),
    operators=("&&",),
    nested=True,
    possessive_intervals=False,
    cased_names=CASED | {"Alphabetic"},
    class_word=ONIGURUMA_CLASS_WORD,
    ligatures=True,
    long_hex="x",
    short_hex="xu",
    other_spellings=False,
    named_group="?<",
)


def parse(pattern: str, dialect: Dialect) -> Node:
    """Returns the tree of a pattern. UnsupportedError says which construct, and where, is not known to mean the same in
    every engine."""
    try:
        return _Parser(pattern, dialect).whole()
    except RecursionError:
        raise UnsupportedError("the groups of the pattern are nested too deeply") from None


class _Parser:
    """One pass over a pattern, by recursive descent."""

    def __init__(self, pattern: str, dialect: Dialect) -> None:
        self.pattern = pattern
        self.dialect = dialect
        self.at = 0
        self._lone = 0  # the number of classes so far that contain all characters except one

    # ------------------------------------------------------------------------------------------------
    # Reading

    def _refuse(self, what: str, at: int | None = None) -> NoReturn:
        at = self.at if at is None else at
        raise UnsupportedError(f"the pattern has {what} at character {at}")

    def _unlike(self, text: str, at: int) -> NoReturn:
        self._refuse(f"{text!r}, which regular expression engines read differently,", at)

    def _rest(self, n: int) -> str:
        return self.pattern[self.at : self.at + n]

    def _take(self, start: str) -> bool:
        """Consumes `start` if it comes next. Returns whether it did."""
        found = self.pattern.startswith(start, self.at)
        self.at += len(start) if found else 0
        return found

    def _match(self, expression: re.Pattern[str]) -> re.Match[str] | None:
        found = expression.match(self.pattern, self.at)
        self.at = found.end() if found else self.at
        return found

    def _next(self) -> str:
        if self.at >= len(self.pattern):
            self._refuse("no end of a class, group or escape")
        self.at += 1
        return self.pattern[self.at - 1]

    # ------------------------------------------------------------------------------------------------
    # Groups and repetitions

    def whole(self) -> Node:
        flags = Flags()
        found = self._match(_FLAGS) if self._take("(") else None
        if found is not None and found[3] == ")":
            flags = self._flags(found, flags)
        else:
            self.at = 0
        node = self._alternatives(flags)
        if self.at < len(self.pattern):
            self._refuse("an unpaired ')'")
        return node

    def _flags(self, found: re.Match[str], flags: Flags) -> Flags:
        for letters, value in ((found[1], True), (found[2] or "", False)):
            for letter in letters:
                if letter not in self.dialect.flags:
                    self._refuse(f"the flag {letter!r}, which engines read differently,", found.start())
                flags = replace(flags, **{self.dialect.flags[letter]: value})
        return flags

    def _alternatives(self, flags: Flags) -> Node:
        begin, before = self.at, self._lone
        parts = [self._sequence(flags)]
        holders = int(self._lone > before)
        while self._take("|"):
            before = self._lone
            parts.append(self._sequence(flags))
            holders += self._lone > before
        if holders > 1 and self.dialect.joins_lone:
            self._refuse("alternatives like [^a]|[^b], which Python's regex package joins incorrectly,", begin)
        return alt(parts)

    def _sequence(self, flags: Flags) -> Node:
        begin = self.at
        parts = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            parts.append(self._repeated(flags))
        node = seq(parts)
        if self.dialect.ligatures and _may_be_ligature(node):
            self._refuse("letters, with case ignored, that Oniguruma also matches as one (ss as a sharp s)", begin)
        return node

    def _repeated(self, flags: Flags) -> Node:
        begin = self.at
        part = self._atom(flags)
        is_class = self.pattern.startswith("[^", begin) and isinstance(part, Chars)
        found = self._quantifier()
        if is_class and is_lone(part) and (found is None or found[1] == 1):
            self._lone += 1
        if found is None:
            return part
        if can_be_empty(part):
            self._refuse("a repetition of a part that can match the empty string", begin)
        node: Node = self._repetition(part, *found)
        if self._rest(1) in ("*", "+", "?", "{"):
            self._unlike("a repeated repetition", self.at)
        return node

    def _quantifier(self) -> tuple[int, int | None, bool] | None:
        """Returns the minimum, the maximum and whether braces are used, or None if there is no quantifier."""
        for sign, least, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self._take(sign):
                return least, most, False
        if self._rest(1) != "{":
            return None
        at = self.at
        found = self._match(_INTERVAL)
        if found is None or (found[4] and not self.dialect.open_intervals):
            self._unlike(self._rest(8), at)
        if found[4]:
            return 0, int(found[4]), True
        least, most = int(found[1]), int(found[3]) if found[3] else None
        most = most if found[2] else least
        if (most is not None and most < max(least, 1)) or (found[3] and not found[2]):
            self._unlike(found[0], at)
        return least, most, True

    def _repetition(self, part: Node, least: int, most: int | None, braces: bool) -> Node:
        whole = Repeat(part, least, most)
        if self._take("+"):
            if not braces or self.dialect.possessive_intervals:
                return Repeat(part, least, most, "+")
            return Repeat(whole, 1, None) if least else self._unlike("a repeated repetition", self.at)
        if self._take("?"):
            if least == most and not self.dialect.possessive_intervals:
                return Repeat(whole, 0, 1)  # Ruby's reading of {n}?
            return Repeat(part, least, most, "?" if least != most else "")
        return part if least == most == 1 else whole

    def _atom(self, flags: Flags) -> Node:
        at = self.at
        char = self._next()
        if char == "(":
            return self._group(flags)
        if char == "[":
            return self._class(flags)
        if char == "\\":
            return self._escape(flags)
        if char == ".":
            return ANY if flags.dot_all else NOT_NEWLINE
        if char in "^$":
            return (self.dialect.start if char == "^" else self.dialect.end)(flags.lines)
        if char in "*+?{}]":
            self._unlike(char, at)
        return self._folded([(ord(char), ord(char))], flags, at)

    def _group(self, flags: Flags) -> Node:
        at = self.at - 1
        found = self._match(_GROUP)
        kind = found[0] if found else ""
        if not kind and self._rest(1) in ("?", "*"):
            given = self._match(_FLAGS)
            if given is None or given[3] == ")":
                self.at = at
                self._unlike(self._rest(4), at)
            flags = self._flags(given, flags)
        elif kind.startswith("?P<") and self.dialect.named_group != "?P<":
            self._unlike(kind, at)
        inner = self._alternatives(flags)
        if not self._take(")"):
            self._refuse("no end of the group that begins", at)
        if kind == "?>":
            return Atomic(inner)
        if kind in ("?=", "?!"):
            return Look(inner, negated=kind == "?!")
        if kind in ("?<=", "?<!"):
            if width(inner) is None:
                self._refuse("a lookbehind that is not a sequence of characters of fixed length", at)
            return Look(inner, behind=True, negated=kind == "?<!")
        return inner

    # ------------------------------------------------------------------------------------------------
    # Escapes

    def _escape(self, flags: Flags) -> Node:
        """Reads an escape outside a class."""
        letter = self._rest(1)
        if letter and letter in self.dialect.anchors:
            self.at += 1
            return self.dialect.anchors[letter]
        at = self.at - 1  # the backslash
        found = self._escaped_set(flags, at, self.dialect.sets)
        if found is not None:
            return found
        point = self._escaped_char(at)
        return self._folded([(point, point)], flags, at)

    def _escaped_set(self, flags: Flags, at: int, sets: Mapping[str, CharSet]) -> CharSet | None:
        letter = self._rest(1)
        if letter and letter.lower() in sets:
            self.at += 1
            members = sets[letter.lower()]
            if flags.fold and letter.lower() == "h":
                self._unlike(f"\\{letter} with case ignored", at)
            return members if letter.islower() else without(members)
        if letter in ("p", "P"):
            self.at += 1
            return self._property(letter == "P", flags, at)
        return None

    def _property(self, negated: bool, flags: Flags, at: int) -> CharSet:
        found = self._match(_PROPERTY)
        name = (found[2] or found[4]) if found else ""
        is_script = found is not None and "=" in found[0]
        is_plain = found is not None and not found[4] and not is_script
        is_known = name in (SCRIPTS if is_script else PROPERTIES)
        if found is None or not is_known or not (is_plain or self.dialect.other_spellings):
            self._unlike(self.pattern[at : max(self.at, at + 8)], at)
        if flags.fold and name in self.dialect.cased_names:
            self._unlike(f"{self.pattern[at : self.at]} with case ignored", at)
        return chars((), (name,), negated != bool(found[1]))

    def _escaped_char(self, at: int) -> int:
        """Returns the code point that the text after a backslash means."""
        found = self._match(_SHORT_HEX)
        if found is not None:
            digits = next(group for group in found.groups() if group)
            if found[0][0] not in self.dialect.short_hex or (len(digits) == 2 and int(digits, 16) > 0x7F):
                if self.dialect.short_hex != "xuU":  # \x80 to \xff are bytes in Oniguruma, characters elsewhere
                    self._unlike(self.pattern[at : self.at], at)
                return int(digits, 16)
            return self._point(digits, at)
        found = self._match(_LONG_HEX) if self._rest(1) in self.dialect.long_hex else None
        if found is not None:
            return self._point(found[1], at)
        char = self._next()
        if char in _CONTROLS:
            return _CONTROLS[char]
        if not (" " <= char <= "~") or char.isalnum() or char in self.dialect.no_escape:
            self._unlike(f"\\{char}", at)
        return ord(char)

    def _point(self, digits: str, at: int) -> int:
        point = int(digits, 16)
        if point > 0x10FFFF or 0xD800 <= point <= 0xDFFF:
            self._refuse(f"{self.pattern[at : self.at]!r}, which is not a character,", at)
        return point

    def _folded(self, ranges: list[tuple[int, int]], flags: Flags, at: int) -> Chars:
        """Returns the characters of ranges, in all their cases if the flags say so."""
        if not flags.fold:
            return chars(ranges)
        points: set[tuple[int, int]] = set()
        for first, last in ranges:
            for point in range(first, last + 1):
                forms = cases(point, self.dialect.more_cases)
                if forms is None or (point >= 128 and self.dialect.ligatures):
                    self._unlike(f"{chr(point)!r} with case ignored", at)
                points.update((form, form) for form in forms)
        return chars(points)

    # ------------------------------------------------------------------------------------------------
    # Classes

    def _class(self, flags: Flags) -> CharSet:
        """Reads the rest after a [."""
        begin = self.at - 1
        negated = self._take("^")
        if self._rest(1) == "]":
            self._unlike("a ']' first in a class", self.at)
        members = self._items(flags)
        while not self._take("]"):
            operator = self._rest(2)
            self.at += len(operator)
            if len(operator) < 2:
                self._refuse("a class without an end")
            members = _operated(operator, members, self._items(flags))
        members = without(members) if negated else members
        if members == without(ANY):  # Python's regex package treats [^\s\S] as every character
            self._refuse("a class that contains no character", begin)
        return members

    def _items(self, flags: Flags) -> CharSet:
        """Reads the items of a class up to its end or an operator."""
        begin = self.at
        items: list[CharSet] = []
        while self._rest(1) not in ("", "]"):
            operator = self._rest(2)
            if operator in ("&&", "--", "||", "~~"):
                if operator not in self.dialect.operators:
                    self._unlike(operator, self.at)
                break
            items.append(self._item(flags, first=self.at == begin))
        if not items:
            self._unlike("an empty class or part of a class", begin)
        return union(items)

    def _item(self, flags: Flags, first: bool) -> CharSet:
        """Reads a character, a range or a set."""
        at = self.at
        char = self._next()
        if char == "[":
            return self._nested(flags, at)
        if char == "-":
            if not first and self._rest(1) != "]":
                self._unlike("a '-' that is neither first nor last in a class", at)
            return self._folded([(45, 45)], flags, at)
        if char == "\\":
            members = self._escaped_set(flags, at, {**self.dialect.sets, "w": self.dialect.class_word})
            if members is not None:
                if flags.fold and self.dialect.ligatures and members not in (SPACE, DIGIT):
                    self._unlike(f"{self.pattern[at : self.at]} in a class with case ignored", at)
                return members
        low = self._escaped_char(at) if char == "\\" else ord(char)
        if self._rest(1) != "-" or self._rest(2) in ("-]", "--"):
            return self._folded([(low, low)], flags, at)
        self.at += 1
        char = self._next()
        if char == "[" or (char == "\\" and self._rest(1).lower() in ("p", *self.dialect.sets)):
            self._unlike(self.pattern[at : self.at + 1], at)
        high = self._escaped_char(self.at - 1) if char == "\\" else ord(char)
        if high < low:
            self._unlike(self.pattern[at : self.at], at)
        return self._folded([(low, high)], flags, at)

    def _nested(self, flags: Flags, at: int) -> CharSet:
        """Reads the rest after a [ inside a class."""
        found = self._match(_POSIX_NAME)
        if found is not None:
            members = posix(found[2]) if self.dialect.posix else None
            if members is None:
                self._unlike(f"[{found[0]}", at)
            members = self._folded(list(members.ranges), flags, at)
            return without(members) if found[1] else members
        if not self.dialect.nested or self._rest(1) == ":":
            self._unlike("a '[' in a class", at)
        return self._class(flags)


def _operated(operator: str, left: CharSet, right: CharSet) -> CharSet:
    """Combines two parts of a class with &&, -- or ~~."""
    if operator == "&&":
        return intersection([left, right])
    only_left = intersection([left, without(right)])
    return only_left if operator == "--" else union([only_left, intersection([right, without(left)])])


def is_lone(node: Node) -> bool:
    """Returns whether a node is all characters except one and its case variants."""
    if not isinstance(node, Chars) or node.properties or not node.negated:
        return False
    return sum(last - first + 1 for first, last in node.ranges) <= 4


def _may_be_ligature(node: Node) -> bool:
    """Returns whether a sequence may contain letters that match one character: two adjacent ones of _LIGATURES, or a
    repeated one."""
    parts = node.parts if isinstance(node, Seq) else (node,)
    for i, part in enumerate(parts):
        if isinstance(part, Repeat) and part.most != 1 and any(_holds(part.part, letter) for letter in ["s", "f"]):
            return True
        after = parts[i + 1] if i + 1 < len(parts) else None
        if after is not None and any(_holds(part, pair[0]) and _holds(after, pair[1]) for pair in _LIGATURES):
            return True
    return False


def _holds(node: Node, letter: str) -> bool:
    """Returns whether a part of a node is this letter, ignoring case."""
    if isinstance(node, Chars):
        forms = cases(ord(letter), ONIGURUMA.more_cases) or []
        return node == chars((form, form) for form in forms)
    if isinstance(node, (Seq, Alt)):
        return any(_holds(part, letter) for part in node.parts)
    return isinstance(node, (Repeat, Atomic)) and _holds(node.part, letter)
