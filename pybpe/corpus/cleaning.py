"""Cleans a corpus, and writes the documents that are kept."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import accumulate, repeat
from typing import Any

from .. import _binding
from .._lazy import Array, futures
from ..arguments import chosen, counted, instance, param, refuse_unused, whole_number
from ..errors import ArgumentError, file_errors, note, warn
from ..reading.documents import RecordNotes, SkippedRecords, check_list, list_name, remove_list
from ..reading.files import stage
from ..reading.input_file import check_has_text
from ..reading.inputs import Inputs, ReadOptions, listed
from ..reading.objects import given_inputs
from ..reading.streams import sample_of, zstd_module
from ..support.call_paths import check_paths
from ..support.output_files import (
    give_name,
    only_writer,
    output_file,
    record_name,
    remove_folder,
    unfinished_folder,
    write_through,
)
from ..support.parallel import RunOptions
from ..support.task_results import Order, Result, task_folder, task_path
from .decisions import NO_PARAGRAPHS, REASONS, Decisions, Part
from .duplicates import without_paragraphs
from .filters import Filters
from .pii import KINDS
from .reading import json_line, plan_tasks, text_of
from .report import Report, Tally
from .running import fingerprint_of, run_tasks
from .steps import Scorer, Steps, strings

_LEAST_MEMORY = 10**6
_SAMPLED = 1 << 16  # bytes


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
    keep_crlf: bool = False,
    on_error: str = "stop",
    skipped: _binding.PathLike | None = None,
    memory_limit: int | None = None,
    workers: int | None = None,
    executor: futures.Executor | None = None,
    task_timeout: float | None = None,
    force: bool = False,
    progress: bool | None = None,
) -> Report:
    """Cleans a corpus: runs the steps that you request, in the order of the arguments. Documents keep their order.

    If a run is interrupted, or even killed, make the same call again: it resumes and writes identical output. Until it
    finishes, a hidden folder next to `out` holds the results so far. It can grow as large as the uncompressed output,
    plus 0.7 kB per document for near duplicates. Afterward a small hidden file there records how `out` was made.

    Args:
        inputs: paths, URLs, folders or globs of text, JSON lines (.jsonl, .ndjson), parquet or Arrow, also compressed
            (.gz, .bz2, .xz, .zst), or "-" for standard input.
        out: the output file of JSON lines: .jsonl, .jsonl.gz or .jsonl.zst. Records keep their other fields or columns.
            Times and decimal numbers of columns become strings. pybpe refuses values that JSON cannot hold, such as
            bytes.
        normalizer: "NFC" or "NFKC".
        filters: limits on measured properties of the text.
        languages: ISO 639-1 codes of the languages to keep. Records get the fields "pybpe_language" and
            "pybpe_language_confidence".
        min_confidence: drops documents whose language is detected with less confidence, from 0 to 1.
        scorers: tuples (name, function, max_score). A document is dropped if function(text) returns more than
            max_score. With several workers, the function must be importable: defined at the top level of a module.
        scrub_pii: replaces personal data with <EMAIL> and so on. True for all of pii.KINDS, or a list of some.
        dedup: "exact" keeps the first of several documents with the same text. "normalized" compares only letters and
            digits.
        near_dedup: a Jaccard similarity, such as 0.8. Documents that are at least this similar are linked. Of all
            documents that are linked directly or through others, the first is kept. Linked documents get the same value
            in the field "pybpe_cluster", and `binarize(split_by="hash")` puts a cluster into one split.
        keep_near: keep near duplicates too, with their "pybpe_cluster".
        dedup_paragraphs: of identical paragraphs of at least 30 bytes, keep only the first in the corpus.
        documents: how text files are divided: "special" (by the text <|endoftext|>), "file", "blank" (by blank
            lines), "line", or "jsonl" (JSON lines, whatever the file's name).
        text_key: the field of a JSON record, or the column, that holds the text. "doc.text" is the field "text" of an
            object "doc", unless there is a field with this very name.
        encoding: the encoding of text and JSON lines, such as "gb18030". None decides for every file: see
            `pybpe.binarize`.
        keep_crlf: see `pybpe.binarize`.
        on_error: what to do at a record that is not valid. "stop" raises an error. "skip" skips and lists it, and warns
            you at the end. If more than half of the records are not valid, the run stops. See docs/inputs.md.
        skipped: a file for the list of skipped records, as JSON lines. None is the name of `out` with .skipped.jsonl
            after it.
        memory_limit: approximate bytes of memory for finding duplicates: at least 32 per document with near_dedup,
            otherwise 4, and 4 per paragraph. None means 1 GiB, or more if needed.
        workers: the number of processes. None uses all CPUs, or one for a small corpus. The output is the same for any
            number. With an executor, pass the number of its workers. None submits 64 tasks at once.
        executor: any concurrent.futures.Executor, or Dask's `Client.get_executor()`, whose workers can read the inputs.
        task_timeout: as in `pybpe.binarize`.
        force: True replaces `out`. Otherwise pybpe refuses to replace a file, unless an equal call wrote it. Then it
            returns the report of that call. With scorers, it does the work again, because their code may have changed.
        progress: as in `pybpe.train`.

    Returns:
        A report of the dropped documents and the reasons, with histograms and samples. `.save("report.html")` writes
        it.

    Raises:
        ArgumentError, FileError, FormatError: bad arguments, files or records. WorkerError: a worker died.
        MissingExtraError: a step needs a package that is not installed.
    """
    arguments = locals()
    path = _checked_name(out)
    instance("scorers", scorers, Iterable, "a list of (name, function, max_score)")
    pii = (KINDS if scrub_pii else ()) if isinstance(scrub_pii, bool) else strings("scrub_pii", scrub_pii)
    steps = chosen(
        Steps,
        arguments,
        read=chosen(ReadOptions, arguments, skipped=listed(skipped)),
        filters=Filters() if filters is None else filters,
        languages=strings("languages", languages),
        scorers=tuple(map(Scorer.of, scorers)),
        scrub_pii=pii,
    )
    run = chosen(RunOptions, arguments)
    if memory_limit is not None:
        memory_limit = whole_number("memory_limit", memory_limit, _LEAST_MEMORY)
        if not (dedup or near_dedup or dedup_paragraphs):
            refuse_unused("memory_limit", memory_limit, "no step finds duplicates")
    given = given_inputs(inputs)
    list_path, found = steps.read.skipped or list_name(path), None
    if steps.read.skips and steps.read.skipped is None and not force:
        check_list(list_path)
    check_paths({"out": [path], "skipped": [list_path]})
    folder = unfinished_folder(output_file(path))
    with only_writer(folder, temporary=True):
        staged = stage(given, folder, steps.read, [path, list_path], columns=None)
        real = os.path.realpath(path)
        folders = given if isinstance(given, list) else []
        inside = next((each for each in folders if real.startswith(os.path.join(os.path.realpath(each), ""))), None)
        if inside is not None:
            told = "which this call reads: a call with another output refuses this folder then"
            note(f"{path}: is in {inside}, {told}")
        tasks, described = plan_tasks(steps.kinds, staged)
        record = _Record(path, _call_of(steps, described), repeats=bool(steps.scorers))
        if not force and (made := record.made(list_path)) is not None:
            remove_folder(folder)
            return Report(made[0], steps.filters, near_dedup, made[1])
        results_folder = task_folder(os.path.abspath(folder), fingerprint_of(steps))
        orders = [Order(task, task_path(results_folder, each)) for task, each in zip(tasks, described)]
        try:
            results = run_tasks(steps, orders, staged, folder, run)
            if not any(result.header()["tally"]["documents"].get("in") for result in results):
                check_has_text(staged.files, "documents to write")
            decisions = Decisions(steps, results, run.memory_limit)
            if steps.read.skips:
                found = _write_list(list_path, folder, results, staged.names)
            tally, temporary = _write_output(path, folder, steps, decisions)
            record.write(temporary, tally, found)
            give_name(temporary, output_file(path))
            if not steps.read.skips:
                remove_list(list_path)
        except BaseException:
            if not any(os.path.exists(order.path) for order in orders):  # there is nothing to resume from
                shutil.rmtree(folder, ignore_errors=True)
            raise
        remove_folder(folder)
    if not tally.documents["out"]:
        warn(f"{path}: is empty, because no document was kept")
    return Report(tally, steps.filters, near_dedup, found)


def _call_of(steps: Steps, described: Sequence[bytes]) -> str:
    """Returns a hash of everything that the output depends on, except the code of scorers."""
    digest = hashlib.sha256(f"{fingerprint_of(steps)} {steps.keep_near} {steps.read.on_error}".encode())
    for task in described:
        digest.update(hashlib.sha256(task).digest())
    return digest.hexdigest()


class _Record:
    """How an output was made, in a hidden file next to it: the hash of the call, its report, and the size and a sample
    of the output, which is another file if these differ. `repeats` says that an equal call does the work again."""

    def __init__(self, out: str, call: str, repeats: bool) -> None:
        self._out, self._call, self._repeats = output_file(out), call, repeats
        self._path = os.path.join(os.path.dirname(self._out), record_name(os.path.basename(self._out)))

    def made(self, list_path: str) -> tuple[Tally, dict[str, Any] | None] | None:
        """Returns what happened to all documents, and to records that were skipped, if an equal call has made the
        output; None if this call has to do the work. Raises ArgumentError if the output is another file."""
        with suppress(FileNotFoundError), file_errors(self._out, "cannot be read"):
            if not os.path.getsize(self._out):
                return None
            with suppress(FileNotFoundError, ValueError, KeyError, TypeError), open(self._path, "rb") as stream:
                made = json.loads(stream.read())
                is_same = made["output"] == _sample(self._out) and made["call"] == self._call
                if is_same and self._repeats:
                    return None
                if is_same and (made["skipped"] is None or os.path.exists(list_path)):
                    tally = Tally.from_json(made["tally"])
                    note(f"{self._out}: already complete ({counted(tally.documents['out'], 'document')})")
                    return tally, made["skipped"]
            raise ArgumentError(
                f"{self._out}: was not made by this call, with these inputs and settings: choose another output, or"
                f" pass {param(force=True)}"
            )
        return None

    def write(self, output: str, tally: Tally, skipped: dict[str, Any] | None) -> None:
        """Writes the record of an output that still has another name. (If it came after, a kill between the two would
        leave an output that no call may replace.)"""
        made = {"call": self._call, "output": _sample(output), "skipped": skipped, "tally": tally.to_json()}
        write_through(os.path.join(os.path.dirname(output), "made"), self._path, json.dumps(made).encode())


def _sample(path: str) -> list[object]:
    """Returns the size of a file, and a hash of parts of it."""
    with file_errors(path, "cannot be read"):
        size = os.path.getsize(path)
    return [size, sample_of(path, size, _SAMPLED).hex()]


def _checked_name(path: _binding.PathLike) -> str:
    """Returns the path. Raises ArgumentError unless its name ends in a known format."""
    name = _binding.path_text(path)
    if not name.removesuffix(".gz").removesuffix(".zst").endswith((".jsonl", ".ndjson")):
        raise ArgumentError(f"{name}: the output is JSON lines: name it .jsonl, .jsonl.gz or .jsonl.zst")
    if os.path.isdir(name):
        raise ArgumentError(f"{name}: this is a folder; give the name of a file")
    _compressor(name)
    return name


def _compressor(name: str) -> Any:
    if name.endswith(".gz"):
        return zlib.compressobj(wbits=31)  # a gzip header without a timestamp: equal texts give equal bytes
    if name.endswith(".zst"):
        return zstd_module(name).ZstdCompressor()
    return None


def _write_list(path: str, folder: str, results: Sequence[Result], names: Mapping[str, str]) -> dict[str, Any]:
    """Writes the list of skipped records, by way of a folder. Returns the facts about them for a report."""
    temporary = os.path.join(folder, os.path.basename(path))
    with _binding.Output(temporary) as output:
        records = SkippedRecords(output.write, names)
        for result in results:
            for notes in result.header()["notes"]:
                records.add(RecordNotes.of(notes))
    give_name(temporary, output_file(path))
    return {**records.finish(path), "file": path}


def _write_output(path: str, folder: str, steps: Steps, decisions: Decisions) -> tuple[Tally, str]:
    """Writes the output file in a folder. Returns what happened to all documents, and the path of the file."""
    tally = Tally()
    names = repeat(None) if steps.near_dedup is None else decisions.cluster_names()
    # A kill leaves nothing next to the output except the folder, which a later run removes.
    temporary = os.path.join(folder, os.path.basename(path))
    compressor = _compressor(path)
    with _binding.Output(temporary) as output:
        for part, clusters in zip(decisions.parts(), names):
            tally.add(Tally.from_json(part.result.header()["tally"]))
            lines = _kept_lines(part, clusters, steps.read.text_key, tally)
            output.write(lines if compressor is None else compressor.compress(lines))
        if compressor is not None:
            output.write(compressor.flush())
    return tally, temporary


def _kept_lines(part: Part, clusters: Array | None, key: str, tally: Tally) -> _binding.Data:
    """Returns the lines of the documents of a part that are kept, with the names of their clusters."""
    sizes, drops = part.result.array("sizes", "<i8", 3), part.drops
    offsets = array("Q", accumulate(sizes[:, 2].tolist(), initial=0))
    lines = _binding.Strings(data=part.result.section("lines"), offsets=offsets)
    if part.repeated.any():
        sizes, drops = sizes.copy(), drops.copy()
        lines = _without_repeated(part, lines.list(), sizes, drops, key, tally)
    for place in drops.nonzero()[0].tolist():
        reason, (start, end) = REASONS[drops[place]], lines.offsets[place : place + 2]
        tally.count(reason, 1, int(sizes[place, 1]))
        tally.sample(reason, text_of(lines.data[start:end], key))
    kept = drops == 0
    if kept.any():
        tally.count("out", int(kept.sum()), int(sizes[kept, 1].sum()))
        tally.measure("chars out", sizes[kept, 0])
    if clusters is None and kept.all():
        return lines.data
    return _binding.keep_records(lines, kept.data, None if clusters is None else clusters.data)


def _without_repeated(
    part: Part, lines: list[bytes], sizes: Array, drops: Array, key: str, tally: Tally
) -> _binding.Strings:
    """Returns the lines of documents, whose repeated paragraphs are removed if they are kept: changes `sizes` and, if
    nothing is left, `drops`."""
    at = 0
    for place, count in enumerate(part.result.array("paragraph_counts", "<i8")[:, 0].tolist()):
        if drops[place]:
            continue
        repeated = set(part.repeated[at : at + count].nonzero()[0].tolist())
        at += count
        if repeated:
            text, removed = without_paragraphs(text_of(lines[place], key), repeated)
            lines[place] = json_line(lines[place], {key: text})
            sizes[place, :2] = len(text), len(text.encode())
            drops[place] = 0 if text.strip() else NO_PARAGRAPHS
            tally.changes["paragraph"] += len(removed)
            for paragraph in removed:
                tally.sample("paragraph", paragraph)
    return _binding.Strings(lines)
