"""The steps of a pre-tokenizer that need a regular expression as a tree: all except those whose pattern pybpe knows.
pre_tokenizer.py imports this module only for them, because its own imports take a while.
"""

from __future__ import annotations

from typing import Any

from .._lazy import regex
from ..errors import FormatError, UnsupportedError
from ..pattern import OF_BYTES, Pattern, unnamed
from ..pattern.dialects import ONIGURUMA, REGEX, Dialect, parse, written
from ..pattern.dialects.tree import (
    Alt,
    Atomic,
    CharSet,
    Node,
    Repeat,
    Seq,
    alt,
    chars,
    intersection,
    run_of,
    seq,
    without,
)
from .vocab_merges import BYTE_TO_CHAR

NUMBER = chars(properties=["N"])
# Laguna's step: line ends begin a piece. The lookahead has no effect, because the repeat takes all line ends. A
# carriage return without a newline after it is text.
_LINE_ENDS = [parse(regex, ONIGURUMA) for regex in (r"(?:\r?\n)+(?!\r?\n)", r"(?:\r?\n)+")]
_FROM_LINE_ENDS = parse(
    r"(?:\r?\n)+[^\r\n]*(?:\r(?!\n)[^\r\n]*)*|[^\r\n]+(?:\r(?!\n)[^\r\n]*)*|(?:\r(?!\n)[^\r\n]*)+", ONIGURUMA
)
# For Hugging Face, punctuation is ASCII's punctuation and the categories P of Unicode 8 (the crate unicode_categories).
# These characters moved to a category P later:
_LATER = (
    "61D 9FD A76 C77 C84 1B4E-1B4F 1B7D-1B7F 2E43-2E4F 2E52-2E5D 2E60-2E63 10D6E 10EAD 10ED0 10F55-10F59 10F86-10F89"
    " 113D4-113D5 113D7-113D8 1144B-1144F 1145A-1145B 1145D 11660-1166C 116B9 1183B 11944-11946 119E2 11A3F-11A46"
    " 11A9A-11A9C 11A9E-11AA2 11B00-11B09 11BE1 11C41-11C45 11C70-11C71 11EF7-11EF8 11F43-11F4F 11FFF 12FF1-12FF2"
    " 16D6D-16D6F 16E97-16E9A 16FE2 1E5FF 1E95E-1E95F"
)


def _ranges(listed: str) -> list[tuple[int, int]]:
    pairs = [item.partition("-") for item in listed.split()]
    return [(int(first, 16), int(last or first, 16)) for first, _, last in pairs]


PUNCTUATION = intersection(
    [
        without(chars(_ranges(_LATER))),
        chars([*((ord(char), ord(char)) for char in "$+<=>^`|~"), (0x166D, 0x166D), (0x111C9, 0x111C9)], ["P"]),
    ]
)


def of_split(step: dict[str, Any], name: str, dialect: Dialect) -> Node:
    """Returns the matches of a Split. Raises FormatError if it has none that pybpe reads."""
    given = step["pattern"] if isinstance(step.get("pattern"), dict) else {}
    string, regex = given.get("String"), given.get("Regex")
    if isinstance(string, str) and string:
        return seq([chars([(ord(char), ord(char))]) for char in string])
    if not isinstance(regex, str):
        raise FormatError(f"{name}: the pre_tokenizer splits with {given!r:.80}, which is not a Regex or a String")
    try:
        return parse(regex, dialect)
    except UnsupportedError as error:
        raise FormatError(f"{name}: the pre_tokenizer splits with {regex!r:.80}: {error}") from None


def behaving(tree: Node, behavior: Any, invert: bool) -> Node | None:
    """Returns a tree that matches the pieces that a Split makes with this behavior, or None if no such tree is known.

    Behaviors other than Isolated join matches that touch, or join matches and the text between them. If the
    matches are runs of one set of characters, or of line ends, a regular expression gives the same pieces.
    """
    if behavior == "Isolated":  # invert only exchanges matches and the text between them
        return tree
    if behavior == "MergedWithNext" and not invert and tree in _LINE_ENDS:
        return _FROM_LINE_ENDS
    members, most = run_of(tree) or (None, None)
    if members is None or behavior not in ("Contiguous", "MergedWithPrevious", "MergedWithNext"):
        return None
    if behavior == "Contiguous":
        return Repeat(members, 1, None)
    if most not in (1, None):
        return None
    others = without(members)
    gap = Repeat(others, 0, None)
    parts = [gap, tree] if (behavior == "MergedWithPrevious") != invert else [tree, gap]
    return alt([seq(parts), Repeat(others, 1, None)])


def pattern(node: Node, in_bytes: bool) -> Pattern:
    """Returns the pattern of a tree. With `in_bytes` its text is the characters that stand for bytes. Raises
    UnsupportedError as `written` does, or if such a tree has a lookahead, a lookbehind or an anchor."""
    if not in_bytes:
        return Pattern(_spelling(node))
    pairs = [(char, byte) for byte, char in BYTE_TO_CHAR.items()]
    return Pattern(OF_BYTES + written(_mapped(node, pairs), REGEX))


def _spelling(node: Node) -> str:
    return unnamed(written(node, REGEX))


def named(step: Pattern) -> dict[str, Any] | None:
    """Returns the step of a pre-tokenizer that has a name of its own for a pattern, or None."""
    if step.regex == _spelling(NUMBER):
        return {"type": "Digits", "individual_digits": True}
    if step.regex == _spelling(Repeat(PUNCTUATION, 1, None)):
        return {"type": "Punctuation", "behavior": "Contiguous"}
    return None


# ----------------------------------------------------------------------------------------------------
# Steps that read bytes. In a tokenizer.json they see the characters that stand for bytes (vocab_merges.py). In a
# Pattern such a step begins with (?bytes) and sees a byte as the character with that code point.


_Pairs = list[tuple[str, int]]  # a character that a set may contain, and the code point that stands for it afterwards


def of_characters(regex: str) -> str:
    """Returns the regular expression that does to the characters that stand for bytes what a step that reads bytes does
    to these. Raises UnsupportedError as `pattern` does."""
    tree = parse(regex.removeprefix(OF_BYTES), REGEX)
    return written(_mapped(tree, [(chr(byte), ord(char)) for byte, char in BYTE_TO_CHAR.items()]), ONIGURUMA)


def _mapped(node: Node, pairs: _Pairs) -> Node:
    if isinstance(node, CharSet):
        inside = regex.compile(written(node, REGEX))
        points = [point for char, point in pairs if inside.match(char)]
        if not points:
            raise UnsupportedError("the pattern has a set that contains no byte")
        return chars((point, point) for point in points)
    if isinstance(node, Seq):
        return seq(_mapped(part, pairs) for part in node.parts)
    if isinstance(node, Alt):
        return alt(_mapped(part, pairs) for part in node.parts)
    if isinstance(node, Repeat):
        return Repeat(_mapped(node.part, pairs), node.least, node.most, node.mode)
    if isinstance(node, Atomic):
        return Atomic(_mapped(node.part, pairs))
    raise UnsupportedError(
        "the pattern has a lookahead, lookbehind or anchor, which pybpe does not support in a step that reads bytes"
    )
