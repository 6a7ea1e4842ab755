"""A web server on this machine, which misbehaves as tests ask it to."""

from __future__ import annotations

import hashlib
import re
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class File:
    """A file, and how the server sends it.

    Attributes:
        data: its content.
        kind: its Content-Type.
        headers: more headers.
        ranges: whether the server obeys the Range header.
        length: the Content-Length to send instead of the right one; 0 sends none.
        chunked: sends it with chunked transfer encoding.
        shift: the number of bytes by which the server starts too late.
        drop_after: if not None, each connection breaks after this many bytes of a body.
        drops: the number of responses that break; the others are complete.
        busy: the number of requests that are answered with `busy_status` first.
        retry_after: the Retry-After header of those.
        most: the most bytes of a range that the server sends, as it may.
        redirect: the address to which the server redirects.
        validators: whether the server sends an ETag and Last-Modified.
        on_request: called with the number of each request for this file, before it is answered.
    """

    data: bytes
    kind: str = "application/octet-stream"
    headers: dict[str, str] = field(default_factory=dict)
    ranges: bool = True
    length: int | None = None
    chunked: bool = False
    shift: int = 0
    drop_after: int | None = None
    drops: int = 1 << 30
    busy: int = 0
    busy_status: int = 503
    retry_after: str | None = None
    most: int | None = None
    redirect: str | None = None
    validators: bool = True
    on_request: Callable[[int], None] = lambda number: None
    requests: int = 0


class Server(ThreadingHTTPServer):
    """Sends `files`, by their paths. `log` has the path, the Range and the Authorization of each request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.files: dict[str, File] = {}
        self.log: list[tuple[str, str | None, str | None]] = []
        self.lock = threading.Lock()

    def url(self, path: str) -> str:
        """Returns the URL of a path."""
        return f"http://127.0.0.1:{self.server_port}{path}"

    def put(self, path: str, data: bytes, **options: object) -> str:
        """Adds a file. Returns its URL."""
        self.files[path.partition("?")[0]] = File(data, **options)  # type: ignore[arg-type]
        return self.url(path)

    def handle_error(self, request: object, client_address: object) -> None:
        """Says nothing: clients close connections early, and tests drop them."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.server.log.append((self.path, self.headers.get("Range"), self.headers.get("Authorization")))
        file = self.server.files.get(self.path.partition("?")[0])
        if file is None:
            self._answer(404, {}, b"not here")
            return
        with self.server.lock:
            file.requests += 1
            number = file.requests
            file.on_request(number)
            is_busy, file.busy = file.busy > 0, file.busy - 1
        if is_busy:
            self._answer(file.busy_status, {"Retry-After": file.retry_after} if file.retry_after else {}, b"busy")
        elif file.redirect is not None:
            self._answer(302, {"Location": file.redirect}, b"")
        else:
            self._send(file)

    def _send(self, file: File) -> None:
        headers = {"Content-Type": file.kind, **file.headers}
        if file.validators:
            headers |= {
                "ETag": f'"{hashlib.md5(file.data).hexdigest()}"',
                "Last-Modified": "Mon, 01 Jan 2024 00:00:00 GMT",
            }
        wanted = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if wanted is None or not file.ranges:
            self._answer(200, headers, file.data, file)
            return
        start, stop = int(wanted[1]), min(int(wanted[2]) + 1, len(file.data))
        if start >= len(file.data):
            self._answer(416, {**headers, "Content-Range": f"bytes */{len(file.data)}"}, b"")
            return
        if file.most is not None:
            stop = min(stop, start + file.most)
        start = min(start + file.shift, stop - 1)
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(file.data)}"
        self._answer(206, headers, file.data[start:stop], file)

    def _answer(self, status: int, headers: dict[str, str], body: bytes, file: File | None = None) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if file is not None and file.chunked:
            self.send_header("Transfer-Encoding", "chunked")
            body = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in _blocks(body)) + b"0\r\n\r\n"
        elif file is None or file.length != 0:
            self.send_header("Content-Length", str(len(body) if file is None or file.length is None else file.length))
        else:
            self.close_connection = True
        self.end_headers()
        if file is not None and file.drop_after is not None and len(body) > file.drop_after:
            with self.server.lock:
                breaks, file.drops = file.drops > 0, file.drops - 1
            if breaks:
                self.wfile.write(body[: file.drop_after])
                self.wfile.flush()
                self.connection.shutdown(socket.SHUT_RDWR)
                self.close_connection = True
                return
        self.wfile.write(body)


def _blocks(data: bytes) -> Iterator[bytes]:
    return (data[at : at + 1000] for at in range(0, len(data), 1000))


@contextmanager
def web_server() -> Iterator[Server]:
    """Runs a server while the block runs."""
    server = Server()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
