"""Makes a model from the arguments of `Tokenizer(vocab, merges, special_tokens)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..arguments import instance, shown, whole_number
from ..errors import ArgumentError
from ..normalize import check_normalizer
from ..pattern import Pattern
from . import MOST_IDS, Model, check_all_bytes, id_problem


def model_of_parts(
    vocab: Mapping[int, bytes],
    merges: Sequence[tuple[bytes, bytes]],
    specials: Mapping[str, int | None],
    pattern: Pattern,
    normalizer: str | None,
) -> Model:
    """Makes a model. A special token without an id takes the id of a vocabulary entry with its text, unless BPE needs
    that entry; otherwise it is appended."""
    check_normalizer(normalizer)
    tokens = _tokens(vocab)
    instance("merges", merges, Iterable, "a list of (left bytes, right bytes)")
    merges = [_merge(rank, merge) for rank, merge in enumerate(merges)]
    owned = {i for i in specials.values() if i is not None}
    if problem := id_problem(owned):
        raise ArgumentError(f"special_tokens: {problem}")
    by_bytes = {token: i for i, token in enumerate(tokens) if token and i not in owned}
    needed = {bytes([i]) for i in range(256)} | {left + right for left, right in merges}
    special_ids = _placed(specials, {token: i for token, i in by_bytes.items() if token not in needed}, tokens)
    check_all_bytes(by_bytes)
    return Model(tokens, _pairs(merges, by_bytes), special_ids, pattern, normalizer)


def _placed(specials: Mapping[str, int | None], known: Mapping[bytes, int], tokens: list[bytes]) -> dict[str, int]:
    """Returns the ids of the special tokens, and puts them at their ids. Those that have none have the id in `known`,
    or follow the other tokens."""
    ids = {}
    for text, wanted in specials.items():
        data = text.encode("utf-8")
        i = known.get(data, len(tokens)) if wanted is None else wanted
        if known.get(data, i) != i:
            raise ArgumentError(f"the special token {text!r:.80} has id {i}, but id {known[data]} in vocab")
        tokens += [b""] * (i + 1 - len(tokens))
        if tokens[i] not in (b"", data):
            raise ArgumentError(
                f"the special token {text!r:.80} cannot have id {i}, which belongs to {tokens[i]!r:.80}"
            )
        tokens[i] = data
        ids[text] = i
    return ids


def _pairs(merges: Iterable[tuple[bytes, bytes]], by_bytes: Mapping[bytes, int]) -> list[tuple[int, int]]:
    """Returns merges as pairs of ids."""
    pairs = []
    for rank, (left, right) in enumerate(merges):
        if left not in by_bytes or right not in by_bytes:
            raise ArgumentError(f"merges[{rank}]: {left!r:.80} and {right!r:.80} must both be in the vocabulary")
        pairs.append((by_bytes[left], by_bytes[right]))
    return pairs


def _tokens(vocab: Mapping[int, bytes]) -> list[bytes]:
    """Returns the tokens by id; b"" for an unused id."""
    instance("vocab", vocab, Mapping, "a dictionary id -> bytes")
    by_id = {whole_number("an id in vocab", i, 0, MOST_IDS - 1): token for i, token in vocab.items()}
    if problem := id_problem(by_id):
        raise ArgumentError(f"vocab: {problem}")
    tokens = [b""] * (max(by_id, default=-1) + 1)
    for i, token in by_id.items():
        instance(f"vocab[{i}]", token, bytes, "bytes")
        tokens[i] = token
    return tokens


def _merge(rank: int, merge: object) -> tuple[bytes, bytes]:
    if isinstance(merge, (tuple, list)) and len(merge) == 2 and all(isinstance(part, bytes) for part in merge):
        return merge[0], merge[1]
    raise ArgumentError(f"merges[{rank}] must be two bytes objects, (left, right), not {shown(merge)}")
