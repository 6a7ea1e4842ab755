"""Maps ids when a vocabulary is pruned, extended or replaced.

A remap file gives, for each id of the new tokenizer, the id that the same token had in the old one, so that a model can
keep the rows of its embedding. It is a numpy file (.npy) of int64, shape (new n_vocab,): the old id, or -1 for a token
that the old tokenizer lacks.

    remap = numpy.load("remap.npy")
    new_embedding = old_embedding[numpy.maximum(remap, 0)]  # then initialize the rows where remap is -1
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from . import _binding
from ._numpy import numpy
from .arguments import instance, whole_number
from .errors import ArgumentError
from .model import Model, check_specials

NEW = -1


def old_ids(old: Model, new: Model) -> list[int]:
    """Returns, for each id of `new`, the id of the same token in `old`, or NEW. Ordinary tokens are the same if their
    bytes are, and special tokens if their text is."""
    special_ids = set(old.specials.values())
    ordinary = {token: i for i, token in enumerate(old.tokens) if token and i not in special_ids}
    ids = [ordinary.get(token, NEW) for token in new.tokens]
    for text, i in new.specials.items():
        ids[i] = old.specials.get(text, NEW)
    return ids


def save_remap(path: _binding.PathLike, ids: Sequence[int]) -> None:
    """Writes a remap file, atomically."""
    import io

    buffer = io.BytesIO()
    numpy.save(buffer, numpy.array(ids, dtype=numpy.int64))
    _binding.write_file(path, buffer.getbuffer())


def pruned(model: Model, keep: Iterable[int]) -> Model:
    """Returns the model with fewer tokens; see Tokenizer.prune."""
    specials = set(model.specials.values())
    kept = _with_parts(model, _ids_to_keep(model, keep))
    new_id = {old: new for new, old in enumerate(sorted(kept))}
    kept_tokens = {model.tokens[i] for i in kept - specials}
    merges = [
        (new_id[left], new_id[right])
        for left, right in model.merges
        if left in kept and right in kept and model.tokens[left] + model.tokens[right] in kept_tokens
    ]
    return replace(
        model,
        tokens=[model.tokens[i] for i in sorted(kept)],
        merges=merges,
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
    """Returns the ids, the ids of all tokens from which merges make them, and those that every vocabulary needs."""
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
    return replace(model, tokens=tokens, specials=specials)
