"""Progress bars: tqdm on a terminal, nothing otherwise."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

_STEADY = None  # tqdm's own format, with the remaining time
_UNSTEADY = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}]"  # no estimate: late merges are fast


class Progress(AbstractContextManager["Progress"]):
    """A progress bar. It is shown if `shown` is True, or is None and standard error is a terminal. `total` is None if
    unknown; `unit` is "B" for bytes (shown as MB, GB), or a word such as "merge"."""

    def __init__(self, description: str, total: int | None, unit: str, shown: bool | None) -> None:
        self._bar: Any = None
        if shown is None:
            shown = sys.stderr is not None and sys.stderr.isatty()
        if shown:
            from tqdm import tqdm

            self._bar = tqdm(
                desc=description,
                total=total,
                unit=unit,
                unit_scale=unit == "B",
                leave=False,
                bar_format=_STEADY if unit == "B" else _UNSTEADY,
            )

    def add(self, amount: int) -> None:
        """Advances the bar."""
        if self._bar is not None:
            self._bar.update(amount)

    def set(self, amount: int) -> None:
        """Moves the bar to an absolute amount."""
        if self._bar is not None:
            self._bar.update(amount - self._bar.n)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.close()
