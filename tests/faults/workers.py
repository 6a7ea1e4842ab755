"""Kills worker processes of binarize and count_words at random moments.

    workers.py [--kills N] [--dask-kills N]

With a process pool, the call must raise WorkerError within a second of the kill and publish no partial shard; the same
call with new workers must resume and give the result of an undisturbed run. Dask, if it is installed, starts
another worker, and the call itself gives that result, unless the worker died just after a result arrived. SIGKILL
simulates a kernel that is out of memory: it sends the same signal.
"""

from __future__ import annotations

import argparse
import faulthandler
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import shim
from operations import content, documents, small_tokenizer

import pybpe
from pybpe.training import counting

counting.LEAST_TASK = 5000
HANG = 90  # seconds; afterward the process prints its stacks and ends


class Binarize:
    """Tests an operation that writes files in a folder."""

    def __init__(self, folder: Path, text: Path) -> None:
        self._text, self._out = text, folder / "out"
        pybpe.binarize(small_tokenizer(), text, folder / "undisturbed", shard_tokens=20_000, progress=False)
        self._expected = content(folder / "undisturbed")
        shutil.rmtree(folder / "undisturbed")

    def run(self, executor: Executor | None) -> None:
        with ThreadPoolExecutor(1) as here:
            pybpe.binarize(
                small_tokenizer(), self._text, self._out, shard_tokens=20_000, executor=executor or here, progress=False
            )

    def torn(self) -> list[str]:
        """Returns the files that differ from those of an undisturbed run, except the hidden folder's."""
        found = {name: data for name, data in content(self._out).items() if not name.startswith(".pybpe-unfinished")}
        return [f"incomplete: {name}" for name, data in found.items() if self._expected.get(name) != data]

    def finished(self) -> list[str]:
        """Returns what is wrong with the result, and forgets the result."""
        found = content(self._out)
        shutil.rmtree(self._out)
        return [] if found == self._expected else ["another result"]


class CountWords:
    """Tests counting, whose result is in memory."""

    def __init__(self, folder: Path, text: Path) -> None:
        self._text = text
        self._expected = pybpe.count_words(text, workers=1)

    def run(self, executor: Executor | None) -> None:
        self._found = pybpe.count_words(self._text, executor=executor, progress=False)

    def torn(self) -> list[str]:
        return []

    def finished(self) -> list[str]:
        return [] if self._found == self._expected else ["another result"]


@dataclass
class Tally:
    """The measurements."""

    kills: int = 0
    slowest: float = 0.0
    wrong: list[str] = field(default_factory=list)


@contextmanager
def killed_soon(workers: Sequence[int], latest: float, rng: random.Random) -> Iterator[list[float]]:
    """Kills one of the processes, perhaps within the block. Yields a list that gets the time of the kill."""
    when: list[float] = []

    def kill(victim: int, delay: float) -> None:
        time.sleep(delay)
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
            when.append(time.monotonic())

    thread = threading.Thread(target=kill, args=(rng.choice(workers), rng.random() * latest))
    thread.start()
    try:
        yield when
    finally:
        thread.join()


def kill_in_pool(operation: Any, rng: random.Random, tally: Tally) -> None:
    """Makes one call with a process pool, and the same call again without one."""
    executor = ProcessPoolExecutor(2, mp_context=get_context("fork"))
    workers = [executor.submit(os.getpid).result() for _ in range(4)]
    with killed_soon(workers, 0.2, rng) as when:
        try:
            operation.run(executor)
        except pybpe.errors.WorkerError:
            tally.slowest = max(tally.slowest, time.monotonic() - when[0])
            tally.kills += 1
        except Exception as error:
            tally.wrong.append(f"{type(error).__name__}: {error}")
    # A worker that dies while idle may hold the lock of the queue; then Python's own shutdown(wait=True) may wait
    # forever for the others.
    executor.shutdown(wait=False)
    for worker in set(workers):
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
    tally.wrong += operation.torn()
    operation.run(None)
    tally.wrong += operation.finished()


def kill_in_cluster(operation: Any, rng: random.Random, tally: Tally) -> None:
    """Makes one call with Dask, in a new cluster of two processes."""
    import dask
    import distributed

    # Otherwise Dask tries for 30 s to reach a dead worker that had a needed result.
    dask.config.set({"distributed.comm.timeouts.connect": "0.5s"})
    logging.disable(logging.CRITICAL)  # Dask logs much about workers that died
    with (
        distributed.LocalCluster(2, processes=True, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        workers = list(client.run(os.getpid).values())
        with killed_soon(workers, 0.5, rng) as when:
            try:
                operation.run(client.get_executor())
            except Exception as error:
                if not isinstance(error, pybpe.errors.WorkerError):
                    tally.wrong.append(f"{type(error).__name__}: {error}")
                operation.run(None)
            ended = time.monotonic()
    if when and when[0] < ended:
        tally.kills += 1
        tally.slowest = max(tally.slowest, ended - when[0])
    tally.wrong += operation.finished()


def repeat(name: str, kills: int, once: Callable[[Tally], None]) -> Tally:
    """Repeats until this many workers were killed in the middle of a call."""
    tally = Tally()
    while tally.kills < kills and len(tally.wrong) < 10:
        faulthandler.dump_traceback_later(HANG, exit=True)
        once(tally)
    faulthandler.cancel_dump_traceback_later()
    print(f"{name}: {tally.kills} kills, the end after at most {tally.slowest:.2f} s, {len(tally.wrong)} problems")
    print(*tally.wrong, sep="\n", end="", flush=True)
    return tally


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--dask-kills", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(9)
    failed = False
    with tempfile.TemporaryDirectory(prefix="pybpe-workers-", dir=shim.fast_folder()) as scratch:
        text = Path(scratch, "text.txt")
        text.write_text("\n".join(documents(400) * 3))
        for kind in (Binarize, CountWords):
            operation = kind(Path(scratch), text)
            name = f"workers: {kind.__name__}"
            pool = repeat(f"{name}, processes", arguments.kills, partial(kill_in_pool, operation, rng))
            failed |= bool(pool.wrong) or pool.slowest > 1
            if arguments.dask_kills and find_spec("distributed") is None:
                print(f"{name}, Dask: skipped, since distributed is not installed")
            elif arguments.dask_kills:
                once = partial(kill_in_cluster, operation, rng)
                failed |= bool(repeat(f"{name}, Dask", arguments.dask_kills, once).wrong)
    return failed


if __name__ == "__main__":
    sys.exit(main())
