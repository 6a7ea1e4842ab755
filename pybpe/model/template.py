"""Templates: the special tokens to put around an encoded text, or around a pair of them.

They do the same as Hugging Face's TemplateProcessing, and have the same syntax.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import ArgumentError


class TemplatePiece(NamedTuple):
    """A part of a template."""

    text: str  # "A" or "B" for the first or the second text; otherwise a special token
    is_sequence: bool  # whether this piece is one of the texts
    type_id: int = 0  # Hugging Face's token type. Saved files keep it; it does not affect ids.

    @classmethod
    def parse(cls, spelled: str) -> TemplatePiece:
        """Parses a piece, such as "$A", "$B:1", "<s>" or "<s>:1"."""
        body, colon, number = spelled.rpartition(":")
        if not colon or not body or not number.isdecimal():
            body, number = spelled, "0"
        if not body.startswith("$"):
            return cls(body, False, int(number))
        name = body[1:] or "A"
        if name.isdecimal():  # "$1" is the first text with type 1
            name, number = "A", name
        if name.upper() not in ("A", "B"):
            raise ArgumentError(f"the texts of a template are $A and $B, not {spelled!r}")
        return cls(name.upper(), True, int(number))

    def __str__(self) -> str:
        body = f"${self.text}" if self.is_sequence else self.text
        return f"{body}:{self.type_id}" if self.type_id else body


@dataclass(frozen=True)
class Template:
    """The special tokens that `Tokenizer.encode(..., add_special_tokens=True)` puts around text.

    Attributes:
        single: the pieces for one text.
        pair: the pieces for two texts.

    >>> template = Template.parse("<s> $A </s>", "<s> $A </s> $B:1 </s>:1")
    >>> template.apply({"<s>": 1, "</s>": 2}, [10, 11])
    [1, 10, 11, 2]
    >>> template.apply({"<s>": 1, "</s>": 2}, [10], [20])
    [1, 10, 2, 20, 2]
    >>> print(Template.around(eos="</s>"))
    $A </s> | $A </s> $B:1 </s>:1
    """

    single: tuple[TemplatePiece, ...]
    pair: tuple[TemplatePiece, ...] = (TemplatePiece("A", True), TemplatePiece("B", True, 1))

    def __post_init__(self) -> None:
        if [piece.text for piece in self.single if piece.is_sequence] != ["A"]:
            raise ArgumentError(f"a template for one text must contain $A once, and no $B: {_join(self.single)!r}")
        if sorted(p.text for p in self.pair if p.is_sequence) != ["A", "B"]:
            raise ArgumentError(f"a template for two texts must contain $A and $B once each: {_join(self.pair)!r}")

    @classmethod
    def parse(cls, single: str | Sequence[str], pair: str | Sequence[str] = "$A $B:1") -> Template:
        """Parses Hugging Face's syntax: $A and $B are the first and the second text, the rest are special tokens, and
        ":1" sets the type.

        Args:
            single, pair: pieces separated by spaces, or a list of pieces (if a special token contains a space).

        Raises:
            ArgumentError: $A, or $B in a pair, is missing or repeated.
        """
        return cls(_split(single), _split(pair))

    @classmethod
    def around(cls, bos: str | None = None, eos: str | None = None) -> Template:
        """Returns the template that puts `bos` before and `eos` after a text. Raises ArgumentError if both are None."""
        if bos is None and eos is None:
            raise ArgumentError("bos and eos are both None: pass at least one of them")

        def one(text: str, type_id: int) -> tuple[TemplatePiece, ...]:
            before = (TemplatePiece(bos, False, type_id),) if bos is not None else ()
            after = (TemplatePiece(eos, False, type_id),) if eos is not None else ()
            return (*before, TemplatePiece(text, True, type_id), *after)

        return cls(one("A", 0), one("A", 0) + one("B", 1))

    @property
    def changes_ids(self) -> bool:
        """Whether this template changes the ids of encoded texts: it has special tokens, or puts $B first."""
        return bool(self.special_tokens) or self.pair[0].text != "A"

    @property
    def special_tokens(self) -> list[str]:
        """The special tokens of the template, in order, without repeats."""
        return list(dict.fromkeys(p.text for p in (*self.single, *self.pair) if not p.is_sequence))

    def check(self, specials: Mapping[str, int]) -> None:
        """Raises ArgumentError unless all its special tokens are in `specials` (text -> id)."""
        for text in self.special_tokens:
            if text not in specials:
                raise ArgumentError(f"{text!r} in the template is not a special token of this tokenizer")

    def without_specials(self) -> Template:
        """Returns the template without its special tokens: only the texts, in the same order."""
        return Template(*(tuple(p for p in pieces if p.is_sequence) for pieces in (self.single, self.pair)))

    def apply(self, specials: Mapping[str, int], first: list[int], second: list[int] | None = None) -> list[int]:
        """Returns the ids of the texts and the special tokens around them.

        Args:
            specials: text -> id.
            first, second: the ids of the first text, and of the second one if there are two.
        """
        texts = {"A": first, "B": second or []}
        ids: list[int] = []
        for piece in self.single if second is None else self.pair:
            ids += texts[piece.text] if piece.is_sequence else [specials[piece.text]]
        return ids

    def __str__(self) -> str:
        return f"{_join(self.single)} | {_join(self.pair)}"


def _split(spelled: str | Sequence[str]) -> tuple[TemplatePiece, ...]:
    return tuple(map(TemplatePiece.parse, spelled.split() if isinstance(spelled, str) else spelled))


def _join(pieces: Sequence[TemplatePiece]) -> str:
    return " ".join(map(str, pieces))
