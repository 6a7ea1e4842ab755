"""Computes the SHA-256 of files, and of shards that are not finished yet, in a thread next to encoding and writing."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import BinaryIO

from ..errors import WorkerError, file_errors
from ..reading.streams import Limited, open_input
from ..support.platform import sync_file

_BLOCK = 1 << 18  # fits in a CPU cache


def file_sha256(path: str) -> str:
    """Returns the SHA-256 of a file, in hex."""
    with open_input(path) as stream:
        return _sha256(b"", stream, threading.Event())


class Hasher:
    """Computes hashes one after another, in its own thread."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None  # the thread, once there is something to do
        self._stop = threading.Event()

    def start(self, path: str, header: bytes, size: int) -> Future[str]:
        """Returns the SHA-256, in hex, that a file of `size` bytes will have once its header is `header`. Everything
        after the header is there already, and perhaps more; it is on disk when the result is available. Until then the
        file keeps its name. Raises WorkerError if the system has no more threads."""
        self._pool = self._pool or ThreadPoolExecutor(1, thread_name_prefix="pybpe")
        try:
            return self._pool.submit(self._work, path, header, size)
        except RuntimeError as error:  # out of memory or threads
            raise WorkerError(f"the hash of {path} cannot be computed: {error}") from None

    def _work(self, path: str, header: bytes, size: int) -> str:
        with open_input(path) as stream:
            stream.seek(len(header))
            body: BinaryIO = Limited(stream, size - len(header))  # type: ignore[assignment]
            digest = _sha256(header, body, self._stop)
        with file_errors(path, "cannot be written"):
            sync_file(path)
        return digest

    def close(self) -> None:
        """Cancels unfinished hashes."""
        self._stop.set()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


def _sha256(start: bytes, stream: BinaryIO, stop: threading.Event) -> str:
    digest = hashlib.sha256(start)
    block = memoryview(bytearray(_BLOCK))
    while got := stream.readinto(block):  # type: ignore[attr-defined]
        digest.update(block[:got])
        if stop.is_set():
            raise CancelledError
    return digest.hexdigest()
