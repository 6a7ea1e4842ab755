"""Files that URLs name (s3://, gs://, hf://, https:// and http://), read with obstore, which is imported by the first
request. InputFile holds a RemoteFile, and opens it at an offset like a local file. Folders and globs mean the same as
on a local disk (see files.py), and give the same order.

obstore repeats a request that fails, continues a body that breaks if the ETag is still the same, and compares the range
that a server sends with the one that it asked for. It does not know what the run saw first: RemoteFile compares every
answer with that. hf:// URLs are https URLs, which huggingface_hub knows. It also lists folders there.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import io
import os
import re
import threading
from base64 import b64encode
from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Mapping
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, BinaryIO, NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

from .._version import __version__
from ..arguments import without_secrets
from ..errors import ArgumentError, Error, FileError, FormatError, MissingExtraError, WorkerError, file_error, note
from ..support.parallel import map_ordered, run_interruptibly
from .corpus_folder import Found, corpus_of, is_hidden, places_of

Result = TypeVar("Result")

_WEB, _BUCKETS = ("https", "http"), ("s3", "gs", "hf")
_TRIES = 8
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=0.25), timedelta(seconds=20)
_CONNECT_TIMEOUT, _READ_TIMEOUT, _TIMEOUT = timedelta(seconds=15), timedelta(seconds=30), timedelta(days=7)
_PATIENCE_SECONDS = 5.0  # before a note that a server does not answer
_LEAST_BYTES = 1 << 16  # the least that a request asks for: enough to recognize a file
_PART_BYTES = 1 << 22
_CONNECTIONS = 4
_KEPT_ENCODINGS = ("", "identity", "gzip", "x-gzip", "zstd")  # the formats that streams.py recognizes
_ADVICE = {
    "http": "it may want a password or a signed URL, or the signature of this one may have expired",
    "s3": "for a public bucket, set AWS_SKIP_SIGNATURE=true",
    "gs": "for a public bucket, set GOOGLE_SKIP_SIGNATURE=true",
    "hf": "request access on the page of the repository, and set HF_TOKEN",
}
_REFUSALS = ("PermissionDeniedError", "UnauthenticatedError", "GatedRepoError", "RepositoryNotFoundError")
_NO_CREDENTIALS = re.compile(r"169\.254\.|metadata\.google|get_credentials")
_started: list[int] = []  # the process that runs obstore


class NoRangeError(Exception):
    """The server does not send the range: it sends none, or the object ends before."""


class RemoteFile(NamedTuple):
    """A remote file as it was when the run began. It can be sent to workers on other machines, which need the same
    access to it."""

    url: str  # the URL to open. It may contain a signature or a password
    size: int  # the number of bytes
    version: str = ""  # its ETag, the name of its version, or the time of its last change, if the server gives one

    @classmethod
    def look(cls, url: str) -> tuple[RemoteFile, BinaryIO]:
        """Looks at a file. Returns it, and a stream of it.

        Raises:
            ArgumentError: pybpe cannot read such URLs. FileError: the file cannot be read. MissingExtraError: a package
            is not installed. FormatError: the server sends a web page instead.
        """
        try:
            file, head = ask(url, 0, _LEAST_BYTES)
        except NoRangeError:
            file, head = ask(url)
            if file.size:  # an empty object has no ranges, either
                raise _unreadable(url, "the server sends no ranges of it: download it first") from None
        return file, file.open(head=head)

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """Where the file is, and its version. The query of a URL belongs to it, as a hash,
        only if the server gives no version: a new signature of the same file changes nothing."""
        version = self.version or hashlib.blake2b(self.url.encode(), digest_size=16).hexdigest()
        return without_secrets(self.url), self.size, version

    def open(self, start: int = 0, end: int | None = None, head: bytes = b"") -> BinaryIO:
        """Opens the file at an offset. A read raises FileChangedError if the file has changed since the run looked at
        it.

        Args:
            start: the position of the stream.
            end: where the reader will stop, if it reads everything up to there.
            head: the first bytes, if they are known.
        """
        stream = io.BufferedReader(_Stream(self, end, head), _LEAST_BYTES)
        if start:
            stream.seek(start)
        return stream

    def part(self, span: tuple[int, int]) -> bytes:
        """Returns the bytes from span[0] to span[1]."""
        try:
            now, data = ask(self.url, *span)
        except NoRangeError:
            raise self._changed(f"ends before byte {span[0] + 1}, or can only be read as a whole") from None
        if now.size != self.size:
            raise self._changed(f"has {now.size} bytes, but had {self.size}")
        if now.version != self.version:
            raise self._changed("has another ETag, version or time of change")
        return data

    def _changed(self, what: str) -> FileError:
        return file_error(
            errno.ESTALE,
            f"{without_secrets(self.url)}: this file changed after this run first looked at it: it now {what}. Run"
            " again when nothing writes to it",
        )


def ask(url: str, start: int = 0, stop: int | None = None) -> tuple[RemoteFile, bytes]:
    """Returns a file as the server describes it now, and its bytes from `start` to `stop`. None if `stop` is None.

    Raises:
        FileError: the server refuses, or cannot be reached. FormatError: it sends a web page, such as one about the
        file or for logging in, or an unknown compression. NoRangeError: it does not send the range.
    """

    def get() -> tuple[Any, Mapping[str, str], bytes]:
        import obstore

        found = obstore.get(*_store(url), options={} if stop is None else {"range": (start, stop)})
        return found.meta, found.attributes, b"" if stop is None else bytes(found.bytes())

    meta, attributes, data = _wait(url, get)
    name, kind = without_secrets(url), attributes.get("Content-Type", "").partition(";")[0].strip().lower()
    is_page = url.startswith("http") and kind in ("text/html", "application/xhtml+xml")
    if is_page and not name.lower().endswith((".html", ".htm", ".xhtml")):
        advice = "pass the URL of the file itself, as the browser's download link has it"
        raise FormatError(f"{name}: not this file, but a web page (text/html): {advice}")
    encoding = attributes.get("Content-Encoding", "").strip().lower()
    if encoding not in _KEPT_ENCODINGS:
        raise FormatError(f"{name}: the server sends it compressed with {encoding}: download it first")
    if stop is not None and start + len(data) != min(stop, meta["size"]):
        raise _unreadable(url, f"the server sent {len(data)} bytes of the range {start} to {stop}")
    modified = meta["last_modified"].isoformat() if meta["last_modified"].timestamp() else ""
    return RemoteFile(url, meta["size"], meta["e_tag"] or meta["version"] or modified), data


class _Stream(io.RawIOBase):
    """The bytes of a RemoteFile. If its reader said where it will stop, it reads ahead over several connections, so
    that one reader is not limited by the speed of one. Otherwise it requests only the bytes that are needed, because
    reading a few bytes somewhere must not transfer megabytes."""

    def __init__(self, file: RemoteFile, end: int | None, head: bytes) -> None:
        self.name, self._file, self._end, self._at = without_secrets(file.url), file, end, 0
        self._rest = memoryview(head)  # the bytes from _at that have been received
        self._ahead: Iterator[bytes] = iter(())

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        to = offset + (0, self._at, self._file.size)[whence]
        if not 0 <= to - self._at <= len(self._rest):
            self._forget()
        self._rest, self._at = self._rest[to - self._at :], to
        return to

    def tell(self) -> int:
        return self._at

    def readinto(self, block: Any) -> int:
        if not self._rest and self._at < self._file.size:
            self._rest = memoryview(next(self._ahead, b"") or self._next(len(block)))
        size = min(len(block), len(self._rest))
        block[:size] = self._rest[:size]
        self._at, self._rest = self._at + size, self._rest[size:]
        return size

    def _next(self, wanted: int) -> bytes:
        stop = self._at + max(wanted, _LEAST_BYTES)
        if self._end is not None and self._at < self._end:
            stop = self._end
        stop = min(stop, self._file.size)
        spans = [(at, min(at + _PART_BYTES, stop)) for at in range(self._at, stop, _PART_BYTES)]
        self._ahead = map_ordered(self._file.part, spans, min(_CONNECTIONS, len(spans)))
        return next(self._ahead)

    def _forget(self) -> None:
        self._rest = memoryview(b"")
        if isinstance(self._ahead, Generator):
            self._ahead.close()
        self._ahead = iter(())

    def close(self) -> None:
        self._forget()
        super().close()


# ----------------------------------------------------------------------------------------------------
# Folders and globs


def remote_files(url: str) -> tuple[Found, bool]:
    """Returns the URLs of the files that a URL, folder or glob names, sorted, and whether `url` is the name of a file.
    A name of both a folder and a file means the folder.

    Raises:
        ArgumentError: pybpe cannot read such URLs. FileError: the store cannot be read.
    """
    scheme, bucket, path = _parsed(url)
    named = Found([url], [], [], []), True
    if scheme in _WEB:
        return named
    parts = [part for part in path.split("/") if part]
    fixed = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    folder, pattern = "/".join((f"{scheme}://{bucket}", *parts[:fixed])), parts[fixed:]
    found = sorted(names(folder))
    if pattern:
        return _of_glob(folder, found, pattern, url.endswith("/")), False
    if not found and not url.endswith("/"):
        return named  # opening it raises an error if there is no such file, either
    return corpus_of(places_of(folder, found, _content)), False


def _content(url: str) -> bytes:
    return RemoteFile.look(url)[1].read()


def _of_glob(folder: str, found: list[str], pattern: list[str], only_folders: bool) -> Found:
    """Like `corpus_of`, for the files and folders that a glob matches. `found` is sorted."""
    folders = {path[:at] for path in found for at, char in enumerate(path) if char == "/"}
    matched = Found.none()
    end = "/" if only_folders else ""  # which is in the names that a disk's glob gives then, and sorts
    for place in sorted(folders if only_folders else folders.union(found), key=lambda place: place + end):
        if not _matches(place.split("/"), pattern):
            continue
        if place not in folders:
            matched.kept.append(f"{folder}/{place}")
        elif "**" not in pattern:  # otherwise it matches the files in all subfolders already
            inside = found[bisect_left(found, f"{place}/") : bisect_left(found, f"{place}0")]  # 0 follows /
            paths = [path[len(place) + 1 :] for path in inside]
            matched.add(corpus_of(places_of(f"{folder}/{place}", paths, _content)))
    return matched


def _matches(parts: list[str], pattern: list[str]) -> bool:
    if not pattern or not parts:
        return not parts and all(part == "**" for part in pattern)
    first, wanted = parts[0], pattern[0]
    if wanted == "**":
        return _matches(parts, pattern[1:]) or (not is_hidden(first) and _matches(parts[1:], pattern))
    fits = fnmatchcase(first, wanted) and (wanted.startswith(".") or not is_hidden(first))
    return (fits if glob.has_magic(wanted) else first == wanted) and _matches(parts[1:], pattern[1:])


def names(folder: str) -> list[str]:
    """Returns the paths of all objects in a folder of a bucket and its subfolders, relative to the folder. None if
    there is no such folder."""

    def paths() -> list[str]:
        if folder.startswith("hf:"):
            hub = _hub()
            hub.invalidate_cache()
            if hub.isfile(folder):
                return []
            return [path.removeprefix(hub.resolve_path(folder).unresolve()) for path in hub.find(folder)]
        import obstore

        store, prefix = _store(folder)
        return [meta["path"].removeprefix(prefix) for metas in obstore.list(store, prefix) for meta in metas]

    # A store may list an empty object whose name ends with /, which stands for the folder.
    return [path.strip("/") for path in _wait(folder, paths) if path.strip("/")]


# ----------------------------------------------------------------------------------------------------
# Stores


def reads_urls() -> bool:
    """Returns whether this process has read URLs. Its forks cannot, because obstore has threads."""
    return _started[:1] == [os.getpid()]


def _parsed(url: str) -> tuple[str, str, str]:
    """Returns the scheme of a URL, and the bucket and the path that it names in a store. Raises ArgumentError if pybpe
    cannot read it."""
    scheme, _, where = url.partition("://")
    bucket, _, path = where.lstrip("/").partition("/")
    name, problem = without_secrets(url), None
    if scheme not in _WEB + _BUCKETS or "::" in name:
        problem = "pybpe reads only s3://, gs://, hf://, https:// and http:// URLs: copy the file here first"
    elif not bucket:
        problem = f"this URL names no file: expected {scheme}://, a name, and a path"
    elif scheme == "s3" and "@" in bucket:
        problem = "pybpe does not read keys in an S3 URL: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if problem is not None:
        raise ArgumentError(f"{name}: {problem}")
    return scheme, bucket, path


def _store(url: str) -> tuple[Any, str]:
    """Returns obstore's store, and the path in it. Raises WorkerError in a process where obstore would hang."""
    scheme, bucket, path = _parsed(url)
    if not _started:
        _started.append(os.getpid())
    if not reads_urls():
        raise WorkerError(
            f"{without_secrets(url)}: this process is a fork of one that has read URLs, and obstore would hang in it:"
            " start the workers with ProcessPoolExecutor(mp_context=multiprocessing.get_context('spawn'))"
        )
    return (_opened(scheme, bucket), path.rstrip("/")) if scheme in ("s3", "gs") else (_opened(scheme, url), "")


@lru_cache(maxsize=64)
def _opened(scheme: str, place: str) -> Any:
    from obstore.store import GCSStore, HTTPStore, S3Store

    headers = {"User-Agent": f"pybpe/{__version__}"}
    if scheme == "hf":
        from huggingface_hub import get_token

        place, token = _hub().url(place), get_token()
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
    elif (where := urlsplit(place)).username is not None:  # obstore does not send it
        user = f"{unquote(where.username)}:{unquote(where.password or '')}"
        headers["Authorization"] = f"Basic {b64encode(user.encode()).decode()}"
        place = where._replace(netloc=where.netloc.rpartition("@")[2]).geturl()
    backoff = {"init_backoff": _FIRST_WAIT, "max_backoff": _LONGEST_WAIT, "base": 3}
    client = {
        "allow_http": not place.startswith("https:"),  # so no redirect leads from https to http
        "connect_timeout": _CONNECT_TIMEOUT,
        "read_timeout": _READ_TIMEOUT,
        "timeout": _TIMEOUT,
        "default_headers": headers,
    }
    options: dict[str, Any] = {
        "retry_config": {"max_retries": _TRIES - 1, "backoff": backoff},
        "client_options": client,
    }
    if scheme == "s3":
        return S3Store(place, credential_provider=_aws_credentials(), **options)
    return GCSStore(place, **options) if scheme == "gs" else HTTPStore.from_url(place, **options)


def _aws_credentials() -> Any:
    """Returns a provider of boto3's credentials, such as ~/.aws, or None if the environment says how to sign."""
    if {"AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE", "AWS_WEB_IDENTITY_TOKEN_FILE"} & os.environ.keys():
        return None
    from obstore.auth.boto3 import Boto3CredentialProvider

    return Boto3CredentialProvider()


def _hub() -> Any:
    from huggingface_hub import HfFileSystem

    return HfFileSystem()


def _wait(url: str, function: Callable[[], Result]) -> Result:
    """Returns function(), which Ctrl-C interrupts. Tells the user if it takes long, because obstore repeats failed
    requests. Turns the errors of the libraries into pybpe's."""
    told = f"{without_secrets(url)}: no answer for {_PATIENCE_SECONDS:g} s, still trying"
    timer = threading.Timer(_PATIENCE_SECONDS, note, [told])
    timer.daemon = True
    try:
        timer.start()
        return run_interruptibly(function)
    except Error:
        raise
    except ImportError as error:
        package = "huggingface_hub" if str(error.name).startswith("huggingface_hub") else "'pybpe[remote]'"
        problem = f"such URLs need a package: pip install {package}"
        raise MissingExtraError(f"{without_secrets(url)}: {problem}") from None
    except Exception as error:
        raise _refusal(url, type(error).__name__, str(error)) from None
    finally:
        timer.cancel()


def _refusal(url: str, kind: str, text: str) -> Exception:
    """Returns pybpe's error for an exception of a library, of this kind and with this text."""
    advice = next(advice for scheme, advice in _ADVICE.items() if url.startswith(scheme))
    if kind == "NotSupportedError" or "status code: 416" in text:
        return NoRangeError(url)
    if _NO_CREDENTIALS.search(text):
        number, what = errno.EACCES, f"no credentials were found: {advice}"
    elif kind in _REFUSALS:
        number, what = errno.EACCES, f"the server refuses access: {advice}"
    elif kind.endswith("NotFoundError") or "status code: 404" in text:
        is_bucket = "NoSuchBucket" in text or "bucket does not exist" in text
        number, what = errno.ENOENT, "there is no such bucket" if is_bucket else "there is no such file"
    else:  # a URL, and the lines that the server wrote after the first, could repeat a signature
        first, cause = text.partition("\n")[0], re.search(r'(?:message|error): "([^"]*)"', text)
        reason = re.sub(r"https?://[^\s'\"]+", lambda found: without_secrets(found[0]), first)[:300] or kind
        return _unreadable(url, f"{reason}: {cause[1]}" if cause else reason)
    return file_error(number, f"{without_secrets(url)}: cannot be opened: {what}")


def _unreadable(url: str, why: str) -> FileError:
    return file_error(errno.EIO, f"{without_secrets(url)}: cannot be read: {why}")
