"""binarize encodes documents into token files, and encode_files into one array."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .. import _binding
from .._lazy import futures
from ..arguments import chosen, instance, param, refuse_unused, without_secrets
from ..errors import ArgumentError, warn
from ..model import refuse_dropout
from ..reading import planning
from ..reading.documents import RECORDS, Kinds, check_mark
from ..reading.file_types import says_records
from ..reading.files import Corpus, SmallFiles, Staged, stage
from ..reading.input_file import InputFile
from ..reading.inputs import Inputs, ReadOptions
from ..reading.objects import given_inputs
from ..reading.planning import SplitOptions, are_far
from ..reading.streams import without_ending
from ..support.output_files import FOLDER, give_name, only_writer, output_file, remove_work, unfinished_folder
from ..support.parallel import RunOptions
from ..support.task_results import hashed
from ..tokenizer import Tokenizer
from .formats import ArrayOptions, Layout, OutputOptions
from .manifest import Manifest, found_manifest, tokenizer_entry
from .output_folder import FINISHED, call_of, made_before, writing_to
from .run import Job, write_token_files
from .task_encoder import KEEP, TaskEncoder, is_plain

_PLANNING_THREADS = 16  # if the files may be on other machines: a thread waits for a read


def binarize(
    tok: Tokenizer,
    inputs: Inputs,
    out: _binding.PathLike,
    *,
    format: str = "llmc",
    splits: Sequence[float] = (8, 1, 1),
    split_by: str = "auto",
    val_documents: int | None = None,
    eot: str | None = None,
    dtype: str = "auto",
    shard_tokens: int = 10**8,
    min_shard_tokens: int | None = None,
    documents: str = "auto",
    text_key: str = "text",
    encoding: str | None = None,
    keep_crlf: bool = False,
    on_error: str = "stop",
    name: str | None = None,
    document_offsets: bool = False,
    provenance: bool = False,
    id_key: str | None = None,
    workers: int | None = None,
    executor: futures.Executor | None = None,
    task_timeout: float | None = None,
    force: bool = False,
    progress: bool | None = None,
) -> Manifest:
    """Encodes a corpus into token files.

    If a run is interrupted (or even killed), make the same call again to resume it. The files are identical. Until it
    ends, you need disk space for the tokens twice.

    Args:
        tok: the tokenizer.
        inputs: a path or URL, or a list of them: text, JSON lines (.jsonl, .ndjson), parquet (.parquet), Arrow (.arrow,
            .feather, .ipc), books (.epub). Text and JSON lines may be compressed (.gz, .bz2, .xz, .zst). Everything
            but rows may be in archives (.zip). A folder means all files in it, a glob pattern the files it matches, and
            "-" standard input. A folder that Hugging Face's `datasets` saved has the order of the dataset. Or an
            iterable of documents (str) or records (dict), a dataset of `datasets`, or a column of pandas, polars or
            pyarrow. Its documents are first copied to `out`, unless the dataset is Arrow files.
        out: the output folder, created if needed.
        format: "llmc" (NAME_train_000000.bin and so on, with llm.c's header), "raw" (train.bin, val.bin, test.bin
            without a header, and meta.pkl, for nanoGPT), "npy" (shards that numpy.load opens), "megatron"
            (NAME_train.bin and .idx), or "llmq" (shards with llmq's header). `pack` has formats for rows.
        splits: the shares of train, val and test. With fewer than three, the last splits are left out. With few
            documents, the actual shares may differ. Then you get a warning, or an error if a split is empty that must
            not be.
        split_by: with "hash", a hash of a document's bytes chooses its split, so that it keeps its split when the
            corpus grows. If a record has a string "pybpe_cluster", which `pybpe.corpus` gives to near duplicates, that
            is hashed instead, so that they stay together. With "token", every file is split contiguously, between any
            two words, but records stay whole. Shares are measured in bytes of text, or rows. A single document is
            always split in this way, and its part in a split is a document there. "auto" is "token" for fewer than 200
            documents, and tells you so in a note. Otherwise it is "hash". If this call replaces token files in `out`,
            it splits in the way that their manifest records. (In a text file, only the documents in its first 4 MiB are
            counted.)
        val_documents: the number of documents at the beginning of the corpus, without empty ones, that are val. All
            others are train. It replaces `splits` and `split_by`. To find where they end, they are read once more,
            before anything else.
        eot: the place of the tokenizer's end of text, `tok.eot_token`: "prepend" (before a document, as llm.c expects,
            the default for "llmc"), "append" (after a document, as nanoGPT expects, the default for the others), or
            "none". For another special token, name it: "<|end_of_text|>" has the default place, and
            "prepend:<|begin_of_text|>" another one. Text files are then divided by this token, too.
        dtype: "uint16", "uint32", or "auto" by the vocabulary's size ("llmq" always has uint32).
        shard_tokens: the maximum number of tokens per shard. "raw" and "megatron" have one file per split. The shards
            of "llmc" have equal size (some may have one token more), because llm.c cannot resume otherwise. In other
            formats, shards have exactly this many tokens, and the last one has the rest.
        min_shard_tokens: the minimum number of tokens per shard. None means 257 for "llmc", which aborts with fewer,
            and 2049 for "llmq", which leaves out the last sequence of a file (its T is 1024 by default).
        documents: how text files are divided: "special" (by the tokenizer's end of text, such as <|endoftext|>, and
            nothing else), "file", "blank" (by blank lines), "line", "jsonl" (JSON lines, whatever the file's name), or
            "auto", which is "special", or "file" if the tokenizer has no end of text. The text of records is encoded as
            ordinary text.
        text_key: the field of a JSON record, or the column, that holds the text. "doc.text" is the field "text" of an
            object "doc", unless there is a field with this very name.
        encoding: the encoding of text and JSON lines, such as "gb18030". With "utf-8", bytes that are not UTF-8 are
            used unchanged. None means UTF-8 for JSON lines, and decides for every text file: pybpe reads a file that is
            not UTF-8 in the encoding that fits best, and warns you, or refuses it if that is uncertain. Parquet is
            always UTF-8.
        keep_crlf: True reads \\r\\n in text files unchanged. Otherwise it becomes \\n in a file where every \\n follows
            a \\r and every \\r precedes a \\n, as Windows writes them, and a note tells you so.
        on_error: what to do at a record that is not valid. "stop" raises an error. "skip" skips it, lists it in
            skipped.jsonl in `out`, and warns you at the end. If more than half of the records are not valid, the run
            stops. See docs/inputs.md.
        name: NAME of the files. None uses the first input's name without its extension.
        document_offsets: True also writes, for "raw" and "npy", the file SPLIT.document_offsets.npy (for "npy", NAME_
            before it). Document i of the split is its tokens offsets[i] .. offsets[i + 1], with its end of text.
        provenance: True also writes a parquet file NAME.provenance for each token file NAME.bin. It has a row for each
            document, or part of one, in the file, with the columns first_token, tokens, file (as you name it) and row
            (the record in that file, from 0): see docs/token-files.md. It needs pyarrow.
        id_key: the field of a JSON record, or the column, that has an id. With `provenance`, it is the column "id".
        workers: the number of threads. None uses all CPUs. With an executor, pass the number of its workers. None
            submits 64 tasks at once.
        executor: any concurrent.futures.Executor, or Dask's `Client.get_executor()`. Its workers must be able to read
            the inputs under the same names. If they see `out` under the same name, they write the token files
            themselves, and no token passes through this process. Otherwise they send their tokens, which this process
            writes. The files are the same for any number of workers and any executor.
        task_timeout: the number of seconds that a worker of the executor may take for a task, which has 16 MiB of text
            (a compressed file is one task). A worker gets up to 64 of these at once. If one takes longer, for example
            because its worker hangs, the run stops with an error that names the file. The same call resumes. None waits
            forever.
        force: True replaces token files of other inputs, settings or another tokenizer in `out`, and redoes complete
            work. Otherwise pybpe refuses to replace them, and an equal call returns the existing manifest.
        progress: as in `pybpe.train`.

    Returns:
        The manifest, which is also in `out`, as manifest.json.

    Raises:
        ArgumentError, FileError, FormatError: bad arguments, files or records. LimitError: a shard is too small for
        llm.c, or an id is too large for the dtype. WorkerError: a worker died, and the executor cannot continue.
        MissingExtraError: parquet or Arrow without pyarrow.
    """
    arguments = locals()
    instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    output = chosen(OutputOptions, arguments)
    output.check_used()
    tok = output.with_mark(tok)
    read, split = chosen(ReadOptions, arguments), chosen(SplitOptions, arguments)
    options = DatasetOptions(read, split, output).for_tokenizer(tok)
    kinds, run = options.kinds(tok.model.eot), chosen(RunOptions, arguments)
    given, folder = given_inputs(inputs), _binding.path_text(out)
    with writing_to(folder):
        staged = stage(given, folder, options.read, [folder], kinds.columns)
        layout = Layout(tok, options.output, folder, name or name_of(inputs, given, staged), staged.names)
        options = options.decided(staged.files, kinds, folder)
        settings = hashed(options.settings(), layout.name, tokenizer_entry(tok), planning.TASK_BYTES)
        known = known_of(options, tokenizer_entry(tok), staged, call_of(settings, staged))
        made = made_before(folder, known, force, staged.files)
        return made or write_dataset(layout, options, staged, run, known)


def encode_files(
    tok: Tokenizer,
    inputs: Inputs,
    out: _binding.PathLike,
    *,
    eot: str = KEEP,
    dtype: str = "auto",
    documents: str = "auto",
    text_key: str = "text",
    encoding: str | None = None,
    keep_crlf: bool = False,
    workers: int | None = None,
    executor: futures.Executor | None = None,
    progress: bool | None = None,
    task_timeout: float | None = None,
) -> int:
    """Encodes a corpus into one array, in parallel. Memory use does not grow with the corpus.

    An interrupted run resumes when called again with the same arguments. Until it ends, it needs disk space for the
    tokens twice.

    Args:
        out: a .npy file, which `numpy.load(out, mmap_mode="r")` opens: shape (tokens,), uint16 or uint32, or a .bin
            file, which has only the ids, little-endian: `numpy.fromfile(out, tok.model.dtype)` reads it.
        eot: "keep": the ids of a text file are `tok.encode` of its text, special tokens included, and `tok.decode`
            gives the text back, with \\n for \\r\\n unless `keep_crlf`. Records are concatenated. The other values set
            what goes between documents, whatever the input had there: "none" for nothing, or the tokenizer's end of
            text, "prepend" (before it) or "append" (after it), or another special token, as in `binarize`.
        The other arguments are the same as in `binarize`.

    Returns:
        The number of tokens written.

    Raises:
        What `binarize` raises.
    """
    instance("tok", tok, Tokenizer, "a Tokenizer, such as Tokenizer.from_file gives")
    path = _binding.path_text(out)
    if not path.endswith((".npy", ".bin")):
        raise ArgumentError(f"{path}: must end in .npy, or in .bin for a headerless file of ids")
    if eot == KEEP and documents in ("blank", "line"):
        raise ArgumentError(
            f"{param(eot='keep')} keeps texts whole: with {param(documents=documents)} pass 'prepend' or 'append'"
        )
    output = ArrayOptions("npy" if path.endswith(".npy") else "raw", eot, dtype, 1 << 62, 0)
    tok = output.with_mark(tok)
    read = ReadOptions(text_key, encoding, keep_crlf, documents)
    options = DatasetOptions(read, SplitOptions((1,)), output).for_tokenizer(tok)
    run = RunOptions(workers, executor, progress=progress, task_timeout=task_timeout)
    given = given_inputs(inputs)
    path = output_file(path)
    folder = unfinished_folder(path)
    with only_writer(folder, temporary=True):
        staged = stage(given, folder, options.read, [path])
        layout = Layout(tok, options.output, folder, "array", staged.names)
        known = known_of(options, tokenizer_entry(tok), staged)
        manifest = write_dataset(layout, options, staged, run, known)
        (record,) = manifest.shards["train"]
        give_name(os.path.join(folder, FOLDER, FINISHED, record.file), path)
        remove_work(folder)  # not before: until then, the next call resumes
    return record.tokens


# ----------------------------------------------------------------------------------------------------
# What binarize, encode_files and prepare share


@dataclass(frozen=True)
class DatasetOptions:
    """Everything that determines the token files, except the tokenizer and the inputs."""

    read: ReadOptions
    split: SplitOptions
    output: OutputOptions

    def for_tokenizer(self, tok: Tokenizer) -> DatasetOptions:
        """Returns the options for a tokenizer: see OutputOptions.for_vocabulary."""
        refuse_dropout(tok.model, "cannot write token files")
        return replace(self, output=self.output.for_vocabulary(tok.vocab_size, tok.model.eot))

    def kinds(self, mark: str | None) -> Kinds:
        """Returns the kinds of the inputs, which `decided` can change. `mark` is the tokenizer's end of text."""
        return Kinds(self.read, mark, has_origins=self.output.provenance, id_key=self.output.id_key)

    def decided(self, files: Corpus, kinds: Kinds, folder: str) -> DatasetOptions:
        """Returns the options with the way of splitting decided: see SplitOptions.decided. `documents`, which says
        nothing about files of records, is "auto" if all are. `folder` may have token files, which are to be
        replaced."""
        there = found_manifest(folder) if self.split.split_by == "auto" else None
        recorded, read = None if there is None else there.settings.get("split_by"), self.read
        if all(file.has_rows or says_records(file.path) for file in files):
            read = replace(read, documents="auto")
        return replace(self, read=read, split=self.split.decided(files, kinds, recorded))

    def settings(self) -> dict[str, Any]:
        """Returns the options as the manifest has them. A run that resumes must have the same."""
        first = {} if self.split.val_documents is None else {"val_documents": self.split.val_documents}
        return {
            "format": self.output.format,
            **first,
            "splits": list(self.split.splits),
            "split_by": self.split.split_by,
            **self.output.settings(),
            "documents": self.read.documents,
            "text_key": self.read.text_key,
            "encoding": self.read.encoding,
            **({"keep_crlf": True} if self.read.keep_crlf else {}),
        }


def write_dataset(
    layout: Layout,
    options: DatasetOptions,
    staged: Staged,
    run: RunOptions,
    known: Manifest,
    with_tokenizer: bool = False,
) -> Manifest:
    """Does the work of `binarize`. The caller holds the folder's lock. `options` are for the layout's tokenizer, and
    `with_tokenizer` is as in write_token_files."""
    tok, splits = layout.tok, options.split.splits
    kinds = options.kinds(tok.model.eot)
    check_mark(kinds, tok.special_tokens, tok.model.matching, staged.files)
    if kinds.id_key is not None and not any(kinds.kind(file) in RECORDS for file in staged.files):
        refuse_unused("id_key", kinds.id_key, "only records have ids, and the inputs are plain text")
    plan = planning.Plan(staged.files, kinds, options.split, tok._encoder.cutting)
    encoder = TaskEncoder(tok, kinds, splits, layout.marks)
    read = (options.read.documents, options.read.text_key, options.read.encoding, kinds.has_origins, kinds.id_key)
    is_far = run.executor is not None or any(file.remote is not None for file in staged.files.singles)
    job = Job(
        fingerprint=hashed(tokenizer_entry(tok), read, options.split, layout.marks, planning.TASK_BYTES),
        splits=len(splits),
        tasks=(_named(task, staged) for task in plan.tasks(_PLANNING_THREADS if is_far else 1)),
        encode=partial(encoder.encode, run.workers),
        encoder=encoder,
        files=staged.files,
    )
    total = planning.progress_total(staged.files, options.read.text_key)
    with staged.naming():
        made = write_token_files(layout, job, run, total, known, with_tokenizer)
    if plan.hashed:
        tell_shares(splits, made)
    return made


def known_of(options: DatasetOptions, tokenizer: Mapping[str, object], staged: Staged, call: str = "") -> Manifest:
    """Returns the manifest of a run before it begins. `tokenizer` is from `tokenizer_entry`."""

    def named(path: str) -> str:
        return staged.names.get(path, path)

    inputs = list(zip(map(named, staged.files.paths), staged.files.sizes))
    encodings = {named(file.path): file.encoding for file in staged.files.singles if file.encoding}
    crlf = [named(file.path) for file in staged.files.crlf]
    return Manifest(options.settings(), tokenizer, call=call, inputs=inputs, encodings=encodings, crlf=crlf)


def _named(task: planning.Task, staged: Staged) -> tuple[planning.Task, bytes, bytes]:
    """Returns a task with its name and its stamp. The name omits the size and time of plain files, so that a file that
    has grown keeps its tasks. The stamp has them."""

    def place(file: InputFile | SmallFiles) -> object:
        if is_plain(file) and file.path not in staged.names:
            assert isinstance(file, InputFile)
            return file.path, file.folder, file.form
        return staged.fingerprint(file)

    return task, planning.task_fingerprint(task, place), planning.task_fingerprint(task, staged.fingerprint)


def name_of(inputs: object, given: list[str] | Iterable[Any], staged: Staged) -> str:
    """Returns the files' NAME, taken from the first path of the inputs. `given` is the result of `given_inputs`."""
    if not isinstance(given, list) or not isinstance(inputs, (str, bytes, os.PathLike, list, tuple)):
        return "data"
    if given[0] == "-":
        return "stdin"
    first = staged.files.parts[0].path if glob.has_magic(given[0]) and not os.path.exists(given[0]) else given[0]
    name = without_ending(os.path.basename(os.path.normpath(without_secrets(first))))
    return os.path.splitext(name)[0] or "data"


def tell_shares(splits: Sequence[float], made: Manifest) -> None:
    """Warns if text was divided in shares far from `splits`, because documents stay whole, as clusters of near
    duplicates do: three books may come out as 1:1:1 instead of 8:1:1."""
    sizes = list(made.text_bytes.values())
    wanted = [share / sum(splits) for share in splits]
    shares = [size / max(1, sum(sizes)) for size in sizes]
    if are_far(sizes, splits):
        figures = (f"{share:.0%} {name} ({want:.0%})" for name, share, want in zip(made.text_bytes, shares, wanted))
        remedy = f"documents stay whole; {param(split_by='token')} divides the text itself"
        warn(f"the shares of the splits differ from those requested: {', '.join(figures)}; {remedy}")
