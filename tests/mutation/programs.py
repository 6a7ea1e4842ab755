"""The C library and its test programs, built so that judging one fault takes a fraction of a second.

The library is a shared object. A fault is one source, compiled again and preloaded, so it replaces that part of the
library in every test program without linking them. The programs stop at their first failure. gcov says which of them
reach a line; only these run, the fastest first. If all of them pass, the quick ones run again under AddressSanitizer
and UndefinedBehaviorSanitizer, linked with the fault and with the library of `make sanitize`.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import pickle
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "mutants"
SANITIZED_LIBRARY = ROOT / "build" / "sanitize" / "libpybpe.a"
PLAIN = ["-O1", "-fPIC"]
SANITIZED = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
COUNTED = ["-O0", "--coverage"]
FLAGS = [
    "-std=c11",
    "-w",
    "-D_GNU_SOURCE",
    "-DCHECK_STOPS",
    f'-DSCRATCH_IN="{BUILD}/scratch"',
    "-Icsrc",
    "-Itests/c",
    "-Illmc_compat/include",
]
LIBRARIES = ["-lm", "-pthread"]
LEAST_LIMIT = 20.0  # seconds of waiting after which a program hangs, however busy the machine is
MEMORY = 6 << 20  # KiB of address space: a fault may ask for too much
# No program that takes longer runs under sanitizers. Most take less than a second, so a busy machine leaves out the
# same as a quiet one.
SANITIZED_SECONDS = 5.0


def run(*command: object, limit: float | None = None, **variables: str) -> bool:
    """Returns whether a command succeeds, within `limit` seconds."""
    try:
        return (
            subprocess.run(
                [str(part) for part in command],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=limit,
                env={**os.environ, **variables},
            ).returncode
            == 0
        )
    except subprocess.TimeoutExpired:
        return False


def run_limited(program: Path, seconds: float, *, preload: Path | None = None) -> bool:
    """Returns whether a test program passes. `seconds` is the processor time that it takes without a fault."""
    shell = f"ulimit -t {math.ceil(5 * seconds + 0.5)}; "
    shell += f'ulimit -v {MEMORY}; LD_PRELOAD="{preload}" ' if preload else ""
    limit = LEAST_LIMIT + 20 * seconds
    return run("sh", "-c", shell + f'exec "{program}"', limit=limit, ASAN_OPTIONS="hard_rss_limit_mb=4000")


def digest(*sources: Path) -> str:
    """Returns a hash of the library, the headers of the tests, the flags, and these sources."""
    folders = [ROOT / "csrc", ROOT / "tests" / "c", ROOT / "llmc_compat" / "include" / "llmc"]
    files = [
        *sorted(path for folder in folders for path in folder.rglob("*.h")),
        *sorted(folders[0].rglob("*.c")),
        *sources,
    ]
    content = repr([FLAGS, PLAIN, COUNTED]).encode() + b"".join(path.read_bytes() for path in files)
    return hashlib.sha256(content).hexdigest()[:16]


def compile_one(source: Path, folder: str, flags: list[str]) -> Path:
    """Returns the object file of a source, which is compiled unless that was done before."""
    made, mark = BUILD / folder / f"{source.stem}.o", BUILD / folder / f"{source.stem}.{digest(source)}"
    if not mark.exists():
        made.parent.mkdir(parents=True, exist_ok=True)
        if not run("cc", *FLAGS, *flags, "-c", "-o", made, source):
            raise SystemExit(f"{source} does not compile")
        mark.touch()
    return made


@dataclass(frozen=True)
class Test:
    """A test program.

    Attributes:
        name: the program's name.
        seconds: the processor time that it takes without a fault.
        lines: the lines of each source that it reaches.
    """

    name: str
    seconds: float
    lines: dict[str, set[int]]

    def share(self, source: str) -> float:
        """Returns how many of the lines that the program reaches are in a source."""
        return len(self.lines.get(source, ())) / max(1, sum(map(len, self.lines.values())))

    @property
    def program(self) -> Path:
        """Uses the shared library."""
        return BUILD / "plain" / self.name

    @property
    def source(self) -> Path:
        """The program's C file."""
        return ROOT / "tests" / "c" / f"{self.name}.c"


@dataclass(frozen=True)
class Library:
    """The library without faults.

    Attributes:
        tests: the fastest first.
        counted: the lines of each source that have code.
        noticed: how many faults of a source each test has noticed.
    """

    tests: list[Test]
    counted: dict[str, set[int]]
    noticed: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def build(cls) -> Library:
        """Compiles everything, measures the tests, and finds what they reach, unless this was done before."""
        sources, tests = sorted((ROOT / "csrc").glob("*/*.c")), sorted((ROOT / "tests" / "c").glob("test_*.c"))
        (BUILD / "scratch").mkdir(parents=True, exist_ok=True)
        with ThreadPoolExecutor(2) as pool:
            plain = list(pool.map(lambda path: compile_one(path, "plain", PLAIN), sources))
            counted_objects = list(pool.map(lambda path: compile_one(path, "counted", COUNTED), sources))
            run("cc", "-shared", "-o", BUILD / "libpybpe.so", *plain, *LIBRARIES)
            found = list(pool.map(lambda path: _measured(path, counted_objects), tests))
        counted: dict[str, set[int]] = {}
        for _, lines in found:
            for name, all_lines in lines.items():
                counted.setdefault(name, set()).update(all_lines)
        return cls(sorted((test for test, _ in found), key=lambda test: test.seconds), counted)

    def judge(self, path: Path, source: str, line: int, folder: Path, slowest: float = math.inf) -> str:
        """Returns "invalid", "noticed by TEST", or "survived" for a source with a fault in a line."""
        folder.mkdir(exist_ok=True)
        changed, made, shared = folder / path.name, folder / "changed.o", folder / "changed.so"
        changed.write_text(source, encoding="utf-8")
        if not run("cc", *FLAGS, *PLAIN, "-c", "-o", made, changed):
            return "invalid"
        if made.read_bytes() == (BUILD / "plain" / f"{path.stem}.o").read_bytes():
            return "invalid"
        run("cc", "-shared", "-o", shared, made)
        tests = [test for k, test in enumerate(self._tests_of(path.name, line)) if k == 0 or test.seconds <= slowest]
        for test in tests:
            if not run_limited(test.program, test.seconds, preload=shared):
                self.noticed[path.name, test.name] = self.noticed.get((path.name, test.name), 0) + 1
                return f"noticed by {test.name}"
        quick = [test for test in tests if test.seconds <= SANITIZED_SECONDS]
        return self._judge_sanitized(changed, sorted(quick, key=lambda test: -test.share(path.name)), folder)

    def _judge_sanitized(self, changed: Path, tests: list[Test], folder: Path) -> str:
        made, program = folder / "sanitized.o", folder / "sanitized"
        run("cc", *FLAGS, *SANITIZED, "-c", "-o", made, changed)
        for test in tests:
            if not run("cc", *FLAGS, *SANITIZED, "-o", program, test.source, made, SANITIZED_LIBRARY, *LIBRARIES):
                raise SystemExit(f"{test.name} cannot be linked with {SANITIZED_LIBRARY}")
            if not run_limited(program, 5 * test.seconds + 1):
                return f"noticed by {test.name} under sanitizers"
        return "survived"

    def _tests_of(self, name: str, line: int) -> list[Test]:
        """Returns the tests that reach a line, or the source if the line has no code; the likeliest to notice first."""
        if line in self.counted.get(name, ()):
            tests = [test for test in self.tests if line in test.lines.get(name, ())]
        else:
            tests = [test for test in self.tests if test.lines.get(name)]
        return sorted(tests, key=lambda test: (test.seconds + 0.02) / (1 + self.noticed.get((name, test.name), 0)))


def _measured(path: Path, counted: list[Path]) -> tuple[Test, dict[str, set[int]]]:
    """Returns a test, and the lines of each source that have code; from a file if nothing has changed."""
    kept = BUILD / "plain" / f"{path.stem}.{digest(path)}.pickle"
    if not kept.exists():
        kept.write_bytes(pickle.dumps(_measure(path, counted)))
    measured: tuple[Test, dict[str, set[int]]] = pickle.loads(kept.read_bytes())
    return measured


def _measure(path: Path, counted: list[Path]) -> tuple[Test, dict[str, set[int]]]:
    made = compile_one(path, "plain", PLAIN)
    program = made.with_suffix("")
    run("cc", "-o", program, made, BUILD / "libpybpe.so", f"-Wl,-rpath,{BUILD}", *LIBRARIES)
    seconds = _processor_time(program)
    all_lines: dict[str, set[int]] = {}
    reached: dict[str, set[int]] = {}
    for file, line, count in _counts(compile_one(path, "counted", COUNTED), counted):
        all_lines.setdefault(file, set()).add(line)
        if count > 0:
            reached.setdefault(file, set()).add(line)
    return Test(path.stem, seconds, reached), all_lines


def _processor_time(program: Path) -> float:
    """Returns the processor time of a test program, which must pass."""
    command = ["sh", "-c", f'ulimit -t 600; ulimit -v {MEMORY}; exec "{program}"']
    child = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{program.name}: fails without a fault")
    return used.ru_utime + used.ru_stime


def _counts(test: Path, counted: list[Path]) -> list[tuple[str, int, int]]:
    """Returns how often a test runs each line: source, line, and count."""
    folder = BUILD / "reach" / test.stem
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    program = folder / test.stem
    run("cc", "--coverage", "-o", program, test, *counted, *LIBRARIES)
    run(program, limit=600, GCOV_PREFIX=str(folder), GCOV_PREFIX_STRIP=str(len(test.parts) - 2))
    for made in counted:
        (folder / f"{made.stem}.gcno").write_bytes(made.with_suffix(".gcno").read_bytes())
    data = sorted(path.name for path in folder.glob("*.gcda") if not path.name.startswith("test_"))
    report = subprocess.check_output(
        ["gcov", "--json-format", "--stdout", *data], cwd=folder, stderr=subprocess.DEVNULL
    )
    files = [file for part in report.splitlines() for file in json.loads(part)["files"]]
    return [
        (Path(file["file"]).name, line["line_number"], line["count"])
        for file in files
        for line in file["lines"]
        if file["file"].endswith(".c")
    ]
