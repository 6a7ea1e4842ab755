"""Reads and lists objects of the stores that fsspec knows: s3 (s3fs), gs (gcsfs) and hf (huggingface_hub).

fsspec finds credentials and endpoints as the store's own tools do (AWS_PROFILE, ~/.aws, HF_TOKEN and so on), and takes
settings from the environment: FSSPEC_S3_ANON=true reads public buckets without credentials.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from ...errors import Error, FileError, MissingExtraError, file_error
from ...urls import without_secrets
from .address import Address
from .facts import Facts, changed
from .transfer import Unavailable, persist

_PACKAGES = {"s3": "'pybpe[remote]'", "gs": "gcsfs", "hf": "fsspec huggingface_hub", "memory": "fsspec"}
_LOOK_TRIES = 2  # the libraries try several times, too
_TAGS = ("ETag", "etag", "generation", "blob_id", "oid")
_TIMES = ("LastModified", "last_modified", "updated", "mtime", "created")
_URL = re.compile(r"https?://[^\s'\"]+")

Result = TypeVar("Result")


class Entry(NamedTuple):
    """An object or folder, directly in a folder."""

    name: str
    is_folder: bool


class BucketSource:
    """An object. Several threads may call `receive` at once.

    Args:
        address: its URL.
        facts: what the store said when the run first looked at it.
    """

    def __init__(self, address: Address, facts: Facts) -> None:
        self.name, self._address, self._facts = address.name, address, facts

    def receive(self, start: int, view: memoryview) -> int:
        """See Source."""
        system, url, name = _system(self._address), self._address.url, self.name
        data = _asked(lambda: system.cat_file(url, start=start, end=start + len(view)), name)
        if len(data) > len(view):
            raise file_error(errno.EIO, f"{name}: cannot be read: the store sent more bytes than those asked for")
        if not data:
            self.check_now()
            raise changed(name, f"now ends before byte {start + 1}, but had {self._facts.size} bytes")
        view[: len(data)] = data
        return len(data)

    def check_now(self) -> None:
        """Raises FileChangedError if the object has changed."""
        self._facts.check(self.name, facts_of(_info(self._address)))


def look(address: Address) -> Facts:
    """Returns what a store says about an object. Raises FileError if it does not exist or is a folder."""
    info = _info(address, _LOOK_TRIES)
    if info["type"] != "file":
        raise file_error(errno.EISDIR, f"{address.name}: cannot be opened: it is a folder")
    return facts_of(info)


def is_folder(address: Address) -> bool:
    """Returns whether a URL names a folder: a prefix of names, or a bucket. A URL that ends with / always does."""
    return address.url.endswith("/") or bool(_info(address, _LOOK_TRIES)["type"] == "directory")


def exists(address: Address) -> bool:
    """Returns whether a URL names an object or folder."""
    try:
        _info(address, _LOOK_TRIES)
    except FileNotFoundError:
        return False
    return True


def entries(address: Address) -> list[Entry]:
    """Returns what is directly in a folder, sorted; nothing if there is no such folder."""
    system = _system(address)
    url = address.url.rstrip("/")

    def listing() -> tuple[str, list[dict[str, Any]]]:
        system.invalidate_cache(url)
        return str(system._strip_protocol(url)).rstrip("/"), system.ls(url, detail=True)

    try:
        own, found = persist(lambda: _asked(listing, address.name), address.name)
    except FileNotFoundError:
        return []
    inside = [(str(info["name"]), info["type"] == "directory") for info in found]
    # A store may list the folder itself, and an empty object whose name ends with /, which stands for a folder.
    names = {name.rstrip("/").rpartition("/")[2]: folder for name, folder in inside if name.rstrip("/") != own}
    return [Entry(name, names[name]) for name in sorted(names)]


def facts_of(info: dict[str, Any]) -> Facts:
    """Returns what a store says about an object, from fsspec's description of it."""
    tag = next((str(info[key]) for key in _TAGS if info.get(key)), "")
    modified = next((str(info[key]) for key in _TIMES if info.get(key)), "")
    return Facts(int(info["size"]), tag, modified)


def _info(address: Address, tries: int | None = None) -> dict[str, Any]:
    system, url = _system(address), address.url

    def info() -> dict[str, Any]:
        system.invalidate_cache(url)  # the listing of a folder may be older
        return dict(system.info(url, refresh=True))

    return persist(lambda: _asked(info, address.name), address.name, tries)


def _system(address: Address) -> Any:
    """Returns fsspec's file system for a URL. fsspec keeps one per process and settings."""
    missing = MissingExtraError(
        f"{address.name}: {address.scheme}:// URLs need a package: pip install {_PACKAGES[address.scheme]}"
    )
    try:
        import fsspec
    except ImportError:
        raise missing from None
    try:
        return fsspec.filesystem(address.scheme)
    except ImportError:
        raise missing from None


def _asked(function: Callable[[], Result], name: str) -> Result:
    """Returns function(). Turns the errors of a store into pybpe's: those that a later try may avoid into Unavailable.

    Raises:
        FileError: a later try would fail, too.
    """
    try:
        return function()
    except (Error, Unavailable):
        raise
    except (FileNotFoundError, PermissionError, IsADirectoryError) as error:
        raise _refusal(name, error) from None
    except Exception as error:  # the libraries of the stores raise errors of their own
        if type(error).__name__ in _FINAL:
            raise _refusal(name, error) from None
        raise Unavailable(_said(error)) from None


_FINAL = {
    "NoCredentialsError": "no credentials were found; for a public bucket set FSSPEC_S3_ANON=true",
    "PartialCredentialsError": "the credentials are incomplete",
    "ProfileNotFound": "the profile in AWS_PROFILE does not exist",
    "ParamValidationError": "the name of the bucket or object is not valid",
    "GatedRepoError": "access to this repository must be requested on its page, and HF_TOKEN set",
    "RepositoryNotFoundError": "there is no such repository, or HF_TOKEN has no access to it",
    "RevisionNotFoundError": "there is no such revision",
    "HFValidationError": "the name of the repository is not valid",
}


def _refusal(name: str, error: Exception) -> FileError:
    advice = _FINAL.get(type(error).__name__)
    number = errno.EIO
    if isinstance(error, IsADirectoryError):
        number = errno.EISDIR
    elif isinstance(error, FileNotFoundError) or "NotFound" in type(error).__name__:
        number, advice = errno.ENOENT, advice or "there is no such file"
    elif isinstance(error, PermissionError) or advice is not None:
        number, advice = errno.EACCES, advice or "the store refuses access; for a public bucket, FSSPEC_S3_ANON=true"
    return file_error(number, f"{name}: cannot be opened: {advice or _said(error)}")


def _said(error: Exception) -> str:
    """Returns the text of a store's error on one line, without the queries of URLs, which may be signatures."""
    text = " ".join(str(error).split())
    return _URL.sub(lambda found: without_secrets(found[0]), text)[:200] or type(error).__name__
