"""tiktoken: its Encoding objects, and .tiktoken files of ranks.

Both give each token a rank, which is its id and, at the same time, when it is merged. Which two parts make a
token they do not say: that is recovered by encoding each token with all tokens of lower rank.

tiktoken joins any two neighbours that spell a token together, the one of lowest rank first, and takes a word that
is a token as it is. One merge for each token does the same: what happens between two places where parts end does not
depend on what is outside, so before any token is made, its bytes are in the two parts that merging them alone leaves.
For most tokens these are found with the tokens of lower rank (in C). Some were added to a vocabulary by hand, as in
Llama 3's, and need parts of higher rank, or cannot be made at all, only taken as words: from there on, Python looks.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import _binding
from ..arguments import instance
from ..errors import ArgumentError, FormatError, LimitError, MissingExtraError, UnsupportedError
from ..model import Model, check_all_bytes, check_specials, id_problem
from ..pattern import Pattern
from ..pretokenize import open_input
from . import patterns

_NO_RANK = 1 << 32  # behind every rank
_LATE_BYTES = 256  # tokens that were added by hand are merged here, in quadratic time


def from_encoding(encoding: Any) -> Model:
    """The model of a tiktoken.Encoding.

    Raises:
        ArgumentError: it is no Encoding, or its parts do not fit together.
    """
    try:
        ranks, specials, regex = encoding._mergeable_ranks, encoding._special_tokens, encoding._pat_str
    except AttributeError:
        kind = type(encoding).__name__
        raise ArgumentError(f"expected a tiktoken.Encoding or the path of a .tiktoken file, not {kind}") from None
    name = f"the encoding {encoding.name!r}"
    return from_ranks(ranks, specials, patterns.from_tiktoken(regex, name), name, encoding.decode_single_token_bytes)


def read(path: _binding.PathLike, special_tokens: Mapping[str, int], pattern: str) -> Model:
    """The model of a .tiktoken file: a line a token, its bytes in base64, a space, its rank.

    Args:
        special_tokens: text -> id. The file has none.
        pattern: what the ranks go with, a built-in name or tiktoken's regular expression. The file does not say.

    Raises:
        FileError, FormatError (names the line), ArgumentError.
        UnsupportedError: the pattern may cut other words here than in tiktoken; it says why.
    """
    with open_input(path) as stream:
        data = stream.read()
    name = os.fsdecode(path)
    return from_ranks(parse_ranks(data, name), special_tokens, patterns.from_tiktoken(pattern, name), name)


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


def from_ranks(
    ranks: Mapping[bytes, int],
    specials: Mapping[str, int],
    pattern: Pattern,
    name: str,
    decode: Callable[[int], bytes] | None = None,
) -> Model:
    """The model of ranks (token -> id) and special tokens (text -> id). `decode` says which of the special tokens that
    share an id is its text; without it none may."""
    instance("special_tokens", specials, Mapping, "a mapping text -> id, since ranks say nothing of special tokens")
    check_specials(list(specials))
    _refuse_beginnings(specials, name)
    entries = [*ranks.items(), *((text.encode("utf-8"), i) for text, i in specials.items())]
    if problem := id_problem([i for _, i in entries]):
        raise ArgumentError(f"{name}: {problem}")
    tokens = [b""] * (max((i for _, i in entries), default=-1) + 1)
    ranked = set(ranks.values())
    for token, i in entries:
        if tokens[i] and (decode is None or i in ranked):
            raise ArgumentError(f"{name}: id {i} is given to {tokens[i]!r} and to {token!r}")
        tokens[i] = decode(i) if tokens[i] and decode is not None else token
    try:
        check_all_bytes(ranks)
        vocab = _binding.Vocab.new(tokens, None, specials.values(), None, pattern.number, pattern.custom, None)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error}") from None
    merges = _with_late_merges(ranks, tokens, vocab.merges())
    model = Model(tokens, merges, dict(specials), pattern)
    return replace(model, whole_words=True) if model.unreached() else model


def _refuse_beginnings(specials: Iterable[str], name: str) -> None:
    """UnsupportedError if a special token begins with another one: tiktoken finds the one or the other by the order of
    a hash table, and pybpe the longer one."""
    ordered = sorted(specials)
    for text, longer in zip(ordered, ordered[1:]):
        if longer.startswith(text):
            raise UnsupportedError(
                f"{name}: the special token {longer!r:.80} begins with another one, {text!r:.80}, and which of them"
                " tiktoken finds is not defined: rename one, or leave one out"
            )


def _with_late_merges(
    ranks: Mapping[bytes, int], tokens: Sequence[bytes], merges: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The merges, in the order of what they make, with those of tokens that need parts of higher rank. Tokens behind
    the first such token may hold it, so they are looked at again."""
    made = {tokens[left] + tokens[right] for left, right in merges}
    late = min((i for token, i in ranks.items() if len(token) > 1 and token not in made), default=_NO_RANK)
    early = [pair for pair in merges if ranks[tokens[pair[0]] + tokens[pair[1]]] < late]
    again = [_last_pair(ranks, tokens[i]) for i in sorted(ranks.values()) if i >= late and len(tokens[i]) > 1]
    return early + [pair for pair in again if pair is not None]


def _last_pair(ranks: Mapping[bytes, int], token: bytes) -> tuple[int, int] | None:
    """The two parts that are left when tiktoken merges the bytes of a token; None if more are left.

    Raises:
        LimitError: the token is long.
    """
    if len(token) > _LATE_BYTES:
        raise LimitError(
            f"token {ranks[token]} of {len(token)} bytes stands behind one that no tokens of lower rank make; there"
            f" pybpe takes tokens of up to {_LATE_BYTES} bytes"
        )
    parts = [token[i : i + 1] for i in range(len(token))]
    while len(parts) > 2:
        best = min(range(len(parts) - 1), key=lambda i: ranks.get(parts[i] + parts[i + 1], _NO_RANK))
        if parts[best] + parts[best + 1] not in ranks:
            return None
        parts[best : best + 2] = [parts[best] + parts[best + 1]]
    return ranks[parts[0]], ranks[parts[1]]


# ----------------------------------------------------------------------------------------------------
# Writing


def to_ranks(model: Model) -> dict[bytes, int]:
    """token -> rank of the ordinary tokens.

    Raises:
        UnsupportedError: with these ranks tiktoken would give other ids; it says why.
    """
    patterns.for_tiktoken(model.pattern)
    if model.normalizer is not None:
        raise UnsupportedError(f"tiktoken has no normalizer; this tokenizer has {model.normalizer}")
    _refuse_beginnings(model.specials, "tiktoken")
    special_ids = set(model.specials.values())
    ranks = {token: i for i, token in enumerate(model.tokens) if token and i not in special_ids}
    if lacking := model.lacking_bytes:
        raise UnsupportedError(
            f"tiktoken needs a token for each byte; this tokenizer lacks {len(lacking)}, first 0x{lacking[0]:02X}"
        )
    if not model.whole_words and (unreached := model.unreached()):
        i = unreached[0]
        raise UnsupportedError(
            f"tiktoken takes a word that is a token as it is; merges do not give token {i}, {model.tokens[i]!r},"
            f" nor {len(unreached) - 1} others, so ids would differ"
        )
    made = [ranks[model.tokens[left] + model.tokens[right]] for left, right in model.merges]
    for rank, (before, after) in enumerate(zip(made, made[1:])):
        if after < before:
            raise UnsupportedError(
                f"tiktoken merges in the order of ids; merges[{rank + 1}] makes token {after}, and the one before it"
                f" makes token {before}"
            )
    _check_merges(model, ranks)
    return ranks


def _check_merges(model: Model, ranks: Mapping[bytes, int]) -> None:
    """UnsupportedError unless every merge that ranks imply is one of the model's."""
    implied = from_ranks(ranks, model.specials, model.pattern, "ranks", model.tokens.__getitem__).merges
    missing = set(implied).difference(model.merges)
    if missing:
        left, right = min(missing, key=lambda pair: ranks[model.tokens[pair[0]] + model.tokens[pair[1]]])
        raise UnsupportedError(
            f"tiktoken would merge {model.tokens[left]!r} and {model.tokens[right]!r}, since the result is a token;"
            " this tokenizer does not"
        )


def format_ranks(model: Model) -> bytes:
    """The content of a .tiktoken file. It says nothing of pattern and special tokens.

    Raises:
        UnsupportedError: as `to_ranks`.
    """
    lines = (base64.b64encode(token) + b" %d\n" % rank for token, rank in sorted(to_ranks(model).items(), key=_rank))
    return b"".join(lines)


def _check_decoding(encoding: Any, model: Model) -> None:
    """UnsupportedError if special tokens that share an id are decoded to another one of them."""
    for text in model.aliases:
        i = model.specials[text]
        if encoding.decode_single_token_bytes(i) != model.tokens[i]:
            raise UnsupportedError(f"tiktoken would decode id {i} to {text!r:.80}, which shares it, and not as here")


def _rank(entry: tuple[bytes, int]) -> int:
    return entry[1]


def to_encoding(model: Model, name: str) -> Any:
    """The tiktoken.Encoding.

    Raises:
        UnsupportedError: as `to_ranks`.
        MissingExtraError: tiktoken is not installed.
    """
    ranks = to_ranks(model)
    try:
        import tiktoken
    except ImportError:
        raise MissingExtraError("tiktoken is not installed: pip install tiktoken") from None
    encoding = tiktoken.Encoding(
        name,
        pat_str=patterns.for_tiktoken(model.pattern),
        mergeable_ranks=ranks,
        special_tokens=dict(model.specials),
    )
    _check_decoding(encoding, model)
    return encoding
