"""tiktoken's Encoding objects, and .tiktoken files of ranks.

Both give every token a rank, which is its id and also its merge priority. They do not say which two parts make a token.
pybpe recovers the parts by encoding every token with all tokens of lower rank.

tiktoken joins any two adjacent parts that spell a token, lowest rank first, and encodes a word that is a token as that
token. One merge per token does the same: the merges between two boundaries of parts do not depend on the text outside
them. So just before a token is made, its bytes are in the same two parts that merging those bytes alone leaves.
For most tokens C finds these parts with the tokens of lower rank. Some tokens were added by hand, as in Llama 3.
They need parts of higher rank, or cannot be made by merging at all. From the first such token on, Python finds the
parts.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import _binding
from ..arguments import by_caller, number_of, param
from ..errors import ArgumentError, FormatError, LimitError, MissingExtraError, UnsupportedError, note
from ..model import Model, check_all_bytes, check_specials, id_problem
from ..pattern import Pattern, PatternLike
from ..reading.streams import read_file
from .pre_tokenizer import for_tiktoken, from_tiktoken

_NO_RANK = 1 << 32  # greater than every rank
_LATE_BYTES = 256  # longest token that is merged here, in quadratic time


def from_encoding(encoding: Any) -> Model:
    """Returns the model of a tiktoken.Encoding."""
    try:
        ranks, specials, regex = encoding._mergeable_ranks, encoding._special_tokens, encoding._pat_str
    except AttributeError:
        raise ArgumentError(
            f"expected a tiktoken.Encoding, not {type(encoding).__name__}: Tokenizer.from_file reads .tiktoken files,"
            " and pybpe.get_encoding takes names"
        ) from None
    name = f"the encoding {encoding.name!r}"
    return from_ranks(ranks, specials, from_tiktoken(regex, name), name, encoding.decode_single_token_bytes)


def read(path: _binding.PathLike, special_tokens: Iterable[str] | Mapping[str, int], pattern: PatternLike) -> Model:
    """Reads a .tiktoken file. A line has one token: its bytes in base64, a space, and its rank. It has no special
    tokens (text -> id) and no pattern (a built-in name or tiktoken's regular expression)."""
    data = read_file(path)
    name = os.fsdecode(path)
    return from_text(data, special_tokens, from_tiktoken(pattern, name), name)


def from_text(
    data: bytes,
    specials: Iterable[str] | Mapping[str, int],
    pattern: Pattern,
    name: str,
    decode: Callable[[int], bytes] | None = None,
) -> Model:
    """Makes a model from the content of a .tiktoken file: see `from_ranks`."""
    model = _from_text_quickly(data, specials, pattern, decode)
    return model if model is not None else from_ranks(parse_ranks(data, name), specials, pattern, name, decode)


def _from_text_quickly(
    data: bytes,
    specials: Iterable[str] | Mapping[str, int],
    pattern: Pattern,
    decode: Callable[[int], bytes] | None,
) -> Model | None:
    """Like `from_text`, with C reading the ranks and recovering the merges. Returns None if the content or
    the special tokens are unusual or invalid. Then the slow way finds the fault."""
    try:
        if not isinstance(specials, Mapping) or id_problem(specials.values()):
            return None
        check_specials(list(specials))
        _refuse_beginnings(specials, "")
        texts = {i: text for text, i in specials.items()}
        if decode is not None:
            texts = {i: decode(i).decode("utf-8") for i in texts}
        elif len(texts) < len(specials):
            return None
        model = Model((), (), dict(specials), pattern)
        vocab = _binding.Vocab.from_ranks(data, {text: i for i, text in texts.items()}, model.rules)
    except (ArgumentError, FormatError, LimitError, UnsupportedError):
        return None
    tokens, merges = vocab.parts
    return replace(model, tokens=tokens, merges=merges)


def parse_ranks(data: bytes, name: str) -> dict[bytes, int]:
    """Returns the ranks in the content of a .tiktoken file. Errors call it `name`."""
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.split(b"\n"), 1):
        fields = line.split()
        if not fields:
            continue
        try:
            spelled, rank = fields
            token = b"" if spelled == b"=" else base64.b64decode(spelled, validate=True)
            known = ranks.setdefault(token, int(rank))
        except (ValueError, binascii.Error):
            raise FormatError(f"{name}: line {number}: expected base64, a space and a rank: {line[:60]!r}") from None
        if known != int(rank):
            raise FormatError(f"{name}: line {number}: {token!r} has rank {int(rank)}, but {known} in an earlier line")
    if not ranks:
        raise FormatError(f"{name}: not a .tiktoken file: it has no ranks")
    return ranks


def from_ranks(
    ranks: Mapping[bytes, int],
    specials: Iterable[str] | Mapping[str, int],
    pattern: Pattern,
    name: str,
    decode: Callable[[int], bytes] | None = None,
) -> Model:
    """Makes a model from ranks (token -> id) and special tokens (text -> id). `decode` says which text an id decodes to
    if special tokens share it. Without `decode`, no two special tokens may share an id."""
    if not isinstance(specials, Mapping):
        raise ArgumentError(
            f"{param('special_tokens')} must be a mapping text -> id, because ranks do not include special tokens"
        )
    check_specials(list(specials))
    _refuse_beginnings(specials, name)
    if b"" in ranks:  # as in OpenAI's multilingual.tiktoken. It is never encoded, so its id is unused
        ranks = {token: rank for token, rank in ranks.items() if token}
    entries = [*ranks.items(), *((text.encode("utf-8"), i) for text, i in specials.items())]
    if problem := id_problem([i for _, i in entries]):
        raise ArgumentError(f"{name}: {problem}")
    tokens = [b""] * (max((i for _, i in entries), default=-1) + 1)
    ranked = set(ranks.values())
    for token, i in entries:
        if tokens[i] and (decode is None or i in ranked):
            raise ArgumentError(f"{name}: both {tokens[i]!r} and {token!r} have id {i}")
        tokens[i] = decode(i) if tokens[i] and decode is not None else token
    try:
        check_all_bytes(ranks)
        rules = _binding.VocabRules(specials.values(), None, pattern.number, pattern.custom)
        vocab = _binding.Vocab.new(tokens, None, rules)
    except ArgumentError as error:
        raise ArgumentError(f"{name}: {error}") from None
    merges = _with_late_merges(ranks, tokens, vocab.merges())
    model = Model(tokens, merges, dict(specials), pattern)
    return replace(model, whole_words=True) if model.unreached() else model


def _refuse_beginnings(specials: Iterable[str], name: str) -> None:
    """Raises UnsupportedError if a special token begins with another one. Which of them tiktoken finds depends on the
    order of a hash table. pybpe finds the longer one."""
    ordered = sorted(specials)
    for text, longer in zip(ordered, ordered[1:]):
        if longer.startswith(text):
            raise UnsupportedError(
                f"{name}: the special token {longer!r:.80} begins with another one, {text!r:.80}, so it is undefined"
                " which one tiktoken finds: rename or remove one"
            )


def _with_late_merges(
    ranks: Mapping[bytes, int], tokens: Sequence[bytes], merges: list[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Returns the merges in the order of the tokens that they make, including tokens that need parts of higher rank.
    Tokens after the first such token may contain it, so their parts are searched for again."""
    made = {tokens[left] + tokens[right] for left, right in merges}
    late = min((i for token, i in ranks.items() if len(token) > 1 and token not in made), default=_NO_RANK)
    early = [pair for pair in merges if ranks[tokens[pair[0]] + tokens[pair[1]]] < late]
    again = [_last_pair(ranks, tokens[i]) for i in sorted(ranks.values()) if i >= late and len(tokens[i]) > 1]
    return early + [pair for pair in again if pair is not None]


def _last_pair(ranks: Mapping[bytes, int], token: bytes) -> tuple[int, int] | None:
    """Returns the two parts that are left when tiktoken merges the bytes of a token, or None if more are left. Raises
    LimitError if the token is too long."""
    if len(token) > _LATE_BYTES:
        raise LimitError(
            f"token {ranks[token]} has {len(token)} bytes and follows a token that no tokens of lower rank make; after"
            f" such a token pybpe supports at most {_LATE_BYTES} bytes"
        )
    parts = [token[i : i + 1] for i in range(len(token))]
    costs = [ranks.get(left + right, _NO_RANK) for left, right in zip(parts, parts[1:])]
    while len(parts) > 2:
        best = min(costs)
        if best == _NO_RANK:
            return None
        at = costs.index(best)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
        del costs[at]
        for i in range(max(at - 1, 0), min(at + 1, len(costs))):
            costs[i] = ranks.get(parts[i] + parts[i + 1], _NO_RANK)
    return ranks[parts[0]], ranks[parts[1]]


# ----------------------------------------------------------------------------------------------------
# Writing


def to_ranks(model: Model) -> dict[bytes, int]:
    """Returns token -> rank for the ordinary tokens. Raises UnsupportedError if tiktoken would give other ids with
    these ranks."""
    for_tiktoken(model.pattern)
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
            f"tiktoken encodes a word that is a token as that token, but merges do not make token {i},"
            f" {model.tokens[i]!r}, or {len(unreached) - 1} others, so ids would differ"
        )
    made = [ranks[model.tokens[left] + model.tokens[right]] for left, right in model.merges]
    for rank, (before, after) in enumerate(zip(made, made[1:])):
        if after < before:
            raise UnsupportedError(
                f"tiktoken merges in the order of ids, but merges[{rank + 1}] makes token {after}, and the merge before"
                f" it makes token {before}"
            )
    # The model must have every merge that the ranks imply.
    implied = from_ranks(ranks, model.specials, model.pattern, "ranks", model.tokens.__getitem__).merges
    missing = set(implied).difference(model.merges)
    if missing:
        left, right = min(missing, key=lambda pair: ranks[model.tokens[pair[0]] + model.tokens[pair[1]]])
        raise UnsupportedError(
            f"tiktoken would merge {model.tokens[left]!r} and {model.tokens[right]!r}, because the result is a token;"
            " this tokenizer does not"
        )
    return ranks


def write(model: Model, path: _binding.PathLike) -> None:
    """Writes a .tiktoken file, and tells that it does not include the pattern and special tokens. Raises
    UnsupportedError as `to_ranks` does."""
    ranks = sorted(to_ranks(model).items(), key=lambda one: one[1])
    lines = (b"%b %d\n" % (binascii.b2a_base64(token, newline=False), rank) for token, rank in ranks)
    _binding.write_file(path, b"".join(lines))
    specials = f" and its {number_of(len(model.specials), 'special token')}" if model.specials else ""
    how = by_caller("pass both to Tokenizer.from_file", "`pybpe export` takes --pattern and --special-token S=ID")
    note(f"{os.fsdecode(path)}: this format lacks the pattern{specials}: to load the file, {how}")


def to_encoding(model: Model, name: str) -> Any:
    """Returns the tiktoken.Encoding. Raises UnsupportedError as `to_ranks` does."""
    ranks = to_ranks(model)
    try:
        import tiktoken
    except ImportError:
        raise MissingExtraError("tiktoken is not installed: pip install tiktoken") from None
    encoding = tiktoken.Encoding(
        name,
        pat_str=for_tiktoken(model.pattern),
        mergeable_ranks=ranks,
        special_tokens=dict(model.specials),
    )
    for text in model.aliases:  # an id that several special tokens share decodes to one of them
        i = model.specials[text]
        if encoding.decode_single_token_bytes(i) != model.tokens[i]:
            raise UnsupportedError(f"tiktoken would decode id {i} to another special token than pybpe, {text!r:.80}")
    return encoding
