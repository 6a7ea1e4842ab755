"""Reports which lines and branches of the C sources the tests miss, from clang's counters. See tests/proofs.mk.

    coverage.py PROFILE OBJECT SOURCE...

Code that no test can reach is marked in the source, with the reason, in lcov's notation:

    return error; /* LCOV_EXCL_LINE: only on 32-bit machines */
    if (rare) { /* LCOV_EXCL_START: nothing is so large */
        ...
    } /* LCOV_EXCL_STOP */

Fails if the tests miss any other line, or more than 5% of the branches.
"""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

LEAST_BRANCHES = 0.95


@dataclass
class Source:
    """One file: how often each line and each side of its branches ran."""

    lines: dict[int, int] = field(default_factory=dict)
    branches: dict[tuple[str, ...], int] = field(default_factory=dict)

    def leave_out(self, numbers: set[int]) -> None:
        """Ignores these lines and their branches."""
        self.lines = {line: count for line, count in self.lines.items() if line not in numbers}
        self.branches = {key: count for key, count in self.branches.items() if int(key[0]) not in numbers}


def read(report: str) -> dict[str, Source]:
    """Returns the files of a report in lcov's format (geninfo(1)). Adds up the counts of a file in several objects."""
    sources: dict[str, Source] = defaultdict(Source)
    current = Source()
    for record in report.splitlines():
        kind, _, rest = record.partition(":")
        if kind == "SF":
            current = sources[rest]
        elif kind == "DA":
            line, count = rest.split(",")[:2]
            current.lines[int(line)] = current.lines.get(int(line), 0) + int(count)
        elif kind == "BRDA":
            *key, taken = rest.split(",")
            current.branches[tuple(key)] = current.branches.get(tuple(key), 0) + int(taken.replace("-", "0"))
    return sources


def marked(path: str) -> set[int]:
    """Returns the marked lines of a file."""
    numbers, inside = set(), False
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        inside = inside or "LCOV_EXCL_START:" in line
        if inside or "LCOV_EXCL_LINE:" in line:
            numbers.add(number)
        inside = inside and "LCOV_EXCL_STOP" not in line
    return numbers


def missing(sources: dict[str, Source]) -> Iterator[str]:
    """Returns each line that did not run, as FILE:LINE: its text."""
    for path, source in sources.items():
        text = Path(path).read_text(encoding="utf-8").splitlines()
        for line in sorted(line for line, count in source.lines.items() if count == 0):
            yield f"{Path(path).name}:{line}: {text[line - 1].strip()}"


def main() -> int:
    """See above."""
    profile, program, *paths = sys.argv[1:]
    command = ["llvm-cov", "export", "-format=lcov", f"-instr-profile={profile}", program, *paths]
    sources = read(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    left_out = 0
    for path, source in sources.items():
        left_out += len(marked(path) & source.lines.keys())
        source.leave_out(marked(path))
    print(*missing(sources), sep="\n")
    lines = [count for source in sources.values() for count in source.lines.values()]
    branches = [count for source in sources.values() for count in source.branches.values()]
    for name, counts in (("lines", lines), ("branches", branches)):
        reached = sum(map(bool, counts))
        print(f"{name}: {100 * reached / len(counts):.2f}% ({len(counts) - reached} of {len(counts)} not)")
    print(f"{left_out} lines are excluded, each with a reason in the source")
    return not (all(lines) and sum(map(bool, branches)) >= LEAST_BRANCHES * len(branches))


if __name__ == "__main__":
    sys.exit(main())
