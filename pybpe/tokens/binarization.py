"""binarize: encodes texts into token files."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import NamedTuple

from .. import _binding
from .._version import __version__
from ..arguments import instance, refuse_unused
from ..errors import ArgumentError
from ..reading import planning
from ..reading.documents import check_mark
from ..reading.input_file import known_total
from ..reading.options import ReadOptions
from ..reading.paths import Inputs, path_list
from ..reading.pieces import Cutting
from ..reading.splits import SplitOptions
from ..reading.staging import Staged, stage
from ..reading.unpacking import without_ending
from ..support.locking import only_writer
from ..support.run_options import RunOptions
from ..tokenizer import Tokenizer
from ..urls import without_secrets
from .append_store import AppendStore
from .encoding import TaskEncoder
from .eot import KEEP
from .finished import Goal, call_of
from .formats.flat import LLMC
from .layout import Layout
from .manifest import Manifest
from .options import DatasetOptions, OutputOptions
from .pack.options import RowOptions
from .pack.packing import write_and_pack
from .parts import LoggedTasks, PartsLog, Store
from .run import Run
from .shared_store import SharedStore, is_shared
from .shares import check_shares
from .workers import Encoding


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
    on_error: str = "stop",
    name: str | None = None,
    pack: bool = False,
    packing: str | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    task_timeout: float | None = None,
    resume: bool = True,
    force: bool = False,
    progress: bool | None = None,
) -> Manifest:
    """Encodes a corpus into token files.

    A run that was interrupted, even killed, resumes when called again with the same arguments and writes identical
    files.

    Args:
        tok: the tokenizer.
        inputs: a path or URL, or a list of them: text, JSON lines (.jsonl, .ndjson), parquet (.parquet), Arrow
            (.arrow, .feather, .ipc); text and JSON lines also compressed (.gz, .bz2, .xz, .zst). A folder means all
            files in it, a glob pattern the files it matches, and "-" standard input. A folder that Hugging Face's
            `datasets` saved has the order of the dataset.
        out: the output folder, created if needed.
        format: "llmc": NAME_train_000000.bin and so on, with llm.c's header; "raw": train.bin, val.bin,
            test.bin without a header, and meta.pkl, as nanoGPT reads them; "npy": shards that numpy.load opens;
            "megatron": NAME_train.bin and .idx; "parquet" and "webdataset": packed rows, see `pack`.
        splits: the shares of train, val and test; with fewer than three, the last splits are left out. With few
            documents the actual shares may differ: then a warning says so, and a split that must not be empty but is
                raises an error.
        split_by: "hash": a hash of each document's bytes chooses its split, so that it keeps its split when the
            corpus grows. A JSON record with a string "cluster", as `pybpe.corpus` marks near duplicates, is hashed by
            that instead, so that near duplicates stay together. "document": each file is split contiguously, between
            documents; files with too few documents are assigned whole, in turn. "token": contiguously, between any two
            words, but records stay whole. A single document is split as with "token", and each split's part of it is a
            document there. Shares of contiguous splits are measured in bytes of text, or rows.
        eot: where the tokenizer's end of text, `tok.eot_token`, goes: "prepend" (before each document, as llm.c
            expects; the default for "llmc"), "append" (after each, as nanoGPT expects; the default for the others),
            or "none".
        dtype: "uint16", "uint32", or "auto" by the vocabulary's size.
        shard_tokens: the maximum number of tokens per shard; "raw" and "megatron" have one file per split. The shards
            of "llmc" have equal size (some may have one token more), because llm.c cannot resume otherwise. Those of
            other formats have exactly this many, and the last one has the rest.
        min_shard_tokens: the minimum number of tokens per shard. None means 257 for "llmc", which aborts with fewer.
        sequence_length: tokens per packed row.
        documents: how text files are divided: "special" (by the text of the tokenizer's end of text, such as
            <|endoftext|>; no other mark counts, however documents are split), "file", "blank" (by blank lines), "line",
            "jsonl" (JSON lines, whatever the file's name), or "auto": "special", or "file" if the tokenizer has no
            such token. The texts of records are encoded as ordinary text.
        text_key: the field of a JSON record, or the column, that holds the text.
        encoding: the encoding of text and JSON lines, such as "gb18030"; None means UTF-8. Parquet is always UTF-8.
        on_error: what to do at a record that is not valid: "stop" raises an error; "skip" skips it and lists it in
            skipped.jsonl in `out`, with a warning at the end. If more than half of the records are not valid, the run
            stops. See docs/records.md.
        name: NAME of the files; None uses the first input's name without its extension.
        pack: True packs the documents into rows of `sequence_length` tokens, as `pybpe.pack` does: `out` then has only
            the rows. `format` must be one of those of `pybpe.pack`, and eot "prepend". `out` must have
            nothing else.
        packing: how to pack: see `pybpe.pack`. None means "best-fit"; or "concat" for "parquet" and "webdataset"
            without `pack`, since only packing writes these.
        workers: the number of threads; None uses all CPUs. With an executor: the number of its workers; None submits 64
            tasks at once.
        executor: any concurrent.futures.Executor, or Dask's `Client.get_executor()`. Its workers must be able to read
            the inputs under the same names. If they see `out` under the same name, they write the token files
            themselves, and no token passes through this process; otherwise they send their tokens, which this process
            writes. The files are the same for any number of workers and any executor. Needs disk space for the ids
            twice, or nearly once if there are many shards.
        task_timeout: the number of seconds that a worker of the executor may take for a task, which has 16 MiB of text
            (a compressed file is one task); a worker gets up to 64 of these at once. If one takes longer, because its
            worker hangs, the run stops with an error that names the file; the same call resumes. None waits forever.
        resume: False starts over and ignores an unfinished run.
        force: True replaces token files of other inputs, settings or another tokenizer in `out`, and redoes what is
            complete. Otherwise pybpe refuses to replace them, and an equal call returns the manifest that is there.
        progress: as in `pybpe.train`.

    Returns:
        The manifest, also written to manifest.json in `out`; with parquet to _manifest.json, a name that
            programs which read a whole folder skip.

    Raises:
        ArgumentError, FileError, FormatError: bad arguments, files or records. LimitError: a shard is too small for
        llm.c, or an id is too large for the dtype. WorkerError: a worker died, and the executor cannot continue.
        MissingExtraError: parquet or Arrow without pyarrow.
    """
    instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    rows = RowOptions.of(pack, sequence_length, packing, format, shard_tokens)
    if rows is not None:
        format, min_shard_tokens = LLMC.name, rows.least_tokens(min_shard_tokens)
    elif sequence_length != 1024:
        refuse_unused("sequence_length", sequence_length, "only packed rows have a length: pass pack=True")
    output = OutputOptions(format, eot, dtype, shard_tokens, min_shard_tokens, name)
    output.check_used()
    if rows is not None:
        if on_error == "skip":
            raise ArgumentError("on_error='skip' cannot be used with pack, which keeps only the rows: pack afterwards")
        rows.check(output)
    options = DatasetOptions(
        ReadOptions(text_key, encoding, documents, on_error), SplitOptions(splits, split_by), output
    )
    options = options.for_tokenizer(tok)
    run = RunOptions(workers, executor, progress=progress, task_timeout=task_timeout)
    given = path_list(inputs)

    goal = Goal(_binding.path_text(out), force) if rows is None else rows.goal(out, force)

    def write(folder: str) -> Manifest:
        with only_writer(folder):
            staged = stage(given, folder, options.read, [folder, _binding.path_text(out)])
            job = Job(tok, options, staged, folder, name or name_of(given, staged))
            job = job._replace(call=call_of(job.identity(described(tok)), staged))
            made = goal.made(job.call, tok, staged.files)
            return made or write_dataset(job, run, resume)

    if rows is None:
        return write(_binding.path_text(out))
    return write_and_pack(goal, rows, lambda folder: (tok, write(folder)), progress)


class Job(NamedTuple):
    """What a run makes token files from.

    Attributes:
        tok: the tokenizer.
        options: the options, for this tokenizer.
        staged: the inputs, which can be read again.
        folder: the output folder.
        name: the files' name prefix.
        call: the hash of the call, which the manifest keeps.
    """

    tok: Tokenizer
    options: DatasetOptions
    staged: Staged
    folder: str
    name: str
    call: str = ""

    def identity(self, description: dict[str, object]) -> str:
        """Returns a hash of everything that the result depends on, except the inputs. `description` describes the
        tokenizer."""
        settings, name = self.options.settings(), self.name
        return _hash((__version__, settings, name, description, planning.TASK_BYTES))


def _hash(parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogateescape")).hexdigest()


def write_dataset(job: Job, run: RunOptions, resume: bool, beside: Callable[[], None] = lambda: None) -> Manifest:
    """Does the work of `binarize`. The caller holds the folder's lock. `beside` is as in Run."""
    tok, options, staged = job.tok, job.options, job.staged
    splits, files = options.split.splits, staged.files
    kinds = options.kinds(tok.model.eot)
    check_mark(kinds, tok.special_tokens, tok.model.matching, files)
    cutting = Cutting.of_model(tok.model)
    plan = planning.Plan(files, kinds, options.split, cutting)
    encoder = TaskEncoder(tok, kinds, splits, options.output.dtype, joins=options.output.mode != KEEP)
    check_shares(plan, kinds, splits, options.output.least_tokens)
    description = described(tok)
    has_rows = any(file.has_rows for file in files)
    layout = Layout(tok, options.output, job.folder, job.name, staged.names, job.call)
    inputs = [(staged.names.get(file.path, file.path), file.size) for file in files]
    encoding = Encoding(plan, encoder, dict(zip((file.path for file in files), staged.identities)))
    identity, total = job.identity(description), None if has_rows else known_total(files)
    planned = LoggedTasks(options.read.skips, _hash(staged.identities), encoding.hashes)
    store: Store = AppendStore(layout, len(splits))
    if run.executor is not None and layout.form.companion is None and is_shared(layout.unfinished, run):
        identity = _hash((identity, "workers"))
        store = SharedStore(layout, encoder, identity)
    log = PartsLog(layout, identity, store, resume, planned)
    work = Run(encoding, layout, log, beside, options.read.skips)
    return work.write(run, total, Manifest(options.settings(), description, inputs=inputs))


def described(tok: Tokenizer) -> dict[str, object]:
    """Returns what a manifest says about the tokenizer."""
    return {
        "n_vocab": tok.vocab_size,
        "pattern": tok.pattern.regex,
        "normalizer": tok.model.normalizer,
        "eot": tok.eot_token,
        "fingerprint": tok.model.fingerprint(),
    }


def name_of(given: Sequence[str], staged: Staged) -> str:
    """Returns the files' NAME, taken from the first input."""
    if given[0] == "-":
        return "stdin"
    first = staged.files[0].path if glob.has_magic(given[0]) and not os.path.exists(given[0]) else given[0]
    name = without_ending(os.path.basename(os.path.normpath(without_secrets(first))))
    return os.path.splitext(name)[0] or "data"
