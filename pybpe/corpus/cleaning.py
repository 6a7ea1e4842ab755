"""Cleans a corpus, and writes the documents that are kept.

    clean        plans tasks (reading.py), which workers do (running.py): the steps on single documents (steps.py)
    Decisions    looks at the results of all tasks: which documents and paragraphs are repeated (duplicates.py)
    _kept_lines  has the lines of the documents that stay, which output.py writes

A second call returns the report of the first one if its receipt says that both are equal.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from itertools import accumulate, chain, repeat
from typing import Any, NamedTuple

from .. import _binding
from .._lazy import Array, futures, numpy
from ..arguments import chosen, instance, param, refuse_unused, whole_number
from ..errors import ArgumentError, note, warn
from ..reading.files import Staged, stage
from ..reading.input_file import check_has_text
from ..reading.inputs import Inputs, ReadOptions
from ..reading.objects import given_inputs
from ..reading.records import RecordNotes, SkippedRecords, check_list, list_name, remove_list, tell_nulls
from ..support.call_paths import check_paths
from ..support.parallel import RunOptions, memory_left
from ..support.progress import Progress
from ..support.task_results import Order, Result, hashed, headers_of, task_folder, task_path
from .duplicates import DEFAULT_MEMORY, PERMUTATIONS, Banding, clusters, repeated, without_paragraphs
from .filters import Filters
from .output import LISTED, Target, check_outside, target_of
from .pii import KINDS
from .reading import json_line, plan_tasks, text_of
from .report import Report, Tally
from .running import fingerprint_of, run_tasks
from .steps import Scorer, Steps, strings

_LEAST_MEMORY = 10**6


def clean(
    inputs: Inputs,
    out: _binding.PathLike,
    *,
    where: str | None = None,
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
    format: str | None = None,
    shard_bytes: int | None = None,
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
        out: the output: a file (.jsonl, .jsonl.gz, .jsonl.zst or .parquet), or a folder, which gets files of about
            equal size, part-000000.jsonl.zst and so on, and must have nothing else. Records keep their other fields or
            columns. In columns, times and decimal numbers become strings, and NaN and infinite numbers null; a warning
            says how many. pybpe refuses values that JSON cannot hold, such as bytes, and for parquet, fields
            that have values of different kinds.
        where: a condition in SQL on the fields of records, such as "score > 3 and language == 'en'". Others are
            dropped, and so are records that lack a field. See docs/corpus.md.
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
        format: the format of the files in a folder: "jsonl.zst" (the default), "jsonl.gz", "jsonl" or "parquet".
        shard_bytes: the size at which a file in a folder ends: for parquet, after the group of rows that reaches it. A
            group has about this many bytes of lines, at most 64 MiB. None means 256 MB.
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
            otherwise 4, and 4 per paragraph. None means 1 GiB, or more if needed. It also limits the processes: one
            per 80 MB, or 200 MB for parquet and Arrow.
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
    target = target_of(out, format, shard_bytes)
    instance("scorers", scorers, Iterable, "a list of (name, function, max_score)")
    pii = (KINDS if scrub_pii else ()) if isinstance(scrub_pii, bool) else strings("scrub_pii", scrub_pii)
    steps = chosen(
        Steps,
        arguments,
        read=chosen(ReadOptions, arguments),
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
    list_path, found = steps.read.skipped or list_name(os.path.normpath(target.path)), None
    if steps.read.skips and steps.read.skipped is None and not force:
        check_list(list_path)
    check_paths({"out": [target.path], "skipped": [list_path]})
    check_outside(target.path, skipped=steps.read.skipped)
    with target.only_writer():
        outputs = [target.path, list_path, *(os.path.join(target.folder, name) for name in target.there())]
        staged = stage(given, target.home, steps.read, outputs, columns=None)
        real = os.path.realpath(target.path)
        folders = given if isinstance(given, list) else []
        inside = next((each for each in folders if real.startswith(os.path.join(os.path.realpath(each), ""))), None)
        if inside is not None:
            told = "which this call reads: a call with another output refuses this folder then"
            note(f"{target.path}: is in {inside}, {told}")
        tasks, described = plan_tasks(steps.kinds, staged)
        call, asked = _call_of(steps, target, described), _asked(steps, target, staged)
        if not force and (made := target.made_before(call, asked, bool(steps.scorers), list_path)) is not None:
            target.clear()
            return Report(Tally.from_json(made["tally"]), steps.filters, near_dedup, made["skipped"])
        results_folder = task_folder(os.path.abspath(target.hidden), fingerprint_of(steps))
        orders = [Order(task, task_path(results_folder, each)) for task, each in zip(tasks, described)]
        tally = Tally()
        try:
            with staged.naming():
                results = run_tasks(steps, orders, staged, target.hidden, run)
            any_read, names = False, set[str]()
            for header in map(Result.header, results):  # together, they may not fit in memory
                any_read |= bool(header["tally"]["documents"].get("in"))
                names.update(header["fields"])
            if not any_read:
                check_has_text(staged.files, "documents to write")
            try:
                steps.check_fields(names)
            except ArgumentError:
                target.clear()  # no other call could use the results
                raise
            decisions = Decisions(steps, results, run.memory_limit, run.progress)
            if steps.read.skips:
                found = _write_list(os.path.join(target.hidden, LISTED), list_path, results, staged.names)

            def blocks() -> Iterator[_binding.Data]:
                nonlocal tally
                tally = Tally()
                names = repeat(None) if near_dedup is None else decisions.cluster_names()
                for decided, clusters in zip(decisions.by_result(), names):
                    tally.add(Tally.from_json(decided.result.header()["tally"]))
                    bar.add(decided.result.sections["lines"].size)
                    yield _kept_lines(decided, clusters, steps.read.text_key, tally)

            facts, passes = {"call": call, "asked": asked}, 2 if target.format == "parquet" else 1
            size = passes * sum(result.sections["lines"].size for result in results)
            with Progress("writing", size, "B", run.progress) as bar:
                target.write(
                    blocks, lambda: {**facts, "skipped": found, "tally": tally.to_json()}, list_path if found else None
                )
            if not steps.read.skips:
                remove_list(list_path)
        except BaseException:
            headers = chain.from_iterable(headers_of(order.path) or () for order in orders)
            if not any(header["tally"]["documents"].get("in") for header in headers):  # there is nothing to resume from
                target.clear()
            raise
        target.clear()
    tell_nulls(target.path, tally.changes["null"])
    if not tally.documents["out"]:
        warn(f"{target.path}: is empty, because no document was kept")
    return Report(tally, steps.filters, near_dedup, found)


def _asked(steps: Steps, target: Target, staged: Staged) -> dict[str, Any]:
    """Returns the settings of a call, in JSON values, by the names of parameters: see `differences`."""
    found = {field.name: getattr(steps, field.name) for field in fields(steps)}
    found |= {"filters": dict(steps.filters.limits()), "scorers": {it.name: it.max_score for it in steps.scorers}}
    read = found.pop("read")
    found |= {field.name: getattr(read, field.name) for field in fields(read)}
    prints = {it.path: (staged.digests.get(it.path) or it.fingerprint)[1:] for it in staged.files}
    files = {staged.names.get(path, path): [hashed(facts)] for path, facts in prints.items()}
    return {**found, "format": target.format, "shard_bytes": target.shard_bytes, "inputs": files}


def _call_of(steps: Steps, target: Target, described: Sequence[bytes]) -> str:
    """Returns a hash of everything that the output depends on, except the code of scorers."""
    rest = (steps.keep_near, steps.read.on_error, target.format, target.shard_bytes)
    digest = hashlib.sha256(f"{fingerprint_of(steps)} {rest}".encode())
    for task in described:
        digest.update(hashlib.sha256(task).digest())
    return digest.hexdigest()


def _write_list(temporary: str, path: str, results: Sequence[Result], names: Mapping[str, str]) -> dict[str, Any]:
    """Writes the list of skipped records, which gets its name later. Returns the facts about them for a report."""
    with _binding.Output(temporary) as output:
        records = SkippedRecords(output.write, names)
        for result in results:
            for notes in result.header()["notes"]:
                records.add(RecordNotes.of(notes))
    return {**records.finish(path), "file": path}


def _kept_lines(decided: Decided, clusters: Array | None, key: str, tally: Tally) -> _binding.Data:
    """Returns the lines of the documents of a result that are kept, with the names of their clusters. Adds the others
    to a tally."""
    sizes, drops = decided.result.array("sizes", "<i8", 3), decided.drops
    offsets = array("Q", accumulate(sizes[:, 2].tolist(), initial=0))
    lines = _binding.Strings(data=decided.result.section("lines"), offsets=offsets)
    if decided.repeated.any():
        sizes, drops = sizes.copy(), drops.copy()
        lines = _without_repeated(decided, lines.list(), sizes, drops, key, tally)
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
    decided: Decided, lines: list[bytes], sizes: Array, drops: Array, key: str, tally: Tally
) -> _binding.Strings:
    """Returns the lines of documents, without the repeated paragraphs of kept ones: changes `sizes` or, if nothing
    would be left, `drops`."""
    at = 0
    for place, count in enumerate(decided.result.array("paragraph_counts", "<i8")[:, 0].tolist()):
        if drops[place]:
            continue
        repeated = set(decided.repeated[at : at + count].nonzero()[0].tolist())
        at += count
        if repeated:
            text, removed = without_paragraphs(text_of(lines[place], key), repeated)
            if text.strip():
                lines[place] = json_line(lines[place], {key: text})
                sizes[place, :2] = len(text), len(text.encode())
            else:
                drops[place] = NO_PARAGRAPHS
            tally.changes["paragraph"] += len(removed)
            for paragraph in removed:
                tally.sample("paragraph", paragraph)
    return _binding.Strings(lines)


# ----------------------------------------------------------------------------------------------------
# Which documents and paragraphs are repeated, over all tasks, in the order of the corpus


REASONS = ("", "duplicate", "near_duplicate", "paragraphs")  # by the numbers in Decisions.drops
_EXACT, _NEAR, NO_PARAGRAPHS = 1, 2, 3
_FLAG_BYTES, _CLUSTER_BYTES = 2, 16  # of memory per paragraph or document: whether it is repeated, its cluster


class Decided(NamedTuple):
    """The decisions about the documents of a result."""

    result: Result
    drops: Array  # uint8, shape (documents,): why a document is dropped, as its place in REASONS, or 0 if it is kept
    repeated: Array  # bool, for the paragraphs of the kept documents: whether they are removed


class Decisions:
    """Decides what happens to every document, from the results of all tasks, in order. `memory_limit` is in bytes,
    approximately. None means DEFAULT_MEMORY, or more for very many documents. Raises ArgumentError if the number of
    documents or paragraphs needs more memory."""

    def __init__(
        self, steps: Steps, results: Sequence[Result], memory_limit: int | None, progress: bool | None
    ) -> None:
        self._steps, self._results, self._limit = steps, results, memory_limit
        self._starts = list(accumulate((result.documents for result in results), initial=0))
        count = self._starts[-1]
        self._drops = numpy.zeros(count, dtype=numpy.uint8)
        self._repeated = numpy.zeros(0, dtype=bool)
        if steps.dedup is not None:
            memory = self._memory("documents", count, _FLAG_BYTES)
            same = repeated(lambda: (result.section("digests") for result in results), count, memory)
            self._drops[same] = _EXACT
        if steps.near_dedup is not None:
            memory = self._memory("documents", count, _CLUSTER_BYTES)
            self._signed = numpy.concatenate([numpy.zeros(0, dtype=bool), *(hashes == 0 for hashes in self._only())])
            bands = Banding.of(steps.near_dedup).bands
            with Progress("finding near duplicates", bands, "band", progress) as self._bar:
                self._firsts = clusters(count, steps.near_dedup, self._band_rows, self._signatures, memory)
                self._bar.set(bands)
            if not steps.keep_near:
                self._drops[self._later()] = _NEAR
        if steps.dedup_paragraphs:
            paragraphs = sum(map(len, self._paragraphs())) // _binding.DIGEST_SIZE
            memory = self._memory("paragraphs", paragraphs, _FLAG_BYTES)
            self._repeated = repeated(self._paragraphs, paragraphs, memory)

    def _memory(self, what: str, count: int, each: int) -> int:
        """Returns the memory for sorting, which is at least half."""
        least = 2 * count * each
        limit = max(DEFAULT_MEMORY, least) if self._limit is None else self._limit
        if limit < least:
            raise ArgumentError(
                f"{param('memory_limit')} must be at least {least} to find duplicates among {count} {what}. Run the"
                " same again with this limit, and it resumes; or clean parts of the corpus"
            )
        return max(memory_left(limit), least) - count * each

    def by_result(self) -> Iterator[Decided]:
        """Yields the decisions about the documents of every result."""
        at = 0
        for result, start in zip(self._results, self._starts):
            drops, paragraphs = self._drops[start : start + result.documents], 0
            if self._steps.dedup_paragraphs:
                paragraphs = int(result.array("paragraph_counts", "<i8")[drops == 0].sum())
            yield Decided(result, drops, self._repeated[at : at + paragraphs])
            at += paragraphs

    def _paragraphs(self) -> Iterator[bytes]:
        """Yields the digests of the paragraphs of kept documents."""
        for result, start in zip(self._results, self._starts):
            kept = self._drops[start : start + result.documents] == 0
            of_kept = numpy.repeat(kept, result.array("paragraph_counts", "<i8")[:, 0])
            yield result.array("paragraphs", "<u8", 2)[of_kept].tobytes()

    def _only(self) -> Iterator[Array]:
        """Yields the hashes of the only shingles of documents, or 0 for a document with a signature."""
        return (result.array("only", "<u8")[:, 0] for result in self._results)

    def _band_rows(self, band: int | None) -> Iterator[tuple[Array, Array]]:
        """Yields the keys in a band, and the numbers, of the documents that are not dropped yet. None is for those
        without a signature."""
        if band is None:
            for hashes, start in zip(self._only(), self._starts):
                numbers = numpy.flatnonzero(hashes)
                numbers = numbers[self._drops[numbers + start] == 0]
                yield hashes[numbers], numbers + start
            return
        self._bar.set(band)
        for result, start in zip(self._results, self._starts):
            numbers = numpy.flatnonzero(self._signed[start : start + result.documents]) + start
            stay = self._drops[numbers] == 0
            yield result.row("bands", "<u8", len(numbers), band)[stay], numbers[stay]

    def _signatures(self, documents: Array) -> Array:
        """Returns the signatures of documents, whose numbers ascend."""
        found = numpy.empty((len(documents), PERMUTATIONS), dtype=numpy.uint32)
        bounds = numpy.searchsorted(documents, self._starts).tolist()
        for result, start, first, end in zip(self._results, self._starts, bounds, bounds[1:]):
            if first < end:  # a file is closed again soon: it would count as memory
                rows = numpy.cumsum(self._signed[start : start + result.documents])[documents[first:end] - start] - 1
                found[first:end] = result.mapped("signatures", "<u4", PERMUTATIONS)[rows]
        return found

    def cluster_names(self) -> Iterator[Array]:
        """Yields the names of the clusters of the results' documents: digests, shape (documents, 2). It is the digest
        of the first one of a cluster."""
        leaders = numpy.unique(self._firsts[self._later()])  # of clusters with several documents
        known = numpy.empty((len(leaders), 2), dtype="<u8")
        for result, start in zip(self._results, self._starts):
            digests, end = result.array("digests", "<u8", 2).copy(), start + result.documents
            first, last = numpy.searchsorted(leaders, [start, end])
            known[first:last] = digests[leaders[first:last] - start]
            later = self._later(start, end)
            digests[later] = known[numpy.searchsorted(leaders, self._firsts[start:end][later])]
            yield digests

    def _later(self, start: int = 0, end: int | None = None) -> Array:
        """Returns the places of documents that are not the first ones of their clusters, from `start` on."""
        firsts = self._firsts[start:end]
        return numpy.flatnonzero(firsts != numpy.arange(start, start + len(firsts)))
