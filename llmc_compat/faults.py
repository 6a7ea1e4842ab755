"""The files of llm.c, each by itself: what is in them, and what is wrong with them.

llm.c checks little. What it does with each fault was found by running its CPU trainer on such a file, and for the CUDA
trainer by reading train_gpt2.cu.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass

from pybpe import _binding
from pybpe.errors import FormatError
from pybpe.pretokenize import open_input, read_items

from .batch import Batch
from .checkpoint import HEADER_BYTES, ITEM_BYTES, from_file_type, read_config
from .evals import COMPLETIONS, EvalFacts
from .gpt2_config import GPT2Config

TOKENIZER_MAGIC = 20240328

_READ_TOKENS = 1 << 22
MODEL_TYPES = {"gpt2_124M.bin": "fp32", "gpt2_124M_bf16.bin": "bf16"}  # what llm.c opens unless told otherwise


@dataclass(frozen=True)
class Finding:
    """One fault.

    Attributes:
        file: where it is.
        fault: what is wrong.
        effect: what llm.c does with it: "aborts" and the like.
        remedy: how to mend it.
    """

    file: str
    fault: str
    effect: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.file}: {self.fault}; llm.c {self.effect}; {self.remedy}"

    @classmethod
    def of_error(cls, file: str, error: Exception, remedy: str) -> Finding:
        """The fault of a file that cannot be read. The error's message may say what llm.c does."""
        fault, _, effect = str(error).removeprefix(f"{file}: ").partition("; llm.c ")
        return cls(file, fault, effect or "aborts", remedy)


# ----------------------------------------------------------------------------------------------------
# tokenizer.bin


@dataclass(frozen=True)
class TokenizerFacts:
    """A tokenizer.bin as llm.c reads it.

    Attributes:
        version: 1 or 2.
        vocab_size: V.
        eot: the id that starts each sample.
        is_complete: whether our merges and pattern follow the tokens, which llm.c does not read.
    """

    version: int
    vocab_size: int
    eot: int
    is_complete: bool


def read_tokenizer(path: str) -> TokenizerFacts:
    """Raises FileError, FormatError."""
    import numpy

    with open_input(path) as stream:
        raw = stream.read()
    if len(raw) < HEADER_BYTES:
        raise FormatError(f"{path}: {len(raw)} bytes are no tokenizer: its header alone has {HEADER_BYTES}", len(raw))
    _, version, vocab_size, eot = (int(i) for i in numpy.frombuffer(raw, dtype="<i4", count=4))
    if version not in (1, 2):
        raise FormatError(f"{path}: version {version}, expected 2", 4)
    if vocab_size < 1:
        raise FormatError(f"{path}: {vocab_size} tokens in the header", 8)
    at = HEADER_BYTES
    for i in range(vocab_size):
        length = raw[at] if at < len(raw) else None
        if length == 0:
            raise FormatError(f"{path}: the token {i} at byte {at} is empty", at)
        if length is None or at + 1 + length > len(raw):
            raise FormatError(f"{path}: ends at byte {len(raw)}, in the token {i} of {vocab_size}", len(raw))
        at += 1 + length
    return TokenizerFacts(version, vocab_size, 50256 if version == 1 else eot, at < len(raw))


def tokenizer_faults(path: str, facts: TokenizerFacts) -> Iterator[Finding]:
    """What is wrong with a tokenizer."""
    if facts.version == 1 and facts.vocab_size != 50257:
        fault = f"version 1 with {facts.vocab_size} tokens"
        yield Finding(path, fault, "aborts, since it takes 50257 for granted", "save it as version 2")
    elif not 0 <= facts.eot < facts.vocab_size:
        yield Finding(
            path,
            f"end of text is the id {facts.eot}, and there are {facts.vocab_size} tokens",
            "aborts when it starts a sample from it",
            "train the tokenizer with the special token <|endoftext|>",
        )


# ----------------------------------------------------------------------------------------------------
# Shards


@dataclass(frozen=True)
class ShardFacts:
    """A shard: tokens, bytes of one, the highest id."""

    tokens: int
    id_bytes: int
    highest: int


def read_shard_facts(path: str) -> ShardFacts:
    """Raises FileError, FormatError."""
    shard = _binding.Shard(path)
    highest = -1
    for start in range(0, len(shard), _READ_TOKENS):
        ids = shard.read(start, min(_READ_TOKENS, len(shard) - start))
        highest = max(highest, int(ids.max()))
    return ShardFacts(len(shard), shard.id_bytes, highest)


def shard_faults(path: str, facts: ShardFacts, batch: Batch) -> Iterator[Finding]:
    """What is wrong with a shard."""
    size = os.path.getsize(path)
    if facts.id_bytes != 2:
        yield Finding(
            path,
            "uint32 tokens",
            "aborts with 'Bad magic' (only its train_llama3.py reads them)",
            "use a vocabulary of at most 65536 tokens, and dtype uint16",
        )
    if size > _binding.SHARD_MAX_BYTES:
        yield Finding(
            path,
            f"{size} bytes",
            "aborts at the first batch behind 2 GiB, since it seeks with a 32-bit int",
            "write smaller shards: --shard-tokens",
        )
    if facts.tokens < batch.min_tokens:
        fault = f"{facts.tokens} tokens, and {batch.needs()} are needed"
        yield Finding(path, fault, "aborts", batch.largest_fit(facts.tokens))


# ----------------------------------------------------------------------------------------------------
# Checkpoints


@dataclass(frozen=True)
class ModelFacts:
    """A checkpoint: its shape, its type, and whether a padding row of wte holds anything."""

    config: GPT2Config
    dtype: str
    padding_is_used: bool


def read_model(path: str) -> ModelFacts:
    """Raises FileError, FormatError."""
    config, dtype = read_config(path)
    with open_input(path) as stream:
        stream.seek(HEADER_BYTES + config.vocab_size * config.channels * ITEM_BYTES[dtype])
        rows = (config.padded_vocab_size - config.vocab_size) * config.channels
        raw = read_items(stream, f"<u{ITEM_BYTES[dtype]}", rows)
    return ModelFacts(config, dtype, bool(from_file_type(raw, dtype).any()))


def model_faults(path: str, facts: ModelFacts, batch: Batch) -> Iterator[Finding]:
    """What is wrong with a checkpoint."""
    V, Vp, maxT = facts.config.vocab_size, facts.config.padded_vocab_size, facts.config.max_seq_len
    expected = MODEL_TYPES.get(os.path.basename(path), facts.dtype)
    if facts.dtype != expected:
        yield Finding(
            path,
            f"is {facts.dtype}, and under this name llm.c looks for {expected}",
            "aborts: 'Bad version', or 'Precision is configured as'",
            f"write it with --dtype {expected}, or name it otherwise and pass it with -e",
        )
    if batch.T > maxT:
        effect = "takes other weights for positions on the CPU, and aborts on CUDA"
        yield Finding(path, f"maxT is {maxT}, and T {batch.T}", effect, f"use -t {maxT}, or a longer --context")
    if Vp <= V or Vp % 8:
        effect = "reads unaligned rows on CUDA, and crashes"
        yield Finding(
            path,
            f"Vp is {Vp} for V {V}, not above it and a multiple of 8",
            effect,
            "pybpe llmc checkpoint resize --pad 128",
        )
    if facts.padding_is_used:
        yield Finding(
            path,
            f"rows {V} to {Vp} of wte are not zero",
            "takes their logits for gradients on CUDA, whose norm explodes",
            "pybpe llmc checkpoint resize zeroes them",
        )


# ----------------------------------------------------------------------------------------------------
# Eval files


def eval_faults(path: str, facts: EvalFacts, batch: Batch) -> Iterator[Finding]:
    """What is wrong with an eval file for a batch."""
    if batch.B < COMPLETIONS:
        fault = f"B is {batch.B}, and an example takes {COMPLETIONS} rows"
        yield Finding(path, fault, "aborts with -h 1", f"use -b {COMPLETIONS} or more, or -h 0")
    if batch.T < facts.min_T:
        fault = f"its longest example needs T {facts.min_T}, and T is {batch.T}"
        yield Finding(
            path, fault, "aborts with -h 1", f"use -t {facts.min_T} or more, leave long examples out, or -h 0"
        )
    each = -(-facts.examples // batch.processes)
    if facts.examples < batch.processes or each * (batch.processes - 1) > facts.examples:
        fault = f"{facts.examples} examples, {each} for each of {batch.processes} processes, do not reach the last one"
        effect = "reads past the end and aborts with -h 1"
        yield Finding(path, fault, effect, "use fewer processes, another number of examples, or -h 0")
