"""The ids of the tokens that a trainer makes. It numbers the bytes 0-255, then tokens in the order of creation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..errors import ArgumentError
from ..formats import byte_level
from ..model import Model
from ..model.remap import with_specials
from ..pattern import Pattern


def blank(specials: Sequence[str], special_ids: str, tie_break: str, pattern: Pattern, normalizer: str | None) -> Model:
    """Returns what training begins with if it extends no tokenizer: the bytes, and the special tokens unless they are
    last. With tie_break "huggingface" the bytes are numbered as in Hugging Face, by the characters that represent
    them."""
    by_char = tie_break == "huggingface"
    tokens = [bytes([i]) for i in sorted(range(256), key=byte_level.BYTE_TO_CHAR.__getitem__ if by_char else None)]
    ids: dict[str, int] = {}
    if special_ids != "last":
        first = 0 if special_ids == "first" else 256
        tokens[first:first] = [text.encode("utf-8") for text in specials]
        ids = {text: i for i, text in enumerate(specials, first)}
    return Model(tokens, [], ids, pattern, normalizer)


class Numbering:
    """A tokenizer, `start`, in the numbering of a trainer that extends it. `merges` are (left, right) in rank order,
    which made `made` tokens; two merges may make the same token. Raises ArgumentError if a byte has no token, or a
    merge joins a token that no earlier merge makes."""

    def __init__(self, start: Model) -> None:
        if lacking := start.lacking_bytes:
            raise ArgumentError(f"base: there is no token for the byte 0x{lacking[0]:02X}: training needs all 256")
        self.start = start
        numbers = {bytes([byte]): byte for byte in range(256)}
        self.merges: list[tuple[int, int]] = []
        for rank, (left, right) in enumerate(start.merges):
            parts = start.tokens[left], start.tokens[right]
            unmade = next((part for part in parts if part not in numbers), None)
            if unmade is not None:
                raise ArgumentError(
                    f"base: merges[{rank}] joins {unmade!r:.60}, which no earlier merge makes: the merges are not in"
                    " training order, so training cannot extend them. extend(special_tokens) works"
                )
            self.merges.append((numbers[parts[0]], numbers[parts[1]]))
            numbers.setdefault(parts[0] + parts[1], len(numbers))
        self.made = len(numbers) - 256
        self._tokens = list(numbers)

    def extended(self, merged: Sequence[tuple[int, int, int]], new_specials: Sequence[str], last: bool) -> Model:
        """Returns the tokenizer with what the trainer made, and with special tokens that the start lacks, at the end if
        `last`. `merged` has (left, right, merged) of all merges, the start's first."""
        model = self.start if last else with_specials(self.start, new_specials)
        tokens, pairs, by_number = list(model.tokens), list(model.merges), list(self._tokens)
        special_ids = set(model.specials.values())
        final = {token: i for i, token in enumerate(tokens) if i not in special_ids}
        for left, right, new in merged[len(self.merges) :]:
            token = by_number[left] + by_number[right]
            if new == len(by_number):
                by_number.append(token)
            if token not in final:
                final[token] = len(tokens)
                tokens.append(token)
            pairs.append((final[by_number[left]], final[by_number[right]]))
        model = replace(model, tokens=tokens, merges=pairs)
        return with_specials(model, new_specials) if last else model
