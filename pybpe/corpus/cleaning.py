"""Cleans a corpus."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import partial

from .. import _binding
from .._version import __version__
from ..arguments import instance
from ..errors import ArgumentError
from ..model import END_OF_TEXT
from ..normalize import check_normalizer
from ..reading import planning
from ..reading.documents import Kinds
from ..reading.input_file import InputFile, known_total
from ..reading.paths import Inputs, path_list
from ..reading.staging import Staged, stage
from ..reading.text_encoding import Doubts
from ..support.locking import only_writer
from ..support.output_files import output_file, unfinished_folder
from ..support.parallel import worker_count
from ..support.progress import Progress
from ..support.remote import map_by_executor
from .decisions import Decisions
from .duplicates import check_memory_limit
from .filters import Filters
from .language import check_languages
from .minhash import check_near_dedup
from .output import check_name
from .pii import KINDS, check_kinds
from .processes import process_pool
from .reading import DocumentPlan
from .report import Report
from .spool import Result, Spool
from .work import Scorer, Work, run_task
from .writing import write_output

DEDUP = ("exact", "normalized")
_PENDING = 64  # tasks submitted to an executor at once, unless `workers` is given


def clean(
    inputs: Inputs,
    out: _binding.PathLike,
    *,
    normalizer: str | None = None,
    filters: Filters | None = None,
    languages: Iterable[str] = (),
    min_confidence: float = 0.0,
    scorers: Iterable[tuple[str, Callable[[str], float], float]] = (),
    scrub_pii: bool | Iterable[str] = False,
    dedup: str | None = None,
    near_dedup: float | None = None,
    keep_near: bool = False,
    dedup_paragraphs: bool = False,
    documents: str = "special",
    text_key: str = "text",
    encoding: str | None = None,
    memory_limit: int | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    resume: bool = True,
    progress: bool | None = None,
) -> Report:
    """Cleans a corpus: runs each requested step, in the order of the arguments. Documents keep their order.

    A run that was interrupted, even killed, resumes when called again with the same arguments and writes identical
    output. Until it finishes, a hidden folder next to `out` holds the results so far. It can grow as large as the
    uncompressed output, plus 512 bytes per document for near duplicates.

    Args:
        inputs: paths, folders, globs: text, JSON lines (.jsonl, .ndjson), parquet; also .gz, .bz2, .xz, .zst; "-" for
            standard input.
        out: the output file of JSON lines: .jsonl, .jsonl.gz or .jsonl.zst. JSON records keep their other fields.
        normalizer: "NFC" or "NFKC".
        filters: limits on measured properties of the text.
        languages: ISO 639-1 codes of the languages to keep. Records get the fields "language" and
            "language_confidence".
        min_confidence: 0 to 1; documents whose language is detected with less confidence are dropped.
        scorers: tuples (name, function, max_score). A document is dropped if function(text) returns more than
            max_score. With several workers, the function must be importable: defined at the top level of a module.
        scrub_pii: replaces personal data with <EMAIL> and so on. True for all of pii.KINDS, or a list of some.
        dedup: "exact" keeps the first of documents with the same text; "normalized" compares only letters and digits.
        near_dedup: a Jaccard similarity, such as 0.8. Documents that are at least this similar are linked; of all
            documents linked directly or through others, the first is kept. Records get the field "cluster", which is
            the same for linked documents; `binarize(split_by="hash")` puts a cluster into one split.
        keep_near: keep near duplicates too, with their "cluster".
        dedup_paragraphs: of identical paragraphs of at least 30 bytes, keep only the first in the corpus.
        documents: how text files are divided: "special" (by the text <|endoftext|>), "file", "blank" (by blank
            lines), "line", or "jsonl" (JSON lines, whatever the file's name).
        text_key: the field of a JSON record, or the parquet column, that holds the text.
        encoding: the encoding of text and JSON lines, such as "gb18030"; None means UTF-8. Parquet is always UTF-8.
        memory_limit: bytes of memory for finding exact duplicates, beyond which it sorts on disk. Without a limit it
            takes 64 bytes per document or paragraph.
        workers: the number of processes; None uses all CPUs, or one for a small corpus. The output is the same for
            any number. With an executor: the number of its workers; None submits 64 tasks at once.
        executor: any concurrent.futures.Executor, or Dask's `Client.get_executor()`, whose workers can read the inputs.
        resume: False starts over and ignores an unfinished run.
        progress: as in `pybpe.train`.

    Returns:
        A report of what was dropped and why, with histograms and samples; `.save("report.html")` writes it.

    Raises:
        ArgumentError, FileError, FormatError: bad arguments, files or records. WorkerError: a worker died.
        MissingExtraError: a step needs a package that is not installed.
    """
    path = check_name(out)
    work = _work(
        Kinds(documents, text_key, END_OF_TEXT),
        normalizer,
        Filters() if filters is None else filters,
        _names("languages", languages),
        min_confidence,
        tuple(map(Scorer.of, scorers)),
        (KINDS if scrub_pii else ()) if isinstance(scrub_pii, bool) else _names("scrub_pii", scrub_pii),
        dedup,
        dedup_paragraphs,
        near_dedup,
    )
    if keep_near and near_dedup is None:
        raise ArgumentError("keep_near needs near_dedup, which says how similar near duplicates are")
    if executor is None or workers is not None:
        worker_count(workers)
    check_memory_limit(memory_limit)
    given = path_list(inputs)
    if not given:
        raise ArgumentError("inputs is empty: name at least one file")
    folder = unfinished_folder(output_file(path))
    with only_writer(folder, temporary=True):
        staged = stage(given, folder, encoding, [path], documents)
        spool = Spool(folder, _identity(work, staged), resume)
        try:
            with Progress("cleaning", _total(work.kinds, staged.files), "B", progress) as bar:
                tasks = _run(work, DocumentPlan(staged.files, work.kinds), spool, workers, executor, bar)
            decisions = Decisions(work, spool, tasks, memory_limit, keep_near)
            tally = write_output(path, work, spool, tasks, decisions)
        except BaseException:
            spool.leave()
            raise
        spool.remove()
    return Report(tally, work.filters, near_dedup)


def _names(what: str, names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str):
        raise ArgumentError(f"{what} must be a list such as [{names!r}], not a string")
    instance(what, names, Iterable, "a list of strings")
    return tuple(names)


def _work(
    kinds: Kinds,
    normalizer: str | None,
    filters: Filters,
    languages: tuple[str, ...],
    min_confidence: float,
    scorers: tuple[Scorer, ...],
    pii: tuple[str, ...],
    dedup: str | None,
    dedup_paragraphs: bool,
    near_dedup: float | None,
) -> Work:
    """Returns the steps, validated."""
    check_normalizer(normalizer)
    instance("filters", filters, Filters, "corpus.Filters, such as Filters.gopher()")
    if languages:
        check_languages(languages)
    instance("min_confidence", min_confidence, (int, float), "a number from 0 to 1")
    if not 0 <= min_confidence <= 1:
        raise ArgumentError(f"min_confidence must be from 0 to 1, not {min_confidence}")
    if min_confidence and not languages:
        raise ArgumentError("min_confidence needs languages: name the languages to keep")
    check_kinds(pii)
    if dedup not in (None, *DEDUP):
        raise ArgumentError(f"dedup must be one of {', '.join(DEDUP)}, or None, not {dedup!r}")
    if near_dedup is not None:
        check_near_dedup(near_dedup)
    return Work(
        kinds, normalizer, filters, languages, min_confidence, scorers, pii, dedup, dedup_paragraphs, near_dedup
    )


def _identity(work: Work, staged: Staged) -> str:
    scorers = [
        (s.name, s.function.__module__, getattr(s.function, "__qualname__", ""), s.max_score) for s in work.scorers
    ]
    rest = {name: value for name, value in vars(work).items() if name != "scorers"}
    parts = repr((__version__, rest, scorers, planning.TASK_BYTES, staged.identities))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()


def _total(kinds: Kinds, files: Sequence[InputFile]) -> int | None:
    return None if any(kinds.kind(file.path) == "parquet" for file in files) else known_total(files)


def _run(
    work: Work, plan: DocumentPlan, spool: Spool, workers: int | None, executor: Executor | None, bar: Progress
) -> int:
    """Runs all unfinished tasks. Returns the number of tasks."""
    tasks = list(plan.tasks())
    done = {task for task in range(len(tasks)) if spool.has(task)}
    left = [task for task in range(len(tasks)) if task not in done]
    for task in sorted(done):
        bar.add(Result(spool.name(task)).header["read"])
    with ExitStack() as stack:
        count = min(worker_count(workers), len(left)) if executor is None else 0
        if executor is None and count > 1:
            executor = stack.enter_context(process_pool(count))
        results: Iterator[bytes]
        if executor is None:
            results = (work.run(tasks[task]) for task in left)
        else:
            pending = 2 * (count or workers or _PENDING // 2)
            results = map_by_executor(
                partial(run_task, _pickled(work)), (planning.anchored(tasks[task]) for task in left), executor, pending
            )
        doubts = Doubts()
        for task, result in zip(left, results):
            _binding.write_file(spool.name(task), result)
            header = Result(spool.name(task)).header
            bar.add(header["read"])
            for doubt in header["doubts"]:
                doubts.tell(doubt)
    return len(tasks)


def _pickled(work: Work) -> bytes:
    try:
        return pickle.dumps(work)
    except Exception as error:  # pickle can raise anything
        raise ArgumentError(
            f"a scorer cannot be sent to other processes: define it at the top level of a module, or use workers=1"
            f" ({error})"
        ) from None
