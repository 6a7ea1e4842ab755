"""Worker processes on this machine: the steps run in Python, where threads would wait for each other."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager


@contextmanager
def process_pool(workers: int) -> Iterator[Executor]:
    """An executor of so many processes, which end with the block, or with this process, however it ends.

    An exception ends them in the middle of their tasks, which take seconds: Ctrl-C must not wait for them.
    """
    # Workers are forked. In the child of a process with threads, the first import of a large library can hang on a lock
    # that another thread held, so the workers find it imported.
    import numpy  # noqa: F401

    pool = ProcessPoolExecutor(workers, initializer=_begin)
    try:
        with _interrupted_afterwards():
            pool.submit(int)  # starts the processes
        yield pool
    finally:
        # Whoever waits for a worker that hangs, or was stopped, waits for ever. What they had to say has arrived.
        # (Python 3.14 has kill_workers.)
        for process in list((pool._processes or {}).values()):
            process.kill()
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _interrupted_afterwards() -> Iterator[None]:
    """A Ctrl-C within the block comes behind it. Python drops one that comes while it forks."""
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


def _begin() -> None:
    """Ctrl-C is the parent's to answer. Workers of a parent that was killed would wait for it for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # the parent may have a handler of its own, which is not for these
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)
