"""Translates regular expressions between the dialects of three engines: Python's regex package, which pybpe uses,
fancy-regex (tiktoken) and Oniguruma (Hugging Face tokenizers).

parse.py reads a pattern into a tree (tree.py), whose nodes mean the same in every engine, and `write` writes a pattern
from it. A construct that one engine reads differently becomes one that all engines read in the same way:

    tiktoken    [\\p{L}&&[^\\p{Han}]]+    pybpe         (?:(?=\\p{L})\\P{Han})+
    pybpe       \\w                       Hugging Face  [\\p{Alphabetic}\\p{M}\\d\\p{Pc}\\x{200c}-\\x{200d}]

pybpe refuses a construct that is not known to mean the same, and the error says where it is. The engines use different
versions of Unicode, so an engine may not know the class of a recently assigned character and may split it differently.

Sources: the documentation of regex (PyPI), of the crates regex-syntax and fancy-regex, and doc/RE of Oniguruma; and
tests of the engines, character by character (tests/py/test_dialects.py).
"""

from __future__ import annotations

from functools import lru_cache

from ..._lazy import regex
from ...errors import UnsupportedError
from .parse import ONIGURUMA, REGEX, RUST, Dialect, is_lone, parse
from .tree import (
    ANY,
    NOT_NEWLINE,
    Alt,
    Atomic,
    Both,
    Chars,
    CharSet,
    Either,
    End,
    Look,
    Node,
    Repeat,
    Seq,
    Start,
    can_be_empty,
    intersection,
    union,
    without,
    written_out,
)

__all__ = ["ONIGURUMA", "REGEX", "RUST", "Dialect", "Writer", "parse", "translate", "write", "written", "written_out"]


def translate(pattern: str, source: Dialect, target: Dialect, *, whole: bool = False) -> str:
    """Translates a pattern to another dialect, with the same matches. Returns it unchanged if it means the same there.
    If a construct is not known to mean the same, UnsupportedError names it and its place. A pattern that can match the
    empty string is refused, and with `whole` one that may leave text unmatched."""
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


# ----------------------------------------------------------------------------------------------------
# Writes a tree as a regular expression for one engine


_LITERAL_SIGNS = " !\"%',/:;<=>@_`"  # literal in every engine, inside and outside a class
_CONTROLS = {9: r"\t", 10: r"\n", 12: r"\f", 13: r"\r"}
_NAMES = {"White_Space": ("\\s", "\\S"), "Nd": ("\\d", "\\D")}


def write(node: Node, dialect: Dialect, apart: bool = False) -> str:
    """Returns the regular expression with the matches of a tree. With `apart`, it has no parts of sets like [^a], which
    Python's regex package may join."""
    return Writer(dialect, apart).alternatives(node)


class Writer:
    """Writes trees for one engine. Subclasses write the constructs that their engine spells differently."""

    def __init__(self, dialect: Dialect, apart: bool) -> None:
        self._dialect, self._apart = dialect, apart

    def alternatives(self, node: Node) -> str:
        """Writes a node where alternatives are allowed."""
        return "|".join(map(self._sequence, node.parts)) if isinstance(node, Alt) else self._sequence(node)

    def _sequence(self, node: Node) -> str:
        return "".join(map(self._element, node.parts)) if isinstance(node, Seq) else self._element(node)

    def _element(self, node: Node) -> str:
        """Writes a node in a sequence."""
        if not isinstance(node, Repeat):
            return self._atom(node)
        base, count = self._atom(node.part), _count(node.least, node.most)
        return self.possessive(base, count) if node.mode == "+" else base + count + node.mode

    def _atom(self, node: Node) -> str:
        """Writes a node that may be repeated."""
        if isinstance(node, Chars):
            return self._chars(node)
        if isinstance(node, Either):
            return f"(?:{'|'.join(map(self._part, node.sets))})"
        if isinstance(node, Both):
            *looks, last = map(self._part, node.sets)
            return f"(?:{''.join(f'(?={look})' for look in looks)}{last})"
        if isinstance(node, Look):
            return self.look(node)
        if isinstance(node, Atomic):
            return self.atomic(self.alternatives(node.part))
        if isinstance(node, (Start, End)):
            return self.anchor(isinstance(node, Start))
        return f"(?:{self.alternatives(node)})"

    def _part(self, members: CharSet) -> str:
        """Writes a part of a set."""
        if self._apart and is_lone(members):
            return f"(?:(?!{self._atom(without(members))})[\\s\\S])"
        return self._atom(members)

    def possessive(self, base: str, count: str) -> str:
        """Writes a possessive repetition."""
        if count in ("*", "+", "?"):
            return f"{base}{count}+"
        return self.atomic(base + count)  # {n}+ repeats again in Oniguruma

    def atomic(self, source: str) -> str:
        """Writes a part that is never retried."""
        return f"(?>{source})"

    def look(self, node: Look) -> str:
        """Writes a lookahead or lookbehind."""
        return f"(?{'<' if node.behind else ''}{'!' if node.negated else '='}{self.alternatives(node.part)})"

    def anchor(self, start: bool) -> str:
        """Writes the start or the end of the text."""
        return "\\A" if start else "\\Z" if self._dialect is REGEX else "\\z"

    def short(self, members: Chars) -> str | None:
        """Returns the spelling that the engine has for a set as a whole, or None."""
        word = self._dialect.sets["w"]
        none = f"[^{self.char(0)}-{self.char(0x10FFFF)}]"  # [^\s\S] is everything in Python's regex package
        spellings = {NOT_NEWLINE: ".", ANY: r"[\s\S]", without(ANY): none, word: r"\w", without(word): r"\W"}
        return spellings.get(members)

    def _chars(self, members: Chars) -> str:
        short = self.short(members)
        if short is not None:
            return short
        if not members.ranges and len(members.properties) == 1:
            return self._property(members.properties[0], members.negated)
        if not members.properties and not members.negated and len(members.ranges) == 1:
            first, last = members.ranges[0]
            if first == last:
                return self.char(first)
        items = [self.char(a) if a == b else f"{self.char(a)}-{self.char(b)}" for a, b in members.ranges]
        names = [self._property(name, False) for name in members.properties]
        return f"[{'^' if members.negated else ''}{''.join(items + names)}]"

    def char(self, point: int) -> str:
        """Writes a literal character, inside or outside a class."""
        char = chr(point)
        if point in _CONTROLS:
            return _CONTROLS[point]
        if point < 128:
            return char if char.isalnum() or char in _LITERAL_SIGNS else f"\\x{point:02x}"
        if char.isprintable() and not char.isspace():
            return char
        if self._dialect.long_hex:
            return f"\\x{{{point:x}}}"
        return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"

    def _property(self, name: str, negated: bool) -> str:
        """Writes a property, or with "^" before its name the complement."""
        return self.property(name.lstrip("^"), negated != name.startswith("^"))

    def property(self, name: str, negated: bool) -> str:
        """Writes a property, or its complement."""
        if name in _NAMES:
            return _NAMES[name][negated]
        return f"\\{'P' if negated else 'p'}{{{name}}}"


def _count(least: int, most: int | None) -> str:
    if (least, most) in ((0, None), (1, None), (0, 1)):
        return "+" if least else "?" if most else "*"
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"


# ----------------------------------------------------------------------------------------------------
# Finds out whether a pattern matches all text, so that no character is left between its matches


def first_uncovered(node: Node) -> int | None:
    """Returns the first code point that may fail to begin a match in some context, or None if there is none."""
    sure = _sure(node)
    if sure is None:
        return 0
    found = regex.search(f"(?!{write(sure, REGEX)})[\\s\\S]", _all_characters())
    return None if found is None else ord(found.group())


@lru_cache(maxsize=1)
def _all_characters() -> str:
    return "".join(chr(point) for point in range(0x110000) if not 0xD800 <= point <= 0xDFFF)


def _sure(node: Node) -> CharSet | None:
    """Returns characters that begin a match of the node in every context, or None if none are known."""
    if isinstance(node, (Chars, Either, Both)):
        return node
    if isinstance(node, Alt):
        found = [sure for part in node.parts if (sure := _sure(part)) is not None]
        return union(found) if found else None
    if isinstance(node, Repeat):
        return _sure(node.part) if node.least <= 1 else None
    if isinstance(node, Atomic):
        return _sure(node.part)
    return _sure_sequence(node.parts) if isinstance(node, Seq) else None


def _sure_sequence(parts: tuple[Node, ...]) -> CharSet | None:
    """Like `_sure`, for a sequence: takes the first required part, if all parts after it are optional."""
    barred: list[CharSet] = []  # characters that an earlier possessive part matches and never gives back
    for i, part in enumerate(parts):
        if not _can_be_left_out(part):
            sure = _sure(part) if all(map(_can_be_left_out, parts[i + 1 :])) else None
            return None if sure is None else intersection([sure, *map(without, barred)])
        if isinstance(part, Repeat) and part.mode == "+":
            if not isinstance(part.part, (Chars, Either, Both)):
                return None
            barred.append(part.part)
    return None


def _can_be_left_out(node: Node) -> bool:
    return isinstance(node, Repeat) and node.least == 0
