"""Measures what a cluster run costs, for scale_simulation.py:

    python benchmarks/cluster_costs.py CORPUS [--tasks 1500] > costs.json

Starts a Dask scheduler and two workers on this machine (needs `pip install distributed`). All costs are CPU seconds,
which depend less on the machine's load than times do:

    encode          of a worker, per GB of text: reading, encoding, writing a part
    copy            of a worker, per GB of ids: reading parts, hashing and writing a shard
    id_bytes        bytes of ids per byte of text
    token_client    of the client, per GB of text, if tokens travel to it (the workers do not share the folder)
    token_scheduler of the scheduler, likewise
    bundle_client   of the client, per part of one task, if they share it; planning included
    bundle_scheduler of the scheduler, likewise
    task_client     of the client, per additional task in a part
    shard_client    of the client, per shard: ordering, publishing, its line in the manifest
    noop_rate       tasks per second that do nothing, of these processes on this machine
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pybpe
from pybpe.reading import planning
from pybpe.support import executors
from pybpe.support.executors import map_by_executor
from pybpe.support.parallel import RunOptions

NODE = """
import asyncio, sys
from distributed import Scheduler, Worker
kind = Scheduler if sys.argv[1] == "scheduler" else Worker
options = {"host": "127.0.0.1", "port": 0, "dashboard": False}
if kind is Worker:
    options |= {"scheduler_ip": sys.argv[2], "nthreads": 1}

async def serve():
    async with kind(**options) as node:
        print(node.address, flush=True)
        await node.finished()

asyncio.run(serve())
"""


@contextmanager
def node(*arguments: str) -> Iterator[tuple[int, str]]:
    """Runs a scheduler or worker. Yields its process and address."""
    with subprocess.Popen([sys.executable, "-c", NODE, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.pid, process.stdout.readline().strip()
        finally:
            process.kill()


def cpu_seconds(process: int) -> float:
    """Returns the CPU time of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Cluster:
    """Measures calls that use a Dask cluster."""

    def __init__(self, executor: Any, scheduler: int) -> None:
        self.executor, self._scheduler = executor, scheduler

    def measure(self, call: Callable[[], object]) -> tuple[float, float, float]:
        """Returns the CPU seconds of client and scheduler, and the seconds that a call took."""
        before = time.process_time(), cpu_seconds(self._scheduler), time.monotonic()
        call()
        after = time.process_time(), cpu_seconds(self._scheduler), time.monotonic()
        client, scheduler, seconds = (end - start for start, end in zip(before, after, strict=True))
        return client, scheduler, seconds


def worker_costs(tok: pybpe.Tokenizer, corpus: str, scratch: Path) -> dict[str, float]:
    """Measures the work of a worker, in this process."""
    seconds: dict[str, list[float]] = {}

    class Here:
        """An executor that runs each task at once."""

        def submit(self, function: Callable[..., object], *args: object) -> Any:
            from concurrent.futures import Future

            future: Future[object] = Future()
            start = time.process_time()
            future.set_result(function(*pickle.loads(pickle.dumps(args))))
            name = getattr(args[3], "func", args[3]).__name__
            seconds.setdefault(name, []).append(time.process_time() - start)
            return future

    manifest = pybpe.binarize(tok, corpus, scratch / "here", executor=Here(), splits=(98, 1, 1), force=True)  # type: ignore[arg-type]
    text = sum(manifest.text_bytes.values())
    ids = sum(record.bytes for records in manifest.shards.values() for record in records)
    return {
        "encode": sum(seconds["_written"]) / text * 1e9,
        "copy": sum(seconds["_made"]) / ids * 1e9,
        "id_bytes": ids / text,
    }


def message_costs(tok: pybpe.Tokenizer, corpus: str, scratch: Path, cluster: Cluster, tasks: int) -> dict[str, float]:
    """Measures client and scheduler with tasks that are so small that messages are all that costs."""
    size = os.path.getsize(corpus)
    is_shared, executors.is_shared = executors.is_shared, lambda *_: False
    client, scheduler, _ = cluster.measure(
        lambda: pybpe.binarize(tok, corpus, scratch / "tokens", executor=cluster.executor, force=True)
    )
    executors.is_shared = is_shared
    costs = {"token_client": client / size * 1e9, "token_scheduler": scheduler / size * 1e9}

    usual = planning.TASK_BYTES
    planning.TASK_BYTES = size // tasks
    figures = {}
    for each in (1, 16):
        executors.tasks_per_message = lambda *_, each=each: each
        out = scratch / f"bundles{each}"
        figures[each] = cluster.measure(
            lambda out=out: pybpe.binarize(
                tok,
                corpus,
                out,
                executor=cluster.executor,
                splits=(1,),
                shard_tokens=10**9 // 2,
                force=True,
            )
        )
    planning.TASK_BYTES = usual
    one, many = figures[1], figures[16]
    per_task = (many[0] - one[0] / 16) / (tasks * 15 / 16)  # many = t * task + t / 16 * bundle
    costs |= {
        "bundle_client": one[0] / tasks,
        "bundle_scheduler": one[1] / tasks,
        "task_client": max(0.0, per_task),
        "bundle_seconds": one[2] / tasks,
    }
    executors.tasks_per_message = lambda *_: 8
    shards = {}
    many_shards = tasks * 4 // 15
    for count in (2, many_shards):
        shards[count] = cluster.measure(
            lambda count=count: pybpe.binarize(
                tok, corpus, scratch / f"shards{count}", executor=cluster.executor, splits=(1,),
                shard_tokens=size // 4 // count, format="npy", force=True
            )
        )  # fmt: skip
    costs["shard_client"] = (shards[many_shards][0] - shards[2][0]) / many_shards
    costs["shard_scheduler"] = (shards[many_shards][1] - shards[2][1]) / many_shards
    return costs


def main() -> None:
    """The command line."""
    import distributed

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", help="a text of about 100 MB")
    parser.add_argument("--tasks", type=int, default=1500, help="for the costs of messages")
    parser.add_argument("--scratch", default="/dev/shm", help="where to write, without waiting for a disk")
    arguments = parser.parse_args()
    tok = pybpe.get_encoding("gpt2")
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        scratch = Path(folder)
        costs = worker_costs(tok, arguments.corpus, scratch)
        with node("scheduler") as (scheduler, address), node("worker", address), node("worker", address):
            with distributed.Client(address, set_as_default=False) as client:
                cluster = Cluster(client.get_executor(), scheduler)
                noops = 2 * arguments.tasks
                noop_client, noop_scheduler, seconds = cluster.measure(
                    lambda: list(map_by_executor(abs, range(noops), RunOptions(128, cluster.executor)))
                )
                costs |= {
                    "noop_rate": noops / seconds,
                    "noop_client": noop_client / noops,
                    "noop_scheduler": noop_scheduler / noops,
                }
                costs |= message_costs(tok, arguments.corpus, scratch, cluster, arguments.tasks)
    print(json.dumps({name: float(f"{cost:.3g}") for name, cost in costs.items()}, indent=2))


if __name__ == "__main__":
    main()
