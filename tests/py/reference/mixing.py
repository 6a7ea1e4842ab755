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


def asked(recipe: Mapping[str, Any], sizes: Mapping[str, int]) -> list[dict[str, int]]:
    """The tokens that each phase asks of each source that it names."""
    phases = recipe.get("phases") or [recipe]
    found = []
    for phase in phases:
        amounts: dict[str, int] = {}
        for name, source in phase["sources"].items():
            if "tokens" in source:
                amounts[name] = source["tokens"] if source["tokens"] != "all" else sizes[name]
            elif "epochs" in source:
                amounts[name] = round(Fraction(str(source["epochs"])) * sizes[name])
        rest = phase.get("tokens", 0) - sum(amounts.values())
        weights = {name: Fraction(str(s["weight"])) for name, s in phase["sources"].items() if "weight" in s}
        before = Fraction(0)
        for name, weight in weights.items():
            share = weight / sum(weights.values())
            amounts[name] = round((before + share) * rest) - round(before * rest)
            before += share
        found.append(amounts)
    return found


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


def taken(
    sources: Mapping[str, Sequence[Document]], recipe: Mapping[str, Any], seed: int, tolerance: int
) -> list[dict[str, list[tuple[int, int, Document]]]]:
    """What each phase takes from each source. sources[name] are the documents of its train split."""
    passes = {name: Source(name, documents, seed) for name, documents in sources.items()}
    sizes = {name: sum(len(document) + 1 for document in documents) for name, documents in sources.items()}
    found = []
    for phase, amounts in zip(recipe.get("phases") or [recipe], asked(recipe, sizes)):
        drawn: dict[str, list[tuple[int, int, Document]]] = {}
        lacking = 0
        for name in sources:
            is_share = "weight" in phase["sources"].get(name, ())
            wanted = amounts.get(name, 0) + (lacking if is_share else 0)
            drawn[name] = passes[name].take(wanted, tolerance)
            if is_share:
                lacking = wanted - sum(len(document) + 1 for _, _, document in drawn[name])
        found.append(drawn)
    return found


def mixed(
    sources: Mapping[str, Mapping[str, Sequence[Document]]], recipe: Mapping[str, Any], seed: int, tolerance: int
) -> dict[str, list[Document]]:
    """The documents of each split, in the order of the output. sources[name][split] are the documents."""
    train: list[Document] = []
    of_phases = taken({name: splits["train"] for name, splits in sources.items()}, recipe, seed, tolerance)
    for number, of_sources in enumerate(of_phases):
        drawn: list[tuple[tuple[int, int], Document]] = []
        for name, some in of_sources.items():
            for of_pass, document, ids in some:
                drawn.append((key(("write", seed, "train", number, name, of_pass), document), ids))
        train += [ids for _, ids in sorted(drawn)]
    found = {"train": train}
    for split in ("val", "test"):
        held_out = [
            (key(("write", seed, split, 0, name, 0), number), ids)
            for name, splits in sources.items()
            for number, ids in enumerate(splits.get(split, ()))
        ]
        found[split] = [ids for _, ids in sorted(held_out)]
    return found
