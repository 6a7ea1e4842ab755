"""Maps ids when a vocabulary is pruned, extended or replaced, and its size in a model, which is padded.

A remap file gives, for every id of the new tokenizer, the id that the same token had in the old one, so that a model
can keep the rows of its embedding. It is a numpy file (.npy) of int64, shape (new n_vocab,): the old id, or -1 for a
token that the old tokenizer lacks.

    remap = numpy.load("remap.npy")
    new_embedding = old_embedding[numpy.maximum(remap, 0)]  # then initialize the rows where remap is -1
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from .. import _binding
from .._lazy import numpy
from ..arguments import instance, whole_number
from ..errors import ArgumentError
from . import Model, check_specials

NEW = -1


def old_ids(old: Model, new: Model) -> list[int]:
    """Returns, for every id of `new`, the id of the same token in `old`, or NEW. Ordinary tokens are the same if their
    bytes are, and special tokens if their text is."""
    special_ids = set(old.specials.values())
    ordinary = {token: i for i, token in enumerate(old.tokens) if token and i not in special_ids}
    ids = [ordinary.get(token, NEW) for token in new.tokens]
    for text, i in new.specials.items():
        ids[i] = old.specials.get(text, NEW)
    return ids


def save_remap(path: _binding.PathLike, ids: Sequence[int]) -> None:
    """Writes a remap file, atomically."""
    buffer = io.BytesIO()
    numpy.save(buffer, numpy.array(ids, dtype=numpy.int64))
    _binding.write_file(path, buffer.getbuffer())


def pruned(model: Model, keep: Iterable[int]) -> Model:
    """Returns the model with fewer tokens; see Tokenizer.prune."""
    kept = _with_parts(model, _ids_to_keep(model, keep))
    kept_tokens = {model.tokens[i] for i in kept - set(model.specials.values())}
    merges = [
        (left, right)
        for left, right in model.merges
        if left in kept and right in kept and model.tokens[left] + model.tokens[right] in kept_tokens
    ]
    return _with_only(model, kept, merges)


def first_tokens(model: Model, size: int) -> Model:
    """Returns a model with `size` tokens: the bytes, the special tokens, and the results of the first merges. Special
    tokens after the merged tokens move up, so the ids are the same as after a training run that stopped here."""
    size = whole_number("the vocabulary size", size)
    tokens, special_ids = model.tokens, set(model.specials.values())
    made = {tokens[left] + tokens[right] for left, right in model.merges}
    kept = {i for i, token in enumerate(tokens) if i in special_ids or (token and token not in made)}
    if not len(kept) <= size <= len(tokens):
        raise ArgumentError(
            f"vocabulary size {size} is out of range: this tokenizer can have {len(kept)} to {len(tokens)}"
        )
    by_bytes = {token: i for i, token in enumerate(tokens) if i not in special_ids}
    merges: list[tuple[int, int]] = []
    for rank, (left, right) in enumerate(model.merges):
        if len(kept) == size:
            break
        if left not in kept or right not in kept:
            raise ArgumentError(
                f"cannot take the first {size} tokens: merges[{rank}] joins {tokens[left]!r:.60} and"
                f" {tokens[right]!r:.60}, and only a later merge makes one of them. Use prune(keep) instead"
            )
        merges.append((left, right))
        kept.add(by_bytes[tokens[left] + tokens[right]])
    return _with_only(model, kept, merges)


def _with_only(model: Model, kept: set[int], merges: Iterable[tuple[int, int]]) -> Model:
    """Returns the model with only these ids and merges. The ids are renumbered without gaps."""
    new_id = {old: new for new, old in enumerate(sorted(kept))}
    return replace(
        model,
        tokens=[model.tokens[i] for i in new_id],
        merges=[(new_id[left], new_id[right]) for left, right in merges],
        specials={text: new_id[i] for text, i in model.specials.items()},
    )


def _ids_to_keep(model: Model, keep: Iterable[int]) -> list[int]:
    """Returns the ids that the caller keeps. Raises ArgumentError for anything that is not a used id."""
    instance("keep", keep, Iterable, "ids in a list, an array or another iterable")
    ids = [whole_number("an id in keep", i, 0, len(model.tokens) - 1) for i in keep]
    for i in ids:
        if not model.tokens[i]:
            raise ArgumentError(f"keep: id {i} is unused in this vocabulary")
    return ids


def _with_parts(model: Model, ids: Sequence[int]) -> set[int]:
    """Returns the ids, the ids of all tokens that merges make them from, and the ids that every vocabulary needs."""
    kept = set(model.specials.values()) | {i for i, token in enumerate(model.tokens) if len(token) == 1}
    makers: dict[bytes, list[tuple[int, int]]] = {}
    for left, right in model.merges:
        makers.setdefault(model.tokens[left] + model.tokens[right], []).append((left, right))
    waiting = list(ids)
    while waiting:
        i = waiting.pop()
        if i not in kept:
            kept.add(i)
            waiting += [part for pair in makers.get(model.tokens[i], ()) for part in pair]
    return kept


def with_specials(model: Model, special_tokens: Iterable[str]) -> Model:
    """Returns the model with more special tokens, whose ids follow its own. Raises ArgumentError for a special token
    that the model already has."""
    tokens, specials = list(model.tokens), dict(model.specials)
    for text in check_specials(special_tokens):
        if text in specials:
            raise ArgumentError(f"{text!r} is already a special token, with id {specials[text]}")
        specials[text] = len(tokens)
        tokens.append(text.encode("utf-8"))
    config = config_with(model.config, list(specials)[len(model.specials) :])
    return replace(model, tokens=tokens, specials=specials, config=config)


def config_with(config: Mapping[str, object] | None, specials: Sequence[str]) -> Mapping[str, object] | None:
    """Returns Model.config for a model with more special tokens."""
    if config is None or not specials:
        return config
    others = config.get("additional_special_tokens")
    return {**config, "additional_special_tokens": [*(others if isinstance(others, list) else ()), *specials]}


def padded_vocab_size(v: int, multiple: int = 128) -> int:
    """Returns the smallest multiple of `multiple` that is at least v.

    llm.c uses 128 (50257 -> 50304), and nanoGPT uses 64. The tokenizer never produces ids of v or above. The rows of
    these ids must be zero in an llm.c checkpoint.

    Raises:
        ArgumentError: v or multiple is below 1, or not an integer.

    >>> padded_vocab_size(50257), padded_vocab_size(20009, 64)
    (50304, 20032)
    """
    multiple = whole_number("multiple", multiple, 1)
    return -(-whole_number("the vocabulary size", v, 1) // multiple) * multiple
