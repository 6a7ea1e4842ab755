"""Mutation testing of Python modules that contain only logic: run.py does the same for the C library.

    make mutants-python [count=50] [seed=COMMIT] [modules="corpus/sorting.py ..."]

A process that has imported what all tests need is forked for each fault. The child puts the fault into its own copy of
the package, and runs the module's tests of TESTS until one fails.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy  # noqa: F401
import pytest
import python_operators
import regex  # noqa: F401
from programs import BUILD, ROOT
from run import Drawn, report, shuffled, survivors

TESTS = {
    "corpus/sorting.py": ["test_corpus_sorting.py::test_sorting", "test_corpus_sorting.py::test_components"],
    "corpus/connecting.py": ["test_corpus_sorting.py::test_components"],
    "dataset/packing.py": ["test_packing.py"],
    "dataset/sampling.py": ["test_sampling.py"],
}
SECONDS = 30  # of processor time


def passes(number: int, path: Path, source: str) -> int:
    """Starts the tests of a module with a source, in a child. Returns its process id."""
    tree = BUILD / "python" / str(number)
    if (child := os.fork()) != 0:
        return child
    try:
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(ROOT / "pybpe", tree / "pybpe", ignore=shutil.ignore_patterns("__pycache__"))
        (tree / "pybpe" / path).write_text(source, encoding="utf-8")
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        os.environ["PYTHONPATH"] = str(tree)
        sys.path.insert(0, str(tree))
        sys.dont_write_bytecode = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        tests = [str(ROOT / "tests" / "py" / test) for test in TESTS[str(path)]]
        code = pytest.main(["-x", "-q", "-p", "no:cacheprovider", f"--basetemp={tree}/tmp", *tests])
        os._exit(0 if code == 0 else 1)
    finally:
        os._exit(2)


def judged(drawn: list[Drawn], workers: int) -> Iterator[tuple[Drawn, str]]:
    """Yields what became of each fault."""
    running: dict[int, tuple[int, Drawn]] = {}
    free, waiting = list(range(workers)), drawn[::-1]
    while running or waiting:
        while free and waiting:
            one, number = waiting.pop(), free.pop()
            running[passes(number, one.path, one.mutant.apply(one.source))] = (number, one)
        child, status = os.wait()
        number, one = running.pop(child)
        free.append(number)
        yield one, "survived" if status == 0 else "noticed"


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("modules", nargs="*", default=list(TESTS))
    parser.add_argument("--count", type=int, default=50, help="of faults (default 50)")
    parser.add_argument("--seed", default="1", help="which faults are drawn, such as the hash of a commit")
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    sources = {Path(module): (ROOT / "pybpe" / module).read_text(encoding="utf-8") for module in args.modules}
    for path, source in sources.items():
        if os.waitpid(passes(0, path, source), 0)[1] != 0:
            raise SystemExit(f"{path}: its tests fail without a fault")
    found = {path: python_operators.mutants(source) for path, source in sources.items()}
    drawn = shuffled([Drawn(path, sources[path], fault) for path in found for fault in found[path]], args.seed)
    return report(judged(drawn[: args.count], args.workers), survivors(), len(drawn))


if __name__ == "__main__":
    sys.exit(main())
