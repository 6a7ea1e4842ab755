"""binarize: encodes texts into token files."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Any

from .. import _binding
from .._version import __version__
from ..arguments import instance, one_of, whole_number
from ..errors import ArgumentError, LimitError
from ..reading import planning
from ..reading.documents import NAME_IT, Kinds, check_mark
from ..reading.input_file import known_total
from ..reading.parquet import pyarrow_parquet
from ..reading.paths import Inputs, path_list
from ..reading.pieces import Cutting
from ..reading.splits import SPLIT_BY, checked_splits
from ..reading.staging import Staged, stage
from ..reading.text_encoding import check_encoding
from ..reading.unpacking import without_ending
from ..support.locking import FOLDER, only_writer
from ..tokenizer import Tokenizer
from .conversion import Conversion
from .encoding import TaskEncoder, text_length
from .eot import EOT_MODES, KEEP
from .manifest import Manifest, check_name
from .shares import check_shares
from .split_writer import Layout
from .writers import FORMATS, Format, megatron
from .writers.base import id_bytes


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
    sequence_length: int = 1024,
    documents: str = "auto",
    text_key: str = "text",
    encoding: str | None = None,
    name: str | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    resume: bool = True,
    progress: bool | None = None,
) -> Manifest:
    """Encodes a corpus into token files.

    A run that was interrupted, even killed, resumes when called again with the same arguments and writes identical
    files.

    Args:
        tok: the tokenizer.
        inputs: a path or a list of paths: text, JSON lines (.jsonl, .ndjson), parquet (.parquet); text and
            JSON lines also compressed (.gz, .bz2, .xz, .zst). A folder means all files in it, a glob pattern the files
            it matches, and "-" standard input.
        out: the output folder, created if needed.
        format: "llmc": NAME_train_000000.bin and so on, with llm.c's header; "raw": train.bin, val.bin,
            test.bin without a header, and meta.pkl, as nanoGPT reads them; "npy": shards that numpy.load opens;
            "megatron": NAME_train.bin and .idx; "parquet" and "webdataset": shards of packed sequences, one
            per row or sample.
        splits: the shares of train, val and test; with fewer than three, the last splits are left out. With few
            documents the actual shares may differ: then a warning says so, and a split that must not be empty but is
                raises an error.
        split_by: "hash": a hash of each document's bytes chooses its split, so that it keeps its split when the
            corpus grows. A JSON record with a string "cluster", as `pybpe.corpus` marks near duplicates, is hashed by
            that instead, so that near duplicates stay together. "document": each file is split contiguously, between
            documents; files with too few documents are assigned whole, in turn. "token": contiguously, between any two
            words, but records stay whole. A single document is split as with "token", and each split's part of it is a
            document there. Shares of contiguous splits are measured in bytes of text, or rows of parquet.
        eot: where the tokenizer's end of text, `tok.eot_token`, goes: "prepend" (before each document, as llm.c
            expects; the default for "llmc"), "append" (after each, as nanoGPT expects; the default for the others),
            or "none".
        dtype: "uint16", "uint32", or "auto" by the vocabulary's size.
        shard_tokens: the maximum number of tokens per shard; "raw" and "megatron" have one file per split. The shards
            of "llmc" have equal size (some may have one token more), because llm.c cannot resume otherwise. Those of
            other formats have exactly this many, and the last one has the rest.
        min_shard_tokens: the minimum number of tokens per shard. None means 257 for "llmc", which aborts with fewer.
        sequence_length: tokens per row for "parquet" and "webdataset". Shards have whole rows; only the last row of a
            split may be shorter.
        documents: how text files are divided: "special" (by the text of the tokenizer's end of text, such as
            <|endoftext|>; no other mark counts, however documents are split), "file", "blank" (by blank lines), "line",
            "jsonl" (JSON lines, whatever the file's name), or "auto": "special", or "file" if the tokenizer has no
            such token. The texts of records are encoded as ordinary text.
        text_key: the field of a JSON record, or the parquet column, that holds the text.
        encoding: the encoding of text and JSON lines, such as "gb18030"; None means UTF-8. Parquet is always UTF-8.
        name: NAME of the files; None uses the first input's name without its extension.
        workers: the number of threads; None uses all CPUs. With an executor: the number of its workers; None submits 64
            tasks at once.
        executor: any concurrent.futures.Executor, or Dask's `Client.get_executor()`. Its workers must be able to read
            the inputs under the same names; only this process writes. The files are the same for any number of workers
            and any executor.
        resume: False starts over and ignores an unfinished run.
        progress: as in `pybpe.train`.

    Returns:
        The manifest, also written to manifest.json in `out`; with parquet to _manifest.json, a name that
            programs which read a whole folder skip.

    Raises:
        ArgumentError, FileError, FormatError: bad arguments, files or records. LimitError: a shard is too small for
        llm.c, or an id is too large for the dtype. WorkerError: a worker died, and the executor cannot go on.
        MissingExtraError: parquet without pyarrow.
    """
    instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    settings = check_settings(
        tok.n_vocab,
        tok.model.eot,
        format=format,
        splits=splits,
        split_by=split_by,
        eot=eot,
        dtype=dtype,
        shard_tokens=shard_tokens,
        min_shard_tokens=min_shard_tokens,
        sequence_length=sequence_length,
        documents=documents,
        text_key=text_key,
        encoding=encoding,
    )
    given = path_list(inputs)
    check_name(name or "")
    folder = _binding.path_text(out)
    with only_writer(folder):
        staged = stage(given, folder, encoding, [folder], documents)
        return run(tok, settings, staged, folder, name or name_of(given, staged), workers, executor, resume, progress)


def run(
    tok: Tokenizer,
    settings: dict[str, Any],
    staged: Staged,
    folder: str,
    name: str,
    workers: int | None,
    executor: Executor | None,
    resume: bool,
    progress: bool | None,
    hashed: bool = True,
    beside: Callable[[], None] = lambda: None,
) -> Manifest:
    """Runs `binarize` with checked settings and rereadable inputs. The caller holds the folder's lock.

    Args:
        hashed: whether the manifest has the SHA-256 of shards.
        beside: see Conversion.
    """
    splits = tuple(settings["splits"])
    kinds = Kinds(settings["documents"], settings["text_key"], tok.model.eot)
    check_mark(kinds, tok.special_tokens, staged.files)
    cutting = Cutting.of(tok.pattern, tok.special_tokens, tok.normalizer)
    plan = planning.Plan(staged.files, kinds, splits, settings["split_by"], cutting)
    encoder = TaskEncoder(tok, kinds, splits, settings["dtype"], joins=settings["eot"] != KEEP)
    check_shares(plan, kinds, splits, settings["min_shard_tokens"])
    layout = _layout(tok, settings, folder, name, staged, hashed)
    description: dict[str, object] = {
        "n_vocab": tok.n_vocab,
        "pattern": tok.pattern.regex,
        "normalizer": tok.normalizer,
        "eot": tok.eot_token,
        "fingerprint": tok.model.fingerprint(),
    }
    identity = repr((__version__, settings, name, description, planning.TASK_BYTES, staged.identities)).encode(
        "utf-8", "surrogateescape"
    )
    digest = hashlib.sha256(identity).hexdigest()
    has_rows = any(kinds.kind(file.path) == "parquet" for file in staged.files)
    total = None if has_rows else known_total(staged.files)
    conversion = Conversion(plan, encoder, layout, len(splits), digest, resume, beside)
    records = conversion.run(workers, executor, total, progress)
    return conversion.finish(tok, settings, description, records)


def check_settings(n_vocab: int, mark: str | None, **given: Any) -> dict[str, Any]:
    """Returns the arguments of `binarize` that influence the files, with defaults filled in.

    Args:
        n_vocab: the number of tokens of the tokenizer.
        mark: the end-of-text token.

    Raises:
        ArgumentError, LimitError: an argument is out of range.
    """
    one_of("format", given["format"], FORMATS)
    form = FORMATS[given["format"]]
    settings = {**given, "splits": checked_splits(given["splits"]), "dtype": _dtype(n_vocab, form, given["dtype"])}
    settings["encoding"] = check_encoding(given["encoding"])
    for what, default in (("eot", form.eot), ("min_shard_tokens", form.min_tokens)):
        if settings[what] is None:
            settings[what] = default
    for what, choices in (("split_by", SPLIT_BY), ("eot", EOT_MODES)):
        one_of(what, settings[what], choices)
    if mark is None and settings["eot"] != "none":
        raise ArgumentError(f"the tokenizer has no end of text: {NAME_IT}; or pass eot='none'")
    for what, least in (("shard_tokens", 1), ("min_shard_tokens", 0), ("sequence_length", 1)):
        settings[what] = whole_number(what, settings[what], least)
    if form.has_rows:
        length, least = settings["sequence_length"], settings["min_shard_tokens"]
        settings["shard_tokens"] = max(settings["shard_tokens"] // length, -(-least // length), 1) * length
    Kinds(settings["documents"], settings["text_key"], mark)
    if form.name == "parquet":
        pyarrow_parquet("format='parquet'")  # fails now, not after an hour of encoding
    largest = max(settings["shard_tokens"], 2 * settings["min_shard_tokens"]) * id_bytes(settings["dtype"])
    if form.max_bytes and form.header_bytes + largest > form.max_bytes:
        raise LimitError(
            f"shard_tokens={settings['shard_tokens']} would exceed 2 GiB, beyond which llm.c cannot seek: write more,"
            " smaller shards"
        )
    return settings


def _dtype(n_vocab: int, form: Format, dtype: str) -> str:
    one_of("dtype", dtype, ("auto", "uint16", "uint32"))
    if dtype == "uint16" and n_vocab > 1 << 16:
        raise LimitError(f"uint16 cannot hold the ids of {n_vocab} tokens: use dtype='uint32' or 'auto'")
    if dtype != "auto":
        return dtype
    largest = megatron.LARGEST_UINT16_VOCABULARY if form.name == "megatron" else 1 << 16
    return "uint16" if n_vocab <= largest else "uint32"


def name_of(given: Sequence[str], staged: Staged) -> str:
    """Returns the files' NAME, taken from the first input."""
    if given[0] == "-":
        return "stdin"
    first = staged.files[0].path if glob.has_magic(given[0]) and not os.path.exists(given[0]) else given[0]
    name = without_ending(os.path.basename(os.path.normpath(first)))
    return os.path.splitext(name)[0] or "data"


def _layout(tok: Tokenizer, settings: dict[str, Any], folder: str, name: str, staged: Staged, hashed: bool) -> Layout:
    return Layout(
        FORMATS[settings["format"]],
        folder,
        os.path.join(folder, FOLDER),
        name,
        settings["dtype"],
        settings["eot"],
        tok.eot_token,
        settings["shard_tokens"],
        settings["min_shard_tokens"],
        settings["sequence_length"],
        partial(text_length, tok),
        staged.names,
        hashed,
    )
