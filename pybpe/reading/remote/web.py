"""Reads files from web servers, with urllib3.

Every response is compared with what the server said first (size, ETag, Last-Modified), because a file may be replaced
between two requests. A server may ignore the Range header and send the whole file: such a file can only be read from
its start to its end.
"""

from __future__ import annotations

import base64
import errno
import os
import re
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

from ..._version import __version__
from ...errors import FileError, FormatError, MissingExtraError, file_error
from ...urls import without_secrets
from .address import Address
from .facts import Facts, changed
from .transfer import LOOK_TRIES, Unavailable, persist

_CONNECT_SECONDS, _READ_SECONDS = 15, 30
_REDIRECTS = 10
_BUSY = (408, 425, 429, 500, 502, 503, 504)
_CONNECTIONS = 16  # kept open per server
_KEPT_ENCODINGS = ("", "identity", "gzip", "x-gzip", "zstd")  # what unpacking.py recognizes
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_ERRNOS = {401: errno.EACCES, 403: errno.EACCES, 404: errno.ENOENT, 410: errno.ENOENT}
_ADVICE = {
    401: " (the server wants a password or a signed URL)",
    403: " (the server refuses access; the signature of a URL may have expired)",
    404: " (there is no such file)",
}


class Look(NamedTuple):
    """What the first request for a file found.

    Attributes:
        facts: what the server says about it.
        is_divisible: whether the server sends ranges of it.
        head: its first bytes; b"" if it cannot be read in ranges.
    """

    facts: Facts
    is_divisible: bool
    head: bytes


class WebSource:
    """A file of a web server. Several threads may call `receive` at once.

    Args:
        address: its URL.
        facts: what the server said when the run first looked at it.
    """

    def __init__(self, address: Address, facts: Facts) -> None:
        self.name, self._address, self._facts = address.name, address, facts

    def receive(self, start: int, view: memoryview) -> int:
        """See Source."""
        with request(self._address, start, start + len(view)) as response:
            return _body_into(response, view[: self._promised(response, start, len(view))])

    def _promised(self, response: Any, start: int, size: int) -> int:
        """Checks a response. Returns how many of the `size` bytes from `start` it contains."""
        if response.status == 416:
            raise changed(self.name, f"now ends before byte {start + 1}, but had {self._facts.size} bytes")
        self._facts.check(self.name, facts_of(response))
        if response.status == 200 and start == 0:
            return size
        if response.status != 206:
            raise changed(self.name, "is now sent as a whole: the server no longer sends ranges of it")
        first, last = _range_of(response, self.name)
        if first != start:
            raise file_error(errno.EIO, f"{self.name}: cannot be read: the server sent byte {first} instead of {start}")
        return max(0, min(size, last + 1 - first))

    def whole(self) -> WebBody:
        """Opens the whole file, to be read from its start. Raises FileChangedError if it has changed."""
        response = persist(lambda: request(self._address, None, None), self.name)
        try:
            self._facts.check(self.name, facts_of(response))
        except FileError:
            response.close()
            raise
        return WebBody(response, self._facts.size)

    def check_now(self) -> None:
        """Raises FileChangedError if the file has changed."""
        found = look(self._address, 1)
        self._facts.check(self.name, found.facts)


class WebBody:
    """A whole file on its way. `size` is its number of bytes, or None."""

    def __init__(self, response: Any, size: int | None) -> None:
        self._response, self._left = response, size

    def readinto(self, view: memoryview) -> int:
        """Reads some bytes. Returns their number; 0 at the end. Raises Unavailable if the connection breaks."""
        if self._left is not None:
            view = view[: self._left]
        if not view:
            return 0
        got = _some_into(self._response, view, 0)
        if self._left is not None:
            self._left -= got
            if got == 0:
                raise Unavailable(f"the connection ended {self._left} bytes before the file")
        return got

    def close(self) -> None:
        """Closes the connection."""
        self._response.close()


def look(address: Address, head_bytes: int) -> Look:
    """Asks for the first bytes of a file.

    Raises:
        FileError: the file cannot be read. FormatError: the server sends a web page or an encoding instead.
    """

    def first_request() -> Look:
        with request(address, 0, head_bytes) as response:
            _check_content(address.name, response.headers)
            facts = facts_of(response)
            if response.status == 416:
                if facts.size != 0:
                    raise file_error(errno.EIO, f"{address.name}: cannot be read: the server sends no ranges of it")
                return Look(facts, True, b"")
            if response.status == 206 and facts.size is not None:
                first, last = _range_of(response, address.name)
                head = bytearray(min(last + 1, head_bytes)) if first == 0 else bytearray()
                return Look(facts, True, bytes(head[: _body_into(response, memoryview(head))]))
            if facts.size is None and not response.chunked:
                raise file_error(
                    errno.EIO,
                    f"{address.name}: the server does not say how many bytes the file has, so an incomplete file could"
                    " not be recognized: download it first",
                )
            return Look(facts, False, b"")

    return persist(first_request, address.name, LOOK_TRIES)


def _check_content(name: str, headers: Mapping[str, str]) -> None:
    """Raises FormatError for a web page in place of the file, such as a page about the file or for logging in; and for
    a compression that pybpe does not know."""
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    if kind in ("text/html", "application/xhtml+xml") and not name.lower().endswith((".html", ".htm", ".xhtml")):
        raise FormatError(
            f"{name}: not this file, but a web page (text/html): pass the URL of the file itself, as the browser's"
            " download link has it"
        )
    encoding = headers.get("Content-Encoding", "").strip().lower()
    if encoding not in _KEPT_ENCODINGS:
        raise FormatError(f"{name}: the server sends it compressed with {encoding}: download it first")


def facts_of(response: Any) -> Facts:
    """Returns what a response says about the file."""
    headers = response.headers
    size: str | None = headers.get("Content-Length")
    if response.status in (206, 416):
        size = headers.get("Content-Range", "").rpartition("/")[2]
    known = int(size) if size is not None and size.isascii() and size.isdecimal() else None
    return Facts(known, headers.get("ETag", ""), headers.get("Last-Modified", ""))


def _range_of(response: Any, name: str) -> tuple[int, int]:
    """Returns the first and the last byte of the range that a response contains."""
    found = _RANGE.fullmatch(response.headers.get("Content-Range", "").strip())
    if found is None:
        raise file_error(errno.EIO, f"{name}: cannot be read: the server does not say which range it sends")
    return int(found[1]), int(found[2])


# ----------------------------------------------------------------------------------------------------
# Requests


def request(address: Address, start: int | None, stop: int | None) -> Any:
    """Sends a request for the bytes start .. stop of a file, or for all. Follows redirects.

    Returns:
        urllib3's response with the status 200, 206 or 416, whose body has not been read.

    Raises:
        FileError: the server refuses. Unavailable: it may answer later.
    """
    url, wanted = address.url, {} if start is None or stop is None else {"Range": f"bytes={start}-{stop - 1}"}
    for _ in range(_REDIRECTS):
        response = _send(address.name, url, wanted)
        target = response.headers.get("Location")
        if response.status not in (301, 302, 303, 307, 308) or not target:
            return _accepted(address.name, response)
        response.close()
        next_url = urljoin(url, target)
        if urlsplit(next_url).scheme not in (("https",) if url.startswith("https:") else ("http", "https")):
            raise file_error(
                errno.EIO, f"{address.name}: the server redirects to an address that is not https: pass that URL"
            )
        url = next_url
    raise file_error(errno.EIO, f"{address.name}: cannot be read: the server redirects more than {_REDIRECTS} times")


def _send(name: str, url: str, wanted: Mapping[str, str]) -> Any:
    urllib3 = _urllib3(name)
    parts = urlsplit(url)
    headers = {"User-Agent": f"pybpe/{__version__}", "Accept-Encoding": "identity", **wanted}
    if parts.username is not None:  # sent only to the server in whose URL it is
        user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()
        url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    try:
        pool = _pool(os.getpid(), _proxy_of(parts.scheme, parts.hostname or ""))
        return pool.request(
            "GET", url, headers=headers, redirect=False, retries=False, preload_content=False, decode_content=False
        )
    except (urllib3.exceptions.LocationValueError, urllib3.exceptions.LocationParseError, UnicodeError):
        raise file_error(errno.EINVAL, f"{name}: this URL is not valid") from None
    except urllib3.exceptions.SSLError as error:
        raise file_error(errno.EIO, f"{name}: cannot be opened: {_reason(error)}") from None
    except urllib3.exceptions.HTTPError as error:
        raise Unavailable(_reason(error)) from None


def _accepted(name: str, response: Any) -> Any:
    """Returns a response, or raises the error that its status means."""
    status = response.status
    if status in (200, 206, 416):
        return response
    wait = _wait_of(response.headers.get("Retry-After", ""))
    response.close()
    problem = f"the server answered {status}"
    if status in _BUSY:
        raise Unavailable(problem, 0, wait)
    raise file_error(_ERRNOS.get(status, errno.EIO), f"{name}: cannot be opened: {problem}{_ADVICE.get(status, '')}")


def _wait_of(header: str) -> float | None:
    """Returns the number of seconds in a Retry-After header, which is a number or a date."""
    try:
        return max(0.0, float(header))
    except ValueError:
        pass
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _body_into(response: Any, view: memoryview) -> int:
    """Fills `view` from a response. Returns its length, or raises Unavailable, which has the number of bytes."""
    received = 0
    while received < len(view):
        got = _some_into(response, view[received:], received)
        if got == 0:
            raise Unavailable(f"the connection ended after {received} of {len(view)} bytes", received)
        received += got
    return received


def _some_into(response: Any, view: memoryview, received: int) -> int:
    from urllib3.exceptions import HTTPError

    try:
        data = response.read1(len(view))  # what has arrived, so that nothing of it is lost if the connection breaks
    except (HTTPError, OSError) as error:
        raise Unavailable(_reason(error), received) from None
    view[: len(data)] = data
    return len(data)


def _reason(error: Exception) -> str:
    """Returns why a request failed, without the URL, which may contain a signature."""
    cause: BaseException = error
    while (inner := getattr(cause, "reason", None) or cause.__cause__) and isinstance(inner, BaseException):
        cause = inner
    if type(cause).__name__ == "IncompleteRead":
        return f"the connection ended {getattr(cause, 'expected', 'some')} bytes early"
    text = " ".join(str(cause).split())
    text = re.sub(r"https?://[^\s'\"]+", lambda found: without_secrets(found[0]), text)
    return re.sub(r"^<[^>]*>: |^HTTPS?Connection(?:Pool)?\([^)]*\): ", "", text)[:200] or type(cause).__name__


def _urllib3(name: str) -> Any:
    try:
        import urllib3
    except ImportError:
        raise MissingExtraError(f"{name}: URLs need a package: pip install 'pybpe[remote]'") from None
    return urllib3


@lru_cache(maxsize=8)
def _pool(process: int, proxy: str | None) -> Any:
    """Returns the connections of a process. A forked process must not use those of its parent."""
    import urllib3

    timeout = urllib3.Timeout(connect=_CONNECT_SECONDS, read=_READ_SECONDS)
    if proxy is not None:
        return urllib3.ProxyManager(proxy, maxsize=_CONNECTIONS, timeout=timeout)
    return urllib3.PoolManager(maxsize=_CONNECTIONS, timeout=timeout)


def _proxy_of(scheme: str, host: str) -> str | None:
    """Returns the proxy that the environment (https_proxy and so on) sets for a server, or None."""
    from urllib.request import getproxies, proxy_bypass

    proxy = getproxies().get(scheme)
    return None if proxy is None or proxy_bypass(host) else proxy
