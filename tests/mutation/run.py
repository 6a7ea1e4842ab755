"""Mutation testing: puts small faults into the C library, one at a time, and counts how many the C tests notice.

    make mutants [count=50] [seed=COMMIT] [files="csrc/json.c ..."]

A fault (operators.py) is noticed if a test program fails, crashes, or takes ten times as long as it should. Faults that
do not compile or do not change the object code are drawn again. The run fails if a fault survives that survivors.txt
does not list. Each of its lines gives the reason: most such faults change only speed or the size of a table.

The tests run in the order of their duration, so most faults are found within a second.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from operators import Mutant, mutants

ROOT = Path(__file__).resolve().parents[2]
SURVIVORS = Path(__file__).with_name("survivors.txt")
BUILD = ROOT / "build" / "mutants"
# Code for other machines, and code that is generated.
LEFT_OUT = {"pretok_neon.c", "pretok_avx2.c", "pretok_swar.c"}
FLAGS = [
    "-std=c11",
    "-O1",
    "-w",
    "-D_GNU_SOURCE",
    '-DPYBPE_VERSION="mutant"',
    "-Icsrc",
    "-Itests/c",
    "-Illmc_compat/include",
]


def run(*command: object, limit: float | None = None) -> bool:
    """Returns whether a command succeeds, within `limit` seconds."""
    try:
        return (
            subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True, timeout=limit).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False


@dataclass(frozen=True)
class Test:
    """A test program.

    Attributes:
        name: that of the program.
        object: its object file.
        seconds: how long it takes without a fault.
    """

    name: str
    object: Path
    seconds: float

    def passes(self, library: list[Path], program: Path) -> bool:
        """Links the test with the objects of a library, and runs it."""
        if not run("cc", "-o", program, self.object, *library, "-lm", "-pthread"):
            return False
        return run(program, limit=10 * self.seconds + 5)


@dataclass(frozen=True)
class Library:
    """The library without faults.

    Attributes:
        objects: the object file of each source.
        tests: the fastest first.
    """

    objects: dict[Path, Path]
    tests: list[Test]

    @classmethod
    def build(cls) -> Library:
        """Compiles everything, and measures the tests."""
        BUILD.mkdir(parents=True, exist_ok=True)
        objects = {path: BUILD / f"{path.stem}.o" for path in sorted((ROOT / "csrc").glob("*.c"))}
        tests = {path: BUILD / f"{path.stem}.o" for path in sorted((ROOT / "tests" / "c").glob("test_*.c"))}
        with ThreadPoolExecutor(2) as pool:
            done = pool.map(
                lambda item: run("cc", *FLAGS, "-c", "-o", item[1], item[0]), [*objects.items(), *tests.items()]
            )
        if not all(done):
            raise SystemExit("the library or a test does not compile")
        timed = [cls._timed(path.stem, made, list(objects.values())) for path, made in tests.items()]
        return cls(objects, sorted(timed, key=lambda test: test.seconds))

    @staticmethod
    def _timed(name: str, made: Path, library: list[Path]) -> Test:
        test, start = Test(name, made, 60.0), time.monotonic()
        if not test.passes(library, BUILD / name):
            raise SystemExit(f"{name}: fails without a fault")
        return Test(name, made, time.monotonic() - start)

    def judge(self, path: Path, source: str, number: int) -> str:
        """Returns "invalid", "noticed by TEST", or "survived" for a source with a fault."""
        folder = BUILD / str(number)
        folder.mkdir(exist_ok=True)
        changed, made = folder / path.name, folder / "changed.o"
        changed.write_text(source, encoding="utf-8")
        if not run("cc", *FLAGS, "-c", "-o", made, changed):
            return "invalid"
        if made.read_bytes() == self.objects[path].read_bytes():
            return "invalid"
        library = [made if source == path else other for source, other in self.objects.items()]
        for test in self.tests:
            if not test.passes(library, folder / test.name):
                return f"noticed by {test.name}"
        return "survived"


@dataclass(frozen=True)
class Drawn:
    """A fault that was drawn: the source, its text, and the fault."""

    path: Path
    source: str
    mutant: Mutant

    @property
    def name(self) -> str:
        """What survivors.txt calls it: the file, the line's text, and the change."""
        line = self.source.splitlines()[self.mutant.line - 1].strip()
        change = self.mutant.describe(self.source).partition(": ")[2]
        return f"{self.path.name}: {line}: {change}"


def draw(files: list[Path], seed: str) -> list[Drawn]:
    """Returns all faults in an order that depends on `seed`."""
    drawn = []
    for path in files:
        source = path.read_text(encoding="utf-8")
        drawn += [Drawn(path, source, mutant) for mutant in mutants(source)]
    random.Random(hashlib.sha256(seed.encode()).digest()).shuffle(drawn)
    return drawn


def known_survivors() -> set[str]:
    """Returns the faults of survivors.txt, without their reasons."""
    lines = SURVIVORS.read_text(encoding="utf-8").splitlines()
    return {line.partition(" # ")[0] for line in lines if line and not line.startswith("#")}


def judged(library: Library, drawn: list[Drawn], count: int, workers: int) -> Iterator[tuple[Drawn, str]]:
    """Yields `count` faults that change the object code, with what became of each."""
    with ThreadPoolExecutor(workers) as pool:
        for first in range(0, len(drawn), workers):
            some = drawn[first : first + workers]
            jobs = [pool.submit(library.judge, one.path, one.mutant.apply(one.source), k) for k, one in enumerate(some)]
            for one, job in zip(some, jobs):
                if job.result() != "invalid":
                    yield one, job.result()
                    count -= 1
            if count <= 0:
                return


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help="default: all of csrc")
    parser.add_argument("--count", type=int, default=50, help="of faults (default 50)")
    parser.add_argument("--seed", default="1", help="which faults are drawn, such as the hash of a commit")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    files = [path.resolve() for path in args.files] or sorted((ROOT / "csrc").glob("*.c"))
    drawn = draw([path for path in files if path.name not in LEFT_OUT], args.seed)
    library, known = Library.build(), known_survivors()
    total, listed, new = 0, 0, []
    for one, result in judged(library, drawn, args.count, args.workers):
        total += 1
        if result == "survived":
            listed += one.name in known
            new += [] if one.name in known else [one.name]
            print(f"{'listed' if one.name in known else 'SURVIVED'}: {one.name}", flush=True)
    print(f"{total} faults of {len(drawn)}: {total - listed - len(new)} noticed, {listed} listed, {len(new)} survived")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())
