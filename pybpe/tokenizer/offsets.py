"""Finds the spans of tokens in their text, in bytes and in characters.

A token of byte-level BPE may begin or end inside a character. Its character span then includes that character, so the
spans of two adjacent tokens may overlap by one character.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .._lazy import numpy

Span = tuple[int, int]


class EncodingWithOffsets(NamedTuple):
    """Ids, and the span of each of their tokens in the text.

    Attributes:
        ids: the ids that `Tokenizer.encode` returns.
        byte_spans: (start, end) in the text's UTF-8. They are contiguous.
        char_spans: (start, end) in characters. A span includes every character that has a byte in the token.
    """

    ids: list[int]
    byte_spans: list[Span]
    char_spans: list[Span]


_STEP = 1 << 16  # tokens processed at once, which takes some milliseconds; Ctrl-C works between steps


def spans(
    ids: Sequence[int],
    token_offsets: numpy.ndarray[Any, Any],
    data: bytes | memoryview,
    matched: Mapping[int, int],
) -> tuple[list[Span], list[Span]]:
    """Returns the spans of ids in bytes and in characters.

    A continuation byte belongs to the character before it. So in text that is not UTF-8 this counts lead bytes and
    single bytes. `token_offsets`, of shape (n_vocab + 1,), says where the tokens of id 0, 1, ... begin in all of them
    joined; `data` are the bytes that the ids spell. `matched` maps the index of an id to the number of bytes that it
    represents in `data`, if not its own. A space that was added has none; in characters, it has the span of the
    character after it, as in Hugging Face's library."""
    places = sorted(matched)
    text = numpy.frombuffer(data, dtype=numpy.uint8)
    byte_spans: list[Span] = []
    char_spans: list[Span] = []
    start = characters = 0  # the byte offset of the step, and the number of characters that begin before it
    for first in range(0, len(ids), _STEP):
        numbers = numpy.array(ids[first : first + _STEP], dtype=numpy.int64)
        lengths = token_offsets[numbers + 1] - token_offsets[numbers]
        for place in places[bisect_left(places, first) : bisect_left(places, first + _STEP)]:
            lengths[place - first] = matched[place]
        bounds = numpy.concatenate(([0], numpy.cumsum(lengths, dtype=numpy.int64)))
        is_first = (text[start : start + bounds[-1]] & 0xC0) != 0x80
        step = _between(bounds + start)
        byte_spans += step
        if characters < start or not is_first.all():  # otherwise every byte so far is a character
            before = numpy.concatenate(([characters], characters + numpy.cumsum(is_first, dtype=numpy.int64)))
            step = _between(before[bounds])
            inside = ~numpy.append(is_first, True)[bounds[:-1]]  # a token without bytes may begin at the end
            for i in numpy.flatnonzero(inside).tolist():  # the token begins inside a character
                step[i] = (max(0, step[i][0] - 1), step[i][1])
            characters = int(before[-1])
        else:
            characters += len(is_first)
        for i in numpy.flatnonzero(lengths == 0).tolist():
            step[i] = (step[i][0], step[i][0] + 1)
        char_spans += step
        start += int(bounds[-1])
    return byte_spans, char_spans


def _between(bounds: numpy.ndarray[Any, Any]) -> list[Span]:
    places = bounds.tolist()
    return list(zip(places, places[1:]))


def char_starts(tokens: Sequence[bytes]) -> list[int]:
    """Returns the index of the character in which each token begins, as tiktoken's decode_with_offsets does."""
    starts = []
    count = 0
    for token in tokens:
        starts.append(max(0, count - (0x80 <= token[0] < 0xC0)))
        count += sum(1 for byte in token if not 0x80 <= byte < 0xC0)
    return starts
