"""Worker processes on this machine. The steps run in Python, where threads would wait for one another."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.context import BaseContext

from ..reading.remote import reads_urls
from ..support import platform


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
        # (Python 3.14 has kill_workers.)
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(wait=True, cancel_futures=True)


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
    workers keep the pipe open for which `join` waits. Otherwise, this may be the child of a fork server."""
    if parent is None:
        starter = multiprocessing.parent_process()
        assert starter is not None  # this is a worker
        starter.join()
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
