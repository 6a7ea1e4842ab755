"""Runs `make faults`, `make soak` and `make soak-hours`. Prints a line for each part, and its problems."""

from __future__ import annotations

import subprocess
import sys
import time

import shim

# Scripts of this folder and their arguments; the first ones run under the shim.
FAULTS = [
    ["inject.py", "errors"],
    ["inject.py", "deaths"],
    ["inject.py", "order"],
    ["memory.py"],
    ["corrupt.py", "--each", "2000"],
]
SOAK = [
    ["kills.py", "--kills", "1000"],
    ["inject.py", "errors"],
    ["inject.py", "deaths"],
    ["memory.py"],
    ["corrupt.py", "--each", "6000", "--times"],
    ["hostile.py"],
    ["workers.py", "--kills", "100", "--dask-kills", "25"],
]


def parts(name: str, *arguments: str) -> list[list[str]]:
    """Returns the scripts and arguments of one of the three commands."""
    if name == "hours":
        return [["hours.py", "--hours", *arguments]]
    return FAULTS if name == "faults" else SOAK


def main() -> int:
    """See above; the exit code is 1 if any part failed."""
    reason = shim.unavailable()
    if reason:
        print(f"not run: {reason}")
        return 1
    failed = 0
    for script, *arguments in parts(*sys.argv[1:]):
        start = time.monotonic()
        print(f"== {script} {' '.join(arguments)}", flush=True)
        result = subprocess.run(shim.command(script, *arguments), env=shim.environment(), text=True)
        print(f"== exit code {result.returncode}, {time.monotonic() - start:.0f} s", flush=True)
        failed += result.returncode != 0
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
