"""What the files hold, as llm.c reads them, and everything that was found together."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, prod
from typing import Any, BinaryIO, TypeVar

from llmc_compat import evals
from llmc_compat.checkpoint import ITEM_BYTES, file_bytes, from_file_type, read_header
from llmc_compat.gpt2_config import Sizes
from llmc_compat.header import HEADER_BYTES, header_numbers
from pybpe import _binding
from pybpe._lazy import numpy
from pybpe.errors import Error, FormatError
from pybpe.reading.streams import open_unchanged, read_file, read_items
from pybpe.tokens.manifest import Manifest, ShardRecord

from .files import Finding, Found, Run

TOKENIZER_AGAIN = "write it again with Tokenizer.save or pybpe export"
MODEL_AGAIN = "write it again with pybpe llmc workspace or checkpoint"
SHARD_AGAIN = "write it again with pybpe binarize"
SHARDS_AGAIN = "write the shards again, with the command that wrote them"
EVAL_AGAIN = "write it again with pybpe llmc eval"
EARLIER_STEP = "resume from an earlier step: remove the DONE file of this one"

GPT2_TOKENS = 50257
ON_RESUMING = "aborts when it resumes with -y 1"
_TRAILER_MARK = 0x50425950  # in the header of a tokenizer: our merges and pattern follow the tokens
_STATE_MAGIC = 20240527
_BLOCK_ITEMS = 1 << 22

Facts = TypeVar("Facts")


@dataclass(frozen=True)
class TokenizerFacts:
    """A tokenizer.bin as llm.c reads it."""

    version: int  # 1 or 2
    eot: int  # the id that starts each sample
    tokens: list[bytes] = field(repr=False)  # each id's bytes
    rest: int = 0  # the number of bytes after the tokens
    is_complete: bool = False  # whether those bytes should be pybpe's merges and pattern, which llm.c does not read

    @property
    def vocab_size(self) -> int:
        """V."""
        return len(self.tokens)


def read_tokenizer(path: str) -> TokenizerFacts:
    """Raises FileError, FormatError."""
    raw = read_file(path)
    _, version, vocab_size, eot, mark = header_numbers(raw, path, "a tokenizer")[:5]
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
    eot = GPT2_TOKENS - 1 if version == 1 else eot
    return TokenizerFacts(version, eot, tokens, len(raw) - at, mark == _TRAILER_MARK)


@dataclass(frozen=True)
class Weights:
    """What the tensors hold."""

    largest: dict[str, float] = field(default_factory=dict)  # the largest magnitude of each tensor; inf for Inf and NaN
    padding_is_used: bool = False  # whether a row of wte beyond V has a nonzero weight


@dataclass(frozen=True)
class ModelFacts:
    """What a checkpoint holds."""

    dtype: str  # "fp32" or "bf16"
    sizes: Sizes  # the header's
    size: int  # the file's size, in bytes
    weights: Weights | None  # None unless the file's size matches the header

    @property
    def is_possible(self) -> bool:
        """Whether each size is at least 1."""
        return all(size > 0 for size in vars(self.sizes).values())


def read_model(path: str) -> ModelFacts:
    """Raises FileError, FormatError."""
    with open_unchanged(path) as stream:
        sizes, dtype, size = read_header(stream, path)
        facts = ModelFacts(dtype, sizes, size, None)
        if not facts.is_possible or size != file_bytes(sizes, dtype):
            return facts
        largest, padding = {}, 0.0
        for name, shape in sizes.tensor_shapes().items():
            used = min(sizes.vocab_size, sizes.padded_vocab_size) * sizes.channels if name == "wte" else prod(shape)
            largest[name] = _largest(stream, dtype, used)
            if name == "wte":
                padding = _largest(stream, dtype, prod(shape) - used)
                largest[name] = max(largest[name], padding if padding == inf else 0.0)
        return replace(facts, weights=Weights(largest, padding > 0))


def _largest(stream: BinaryIO, dtype: str, count: int) -> float:
    """Returns the largest magnitude of the next weights, or inf if one is not finite.

    Without their sign, floats compare like their bits as integers; Inf and NaN compare above all others.
    """
    bits = numpy.dtype(f"<u{ITEM_BYTES[dtype]}")
    without_sign = bits.type((1 << (8 * bits.itemsize - 1)) - 1)
    found = numpy.zeros(1, bits)
    for start in range(0, count, _BLOCK_ITEMS):
        block = read_items(stream, bits, min(_BLOCK_ITEMS, count - start))
        if len(block) < min(_BLOCK_ITEMS, count - start):
            raise FormatError("was truncated while being read")
        found[0] = max(found[0], (block & without_sign).max())
    value = float(from_file_type(found, dtype)[0])
    return value if value < inf else inf


@dataclass(frozen=True)
class ShardFacts:
    """What a shard holds."""

    tokens: int  # the number of tokens
    id_bytes: int  # the bytes per token: 2 or 4
    # lowest, highest: the lowest and highest ids; -1 if there are none.
    lowest: int
    highest: int
    present: frozenset[int]  # the queried ids that occur in it


def read_shard_facts(path: str, wanted: Collection[int] = ()) -> ShardFacts:
    """Raises FileError, FormatError."""
    shard = _binding.Shard(path)
    lowest, highest = -1, -1
    present: set[int] = set()
    for start in range(0, len(shard), _BLOCK_ITEMS):
        ids = shard.read(start, min(_BLOCK_ITEMS, len(shard) - start))
        low, high = int(ids.min()), int(ids.max())
        lowest, highest = (low if lowest < 0 else min(lowest, low)), max(highest, high)
        present |= {i for i in wanted if i not in present and low <= i <= high and bool((ids == i).any())}
    return ShardFacts(len(shard), shard.id_bytes, lowest, highest, frozenset(present))


@dataclass(frozen=True)
class StateFacts:
    """The header of a state, and the size of the file."""

    header: tuple[int, ...]
    size: int


def read_state(path: str) -> StateFacts | None:
    """Reads a state; returns None if the file is of another kind. Raises FileError, FormatError."""
    with open_unchanged(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        raw = stream.read(HEADER_BYTES)
    if int.from_bytes(raw[:4], "little") != _STATE_MAGIC:
        return None
    if len(raw) < HEADER_BYTES:
        raise FormatError(f"{path}: too short for a state: {size} bytes; llm.c {ON_RESUMING}")
    return StateFacts(header_numbers(raw, path, "a state"), size)


@dataclass(frozen=True)
class Described:
    """A manifest and its path."""

    path: str
    manifest: Manifest

    @property
    def folder(self) -> str:
        """The folder of its shards."""
        return os.path.dirname(self.path)

    @property
    def records(self) -> Iterator[tuple[str, ShardRecord]]:
        """The shards that llm.c can read, with their splits."""
        if self.manifest.settings.get("format") == "llmc":
            for split, records in self.manifest.shards.items():
                yield from ((split, record) for record in records)


def read_manifests(paths: Iterable[str], shards: Iterable[str], findings: list[Finding]) -> list[Described]:
    """Returns pybpe's manifests among the paths. Others that are in a folder of shards become findings: without its
    manifest, no change of a shard is noticed."""
    found = []
    folders = {os.path.dirname(os.path.realpath(path)) for path in shards}
    for path in paths:
        try:
            found.append(Described(path, Manifest.load(os.path.dirname(path) or ".")))
        except FormatError as error:
            if os.path.dirname(os.path.realpath(path)) in folders:  # elsewhere, another program's file of that name
                fault = str(error).removeprefix(f"{path}: ")
                effect = "does not read it, but without it nothing shows whether the shards beside it have changed"
                findings.append(Finding(path, fault, effect, SHARDS_AGAIN))
    return found


# ----------------------------------------------------------------------------------------------------
# Everything


@dataclass(frozen=True)
class Seen:
    """What the checks look at: what was found, the contents of each file that can be read, and the run."""

    found: Found
    run: Run
    tokenizers: Mapping[str, TokenizerFacts]
    models: Mapping[str, ModelFacts]
    shards: Mapping[str, ShardFacts]
    evals: Mapping[str, evals.EvalFacts]
    states: Mapping[str, StateFacts]
    manifests: Sequence[Described]

    def part(self, paths: Collection[str]) -> Seen:
        """Returns the same with the contents of only some of the files."""
        kinds = {name: kind for name, kind in vars(self).items() if isinstance(kind, dict)}
        some: dict[str, Any] = {
            name: {path: kind[path] for path in kind if path in paths} for name, kind in kinds.items()
        }
        return replace(self, **some, manifests=[each for each in self.manifests if each.path in paths])


def read_all(found: Found, run: Run, findings: list[Finding]) -> Seen:
    """Reads all files. Those that cannot be read become findings."""

    def read(paths: Iterable[str], reader: Callable[[str], Facts], remedy: str) -> dict[str, Facts]:
        contents = {}
        for path in paths:
            try:
                contents[path] = reader(path)
            except Error as error:
                findings.append(Finding.of_error(path, error, remedy))
        return contents

    files = found.files
    tokenizers = read(files.tokenizers, read_tokenizer, TOKENIZER_AGAIN)
    ends = {facts.eot for facts in tokenizers.values()}
    states = read(files.others, read_state, EARLIER_STEP)
    models = read(files.models, read_model, MODEL_AGAIN)
    shards = read(files.shards, lambda path: read_shard_facts(path, ends), SHARD_AGAIN)
    questions = read(files.evals, evals.eval_facts, EVAL_AGAIN)
    manifests = read_manifests(files.manifests, shards, findings)
    known_states = {path: state for path, state in states.items() if state is not None}
    return Seen(found, run, tokenizers, models, shards, questions, known_states, manifests)
