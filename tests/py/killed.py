"""Runs a function in a child process that dies at a chosen moment."""

import multiprocessing
import os
import signal
from collections.abc import Callable
from typing import Any

from pybpe import _binding


def die_at(point: int) -> None:
    """Makes this process kill itself just before it accesses the disk for the point-th time."""
    left = iter(range(point, -1, -1))

    def counted(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            if next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*args, **keywords)

        return call

    for name in ("replace", "unlink", "fsync", "truncate"):
        setattr(os, name, counted(getattr(os, name)))
    _binding.Output.commit = counted(_binding.Output.commit)  # type: ignore[method-assign]


def run_and_die(point: int, function: Callable[..., object], *arguments: Any, **keywords: Any) -> bool:
    """Calls a function in a separate process, which dies at this point. Returns whether it got that far."""

    def work() -> None:
        die_at(point)
        function(*arguments, **keywords)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0
