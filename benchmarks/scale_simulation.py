"""Simulates `pybpe binarize` on a cluster, task by task, with workers that share the output folder, and others:

    python benchmarks/scale_simulation.py [--costs costs.json] [--terabytes 15] [--storage 100]

Prints a Markdown table. The costs of programs are measured by cluster_costs.py; what the cluster and its storage can do
is assumed, and can be set. The model:

- The client and the scheduler are one thread each. A message waits until they have handled those before it.
- A worker does one task at a time: it reads, computes, and writes, one after the other.
- All transfers share the storage equally. One worker reads or writes at most `--link` GB/s, a node of 64 workers at
  most `--node` GB/s, all together at most `--storage` GB/s.
- Each operation on a file of the shared file system takes `--latency` ms. The client waits for one per bundle, and, in
  16 threads, for one per task while it plans, and for five per shard while it publishes.
- If workers do not share the folder, tokens travel to the client, so its cost per task is the cost of its bytes.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

TASK_BYTES = 1 << 24  # as in pybpe/reading/planning.py
MOST_TASKS, PER_WORKER = 64, 8  # as in pybpe/support/executors.py
PLANNING = 16  # threads, as in pybpe/tokens/binarization.py
WORKERS_PER_NODE = 64
SHARD_TOKENS = 10**8
ID_BYTES = 2

# What cluster_costs.py printed for 60 MB of English books in documents of 4 KB, median of three: see RESULTS.md.
COSTS = {
    "encode": 5.26,
    "copy": 1.37,
    "id_bytes": 0.478,
    "token_client": 3.02,
    "token_scheduler": 1.33,
    "bundle_client": 0.00107,
    "bundle_scheduler": 0.00137,
    "task_client": 0.0000727,
    "shard_client": 0.000975,
    "shard_scheduler": 0.00117,
}


class Clock:
    """The events of a simulation, in order of time."""

    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def at(self, time: float, action: Callable[[], None]) -> None:
        """Calls an action at a time."""
        heapq.heappush(self._events, (time, next(self._numbers), action))

    def run(self, storage: Storage) -> None:
        """Runs until nothing happens any longer."""
        while self._events or storage.is_busy:
            time = storage.next_end()
            if self._events and self._events[0][0] <= time:
                time, _, action = heapq.heappop(self._events)
                self.now = time
                action()
            else:
                self.now = time
                storage.end_one()


class Server:
    """A thread that handles one message after the other."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._free, self.busy = clock, 0.0, 0.0

    def handle(self, seconds: float, then: Callable[[], None]) -> None:
        """Handles a message, and then calls `then`."""
        self._free = max(self._free, self._clock.now) + seconds
        self.busy += seconds
        self._clock.at(self._free, then)


class Storage:
    """Bandwidth that all transfers share equally.

    Args:
        clock: the events.
        most: bytes per second, all together.
        link: bytes per second of one transfer.
    """

    def __init__(self, clock: Clock, most: float, link: float) -> None:
        self._clock, self._most, self._link = clock, most, link
        self._active: list[tuple[float, int, Callable[[], None]]] = []  # by the bytes of one transfer at the end
        self._each = 0.0  # bytes that a transfer has got that has been active since the beginning
        self._since = 0.0
        self._numbers = count()
        self.bytes = 0.0

    @property
    def is_busy(self) -> bool:
        return bool(self._active)

    @property
    def _rate(self) -> float:
        return min(self._link, self._most / len(self._active)) if self._active else self._link

    def _advance(self) -> None:
        self._each += (self._clock.now - self._since) * self._rate
        self._since = self._clock.now

    def transfer(self, size: float, then: Callable[[], None]) -> None:
        """Transfers bytes, and then calls `then`."""
        self._advance()
        self.bytes += size
        heapq.heappush(self._active, (self._each + size, next(self._numbers), then))

    def next_end(self) -> float:
        """Returns when the next transfer ends."""
        if not self._active:
            return math.inf
        return self._since + max(0.0, self._active[0][0] - self._each) / self._rate

    def end_one(self) -> None:
        """Ends the next transfer."""
        self._advance()
        heapq.heappop(self._active)[2]()


@dataclass
class Phase:
    """Tasks that are alike.

    Attributes:
        tasks: how many.
        window: how many are submitted at once.
        read, write: bytes of the storage that each reads and writes.
        compute: CPU seconds of a worker.
        client, scheduler: seconds of these for each.
    """

    tasks: int
    window: int
    read: float
    write: float
    compute: float
    client: float
    scheduler: float


@dataclass
class Cluster:
    """The machines of one simulation."""

    workers: int
    most: float
    link: float
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.client, self.scheduler = Server(self.clock), Server(self.clock)
        self.storage = Storage(self.clock, self.most, self.link)

    def run(self, phase: Phase) -> None:
        """Runs all tasks of a phase."""
        left, free, waiting = phase.tasks, self.workers, 0

        def submit() -> None:
            nonlocal left
            if left:
                left -= 1
                self.client.handle(phase.client / 2, schedule)

        def schedule() -> None:
            self.scheduler.handle(phase.scheduler / 2, enqueue)

        def enqueue() -> None:
            nonlocal free, waiting
            if free:
                free -= 1
                self.storage.transfer(phase.read, compute)
            else:
                waiting += 1

        def compute() -> None:
            self.clock.at(self.clock.now + phase.compute, write)

        def write() -> None:
            self.storage.transfer(phase.write, report)

        def report() -> None:
            nonlocal free, waiting
            if waiting:
                waiting -= 1
                self.storage.transfer(phase.read, compute)
            else:
                free += 1
            self.scheduler.handle(phase.scheduler / 2, finish)

        def finish() -> None:
            self.client.handle(phase.client / 2, submit)

        for _ in range(min(phase.window, phase.tasks)):
            submit()
        self.clock.run(self.storage)


def without(costs: dict[str, float], size: float, workers: int, latency: float) -> Iterator[Phase]:
    """Yields the phases if tokens travel to the client, which writes them."""
    gigabytes = TASK_BYTES / 1e9
    yield Phase(
        tasks=math.ceil(size / TASK_BYTES),
        window=2 * workers,
        read=TASK_BYTES,
        write=0,
        compute=costs["encode"] * gigabytes,
        client=costs["token_client"] * gigabytes + latency / PLANNING,
        scheduler=costs["token_scheduler"] * gigabytes,
    )


def shared(costs: dict[str, float], size: float, workers: int, latency: float) -> Iterator[Phase]:
    """Yields the phases if workers write."""
    each = min(MOST_TASKS, max(1, int(size // (TASK_BYTES * workers * PER_WORKER))))
    text = each * TASK_BYTES
    yield Phase(
        tasks=math.ceil(size / text),
        window=2 * workers,
        read=text,
        write=text * costs["id_bytes"],
        compute=costs["encode"] * text / 1e9,
        client=costs["bundle_client"] + (each - 1) * costs["task_client"] + latency * (1 + each / PLANNING),
        scheduler=costs["bundle_scheduler"],
    )
    shard = SHARD_TOKENS * ID_BYTES
    yield Phase(
        tasks=math.ceil(size * costs["id_bytes"] / shard),
        window=2 * workers,
        read=shard,
        write=shard,
        compute=costs["copy"] * shard / 1e9,
        client=costs["shard_client"] + latency * 2,
        scheduler=costs["shard_scheduler"],
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--costs", help="what cluster_costs.py printed")
    parser.add_argument("--terabytes", type=float, default=15)
    parser.add_argument("--workers", type=int, nargs="+", default=[16, 64, 256, 1024, 6400])
    parser.add_argument("--storage", type=float, default=100, help="GB/s")
    parser.add_argument("--node", type=float, default=12.5, help="GB/s")
    parser.add_argument("--link", type=float, default=2, help="GB/s")
    parser.add_argument("--latency", type=float, default=0.5, help="ms")
    arguments = parser.parse_args()
    costs = COSTS | (json.loads(Path(arguments.costs).read_text()) if arguments.costs else {})
    size, latency = arguments.terabytes * 1e12, arguments.latency / 1e3
    print("| workers | | time | text GB/s | workers busy | client busy | scheduler busy | storage busy |")
    print("|---|---|---|---|---|---|---|---|")
    for workers in arguments.workers:
        most = min(arguments.storage, arguments.node * max(1.0, workers / WORKERS_PER_NODE)) * 1e9
        # Without, the rate does not depend on the size: a small part of the corpus is enough.
        for name, phases, share in (("tokens to the client", without, 0.02), ("workers write", shared, 1)):
            cluster, computed = Cluster(workers, most, arguments.link * 1e9), 0.0
            for phase in phases(costs, size * share, workers, latency):
                cluster.run(phase)
                computed += phase.tasks * phase.compute
            time = cluster.clock.now
            shares = (computed / workers, cluster.client.busy, cluster.scheduler.busy, cluster.storage.bytes / most)
            busy = " | ".join(f"{part / time:.0%}" for part in shares)
            hours = time / share / 3600
            shown = f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"
            print(f"| {workers} | {name} | {shown} | {size * share / time / 1e9:.2f} | {busy} |", flush=True)


if __name__ == "__main__":
    main()
