"""Reports which lines and branches of the Python packages the tests miss: see tests/proofs.mk.

    coverage_python.py REPORT

REPORT is what `coverage json` writes. Code for other machines, systems and versions of Python is marked in the source
with `# pragma: no cover` or `# pragma: no branch`, and the reason. Fails if the tests miss more than 3% of the
branches.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LEAST_PERCENT = 97


def missing(files: dict[str, Any]) -> Iterator[str]:
    """Returns each line that did not run, as FILE:LINE: its text, and each branch that was not taken."""
    for path, facts in sorted(files.items()):
        text = Path(path).read_text(encoding="utf-8").splitlines()
        for line in facts["missing_lines"]:
            yield f"{path}:{line}: {text[line - 1].strip()}"
        for line, to in facts["missing_branches"]:
            where = f"to line {to}" if to > 0 else "to the end"
            yield f"{path}:{line}: never {where}: {text[line - 1].strip()}"


def main() -> int:
    """See above."""
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    print(*missing(report["files"]), sep="\n")
    totals = report["totals"]
    branches = 100 * totals["covered_branches"] / totals["num_branches"]
    print(f"lines: {totals['percent_statements_covered']:.2f}% ({totals['missing_lines']} not)")
    print(f"branches: {branches:.2f}% ({totals['missing_branches']} of {totals['num_branches']} not)")
    return branches < LEAST_PERCENT


if __name__ == "__main__":
    sys.exit(main())
