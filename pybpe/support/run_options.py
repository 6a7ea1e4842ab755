"""How a run uses the machine: the options that all functions for long runs share, as one object."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass

from ..arguments import whole_number


@dataclass(frozen=True)
class RunOptions:
    """How a run uses the machine. Results never depend on it. The fields have the names of the public keyword
    arguments, which its errors name.

    Attributes:
        workers: number of threads or processes; None for all CPUs.
        executor: an executor that does the work instead, on other processes or machines.
        memory_limit: number of bytes; None for no limit. Each kind of work has a different minimum.
        progress: True shows progress bars, False does not, None shows them if standard error is a terminal.

    Raises:
        ArgumentError: a value is invalid.
    """

    workers: int | None = None
    executor: Executor | None = None
    memory_limit: int | None = None
    progress: bool | None = None

    def __post_init__(self) -> None:
        for name in ("workers", "memory_limit"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, whole_number(name, value, 1))
