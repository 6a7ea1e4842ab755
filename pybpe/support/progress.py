"""The progress of long work: a bar on a terminal or in a notebook, lines in a log, and a file for dashboards."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, NamedTuple

from .. import _binding
from ..errors import FileError, warn

_STEADY = None  # tqdm's own format, with the remaining time
_UNSTEADY = "{desc}: {percentage:3.0f}%|{bar}| {n_fmt}/{total_fmt} [{elapsed}]"  # no estimate: late merges are fast
_WATCH_SECONDS = 1.0  # between two calls of a watcher
_FIRST_LINE_SECONDS = 5.0  # a shorter step prints no line
_LINE_SECONDS = 60.0
_STATUS_SECONDS = 10.0


class About(int):
    """An estimate of a total."""


class Status(NamedTuple):
    """How far a step of a run is."""

    step: str  # for example "encoding"
    done: int
    total: int | None  # None if it is unknown
    unit: str  # "B" for bytes, or a word such as "merge"
    seconds: float  # since the step began
    estimated: bool = False  # whether the total is an estimate
    earlier: int = 0  # how much of `done` an earlier run did

    @property
    def seconds_left(self) -> float | None:
        """An estimate, or None. Merges have none, because late ones are much faster than early ones."""
        if not self.total or self.done <= self.earlier or self.unit == "merge":
            return None
        return self.seconds * max(0, self.total - self.done) / (self.done - self.earlier)

    def __str__(self) -> str:
        done, total = _amount(self.done, self.unit), _amount(self.total or 0, self.unit)
        done = f"{self.done:,}" if self.total and self.unit != "B" else done
        about = "about " if self.estimated else ""
        parts = [f"{done} of {about}{total} ({100 * self.done // self.total}%)" if self.total else done]
        if self.unit == "B" and self.seconds:
            parts.append(f"{_amount(round((self.done - self.earlier) / self.seconds), 'B')}/s")
        if self.seconds_left is not None:
            parts.append(f"{duration(self.seconds_left)} left")
        return f"{self.step}: {', '.join(parts)}"


Watcher = Callable[[Status], object]

# The command line adds functions that show the progress besides the bar. A watcher gets the status when a step begins
# and ends, and about once a second between.
watchers: tuple[Watcher, ...] = ()
_open: list[Progress] = []  # the steps that have not ended


def look() -> None:
    """Tells the watchers how far the step is. Call it while you wait for a task, because a task may take minutes."""
    if watchers and _open:
        _open[-1].watch()


class Progress(AbstractContextManager["Progress"]):
    """The progress of a step. A bar shows it if `shown` is True, or is None and standard error is a terminal or a
    notebook. `total` is None if unknown. `unit` is "B" for bytes (shown as MB, GB), or a word such as "merge". An
    estimated total grows if there is more."""

    def __init__(self, description: str, total: int | None, unit: str, shown: bool | None) -> None:
        self._bar: Any = None
        self._start = time.monotonic()
        self._status = Status(description, 0, total, unit, 0.0, isinstance(total, About))
        self._due = 0.0
        self.watch()
        if shown is None:
            shown = "ipykernel" in sys.modules or (sys.stderr is not None and sys.stderr.isatty())
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

    def __enter__(self) -> Progress:
        _open.append(self)
        return self

    def add(self, amount: int, earlier: bool = False) -> None:
        """Advances by an amount. `earlier` says that an earlier run did it, so that it does not count for the speed."""
        if earlier:
            self._status = self._status._replace(earlier=self._status.earlier + amount)
        self.set(self._status.done + amount)

    def set(self, amount: int) -> None:
        """Moves to an absolute amount."""
        if self._status.estimated and amount > (self._status.total or 0):
            self._set_total(amount)
        if self._bar is not None:
            self._bar.update(amount - self._status.done)
        self._status = self._status._replace(done=amount)
        self.watch()

    def _set_total(self, total: int) -> None:
        self._status = self._status._replace(total=total)
        if self._bar is not None:
            self._bar.total = total

    def watch(self) -> None:
        """Tells the watchers, at most once a second."""
        if watchers and (clock := time.monotonic()) >= self._due:
            self._due = clock + _WATCH_SECONDS
            self._status = self._status._replace(seconds=clock - self._start)
            for watcher in watchers:
                watcher(self._status)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _open.remove(self)
        if error is None and (self._status.estimated or self._status.total is None):
            self._set_total(self._status.done)
        if self._bar is not None:
            self._bar.close()
        if error is None:
            self._due = 0.0
            self.watch()


def lines(tell: Callable[[str], object]) -> Watcher:
    """Returns a watcher for logs: it tells one line when a step has taken some seconds, then one a minute, and one at
    the end."""
    step, seconds, due = "", 0.0, 0.0

    def watch(status: Status) -> None:
        nonlocal step, seconds, due
        if status.step != step or status.seconds < seconds:
            step, due = status.step, _FIRST_LINE_SECONDS
        seconds, is_complete = status.seconds, status.done == status.total
        if status.seconds >= due or (is_complete and _FIRST_LINE_SECONDS < due < math.inf):
            due = math.inf if is_complete else status.seconds + _LINE_SECONDS
            tell(str(status))

    return watch


class StatusFile:
    """A watcher that writes a small JSON file, which is replaced as a whole when a step begins, and about every ten
    seconds. `command` is the name of the command. Raises FileError if the file cannot be written at the start. If that
    happens later, it warns, and writes no more, because the work is worth more than the file."""

    def __init__(self, path: str, command: str) -> None:
        self._path, self._due, self._is_written = path, 0.0, True
        self._known: dict[str, Any] = {"command": command, "pid": os.getpid(), "started": now(), "state": "running"}
        self._write()

    def __call__(self, status: Status) -> None:
        clock, left, is_new = time.monotonic(), status.seconds_left, status.step != self._known.get("step")
        self._known |= {**status._asdict(), "seconds": round(status.seconds, 1)}
        self._known["seconds_left"] = None if left is None else round(left, 1)
        if is_new or clock >= self._due:
            self._due = clock + _STATUS_SECONDS
            self._update()

    def end(self, state: str, message: str) -> None:
        """Says how the command ended: "finished", "failed" or "interrupted", with the message of an error."""
        self._known |= {"state": state, "message": message}
        self._update()

    def _update(self) -> None:
        if self._is_written:
            try:
                self._write()
            except FileError as error:
                self._is_written = False
                warn(f"{error}. The command goes on without this status file")

    def _write(self) -> None:
        text = json.dumps({**self._known, "updated": now()}, ensure_ascii=False) + "\n"
        _binding.write_file(self._path, text.encode("utf-8", "replace"))


def now() -> str:
    """Returns the time of day, for machines and people in any place."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _amount(number: int, unit: str) -> str:
    if unit != "B":
        return f"{number:,} {unit}s"
    size, name = next(((size, name) for size, name in ((1e9, "GB"), (1e6, "MB")) if number >= size), (1e3, "kB"))
    return f"{number / size:.1f} {name}"


def duration(seconds: float) -> str:
    """Returns a number of seconds as people say it."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
