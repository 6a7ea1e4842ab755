"""How Hugging Face's library finds added tokens, one character at a time.

Source: AddedVocabulary::find_matches and extract_and_normalize in tokenizers/src/tokenizer/added_vocabulary.rs.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import regex

# What the crate `regex` matches with \w, but with the tables of the Python package `regex`, which are newer.
WORD = regex.compile(r"[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}]")
SPACE = regex.compile(r"\s")


class Token(NamedTuple):
    lstrip: bool = False
    rstrip: bool = False
    single_word: bool = False
    normalized: bool = False


Match = tuple[int, int, str]  # start, end, token


def longest_at(text: str, at: int, tokens: Mapping[str, Token]) -> str | None:
    return max((token for token in tokens if text.startswith(token, at)), key=len, default=None)


def strings(text: str, tokens: Mapping[str, Token]) -> Iterator[Match]:
    """Yields the leftmost longest tokens. Each begins after the one before."""
    at = 0
    while at < len(text):
        token = longest_at(text, at, tokens)
        if token is not None:
            yield at, at + len(token), token
        at += len(token or " ")


def one_pass(text: str, tokens: Mapping[str, Token]) -> Iterator[Match]:
    done = 0
    for start, end, token in strings(text, tokens):
        flags = tokens[token]
        around = text[:start][-1:] + text[end : end + 1]
        if flags.single_word and any(map(WORD.match, around)):
            continue
        while flags.lstrip and start > done and SPACE.match(text[start - 1]):
            start -= 1
        while flags.rstrip and end < len(text) and SPACE.match(text[end]):
            end += 1
        yield start, end, token
        done = end


def gaps(text: str, matches: list[Match]) -> Iterator[tuple[int, int]]:
    begin = 0
    for start, end, _ in matches:
        yield begin, start
        begin = end
    yield begin, len(text)


def matches(text: str, tokens: Mapping[str, Token]) -> list[Match]:
    """Returns all matches of a text, if there is no normalizer: those that are "normalized" between the others."""
    early = list(one_pass(text, {token: flags for token, flags in tokens.items() if not flags.normalized}))
    late = {token: flags for token, flags in tokens.items() if flags.normalized}
    between = [
        (begin + start, begin + end, token)
        for begin, stop in gaps(text, early)
        for start, end, token in one_pass(text[begin:stop], late)
    ]
    return sorted([*early, *between])


def encode(
    text: str, tokens: Mapping[str, Token], ids: Mapping[str, int], ordinary: Callable[[str], list[int]]
) -> list[int]:
    """Returns the ids of a text, in which `ordinary` encodes the text between added tokens."""
    found = matches(text, tokens)
    parts = [ordinary(text[begin:end]) for begin, end in gaps(text, found)]
    return parts[0] + [i for part, match in zip(parts[1:], found) for i in [ids[match[2]], *part]]
