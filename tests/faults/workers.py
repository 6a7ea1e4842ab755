"""Kills worker processes of binarize at random moments.

    workers.py [--kills N]

The call must end with a WorkerError within a second of the kill, publish no partial shard, and the same call with new
workers must go on to the bytes of an undisturbed run.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

import shim
from operations import content, documents, small_tokenizer

import pybpe


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=100)
    kills = parser.parse_args().kills
    rng = random.Random(9)
    wrong: list[str] = []
    slowest = 0.0
    died = 0
    with tempfile.TemporaryDirectory(prefix="pybpe-workers-", dir=shim.fast_folder()) as scratch:
        folder = Path(scratch)
        text = folder / "text.txt"
        text.write_text("\n".join(documents(400) * 3))
        keywords = {"shard_tokens": 20_000, "progress": False}
        pybpe.binarize(small_tokenizer(), text, folder / "undisturbed", **keywords)
        expected = content(folder / "undisturbed")
        while died < kills:
            faulthandler.dump_traceback_later(60, exit=True)  # a hang is shown, and is a failure
            out = folder / "out"
            killed: list[float] = []
            executor = ProcessPoolExecutor(2, mp_context=get_context("fork"))
            workers = [executor.submit(os.getpid).result() for _ in range(4)]

            def kill(victim: int, delay: float, killed: list[float] = killed) -> None:
                time.sleep(delay)
                killed.append(time.monotonic())
                os.kill(victim, signal.SIGKILL)

            thread = threading.Thread(target=kill, args=(rng.choice(workers), rng.random() * 0.2))
            thread.start()
            try:
                pybpe.binarize(small_tokenizer(), text, out, executor=executor, **keywords)
            except pybpe.errors.WorkerError:
                died += 1
                slowest = max(slowest, time.monotonic() - killed[0])
            except Exception as error:
                wrong.append(f"{type(error).__name__}: {error}")
                died += 1
            thread.join()
            # A worker that dies idle takes the lock of the queue with it, and then Python's own shutdown(wait=True)
            # may wait for ever for the others.
            executor.shutdown(wait=False)
            for worker in set(workers):
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
            found = content(out)
            named = {name: data for name, data in found.items() if not name.startswith(".pybpe-unfinished")}
            wrong += [f"torn: {name}" for name, data in named.items() if expected.get(name) != data]
            pybpe.binarize(small_tokenizer(), text, out, **keywords)
            if content(out) != expected:
                wrong.append("another result afterwards")
            shutil.rmtree(out)
    print(*wrong[:10], f"workers: {died} kills, slowest error after {slowest:.2f} s, {len(wrong)} problems", sep="\n")
    return 1 if wrong or slowest > 1 else 0


if __name__ == "__main__":
    sys.exit(main())
