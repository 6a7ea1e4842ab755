"""Where tokens stand in their text: in bytes and in characters.

A token of byte-level BPE may begin or end inside a character. Its character span then covers that character
too, so the spans of two neighbours may share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

Span = tuple[int, int]


class EncodingWithOffsets(NamedTuple):
    """Ids, and for each one where its token stands in the text.

    Attributes:
        ids: as `Tokenizer.encode` gives them.
        byte_spans: (start, end) in the text's UTF-8; they follow each other without a gap.
        char_spans: (start, end) in characters: all that the token touches.
    """

    ids: list[int]
    byte_spans: list[Span]
    char_spans: list[Span]


def byte_spans(lengths: Sequence[int]) -> list[Span]:
    """The spans of tokens of these lengths."""
    spans = []
    end = 0
    for length in lengths:
        start, end = end, end + length
        spans.append((start, end))
    return spans


def char_spans(data: bytes, spans: Sequence[Span]) -> list[Span]:
    """The characters that each span of bytes touches. A continuation byte belongs to the character before
    it; in text that is not UTF-8, this is the count of lead and single bytes."""
    starts = []  # starts[i]: characters that begin before byte i
    count = 0
    for byte in data:
        starts.append(count)
        count += not 0x80 <= byte < 0xC0
    starts.append(count)
    return [(starts[a] - _is_inside(data, a), starts[b]) if b > a else (starts[a], starts[a]) for a, b in spans]


def _is_inside(data: bytes, at: int) -> int:
    """1 if a byte goes on with a character, else 0."""
    return 1 if at > 0 and 0x80 <= data[at] < 0xC0 else 0


def char_starts(tokens: Sequence[bytes]) -> list[int]:
    """For each token the character in which it begins, as tiktoken's decode_with_offsets counts them."""
    starts = []
    count = 0
    for token in tokens:
        starts.append(max(0, count - (0x80 <= token[0] < 0xC0)))
        count += sum(1 for byte in token if not 0x80 <= byte < 0xC0)
    return starts
