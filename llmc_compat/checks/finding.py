"""Findings, and the run that they matter for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from llmc_compat.batch import CPU_BATCH, Batch

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True)
class Finding:
    """One fault."""

    file: str  # where it is
    fault: str  # what is wrong
    effect: str  # what llm.c does, such as "aborts"
    remedy: str  # how to fix it
    severity: str = ERROR  # "error" if llm.c aborts or trains on nonsense; "warning" if it works, but not as expected

    def __str__(self) -> str:
        mark = "" if self.is_error else "warning: "
        return f"{self.file}: {mark}{self.fault}; llm.c {self.effect}; {self.remedy}"

    @property
    def is_error(self) -> bool:
        """Whether llm.c aborts or trains on nonsense."""
        return self.severity == ERROR

    def unless(self, harmless: bool) -> Finding:
        """Returns the finding, downgraded to a warning if it is harmless here."""
        return replace(self, severity=WARNING) if harmless else self

    @classmethod
    def of_error(cls, file: str, error: Exception, remedy: str) -> Finding:
        """Returns the finding for a file that cannot be read. The error's message may say what llm.c does."""
        fault, _, effect = str(error).removeprefix(f"{file}: ").partition("; llm.c ")
        return cls(file, fault, effect or "aborts", remedy)


@dataclass(frozen=True)
class Run:
    """The run that the files are checked for."""

    given: Batch | None = None  # the run's B, T and processes, or None

    @property
    def batch(self) -> Batch:
        """The given batch, or the one that is compiled into the CPU trainer."""
        return self.given or CPU_BATCH

    @property
    def is_cuda(self) -> bool:
        """Whether this must be a run of the CUDA trainer: only that one takes B and T as flags."""
        return self.given is not None
