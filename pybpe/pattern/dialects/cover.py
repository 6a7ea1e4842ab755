"""Finds out whether a pattern matches all text, so that no character is left between its matches."""

from __future__ import annotations

from functools import lru_cache

from ..._lazy import regex
from .parse import REGEX
from .tree import Alt, Atomic, Both, Chars, CharSet, Either, Node, Repeat, Seq, intersection, union, without
from .write import write


def first_uncovered(node: Node) -> int | None:
    """Returns the first code point with which a match may fail to begin in some context; None if there is none."""
    sure = _sure(node)
    if sure is None:
        return 0
    found = regex.search(f"(?!{write(sure, REGEX)})[\\s\\S]", _all_characters())
    return None if found is None else ord(found.group())


@lru_cache(maxsize=1)
def _all_characters() -> str:
    return "".join(chr(point) for point in range(0x110000) if not 0xD800 <= point <= 0xDFFF)


def _sure(node: Node) -> CharSet | None:
    """Returns characters with which a match of the node begins in every context; None if none are known."""
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
    """Does what `_sure` does for a sequence: takes the first required part, if all parts after it are optional."""
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
