"""binarize: texts -> token files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import _binding
from ..errors import ArgumentError
from ..model import END_OF_TEXT
from ..parallel import map_ordered
from ..pretokenize import Inputs, cutter, path_list, total_bytes
from ..progress import Progress
from ..tokenizer import Tokenizer
from .eot import EOT_MODES, EotPlacer
from .manifest import Manifest
from .shards import SplitWriter, make_folder
from .splits import SPLIT_BY, SPLIT_NAMES, Unit, check_splits, corpus_units

if TYPE_CHECKING:
    import numpy

FORMATS = ("llmc", "raw")
LLMC_MIN_TOKENS = 257  # B*T + 1 of llm.c's CPU trainer, whose B is 4 and T 64


@dataclass(frozen=True)
class _Job:
    """The settings of one call."""

    format: str
    splits: tuple[float, ...]
    split_by: str
    eot: str
    dtype: str
    shard_tokens: int
    min_shard_tokens: int
    name: str


def binarize(
    tok: Tokenizer,
    inputs: Inputs,
    out: _binding.PathLike,
    *,
    format: str = "llmc",
    splits: Sequence[float] = (8, 1, 1),
    split_by: str = "hash",
    eot: str | None = None,
    dtype: str = "auto",
    shard_tokens: int = 10**8,
    min_shard_tokens: int | None = None,
    name: str | None = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> Manifest:
    """Encodes text files into token files.

    Args:
        tok: the tokenizer.
        inputs: a path or a list of paths. Documents are separated by the text <|endoftext|>, or are whole
            files.
        out: a folder, made if needed.
        format: "llmc": NAME_train_000000.bin and so on, with llm.c's header; "raw": train.bin, val.bin,
            test.bin without one, as nanoGPT reads them.
        splits: the shares of train, val and test; fewer than three leave out the last ones.
        split_by: "hash": each document by a hash of its bytes, so that it stays in its split when the
            corpus grows; "document": contiguous, with a border between documents; "token": contiguous,
            with a border between any two words. A single document is split as with "token". Shares of
            contiguous splits are measured in bytes of text.
        eot: where <|endoftext|> goes: "prepend" (before each document, as llm.c expects; the default for
            "llmc"), "append" (after each, as nanoGPT expects; the default for "raw"), or "none".
        dtype: "uint16", "uint32", or "auto" by the vocabulary's size.
        shard_tokens: tokens a shard ("llmc" only).
        min_shard_tokens: the least tokens of a shard; None means 257 for "llmc", below which llm.c aborts.
        name: NAME of the files; None takes the first input's name without its ending.
        workers: threads; None for all CPUs. The files are the same for any number.
        progress: as in `pybpe.train`.

    Returns:
        The manifest, also written to manifest.json in `out`.

    Raises:
        ArgumentError, FileError, LimitError (a shard too small for llm.c, an id too large for the dtype).
    """
    paths = path_list(inputs)
    job = _check(tok, paths, format, splits, split_by, eot, dtype, shard_tokens, min_shard_tokens, name)
    folder = make_folder(out)
    writers = _writers(job, folder)
    try:
        text_bytes = _run(tok, job, paths, writers, workers, progress)
        for writer in writers:
            writer.finish()
    except BaseException:
        for writer in writers:
            writer.discard()
        raise
    manifest = Manifest(
        {key: value for key, value in vars(job).items() if key != "name"},
        _describe(tok),
        dict(zip(SPLIT_NAMES, text_bytes)),
        {split: writer.records for split, writer in zip(SPLIT_NAMES, writers)},
    )
    manifest.save(folder)
    return manifest


def _check(
    tok: Tokenizer,
    paths: Sequence[str],
    format: str,
    splits: Sequence[float],
    split_by: str,
    eot: str | None,
    dtype: str,
    shard_tokens: int,
    min_shard_tokens: int | None,
    name: str | None,
) -> _Job:
    if not paths:
        raise ArgumentError("inputs is empty: name at least one file")
    for what, value, choices in (
        ("format", format, FORMATS),
        ("split_by", split_by, SPLIT_BY),
        ("eot", eot, (*EOT_MODES, None)),
        ("dtype", dtype, ("auto", "uint16", "uint32")),
    ):
        if value not in choices:
            raise ArgumentError(f"{what} must be one of {', '.join(map(str, choices))}, not {value!r}")
    check_splits(splits)
    if eot is None:
        eot = "prepend" if format == "llmc" else "append"
    if tok.eot_token is None and eot != "none":
        raise ArgumentError(f"the tokenizer has no {END_OF_TEXT}: train with that special token, or pass eot='none'")
    if shard_tokens < 1:
        raise ArgumentError(f"shard_tokens must be at least 1, not {shard_tokens}")
    if dtype == "auto":
        dtype = tok.dtype.name
    if min_shard_tokens is None:
        min_shard_tokens = LLMC_MIN_TOKENS if format == "llmc" else 0
    if name is None:
        name = os.path.splitext(os.path.basename(paths[0]))[0] or "data"
    return _Job(format, tuple(splits), split_by, eot, dtype, shard_tokens, min_shard_tokens, name)


def _writers(job: _Job, folder: str) -> list[SplitWriter]:
    writers = []
    for split in SPLIT_NAMES[: len(job.splits)]:
        # Braces in a folder's or a corpus's name are not places for the number.
        stem = os.path.join(folder, f"{job.name}_{split}" if job.format == "llmc" else split)
        stem = stem.replace("{", "{{").replace("}", "}}")
        path = stem + ("_{:06d}.bin" if job.format == "llmc" else ".bin")
        id_bytes = 2 if job.dtype == "uint16" else 4
        writers.append(SplitWriter(path, job.format, id_bytes, job.shard_tokens, job.min_shard_tokens))
    return writers


def _run(
    tok: Tokenizer,
    job: _Job,
    paths: Sequence[str],
    writers: Sequence[SplitWriter],
    workers: int | None,
    progress: bool | None,
) -> list[int]:
    """Encodes all units and writes them in order. Returns the bytes of text in each split."""
    placers = [EotPlacer(job.eot, tok.eot_token, tok.dtype) for _ in writers]
    text_bytes = [0] * len(writers)

    def encode(unit: Unit) -> tuple[Unit, numpy.ndarray[Any, Any]]:
        return unit, tok.encode_to_numpy(unit.data)

    with Progress("encoding", total_bytes(paths), "B", progress) as bar:
        for unit, ids in map_ordered(encode, _units(tok, job, paths), workers):
            placer, writer = placers[unit.split], writers[unit.split]
            writer.write(placer.place(ids))
            if unit.ends_document:
                writer.write(placer.end_document())
            size = len(unit.data)
            text_bytes[unit.split] += size
            bar.add(size)
    return text_bytes


def _units(tok: Tokenizer, job: _Job, paths: Sequence[str]) -> Iterator[Unit]:
    eot = END_OF_TEXT.encode() if tok.eot_token is not None else None
    return corpus_units(paths, cutter(tok.pattern, tok.specials_matcher), job.splits, job.split_by, eot)


def _describe(tok: Tokenizer) -> dict[str, object]:
    return {
        "n_vocab": tok.n_vocab,
        "pattern": tok.pattern.regex,
        "normalizer": tok.normalizer,
        "fingerprint": tok.model.fingerprint(),
    }
