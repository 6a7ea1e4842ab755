"""Mutation testing of Python modules that contain only logic: run.py does the same for the C library.

    make mutants-python [count=50] [seed=1] [known=1] [modules="corpus/duplicates.py ..."]

python_tests.py has the modules and their tests, which python_session.py runs. judged.txt and survivors/ are as in
run.py; a module's name is its path in the package.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import python_operators
from programs import ROOT
from python_session import Session
from python_tests import TESTS
from run import Drawn, arguments, draw, report, survivors


def judged(session: Session, drawn: list[Drawn], workers: int) -> Iterator[tuple[Drawn, str]]:
    """Yields what became of each fault."""
    running: dict[int, Drawn] = {}
    waiting = drawn[::-1]
    while running or waiting:
        while len(running) < workers and waiting:
            one = waiting.pop()
            running[_start(session, one)] = one
        child, status = os.wait()
        code = os.waitstatus_to_exitcode(status)
        if code not in (0, 1):
            raise SystemExit(f"a fault cannot be judged: {running[child].name}")
        yield running.pop(child), "noticed" if code else "survived"


def _start(session: Session, one: Drawn) -> int:
    """Starts a child that exits with 1 if a fault is noticed, and 0 if it survives. Returns its process id."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            fault = one.mutant.apply(one.source)
            code = int(session.judge(one.path.as_posix(), one.source, fault, one.mutant.line))
        finally:
            os._exit(code)
    return child


def main() -> int:
    """Runs the command line."""
    parser = arguments(__doc__)
    parser.add_argument("modules", nargs="*", default=list(TESTS))
    args = parser.parse_args()
    modules = [Path(module) for module in args.modules]
    drawn = draw(ROOT / "pybpe", modules, python_operators.mutants, args.seed, args.known)
    taken = drawn[: args.count]
    codes: list[int] = []

    def use(session: Session) -> None:
        codes.append(report(judged(session, taken, args.workers), survivors(), len(drawn)))

    tests = {module: TESTS[module] for module in dict.fromkeys(one.path.as_posix() for one in taken)}
    Session(tests, use).run()
    return codes[0]


if __name__ == "__main__":
    sys.exit(main())
