"""Named sets of characters, and the meaning of case, as far as three engines are known to agree or to differ.

The engines' tables come from different versions of Unicode. A name means the same for every character that is assigned
in all of these versions (tests/py/test_dialects.py checks each).
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
    """Returns the code points that a character matches if case is ignored; None for a cased letter beyond ASCII, for
    which the engines' tables may differ. `more` has the forms of ASCII letters that are beyond ASCII."""
    char = chr(point)
    if point < 128:
        return [ord(form) for form in {char.lower(), char.upper(), *more.get(char.lower(), "")}]
    if 0xD800 <= point <= 0xDFFF:
        return None
    return [point] if char == char.lower() == char.upper() == char.casefold() else None
