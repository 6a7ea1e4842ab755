"""A model from its parts, as `Tokenizer(vocab, merges, special_tokens)` is given them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .errors import ArgumentError
from .model import Model
from .pattern import Pattern


def model_of_parts(
    vocab: Mapping[int, bytes],
    merges: Sequence[tuple[bytes, bytes]],
    specials: Sequence[str],
    pattern: Pattern,
    normalizer: str | None,
) -> Model:
    """Gives every part its id. A special takes the id of a vocabulary entry with its text, unless BPE needs
    that entry; else it is appended."""
    tokens = [b""] * (max(vocab, default=-1) + 1)
    for i, token in vocab.items():
        if not isinstance(i, int) or i < 0 or not isinstance(token, bytes):
            raise ArgumentError(f"vocab maps ids to bytes; it has {i!r}: {token!r}")
        tokens[i] = token
    needed = {bytes([i]) for i in range(256)} | {left + right for left, right in merges}
    by_bytes = {token: i for i, token in enumerate(tokens) if token}
    special_ids = {}
    for text in specials:
        data = text.encode("utf-8")
        if data in by_bytes and data not in needed:
            special_ids[text] = by_bytes[data]
        else:
            special_ids[text] = len(tokens)
            tokens.append(data)
    pairs = []
    for rank, (left, right) in enumerate(merges):
        if left not in by_bytes or right not in by_bytes:
            raise ArgumentError(f"merges[{rank}]: {left!r} + {right!r}: both must be in the vocabulary")
        pairs.append((by_bytes[left], by_bytes[right]))
    return Model(tokens, pairs, special_ids, pattern, normalizer)
