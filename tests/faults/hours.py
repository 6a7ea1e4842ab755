"""Repeats a mix of operations in one process for hours: hours.py [--hours H | --rounds N].

A round trains, encodes and decodes with threads, writes every kind of file, cleans a corpus with worker processes,
reads damaged files, interrupts calls, and kills a child process, whose run it resumes. Every round must give the
results of the first one. Memory must not grow by more than its noise, and no descriptor, thread, process or temporary
file may be left. Runs under the shim, which knows the number of bytes on the heap. After each round, the C library
returns free memory to the system: otherwise RSS would depend on which threads happened to run at the same time.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import hashlib
import multiprocessing
import os
import random
import signal
import statistics
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "py"))

import shim  # noqa: E402
from corpora import EOT, documents, small_tokenizer  # noqa: E402
from inject import Trial  # noqa: E402
from operations import OPERATIONS, content  # noqa: E402
from texts import chinese, english, mixed  # noqa: E402

import pybpe  # noqa: E402
from pybpe.corpus import clean  # noqa: E402
from pybpe.loading import PackedSequences  # noqa: E402

MIB = 1 << 20
WARM = 0.2  # the share of the rounds before which nothing is measured: caches fill, and the heap finds its size
BLOCKS = 8
Task = Callable[[], Any]


# ------------------------------------------------------------------------------------------------------
# What a round does


def texts() -> list[str]:
    """Returns texts of many kinds, about 600 KB in all."""
    return [*documents(200), english()[:200_000], chinese(), mixed(), "ab" * 20_000, EOT * 50]


def train_in_many_ways() -> list[Any]:
    """Returns the merges of trainings with different settings."""
    some = texts()[:150]
    ways: list[dict[str, Any]] = [
        {},
        {"tie_break": "huggingface", "workers": 1},
        {"pattern": r"\w+|\W", "workers": 2},
        {"pattern": "o200k", "normalizer": "NFKC"},
        {"superwords": True},
    ]
    return [pybpe.train(iter(some), vocab_size=700, special_tokens=[EOT], **way).merges for way in ways]


def encode_with_threads() -> list[Any]:
    """Encodes and decodes with several threads that share a tokenizer."""
    tok, some = small_tokenizer(), texts()
    with ThreadPoolExecutor(4) as pool:
        ids = list(pool.map(tok.encode, some))
    assert tok.encode_batch(some, num_threads=3) == ids
    assert tok.decode_batch(ids) == some
    fresh = pybpe.Tokenizer(tok.model.vocab, tok.merges, tok.special_tokens)
    return [ids, fresh.encode_with_offsets(some[0]), fresh.encode_dropout(some[1], seed=3, dropout=0.1)]


def clean_with_processes(folder: Path) -> dict[str, bytes]:
    """Cleans a corpus with worker processes and most steps."""
    out = folder / "clean"
    out.mkdir(exist_ok=True)
    (folder / "in.txt").write_text(EOT.join(documents(150) * 2))
    clean(
        folder / "in.txt", out / "out.jsonl", dedup="normalized", near_dedup=0.8, scrub_pii=True,
        workers=2, force=True, progress=False,
    )  # fmt: skip
    return {"out.jsonl": (out / "out.jsonl").read_bytes()}


def read_rows(folder: Path) -> list[Any]:
    """Writes shards, and reads them as rows of tokens."""
    (folder / "rows.txt").write_text(EOT.join(documents(60)))
    pybpe.binarize(small_tokenizer(), folder / "rows.txt", folder / "rows", splits=(1,), force=True, progress=False)
    rows = PackedSequences(str(folder / "rows" / "*_train_*.bin"), 64)
    return [rows[i].targets.tobytes() for i in range(0, len(rows), 7)]


def read_damaged_files(folder: Path) -> list[str]:
    """Returns the errors of files that were cut."""
    damaged, found = folder / "damaged", []
    damaged.mkdir(exist_ok=True)
    small_tokenizer().save(damaged / "t.json")
    small_tokenizer().save(damaged / "t.bin")
    pybpe.count_words(iter(documents(5))).save(damaged / "t.counts")
    for name, read in [("t.json", pybpe.Tokenizer.from_file), ("t.bin", pybpe.Tokenizer.from_file),
                       ("t.counts", pybpe.Counts.load)]:  # fmt: skip
        os.truncate(damaged / name, (damaged / name).stat().st_size // 2)
        try:
            read(damaged / name)  # type: ignore[operator]
        except pybpe.Error as error:
            found.append(str(error))
    return found


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def interrupt_calls(chance: random.Random) -> None:
    """Interrupts calls at random moments. Their results do not matter."""
    long = english() * 2
    calls: list[Task] = [
        lambda: pybpe.train(iter([long]), vocab_size=3000),
        lambda: small_tokenizer().encode_batch([long] * 4),
        lambda: small_tokenizer().decode(small_tokenizer().encode(long)),
    ]
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        for call in calls:
            try:
                signal.setitimer(signal.ITIMER_REAL, 0.001 + chance.random() * 0.1)
                call()
                signal.setitimer(signal.ITIMER_REAL, 0)
            except KeyboardInterrupt:
                pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run_again(trial: Trial) -> dict[str, bytes]:
    """Runs an operation over its older result."""
    trial.reset()
    trial.operation.run(trial.inputs, trial.out)
    return content(trial.out)


def kill_and_resume(trial: Trial, chance: random.Random) -> dict[str, bytes]:
    """Kills a child that runs an operation, and runs it again."""
    trial.reset()
    child = os.fork()
    if child == 0:
        trial.operation.run(trial.inputs, trial.out)
        os._exit(0)
    time.sleep(chance.random() * 0.3)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    for file in trial.left_behind():
        (trial.out / file).unlink()
    trial.operation.run(trial.inputs, trial.out)
    return content(trial.out)


def tasks(folder: Path) -> Iterator[tuple[str, Task]]:
    """Yields the name of each task and its function, whose result must always be the same."""
    chance = random.Random(11)
    for operation in OPERATIONS:
        place = folder / operation.name.replace(" ", "-")
        place.mkdir()
        trial = Trial(operation, place)
        yield operation.name, lambda trial=trial: run_again(trial)
        if operation.resumes:
            yield f"{operation.name}, killed", lambda trial=trial: kill_and_resume(trial, chance)
    yield "trainings", train_in_many_ways
    yield "threads", encode_with_threads
    yield "corpus", lambda: clean_with_processes(folder)
    yield "rows", lambda: read_rows(folder)
    yield "damaged files", lambda: read_damaged_files(folder)
    yield "interrupts", lambda: interrupt_calls(chance)


def digest(result: Any) -> str:
    return hashlib.sha256(repr(result).encode()).hexdigest()


# ------------------------------------------------------------------------------------------------------
# What is measured


@dataclass(frozen=True)
class Measure:
    """The state of the process after a round.

    Attributes:
        seconds: since the start.
        rss, heap: bytes: resident, and allocated.
        left: descriptors, threads, child processes and files in the folder.
    """

    seconds: float
    rss: int
    heap: int
    left: tuple[int, int, int, int]


def measure(start: float, folder: Path) -> Measure:
    deadline = time.monotonic() + 10  # an interrupted call does not wait for its threads
    while threading.active_count() > 1 and time.monotonic() < deadline:
        time.sleep(0.01)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    left = (len(os.listdir("/proc/self/fd")), threading.active_count(), len(multiprocessing.active_children()))
    files = sum(len(names) for _, _, names in os.walk(folder))
    return Measure(time.monotonic() - start, pages * os.sysconf("SC_PAGE_SIZE"), shim.memory_now(), (*left, files))


def slope(hours: list[float], values: list[float]) -> tuple[float, float]:
    """Returns the growth per hour and its standard error, from the medians of a few blocks of rounds: the values of
    rounds that follow one another are alike, so each alone would make the error seem too small."""
    size = len(values) // BLOCKS
    blocks = [slice(i * size, (i + 1) * size) for i in range(BLOCKS)]
    x = [statistics.mean(hours[block]) for block in blocks]
    y = [statistics.median(values[block]) for block in blocks]
    fit = statistics.linear_regression(x, y)
    rest = sum((b - fit.slope * a - fit.intercept) ** 2 for a, b in zip(x, y)) / (BLOCKS - 2)
    spread = sum((a - statistics.mean(x)) ** 2 for a in x)
    return fit.slope, float((rest / spread) ** 0.5)


def growth_problems(measures: list[Measure]) -> list[str]:
    """Prints the growth of memory. It is a problem if it is beyond its noise and larger than 1 MiB in the whole run."""
    kept = measures[int(len(measures) * WARM) :]
    if len(kept) < 2 * BLOCKS:
        return []
    hours = [one.seconds / 3600 for one in kept]
    wrong = []
    for name, values in (("RSS", [one.rss for one in kept]), ("heap", [one.heap for one in kept])):
        per_hour, error = slope(hours, [value / MIB for value in values])
        total = per_hour * (hours[-1] - hours[0])
        print(f"{name}: {values[0] / MIB:.1f} MiB, then {values[-1] / MIB:.1f}; "
              f"slope {per_hour:+.3f} MiB an hour, standard error {error:.3f}")  # fmt: skip
        if per_hour > 3 * error and total > 1:
            wrong.append(f"{name} grows: {total:.2f} MiB in this run")
    return wrong


def run_rounds(folder: Path, hours: float, rounds: int) -> list[str]:
    """Returns what went wrong."""
    all_tasks = list(tasks(folder))
    first: dict[str, str] = {}
    measures: list[Measure] = []
    wrong: list[str] = []
    start = time.monotonic()
    while len(measures) < rounds and time.monotonic() - start < hours * 3600:
        for name, task in all_tasks:
            found = digest(task())
            if first.setdefault(name, found) != found:
                wrong.append(f"round {len(measures)}: {name}: another result than in round 0")
        measures.append(measure(start, folder))
        now = measures[-1]
        if now.left != measures[min(1, len(measures) - 1)].left:
            wrong.append(f"round {len(measures) - 1}: descriptors, threads, processes, files: {now.left}")
        print(f"round {len(measures) - 1}: {now.seconds:.0f} s, RSS {now.rss / MIB:.2f} MiB, "
              f"heap {now.heap / MIB:.3f} MiB, {now.left}", flush=True)  # fmt: skip
    return [*wrong, *growth_problems(measures)]


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--hours", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=1 << 40)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory(prefix="pybpe-hours-", dir=shim.fast_folder()) as folder:
        wrong = run_rounds(Path(folder), arguments.hours, arguments.rounds)
    print(*wrong[:30], sep="\n")
    print(f"hours: {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
