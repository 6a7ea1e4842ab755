"""Vocabularies that grow, ordinary and hostile: tests count what reading them takes."""

from collections.abc import Callable, Sequence
from functools import cache

from texts import chinese, english

import pybpe
from pybpe.model import Model
from pybpe.pattern import Pattern

Pairs = list[tuple[int, int]]


MOST = 8000


@cache
def _trained() -> Pairs:
    tok = pybpe.train(iter([english(), chinese()]), vocab_size=256 + MOST)
    assert len(tok.model.merges) == MOST
    return list(tok.model.merges)


def ordinary(count: int) -> Pairs:
    """Merges that were trained, at most MOST."""
    return _trained()[:count]


def one_prefix(count: int) -> Pairs:
    """Tokens of 200 to 202 bytes that differ only at the end."""
    pairs = [(ord("a"), ord("a"))] + [(255 + i, ord("a")) for i in range(1, 199)]
    prefix = 255 + len(pairs)
    first = len(pairs) + 256
    pairs += [(prefix, byte) for byte in range(256) if byte != ord("a")]
    pairs += [(first + i // 256, i % 256) for i in range(count)]
    return pairs[:count]


def chains(count: int) -> Pairs:
    """Tokens that are one byte longer than the token before, up to 255 bytes, each chain of two other letters."""
    pairs: Pairs = []
    for chain in range(count):
        left, right = divmod(chain, 256)
        if left == right:
            continue
        first = 256 + len(pairs)
        pairs.append((left, right))
        pairs.extend((first + i, right) for i in range(253))
        if len(pairs) >= count:
            break
    return pairs[:count]


def doubled(count: int) -> Pairs:
    """Runs of each byte: of 2, 4, 8, ... bytes, then of all lengths between, so that a run has many divisions."""
    pairs: Pairs = []
    for byte in range(256):
        ids = {1: byte}
        for length in range(2, 256):
            left = (length + 1) // 2
            ids[length] = 256 + len(pairs)
            pairs.append((ids[left], ids[length - left]))
        if len(pairs) >= count:
            break
    return pairs[:count]


SHAPES: dict[str, Callable[[int], Pairs]] = {
    "ordinary": ordinary,
    "one prefix": one_prefix,
    "chains": chains,
    "runs": doubled,
}


def tokenizer_of(pairs: Pairs, specials: Sequence[str] = ()) -> pybpe.Tokenizer:
    """Returns a tokenizer of the bytes, the tokens of these merges, and special tokens."""
    tokens = [bytes([byte]) for byte in range(256)]
    for left, right in pairs:
        tokens.append(tokens[left] + tokens[right])
    numbers = {text: len(tokens) + i for i, text in enumerate(specials)}
    tokens += [text.encode() for text in specials]
    return pybpe.tokenizer.of_model(Model(tokens, pairs, numbers, Pattern("gpt2")))
