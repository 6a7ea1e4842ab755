r"""A regular expression as a tree of the constructs that three engines share, with the same meaning.

There are no flags: a letter whose case is ignored is a set of characters, and a dot is a set. Line anchors, word
boundaries and so on are expressed with the few nodes below, so two expressions with equal trees have equal matches.

    \d+|[^\s,]      Alt(Repeat(Chars(Nd)), Chars(not White_Space or ","))
    $               in Python's regex package: Look(Seq(Repeat(Chars("\n"), 0, 1), End()))
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# ----------------------------------------------------------------------------------------------------
# Sets of characters


@dataclass(frozen=True)
class Chars:
    """One character in these ranges and properties; with `negated`, one that is not."""

    ranges: tuple[tuple[int, int], ...]  # (first, last) code points, ascending, neither overlapping nor adjacent
    properties: tuple[str, ...]  # names in classes.PROPERTIES, sorted. "^" before a name means the complement
    negated: bool


@dataclass(frozen=True)
class Either:
    """One character that is in any of the sets."""

    sets: tuple[CharSet, ...]


@dataclass(frozen=True)
class Both:
    """One character that is in all of the sets."""

    sets: tuple[CharSet, ...]


CharSet = Chars | Either | Both


def chars(ranges: Iterable[tuple[int, int]] = (), properties: Iterable[str] = (), negated: bool = False) -> Chars:
    """Returns the Chars for ranges in any order."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = joined[-1][0], max(last, joined[-1][1])
        else:
            joined.append((first, last))
    names = tuple(sorted(set(properties)))
    if any(f"^{name}" in names for name in names):
        return Chars((), (), not negated)
    if not joined and len(names) == 1 and names[0].startswith("^"):  # one spelling for one set
        return Chars((), (names[0][1:],), not negated)
    return Chars(tuple(joined), names, negated)


ANY = chars(negated=True)
NEWLINE = chars([(10, 10)])
NOT_NEWLINE = chars([(10, 10)], negated=True)


def without(members: CharSet) -> CharSet:
    """Returns all characters that are not in a set."""
    if isinstance(members, Chars):
        return chars(members.ranges, members.properties, not members.negated)
    others = tuple(without(part) for part in members.sets)
    return Both(others) if isinstance(members, Either) else Either(others)


def union(sets: Sequence[CharSet]) -> CharSet:
    """Returns the characters that are in any of the sets."""
    plain: list[Chars] = []
    rest: list[CharSet] = []
    for part in sets:
        # One class can contain a negated set with others if it is one property.
        if isinstance(part, Chars) and (
            not part.negated or (not part.ranges and len(part.properties) == 1 and part.properties[0][0] != "^")
        ):
            plain.append(part)
        else:
            rest.append(part)
    joined: list[CharSet] = [_joined(plain)] if plain or not rest else []
    parts = (*joined, *rest)
    return parts[0] if len(parts) == 1 else Either(parts)


def _joined(parts: Iterable[Chars]) -> Chars:
    """Returns one class for the characters of several."""
    ranges: list[tuple[int, int]] = []
    properties: list[str] = []
    for part in parts:
        ranges += part.ranges
        properties += (f"^{name}" if part.negated else name for name in part.properties)
    return chars(ranges, properties)


def intersection(sets: Sequence[CharSet]) -> CharSet:
    """Returns the characters that are in all of the sets."""
    return sets[0] if len(sets) == 1 else Both(tuple(sets))


# ----------------------------------------------------------------------------------------------------
# Nodes that match text


@dataclass(frozen=True)
class Seq:
    """One part after another."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Alt:
    """The first alternative that makes the whole pattern match."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class Repeat:
    """A part, `least` to `most` times (None: no limit). `mode` is "" (greedy), "?" (lazy) or "+" (possessive)."""

    part: Node
    least: int
    most: int | None
    mode: str = ""


@dataclass(frozen=True)
class Atomic:
    """A part that is never retried after it has matched."""

    part: Node


@dataclass(frozen=True)
class Look:
    """A lookahead, or with `behind` a lookbehind; with `negated` the part must not match."""

    part: Node
    behind: bool = False
    negated: bool = False


@dataclass(frozen=True)
class Start:
    """The start of the text."""


@dataclass(frozen=True)
class End:
    """The end of the text."""


Node = Chars | Either | Both | Seq | Alt | Repeat | Atomic | Look | Start | End


def seq(parts: Iterable[Node]) -> Node:
    """Returns the parts as one node, without a Seq in a Seq. A lookahead at one character followed by a character
    becomes the intersection of the two sets."""
    flat: list[Node] = []
    for part in parts:
        for node in part.parts if isinstance(part, Seq) else (part,):
            while flat and isinstance(node, (Chars, Either, Both)) and (seen := _next_character(flat[-1])) is not None:
                node = Both((seen, *(node.sets if isinstance(node, Both) else (node,))))
                flat.pop()
            flat.append(node)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def _next_character(node: Node) -> CharSet | None:
    """Returns the set that a lookahead at one character requires, or None for any other node."""
    if not isinstance(node, Look) or node.behind or not isinstance(node.part, (Chars, Either, Both)):
        return None
    return without(node.part) if node.negated else node.part


def alt(parts: Iterable[Node]) -> Node:
    """Returns the alternatives as one node, without an Alt in an Alt."""
    flat: list[Node] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Alt) else (part,))
    return flat[0] if len(flat) == 1 else Alt(tuple(flat))


def boundary(word: CharSet, negated: bool) -> Node:
    r"""Returns \b, a word character on one side only; or with `negated` \B."""
    before, after = Look(word, behind=True), Look(word)
    not_before, not_after = Look(word, behind=True, negated=True), Look(word, negated=True)
    pairs = [(before, after), (not_before, not_after)] if negated else [(before, not_after), (not_before, after)]
    return alt(seq(pair) for pair in pairs)


def can_be_empty(node: Node) -> bool:
    """Returns whether a node can match the empty string."""
    if isinstance(node, (Chars, Either, Both)):
        return False
    if isinstance(node, Seq):
        return all(map(can_be_empty, node.parts))
    if isinstance(node, Alt):
        return any(map(can_be_empty, node.parts))
    if isinstance(node, Repeat):
        return node.least == 0 or can_be_empty(node.part)
    return not isinstance(node, Atomic) or can_be_empty(node.part)


def run_of(node: Node) -> tuple[CharSet, int | None] | None:
    """Returns the set of a node that matches as many of its characters as there are, and the most that it matches
    (None: no limit). Returns None if it is something else."""
    if isinstance(node, Atomic):
        return run_of(node.part)
    if isinstance(node, Repeat):
        is_run = node.least == 1 and node.mode != "?"
        return (node.part, node.most) if is_run and isinstance(node.part, (Chars, Either, Both)) else None
    return (node, 1) if isinstance(node, (Chars, Either, Both)) else None


def width(node: Node) -> int | None:
    """Returns how many characters a node of plain sets matches, or None if that varies or the node looks around."""
    if isinstance(node, Chars):
        return 1
    if isinstance(node, (Seq, Alt)):
        widths = [width(part) for part in node.parts]
        if None in widths or (isinstance(node, Alt) and len(set(widths)) > 1):
            return None
        known = [one for one in widths if one is not None]
        return sum(known) if isinstance(node, Seq) else known[0]
    if isinstance(node, Repeat) and node.least == node.most:
        inner = width(node.part)
        return None if inner is None else inner * node.least
    return None


def written_out(node: Node) -> int:
    """Returns how many characters and sets of characters a pattern has when its repetitions are written out."""
    if isinstance(node, Repeat):
        return written_out(node.part) * max(1, node.least)
    if isinstance(node, (Seq, Alt)):
        return max(1, sum(written_out(part) for part in node.parts))
    if isinstance(node, (Either, Both)):
        return sum(written_out(part) for part in node.sets)
    if isinstance(node, (Atomic, Look)):
        return written_out(node.part)
    return max(1, len(node.ranges) + len(node.properties)) if isinstance(node, Chars) else 1
