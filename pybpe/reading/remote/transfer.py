"""Reads a range of a remote file, with retries.

Connections break, and servers are busy. A read continues from the byte that it reached. After each failure it waits
longer, or as long as the server asks. It gives up after some failures in a row without progress.
"""

from __future__ import annotations

import errno
import random
import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from ...errors import FileError, file_error

TRIES = 8  # failures in a row, before an error; the waits between them take about 40 s
LOOK_TRIES = 4  # the same for the first request, because a wrong name fails like a server that is down
FIRST_WAIT = 0.25  # seconds; each next wait is twice as long
_LONGEST_WAIT = 20.0
_LONGEST_REQUEST = 60.0  # seconds; a server that asks to wait longer is an error
_LEAST_PROGRESS = 1 << 16  # bytes; fewer do not count as progress, so that the number of requests is bounded

Result = TypeVar("Result")


class Unavailable(Exception):
    """A request failed, and the same request may succeed later.

    Args:
        problem: what happened, for the error after the last try.
        received: the number of bytes that arrived before.
        wait: the number of seconds after which the server wants to be asked again, or None.
    """

    def __init__(self, problem: str, received: int = 0, wait: float | None = None) -> None:
        super().__init__(problem)
        self.problem, self.received, self.wait = problem, received, wait


class Patience:
    """Counts failures, and waits after each.

    Args:
        name: the name of the file.
        tries: the failures in a row that are an error; None for TRIES.

    Attributes:
        failed: the number of failures since the last progress.
    """

    def __init__(self, name: str, tries: int | None = None) -> None:
        self._name, self._tries = name, tries or TRIES
        self._progress = 0
        self.failed = 0

    def progress(self, received: int) -> None:
        """Notes that some bytes have arrived."""
        self._progress += received
        if self._progress >= _LEAST_PROGRESS:
            self._progress = self.failed = 0

    def failure(self, error: Unavailable) -> None:
        """Waits. Raises FileError after too many failures."""
        self.progress(error.received)
        self.failed += 1
        if self.failed >= self._tries:
            raise self._gives_up(f"{error.problem}, after {self.failed} tries")
        wait = FIRST_WAIT * 2 ** (self.failed - 1) * random.uniform(0.75, 1.25)  # not all workers at the same moment
        if error.wait is not None:
            if error.wait > _LONGEST_REQUEST:
                raise self._gives_up(f"{error.problem}, and asks to wait {error.wait:.0f} s. Run again then")
            wait = max(wait, error.wait)
        time.sleep(min(wait, max(_LONGEST_WAIT, error.wait or 0)))

    def _gives_up(self, problem: str) -> FileError:
        return file_error(errno.EIO, f"{self._name}: cannot be read: {problem}")


def persist(action: Callable[[], Result], name: str, tries: int | None = None) -> Result:
    """Returns action(), which is repeated while it raises Unavailable. Raises FileError after too many failures."""
    patience = Patience(name, tries)
    while True:
        try:
            return action()
        except Unavailable as error:
            patience.failure(error)


class Source(Protocol):
    """Where the bytes of one remote file come from."""

    name: str

    def receive(self, start: int, view: memoryview) -> int:
        """Asks for the bytes from `start` that fill `view`. Returns the number of bytes that it got, at least one.

        Raises:
            Unavailable: it failed, but may succeed later. FileChangedError: the file has changed.
        """


def fill(source: Source, start: int, view: memoryview) -> None:
    """Fills `view` with the bytes of a file from `start`. Raises FileError after too many failures."""
    patience = Patience(source.name)
    filled = 0
    while filled < len(view):
        # After a failure it asks for less, since a connection may break after a certain time or number of bytes.
        size = max(_LEAST_PROGRESS, (len(view) - filled) >> patience.failed)
        try:
            got = source.receive(start + filled, view[filled : filled + size])
            if not got:
                raise Unavailable("the server sent no bytes of the range")
            patience.progress(got)
        except Unavailable as error:
            got = error.received
            patience.failure(error)
        filled += got
