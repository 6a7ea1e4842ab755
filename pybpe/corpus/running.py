"""Runs the tasks of a corpus, in this process, in worker processes, or with an executor's workers."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from functools import partial

from .. import _binding
from .._version import __version__
from ..errors import ArgumentError
from ..reading import planning
from ..reading.file_types import row_kind
from ..reading.input_file import InputFile, known_total
from ..reading.staging import Staged
from ..reading.text_encoding import Doubts
from ..support.parallel import worker_count
from ..support.progress import Progress
from ..support.remote import build, map_by_executor
from ..support.run_options import RunOptions
from .processes import process_pool
from .reading import DocumentPlan
from .spool import Result, Spool
from .steps import Steps
from .work import Work, run_task

_PENDING = 64  # tasks submitted to an executor at once, unless `workers` is given


def identity_of(steps: Steps, staged: Staged) -> str:
    """Returns a hash of everything that a run's results depend on: the versions of the Unicode tables too, as the steps
    use those of Python and of `regex`."""
    parts = repr((__version__, build().unicode, *steps.identity(), planning.TASK_BYTES, staged.identities))
    return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()


def run_tasks(steps: Steps, files: Sequence[InputFile], spool: Spool, run: RunOptions) -> int:
    """Runs all unfinished tasks; their results go to the spool. Returns the number of tasks."""
    tasks = list(DocumentPlan(files, steps.kinds).tasks())
    left = [task for task in range(len(tasks)) if not spool.has(task)]
    doubts = Doubts()
    with ExitStack() as stack:
        bar = stack.enter_context(Progress("cleaning", _total(files), "B", run.progress))
        for task in sorted(set(range(len(tasks))).difference(left)):
            bar.add(Result(spool.name(task)).header["read"])
        results = _results(Work(steps), [tasks[task] for task in left], run, stack)
        for task, result in zip(left, results):
            _binding.write_file(spool.name(task), result)
            header = Result(spool.name(task)).header
            bar.add(header["read"])
            for doubt in header["doubts"]:
                doubts.tell(doubt)
    return len(tasks)


def _results(work: Work, tasks: Sequence[planning.Task], run: RunOptions, stack: ExitStack) -> Iterator[bytes]:
    """Returns an iterator over the results of tasks, in order. Processes that it starts end with `stack`."""
    executor, pending = run.executor, _PENDING if run.workers is None else 2 * run.workers
    if executor is None:
        count = min(worker_count(run.workers), len(tasks))
        if count <= 1:
            return map(work.run, tasks)
        executor, pending = stack.enter_context(process_pool(count)), 2 * count
    return map_by_executor(partial(run_task, _pickled(work)), map(planning.anchored, tasks), executor, pending)


def _total(files: Sequence[InputFile]) -> int | None:
    return None if any(row_kind(file.path) for file in files) else known_total(files)


def _pickled(work: Work) -> bytes:
    try:
        return pickle.dumps(work)
    except Exception as error:  # pickle can raise anything
        raise ArgumentError(
            f"a scorer cannot be sent to other processes: define it at the top level of a module, or use workers=1"
            f" ({error})"
        ) from None
