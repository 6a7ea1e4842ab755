"""Makes every system call of every writing operation fail in turn, and checks the remaining files.

Runs under the shim: python -m pytest does it by test_faults.py, and `make faults` with all operations:

    inject.py errors|deaths|order [OPERATION[=N]...]

N tests only every N-th call.

errors: each call fails once with EIO; it and all later ones fail with ENOSPC; it is short; or it is interrupted.
deaths: the process is killed before or after each call, and the same operation is run again.
order:  every file is flushed before it gets its name, and its folder is flushed afterward.
"""

from __future__ import annotations

import argparse
import errno
import gc
import os
import shutil
import signal
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import shim
from operations import OPERATIONS, Operation, content, make_inputs, workspace
from shim import Action, Kind

import pybpe

WRITING = Kind.OPEN | Kind.WRITE | Kind.SYNC | Kind.CLOSE | Kind.RENAME | Kind.TRUNCATE
HIDDEN = ".pybpe-unfinished"

# What fails, how, and whether the operation may still succeed.
FAULTS = {
    "EIO": (WRITING | Kind.READ | Kind.OPEN_READ, Action.FAIL_ONCE, errno.EIO),
    "ENOSPC": (Kind.OPEN | Kind.WRITE | Kind.SYNC | Kind.CLOSE, Action.FAIL_ON, errno.ENOSPC),
    "short": (Kind.WRITE | Kind.READ, Action.SHORT, 0),
    "EINTR": (Kind.OPEN | Kind.OPEN_READ | Kind.WRITE | Kind.READ | Kind.SYNC, Action.FAIL_ONCE, errno.EINTR),
}
HARMLESS = ("short", "EINTR")


class Trial:
    """One operation in its own folders.

    Attributes:
        inputs, out: its folders.
        old: what `out` contains before: the result of an older run, with other content.
        new: what it holds after a run without faults.
    """

    def __init__(self, operation: Operation, folder: Path) -> None:
        self.operation, self.folder = operation, folder
        self.inputs, self.out = folder / "inputs", folder / "out"
        made = folder.with_name("made")  # once for all operations
        if not made.exists():
            make_inputs(made)
        shutil.copytree(made, self.inputs)
        self.out.mkdir()
        operation.run(self.inputs, self.out)
        self.new = content(self.out)
        self.old = {name: data[: len(data) // 2] + b" old" for name, data in self.new.items()}
        self.reset()

    def reset(self) -> None:
        """Puts the older result back."""
        shutil.rmtree(self.out)
        for name, data in self.old.items():
            path = self.out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def torn(self) -> list[str]:
        """Returns named files that are neither the old nor the new ones."""
        found = content(self.out)
        named = {name: data for name, data in found.items() if not self.is_unnamed(name)}
        return [name for name, data in named.items() if data not in (self.old.get(name), self.new.get(name))]

    def left_behind(self) -> list[str]:
        """Temporary files."""
        return [name for name in content(self.out) if self.is_unnamed(name) and not name.startswith(HIDDEN)
                and name not in self.old and not self.is_progress(name)]  # fmt: skip

    @staticmethod
    def is_unnamed(name: str) -> bool:
        """Returns whether a file is the state of a run that may resume, or a temporary file."""
        return Trial.is_progress(name) or name.endswith((".tmp", ".lock"))

    @staticmethod
    def is_progress(name: str) -> bool:
        """Returns whether a file belongs to a run that may resume, or whose next run removes it."""
        return HIDDEN in name or ".unfinished/" in name or name == workspace.RECORD  # which knows more than is there

    def again(self) -> str:
        """Runs the operation again without a fault. Returns what is wrong then, or ""."""
        self.operation.run(self.inputs, self.out)
        found = content(self.out)
        if found == self.new:
            return ""
        differ = [name for name in found.keys() | self.new.keys() if found.get(name) != self.new.get(name)]
        return f"after running it again, other content: {sorted(differ)}"


def problems_of(error: BaseException, trial: Trial, code: int) -> list[str]:
    """Returns what is wrong with an exception."""
    found = []
    if isinstance(error, pybpe.errors.LimitError) and trial.operation.name == "workspace":
        pass  # the final check, which reports on all files at once
    elif not (isinstance(error, pybpe.Error) and isinstance(error, OSError)):
        found.append(f"raised {type(error).__module__}.{type(error).__name__}")
    elif error.errno != code:
        found.append(f"errno {error.errno}")
    text = str(error)
    if str(trial.folder) not in text or os.strerror(code) not in text and "disk is full" not in text:
        found.append("the message does not name the file and the reason")
    return [f"{problem}: {text!r}" for problem in found]


def try_errors(trial: Trial, every: int, counts: Counter[str]) -> list[str]:
    """Tries all faults at all calls of one operation. Returns what went wrong."""
    wrong = []
    for name, (kinds, action, code) in FAULTS.items():
        at = 1
        while True:
            trial.reset()
            gc.collect()
            descriptors = len(os.listdir("/proc/self/fd"))
            caught: BaseException | None = None
            shim.calls()
            with shim.fault(kinds, at, action, code):
                try:
                    trial.operation.run(trial.inputs, trial.out)
                except BaseException as error:
                    caught = error.with_traceback(None)
            if not shim.fired():
                break
            counts[name] += 1
            where = f"{trial.operation.name}, {name} at call {at}"
            found = problems_of(caught, trial, code) if caught is not None else []
            if caught is not None and name in HARMLESS:
                found.append(f"failed: {caught!r}")
            if caught is None and name == "ENOSPC":
                found.append("no error")
            if caught is None and content(trial.out) != trial.new:
                found.append("no error, and another result")
            found += [f"incomplete: {file}" for file in trial.torn()]
            found += [f"leftover: {file}" for file in trial.left_behind()]
            caught = None
            gc.collect()
            if len(os.listdir("/proc/self/fd")) != descriptors:
                found.append("a file is still open")
            found += filter(None, [trial.again()])
            wrong += [f"{where}: {problem}" for problem in found]
            at += every
    return wrong


def try_deaths(trial: Trial, every: int, counts: Counter[str]) -> list[str]:
    """Kills at all calls of one operation."""
    wrong = []
    for action in (Action.DIE_BEFORE, Action.DIE_AFTER):
        at = 1
        while True:
            trial.reset()
            child = os.fork()
            if child == 0:
                with shim.fault(WRITING | Kind.UNLINK, at, action):
                    trial.operation.run(trial.inputs, trial.out)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            if status == 0:
                break
            where = f"{trial.operation.name}, {action.name} call {at}"
            if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL:
                wrong.append(f"{where}: ended with status {status}")
            counts[action.name] += 1
            wrong += [f"{where}: incomplete: {file}" for file in trial.torn()]
            for file in trial.left_behind():
                if not file.endswith((".tmp", ".lock")):  # the next run takes both over
                    wrong.append(f"{where}: leftover: {file}")
                (trial.out / file).unlink()
            wrong += [f"{where}: {problem}" for problem in filter(None, [trial.again()])]
            at += every
    return wrong


def check_order(trial: Trial, counts: Counter[str]) -> list[str]:
    """write < fsync < rename < fsync of the folder, for every file."""
    shutil.rmtree(trial.out)
    trial.out.mkdir()
    shim.calls()
    trial.operation.run(trial.inputs, trial.out)
    wrong = []
    dirty: set[str] = set()  # written, not flushed
    unsettled: set[str] = set()  # folders in which a name is not flushed
    renamed: set[str] = set()
    for what, path, other in shim.calls():
        if what == "write":
            dirty.add(path)
            if path in renamed:
                wrong.append(f"{path} is written after it has its name")
        elif what == "fsync":
            dirty.discard(path)
            unsettled.discard(path.rstrip("/"))
        elif what == "rename":
            counts["renames"] += 1
            if "/tasks/" in other or other.endswith("/results"):  # whose readers compare checksums
                continue
            if path in dirty:
                wrong.append(f"{other} gets its name before its content is flushed")
            renamed.add(other)
            unsettled.add(os.path.dirname(other))
        elif what == "open-write" and not Trial.is_unnamed(path):
            wrong.append(f"{path} is written in place")
    wrong += [f"{folder}: a name in it is never flushed" for folder in unsettled]
    wrong += [f"{trial.out / name} never got its name by a rename" for name in content(trial.out)
              if str(trial.out / name) not in renamed]  # fmt: skip
    return [f"{trial.operation.name}, order: {problem}" for problem in wrong]


def main() -> int:
    """See above. Prints a line for each problem, and the counts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("errors", "deaths", "order"))
    parser.add_argument("operations", nargs="*", help="NAME or NAME=N; all operations if there is none")
    arguments = parser.parse_args()
    every = {name: int(step or 1) for name, _, step in (word.partition("=") for word in arguments.operations)}
    warnings.simplefilter("ignore", ResourceWarning)
    gc.freeze()  # garbage collections skip what is loaded now
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    with tempfile.TemporaryDirectory(prefix="pybpe-faults-", dir=shim.fast_folder()) as folder:
        for operation in OPERATIONS:
            if every and operation.name not in every:
                continue
            place = Path(folder).resolve() / operation.name.replace(" ", "-")
            place.mkdir()
            shim.watch("")
            trial = Trial(operation, place)
            shim.watch(place)
            before, known = sum(counts.values()), len(wrong)
            if arguments.what == "errors":
                wrong += try_errors(trial, every.get(operation.name, 1), counts)
            elif arguments.what == "deaths":
                wrong += try_deaths(trial, every.get(operation.name, 1), counts)
            else:
                wrong += check_order(trial, counts)
            counts["operations"] += 1
            print(f"{operation.name}: {sum(counts.values()) - before - 1}", *wrong[known:], sep="\n  ", flush=True)
    print(f"{arguments.what}: {dict(counts)}, {len(wrong)} problems")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
