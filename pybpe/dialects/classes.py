"""Named sets of characters, and what case means: as far as three engines are known to agree, or to differ.

The engines' tables are of different versions of Unicode. Names mean the same of every character that is assigned in
all of these versions (tests/py/test_dialects.py looks at each).
"""

from __future__ import annotations

from .tree import Chars, chars

CATEGORIES = frozenset(
    "L Lu Ll Lt Lm Lo M Mn Mc Me N Nd Nl No P Pc Pd Ps Pe Pi Pf Po S Sm Sc Sk So Z Zs Zl Zp C Cc Cf Co Cn".split()
)
SCRIPTS = frozenset(
    "Arabic Armenian Bengali Bopomofo Cyrillic Devanagari Ethiopic Georgian Greek Gujarati Gurmukhi Han Hangul Hebrew"
    " Hiragana Kannada Katakana Khmer Lao Latin Malayalam Mongolian Myanmar Oriya Sinhala Tamil Telugu Thai"
    " Tibetan".split()
)
# Names that are no category and no script.
OTHERS = frozenset(["Alphabetic", "White_Space", "Uppercase", "Lowercase"])
PROPERTIES = CATEGORIES | SCRIPTS | OTHERS

# Where case is ignored, these names may mean more than themselves; the letters with a case are others in each engine.
CASED = frozenset("L Lu Ll Lt M Mn Latin Greek Cyrillic Armenian Georgian Uppercase Lowercase Cn C".split())

SPACE = chars(properties=["White_Space"])
DIGIT = chars(properties=["Nd"])
WORD = chars([(0x200C, 0x200D)], ["Alphabetic", "M", "Nd", "Pc"])
# Oniguruma's has no joiners, and outside a class the superscript digits and fractions of Latin-1.
ONIGURUMA_CLASS_WORD = chars([], ["Alphabetic", "M", "Nd", "Pc"])
ONIGURUMA_WORD = chars([(0xB2, 0xB3), (0xB9, 0xB9), (0xBC, 0xBE)], ["Alphabetic", "M", "Nd", "Pc"])
HEX_DIGIT = chars([(0x30, 0x39), (0x41, 0x46), (0x61, 0x66)])

# [[:alpha:]] and kin in Rust: ASCII only.
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
    """The ASCII set of this name."""
    ends = _POSIX.get(name)
    return None if ends is None else chars((ord(a), ord(b)) for a, b in zip(ends[::2], ends[1::2]))


def cases(point: int, more: dict[str, str]) -> list[int] | None:
    """The code points that a character stands for where case is ignored; None for a letter with a case beyond ASCII,
    for which the engines' tables may differ. `more` has forms of ASCII letters beyond ASCII."""
    char = chr(point)
    if point < 128:
        return [ord(form) for form in {char.lower(), char.upper(), *more.get(char.lower(), "")}]
    if 0xD800 <= point <= 0xDFFF:
        return None
    return [point] if char == char.lower() == char.upper() == char.casefold() else None
