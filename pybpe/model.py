"""What a tokenizer is, as plain data: the form in which formats and the C library exchange it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from . import _binding
from .errors import ArgumentError
from .pattern import Pattern

END_OF_TEXT = "<|endoftext|>"

# The control tokens of the llm.c profile, ids 0 to 8.
CONTROL_TOKENS = (
    END_OF_TEXT,
    "<|padding|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|thought|>",
    "<|/thought|>",
)

SPECIAL_IDS = ("first", "after_bytes", "last")


@dataclass(frozen=True)
class Model:
    """A tokenizer as plain data.

    Attributes:
        tokens: the bytes of id 0, 1, ...; b"" for an unused id. Specials stand here with their UTF-8.
        merges: (left id, right id) in rank order.
        specials: text -> id.
        pattern: how text is cut into words.
        normalizer: None, "NFC" or "NFKC".
        training: how it was trained (tie_break and the like), for the saved file; free of any meaning.
    """

    tokens: Sequence[bytes]
    merges: Sequence[tuple[int, int]]
    specials: Mapping[str, int]
    pattern: Pattern
    normalizer: str | None = None
    training: Mapping[str, object] = field(default_factory=dict)

    @property
    def eot_id(self) -> int | None:
        """The id of <|endoftext|>, or None."""
        return self.specials.get(END_OF_TEXT)

    def to_vocab(self) -> _binding.Vocab:
        """The C vocabulary; ArgumentError if the parts do not fit together."""
        return _binding.Vocab.new(
            self.tokens,
            self.merges,
            self.specials.values(),
            self.eot_id,
            self.pattern.number,
            self.pattern.custom,
            self.normalizer,
        )

    @classmethod
    def from_vocab(cls, vocab: _binding.Vocab) -> Model:
        """The plain data of a C vocabulary."""
        tokens = vocab.tokens()
        specials = {tokens[i].decode("utf-8", "replace"): i for i in vocab.specials()}
        pattern = Pattern.from_number(*vocab.pattern)
        return cls(tokens, vocab.merges(), specials, pattern, vocab.normalizer)


def check_specials(specials: Iterable[str]) -> list[str]:
    """The special tokens as a list; ArgumentError for an empty or repeated one, or one that is no str."""
    if isinstance(specials, (str, bytes)):
        raise ArgumentError("special_tokens is a list of strings, not one string")
    found: dict[str, None] = {}
    for text in specials:
        if not isinstance(text, str):
            raise ArgumentError(f"a special token must be a str, not {type(text).__name__}: {text!r}")
        if not text:
            raise ArgumentError("a special token cannot be empty")
        if text in found:
            raise ArgumentError(f"the special token {text!r} is given twice")
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise ArgumentError(f"the special token {text!r} holds a lone surrogate: not valid Unicode") from None
        found[text] = None
    return list(found)


def lay_out(
    merged: Sequence[tuple[int, int, int]], specials: Sequence[str], special_ids: str
) -> tuple[list[bytes], list[tuple[int, int]], dict[str, int]]:
    """Gives final ids to what a trainer made.

    Args:
        merged: (left, right, merged) in the trainer's numbering: 0-255 bytes, then tokens as made.
        specials: the special tokens.
        special_ids: "first" (specials, bytes, merges), "after_bytes" (bytes, specials, merges) or "last".

    Returns:
        The tokens by id, the merges as pairs of ids, and the specials' ids.
    """
    count = len(specials)
    made = max((new + 1 for _, _, new in merged), default=256)
    special_start = {"first": 0, "after_bytes": 256, "last": made}[special_ids]

    def final(i: int) -> int:
        return i if i < special_start else i + count

    tokens: list[bytes] = [b""] * (made + count)
    for byte in range(256):
        tokens[final(byte)] = bytes([byte])
    for left, right, new in merged:
        tokens[final(new)] = tokens[final(left)] + tokens[final(right)]
    for i, text in enumerate(specials):
        tokens[special_start + i] = text.encode("utf-8")
    pairs = [(final(left), final(right)) for left, right, _ in merged]
    return tokens, pairs, {text: special_start + i for i, text in enumerate(specials)}
