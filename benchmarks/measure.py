"""Runs commands and summarizes results, for all benchmarks."""

from __future__ import annotations

import os
import platform
import signal
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass

# The environment of processes that measure their own CPU time. When numpy is imported, OpenBLAS starts threads that
# spin for tens of milliseconds, and process_time would add them to whatever is measured meanwhile.
ONE_BLAS_THREAD = {"OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Run:
    """One finished process.

    Attributes:
        seconds: from start to exit.
        megabytes: its peak memory.
        output: what it printed.
        cpu_seconds: user and system time of all its threads.
    """

    seconds: float
    megabytes: float
    output: str
    cpu_seconds: float


def run(command: list[str], timeout: float) -> Run | str:
    """Runs a process to its end, or returns in a word why there is no result."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    signal.signal(signal.SIGALRM, lambda *_: os.killpg(process.pid, signal.SIGKILL))
    signal.alarm(max(1, int(timeout)))
    assert process.stdout is not None and process.stderr is not None
    output = process.stdout.read().decode()
    errors = process.stderr.read().decode()
    _, status, usage = os.wait4(process.pid, 0)
    signal.alarm(0)
    seconds = time.monotonic() - start
    if os.WIFSIGNALED(status):
        return f"> {timeout:.0f} s" if os.WTERMSIG(status) == signal.SIGKILL else "crashed"
    if os.waitstatus_to_exitcode(status) != 0:
        print(errors, file=sys.stderr)
        return "failed"
    return Run(seconds, usage.ru_maxrss / 1024, output, usage.ru_utime + usage.ru_stime)


def run_in_turn(commands: dict[str, list[str]], runs: int, timeout: float) -> dict[str, list[Run | str]]:
    """Runs each command several times, in turn, so that changes in the machine's speed affect all of them alike. A
    command that fails is not run again."""
    results: dict[str, list[Run | str]] = {name: [] for name in commands}
    for i in range(runs):
        for name, command in commands.items():
            if any(isinstance(result, str) for result in results[name]):
                continue
            print(f"\r{i + 1}/{runs} {name}\033[K", end="", file=sys.stderr, flush=True)
            results[name].append(run(command, timeout))
    print("\r\033[K", end="", file=sys.stderr)
    return results


def median(values: list[float]) -> float:
    """Returns the middle result."""
    return statistics.median(values)


def machine() -> str:
    """Describes the machine in one line."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as stream:
            model = next(line.split(":")[1].strip() for line in stream if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    return f"{model}, {os.cpu_count()} CPUs, {platform.system()}, Python {platform.python_version()}"


def table(header: list[str], rows: list[list[str]]) -> str:
    """Returns a Markdown table."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(w) for cell, w in zip(row, widths)) + " |" for row in [header, *rows]]
    return "\n".join([lines[0], "|" + "|".join("-" * (w + 2) for w in widths) + "|", *lines[1:]])
