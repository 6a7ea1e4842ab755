"""Writes a tree as a regular expression for one engine."""

from __future__ import annotations

from .parse import REGEX, Dialect, is_lone
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
    without,
)

_LITERAL_SIGNS = " !\"%',/:;<=>@_`"  # literal in every engine, inside and outside a class
_CONTROLS = {9: r"\t", 10: r"\n", 12: r"\f", 13: r"\r"}
_NAMES = {"White_Space": ("\\s", "\\S"), "Nd": ("\\d", "\\D")}


def write(node: Node, dialect: Dialect, apart: bool = False) -> str:
    """Returns the regular expression with the matches of a tree. With `apart`, it has no parts of sets like [^a], which
    Python's regex package may join."""
    return Writer(dialect, apart).alternatives(node)


class Writer:
    """Writes trees for one engine. Subclasses write what their engine spells differently."""

    def __init__(self, dialect: Dialect, apart: bool = False) -> None:
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
