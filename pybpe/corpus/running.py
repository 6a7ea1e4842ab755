"""Runs the tasks of a corpus: in this process, in processes of its own, or on an executor's workers. (The steps run in
Python, where threads would wait for one another.) The steps on single documents are at the end."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import chain, compress
from multiprocessing.context import BaseContext
from typing import Any

from .. import _binding
from .._lazy import Array, numpy
from ..arguments import param
from ..errors import ArgumentError, note
from ..normalize import normalize_text
from ..reading.charset import Doubts
from ..reading.files import Corpus, Staged
from ..reading.planning import TASK_BYTES, anchored, progress_total
from ..reading.records import SkippedRecords, headers_if_done, results_when_done
from ..reading.remote import reads_urls
from ..support import platform
from ..support.executors import Workers, versions
from ..support.parallel import RunOptions, process_memory, worker_count
from ..support.progress import Progress
from ..support.task_results import Order, Result, hashed, packed, write_results
from .duplicates import Banding, counted_paragraphs, normalized
from .filters import characters
from .pii import find_pii, replace_pii
from .reading import DocumentBatch, batches, json_line
from .report import Tally
from .steps import CONFIDENCE, LANGUAGE, Steps, detect_language

_VERSION = 9  # of the results of tasks: results of another version are not used


def fingerprint_of(steps: Steps) -> str:
    """Returns a hash of everything that the results of tasks depend on, except the inputs: the versions of the Unicode
    tables too, as the steps use the tables of Python and of `regex`, and of what evaluates `where`."""
    scorers = [
        (s.name, s.function.__module__, getattr(s.function, "__qualname__", ""), s.max_score) for s in steps.scorers
    ]
    # A task where nothing was skipped is the same with on_error="skip"; keep_near is applied to the results.
    rest = replace(steps, scorers=(), keep_near=False, read=replace(steps.read, on_error="stop", skipped=None))
    evaluators = [import_module(name).__version__ for name in ("duckdb", "pyarrow") if steps.where is not None]
    return hashed(_VERSION, versions(), rest, scorers, *evaluators)


def run_tasks(steps: Steps, orders: Sequence[Order], staged: Staged, hidden: str, run: RunOptions) -> list[Result]:
    """Runs all unfinished tasks. `hidden` is the hidden folder. Returns the results of all tasks, in order. Raises
    ArgumentError if more than half of the records are not valid."""
    skips = steps.read.skips
    left = [order for order in orders if headers_if_done(order.path, skips, is_read=True) is None]
    if 0 < len(left) < len(orders):
        note(f"resuming: {len(orders) - len(left)} of {len(orders)} tasks are done already")
    ours = {order.path for order in left}
    doubts, skipped, found, is_told = Doubts(), SkippedRecords(names=staged.names), list[Result](), False

    def tell(size: int) -> None:
        nonlocal is_told
        is_told = True
        bar.add(size)

    with ExitStack() as stack:
        bar = stack.enter_context(
            Progress("cleaning", progress_total(staged.files, steps.read.text_key), "B", run.progress)
        )
        done = _done(partial(results_of, steps), left, hidden, staged.files, run, stack, tell)
        for path, result, header in results_when_done(orders, left, done, doubts, skipped):
            found.append(result)
            if not is_told or path not in ours:
                bar.add(header["read"], earlier=path not in ours)
    return found


def _done(
    work: Callable[..., Iterable[_binding.Data]],
    orders: Sequence[Order],
    hidden: str,
    files: Corpus,
    run: RunOptions,
    stack: ExitStack,
    tell: Callable[[int], object],
) -> Iterator[None]:
    """Writes the results of tasks to their files, in order, and yields after every task. Processes that it starts end
    with `stack`. If it starts none, it tells the size of each part that is done."""
    count = min(worker_count(run.workers), len(orders))
    each = process_memory(run.memory_limit, any(file.has_rows for file in files.singles))
    if run.memory_limit is not None and run.executor is None:
        count = min(count, max(1, run.memory_limit // each))
    if not orders or (run.executor is None and count <= 1):
        for order in orders:
            write_results(order.path, work(order, tell))
            yield
        return
    try:
        pickle.dumps(work)
    except Exception as error:  # pickle can raise anything
        raise ArgumentError(
            "a scorer cannot be sent to other processes: define it at the top level of a module, or use"
            f" {param(workers=1)} ({error})"
        ) from None
    if run.executor is None:
        run = RunOptions(count, stack.enter_context(process_pool(count)))
    workers = Workers(hidden, work, files.size // TASK_BYTES, run)
    yield from workers.done(order._replace(task=anchored(order.task)) for order in orders)


# ----------------------------------------------------------------------------------------------------
# Worker processes on this machine


@contextmanager
def process_pool(workers: int) -> Iterator[Executor]:
    """An executor with `workers` processes, which end with the block, or with this process, however it ends.

    An exception ends them in the middle of their tasks. Tasks take seconds, and Ctrl-C must not wait for them.
    """
    # In a forked child of a process with threads, the first import of a large library can hang on a lock that another
    # thread held, so the workers find it imported.
    import numpy  # noqa: F401

    context: BaseContext = multiprocessing.get_context()
    if context.get_start_method() == "fork" and reads_urls():
        context = multiprocessing.get_context("spawn")
    # A forked worker that begins after this process was killed already has another parent.
    parent = os.getpid() if context.get_start_method() == "fork" else None
    pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(parent,))
    try:
        with _interrupted_afterwards():
            pool.submit(int)  # starts the processes
        yield pool
    finally:
        # Waiting for a hung or stopped worker could take forever. The workers' results have all arrived.
        # (Python 3.14 has kill_workers.) The pool first forgets the tasks that were cancelled, because its thread fails
        # at those, with a traceback, when it finds the processes dead.
        processes = list((pool._processes or {}).values())
        manager: Any = pool._executor_manager_thread
        pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()
        if manager is not None:
            manager.join()


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """Delays a Ctrl-C that arrives within the block until its end. Python drops one that arrives during a fork."""
    if threading.current_thread() is not threading.main_thread() or signal.getsignal(signal.SIGINT) is None:
        yield
        return
    signals: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, frame: signals.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if signals:
        signal.raise_signal(signal.SIGINT)


def _begin(parent: int | None) -> None:
    """Leaves Ctrl-C to the parent, and ends this worker if the parent is killed, since it would wait forever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in platform.ENDING_SIGNALS:
        signal.signal(number, signal.SIG_DFL)  # the parent's own handler is not meant for workers
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int | None) -> None:
    """Ends this worker when its parent has ended. `parent` is the parent's number if this worker was forked: then other
    workers keep the pipe open that `join` waits for. Otherwise, this may be the child of a fork server."""
    if parent is None:
        starter = multiprocessing.parent_process()
        assert starter is not None  # this is a worker
        starter.join()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


# ----------------------------------------------------------------------------------------------------
# The steps on single documents, one task at a time


_RESULT_BYTES = 1 << 22  # of lines and signatures. How results are divided does not change the output
_AROUND = 40  # characters shown on both sides of a replacement
_Change = tuple[int, str, dict[str, Any]]  # the place of a document, its new text, and new fields of its record


def results_of(
    steps: Steps, order: Order, tell: Callable[[int], object] = lambda size: None
) -> Iterator[_binding.Data]:
    """Does a task. Yields its results in the form of task_results.py, in parts: lines, and the data for finding
    duplicates of every line. There is one result per _RESULT_BYTES, because a compressed file is one task, however long
    its text is. Tells the size of each part of the input that is done."""
    found, kinds = _Found(steps), steps.kinds
    for batch in batches(order.task, kinds, no_cluster=steps.near_dedup is not None):
        found.note(batch)
        if len(batch.texts):
            _do_steps(steps, batch, found)
        tell(batch.size)
        if found.size >= _RESULT_BYTES:
            yield from found.packed()
            found = _Found(steps)
    yield from found.packed()


def _do_steps(steps: Steps, batch: DocumentBatch, found: _Found) -> None:
    tally = found.tally
    tally.count("in", len(batch.texts), len(batch.texts.data))
    if (normalizer := steps.normalizer) is not None:
        texts = batch.texts.list()
        normal = ((i, normalize_text(text.decode(), normalizer), dict[str, Any]()) for i, text in enumerate(texts))
        batch = _changed(batch, texts, normal, steps.read.text_key)
    reasons, measures, chars = steps.filters.judge(batch.texts)
    tally.measure("chars in", chars)
    for name, values in measures.items():
        tally.measure(name, values)
    if steps.languages or steps.scorers or steps.scrub_pii:
        texts = batch.texts.list()
        batch = _changed(batch, texts, _looked_at(steps, texts, reasons, chars, tally), steps.read.text_key)
    kept_texts, lines = batch.texts, batch.lines
    if reasons:
        kept = numpy.ones(len(chars), dtype=bool)
        all_texts, all_lines = kept_texts.list(), lines.list()
        for place, reason in sorted(reasons.items()):
            kept[place] = False
            tally.count(reason, 1, len(all_texts[place]))
            tally.sample(reason, all_texts[place].decode())
        kept_texts, lines = (_binding.Strings(list(compress(some, kept))) for some in (all_texts, all_lines))
        chars = chars[kept]
    found.add(kept_texts, lines, chars)


def _changed(batch: DocumentBatch, texts: list[bytes], changes: Iterable[_Change], key: str) -> DocumentBatch:
    """Returns a batch, whose texts are `texts`, with other texts at some places, and more fields in their records."""
    lines = batch.lines.list()
    for place, text, extra in changes:
        data = text.encode()
        if data != texts[place]:
            texts[place] = data
            extra = {key: text, **extra}
        if extra:
            lines[place] = json_line(lines[place], extra)
    return batch._replace(texts=_binding.Strings(texts), lines=_binding.Strings(lines))


def _looked_at(
    steps: Steps, texts: Sequence[bytes], reasons: dict[int, str], chars: Array, tally: Tally
) -> Iterator[_Change]:
    """Looks at the texts without a reason to be dropped. Adds to the reasons, or yields what is to change, and updates
    the numbers of characters."""
    for place in [place for place in range(len(texts)) if place not in reasons]:
        text, extra = texts[place].decode(), dict[str, Any]()
        if reason := _reason(steps, text, extra, tally):
            reasons[place] = reason
            continue
        findings = find_pii(text, steps.scrub_pii) if steps.scrub_pii else []
        for kind, start, end in findings:
            tally.changes[kind] += 1
            tally.sample(kind, text[max(0, start - _AROUND) : end + _AROUND])
        text = replace_pii(text, findings)
        chars[place] = len(text)
        yield place, text, extra


def _reason(steps: Steps, text: str, extra: dict[str, Any], tally: Tally) -> str | None:
    """Returns why a text is dropped: its language, or a score. Adds its language to the fields that its record gets."""
    if steps.languages:
        language, confidence = detect_language(text)
        tally.languages[language] += 1
        extra |= {LANGUAGE: language, CONFIDENCE: round(confidence, 4)}
        if language not in steps.languages:
            return "language"
        if confidence < steps.min_confidence:
            return "language_confidence"
    for scorer in steps.scorers:
        score = scorer.score(text)
        tally.measure(f"score {scorer.name}", [score])
        if score > scorer.max_score:
            return f"score {scorer.name}"
    return None


class _Found:
    """The documents of a result that are kept, and the data for finding duplicates."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self.tally = Tally()
        self.size = 0  # of the result in bytes, approximately
        self._read: dict[str, Any] = {"read": 0, "doubts": [], "notes": []}
        self._fields: set[str] = set()  # those that the condition names and some record has
        self._documents = 0
        self._bands: list[Array] = []
        names = ("digests", "only", "bands", "signatures", "paragraph_counts", "paragraphs", "sizes", "lines")
        self._sections: dict[str, list[_binding.Data]] = {name: [] for name in names}

    def note(self, batch: DocumentBatch) -> None:
        """Notes the documents that were read for a batch."""
        self._read["read"] += batch.size
        self._fields.update(batch.fields)
        if batch.nulls:
            self.tally.changes["null"] += batch.nulls
        for name in ("in", "where"):
            self.tally.count(name, len(batch.others), len(batch.others.data))
        for text in batch.others.list():
            self.tally.sample("where", text.decode())
        if batch.doubt is not None:
            self._read["doubts"].append(batch.doubt)
        if batch.notes.end:  # there were records
            self._read["notes"].append(batch.notes.plain())

    def add(self, texts: _binding.Strings, lines: _binding.Strings, chars: Array) -> None:
        """Adds documents, with their numbers of characters."""
        steps, sections = self._steps, self._sections
        self._documents += len(texts)
        lengths = (numpy.diff(numpy.frombuffer(some.offsets, "<i8")) for some in (texts, lines))
        sections["sizes"].append(numpy.stack([chars, *lengths], axis=1).data)
        sections["lines"].append(lines.data)
        self.size += len(lines.data)
        if steps.dedup == "normalized":
            same = _binding.Strings([normalized(text.decode()).encode() for text in texts.list()])
            sections["digests"].append(_binding.digest_texts(same))
        elif steps.dedup is not None or steps.near_dedup is not None:
            sections["digests"].append(_binding.digest_texts(texts))
        if steps.near_dedup is not None:
            only = numpy.empty(len(texts), dtype="<u8")
            signatures = _binding.minhash_texts(texts, characters(), only)
            self._bands.append(_binding.cut_signatures(signatures, *Banding.of(steps.near_dedup)))
            sections["only"].append(only.data)
            sections["signatures"].append(signatures.data)
            self.size += signatures.nbytes
        if steps.dedup_paragraphs:
            paragraphs = [counted_paragraphs(text.decode()) for text in texts.list()]
            sections["paragraph_counts"].append(numpy.array([*map(len, paragraphs)], dtype="<i8").data)
            digests = _binding.digest_texts(_binding.Strings([*chain.from_iterable(paragraphs)]))
            sections["paragraphs"].append(digests)

    def packed(self) -> list[_binding.Data]:
        """Returns the result, in parts."""
        if self._bands:
            self._sections["bands"] = [numpy.concatenate(self._bands, axis=1).data]
        header = {"tally": self.tally.to_json(), "documents": self._documents, **self._read}
        header["fields"] = sorted(self._fields)
        return packed(header, self._sections)
