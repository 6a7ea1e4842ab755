"""Worker processes on this machine: the steps run in Python, where threads would wait for each other."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing.synchronize import Event


@contextmanager
def process_pool(workers: int) -> Iterator[Executor]:
    """An executor of so many processes, which end with the block, or with this process, however it ends.

    An exception ends them in the middle of their tasks, which take seconds: Ctrl-C must not wait for them.
    """
    stop = multiprocessing.Event()
    pool = ProcessPoolExecutor(workers, initializer=_begin, initargs=(stop,))
    try:
        yield pool
    except BaseException:
        stop.set()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin(stop: Event) -> None:
    """Ctrl-C is the parent's to answer. Workers of a parent that was killed would wait for it for ever."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(os.getppid(), stop), daemon=True).start()


def _end_with(parent: int, stop: Event) -> None:
    while os.getppid() == parent and not stop.wait(1):
        pass
    os._exit(1)
