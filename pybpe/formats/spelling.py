"""Vocabularies in the spelling of vocab.json and tokenizer.json: tokens as printable text (byte_level.py), special
tokens unchanged, merges as pairs of tokens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .. import byte_level
from ..errors import FormatError, UnsupportedError
from ..model import Model, id_problem

# The beginning of the first line of a merges.txt. Hugging Face drops every line, and every merge in string form, that
# begins with it.
NO_MERGE = "#version"


def token_names(model: Model) -> list[str]:
    """Returns every token as vocab.json spells it; "" for an unused id.

    Raises:
        UnsupportedError: a special token has the same spelling as an ordinary token, so these formats cannot
            distinguish them.
    """
    names = [byte_level.to_text(token) for token in model.tokens]
    aliases = set(model.aliases)
    for text, i in model.specials.items():
        names[i] = names[i] if text in aliases else text
    owners: dict[str, int] = {}
    for i, name in enumerate(names):
        if name and owners.setdefault(name, i) != i:
            raise UnsupportedError(
                f"tokens {owners[name]} and {i}, one of them special, are both spelled {name!r}: tokenizer.json"
                " cannot tell them apart. Choose another special token, or save as tokenizer.bin"
            )
    return names


def read_parts(
    vocab: Mapping[str, int], merges: Sequence[tuple[str, str]], specials: Mapping[str, int], name: str
) -> tuple[list[bytes], list[tuple[int, int]]]:
    """Returns tokens by id and merges as pairs of ids. `vocab` includes the special tokens.

    Raises:
        FormatError: the parts do not fit together. The message calls the file `name`.
    """
    if problem := id_problem(vocab.values()):
        raise FormatError(f"{name}: vocab: {problem}")
    tokens = [b""] * (max(vocab.values(), default=-1) + 1)
    for text, i in vocab.items():
        if tokens[i]:
            raise FormatError(f"{name}: vocab: id {i} is used twice, the second time for {text!r}")
        tokens[i] = text.encode("utf-8") if text in specials else _token_bytes(text, i, name)
    for text, i in specials.items():
        if vocab[text] != i:
            raise FormatError(f"{name}: the added token {text!r} has id {i}; the vocabulary gives it {vocab[text]}")
    pairs = []
    seen = set()
    for rank, (left, right) in enumerate(merges):
        if left not in vocab or right not in vocab:
            raise FormatError(f"{name}: merges[{rank}]: {left!r} and {right!r} must both be in the vocabulary")
        if left in specials or right in specials or left + right in specials:
            raise FormatError(f"{name}: merges[{rank}]: {left!r} + {right!r}: an added token cannot be in a merge")
        if (left, right) in seen:
            raise FormatError(f"{name}: merges[{rank}]: {left!r} + {right!r} is a repeated merge")
        seen.add((left, right))
        pairs.append((vocab[left], vocab[right]))
    return tokens, pairs


def _token_bytes(text: str, i: int, name: str) -> bytes:
    try:
        return byte_level.to_bytes(text)
    except KeyError as error:
        raise FormatError(
            f"{name}: vocab: token {i}, {text!r}, contains {error}, which represents no byte: this is not a byte-level"
            " vocabulary, or the token is special but not listed as special"
        ) from None
