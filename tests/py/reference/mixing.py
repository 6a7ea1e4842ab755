"""The complete mix on lists of documents, slowly: the oracle for pybpe/tokens/mix.

A document is a list of ids without a mark. Its size is one more, since each has a mark.
"""

import hashlib
import json
import struct
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

Document = Sequence[int]
MASK = (1 << 64) - 1


def scrambled(value: int) -> int:
    """splitmix64's finalizer."""
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & MASK
    return value ^ (value >> 31)


def key(purpose: Sequence[Any], document: int) -> tuple[int, int]:
    """Both keys of a document."""
    words = struct.unpack("<4Q", hashlib.blake2b(json.dumps(list(purpose)).encode(), digest_size=32).digest())
    counter = document * 0x9E3779B97F4A7C15
    first, second = (scrambled(scrambled(counter + words[at] & MASK) ^ words[at + 1]) for at in (0, 2))
    return first, second


def asked(recipe: Mapping[str, Any], sizes: Mapping[str, int]) -> dict[str, int]:
    """The tokens that a recipe asks of each source."""
    amounts: dict[str, int] = {}
    for name, source in recipe["sources"].items():
        if "tokens" in source:
            amounts[name] = source["tokens"] if source["tokens"] != "all" else sizes[name]
        elif "epochs" in source:
            amounts[name] = round(Fraction(str(source["epochs"])) * sizes[name])
    rest = recipe.get("tokens", 0) - sum(amounts.values())
    weights = {name: Fraction(str(s["weight"])) for name, s in recipe["sources"].items() if "weight" in s}
    before = Fraction(0)
    for name, weight in weights.items():
        share = weight / sum(weights.values())
        amounts[name] = round((before + share) * rest) - round(before * rest)
        before += share
    return amounts


class Source:
    """All passes over a source: its documents in one endless order."""

    def __init__(self, name: str, documents: Sequence[Document], seed: int) -> None:
        self.name, self.documents, self.seed = name, documents, seed
        self.number = 0
        self.waiting: list[int] = self.order()

    def order(self) -> list[int]:
        """The order of the current pass."""
        purpose = ("draw", self.seed, self.name, self.number)
        return sorted(range(len(self.documents)), key=lambda document: key(purpose, document))

    def take(self, tokens: int, tolerance: int) -> list[tuple[int, int, Document]]:
        """The next documents: pass, number, and the document, of which the last may be cut."""
        found: list[tuple[int, int, Document]] = []
        while tokens > 0:
            if not self.waiting:
                self.number += 1
                self.waiting = self.order()
            document = self.documents[self.waiting[0]]
            if len(document) + 1 > tokens:
                if tokens >= max(2, tolerance):
                    found.append((self.number, self.waiting.pop(0), document[: tokens - 1]))
                break
            found.append((self.number, self.waiting.pop(0), document))
            tokens -= len(document) + 1
        return found


def spread(drawn: Sequence[tuple[int, int, Document]], of_pass: int, first: int) -> int:
    """The first key of a document, moved into the part of all keys that its pass has."""
    sizes = [sum(len(ids) + 1 for number, _, ids in drawn if number in range(end)) for end in (of_pass, of_pass + 1)]
    begin, end = (size * 2**32 // sum(len(ids) + 1 for _, _, ids in drawn) for size in sizes)
    return begin * 2**32 + first * (end - begin) // 2**32


def mixed(
    sources: Mapping[str, Mapping[str, Sequence[Document]]], recipe: Mapping[str, Any], seed: int, tolerance: int
) -> dict[str, list[Document]]:
    """The documents of each split, in the order of the output. sources[name][split] are the documents."""
    sizes = {name: sum(len(document) + 1 for document in splits["train"]) for name, splits in sources.items()}
    amounts, lacking = asked(recipe, sizes), 0
    train: list[tuple[tuple[int, int], Document]] = []
    for name, splits in sources.items():
        is_share = "weight" in recipe["sources"][name]
        wanted = amounts[name] + (lacking if is_share else 0)
        drawn = Source(name, splits["train"], seed).take(wanted, tolerance)
        if is_share:
            lacking = wanted - sum(len(document) + 1 for _, _, document in drawn)
        for of_pass, document, ids in drawn:
            first, second = key(("write", seed, "train", name, of_pass), document)
            train.append(((spread(drawn, of_pass, first), second), ids))
    found = {"train": [ids for _, ids in sorted(train)]}
    for split in ("val", "test"):
        held_out = [
            (key(("write", seed, split, name, 0), number), ids)
            for name, splits in sources.items()
            for number, ids in enumerate(splits.get(split, ()))
        ]
        found[split] = [ids for _, ids in sorted(held_out)]
    return found
