"""Cleans a corpus."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor

from .. import _binding
from ..arguments import chosen, refuse_unused
from ..errors import note
from ..reading.bad_records import list_name, remove_list
from ..reading.files import stage
from ..reading.options import ReadOptions, listed
from ..reading.paths import Inputs, path_list
from ..support.call_paths import check_paths
from ..support.locking import only_writer
from ..support.output_files import output_file, remove_folder, unfinished_folder
from ..support.run_options import RunOptions
from .decisions import Decisions, check_memory_limit
from .filters import Filters
from .reading import plan_tasks
from .report import Report
from .results import result_paths
from .running import identity_of, run_tasks
from .steps import Scorer, Steps, kinds_of, strings
from .writing import check_name, write_list, write_output


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
    documents: str = "auto",
    text_key: str = "text",
    encoding: str | None = None,
    on_error: str = "stop",
    skipped: _binding.PathLike | None = None,
    memory_limit: int | None = None,
    workers: int | None = None,
    executor: Executor | None = None,
    task_timeout: float | None = None,
    resume: bool = True,
    progress: bool | None = None,
) -> Report:
    """Cleans a corpus: runs each requested step, in the order of the arguments. Documents keep their order.

    A run that was interrupted, even killed, resumes when called again with the same arguments and writes identical
    output. Until it finishes, a hidden folder next to `out` holds the results so far. It can grow as large as the
    uncompressed output, plus 0.7 kB per document for near duplicates.

    Args:
        inputs: paths, URLs, folders, globs: text, JSON lines (.jsonl, .ndjson), parquet, Arrow; also .gz, .bz2, .xz,
            .zst; "-" for standard input.
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
        text_key: the field of a JSON record, or the column, that holds the text.
        encoding: the encoding of text and JSON lines, such as "gb18030"; None means UTF-8. Parquet is always UTF-8.
        on_error: what to do at a record that is not valid: "stop" raises an error; "skip" skips it and lists it, with a
            warning at the end. If more than half of the records are not valid, the run stops. See docs/records.md.
        skipped: the file that lists skipped records, as JSON lines; None is the name of `out` with .skipped.jsonl after
            it.
        memory_limit: bytes of memory for finding duplicates, approximately: at least 32 for each document with
            near_dedup, otherwise 4, and 4 for each paragraph. None means 1 GiB, or what is needed.
        workers: the number of processes; None uses all CPUs, or one for a small corpus. The output is the same for
            any number. With an executor: the number of its workers; None submits 64 tasks at once.
        executor: any concurrent.futures.Executor, or Dask's `Client.get_executor()`, whose workers can read the inputs.
        task_timeout: as in `pybpe.binarize`.
        resume: False starts over and ignores an unfinished run.
        progress: as in `pybpe.train`.

    Returns:
        A report of what was dropped and why, with histograms and samples; `.save("report.html")` writes it.

    Raises:
        ArgumentError, FileError, FormatError: bad arguments, files or records. WorkerError: a worker died.
        MissingExtraError: a step needs a package that is not installed.
    """
    arguments = locals()
    path = check_name(out)
    steps = chosen(
        Steps,
        arguments,
        read=chosen(ReadOptions, arguments, skipped=listed(skipped)),
        filters=Filters() if filters is None else filters,
        languages=strings("languages", languages),
        scorers=Scorer.all_of(scorers),
        scrub_pii=kinds_of(scrub_pii),
    )
    run = chosen(RunOptions, arguments)
    check_memory_limit(run.memory_limit)
    if memory_limit is not None and not (dedup or near_dedup or dedup_paragraphs):
        refuse_unused("memory_limit", memory_limit, "no step finds duplicates")
    given = path_list(inputs)
    list_path, found = steps.read.skipped or list_name(path), None
    check_paths({"out": [path], "skipped": [list_path]})
    folder = unfinished_folder(output_file(path))
    with only_writer(folder, temporary=True):
        staged = stage(given, folder, steps.read, [path, list_path])
        _tell_of_output_among(given, path)
        tasks, described = plan_tasks(steps.kinds, staged)
        paths = result_paths(folder, identity_of(steps), described, resume)
        try:
            results = run_tasks(steps, tasks, staged, paths, run)
            decisions = Decisions(steps, results, run.memory_limit)
            if steps.read.skips:
                found = write_list(list_path, folder, results, staged.names)
            tally = write_output(path, folder, steps, decisions)
            if not steps.read.skips:
                remove_list(list_path)
        except BaseException:
            if not any(map(os.path.exists, paths)):  # there is nothing to resume from
                shutil.rmtree(folder, ignore_errors=True)
            raise
        remove_folder(folder)
    return Report(tally, steps.filters, near_dedup, found)


def _tell_of_output_among(inputs: Sequence[str], out: str) -> None:
    """Notes that only this call knows its output as such: another one would read it as part of the folder."""
    real = os.path.realpath(out)
    folder = next((path for path in inputs if real.startswith(os.path.join(os.path.realpath(path), ""))), None)
    if folder is not None:
        note(f"{out}: is in {folder}, which this call reads: a call with another output would read it too")
