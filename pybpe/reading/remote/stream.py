"""Streams of remote files.

A RangedStream requests parts of a file. It reads ahead with several connections when it knows how far its reader will
read, or when its reader has read some parts in sequence; so one reader is not limited by the speed of one connection.
Otherwise it requests only what is asked for, because reading a few bytes somewhere must not transfer megabytes.

    seek, read 64 KiB      one request of 64 KiB
    read on                one request of the size of the read
    read on                parts of 4 MiB, some at once, until the end of the range or of the file
"""

from __future__ import annotations

import errno
import io
from collections.abc import Iterator
from functools import partial
from typing import Any, Protocol

from ...errors import FormatError, file_error
from ...support.parallel import map_ordered
from .transfer import Patience, Source, Unavailable, fill
from .web import WebBody, WebSource

PART_BYTES = 1 << 22
CONNECTIONS = 4
_FIRST_BYTES = 1 << 16  # the least that one request asks for
_READS_BEFORE_AHEAD = 2  # requests in sequence, before it reads ahead to the end of the file


class CheckedSource(Source, Protocol):
    """A Source that can be asked whether the file has changed."""

    def check_now(self) -> None:
        """Raises FileChangedError if the file has changed."""


class _Stream(io.RawIOBase):
    """What the streams of remote files have in common. A read returns fewer bytes than requested only at the end."""

    def __init__(self, name: str) -> None:
        self.name = name

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        parts, left = [], -1 if size is None else size
        while left:
            block = bytearray(PART_BYTES if left < 0 else min(left, PART_BYTES))
            got = self.readinto(memoryview(block))
            if not got:
                break
            parts.append(bytes(memoryview(block)[:got]))
            left -= got if left > 0 else 0
        return b"".join(parts)

    def readall(self) -> bytes:
        return self.read()

    def readinto(self, block: Any) -> int:
        raise NotImplementedError


class RangedStream(_Stream):
    """A file of which a server sends ranges.

    Args:
        source: the file.
        size: its number of bytes.
        start: the position of the stream.
        end: where the reader will stop, if known. It may read beyond.
        head: the first bytes of the file, if known.
        checks: whether the file must be compared with what the run first saw after it was read.
    """

    def __init__(
        self,
        source: CheckedSource,
        size: int,
        start: int = 0,
        end: int | None = None,
        *,
        head: bytes = b"",
        checks: bool,
    ) -> None:
        super().__init__(source.name)
        self._source, self._size, self._end, self._checks = source, size, end, checks
        self._position = 0
        self._rest = memoryview(head)  # the bytes from _position that have been received
        self._ahead: Iterator[bytearray] | None = None
        self._requests = 0  # in sequence
        self.seek(start)

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        to = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        if to < 0:
            raise ValueError(f"negative position {to}")
        skipped = to - self._position
        if not 0 <= skipped <= len(self._rest):
            self._forget()
            skipped = 0
        self._rest = self._rest[skipped:]
        self._position = to
        return to

    def _forget(self) -> None:
        self._rest, self._requests = memoryview(b""), 0
        self._stop()

    def _stop(self) -> None:
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            ahead.close()  # type: ignore[attr-defined]

    def readinto(self, block: Any) -> int:
        view = memoryview(block)
        view = view.cast("B") if view.nbytes else view[:0]
        filled = 0
        while filled < len(view) and self._position < self._size:
            if not self._rest:
                self._rest = memoryview(self._next_part(len(view) - filled))
            size = min(len(view) - filled, len(self._rest))
            view[filled : filled + size] = self._rest[:size]
            self._rest = self._rest[size:]
            filled, self._position = filled + size, self._position + size
        return filled

    def _next_part(self, wanted: int) -> bytearray:
        part = next(self._ahead, None) if self._ahead is not None else None
        if part is None:
            self._ahead = self._parts(self._position, self._reach(wanted))
            self._requests += 1
            part = next(self._ahead)
        return part

    def _reach(self, wanted: int) -> int:
        """Returns up to where to read ahead."""
        if self._end is not None and self._position < self._end:
            return min(self._end, self._size)
        if self._requests >= _READS_BEFORE_AHEAD:
            return self._size
        return min(self._size, self._position + max(wanted, _FIRST_BYTES))

    def _parts(self, start: int, stop: int) -> Iterator[bytearray]:
        parts = [(at, min(PART_BYTES, stop - at)) for at in range(start, stop, PART_BYTES)]
        return map_ordered(partial(_received, self._source), parts, min(CONNECTIONS, len(parts)))

    def check(self) -> None:
        """Raises FileChangedError if the file has changed."""
        if self._checks:
            self._source.check_now()

    def close(self) -> None:
        self._stop()
        super().close()

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close()
        if kind is None or issubclass(kind, FormatError):  # a file that changed may look like a damaged one
            self.check()


def _received(source: Source, part: tuple[int, int]) -> bytearray:
    start, size = part
    block = bytearray(size)
    fill(source, start, memoryview(block))
    return block


class WholeStream(_Stream):
    """A file that a server sends only as a whole. If the connection breaks, it requests the file again and skips what
    it has read; this needs an ETag or modification time, since the file might be another one."""

    def __init__(self, source: WebSource, can_repeat: bool) -> None:
        super().__init__(source.name)
        self._source, self._can_repeat = source, can_repeat
        self._body: WebBody | None = source.whole()
        self._patience = Patience(source.name)
        self._position = 0

    def tell(self) -> int:
        return self._position

    def readinto(self, block: Any) -> int:
        view = memoryview(block)
        view = view.cast("B") if view.nbytes else view[:0]
        filled = 0
        while filled < len(view) and (got := self._some(view[filled:])):
            filled += got
            self._position += got
            self._patience.progress(got)
        return filled

    def _some(self, view: memoryview) -> int:
        while True:
            try:
                if self._body is None:
                    self._body = self._source.whole()
                    _skip(self._body, self._position)
                return self._body.readinto(view)
            except Unavailable as error:
                self._drop()
                if not self._can_repeat:
                    advice = "this server cannot continue, nor say whether the file is the same: download it first"
                    raise file_error(errno.EIO, f"{self.name}: cannot be read: {error.problem}, and {advice}") from None
                self._patience.failure(error)

    def _drop(self) -> None:
        body, self._body = self._body, None
        if body is not None:
            body.close()

    def close(self) -> None:
        self._drop()
        super().close()


def _skip(body: WebBody, size: int) -> None:
    block = memoryview(bytearray(min(size, _FIRST_BYTES)))
    while size > 0:
        got = body.readinto(block[:size])
        if not got:
            raise Unavailable("the file ended early")
        size -= got
