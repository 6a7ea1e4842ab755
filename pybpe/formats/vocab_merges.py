"""GPT-2's two files, vocab.json and merges.txt (OpenAI's encoder.json and vocab.bpe have the same formats).

vocab.json maps tokens, spelled as below, to ids. merges.txt has one line per merge, "left right", in rank
order, after an optional first line that begins with "#version".
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence

from .. import _binding
from ..errors import ArgumentError, FormatError, UnsupportedError
from ..model import END_OF_TEXT, Model, id_problem, special_ids_of
from ..pattern import Pattern
from ..reading.streams import Snapshot

# ----------------------------------------------------------------------------------------------------
# GPT-2's way of writing bytes as printable characters, which vocab.json and tokenizer.json use.
#
# Bytes that are printable in Latin-1 represent themselves. The other 68 become U+0100, U+0101, ... in ascending order,
# so a space is "Ġ" (U+0120) and a newline is "Ċ". Source: bytes_to_unicode() in OpenAI's GPT-2 encoder.py.

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
BYTE_TO_CHAR = {byte: chr(byte) for byte in _PRINTABLE} | {byte: chr(0x100 + i) for i, byte in enumerate(_OTHERS)}
CHAR_TO_BYTE = {char: byte for byte, char in BYTE_TO_CHAR.items()}


def to_bytes(text: str) -> bytes:
    """Returns the token that printable text spells. Raises KeyError if a character does not represent a byte."""
    return bytes(map(CHAR_TO_BYTE.__getitem__, text))


# The beginning of the first line of a merges.txt. Hugging Face drops every line, and every merge in string form, that
# begins with it.
NO_MERGE = "#version"


def read(
    vocab_path: _binding.PathLike,
    merges_path: _binding.PathLike,
    special_tokens: Iterable[str] | Mapping[str, int] | None,
    pattern: Pattern,
    files: Snapshot,
) -> Model:
    """Reads the two files. A special token that the vocabulary lacks gets the id given here, or the id after the
    highest. None for `special_tokens` means <|endoftext|> if the vocabulary has it."""
    name = _binding.path_text(vocab_path)
    vocab = _read_vocab(files.read(vocab_path), name)
    if special_tokens is None:
        special_tokens = [END_OF_TEXT] if END_OF_TEXT in vocab else []
    specials = {}
    for text, wanted in special_ids_of(special_tokens).items():
        next_id = max(vocab.values(), default=-1) + 1
        specials[text] = vocab.setdefault(text, next_id if wanted is None else wanted)
        if wanted not in (None, specials[text]):
            raise ArgumentError(f"{name}: the special token {text!r:.80} has id {specials[text]} here, not {wanted}")
    tokens, merges = read_parts(vocab, _read_merges(files.read(merges_path), os.fsdecode(merges_path)), specials, name)
    return Model(tokens, merges, specials, pattern)


def _read_vocab(data: bytes, path: str) -> dict[str, int]:
    try:
        vocab = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not JSON: {error}") from None
    if not isinstance(vocab, dict) or not all(type(i) is int for i in vocab.values()):
        raise FormatError(f"{path}: expected one JSON object that maps tokens to ids")
    return vocab


def _read_merges(data: bytes, path: str) -> list[tuple[str, str]]:
    try:
        lines = data.decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: not UTF-8 at byte {error.start}", error.start) from None
    pairs = []
    for number, line in enumerate(lines, 1):
        line = line.rstrip("\r")
        if not line or (number == 1 and line.startswith(NO_MERGE)):
            continue
        if line.startswith(NO_MERGE):
            raise FormatError(
                f"{path}: line {number}: Hugging Face drops a merge that begins with {NO_MERGE}, but GPT-2's own"
                f" program applies it: {line!r:.80}. Load a tokenizer.json instead"
            )
        parts = line.split(" ")
        if len(parts) != 2:
            raise FormatError(f"{path}: line {number}: expected two tokens separated by a space: {line!r}")
        pairs.append((parts[0], parts[1]))
    return pairs


def write(model: Model, vocab_path: _binding.PathLike, merges_path: _binding.PathLike) -> None:
    """Writes the two files. Raises UnsupportedError if they cannot represent the model."""
    names = token_names(model)
    if any(names[left].startswith(NO_MERGE) for left, _ in model.merges):
        raise UnsupportedError(
            f"Hugging Face drops merges in merges.txt that begin with {NO_MERGE}, and this tokenizer has one: save a"
            " tokenizer.json"
        )
    vocab = {name: i for i, name in enumerate(names) if name}
    merges = "".join(f"{names[left]} {names[right]}\n" for left, right in model.merges)
    _binding.write_file(vocab_path, json.dumps(vocab, ensure_ascii=False).encode())
    _binding.write_file(merges_path, b"#version: 0.2\n" + merges.encode())


# ----------------------------------------------------------------------------------------------------
# The spelling of tokens, which tokenizer.json has too


def token_names(model: Model) -> list[str]:
    """Returns the tokens as vocab.json spells them, "" for an unused id. Raises UnsupportedError if a special token has
    the same spelling as an ordinary token, so these formats cannot distinguish them."""
    names = [token.decode("latin-1").translate(BYTE_TO_CHAR) for token in model.tokens]
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
    """Returns tokens by id and merges as pairs of ids. `vocab` includes the special tokens. Raises FormatError, which
    calls the file `name`, if the parts do not fit together."""
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
        return to_bytes(text)
    except KeyError as error:
        raise FormatError(
            f"{name}: vocab: token {i}, {text!r}, contains {error}, which represents no byte: this is not a byte-level"
            " vocabulary, or the token is special but not listed as special"
        ) from None
