"""Checks each tokenizer.bin by itself. llm.c reads it in tokenizer_init (llmc/tokenizer.h)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pybpe import Tokenizer, _binding
from pybpe._numpy import numpy
from pybpe.errors import Error, FormatError
from pybpe.model import END_OF_TEXT
from pybpe.reading.streams import read_file

from .finding import WARNING, Finding

MAGIC = _binding.TOKENIZER_MAGIC
HEADER_BYTES = 1024
REMEDY = "write it again with Tokenizer.save or pybpe export"

_GPT2_TOKENS = 50257
_TRAILER_MARK = 0x50425950  # in the header: our merges and pattern follow the tokens


@dataclass(frozen=True)
class TokenizerFacts:
    """A tokenizer.bin as llm.c reads it.

    Attributes:
        version: 1 or 2.
        eot: the id that starts each sample.
        tokens: each id's bytes.
        rest: the number of bytes after the tokens.
        is_complete: whether those bytes should be pybpe's merges and pattern, which llm.c does not read.
    """

    version: int
    eot: int
    tokens: list[bytes] = field(repr=False)
    rest: int = 0
    is_complete: bool = False

    @property
    def vocab_size(self) -> int:
        """V."""
        return len(self.tokens)


def read_tokenizer(path: str) -> TokenizerFacts:
    """Raises FileError, FormatError."""
    raw = read_file(path)
    if len(raw) < HEADER_BYTES:
        raise FormatError(
            f"{path}: too short for a tokenizer: {len(raw)} bytes, but the header alone has {HEADER_BYTES}", len(raw)
        )
    _, version, vocab_size, eot, mark = (int(i) for i in numpy.frombuffer(raw, dtype="<i4", count=5))
    if version not in (1, 2):
        raise FormatError(f"{path}: version {version}, expected 2", 4)
    if vocab_size < 1:
        effect = "aborts" if vocab_size else "prints 'invalid token id' for every token of a sample"
        raise FormatError(f"{path}: the header says that there are {vocab_size} tokens; llm.c {effect}", 8)
    tokens = []
    at = HEADER_BYTES
    for i in range(vocab_size):
        length = raw[at] if at < len(raw) else None
        if length == 0:
            raise FormatError(f"{path}: token {i} at byte {at} is empty", at)
        if length is None or at + 1 + length > len(raw):
            raise FormatError(f"{path}: the file ends at byte {len(raw)}, inside token {i} of {vocab_size}", len(raw))
        tokens.append(raw[at + 1 : at + 1 + length])
        at += 1 + length
    eot = _GPT2_TOKENS - 1 if version == 1 else eot
    return TokenizerFacts(version, eot, tokens, len(raw) - at, mark == _TRAILER_MARK)


def tokenizer_faults(path: str, facts: TokenizerFacts) -> Iterator[Finding]:
    """Yields what is wrong with a tokenizer."""
    for look in (_version_fault, _end_fault, _repeated_fault, _rest_fault, _damage_fault):
        yield from look(path, facts)


def _version_fault(path: str, facts: TokenizerFacts) -> Iterator[Finding]:
    if facts.version == 1 and facts.vocab_size != _GPT2_TOKENS:
        fault = f"version 1 with {facts.vocab_size} tokens"
        yield Finding(path, fault, f"aborts, because it assumes {_GPT2_TOKENS}", "save it as version 2")


def _end_fault(path: str, facts: TokenizerFacts) -> Iterator[Finding]:
    """Checks the end-of-text token, from which samples start."""
    if facts.version == 1 and facts.vocab_size != _GPT2_TOKENS:
        return
    expected = END_OF_TEXT.encode()  # pybpe's own files may use another name; they have a checksum
    if not 0 <= facts.eot < facts.vocab_size:
        fault = f"the end-of-text id is {facts.eot}, but there are only {facts.vocab_size} tokens"
        effect = "aborts when it starts a sample from it, unless the model has this id"
        yield Finding(path, fault, effect, f"train the tokenizer with the special token {END_OF_TEXT}")
    elif not facts.is_complete and expected in facts.tokens and facts.tokens[facts.eot] != expected:
        found = facts.tokens[facts.eot].decode("utf-8", "replace")
        fault = f"the end-of-text id is {facts.eot}, which is {found!r}, not {END_OF_TEXT}"
        yield Finding(path, fault, "starts its samples from that token", REMEDY, WARNING)


def _repeated_fault(path: str, facts: TokenizerFacts) -> Iterator[Finding]:
    """Yields equal tokens: one of them is probably in another's place."""
    first: dict[bytes, int] = {}
    for i, token in enumerate(facts.tokens):
        if first.setdefault(token, i) != i:
            fault = f"tokens {first[token]} and {i} are the same"
            yield Finding(path, fault, "prints the same text for both", f"if that is not intended, {REMEDY}", WARNING)
            return


def _rest_fault(path: str, facts: TokenizerFacts) -> Iterator[Finding]:
    if facts.rest and not facts.is_complete:
        fault = f"{facts.rest} bytes follow the {facts.vocab_size} tokens"
        effect = "ignores them; tokens are missing if the header's count is too small"
        yield Finding(path, fault, effect, REMEDY, WARNING)


def _damage_fault(path: str, facts: TokenizerFacts) -> Iterator[Finding]:
    """Checks the checksum that pybpe writes after the merges and pattern."""
    try:
        Tokenizer.from_file(path)
    except Error as error:
        if facts.is_complete:
            fault = str(error).removeprefix(f"{path}: ")
            yield Finding(
                path, fault, "still reads its tokens, and prints samples with them", "save it again with pybpe"
            )
