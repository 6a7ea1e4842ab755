"""tiktoken: its Encoding objects, and .tiktoken files of ranks.

Both give each token a rank, which is its id and, at the same time, when it is merged. Which two parts make a
token they do not say: that is recovered by encoding each token with all tokens of lower rank.

tiktoken joins any two neighbours that spell a token together, and takes a word that is a token as it is.
Merges give the same ids if every token can be made of tokens of lower rank, as in all that a trainer made.
A vocabulary with a token of which that is not true is refused, since some ids would differ.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from .. import _binding
from ..errors import ArgumentError, FormatError, LimitError
from ..model import Model, check_specials
from ..pattern import Pattern
from ..pretokenize import open_input

ID_LIMIT = 1 << 24


def from_encoding(encoding: Any) -> Model:
    """The model of a tiktoken.Encoding.

    Raises:
        ArgumentError: it is no Encoding, or its parts do not fit together.
        LimitError: a token cannot be made by merges.
    """
    try:
        ranks, specials, regex = encoding._mergeable_ranks, encoding._special_tokens, encoding._pat_str
    except AttributeError:
        kind = type(encoding).__name__
        raise ArgumentError(f"expected a tiktoken.Encoding or the path of a .tiktoken file, not {kind}") from None
    return from_ranks(ranks, specials, Pattern.from_regex(regex), f"the encoding {encoding.name!r}")


def read(path: _binding.PathLike, special_tokens: Mapping[str, int], pattern: Pattern) -> Model:
    """The model of a .tiktoken file: a line a token, its bytes in base64, a space, its rank.

    Args:
        special_tokens: text -> id. The file has none.
        pattern: what the ranks go with. The file does not say.

    Raises:
        FileError, FormatError (names the line), ArgumentError, LimitError.
    """
    with open_input(path) as stream:
        data = stream.read()
    return from_ranks(parse_ranks(data, str(path)), special_tokens, pattern, str(path))


def parse_ranks(data: bytes, name: str) -> dict[bytes, int]:
    """The ranks in the content of a .tiktoken file; `name` is what errors call it."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        fields = line.split()
        if not fields:
            continue
        try:
            spelled, rank = fields
            token = base64.b64decode(spelled, validate=True)
            known = ranks.setdefault(token, int(rank))
        except (ValueError, binascii.Error):
            raise FormatError(f"{name}: line {number}: expected base64, a space and a rank: {line[:60]!r}") from None
        if known != int(rank):
            raise FormatError(f"{name}: line {number}: {token!r} had rank {known} before, and now has {int(rank)}")
    if not ranks:
        raise FormatError(f"{name}: no ranks: not a .tiktoken file")
    return ranks


def from_ranks(ranks: Mapping[bytes, int], specials: Mapping[str, int], pattern: Pattern, name: str) -> Model:
    """The model of ranks (token -> id) and special tokens (text -> id)."""
    check_specials(specials)
    entries = [*ranks.items(), *((text.encode("utf-8"), i) for text, i in specials.items())]
    if any(type(i) is not int or not 0 <= i < ID_LIMIT for _, i in entries):
        raise ArgumentError(f"{name}: every id must be an integer from 0 to {ID_LIMIT - 1}")
    tokens = [b""] * (max((i for _, i in entries), default=-1) + 1)
    for token, i in entries:
        if tokens[i]:
            raise ArgumentError(f"{name}: id {i} is given to {tokens[i]!r} and to {token!r}")
        tokens[i] = token
    vocab = _binding.Vocab.new(tokens, None, specials.values(), None, pattern.number, pattern.custom, None)
    merges = vocab.merges()
    _refuse_unreachable(ranks, {tokens[left] + tokens[right] for left, right in merges}, name)
    return Model(tokens, merges, dict(specials), pattern)


def _refuse_unreachable(ranks: Mapping[bytes, int], made: set[bytes], name: str) -> None:
    missing = [token for token in ranks if len(token) > 1 and token not in made]
    if missing:
        raise LimitError(
            f"{name}: {len(missing)} tokens cannot be made by merging two tokens of lower rank, the first is"
            f" {missing[0]!r} ({ranks[missing[0]]}); pybpe's ids would differ from tiktoken's"
        )
