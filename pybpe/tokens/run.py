"""One run that writes token files. A killed run resumes with the tasks that are left.

    tasks, in order   ->  tasks/SETTINGS/TASK: a file for each (task_results.py)     threads, or an executor's workers
    their results     ->  rows/NAME_train_000000.bin ..., manifest.json              threads, or an executor's workers
    all files there   ->  the output folder, the manifest last

The first two folders are in the hidden folder of the output. A run that was killed does the tasks that have no file.
If it was making token files, it makes them again, which takes a tenth of the time of the tasks. Until all of them are
there, the output folder is unchanged. So the disk needs room for the tokens twice.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from itertools import tee
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _binding
from ..errors import ArgumentError, FormatError, LimitError, file_error, file_errors, note
from ..reading.charset import Doubts
from ..reading.documents import Seen, SkippedRecords, check_list, headers_if_done
from ..reading.files import Corpus
from ..reading.input_file import check_has_text
from ..support.output_files import make_folder, remove_entry
from ..support.parallel import RunOptions
from ..support.progress import Progress
from ..support.task_results import results_in, task_folder, task_path, write_results
from .encoding import TaskEncoder
from .finished import TOKENIZER_NAMES, publish, remove_work, replaced_files
from .manifest import ROWS, Manifest, record_file
from .options import ArrayOptions, Layout
from .results import Encoded, Order, Stream, task_data
from .shards import make_here, make_shards, starts_of

if TYPE_CHECKING:
    from .workers import Workers

LIST_NAME = "skipped.jsonl"


class NamedTask(NamedTuple):
    """A task and what distinguishes it from others."""

    task: Any
    name: bytes  # equal names are equal tasks
    stamp: bytes = b""  # unless they read other versions of files


class Job(NamedTuple):
    """What makes the tokens of a run."""

    identity: str  # a hash of everything that they depend on, except the tasks
    splits: int  # the number of splits
    tasks: Iterable[NamedTask]
    encoded: Callable[[Iterable[Any], Doubts], Iterator[Encoded]]  # yields the tokens of some tasks, in order
    encoder: TaskEncoder | None = None  # what an executor's workers encode tasks with
    files: Corpus | None = None  # what the tasks read
    doing: tuple[str, str] = ("encoding", "B")  # for the progress bar: what is in progress, and the unit of its size


def write_token_files(
    layout: Layout,
    job: Job,
    options: RunOptions,
    total: int | None,
    known: Manifest,
    with_tokenizer: bool = False,
) -> Manifest:
    """Does the work of a job, or what is left of it, up to the manifest, which it returns.

    Args:
        layout: where the files go, and what they are.
        options: how to use the machine.
        total: the amount of input, in the unit of the job, if known.
        known: what the manifest says of the call, the tokenizer and the inputs.
        with_tokenizer: whether to write the tokenizer too.
    """
    run = _Run(layout, job, options)
    try:
        with ExitStack() as stack:
            run.do_tasks(total, stack)
        made = run.assemble(known, with_tokenizer)
        publish(layout.folder, tells=True)
    except (ArgumentError, LimitError):
        remove_work(layout.folder)  # other input is needed, so the results so far are useless
        raise
    except FormatError as error:
        if not os.listdir(run.folder):
            remove_work(layout.folder)
            raise
        what = "Finished work is kept: fix the file and run the same command again to resume"
        error.args = (f"{error}. {what}", *error.args[1:])
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            text = f"{layout.folder}: the disk is full. Finished work is kept: free some space and run the"
            raise file_error(error.errno, f"{text} same command again to resume") from None
        raise
    return made


class _Run:
    """One run. `folder` has the results of tasks."""

    def __init__(self, layout: Layout, job: Job, options: RunOptions) -> None:
        self._layout, self._job, self._options = layout, job, options
        self._skips = job.encoder is not None and job.encoder.kinds.read.skips
        if self._skips and LIST_NAME not in replaced_files(layout.folder, layout.tok.model.fingerprint):
            check_list(os.path.join(layout.folder, LIST_NAME))
        hidden = os.path.abspath(layout.unfinished)
        self.folder = task_folder(hidden, job.identity)
        for name in os.listdir(hidden):
            if name.startswith(ROWS):
                remove_entry(os.path.join(hidden, name))
        # A worker that was given up, and continues, writes to the folder of its own run, which is gone.
        self._rows = make_folder(os.path.join(hidden, f"{ROWS}-{secrets.token_hex(4)}"))
        self._workers: Workers | None = None
        if options.executor is not None and job.encoder is not None:
            from .workers import Work, Workers

            size = job.files.size if job.files is not None else 0
            self._workers = Workers(hidden, Work(job.encoder, job.splits, layout.marks), size, options)
        self._streams = [Stream(split, layout.marks) for split in range(job.splits)]
        self._paths: list[str] = []

    # ------------------------------------------------------------------------------------------------
    # Tasks

    def do_tasks(self, total: int | None, stack: ExitStack) -> None:
        """Does the tasks that are left, and takes the results of all. Lists the records that are skipped; the list gets
        its name with `stack`."""
        layout, doubts, is_told = self._layout, Doubts(), False
        listed = os.path.join(self._rows, LIST_NAME)
        write = stack.enter_context(_binding.Output(listed)).write if self._skips else lambda data: None
        self._records = records = SkippedRecords(write, layout.source_names)
        orders = (
            Order(each.task, task_path(self.folder, each.name), hashlib.blake2b(each.stamp, digest_size=16).hexdigest())
            for each in self._job.tasks
        )
        every, some = tee((order, self._is_done(order)) for order in orders)
        bar = stack.enter_context(Progress(self._job.doing[0], total, self._job.doing[1], self._options.progress))
        left = (order for order, is_done in some if not is_done)
        made = self._here(left, doubts, bar) if self._workers is None else self._workers.done(left)
        for order, is_done in every:
            if not is_done:
                is_told = is_told or self._tell(total)
                next(made)
            for _, header in results_in(order.path):
                if is_done or self._workers is not None:
                    bar.add(header["size"])
                for doubt in header["doubts"]:
                    doubts.tell(doubt)
                for seen in header["seen"]:
                    records.add(Seen.of(seen))
                for stream in self._streams:
                    stream.take(header["splits"])
            records.check()
            self._paths.append(order.path)
        is_told = is_told or self._tell(total)
        records.check(at_end=True)
        if self._job.files is not None and not isinstance(layout.output, ArrayOptions):
            if not any(stream.text_bytes for stream in self._streams):
                check_has_text(self._job.files, "tokens to write")

    def _is_done(self, order: Order) -> bool:
        """Returns whether a task has a result. If a file that it reads was written since, its part of it must be the
        same."""
        headers, encoder = headers_if_done(order.path, self._skips), self._job.encoder
        if headers is None:
            return False
        sums = [number for header in headers for number in header["sums"]]
        same = headers[0]["stamp"] == order.stamp
        return same or (encoder is not None and sums != [] and sums == encoder.sums(order.task))

    def _here(self, orders: Iterator[Order], doubts: Doubts, bar: Progress) -> Iterator[None]:
        """Does tasks in threads of this process. Yields after each."""
        ours, theirs = tee(orders)
        found = self._job.encoded((order.task for order in theirs), doubts)

        def one_task() -> Iterator[Encoded]:
            for each in found:
                bar.add(each.size)
                yield each
                if each.ends_task:
                    return

        for order in ours:
            write_results(order.path, task_data(one_task(), self._job.splits, self._layout.marks, order.stamp))
            yield

    def _tell(self, total: int | None) -> bool:
        """Says that the run resumes, if it has results already. Returns True."""
        if tokens := sum(stream.tokens for stream in self._streams):
            size = sum(stream.text_bytes for stream in self._streams)
            share = f", at about {min(99, 100 * size // total)}%" if total and self._job.doing[1] == "B" else ""
            note(f"{self._layout.folder}: resuming after {tokens} tokens{share}")
        return True

    # ------------------------------------------------------------------------------------------------
    # Token files

    def assemble(self, known: Manifest, with_tokenizer: bool) -> Manifest:
        """Makes the token files, what belongs to them, and the manifest."""
        layout, form = self._layout, self._layout.output.form
        make = make_here if self._workers is None else self._workers.shards
        records = make_shards(layout, self._streams, self._paths, self._rows, make, self._options.progress)
        others, skipped = list[str](), None
        for split, found in enumerate(records.values()):
            if form.index is not None:  # then each split is one file
                blocks = partial(starts_of, layout, split, self._paths)
                others.append(form.index(blocks, layout.output.dtype, found[0], self._rows))
        for name in TOKENIZER_NAMES if with_tokenizer else ():
            layout.tok.save(os.path.join(self._rows, name))
            others.append(name)
        if form.of_tokenizer is not None:
            name, content = form.of_tokenizer
            _binding.write_file(os.path.join(self._rows, name), content(layout.tok))
            others.append(name)
        if self._skips:
            skipped = {**self._records.finish(os.path.join(layout.folder, LIST_NAME)), "file": LIST_NAME}
            others.append(LIST_NAME)
        made = replace(
            known,
            text_bytes={split: sum(record.text_bytes for record in found) for split, found in records.items()},
            shards=records,
            files=[record_file(os.path.join(self._rows, name)) for name in others],
            skipped=skipped,
        )
        _binding.write_file(os.path.join(self._rows, form.manifest), made.to_json())
        with file_errors(self._rows, "cannot be renamed"):
            os.rename(self._rows, os.path.join(os.path.dirname(self._rows), ROWS))
        return made
