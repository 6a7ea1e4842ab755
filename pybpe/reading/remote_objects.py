"""Asks stores and web servers for the objects that URLs name (s3://, gs://, hf://, https:// and http://), with obstore,
which is imported by the first request.

obstore repeats a request that fails, continues a body that breaks if the ETag is still the same, and compares the range
that a server sends with the one that it asked for. It does not know what the run saw first: RemoteFile compares each
answer with that. hf:// URLs are https URLs, which huggingface_hub knows; it also lists folders there.
"""

from __future__ import annotations

import errno
import glob
import os
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from .._version import __version__
from ..errors import ArgumentError, Error, MissingExtraError, WorkerError, file_error
from ..support.parallel import run_interruptibly
from ..urls import without_secrets

WEB = ("https", "http")
BUCKETS = ("s3", "gs", "hf")
_OTHER_NAMES = {"gcs": "gs", "s3a": "s3", "s3n": "s3", "huggingface": "hf"}
_TRIES = 8
_FIRST_WAIT, _LONGEST_WAIT = timedelta(seconds=0.25), timedelta(seconds=20)
_CONNECT_TIMEOUT, _READ_TIMEOUT, _TIMEOUT = timedelta(seconds=15), timedelta(seconds=30), timedelta(days=7)
_BLOCK = 1 << 22
_ADVICE = {
    "http": "it may want a password or a signed URL, or the signature of this one may have expired",
    "s3": "for a public bucket, set AWS_SKIP_SIGNATURE=true",
    "gs": "for a public bucket, set GOOGLE_SKIP_SIGNATURE=true",
    "hf": "request access on the page of the repository, and set HF_TOKEN",
}
_REFUSALS = ("PermissionDeniedError", "UnauthenticatedError", "GatedRepoError", "RepositoryNotFoundError")
_NO_CREDENTIALS = re.compile(r"169\.254\.|metadata\.google|get_credentials")
_REASONS = {
    "Content-Length": "the server does not say how many bytes the file has, so an incomplete file could not be"
    " recognized: download it first",
    "body error": "the connection broke",
    "following redirect": "the server redirects in circles, or to an address that is not https",
    "Range request": "the connection broke, and the server cannot continue from there: download it first",
}
_started: list[int] = []  # the process in which obstore runs


@dataclass(frozen=True)
class Address:
    """A URL that pybpe can read.

    Attributes:
        scheme: "s3", "https" and so on.
        name: the URL without secrets, for messages and files.
        url: the URL to open. It may contain a signature or a password.
        bucket, path: what the URL names, in a store.
    """

    scheme: str
    name: str
    url: str = field(repr=False)
    bucket: str = field(repr=False)
    path: str = field(repr=False)

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parses a URL. Raises ArgumentError if pybpe cannot read it."""
        scheme, _, where = url.partition("://")
        bucket, _, path = where.lstrip("/").partition("/")
        name = without_secrets(url)
        problem = None
        if "::" in name:
            problem = "pybpe does not read chained URLs: pass the URL of the file itself"
        elif scheme not in WEB + BUCKETS:
            problem = _advice(scheme.lower(), name.partition("://")[2])
        elif not bucket:
            problem = f"this URL names no file: expected {scheme}://, a name, and a path"
        elif scheme in BUCKETS and glob.has_magic(bucket):
            problem = "the name of a bucket cannot contain *, ? or [: name one bucket"
        elif scheme == "s3" and "@" in bucket:
            problem = "pybpe does not read keys in an S3 URL: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
        if problem is not None:
            raise ArgumentError(f"{name}: {problem}")
        return cls(scheme, name, url, bucket, path)


def _advice(scheme: str, where: str) -> str:
    if scheme == "file":
        return f"pass the path itself: /{where.lstrip('/')}"
    known = _OTHER_NAMES.get(scheme, scheme)
    if known in WEB + BUCKETS:
        return f"write {known}://{where}"
    return f"pybpe cannot read {scheme}:// URLs, only s3, gs, hf, https and http: copy the file here first"


class NoRangeError(Exception):
    """The server does not send the range: it sends none, or the object ends before."""


class Answer(NamedTuple):
    """What a server said about an object, and sends of it.

    Attributes:
        size: the number of bytes of the object.
        tag: the ETag, or the name of the version; "" if the server gives none.
        modified: the time of the last change; "" if the server gives none.
        attributes: Content-Type and others.
        blocks: the bytes.
    """

    size: int
    tag: str
    modified: str
    attributes: Mapping[str, str]
    blocks: Iterator[bytes]


def ask(address: Address, start: int = 0, stop: int | None = None) -> Answer:
    """Asks for a range of an object; for the whole object if `stop` is None.

    Raises:
        FileError: the server refuses, or cannot be reached. NoRangeError: it does not send the range.
    """

    def get() -> Any:
        import obstore

        return obstore.get(*_store(address), options={} if stop is None else {"range": (start, stop)})

    with _errors(address):
        found = run_interruptibly(get)
    meta = found.meta
    modified = meta["last_modified"].isoformat() if meta["last_modified"].timestamp() else ""
    tag = meta["e_tag"] or meta["version"] or ""
    return Answer(meta["size"], tag, modified, found.attributes, _blocks(address, found))


def _blocks(address: Address, found: Any) -> Iterator[bytes]:
    blocks = iter(found.stream(min_chunk_size=_BLOCK))
    with _errors(address):
        while block := run_interruptibly(next, blocks, b""):
            yield block


def is_object(address: Address) -> bool:
    """Returns whether a URL of a bucket names an object, and not a folder or nothing."""

    def exists() -> bool:
        if address.scheme == "hf":
            return bool(_hub().isfile(address.url))
        import obstore

        try:
            obstore.head(*_store(address))
        except FileNotFoundError:
            return False
        return True

    with _errors(address):
        return run_interruptibly(exists)


def names(folder: Address) -> list[str]:
    """Returns the paths of all objects in a folder of a bucket and its subfolders, relative to the folder; none if
    there is no such folder."""

    def paths() -> list[str]:
        if folder.scheme == "hf":
            system = _hub()
            system.invalidate_cache()
            return [path.removeprefix(system.resolve_path(folder.url).unresolve()) for path in system.find(folder.url)]
        import obstore

        store, prefix = _store(folder)
        return [meta["path"].removeprefix(prefix) for metas in obstore.list(store, prefix) for meta in metas]

    with _errors(folder):
        # A store may list an empty object whose name ends with /, which stands for the folder.
        return [path.strip("/") for path in run_interruptibly(paths) if path.strip("/")]


# ----------------------------------------------------------------------------------------------------
# Stores


def reads_urls() -> bool:
    """Returns whether this process has read URLs. Its forks cannot, because obstore has threads."""
    return _started[:1] == [os.getpid()]


def _store(address: Address) -> tuple[Any, str]:
    """Returns obstore's store, and the path in it. Raises WorkerError in a process in which obstore would hang."""
    if not _started:
        _started.append(os.getpid())
    if not reads_urls():
        raise WorkerError(
            f"{address.name}: this process is a fork of one that has read URLs, and obstore would hang in it: start the"
            " workers with ProcessPoolExecutor(mp_context=multiprocessing.get_context('spawn'))"
        )
    if address.scheme in ("s3", "gs"):
        return _opened(address.scheme, address.bucket), address.path.rstrip("/")
    return _opened(address.scheme, address.url), ""


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
    options: dict[str, Any] = {
        "retry_config": {
            "max_retries": _TRIES - 1,
            "backoff": {"init_backoff": _FIRST_WAIT, "max_backoff": _LONGEST_WAIT, "base": 3},
        },
        "client_options": {
            "allow_http": not place.startswith("https:"),  # so no redirect leads from https to http
            "connect_timeout": _CONNECT_TIMEOUT,
            "read_timeout": _READ_TIMEOUT,
            "timeout": _TIMEOUT,
            "default_headers": headers,
        },
    }
    if scheme == "s3":
        return S3Store(place, credential_provider=_aws_credentials(), **options)
    return GCSStore(place, **options) if scheme == "gs" else HTTPStore.from_url(place, **options)


def _aws_credentials() -> Any:
    """Returns what finds credentials where boto3 does, such as ~/.aws; None if the environment says how to sign."""
    if {"AWS_ACCESS_KEY_ID", "AWS_SKIP_SIGNATURE", "AWS_WEB_IDENTITY_TOKEN_FILE"} & os.environ.keys():
        return None
    from obstore.auth.boto3 import Boto3CredentialProvider

    return Boto3CredentialProvider()


def _hub() -> Any:
    from huggingface_hub import HfFileSystem

    return HfFileSystem()


# ----------------------------------------------------------------------------------------------------
# Errors


@contextmanager
def _errors(address: Address) -> Iterator[None]:
    """Turns the errors of the libraries into pybpe's."""
    try:
        yield
    except Error:
        raise
    except ImportError as error:
        package = "huggingface_hub" if str(error.name).startswith("huggingface_hub") else "'pybpe[remote]'"
        raise MissingExtraError(f"{address.name}: such URLs need a package: pip install {package}") from None
    except Exception as error:
        raise _refusal(address, type(error).__name__, str(error)) from None


def _refusal(address: Address, kind: str, text: str) -> Exception:
    if kind == "NotSupportedError" or "status code: 416" in text:
        return NoRangeError(address.name)
    number, what = errno.EIO, f"cannot be read: {_reason(text) or kind}"
    if _NO_CREDENTIALS.search(text):
        number, what = errno.EACCES, f"cannot be opened: no credentials were found: {_ADVICE[address.scheme[:4]]}"
    elif kind in _REFUSALS:
        number, what = errno.EACCES, f"cannot be opened: the server refuses access: {_ADVICE[address.scheme[:4]]}"
    elif kind.endswith("NotFoundError") or "status code: 404" in text:  # there is no such bucket
        number, what = errno.ENOENT, "cannot be opened: there is no such file"
    return file_error(number, f"{address.name}: {what}")


def _reason(text: str) -> str:
    """Returns why a request failed, on one line. What the server wrote could repeat a signature, so it is left out."""
    line, tries = text.partition("\n")[0], re.search(r"after (\d+) retries", text)
    reason = next((reason for found, reason in _REASONS.items() if found in line), None)
    if reason is None and (status := re.search(r"status code: (\d+)", line)):
        reason = f"the server answered {status[1]}"
    if reason is None and (cause := re.search(r'(?:message|error): "([^"]*)"', text)):
        reason = cause[1]
    if reason is None:
        reason = re.sub(r"https?://[^\s'\"]+", lambda url: without_secrets(url[0]), line)[:200]
    return f"{reason}, after {int(tries[1]) + 1} tries" if tries else reason
