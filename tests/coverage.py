"""Reports which lines and branches of the C sources the tests miss, from clang's counters. See tests/proofs.mk.

    coverage.py PROFILE OBJECT SOURCE...

Code that no test can reach is marked in the source, with the reason, in lcov's notation:

    return error; /* LCOV_EXCL_LINE: only on 32-bit machines */
    if (rare) { /* LCOV_EXCL_START: nothing is so large */
        ...
    } /* LCOV_EXCL_STOP */
    if (size < 0 || rare) { /* LCOV_EXCL_BR_LINE: the line is reached, but a size is never below 0 */

A condition has two sides. A side of an inline function of a header is reached if it is in any file that includes the
header. A source for instructions that this processor lacks is left out. Fails if the tests miss any other line or side.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

NEEDED = {"pretok_avx512.c": "avx512_vbmi2", "pretok_avx2.c": "avx2"}  # as Linux calls the instructions


@dataclass
class Source:
    """One file: how often each line ran, and each side of the conditions at (line, column)."""

    lines: dict[int, int] = field(default_factory=dict)
    branches: dict[tuple[int, int, str], int] = field(default_factory=dict)

    def leave_out(self, lines: set[int], branches: set[int]) -> None:
        """Ignores these lines, and the conditions in these and in the others."""
        self.lines = {line: count for line, count in self.lines.items() if line not in lines}
        self.branches = {key: count for key, count in self.branches.items() if key[0] not in lines | branches}


def read_lines(sources: dict[str, Source], report: str) -> None:
    """Adds the lines of a report in lcov's format (geninfo(1))."""
    current = Source()
    for record in report.splitlines():
        kind, _, rest = record.partition(":")
        if kind == "SF":
            current = sources[rest]
        elif kind == "DA":
            line, count = rest.split(",")[:2]
            current.lines[int(line)] = current.lines.get(int(line), 0) + int(count)


def read_branches(sources: dict[str, Source], report: str) -> None:
    """Adds the conditions of a report in JSON, which has their columns."""
    for file in json.loads(report)["data"][0]["files"]:
        branches = sources[file["filename"]].branches
        for line, column, _, _, true, false, *_ in file["branches"]:
            for side, count in (("true", true), ("false", false)):
                branches[line, column, side] = branches.get((line, column, side), 0) + count


def marked(path: str, word: str) -> set[int]:
    """Returns the lines with the mark LCOV_EXCL_LINE, or BR_LINE (`word`), and for LINE also the marked blocks."""
    numbers, inside = set(), False
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        inside = word == "LINE" and (inside or "LCOV_EXCL_START:" in line)
        if inside or f"LCOV_EXCL_{word}:" in line:
            numbers.add(number)
        inside = inside and "LCOV_EXCL_STOP" not in line
    return numbers


def missing(sources: dict[str, Source]) -> Iterator[str]:
    """Returns each line that did not run, as FILE:LINE: its text, and each side that did not, as FILE:LINE:COLUMN:."""
    for path, source in sources.items():
        text = Path(path).read_text(encoding="utf-8").splitlines()
        for line in sorted(line for line, count in source.lines.items() if count == 0):
            yield f"{Path(path).name}:{line}: {text[line - 1].strip()}"
        for line, column, side in sorted(key for key, count in source.branches.items() if count == 0):
            yield f"{Path(path).name}:{line}:{column}: never {side}: {text[line - 1].strip()}"


def runs_here(path: str) -> bool:
    """Returns whether this processor has the instructions that a source is for; says if it has not."""
    needed = NEEDED.get(Path(path).name)
    has = needed is None or needed in Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    if not has:
        print(f"{Path(path).name}: left out, since this processor does not have {needed}")
    return has


def export(form: str, profile: str, program: str, paths: list[str]) -> str:
    """Returns llvm-cov's report."""
    command = ["llvm-cov", "export", f"-format={form}", f"-instr-profile={profile}", program, *paths]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main() -> int:
    """See above."""
    profile, program, *paths = sys.argv[1:]
    sources: dict[str, Source] = defaultdict(Source)
    read_lines(sources, export("lcov", profile, program, paths))
    read_branches(sources, export("text", profile, program, paths))
    left_out = 0
    sources = {path: source for path, source in sources.items() if runs_here(path)}
    for path, source in sources.items():
        lines_out, branches_out = marked(path, "LINE"), marked(path, "BR_LINE")
        left_out += len(lines_out & source.lines.keys()) + len(branches_out)
        source.leave_out(lines_out, branches_out)
    print(*missing(sources), sep="\n")
    lines = [count for source in sources.values() for count in source.lines.values()]
    branches = [count for source in sources.values() for count in source.branches.values()]
    for name, counts in (("lines", lines), ("branches", branches)):
        reached = sum(map(bool, counts))
        print(f"{name}: {100 * reached / len(counts):.2f}% ({len(counts) - reached} of {len(counts)} not)")
    print(f"{left_out} lines are excluded, each with a reason in the source")
    return not (all(lines) and all(branches))


if __name__ == "__main__":
    sys.exit(main())
