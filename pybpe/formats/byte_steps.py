"""Steps of a tokenizer.json's pre-tokenizer after ByteLevel, which see the characters that stand for bytes.

In a Pattern such a step begins with (?bytes) and sees each byte as the character with that code point.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..byte_level import BYTE_TO_CHAR
from ..dialects import ONIGURUMA, REGEX
from ..dialects.parse import parse
from ..dialects.tree import Alt, Atomic, Both, Chars, CharSet, Either, Node, Repeat, Seq, alt, chars, seq
from ..dialects.write import write
from ..errors import UnsupportedError
from ..pattern import OF_BYTES

_Pairs = list[tuple[str, int]]  # a character that a set may contain, and the code point that stands for it afterwards


def from_hugging_face(node: Node) -> str:
    """Returns the step that does to bytes what a tree does to the characters that stand for them.

    Raises:
        UnsupportedError: the tree has a lookahead, a lookbehind or an anchor.
    """
    return OF_BYTES + write(_mapped(node, [(char, byte) for byte, char in BYTE_TO_CHAR.items()]), REGEX)


def to_hugging_face(step: str) -> str:
    """Returns the regular expression that does what a step with (?bytes) does, in the dialect of Hugging Face's engine.

    Raises:
        UnsupportedError: the step has a lookahead, a lookbehind or an anchor.
    """
    tree = parse(step.removeprefix(OF_BYTES), REGEX)
    return write(_mapped(tree, [(chr(byte), ord(char)) for byte, char in BYTE_TO_CHAR.items()]), ONIGURUMA)


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
