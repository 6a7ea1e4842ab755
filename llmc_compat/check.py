"""Would llm.c train on these files? What is wrong, what llm.c would do about it, and how to mend it.

llm.c checks little, and aborts, overflows or trains on nonsense where it does not. `check` reads a
tokenizer, shards and a checkpoint as llm.c would, each by itself and all against each other.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pybpe import Tokenizer, _binding
from pybpe.errors import ArgumentError, Error
from pybpe.pretokenize import open_input

from . import checkpoint
from .gpt2_config import GPT2Config

if TYPE_CHECKING:
    pass

_TOKENIZER_MAGIC = 20240328
_SHARD_MAGICS = (20240520, 20240801)
_READ_TOKENS = 1 << 22


@dataclass(frozen=True)
class Finding:
    """One fault.

    Attributes:
        file: where it is.
        fault: what is wrong, what llm.c would do, and how to mend it, in one line.
    """

    file: str
    fault: str

    def __str__(self) -> str:
        return self.fault if self.fault.startswith(self.file) else f"{self.file}: {self.fault}"


@dataclass(frozen=True)
class Batch:
    """The batch that the files shall serve: B and T of each of `processes` processes."""

    B: int = 4
    T: int = 64
    processes: int = 1

    @property
    def min_tokens(self) -> int:
        """What every shard must hold: one batch, and one token more for the last target."""
        return self.processes * self.B * self.T + 1


@dataclass
class Files:
    """What was found, by kind: paths."""

    tokenizers: list[str]
    shards: list[str]
    models: list[str]


def check(paths: Iterable[_binding.PathLike], batch: Batch | None = None) -> tuple[Files, list[Finding]]:
    """Checks files, or all files of llm.c in folders (links and subfolders included).

    Args:
        paths: files and folders.
        batch: B, T and processes of the run; default: those of llm.c's CPU trainer.

    Returns:
        The files by kind, and the faults; none means that llm.c can train on them.

    Raises:
        FileError: a path does not exist. ArgumentError: there is no file of llm.c among them.
    """
    batch = batch or Batch()
    if min(batch.B, batch.T, batch.processes) < 1:
        raise ArgumentError(f"B, T and processes must be at least 1, not {batch.B}, {batch.T}, {batch.processes}")
    files, findings = _sort_files(_walk(paths))
    if not (files.tokenizers or files.shards or files.models or findings):
        raise ArgumentError("none of these is a file of llm.c: expected tokenizer.bin, shards or a checkpoint")
    tokenizers = _checked(files.tokenizers, _read_tokenizer, findings)
    models = _checked(files.models, checkpoint.read_config, findings)
    shards = _checked(files.shards, _shard_facts, findings)
    for path, tokenizer in tokenizers.items():
        findings += _check_tokenizer(path, tokenizer)
    for path, (config, _) in models.items():
        findings += _check_model(path, config, batch)
    for path, (count, highest) in shards.items():
        findings += _check_shard(path, count, batch)
        findings += _check_ids(path, highest, tokenizers, models)
    findings += _check_together(tokenizers, models)
    return files, findings


# ----------------------------------------------------------------------------------------------------
# Finding files


def _walk(paths: Iterable[_binding.PathLike]) -> Iterator[str]:
    """All files of the paths, each once, however many links lead to it."""
    seen = set()
    for path in map(os.fsdecode, paths):
        inside = [path]
        if os.path.isdir(path):
            inside = sorted(os.path.join(folder, name) for folder, _, names in os.walk(path) for name in names)
        for name in inside:
            real = os.path.realpath(name)
            if real not in seen:
                seen.add(real)
                yield name


def _sort_files(paths: Iterable[str]) -> tuple[Files, list[Finding]]:
    """By magic. A .bin file of no known kind is a fault; other files are not llm.c's."""
    files, findings = Files([], [], []), []
    for path in paths:
        with open_input(path) as stream:
            magic = int.from_bytes(stream.read(4), "little")
        if magic == _TOKENIZER_MAGIC:
            files.tokenizers.append(path)
        elif magic in _SHARD_MAGICS:
            files.shards.append(path)
        elif magic == checkpoint.MAGIC:
            files.models.append(path)
        elif path.endswith(".bin"):
            findings.append(
                Finding(
                    path,
                    f"magic {magic} is no file of llm.c, which aborts with 'Bad magic'; a headerless nanoGPT"
                    " file must be written again with format llmc",
                )
            )
    return files, findings


def _checked(paths: Sequence[str], read: Any, findings: list[Finding]) -> dict[str, Any]:
    """read(path) for each path that can be read; the others become findings."""
    found = {}
    for path in paths:
        try:
            found[path] = read(path)
        except Error as error:
            findings.append(Finding(path, str(error)))
    return found


# ----------------------------------------------------------------------------------------------------
# Each by itself


def _read_tokenizer(path: str) -> tuple[Tokenizer, int]:
    """The tokenizer and the version of its file."""
    with open_input(path) as stream:
        version = int.from_bytes(stream.read(8)[4:], "little")
    return Tokenizer.from_file(path), version


def _check_tokenizer(path: str, read: tuple[Tokenizer, int]) -> Iterator[Finding]:
    tok, version = read
    if version == 1 and tok.n_vocab != 50257:
        yield Finding(path, f"version 1 with {tok.n_vocab} tokens: llm.c aborts (it assumes 50257); save version 2")
    if tok.eot_token is None:
        yield Finding(path, "has no <|endoftext|>: llm.c would start every sample from a token that does not exist")


def _check_model(path: str, config: GPT2Config, batch: Batch) -> Iterator[Finding]:
    V, Vp = config.vocab_size, config.padded_vocab_size
    if batch.T > config.max_seq_len:
        yield Finding(
            path, f"maxT is {config.max_seq_len}, T {batch.T}: llm.c reads beyond wpe; use -t {config.max_seq_len}"
        )
    if Vp <= V or Vp % 8:
        yield Finding(path, f"Vp is {Vp} for V {V}: CUDA needs Vp > V and a multiple of 8; write it with --pad 128")
    if _padding_is_used(path):
        yield Finding(
            path,
            f"rows {V} to {Vp} of wte are not zero: CUDA takes their logits for gradients, and the gradient's"
            " norm explodes; write the checkpoint again with pybpe",
        )


def _padding_is_used(path: str) -> bool:
    with checkpoint.Checkpoint(path) as model:
        return bool(model.rows("wte", model.config.vocab_size, model.config.padded_vocab_size).any())


def _shard_facts(path: str) -> tuple[int, int]:
    """The number of tokens and the highest id."""
    shard = _binding.Shard(path)
    highest = -1
    for start in range(0, len(shard), _READ_TOKENS):
        ids = shard.read(start, min(_READ_TOKENS, len(shard) - start))
        highest = max(highest, int(ids.max()))
    return len(shard), highest


def _check_shard(path: str, count: int, batch: Batch) -> Iterator[Finding]:
    size = os.path.getsize(path)
    if size > _binding.SHARD_MAX_BYTES:
        yield Finding(path, f"{size} bytes: llm.c seeks with a 32-bit int and reads elsewhere; write smaller shards")
    if count < batch.min_tokens:
        yield Finding(path, too_small(count, batch))


def too_small(count: int, batch: Batch) -> str:
    """The fault of a shard with fewer tokens than one batch, with the largest B and T that fit."""
    fit = (count - 1) // batch.processes  # B * T may be at most this
    if fit < 1:
        largest = "no B and T fit: give more text"
    elif fit >= batch.T:
        largest = f"the largest that fit are B {fit // batch.T} with T {batch.T}"
    else:
        largest = f"the largest that fit are B 1 with T {fit}"
    return (
        f"{count} tokens, but {batch.processes} x B {batch.B} x T {batch.T} + 1 = {batch.min_tokens} are needed:"
        f" llm.c aborts; {largest}"
    )


# ----------------------------------------------------------------------------------------------------
# All against each other


def _check_ids(path: str, highest: int, tokenizers: dict[str, Any], models: dict[str, Any]) -> Iterator[Finding]:
    for other, (tok, _) in tokenizers.items():
        if highest >= tok.n_vocab:
            yield Finding(
                path, f"has the id {highest}, but {other} has {tok.n_vocab} tokens: they do not belong together"
            )
    for other, (config, _) in models.items():
        if highest >= config.vocab_size:
            yield Finding(
                path,
                f"has the id {highest}, but {other} has V {config.vocab_size}: llm.c reads beyond wte and crashes"
                " or trains on noise; write the checkpoint for this tokenizer",
            )


def _check_together(tokenizers: dict[str, Any], models: dict[str, Any]) -> Iterator[Finding]:
    for path, (config, _) in models.items():
        for other, (tok, _) in tokenizers.items():
            if config.vocab_size != tok.n_vocab:
                yield Finding(
                    path,
                    f"V is {config.vocab_size}, but {other} has {tok.n_vocab} tokens: llm.c would sample ids that"
                    " the tokenizer lacks, or never learn some; write the checkpoint for this tokenizer",
                )
