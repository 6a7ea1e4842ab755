"""Converts patterns to and from other libraries, whose engines read some regular expressions differently.

Every format and object that contains a pattern for Hugging Face uses `for_hugging_face`; for tiktoken, `for_tiktoken`.
The built-in patterns are the same everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..errors import UnsupportedError
from ..pattern import OF_BYTES, Pattern, PatternLike, portable
from ..pattern.dialects import ONIGURUMA, REGEX, RUST, translate
from ..pattern.dialects.parse import parse
from ..pattern.dialects.tree import Alt, Atomic, Both, Chars, CharSet, Either, Node, Repeat, Seq, alt, chars, seq
from ..pattern.dialects.write import write
from .byte_level import BYTE_TO_CHAR


def for_hugging_face(pattern: Pattern) -> str:
    """Returns a regular expression that gives the same words in Hugging Face's engine, Oniguruma. That of a built-in
    pattern does so in transformers.js too. The pattern must have one step.

    Raises:
        UnsupportedError: no such expression is known. The message says which part of the pattern is the reason.
    """
    if not pattern.is_custom:
        return portable(pattern.regex)
    try:
        if pattern.regex.startswith(OF_BYTES):
            tree = parse(pattern.regex.removeprefix(OF_BYTES), REGEX)
            return write(_mapped(tree, [(chr(byte), ord(char)) for byte, char in BYTE_TO_CHAR.items()]), ONIGURUMA)
        return translate(pattern.regex, REGEX, ONIGURUMA)
    except UnsupportedError as error:
        raise UnsupportedError(
            f"Hugging Face's engine (Oniguruma) may split text differently: {error}; write that part in another way"
        ) from None


def check_for_hugging_face(pattern: Pattern) -> None:
    """Raises UnsupportedError if Hugging Face may split text differently. Everything that writes for Hugging Face calls
    this, except `save`, which then writes a file that Hugging Face refuses."""
    for step in pattern.steps or (pattern,):
        for_hugging_face(step)


def for_tiktoken(pattern: Pattern) -> str:
    """Returns a regular expression that gives the same words in tiktoken's engine, fancy-regex.

    Raises:
        UnsupportedError: no such expression is known. The message says which part of the pattern is the reason.
    """
    if not pattern.is_custom:
        return pattern.regex
    if pattern.steps:
        raise UnsupportedError(
            f"tiktoken splits text with one regular expression; this pattern has {len(pattern.steps)} steps, each of"
            " which splits the pieces of the step before it"
        )
    try:
        return translate(pattern.regex, REGEX, RUST, whole=True)
    except UnsupportedError as error:
        raise UnsupportedError(f"tiktoken may split text differently: {error}") from None


def from_tiktoken(pattern: PatternLike, name: str) -> Pattern:
    """Returns the pattern that gives the same words as tiktoken's: a regular expression for its engine, or a built-in
    name.

    Raises:
        UnsupportedError: no such pattern is known. The message says why, and calls the source `name`.
        ArgumentError: there is no such built-in name.
    """
    if isinstance(pattern, Pattern):
        return pattern
    known = Pattern.known(pattern)
    if known is not None or re.fullmatch(r"[\w.-]*", pattern):
        return known or Pattern(pattern)
    try:
        return Pattern(translate(pattern, RUST, REGEX, whole=True))
    except UnsupportedError as error:
        raise UnsupportedError(f"{name}: pybpe may split text differently from tiktoken: {error}") from None


def unnamed(regex: str) -> str:
    """Returns the regular expression, in a group if it could be taken for the name of a pattern."""
    return f"(?:{regex})" if re.fullmatch(r"[\w.-]*", regex) else regex


# ----------------------------------------------------------------------------------------------------
# Steps that read bytes. In a tokenizer.json they see the characters that stand for bytes (byte_level.py). In a Pattern
# such a step begins with (?bytes) and sees each byte as the character with that code point.


_Pairs = list[tuple[str, int]]  # a character that a set may contain, and the code point that stands for it afterwards


def of_bytes(node: Node) -> str:
    """Returns the step that does to bytes what a tree does to the characters that stand for them. Raises
    UnsupportedError if the tree has a lookahead, a lookbehind or an anchor."""
    return OF_BYTES + write(_mapped(node, [(char, byte) for byte, char in BYTE_TO_CHAR.items()]), REGEX)


def _mapped(node: Node, pairs: _Pairs) -> Node:
    if isinstance(node, (Chars, Either, Both)):
        return _mapped_set(node, pairs)
    if isinstance(node, Seq):
        return seq(_mapped_all(node.parts, pairs))
    if isinstance(node, Alt):
        return alt(_mapped_all(node.parts, pairs))
    if isinstance(node, Repeat):
        return Repeat(_mapped(node.part, pairs), node.least, node.most, node.mode)
    if isinstance(node, Atomic):
        return Atomic(_mapped(node.part, pairs))
    raise UnsupportedError(
        "the pattern has a lookahead, lookbehind or anchor, which pybpe does not support in a step that reads bytes"
    )


def _mapped_all(parts: Iterable[Node], pairs: _Pairs) -> list[Node]:
    return [_mapped(part, pairs) for part in parts]


def _mapped_set(members: CharSet, pairs: _Pairs) -> CharSet:
    import regex

    inside = regex.compile(write(members, REGEX))
    points = [point for char, point in pairs if inside.match(char)]
    if not points:
        raise UnsupportedError("the pattern has a set that contains no byte")
    return chars((point, point) for point in points)
