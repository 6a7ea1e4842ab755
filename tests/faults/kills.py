"""Kills training, binarize, mix, clean and saving with SIGKILL at random moments, and runs them again.

    kills.py [--kills N] [OPERATION...]

After every kill, no file with its final name may be incomplete; the next run, which may be killed too, resumes
from there, and a run that is not killed must leave exactly the files of an undisturbed run. The moments come from a
fixed seed.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import shim
from inject import Trial
from operations import OPERATIONS

NAMES = ("train", "binarize llmc", "binarize megatron", "mix", "clean corpus", "save", "save bin")


def duration(trial: Trial) -> float:
    """Returns the most seconds that any of a few runs in forked processes takes."""
    longest = 0.0
    for _ in range(5):
        trial.reset()
        start = time.monotonic()
        os.waitpid(_start(trial), 0)
        longest = max(longest, time.monotonic() - start)
    return longest


def _start(trial: Trial) -> int:
    child = os.fork()
    if child == 0:
        trial.operation.run(trial.inputs, trial.out)
        os._exit(0)
    return child


def kill_often(trial: Trial, kills: int, rng: random.Random) -> tuple[int, list[str]]:
    """Returns how many runs came through, and what went wrong."""
    wrong: list[str] = []
    longest = duration(trial)
    killed = through = 0
    trial.reset()
    while killed < kills:
        child = _start(trial)
        time.sleep(rng.random() * longest)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            killed += 1
        elif status:
            wrong.append(f"{trial.operation.name}, after {killed} kills: exit status {status}")
        wrong += [f"{trial.operation.name}, kill {killed}: incomplete: {file}" for file in trial.torn()]
        for file in trial.left_behind():
            if file.endswith(".tmp"):
                (trial.out / file).unlink()
            else:
                wrong.append(f"{trial.operation.name}, kill {killed}: leftover: {file}")
        if rng.random() < 0.3:
            through += 1
            wrong += [f"{trial.operation.name}, kill {killed}: {problem}" for problem in [trial.again()] if problem]
            trial.reset()
    return through, wrong


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=1000, help="of each operation")
    parser.add_argument("operations", nargs="*")
    arguments = parser.parse_intermixed_args()
    warnings.simplefilter("ignore")
    wrong: list[str] = []
    total = 0
    with tempfile.TemporaryDirectory(prefix="pybpe-kills-", dir=shim.fast_folder()) as folder:
        for operation in OPERATIONS:
            if operation.name not in (arguments.operations or NAMES):
                continue
            place = Path(folder) / operation.name.replace(" ", "-")
            place.mkdir()
            through, found = kill_often(Trial(operation, place), arguments.kills, random.Random(operation.name))
            wrong += found
            total += arguments.kills
            print(
                f"{operation.name}: {arguments.kills} kills, {through} runs through",
                *found[:10],
                sep="\n  ",
                flush=True,
            )
    print(f"kills: {total}, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
