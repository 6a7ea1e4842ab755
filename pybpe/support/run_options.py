"""How a run uses the machine: the options that all functions for long runs share, as one object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..arguments import instance, option, whole_number
from ..errors import ArgumentError

if TYPE_CHECKING:
    from concurrent.futures import Executor


@dataclass(frozen=True)
class RunOptions:
    """How a run uses the machine. Results never depend on it. The fields have the names of the public keyword
    arguments, which its errors name."""

    # Number of threads or processes; None for all CPUs.
    workers: int | None = option(None, "number of threads or processes (default: all CPUs)")
    executor: Executor | None = None  # an executor that does the work instead, on other processes or machines
    # Number of bytes; None for no limit. Each kind of work has a different minimum.
    memory_limit: int | None = option(None, "memory to use, in bytes, e.g. 2G", unit="bytes")
    # True shows progress bars, False does not, None shows them if standard error is a terminal.
    progress: bool | None = None
    # The number of seconds after which a worker of the executor that has not finished a task is given up; None waits
    # forever.
    task_timeout: float | None = option(
        None,
        "stop if a worker of --dask takes longer for a task, as it may hang (default: wait)",
        "SECONDS",
    )

    def __post_init__(self) -> None:
        for name in ("workers", "memory_limit"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, whole_number(name, value, 1))
        if self.task_timeout is not None:
            instance("task_timeout", self.task_timeout, (int, float), "a number of seconds")
            if not 0 < self.task_timeout < float("inf"):
                raise ArgumentError(f"task_timeout must be a number of seconds above 0, not {self.task_timeout}")
            if self.executor is None:
                raise ArgumentError(
                    "task_timeout needs an executor (--dask): threads of this process cannot be given up"
                )
