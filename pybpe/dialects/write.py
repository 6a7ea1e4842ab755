"""Writes a tree as a regular expression for one engine."""

from __future__ import annotations

from .parse import REGEX, Dialect
from .tree import ANY, NOT_NEWLINE, Alt, Atomic, Both, Chars, Either, End, Look, Node, Repeat, Seq, Start, without

_LITERAL_SIGNS = " !\"%',/:;<=>@_`"  # literal in every engine, inside and outside a class
_CONTROLS = {9: r"\t", 10: r"\n", 12: r"\f", 13: r"\r"}
_NAMES = {"White_Space": ("\\s", "\\S"), "Nd": ("\\d", "\\D")}


def write(node: Node, dialect: Dialect) -> str:
    """Returns the regular expression with the matches of a tree."""
    return _Writer(dialect).alternatives(node)


class _Writer:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._end = "\\Z" if dialect is REGEX else "\\z"

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
        if node.mode == "+" and count not in ("*", "+", "?"):  # {n}+ repeats again in Oniguruma
            return f"(?>{base}{count})"
        return base + count + node.mode

    def _atom(self, node: Node) -> str:
        """Writes a node that may be repeated."""
        if isinstance(node, Chars):
            return self._chars(node)
        if isinstance(node, Either):
            return f"(?:{'|'.join(map(self._atom, node.sets))})"
        if isinstance(node, Both):
            *looks, last = map(self._atom, node.sets)
            return f"(?:{''.join(f'(?={look})' for look in looks)}{last})"
        if isinstance(node, Look):
            return f"(?{'<' if node.behind else ''}{'!' if node.negated else '='}{self.alternatives(node.part)})"
        if isinstance(node, Atomic):
            return f"(?>{self.alternatives(node.part)})"
        if isinstance(node, (Start, End)):
            return "\\A" if isinstance(node, Start) else self._end
        return f"(?:{self.alternatives(node)})"

    def _chars(self, members: Chars) -> str:
        if members == NOT_NEWLINE:
            return "."
        if members == ANY:
            return r"[\s\S]"
        if members == without(ANY):  # [^\s\S] is everything in Python's regex package
            return f"[^{self._char(0)}-{self._char(0x10FFFF)}]"
        word = self._dialect.sets["w"]
        if members in (word, without(word)):
            return r"\w" if members == word else r"\W"
        if not members.ranges and len(members.properties) == 1:
            return _property(members.properties[0], members.negated)
        if not members.properties and not members.negated and len(members.ranges) == 1:
            first, last = members.ranges[0]
            if first == last:
                return self._char(first)
        items = [self._char(a) if a == b else f"{self._char(a)}-{self._char(b)}" for a, b in members.ranges]
        names = [_property(name, False) for name in members.properties]
        return f"[{'^' if members.negated else ''}{''.join(items + names)}]"

    def _char(self, point: int) -> str:
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


def _property(name: str, negated: bool) -> str:
    negated = negated != name.startswith("^")
    name = name.lstrip("^")
    if name in _NAMES:
        return _NAMES[name][negated]
    return f"\\{'P' if negated else 'p'}{{{name}}}"


def _count(least: int, most: int | None) -> str:
    if (least, most) in ((0, None), (1, None), (0, 1)):
        return "+" if least else "?" if most else "*"
    return f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
