"""Commands that a signal ends: every command that writes leaves its whole output or none, and no temporary file. Its
exit code is the signal's."""

import itertools
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import COMMANDS, clear, run, written
from selection import one_in

from pybpe import _binding

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="forks and the limits are Linux's")


def on_access(act: Callable[[], None]) -> Callable[[], None]:
    """Makes a process call `act` just before each time that it accesses the disk."""

    def prepare() -> None:
        def watched(function: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **keywords: Any) -> Any:
                act()
                return function(*args, **keywords)

            return call

        for name in ("replace", "unlink", "fsync", "truncate", "mkdir"):
            setattr(os, name, watched(getattr(os, name)))
        _binding.Output.commit = watched(_binding.Output.commit)  # type: ignore[method-assign]

    return prepare


def signal_at(point: int, number: int) -> Callable[[], None]:
    """Makes a process send itself a signal just before its access number `point`."""
    left = iter(range(point, -1, -1))

    def act() -> None:
        if next(left, None) == 0:
            signal.pthread_kill(threading.main_thread().ident or 0, number)

    return on_access(act)


@pytest.mark.parametrize("name", one_in(3, COMMANDS))
def test_a_signal_at_any_moment_leaves_no_temporary_file(place: Path, name: str) -> None:
    with tempfile.TemporaryFile() as count:
        code, said = run(COMMANDS[name], place, on_access(lambda: os.write(count.fileno(), b".")))
        accesses = count.tell()
    assert (code, said, accesses > 0) == (0, "", True)
    complete = written(place)
    assert complete and not any(file.startswith("tmp") for file in complete)
    points = [accesses // 2, accesses - 1] if not os.environ.get("PYBPE_EVERY_SIGNAL") else range(accesses)
    for point, number in zip(points, itertools.cycle([signal.SIGTERM, signal.SIGHUP])):
        clear(place)
        code, said = run(COMMANDS[name], place, signal_at(point, number))
        assert {file for file, data in written(place).items() if complete.get(file) != data} == set(), (point, said)
        assert (code, "Traceback" in said) == (-number, False), (point, said)
    if name == "binarize":  # it resumes
        assert run(COMMANDS[name], place)[0] == 0
        assert written(place) == complete
